"""Exact inference: likelihood, gradient, conditional moments, invariances and recovery."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from xcopula.errors import NotPositiveDefiniteError
from xcopula.methods import METHODS, exact, resolve_method
from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import lower, scaled_inputs
from xcopula.kernels.correlation import correlation, parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import GEV, Exponential, Gamma, LogNormal, Normal, Parzen, StudentT
from xcopula.fitting.optimiser import minimise
from xcopula.process.copula import Process, Sample

PLANE = (InputGroup(2),)
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
    kernels, laws = kernels.split(), laws.split()
    covariance = Covariance(tuple(KERNELS[k] for k in kernels), groups, **options)
    laws = laws * len(kernels) if len(laws) == 1 else laws
    return Process(covariance, tuple(LAWS[law] for law in laws))


def simulate(process, theta, inputs, seed=0):
    """Draw one sample of the process at theta."""
    rng = np.random.default_rng(seed)
    covariance_theta, marginals = process.split(theta)
    empty = Sample.of(inputs, [np.zeros(len(x)) for x in inputs])
    state = process.covariance.state(covariance_theta)
    matrix = lower(state, scaled_inputs(empty.inputs, state), empty.offsets)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    z = np.linalg.cholesky(matrix) @ rng.normal(size=empty.size)
    values = [m.from_normal(z[empty.task(i)]) for i, m in enumerate(marginals)]
    return Sample.of(inputs, values)


def setting(process, sizes=(12, 10, 9, 8), together=5, seed=0):
    """Draw parameters and a sample, partly co-located."""
    rng = np.random.default_rng(seed)
    theta = process.join(reference.random_theta(process.covariance, rng))
    sizes = sizes[: process.covariance.tasks]
    inputs = reference.random_inputs(process.covariance, rng, sizes, together)
    return simulate(process, theta, inputs, seed), theta


def blocks(sample):
    """Return the tasks' inputs (n_i, d) and values."""
    tasks = range(sample.offsets.size - 1)
    return [sample.inputs[:, sample.task(i)].T for i in tasks], [
        sample.values[sample.task(i)] for i in tasks
    ]


@pytest.mark.parametrize(
    "laws", ["normal normal", "lognormal gamma", "gev normal", "gev-bounded lognormal", "t gamma"]
)
def test_likelihood_matches_scipy(laws):
    """The value equals the multivariate normal density with its Jacobian, to 1e-8."""
    process = make("matern32 se", laws)
    sample, theta = setting(process, (8, 7), 3)
    inputs, values = blocks(sample)
    matrix = reference.covariance_matrix(process.covariance, theta, inputs)
    expected = reference.log_likelihood(matrix, process.marginals, values)
    value, _ = exact.objective(process, sample, theta)
    assert -value == pytest.approx(expected, rel=0, abs=1e-8)


def test_independent_values_have_the_marginal_likelihood():
    """With all variance in the nugget and no correlation only the marginal densities remain."""
    process = make("matern32 matern32", "gamma lognormal")
    sample, theta = setting(process)
    theta = theta.copy()
    process.covariance.part(theta, "logit")[:] = -40.0
    process.covariance.part(theta, "noise_correlation")[:] = 0.0
    _, values = blocks(sample)
    expected = sum(
        reference.law(m).logpdf(y).sum() for m, y in zip(process.marginals, values, strict=True)
    )
    value, _ = exact.objective(process, sample, theta)
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
    "icm": make("matern32 matern32 matern32", coupling="icm"),
    "lmc": make("matern52 matern52", coupling="lmc", structures=2),
    "lmc, ard, two groups": make(
        "se se", groups=(InputGroup(2, ard=True), InputGroup(1)), coupling="lmc", structures=2
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
    _, gradient = exact.objective(process, sample, theta)
    expected = reference.differences(
        lambda x: exact.objective(process, sample, x)[0], theta, step=5e-4
    )
    np.testing.assert_allclose(
        gradient, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max())
    )


def test_gradient_where_sites_coincide_in_one_group_only():
    """Stations that report at several times: the gradient holds, to 1e-6 of its largest entry."""
    process = make("matern32 se", groups=(InputGroup(2), InputGroup(1)))
    rng = np.random.default_rng(13)
    stations, times = rng.uniform(size=(4, 2)), np.linspace(0.0, 1.0, 3)
    grid = np.column_stack([np.repeat(stations, 3, axis=0), np.tile(times, 4)])
    theta = process.join(reference.random_theta(process.covariance, rng))
    sample = simulate(process, theta, [grid, grid[::2]])
    _, gradient = exact.objective(process, sample, theta)
    expected = reference.differences(lambda x: exact.objective(process, sample, x)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_infinite_outside_the_support():
    """A value without a density gives an infinite objective and a zero gradient, no exception."""
    process = make("matern32", "gev-bounded")
    sample, theta = setting(process)
    _, upper = process.marginals[0].support
    beyond = replace(
        sample, values=np.where(sample.values == sample.values.max(), upper + 1, sample.values)
    )
    value, gradient = exact.objective(process, beyond, theta)
    assert value == np.inf
    assert gradient.shape == theta.shape
    assert (gradient == 0.0).all()


def test_bad_matrix_names_the_parameters():
    """A covariance that cannot be factorised is reported with its length scale and nugget."""
    process = make("matern32")
    sample, theta = setting(process)
    theta = theta.copy()
    process.covariance.part(theta, "length")[:] = np.nan
    with pytest.raises(NotPositiveDefiniteError, match=r"12 observations .*length_scale=\[nan\]"):
        exact.objective(process, sample, theta)


def dense_moments(process, theta, sample, targets, *, nugget, task=0):
    """Condition with dense matrices: targets (m, d) join the sample as one more block."""
    inputs, _ = blocks(sample)
    n = sample.size
    joint = [np.vstack([x, targets]) if i == task else x for i, x in enumerate(inputs)]
    where = np.arange(len(targets)) + sample.offsets[task + 1]
    keep = np.setdiff1d(np.arange(n + len(targets)), where)
    matrix = reference.covariance_matrix(process.covariance, theta, joint)
    own = reference.task_matrices(process.covariance, theta)[-1]
    cross, prior = matrix[np.ix_(where, keep)], np.ones(len(targets))
    if not nugget:
        tasks = np.repeat(np.arange(len(inputs)), np.diff(sample.offsets))
        points = np.concatenate(inputs)
        same = (targets[:, None] == points[None]).all(axis=2)
        cross = cross - same * own[task, tasks]
        prior = prior - own[task, task]
    w = process.scores(theta, sample)
    solved = np.linalg.solve(matrix[np.ix_(keep, keep)], cross.T)
    return w @ solved, prior - np.einsum("ij,ji->i", cross, solved)


@pytest.mark.parametrize("task", [0, 1])
@pytest.mark.parametrize("nugget", [True, False])
def test_moments_match_dense_algebra(nugget, task):
    """Mean and variance at new and at known sites equal the dense formula, to 1e-8."""
    process = make("matern32 matern12", "lognormal normal")
    sample, theta = setting(process, (6, 5), 2)
    fresh = np.random.default_rng(5).uniform(size=(4, 2))
    # a site where only the other task was observed
    other = sample.inputs[:, sample.task(1 - task)].T[-1:]
    targets = np.vstack([fresh, other])
    mean, variance = dense_moments(process, theta, sample, targets, nugget=nugget, task=task)
    got = exact.condition(process, sample, theta).moments(targets.T, nugget=nugget, task=task)
    np.testing.assert_allclose(got.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-8)


def test_known_sites_return_their_scores():
    """With the nugget the process returns the datum where it was observed; the signal does not."""
    process = make("matern32 se", "gamma normal")
    sample, theta = setting(process)
    conditioned = exact.condition(process, sample, theta)
    for task in (0, 1):
        where = sample.task(task)
        known = conditioned.moments(sample.inputs[:, where], task=task)
        np.testing.assert_allclose(known.mean, process.scores(theta, sample)[where], atol=1e-10)
        np.testing.assert_allclose(known.variance, 0.0, atol=1e-10)
        assert (known.variance >= 0.0).all()
        signal = conditioned.moments(sample.inputs[:, where], nugget=False, task=task)
        assert np.abs(signal.mean - known.mean).max() > 0.05
        assert (signal.variance > 0.01).all()


def test_far_from_data_the_prior_returns():
    """Beyond every length scale the mean is zero and the variance one, or the signal's share."""
    process = make("matern32 se")
    sample, theta = setting(process)
    conditioned = exact.condition(process, sample, theta)
    far = np.full((2, 1), 1e3)
    share = process.covariance.matrices(theta[: process.covariance.size])[0, 0, 0]
    np.testing.assert_allclose(conditioned.moments(far), [[0.0], [1.0]], atol=1e-12)
    np.testing.assert_allclose(conditioned.moments(far, nugget=False), [[0.0], [share]], atol=1e-12)


def test_leave_one_out_matches_deletion():
    """The closed form equals conditioning again without each observation, to 1e-9."""
    process = make("matern32 matern12", "lognormal gamma")
    sample, theta = setting(process)
    got = exact.condition(process, sample, theta).leave_one_out()
    inputs, values = blocks(sample)
    expected = []
    for i, (x, y) in enumerate(zip(inputs, values, strict=True)):
        for k in range(len(y)):
            rest = Sample.of(
                [*inputs[:i], np.delete(x, k, axis=0), *inputs[i + 1 :]],
                [*values[:i], np.delete(y, k), *values[i + 1 :]],
            )
            moments = exact.condition(process, rest, theta).moments(x[k][:, None], task=i)
            expected.append(np.ravel(moments))
    np.testing.assert_allclose(np.transpose(got), expected, rtol=0, atol=1e-9)


def test_leave_one_out_can_be_asked_twice():
    """Leave-one-out does not use up the factor that predictions need."""
    process = make("matern32")
    sample, theta = setting(process)
    conditioned = exact.condition(process, sample, theta)
    first, before = conditioned.leave_one_out(), conditioned.moments(np.full((2, 3), 0.4))
    np.testing.assert_array_equal(first, conditioned.leave_one_out())
    np.testing.assert_array_equal(before, conditioned.moments(np.full((2, 3), 0.4)))


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_batches_do_not_show(monkeypatch, rows):
    """Predictions in batches of a few rows equal those in one batch, to 1e-13."""
    process = make("matern32 se")
    sample, theta = setting(process)
    conditioned = exact.condition(process, sample, theta)
    targets = np.random.default_rng(6).uniform(size=(2, 17))
    expected = conditioned.moments(targets)
    monkeypatch.setattr(exact, "BATCH_BYTES", 8 * sample.size * rows)
    np.testing.assert_allclose(conditioned.moments(targets), expected, rtol=0, atol=1e-13)


def test_no_targets():
    """An empty set of targets gives empty moments."""
    process = make("matern32")
    sample, theta = setting(process)
    moments = exact.condition(process, sample, theta).moments(np.empty((2, 0)))
    assert moments.mean.shape == moments.variance.shape == (0,)


def test_order_of_sites_is_immaterial():
    """Permuting the sites of each task leaves likelihood, gradient and prediction, to 1e-9."""
    process = make("matern32 se", "gamma normal")
    sample, theta = setting(process)
    rng = np.random.default_rng(7)
    inputs, values = blocks(sample)
    orders = [rng.permutation(len(y)) for y in values]
    shuffled = Sample.of(
        [x[o] for x, o in zip(inputs, orders, strict=True)],
        [y[o] for y, o in zip(values, orders, strict=True)],
    )
    for got, expected in zip(
        exact.objective(process, shuffled, theta),
        exact.objective(process, sample, theta),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    targets = rng.uniform(size=(2, 5))
    np.testing.assert_allclose(
        exact.condition(process, shuffled, theta).moments(targets),
        exact.condition(process, sample, theta).moments(targets),
        rtol=0,
        atol=1e-9,
    )


def test_order_of_secondaries_is_immaterial():
    """Permuting the secondary tasks with their parameters changes nothing, to 1e-9."""
    process = make("matern32 se matern12", "normal gamma lognormal", structures=2)
    sample, theta = setting(process)
    order = [0, 2, 1]
    old, shuffled_sample = process.covariance, sample.select(order)
    new = replace(old, kernels=tuple(old.kernels[i] for i in order))
    moved = np.empty(new.size)
    new.part(moved, "length")[:] = old.part(theta, "length")[:, :, order]
    new.part(moved, "logit")[:] = old.part(theta, "logit")[:, order]
    rows = [
        *zip(new.part(moved, "correlation"), old.part(theta, "correlation"), strict=True),
        (new.part(moved, "noise_correlation"), old.part(theta, "noise_correlation")),
    ]
    for target, source in rows:
        target[:] = parameters_of(correlation(source, 3)[np.ix_(order, order)])
    shuffled = Process(new, tuple(process.marginals[i] for i in order))
    moved = shuffled.join(moved)
    value, _ = exact.objective(process, sample, theta)
    assert exact.objective(shuffled, shuffled_sample, moved)[0] == pytest.approx(value, abs=1e-9)
    targets = np.random.default_rng(8).uniform(size=(2, 5))
    np.testing.assert_allclose(
        exact.condition(shuffled, shuffled_sample, moved).moments(targets),
        exact.condition(process, sample, theta).moments(targets),
        rtol=0,
        atol=1e-9,
    )


def test_shifted_inputs_are_the_same_problem():
    """The process is stationary: moving all sites and targets changes nothing, to 1e-9."""
    process = make("matern32 se")
    sample, theta = setting(process)
    moved = replace(sample, inputs=sample.inputs + 3.0)
    value, _ = exact.objective(process, sample, theta)
    assert exact.objective(process, moved, theta)[0] == pytest.approx(value, abs=1e-9)


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
    targets = np.random.default_rng(9).uniform(size=(2, 5))
    np.testing.assert_allclose(
        exact.condition(pair, sample, theta).moments(targets),
        exact.condition(alone, sample.select([0]), single).moments(targets),
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
    moments = exact.condition(process, sample, theta).moments(targets.T)
    np.testing.assert_allclose(location + scale * moments.mean, location + mean, atol=1e-8)
    np.testing.assert_allclose(scale * np.sqrt(moments.variance), deviation, atol=1e-8)
    value, _ = exact.objective(process, sample, theta)
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
    sample = simulate(process, truth, inputs, seed=12)

    start = np.zeros(covariance.size)
    covariance.part(start, "length")[:] = np.log(0.3)
    fitted = Process(
        covariance,
        tuple(law.fit(sample.values[sample.task(i)]) for i, law in enumerate((LogNormal, Normal))),
    )
    optimum = minimise(
        lambda x: exact.objective(fitted, sample, x), fitted.join(start), fitted.bounds()
    )
    assert optimum.converged
    assert optimum.value <= exact.objective(fitted, sample, truth)[0]
    error = optimum.theta - truth
    assert (np.abs(covariance.part(error, "length")) < [0.42, 0.9]).all()
    assert (np.abs(error[-4:]) < [0.33, 0.21, 2.85, 0.24]).all()
    difference = covariance.matrices(optimum.theta[:-4]) - covariance.matrices(truth[:-4])
    assert np.abs(np.diagonal(difference[-1])).max() < 0.18
    assert abs(difference[:, 0, 1].sum()) < 0.19


def test_methods_are_found_by_name():
    """The exact method is registered, and an unknown one is refused with the choices."""
    assert resolve_method("full") is METHODS["full"]
    assert METHODS["full"].objective is exact.objective
    assert METHODS["full"].condition is exact.condition
    with pytest.raises(ValueError, match=r"Unknown method 'magic'\. Choose one of .*'full'"):
        resolve_method("magic")
