"""Slow, short, independent implementations that the tests compare the package with.

Nothing here is shared with the package but the layout of theta: kernels come from the general
Matern formula, cross-kernels from their spectra, the likelihood from ``scipy.stats``.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
from scipy import special, stats
from scipy.integrate import quad
from scipy.linalg import block_diag, expm

from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import (
    GEV,
    Exponential,
    Gamma,
    LogNormal,
    Marginal,
    Normal,
    StudentT,
    by,
    regress,
)
from xcopula.methods import Method
from xcopula.process import Process, Sample, Sites, Targets
from xcopula.solvers import Exact


def kernel(nu, x):
    """Return the Matern correlation at one scaled distance, by the general Bessel formula."""
    if x == 0.0:
        return 1.0
    if math.isinf(nu):
        return math.exp(-0.5 * x * x)
    y = math.sqrt(2.0 * nu) * x
    return 2.0 ** (1.0 - nu) / math.gamma(nu) * y**nu * special.kv(nu, y)


def spectrum(nu, length, dimension, k):
    """Return the spectral density, of integral (2 pi)^D over R^D, of a kernel at frequency k."""
    half = dimension / 2
    if math.isinf(nu):
        return (2.0 * math.pi * length**2) ** half * np.exp(-0.5 * (length * k) ** 2)
    a = math.sqrt(2.0 * nu) / length
    constant = (4.0 * math.pi) ** half * math.gamma(nu + half) / math.gamma(nu) * a ** (2 * nu)
    return constant * (a**2 + k**2) ** (-nu - half)


@functools.cache
def cross_kernel(nu1, length1, nu2, length2, dimension, r):
    """Return the Fourier inverse in R^D of the geometric mean of two spectra, at one distance.

    The Hankel integral is taken between (nearly) the zeros of the Bessel function, and the
    alternating sum accelerated by repeated means. Good to about 1e-11.
    """
    half = dimension / 2

    def density(k):
        s1, s2 = spectrum(nu1, length1, dimension, k), spectrum(nu2, length2, dimension, k)
        return math.sqrt(s1 * s2) * k ** (dimension - 1)

    def integral(f, low, high):
        return quad(f, low, high, epsabs=1e-14, epsrel=1e-12, limit=400)[0]

    area = 2.0 ** (1.0 - dimension) * math.pi**-half / math.gamma(half)
    knots = [0.0, *sorted(s / length for length in (length1, length2) for s in (0.3, 1, 3, 10))]
    if r == 0.0:
        tail = integral(lambda v: density(1.0 / v) / v**2, 0.0, 1.0 / knots[-1])
        return area * (sum(map(integral, [density] * 8, knots[:-1], knots[1:])) + tail)

    def wave(k):
        return density(k) * special.jv(half - 1.0, k * r) * (k * r) ** (1.0 - half)

    zeros = (np.arange(1, 61) + dimension / 4 - 0.75) * math.pi / r
    zeros = zeros[zeros > 0.0]
    knots = [k for k in knots if k < zeros[0]] + [zeros[0]]
    first = sum(map(integral, [wave] * (len(knots) - 1), knots[:-1], knots[1:]))
    sums = first + np.cumsum([integral(wave, a, b) for a, b in itertools.pairwise(zeros)])
    for _ in range(25):
        sums = 0.5 * (sums[1:] + sums[:-1])
    return (2.0 * math.pi) ** -half * sums[-1]


def correlation(a, tasks):
    """Return a correlation matrix from its canonical partial correlations tanh(a), row by row."""
    a = iter(a)
    factor = np.zeros((tasks, tasks))
    for i in range(tasks):
        left = 1.0
        for j in range(i):
            factor[i, j] = math.tanh(next(a)) * math.sqrt(left)
            left -= factor[i, j] ** 2
        factor[i, i] = math.sqrt(left)
    return factor @ factor.T


def task_matrices(covariance, theta):
    """Return the task matrices of the structures and of the nugget, from the definition."""
    t, q = covariance.tasks, covariance.structures
    logits = np.vstack([covariance.part(theta, "logit"), np.zeros(t)])
    shares = np.exp(logits) / np.exp(logits).sum(axis=0)
    parameters = [*covariance.part(theta, "correlation")]
    noise = covariance.part(theta, "noise_correlation")
    parameters.append(noise if covariance.noise == "correlated" else np.zeros(t * (t - 1) // 2))
    return [
        correlation(parameters[k], t) * np.sqrt(np.outer(shares[k], shares[k]))
        for k in range(q + 1)
    ]


PLANE_AXES = ((1.0, 0.0), (0.0, 1.0))
SPACE_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
# Two directions of three, neither along a column: a tangent plane of the globe.
TANGENT_AXES = ((0.6, 0.8, 0.0), (-0.64, 0.48, 0.6))


def metric(group, parameters):
    """Return M, with squared distances d'Md, from the definition."""
    if group.ard:
        return np.diag(np.exp(-2.0 * np.array(parameters)))
    if not group.directions:
        return np.eye(group.size)
    span = np.array(group.directions)
    matrix = expm(symmetric(parameters, len(span)))
    return np.eye(group.size) + span.T @ (matrix - np.eye(len(span))) @ span


def symmetric(parameters, size):
    """Return the symmetric matrix without trace that parameters stand for."""
    if size == 2:
        a, b = parameters
        return np.array([[a, b], [b, -a]])
    a, b, *off = parameters
    diagonal = np.array([a, -a, 0.0]) + np.array([1.0, 1.0, -2.0]) * b / math.sqrt(3.0)
    matrix = np.diag(diagonal)
    matrix[np.tril_indices(3, -1)] = off
    return matrix + np.tril(matrix, -1).T


def kernels_of(names):
    """Return the kernels of tasks: "se matern32+matern12" is one, and one for each structure."""
    each = [[KERNELS[name] for name in own.split("+")] for own in names.split()]
    return tuple(own[0] if len(own) == 1 else Nested(tuple(own)) for own in each)


def smoothness(kernel, structure):
    """Return the smoothness of a task's kernel in a structure."""
    own = kernel.families[structure] if isinstance(kernel, Nested) else kernel
    return own.smoothness


def covariance_matrix(covariance, theta, inputs, numbers=None):
    """Return the covariance (n, n) of all tasks' inputs, a list of (n_i, d), entry by entry.

    Inputs stand at one site where they are equal, or where their ``numbers`` (n,) are.
    """
    *amplitudes, nugget = task_matrices(covariance, theta)
    lengths = np.exp(covariance.part(theta, "length"))
    scaling, groups, roots, start = iter(covariance.part(theta, "scaling")), [], [], 0
    for group in covariance.groups:
        groups.append(slice(start, start + group.size))
        own = [next(scaling) for _ in range(group.parameters)]
        roots.append(np.linalg.cholesky(metric(group, own)).T)
        start += group.size
    points = [(i, block_diag(*roots) @ x) for i, block in enumerate(inputs) for x in block]
    if numbers is None:
        numbers = stacked(inputs)[1]
    sites = [(*point, number) for point, number in zip(points, numbers, strict=True)]

    def entry(i, x, m, j, y, n):
        total = nugget[i, j] if m == n else 0.0
        for q, amplitude in enumerate(amplitudes):
            product = 1.0
            for g, group in enumerate(groups):
                r = float(np.linalg.norm(x[group] - y[group]))
                nu1, nu2 = (smoothness(covariance.kernels[k], q) for k in (i, j))
                if covariance.shared or i == j:
                    l1 = l2 = lengths[q, g, 0 if covariance.shared else i]
                else:
                    l1, l2 = lengths[q, g, i], lengths[q, g, j]
                if nu1 == nu2 and l1 == l2:
                    product *= kernel(nu1, r / l1)
                else:
                    d = covariance.groups[g].size
                    product *= cross_kernel(nu1, float(l1), nu2, float(l2), d, r)
            total += amplitude[i, j] * product
        return total

    matrix = np.empty((len(sites), len(sites)))
    for k, a in enumerate(sites):
        matrix[k, : k + 1] = matrix[: k + 1, k] = [entry(*a, *b) for b in sites[: k + 1]]
    return matrix


def law(marginal):
    """Return the scipy distribution of a marginal law."""
    return {
        Normal: lambda m: stats.norm(m.location, m.scale),
        LogNormal: lambda m: stats.lognorm(m.scale, scale=np.exp(m.location)),
        Exponential: lambda m: stats.expon(scale=m.scale),
        GEV: lambda m: stats.genextreme(-m.shape, m.location, m.scale),
        Gamma: lambda m: stats.gamma(m.shape, scale=m.scale),
        StudentT: lambda m: stats.t(m.df, m.location, m.scale),
    }[type(marginal)](marginal)


def log_likelihood(matrix, marginals, values):
    """Return the copula log-likelihood: latent density, plus marginal minus normal densities."""
    laws = [law(m) for m in marginals]
    w = [stats.norm.ppf(d.cdf(y)) for d, y in zip(laws, values, strict=True)]
    latent = stats.multivariate_normal(cov=matrix).logpdf(np.concatenate(w))
    jacobian = sum(d.logpdf(y).sum() for d, y in zip(laws, values, strict=True))
    return latent + jacobian - stats.norm.logpdf(np.concatenate(w)).sum()


def by_theta(law, method, y, step=1e-3):
    """Return derivatives (n, p) of a law's map by its theta, by differences of fourth order."""
    columns = []
    for unit in np.eye(law.theta.size):
        a, b, c, d = (
            getattr(law.with_theta(law.theta + m * step * unit), method)(y) for m in (-2, -1, 1, 2)
        )
        columns.append((a - 8.0 * b + 8.0 * c - d) / (12.0 * step))
    return np.column_stack(columns) if columns else np.empty((y.size, 0))


def differences(function, x, step=1e-3):
    """Return the derivatives (..., p) of a function by central differences of fourth order."""
    slopes = []
    for e in step * np.eye(x.size):
        near = function(x + e) - function(x - e)
        far = function(x + 2 * e) - function(x - 2 * e)
        slopes.append((8.0 * near - far) / (12.0 * step))
    return np.stack(slopes, axis=-1) if slopes else np.empty(0)


def random_theta(covariance, rng, *, logit=1.0):
    """Draw moderate covariance parameters: no length far from the extent, some nugget."""
    theta = np.empty(covariance.size)
    for name, (mean, sd) in {
        "length": (math.log(0.3), 0.5),
        "scaling": (0.0, 0.4),
        "logit": (logit, 0.5),
        "correlation": (0.3, 0.7),
        "noise_correlation": (-0.2, 0.7),
    }.items():
        where = covariance.layout[name][0]
        theta[where] = rng.normal(mean, sd, size=where.stop - where.start)
    return theta


def random_inputs(covariance, rng, sizes, together=0):
    """Draw sites (n_i, d) for each task; the first ``together`` are common to all tasks."""
    common = rng.uniform(size=(together, covariance.columns))
    return [
        np.vstack([common, rng.uniform(size=(n - together, covariance.columns))]) for n in sizes
    ]


def stacked(inputs):
    """Return all tasks' inputs (d, n), the number of each one's site, and where tasks begin."""
    rows = np.vstack(inputs)
    _, sites = np.unique(rows, axis=0, return_inverse=True)
    offsets = np.cumsum([0, *map(len, inputs)])
    return np.require(rows.T, float, "CW"), sites.reshape(-1).astype(np.int64), offsets


def targets(sample, points):
    """Number points (d, m): those within 1e-9 of an observation stand at its site."""
    near = np.full(len(sample.inputs), 1e-9)
    points = np.ascontiguousarray(points, np.float64)
    return Targets(points, Sites(sample.inputs, sample.sites, near).find(points))


def prepare(how, process, sample, theta, solver=None):
    """Return the structure that a method, or a solver, makes of a sample."""
    if isinstance(how, Method):
        return how.prepare(solver or Exact(), process, theta, sample)
    return how.prepare(process, theta, sample)


def objective(how, process, sample, theta, solver=None):
    """Return value and gradient of a method, or a solver, made for a sample and asked once."""
    return how.objective(process, sample, prepare(how, process, sample, theta, solver), theta)


def condition(how, process, sample, theta, solver=None):
    """Condition by a method, or a solver, that is made for a sample."""
    return how.condition(process, sample, prepare(how, process, sample, theta, solver), theta)


def parts(sample):
    """Return the tasks' inputs, each (n_i, d), and values."""
    tasks = [sample.task(i) for i in range(sample.tasks)]
    return [sample.inputs[:, t].T for t in tasks], [sample.values[t] for t in tasks]


def without(sample, index):
    """Return a sample without one observation, by its number."""
    return sample.take(np.delete(np.arange(sample.size), index))


def simulate(process, theta, inputs, seed=0):
    """Draw one sample of the process at theta, at inputs (n_i, d) of each task."""
    _, marginals = process.split(theta)
    start = [m.from_normal(np.zeros(len(x))) for m, x in zip(marginals, inputs, strict=True)]
    empty = Sample.of(inputs, start)
    conditioned = condition(Exact(), process, empty, theta)
    assert conditioned.jitter == 0.0
    z = np.tril(conditioned.factor) @ np.random.default_rng(seed).normal(size=empty.size)
    values = [m.from_normal(z[empty.task(i)]) for i, m in enumerate(marginals)]
    return Sample.of(inputs, values, sites=empty.sites)


EXAMPLES = {
    "directions": (
        "matern32 se",
        (InputGroup(2, directions=PLANE_AXES), InputGroup(1)),
        {"structures": 2},
    ),
    "a kernel each": (
        "matern52+matern12 se+matern32",
        (InputGroup(2, directions=PLANE_AXES),),
        {"structures": 2},
    ),
    "single": ("matern32", (InputGroup(2),), {}),
    "mixed": ("matern32 se matern12", (InputGroup(2),), {}),
    "groups": ("matern32 matern52", (InputGroup(2, ard=True), InputGroup(1)), {"structures": 2}),
    "lmc": ("matern32 matern32", (InputGroup(2),), {"coupling": "lmc", "noise": "independent"}),
    "shared": ("matern32 matern32 matern32", (InputGroup(2),), {"coupling": "lmc"}),
}


def example(name, sizes=(24, 20, 18), seed=0, law=None, noise=None):
    """Build a process, a partly co-located sample and parameters; also return what drew them.

    Dense matrices of the shared kernels of "lmc" and "shared" are quickly made.
    """
    names, groups, options = EXAMPLES[name]
    kernels = kernels_of(names)
    rng = np.random.default_rng(seed)
    options = options | ({} if noise is None else {"noise": noise})
    covariance = Covariance(kernels, groups, **options)
    process = Process(covariance, (law or LogNormal(0.2, 0.7),) * len(kernels))
    theta = process.join(random_theta(covariance, rng))
    inputs = random_inputs(covariance, rng, sizes[: len(kernels)], min(sizes) // 2 + 3)
    values = [process.marginals[0].from_normal(rng.normal(size=len(x))) for x in inputs]
    return process, Sample.of(inputs, values), theta, rng


def some_targets(sample, rng, fresh=6):
    """Give new points, a site where all tasks are known, and sites of each task alone."""
    new = rng.uniform(size=(len(sample.inputs), fresh))
    own = [0, *(int(stop) - k for stop in sample.offsets[1:] for k in (1, 2))]
    return targets(sample, np.concatenate([new, sample.inputs[:, own]], axis=1))


def permuted(process, theta, order):
    """Return the same process with its tasks in another order, and its parameters."""
    old, order = process.covariance, list(order)
    new = replace(old, kernels=tuple(old.kernels[i] for i in order))
    moved = np.empty(new.size)
    lengths = old.part(theta, "length")
    new.part(moved, "length")[:] = lengths if old.shared else lengths[:, :, order]
    new.part(moved, "scaling")[:] = old.part(theta, "scaling")
    new.part(moved, "logit")[:] = old.part(theta, "logit")[:, order]
    rows = [*zip(new.part(moved, "correlation"), old.part(theta, "correlation"), strict=True)]
    if old.noise == "correlated":
        rows.append((new.part(moved, "noise_correlation"), old.part(theta, "noise_correlation")))
    for target, source in rows:
        target[:] = parameters_of(correlation(source, old.tasks)[np.ix_(order, order)])
    _, marginals = process.split(theta)
    other = Process(new, tuple(marginals[i] for i in order))
    return other, other.join(moved)


def varying(tasks):
    """Return a process whose laws vary with covariates, its sample, and theta off the start."""
    rng = np.random.default_rng(5)
    sizes = (22, 19, 16)[:tasks]
    recipes = [
        regress("gamma", on=["x", "y"]),
        by("k", regress("normal", on="x")),
        regress(by("k", "t"), on="x", degree=2),
    ][:tasks]
    inputs = [rng.uniform(size=(n, 2)) for n in sizes]
    tables, values = [], []
    for n, recipe in zip(sizes, recipes, strict=True):
        columns = {"x": rng.normal(size=n), "y": rng.normal(size=n), "k": np.arange(n) % 2.0}
        tables.append(np.column_stack([columns[name] for name in recipe.fields]))
        values.append(rng.gamma(3.0, np.exp(0.3 * columns["x"])))
    laws = tuple(r.fit(v, c) for r, v, c in zip(recipes, values, tables, strict=True))
    kernels = tuple(KERNELS[k] for k in ("matern32", "matern52", "se")[:tasks])
    process = Process(Covariance(kernels, (InputGroup(2),)), laws)
    theta = process.join(random_theta(process.covariance, rng))
    theta[process.covariance.size :] += 0.05 * rng.normal(size=theta.size - process.covariance.size)
    return process, Sample.of(inputs, values, tables), theta


def joint(process, theta, sample, cells, task, *, nugget=True):
    """Return covariances of the data (n, n), of cells with them (m, n), and of cells (m, m).

    Cells that are no site have nuggets of their own, and no two of them share one.
    """
    inputs, _ = parts(sample)
    blocks = [np.vstack([x, cells.inputs.T]) if i == task else x for i, x in enumerate(inputs)]
    where = np.arange(cells.size) + sample.offsets[task + 1]
    keep = np.setdiff1d(np.arange(sample.size + cells.size), where)
    numbers = np.empty(sample.size + cells.size, np.int64)
    numbers[keep] = sample.sites
    fresh = sample.sites.max(initial=0) + 1 + np.arange(cells.size)
    numbers[where] = np.where(cells.sites >= 0, cells.sites, fresh)
    matrix = covariance_matrix(process.covariance, theta, blocks, numbers)
    tasks = np.repeat(np.arange(sample.tasks), [len(b) for b in blocks])
    if not nugget:
        own = task_matrices(process.covariance, theta)[-1]
        same = numbers[where][:, None] == numbers
        matrix[where] -= same * own[task, tasks]
        matrix[:, where] = matrix[where].T
    return matrix[np.ix_(keep, keep)], matrix[np.ix_(where, keep)], matrix[np.ix_(where, where)]


def moments(process, theta, sample, cells, task=0, *, nugget=True):
    """Condition with dense matrices: mean and variance (m,) of a task at cells."""
    inner, cross, own = joint(process, theta, sample, cells, task, nugget=nugget)
    solved = np.linalg.solve(inner, cross.T)
    w = process.scores(theta, sample)
    return w @ solved, np.diagonal(own) - np.einsum("ij,ji->i", cross, solved)


def low_rank(kind, process, theta, sample, inducing, blocks, cells, task=0):
    """Return S (n, n) of a sparse method, and Q of cells with the data (m, n) and with themselves.

    From the definition, with inducing points (d, m_i) of each task and blocks of observations.
    """
    covariance, tasks = process.covariance, sample.tasks
    own, _ = parts(sample)
    groups = [[own[i], inducing[i].T, cells.inputs.T if i == task else cells.inputs.T[:0]]
              for i in range(tasks)]  # fmt: skip
    kind_of = np.concatenate([np.full(len(g), k) for group in groups for k, g in enumerate(group)])
    task_of = np.repeat(np.arange(tasks), [sum(map(len, group)) for group in groups])
    numbers = np.arange(kind_of.size)
    matrix = covariance_matrix(covariance, theta, [np.vstack(g) for g in groups], numbers)
    *_, nugget = task_matrices(covariance, theta)
    matrix -= np.diag(nugget[task_of, task_of])  # the signal
    f, u, c = (np.flatnonzero(kind_of == k) for k in range(3))
    inner = matrix[np.ix_(u, u)] + 1e-8 * np.eye(u.size)

    def project(a, b):
        return matrix[np.ix_(a, u)] @ np.linalg.solve(inner, matrix[np.ix_(u, b)])

    q, signal = project(f, f), matrix[np.ix_(f, f)]
    same = sample.sites[:, None] == sample.sites
    noise = nugget[task_of[f][:, None], task_of[f]] * same
    keep = {"dtc": np.zeros(q.shape), "fitc": np.eye(f.size), "pitc": np.zeros(q.shape)}[kind]
    if kind == "pitc":
        for (index,) in blocks:
            keep[np.ix_(index, index)] = 1.0
    return q + noise + keep * (signal - q), project(c, f), np.diagonal(project(c, c))


class Dry(Marginal):
    """A law of rain: zero with a probability of its own, else exponential."""

    name = "dry"
    includes_lower_end = True
    atom = 0.0
    support = (0.0, np.inf)

    def __init__(self, dry=0.4, scale=2.0):
        self.dry, self.scale = dry, scale

    @property
    def theta(self):
        """Logit and logarithm."""
        return np.array([special.logit(self.dry), math.log(self.scale)])

    def with_theta(self, theta):
        """Return it at other parameters."""
        return Dry(special.expit(theta[0]), math.exp(theta[1]))

    def to_normal(self, y):
        """Map values to scores."""
        y = np.asarray(y, float)
        above = special.ndtri_exp(np.log1p(-self.dry) - np.maximum(y, 0.0) / self.scale)
        return np.where(y < 0.0, -np.inf, np.where(np.isinf(y), np.inf, -above))

    def from_normal(self, z):
        """Map scores to values."""
        y = self.scale * (np.log1p(-self.dry) - special.log_ndtr(-np.asarray(z, float)))
        return np.where(np.isnan(y), y, np.maximum(y, 0.0))

    def log_density(self, y):
        """Return the log density, and the log probability of zero."""
        y = np.asarray(y, float)
        rest = np.log1p(-self.dry) - math.log(self.scale) - y / self.scale
        return np.where(y == 0.0, math.log(self.dry), np.where(y < 0.0, -np.inf, rest))


def censor(sample, share=0.3, step=None):
    """Return a sample whose smallest values are below a limit, or that was rounded to a step."""
    values, limits = [], []
    for own in parts(sample)[1]:
        low, high = own.copy(), own.copy()
        if step is None:
            limit = np.quantile(own, share)
            low[own < limit], high[own < limit] = -np.inf, limit
        else:
            low = np.floor(own / step) * step
            high = low + step
        limits.append(np.stack([low, high]))
        values.append(np.where(np.isinf(low), high, 0.5 * (low + high)))
    return Sample.of(parts(sample)[0], values, sites=sample.sites, limits=limits)
