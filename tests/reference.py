"""Slow, short, independent implementations that the tests compare the package with.

Nothing here is shared with the package but the layout of theta: kernels come from the general
Matern formula, cross-kernels from their spectra, the likelihood from ``scipy.stats``.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from scipy import special, stats
from scipy.integrate import quad

from xcopula.marginals import GEV, Exponential, Gamma, LogNormal, Normal, StudentT


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


def covariance_matrix(covariance, theta, inputs):
    """Return the covariance (n, n) of all tasks' inputs, a list of (n_i, d), entry by entry."""
    *amplitudes, nugget = task_matrices(covariance, theta)
    lengths = np.exp(covariance.part(theta, "length"))
    scales, scaling = np.ones(covariance.columns), iter(covariance.part(theta, "scaling"))
    groups, start = [], 0
    for group in covariance.groups:
        groups.append(slice(start, start + group.size))
        if group.ard:
            for c in range(start, start + group.size):
                scales[c] = math.exp(next(scaling))
        start += group.size
    sites = [(i, x / scales) for i, block in enumerate(inputs) for x in block]

    def entry(i, x, j, y):
        total = nugget[i, j] if np.array_equal(x, y) else 0.0
        for q, amplitude in enumerate(amplitudes):
            product = 1.0
            for g, group in enumerate(groups):
                r = float(np.linalg.norm(x[group] - y[group]))
                nu1, nu2 = covariance.kernels[i].smoothness, covariance.kernels[j].smoothness
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

    return np.array([[entry(i, x, j, y) for j, y in sites] for i, x in sites])


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


def differences(function, x, step=1e-3):
    """Return the gradient of a scalar function by central differences of fourth order."""
    gradient = np.empty(x.size)
    for k in range(x.size):
        e = step * np.eye(x.size)[k]
        near = function(x + e) - function(x - e)
        far = function(x + 2 * e) - function(x - 2 * e)
        gradient[k] = (8.0 * near - far) / (12.0 * step)
    return gradient


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
