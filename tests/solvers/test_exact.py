"""The exact solver: likelihood, gradient, conditional moments, invariances and recovery."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from reference import PLANE_AXES, SPACE_AXES, TANGENT_AXES
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.newton import minimise
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import (
    GEV,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Parzen,
    StudentT,
    by,
    regress,
)
from xcopula.methods import Sparse
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours, batches
from xcopula.solvers import exact as module

objective = functools.partial(reference.objective, Exact())
condition = functools.partial(reference.condition, Exact())

PLANE = (InputGroup(2),)
TURNED = InputGroup(2, directions=PLANE_AXES)
LAWS = {
    "normal": Normal(1.0, 2.0),
    "lognormal": LogNormal(0.3, 0.6),
    "exponential": Exponential(2.0),
    "gamma": Gamma(2.5, 0.8),
    "gev": GEV(2.0, 1.5, 0.15),
    "gev-bounded": GEV(2.0, 1.5, -0.2),
    "t": StudentT(0.5, 1.2, 5.0),
    "parzen": Parzen.fit(np.random.default_rng(3).gamma(2.0, 1.0, size=60)),
}


def make(kernels, laws="normal", groups=PLANE, **options):
    """Build a process from names; one law serves all tasks if only one is given."""
    kernels, laws = reference.kernels_of(kernels), laws.split()
    covariance = Covariance(kernels, groups, **options)
    laws = laws * len(kernels) if len(laws) == 1 else laws
    return Process(covariance, tuple(LAWS[law] for law in laws))


def setting(process, sizes=(12, 10, 9, 8), together=5, seed=0):
    """Draw parameters and a sample, partly co-located."""
    rng = np.random.default_rng(seed)
    theta = process.join(reference.random_theta(process.covariance, rng))
    sizes = sizes[: process.covariance.tasks]
    inputs = reference.random_inputs(process.covariance, rng, sizes, together)
    return reference.simulate(process, theta, inputs, seed), theta


@pytest.mark.parametrize(
    "laws", ["normal normal", "lognormal gamma", "gev normal", "gev-bounded lognormal", "t gamma"]
)
def test_likelihood_matches_scipy(laws):
    """The value equals the multivariate normal density with its Jacobian, to 1e-8."""
    process = make("matern32 se", laws)
    sample, theta = setting(process, (8, 7), 3)
    inputs, values = reference.parts(sample)
    matrix = reference.covariance_matrix(process.covariance, theta, inputs)
    expected = reference.log_likelihood(matrix, process.marginals, values)
    value, _ = objective(process, sample, theta)
    assert -value == pytest.approx(expected, rel=0, abs=1e-8)


def test_independent_values_have_the_marginal_likelihood():
    """With all variance in the nugget and no correlation only the marginal densities remain."""
    process = make("matern32 matern32", "gamma lognormal")
    sample, theta = setting(process)
    theta = theta.copy()
    process.covariance.part(theta, "logit")[:] = -40.0
    process.covariance.part(theta, "noise_correlation")[:] = 0.0
    _, values = reference.parts(sample)
    expected = sum(
        reference.law(m).logpdf(y).sum() for m, y in zip(process.marginals, values, strict=True)
    )
    value, _ = objective(process, sample, theta)
    assert -value == pytest.approx(expected, abs=1e-9)


GRADIENT_SETUPS = {
    **{f"{k}, alone": make(k) for k in KERNELS},
    **{f"{k}, twice": make(f"{k} {k}") for k in KERNELS},
    "se and matern12": make("se matern12"),
    "matern12 and se": make("matern12 se"),
    "matern12 and matern32": make("matern12 matern32"),
    "four families": make("se matern12 matern32 matern52"),
    "three tasks": make("matern32 matern52 se", "lognormal gamma normal"),
    "independent noise": make("matern32 matern52", noise="independent"),
    "line": make("matern32 matern12", groups=(InputGroup(1),)),
    "space": make("matern32 se", groups=(InputGroup(3),)),
    "two structures": make("matern32 matern12", structures=2),
    "three structures": make("matern32 se", structures=3, noise="independent"),
    "two groups": make("matern32 se", groups=(InputGroup(2), InputGroup(1))),
    "three groups": make("matern32 se", groups=(InputGroup(1), InputGroup(1), InputGroup(1))),
    "ard": make("matern32 matern52", groups=(InputGroup(2, ard=True),)),
    "ard in one of two groups": make(
        "se matern12", groups=(InputGroup(2), InputGroup(2, ard=True))
    ),
    "directions": make("matern32 matern52", groups=(TURNED,)),
    "directions in space": make("matern32 se", groups=(InputGroup(3, directions=SPACE_AXES),)),
    "directions on the globe": make(
        "matern32 matern12", groups=(InputGroup(3, directions=TANGENT_AXES),)
    ),
    "directions, two structures": make("matern32 se", groups=(TURNED,), structures=2),
    "directions, icm": make("matern32 matern32", groups=(TURNED,), coupling="icm"),
    "directions, lmc": make("se se", groups=(TURNED, InputGroup(1)), coupling="lmc", structures=2),
    "directions and ard": make("se matern12", groups=(TURNED, InputGroup(2, ard=True))),
    "icm": make("matern32 matern32 matern32", coupling="icm"),
    "lmc": make("matern52 matern52", coupling="lmc", structures=2),
    "lmc, ard, two groups": make(
        "se se", groups=(InputGroup(2, ard=True), InputGroup(1)), coupling="lmc", structures=2
    ),
    **{
        f"{a} then {b}": make(f"{a}+{b} {b}+{a}", structures=2)
        for a, b in itertools.combinations(KERNELS, 2)
    },
    **{
        f"{a} then {b}, lmc": make(f"{a}+{b} {a}+{b}", coupling="lmc", structures=2)
        for a, b in itertools.permutations(KERNELS, 2)
    },
    "a kernel each, alone": make("matern52+matern12", structures=2),
    "a kernel each, one for the other": make("matern52+matern12+se matern32", structures=3),
    "a kernel each, directions and time": make(
        "matern12+matern32 se+matern12", groups=(TURNED, InputGroup(1)), structures=2
    ),
    **{f"{law} law": make("matern32 matern52", f"{law} normal") for law in LAWS},
    "everything": make(
        "matern32 se matern52",
        "gev gamma t",
        groups=(InputGroup(2, ard=True), InputGroup(1)),
        structures=2,
    ),
}


@pytest.mark.parametrize("process", GRADIENT_SETUPS.values(), ids=GRADIENT_SETUPS.keys())
def test_gradient_matches_differences(process):
    """The gradient equals central differences, to 1e-6 of its largest entry."""
    sample, theta = setting(process)
    _, gradient = objective(process, sample, theta)
    expected = reference.differences(lambda x: objective(process, sample, x)[0], theta, step=5e-4)
    np.testing.assert_allclose(
        gradient, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max())
    )


INFORMATION_SETUPS = {
    name: GRADIENT_SETUPS[name]
    for name in ("directions and ard", "lmc, ard, two groups", "a kernel each, directions and time")
} | {"marginals": make("matern32 se matern52", "gev gamma t", noise="correlated")}


def covariance_slopes(process, sample, theta):
    """Return the derivatives (n, n, p) of the covariance of a sample by differences."""

    def matrix(point):
        factor = np.tril(condition(process, sample, process.join(point)).factor)
        return factor @ factor.T

    return reference.differences(matrix, theta[: process.covariance.size], step=1e-4)


@pytest.mark.parametrize("process", INFORMATION_SETUPS.values(), ids=INFORMATION_SETUPS.keys())
def test_information(process):
    """Average information of the covariance; the blocks of the marginals are exact."""
    sample, theta = setting(process)
    informed = Exact().information(process, sample, None, theta)
    value, gradient = objective(process, sample, theta)
    assert informed.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(informed.gradient, gradient, rtol=1e-9, atol=1e-9)
    size = process.covariance.size
    slopes = covariance_slopes(process, sample, theta)
    conditioned = condition(process, sample, theta)
    inverse, scores = conditioned.solve(np.eye(sample.size)), conditioned.scores
    q = np.einsum("ijk,j->ik", slopes, inverse @ scores)
    close = functools.partial(np.testing.assert_allclose, rtol=0)
    expected = 0.5 * q.T @ inverse @ q
    close(informed.information[:size, :size], expected, atol=1e-5 * np.abs(expected).max())
    hessian = reference.differences(lambda x: objective(process, sample, x)[1], theta, step=1e-4)
    scale = np.abs(hessian[size:]).max()
    close(informed.information[size:], hessian[size:], atol=1e-3 * scale)
    close(informed.information, informed.information.T, atol=1e-9 * scale)


def test_information_is_expected_on_average():
    """Over samples of the process its mean is the Fisher information."""
    process = make("matern32 se", noise="correlated")
    sample, theta = setting(process, (12, 10))
    size, inputs = process.covariance.size, reference.parts(sample)[0]
    slopes = np.moveaxis(covariance_slopes(process, sample, theta), -1, 0)
    relative = np.array([condition(process, sample, theta).solve(slope) for slope in slopes])
    fisher = 0.5 * np.einsum("aij,bji->ab", relative, relative)
    draws = [reference.simulate(process, theta, inputs, seed) for seed in range(400)]
    mixed = []
    for solver in (Exact(), Neighbours(neighbours=sample.size - 1)):
        found = [
            solver.information(process, s, solver.prepare(process, theta, s), theta).information
            for s in draws
        ]
        parts = np.array(found)[:, :size, :size]
        error = parts.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(parts.mean(axis=0) - fisher) < 4.5 * error + 1e-6).all()
        assert all(np.linalg.eigvalsh(part)[0] > -1e-9 for part in parts)
        mixed.append(np.array(found)[:, :size, size:])
    # The scale of a marginal and the variances of terms move together.
    apart = mixed[1] - mixed[0]
    error = apart.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(apart.mean(axis=0)) < 4.5 * error + 1e-6).all()
    assert np.abs(mixed[0].mean(axis=0)).max() > 1.0


def test_gradient_where_sites_coincide_in_one_group_only():
    """Stations that report at several times: the gradient holds, to 1e-6 of its largest entry."""
    process = make("matern32 se", groups=(InputGroup(2), InputGroup(1)))
    rng = np.random.default_rng(13)
    stations, times = rng.uniform(size=(4, 2)), np.linspace(0.0, 1.0, 3)
    grid = np.column_stack([np.repeat(stations, 3, axis=0), np.tile(times, 4)])
    theta = process.join(reference.random_theta(process.covariance, rng))
    sample = reference.simulate(process, theta, [grid, grid[::2]])
    _, gradient = objective(process, sample, theta)
    expected = reference.differences(lambda x: objective(process, sample, x)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_infinite_outside_the_support():
    """A value without a density gives an infinite objective and a zero gradient, no exception."""
    process = make("matern32", "gev-bounded")
    sample, theta = setting(process)
    _, upper = process.marginals[0].support
    beyond = replace(
        sample, values=np.where(sample.values == sample.values.max(), upper + 1, sample.values)
    )
    value, gradient = objective(process, beyond, theta)
    assert value == np.inf
    assert gradient.shape == theta.shape
    assert (gradient == 0.0).all()


def test_bad_matrix_names_the_parameters(monkeypatch):
    """A covariance that cannot be factorised is reported with its length scale and nugget."""
    process = make("matern32")
    sample, theta = setting(process)
    monkeypatch.setattr(module, "lower", lambda *_: -np.eye(sample.size))
    message = r"12 observations is not positive .*length_scale=\[\d.*nugget=\[\d"
    with pytest.raises(NotPositiveDefiniteError, match=message):
        objective(process, sample, theta)
    with pytest.raises(NotPositiveDefiniteError, match=message):
        condition(process, sample, theta)


@pytest.mark.parametrize("name", ["length", "scaling", "logit", "correlation", "noise_correlation"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_parameters_that_are_no_numbers_are_refused(name, bad):
    """Unknown distances would be taken for far ones: the error names the parameters instead."""
    process = make("matern32 matern12", groups=(InputGroup(2, ard=True),))
    sample, theta = setting(process)
    theta = theta.copy()
    process.covariance.part(theta, name).flat[0] = bad
    with pytest.raises(NotPositiveDefiniteError, match=r"not finite: length_scale=.*nugget="):
        objective(process, sample, theta)
    with pytest.raises(NotPositiveDefiniteError, match=r"not finite: length_scale="):
        condition(process, sample, theta)
    with pytest.raises(NotPositiveDefiniteError, match=r"not finite: length_scale="):
        reference.objective(Sparse("fitc", 6), process, sample, theta)


@pytest.mark.parametrize("task", [0, 1])
@pytest.mark.parametrize("nugget", [True, False])
def test_moments_match_dense_algebra(nugget, task):
    """Mean and variance at new and at known sites equal the dense formula, to 1e-8."""
    process = make("matern32 matern12", "lognormal normal")
    sample, theta = setting(process, (6, 5), 2)
    fresh = np.random.default_rng(5).uniform(size=(4, 2))
    # a site where only the other task was observed
    other = sample.inputs[:, sample.task(1 - task)].T[-1:]
    cells = reference.targets(sample, np.vstack([fresh, other]).T)
    mean, variance = reference.moments(process, theta, sample, cells, task, nugget=nugget)
    got = condition(process, sample, theta).moments(cells, nugget=nugget, task=task)
    np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-8)


def test_known_sites_return_their_scores():
    """With the nugget the process returns the datum where it was observed; the signal does not."""
    process = make("matern32 se", "gamma normal")
    sample, theta = setting(process)
    conditioned = condition(process, sample, theta)
    for task in (0, 1):
        where = sample.task(task)
        known = conditioned.moments(sample.targets(where), task=task)
        np.testing.assert_allclose(known.mean, process.scores(theta, sample)[where], atol=1e-10)
        np.testing.assert_allclose(known.variance, 0.0, atol=1e-10)
        assert (known.variance >= 0.0).all()
        signal = conditioned.moments(sample.targets(where), nugget=False, task=task)
        assert np.abs(signal.mean - known.mean).max() > 0.05
        assert (signal.variance > 0.01).all()


def test_far_from_data_the_prior_returns():
    """Beyond every length scale the mean is zero and the variance one, or the signal's share."""
    process = make("matern32 se")
    sample, theta = setting(process)
    conditioned = condition(process, sample, theta)
    far = Targets.nowhere(np.full((2, 1), 1e3))
    share = process.covariance.matrices(theta[: process.covariance.size])[0, 0, 0]
    np.testing.assert_allclose(conditioned.moments(far), [[0.0], [1.0]], atol=1e-12)
    np.testing.assert_allclose(conditioned.moments(far, nugget=False), [[0.0], [share]], atol=1e-12)


def test_leave_one_out_matches_deletion():
    """The closed form equals conditioning again without each observation, to 1e-9."""
    process = make("matern32 matern12", "lognormal gamma")
    sample, theta = setting(process)
    got = condition(process, sample, theta).leave_one_out()
    inputs, values = reference.parts(sample)
    expected = []
    for i, (x, y) in enumerate(zip(inputs, values, strict=True)):
        for k in range(len(y)):
            rest = Sample.of(
                [*inputs[:i], np.delete(x, k, axis=0), *inputs[i + 1 :]],
                [*values[:i], np.delete(y, k), *values[i + 1 :]],
            )
            moments = condition(process, rest, theta).moments(
                reference.targets(rest, x[k][:, None]), task=i
            )
            expected.append(np.ravel(moments))
    np.testing.assert_allclose(np.transpose(got), expected, rtol=0, atol=1e-9)


def test_leave_one_out_can_be_asked_twice():
    """Leave-one-out does not use up the factor that predictions need."""
    process = make("matern32")
    sample, theta = setting(process)
    conditioned = condition(process, sample, theta)
    somewhere = Targets.nowhere(np.full((2, 3), 0.4))
    first, before = conditioned.leave_one_out(), conditioned.moments(somewhere)
    np.testing.assert_array_equal(first, conditioned.leave_one_out())
    np.testing.assert_array_equal(before, conditioned.moments(somewhere))


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_batches_do_not_show(monkeypatch, rows):
    """Predictions in batches of a few rows equal those in one batch, to 1e-13."""
    process = make("matern32 se")
    sample, theta = setting(process)
    conditioned = condition(process, sample, theta)
    targets = Targets.nowhere(np.random.default_rng(6).uniform(size=(2, 17)))
    expected = conditioned.moments(targets)
    monkeypatch.setattr(batches, "_BATCH_BYTES", 8 * sample.size * rows)
    np.testing.assert_allclose(conditioned.moments(targets), expected, rtol=0, atol=1e-13)


def test_no_targets():
    """An empty set of targets gives empty moments."""
    process = make("matern32")
    sample, theta = setting(process)
    moments = condition(process, sample, theta).moments(Targets.nowhere(np.empty((2, 0))))
    assert moments.mean.shape == moments.variance.shape == (0,)


def test_order_of_sites_is_immaterial():
    """Permuting the sites of each task leaves likelihood, gradient and prediction, to 1e-9."""
    process = make("matern32 se", "gamma normal")
    sample, theta = setting(process)
    rng = np.random.default_rng(7)
    inputs, values = reference.parts(sample)
    orders = [rng.permutation(len(y)) for y in values]
    shuffled = Sample.of(
        [x[o] for x, o in zip(inputs, orders, strict=True)],
        [y[o] for y, o in zip(values, orders, strict=True)],
    )
    for got, expected in zip(
        objective(process, shuffled, theta),
        objective(process, sample, theta),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    targets = Targets.nowhere(rng.uniform(size=(2, 5)))
    np.testing.assert_allclose(
        condition(process, shuffled, theta).moments(targets),
        condition(process, sample, theta).moments(targets),
        rtol=0,
        atol=1e-9,
    )


def test_order_of_secondaries_is_immaterial():
    """Permuting the secondary tasks with their parameters changes nothing, to 1e-9."""
    process = make("matern32 se matern12", "normal gamma lognormal", structures=2)
    sample, theta = setting(process)
    shuffled, moved = reference.permuted(process, theta, [0, 2, 1])
    shuffled_sample = sample.select([0, 2, 1])
    value, _ = objective(process, sample, theta)
    assert objective(shuffled, shuffled_sample, moved)[0] == pytest.approx(value, abs=1e-9)
    targets = Targets.nowhere(np.random.default_rng(8).uniform(size=(2, 5)))
    np.testing.assert_allclose(
        condition(shuffled, shuffled_sample, moved).moments(targets),
        condition(process, sample, theta).moments(targets),
        rtol=0,
        atol=1e-9,
    )


def test_shifted_inputs_are_the_same_problem():
    """The process is stationary: moving all sites and targets changes nothing, to 1e-9."""
    process = make("matern32 se")
    sample, theta = setting(process)
    moved = replace(sample, inputs=sample.inputs + 3.0)
    value, _ = objective(process, sample, theta)
    assert objective(process, moved, theta)[0] == pytest.approx(value, abs=1e-9)


def test_uncorrelated_secondary_changes_nothing():
    """A secondary with zero correlations leaves the primary's prediction as it is, to 1e-12."""
    alone, pair = make("matern32"), make("matern32 se")
    sample, theta = setting(pair)
    theta = theta.copy()
    pair.covariance.part(theta, "correlation")[:] = 0.0
    pair.covariance.part(theta, "noise_correlation")[:] = 0.0
    single = np.r_[
        pair.covariance.part(theta, "length")[0, 0, 0],
        pair.covariance.part(theta, "logit")[0, 0],
        pair.marginals[0].theta,
    ]
    targets = Targets.nowhere(np.random.default_rng(9).uniform(size=(2, 5)))
    np.testing.assert_allclose(
        condition(pair, sample, theta).moments(targets),
        condition(alone, sample.select([0]), single).moments(targets),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("se", sk.RBF(0.25)),
        ("matern12", sk.Matern(0.25, nu=0.5)),
        ("matern32", sk.Matern(0.25, nu=1.5)),
        ("matern52", sk.Matern(0.25, nu=2.5)),
    ],
)
def test_matches_scikit_learn(name, kernel):
    """One task with a normal law is scikit-learn's regressor: moments and likelihood, to 1e-8."""
    rng = np.random.default_rng(10)
    location, scale, nugget = 3.0, 2.0, 0.1
    x, y = rng.uniform(size=(30, 2)), rng.normal(location, scale, size=30)
    targets = rng.uniform(size=(10, 2))
    peer = GaussianProcessRegressor(
        sk.ConstantKernel(scale**2 * (1 - nugget)) * kernel + sk.WhiteKernel(scale**2 * nugget),
        optimizer=None,
        alpha=0.0,
    ).fit(x, y - location)
    mean, deviation = peer.predict(targets, return_std=True)

    process = Process(Covariance((KERNELS[name],), PLANE), (Normal(location, scale),))
    theta = process.join(np.array([np.log(0.25), np.log((1 - nugget) / nugget)]))
    sample = Sample.of([x], [y])
    moments = condition(process, sample, theta).moments(Targets.nowhere(targets.T))
    np.testing.assert_allclose(location + scale * moments.mean, location + mean, atol=1e-8)
    np.testing.assert_allclose(scale * np.sqrt(moments.variance), deviation, atol=1e-8)
    value, _ = objective(process, sample, theta)
    assert -value == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-8)


def test_recovers_the_parameters_of_a_simulation():
    """From a rough start, 2 x 150 values give back what they were simulated with.

    Each tolerance is three standard deviations of the estimate over 25 repeated simulations.
    """
    covariance = Covariance((KERNELS["matern32"], KERNELS["matern12"]), PLANE)
    process = Process(covariance, (LogNormal(0.0, 1.0), Normal(0.0, 1.0)))
    truth = np.zeros(covariance.size)
    covariance.part(truth, "length")[:] = np.log([0.08, 0.15])
    covariance.part(truth, "logit")[:] = 2.0
    covariance.part(truth, "correlation")[:] = 1.1
    truth = np.r_[truth, 1.0, np.log(0.5), -2.0, np.log(3.0)]
    rng = np.random.default_rng(11)
    inputs = reference.random_inputs(covariance, rng, [150, 150], together=100)
    sample = reference.simulate(process, truth, inputs, seed=12)

    start = np.zeros(covariance.size)
    covariance.part(start, "length")[:] = np.log(0.3)
    fitted = Process(
        covariance,
        tuple(law.fit(sample.values[sample.task(i)]) for i, law in enumerate((LogNormal, Normal))),
    )
    optimum = minimise(
        lambda x: (*objective(fitted, sample, x), None), fitted.join(start), fitted.bounds()
    )
    assert optimum.converged
    assert optimum.value <= objective(fitted, sample, truth)[0]
    error = optimum.theta - truth
    assert (np.abs(covariance.part(error, "length")) < [0.42, 0.9]).all()
    assert (np.abs(error[-4:]) < [0.33, 0.21, 2.85, 0.24]).all()
    difference = covariance.matrices(optimum.theta[:-4]) - covariance.matrices(truth[:-4])
    assert np.abs(np.diagonal(difference[-1])).max() < 0.18
    assert abs(difference[:, 0, 1].sum()) < 0.19


class TestAnyTask:
    """The first task is the default, and no more than that."""

    @pytest.mark.parametrize("nugget", [True, False])
    def test_is_the_first_of_a_permuted_process(self, nugget):
        """Moments of task i are those of the process whose tasks begin with i, to 1e-10."""
        process = make("matern32 se matern12", "normal gamma lognormal", structures=2)
        sample, theta = setting(process)
        fresh = np.random.default_rng(3).uniform(size=(2, 6))
        cells = reference.targets(sample, np.column_stack([fresh, sample.inputs[:, [2, 15, -1]]]))
        conditioned = condition(process, sample, theta)
        for order in ([1, 0, 2], [2, 1, 0]):
            other, moved = reference.permuted(process, theta, order)
            first = condition(other, sample.select(order), moved).moments(cells, nugget=nugget)
            got = conditioned.moments(cells, task=order[0], nugget=nugget)
            np.testing.assert_allclose(got, first, rtol=0, atol=1e-10)

    def test_without_observations(self):
        """A task of which nothing was observed is predicted from the others."""
        process = make("matern32 matern12", "lognormal normal")
        sample, theta = setting(process, (8, 6), 3)
        alone = sample.take(np.arange(8))
        assert alone.sizes == [8, 0]
        cells = alone.targets(slice(0, 3))
        mean, variance = reference.moments(process, theta, alone, cells, 1)
        got = condition(process, alone, theta).moments(cells, task=1)
        np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-8)
        assert (got.variance < 1.0).all()


class TestMeans:
    """Other scores at the same sites: the mean is a linear function of them."""

    def setting(self):
        """Condition two tasks, and draw cells and scores."""
        process = make("matern32 matern12", "lognormal normal")
        sample, theta = setting(process, (9, 7), 3)
        rng = np.random.default_rng(4)
        fresh = rng.uniform(size=(2, 4))
        cells = reference.targets(sample, np.column_stack([fresh, sample.inputs[:, [1, -1]]]))
        return process, sample, theta, cells, rng.normal(size=(3, sample.size))

    @pytest.mark.parametrize("task", [0, 1])
    @pytest.mark.parametrize("nugget", [True, False])
    def test_against_dense_algebra(self, task, nugget):
        """They are k K^-1 w of matrices that are made entry by entry, to 1e-8."""
        process, sample, theta, cells, scores = self.setting()
        inner, cross, _ = reference.joint(process, theta, sample, cells, task, nugget=nugget)
        expected = np.linalg.solve(inner, scores.T).T @ cross.T
        conditioned = condition(process, sample, theta)
        got = conditioned.means(cells, scores, task=task, nugget=nugget)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("task", [0, 1])
    def test_other_scores_are_conditioned_on(self, task):
        """A process with other scores has these means, the same variances, and its own scores."""
        process, sample, theta, cells, scores = self.setting()
        conditioned = condition(process, sample, theta)
        means = conditioned.means(cells, scores, task=task)
        for row, mean in zip(scores, means, strict=True):
            other = conditioned.with_scores(row)
            np.testing.assert_array_equal(other.scores, row)
            got = other.moments(cells, task=task)
            np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-12)
            np.testing.assert_array_equal(got.variance, conditioned.moments(cells, task=task)[1])
        np.testing.assert_array_equal(conditioned.scores, process.scores(theta, sample))

    @pytest.mark.parametrize("rows", [1, 4])
    def test_batches_do_not_show(self, monkeypatch, rows):
        """Means in batches of a few rows equal those in one batch, to 1e-13."""
        process, sample, theta, cells, scores = self.setting()
        conditioned = condition(process, sample, theta)
        expected = conditioned.means(cells, scores)
        monkeypatch.setattr(batches, "_BATCH_BYTES", 8 * sample.size * rows)
        np.testing.assert_allclose(conditioned.means(cells, scores), expected, rtol=0, atol=1e-13)

    def test_what_is_given_is_left_alone(self):
        """Neither the scores asked about nor those of the data are overwritten."""
        process, sample, theta, cells, scores = self.setting()
        conditioned = condition(process, sample, theta)
        kept, own = scores.copy(), conditioned.scores.copy()
        conditioned.means(cells, scores)
        conditioned.solve(scores)
        conditioned.with_scores(scores[0])
        np.testing.assert_array_equal(scores, kept)
        np.testing.assert_array_equal(conditioned.scores, own)


class TestPieces:
    """What methods build on: solving, whitening, and the prior."""

    def setting(self, task=1):
        """Condition two tasks, with the dense matrices of the data and some cells."""
        process = make("matern32 matern12", "lognormal normal")
        sample, theta = setting(process, (7, 6), 3)
        fresh = np.random.default_rng(4).uniform(size=(2, 3))
        cells = reference.targets(sample, np.column_stack([fresh, sample.inputs[:, [0, -1]]]))
        return process, sample, theta, cells, condition(process, sample, theta)

    def test_solve_is_the_inverse(self):
        """Rows times the inverse of the covariance, to 1e-8."""
        process, sample, theta, cells, conditioned = self.setting()
        inner, _, _ = reference.joint(process, theta, sample, cells, 0)
        rows = np.random.default_rng(0).normal(size=(3, sample.size))
        expected = np.linalg.solve(inner, rows.T).T
        np.testing.assert_allclose(conditioned.solve(rows), expected, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("task", [0, 1])
    @pytest.mark.parametrize("nugget", [True, False])
    def test_whitened_rows_explain(self, task, nugget):
        """Products of whitened rows are k K^-1 k', to 1e-8."""
        process, sample, theta, cells, conditioned = self.setting()
        inner, cross, _ = reference.joint(process, theta, sample, cells, task, nugget=nugget)
        mean, white = conditioned.whiten(cells, task=task, nugget=nugget)
        explained = cross @ np.linalg.solve(inner, cross.T)
        np.testing.assert_allclose(white @ white.T, explained, rtol=0, atol=1e-8)
        expected = cross @ np.linalg.solve(inner, process.scores(theta, sample))
        np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("task", [0, 1])
    def test_prior(self, task):
        """The prior covariance of the signal, and the nugget where sites are the same."""
        process, sample, theta, cells, conditioned = self.setting()
        *_, signal = reference.joint(process, theta, sample, cells, task, nugget=False)
        got = conditioned.prior(cells, cells, task=task, nugget=False)
        np.testing.assert_allclose(got, signal, rtol=0, atol=1e-8)
        nugget = reference.task_matrices(process.covariance, theta)[-1][task, task]
        numbered = np.diag(np.where(cells.sites >= 0, nugget, 0.0))
        got = conditioned.prior(cells, cells, task=task)
        np.testing.assert_allclose(got, signal + numbered, rtol=0, atol=1e-8)
        part = conditioned.prior(cells, cells.take(slice(2, None)), task=task, nugget=False)
        np.testing.assert_allclose(part, signal[:, 2:], rtol=0, atol=1e-8)

    @pytest.mark.parametrize("task", [0, 1])
    def test_prior_variance(self, task):
        """One with the nugget, and the signal's share without."""
        process, _, theta, _, conditioned = self.setting()
        nugget = reference.task_matrices(process.covariance, theta)[-1][task, task]
        assert conditioned.prior_variance(task=task) == pytest.approx(1.0, abs=1e-14)
        signal = conditioned.prior_variance(task=task, nugget=False)
        assert signal == pytest.approx(1.0 - nugget, abs=1e-14)


class TestTurnsOfACycle:
    """Two inputs that coincide at different sites: noon of one day and noon of the next."""

    def setting(self):
        """Draw two tasks; observations 1 and 2 stand at one input, at sites of their own."""
        process = make("matern32 matern12", "normal lognormal")
        rng = np.random.default_rng(2)
        theta = process.join(reference.random_theta(process.covariance, rng))
        inputs = [rng.uniform(size=(6, 2)), rng.uniform(size=(5, 2))]
        inputs[0][2] = inputs[0][1]
        inputs[1][0] = inputs[0][1]
        numbers = np.arange(11)
        numbers[6] = 1  # the second task shares the site of observation 1
        values = [rng.normal(size=6), rng.gamma(2.0, size=5)]
        return process, theta, Sample.of(inputs, values, sites=numbers)

    def test_share_the_signal_and_not_the_nugget(self):
        """Their prior covariance is the signal's variance: one less the nugget."""
        process, theta, sample = self.setting()
        conditioned = condition(process, sample, theta)
        lower = np.tril(conditioned.factor)
        matrix = lower @ lower.T
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        assert conditioned.jitter == 0.0
        assert matrix[2, 1] == pytest.approx(1.0 - nugget[0, 0], abs=1e-10)
        assert matrix[6, 1] - matrix[6, 2] == pytest.approx(nugget[0, 1], abs=1e-10)
        inputs, _ = reference.parts(sample)
        dense = reference.covariance_matrix(process.covariance, theta, inputs, sample.sites)
        np.testing.assert_allclose(matrix, dense, rtol=0, atol=1e-8)

    def test_likelihood_and_gradient(self):
        """The value is that of the dense matrix, and the gradient its differences."""
        process, theta, sample = self.setting()
        inputs, values = reference.parts(sample)
        dense = reference.covariance_matrix(process.covariance, theta, inputs, sample.sites)
        expected = reference.log_likelihood(dense, process.marginals, values)
        value, gradient = objective(process, sample, theta)
        assert -value == pytest.approx(expected, abs=1e-8)
        numeric = reference.differences(lambda x: objective(process, sample, x)[0], theta)
        np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-6 * np.abs(numeric).max())

    def test_moments(self):
        """At one turn the datum is known, at another only what its signal tells."""
        process, theta, sample = self.setting()
        conditioned = condition(process, sample, theta)
        place = np.repeat(sample.inputs[:, 1:2], 4, axis=1)
        turns = Targets(place, np.array([1, 2, 77, -1]))
        got = conditioned.moments(turns)
        np.testing.assert_allclose(got.mean[:2], sample.values[[1, 2]] / 2.0 - 0.5, atol=1e-10)
        np.testing.assert_allclose(got.variance[:2], 0.0, atol=1e-10)
        mean, variance = reference.moments(process, theta, sample, turns)
        np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-8)
        nugget = reference.task_matrices(process.covariance, theta)[-1][0, 0]
        assert (got.variance[2:] > nugget).all()
        signal = conditioned.moments(turns, nugget=False)
        np.testing.assert_allclose(signal.mean, signal.mean[0], atol=1e-12)
        np.testing.assert_allclose(signal.variance, signal.variance[0], atol=1e-12)


def test_one_factorisation_serves_an_evaluation(monkeypatch):
    """Value and all derivatives come from one Cholesky factor and one inverse."""
    process = make("matern32 se")
    sample, theta = setting(process)
    counts = []
    for name in ("cholesky", "inverse_from_cholesky"):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, n=name, f=original: counts.append(n) or f(*a))
    objective(process, sample, theta)
    assert counts == ["cholesky", "inverse_from_cholesky"]


def test_cost():
    """Two matrices of all observations, and their number cubed."""
    assert Exact().cost([600, 400])[:2] == (16e6, 1e9)
    assert Exact().prepare(None, None, None).stand_ins is None


class TestGeneralisedLeastSquares:
    """A normal regression under a known covariance."""

    N, SCALE, SLOPE = 60, 0.7, 1.5

    @functools.cached_property
    def problem(self):
        """Draw sites, a smooth covariate, and values with correlated errors."""
        rng = np.random.default_rng(8)
        covariance = Covariance((KERNELS["matern32"],), PLANE)
        theta = np.array([math.log(0.4), math.log(9.0)])
        sites = rng.uniform(size=(self.N, 2))
        x = sites[:, 0] + 0.3 * rng.normal(size=self.N)
        matrix = reference.covariance_matrix(covariance, theta, [sites])
        noise = np.linalg.cholesky(matrix) @ rng.normal(size=self.N)
        y = 4.0 + self.SLOPE * x + self.SCALE * noise
        law = regress("normal", on="x").fit(y, x[:, None])
        law = law.with_theta([law.base.location, math.log(self.SCALE), law.coefficients[0]])
        process = Process(covariance, (law,))
        design = np.column_stack([np.ones(self.N), x])
        weights = design.T @ np.linalg.inv(matrix)
        estimate = np.linalg.solve(weights @ design, weights @ y)
        error = self.SCALE * math.sqrt(np.linalg.inv(weights @ design)[1, 1])
        return process, Sample.of([sites], [y], [x[:, None]]), process.join(theta), estimate, error

    def maximum(self):
        """Maximise the likelihood over location and slope alone."""
        process, sample, theta, *_ = self.problem
        free = [process.covariance.size, process.size - 1]

        def value(part):
            point = theta.copy()
            point[free] = part
            nll, gradient = objective(process, sample, point)
            return nll, gradient[free]

        found = minimize(value, theta[free], jac=True, method="BFGS", options={"gtol": 1e-9})
        point = theta.copy()
        point[free] = found.x
        return process.split(point)[1][0]

    def test_equals_the_closed_form(self):
        """The likelihood's maximum is the generalised least squares estimate, to 1e-6."""
        _, sample, _, (level, slope), _ = self.problem
        law, x = self.maximum(), sample.covariates_of(0)[:, 0]
        assert law.parameters["x"] == pytest.approx(slope, abs=1e-6)
        assert law.base.location == pytest.approx(level + slope * x.mean(), abs=1e-6)
        ordinary = np.polyfit(x, sample.values, 1)[0]
        assert abs(ordinary - slope) > 0.05

    def test_recovers_the_slope(self):
        """The slope is found within two and a half of its standard errors."""
        *_, error = self.problem
        assert abs(self.maximum().parameters["x"] - self.SLOPE) < 2.5 * error < 1.0


class TestVaryingLaws:
    def test_value_by_definition(self):
        """The likelihood is that of the definition, each value under the law of its own row."""
        process, sample, theta = reference.varying(2)
        value, _ = objective(process, sample, theta)
        covariance_theta, marginals = process.split(theta)
        inputs, _ = reference.parts(sample)
        matrix = reference.covariance_matrix(process.covariance, covariance_theta, inputs)
        w, log_density = [], 0.0
        for i, law in enumerate(marginals):
            for y, row in zip(sample.values[sample.task(i)], sample.covariates_of(i), strict=True):
                alone = law.at(row[None])
                w.append(float(alone.to_normal([y])[0]))
                log_density += float(alone.log_density([y])[0])
        w = np.array(w)
        expected = 0.5 * w @ np.linalg.solve(matrix, w) - 0.5 * w @ w
        expected += 0.5 * np.linalg.slogdet(matrix)[1] - log_density
        assert value == pytest.approx(expected, rel=1e-9)

    def test_groups_are_independent_under_pure_nugget(self):
        """With nothing but nugget the fit of a grouped law is that of each group alone."""
        rng = np.random.default_rng(3)
        n = 90
        codes = np.arange(n) % 3.0
        values = rng.gamma(2.0 + codes, 1.0 + codes)
        law = by("k", "gamma").fit(values, codes[:, None])
        process = Process(Covariance((KERNELS["se"],), PLANE), (law,))
        sample = Sample.of([rng.uniform(size=(n, 2))], [values], [codes[:, None]])
        # the logit of the signal's share
        theta = process.join(np.array([math.log(0.1), -30.0]))
        where = process.slices[0]
        _, gradient = objective(process, sample, theta)
        np.testing.assert_allclose(gradient[where], 0.0, atol=1e-5)
        alone = [Gamma.fit(values[codes == g]).theta for g in range(3)]
        np.testing.assert_allclose(law.theta, np.concatenate(alone))
