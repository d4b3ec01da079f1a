"""Sparse methods, the committee and co-kriging: limits, gradients, and hand-solved systems."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.methods import METHODS, Settings, cokriging, committee, exact
from xcopula.methods.partition import by_cluster, by_site, centres, site_numbers
from xcopula.process.copula import Process, Sample

SPARSE = ("dtc", "fitc", "pitc")

SETTINGS = {
    "single": ("matern32", (InputGroup(2),), {}),
    "mixed": ("matern32 se matern12", (InputGroup(2),), {}),
    "groups": ("matern32 matern52", (InputGroup(2, ard=True), InputGroup(1)), {"structures": 2}),
    "lmc": ("matern32 matern32", (InputGroup(2),), {"coupling": "lmc", "noise": "independent"}),
}


def make(name, sizes=(24, 20, 18), seed=0, law=None):
    """Build a process, parameters and a partly co-located sample."""
    kernels, groups, options = SETTINGS[name]
    kernels = kernels.split()
    rng = np.random.default_rng(seed)
    covariance = Covariance(tuple(KERNELS[k] for k in kernels), groups, **options)
    process = Process(covariance, (law or LogNormal(0.2, 0.7),) * len(kernels))
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, sizes[: len(kernels)], 12)
    values = [process.marginals[0].from_normal(rng.normal(size=len(x))) for x in inputs]
    return process, Sample.of(inputs, values), theta, rng


def at_sites(sample):
    """Put an inducing point at every observation."""
    tasks = range(len(sample.offsets) - 1)
    return Settings(inducing=tuple(sample.inputs[:, sample.task(i)] for i in tasks))


def some_targets(sample, rng):
    """Give new points and sites of the last task."""
    new = rng.uniform(size=(len(sample.inputs), 6))
    return np.ascontiguousarray(np.concatenate([new, sample.inputs[:, -3:]], axis=1))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", SPARSE)
class TestSparse:
    def test_inducing_points_at_all_data_are_exact(self, kind, name):
        """With an inducing point at every observation nothing is approximated (jitter: 1e-5)."""
        process, sample, theta, rng = make(name)
        method = METHODS[kind]
        settings = method.prepare(sample, at_sites(sample))
        value, _ = method.objective(process, sample, theta, settings)
        assert value == pytest.approx(exact.objective(process, sample, theta)[0], abs=1e-4)
        ours, full = (
            method.condition(process, sample, theta, settings),
            exact.condition(process, sample, theta),
        )
        targets = some_targets(sample, rng)
        for nugget in (True, False):
            a, b = ours.moments(targets, nugget=nugget), full.moments(targets, nugget=nugget)
            np.testing.assert_allclose(a.mean, b.mean, atol=1e-5)
            np.testing.assert_allclose(a.variance, b.variance, atol=1e-5)
        np.testing.assert_allclose(ours.leave_one_out().mean, full.leave_one_out().mean, atol=1e-5)

    def test_gradient(self, kind, name):
        """The gradient is that of the approximate likelihood, to 1e-6 of its largest entry."""
        process, sample, theta, _ = make(name)
        method = METHODS[kind]
        settings = method.prepare(sample, Settings(inducing=12))
        _, gradient = method.objective(process, sample, theta, settings)
        numeric = np.array(
            [
                (
                    method.objective(process, sample, theta + step, settings)[0]
                    - method.objective(process, sample, theta - step, settings)[0]
                )
                / 2e-5
                for step in 1e-5 * np.eye(theta.size)
            ]
        )
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_against_a_dense_matrix(kind):
    """Likelihood and prediction equal those of the dense approximate covariance, to 1e-8."""
    process, sample, theta, _ = make("mixed")
    method = METHODS[kind]
    settings = method.prepare(sample, Settings(inducing=15))
    ours = method.condition(process, sample, theta, settings)
    white = ours.pieces.white
    dense = white.T @ white
    full = reference.covariance_matrix(
        process.covariance,
        process.split(theta)[0],
        [sample.inputs[:, sample.task(i)].T for i in range(3)],
    )
    site = site_numbers(sample)
    same = site[:, None] == site[None]
    task = np.repeat(np.arange(3), np.diff(sample.offsets))
    nugget = ours.pieces.state.nugget[task[:, None], task[None]] * same
    keep = {
        "dtc": np.zeros_like(dense),
        "fitc": np.eye(sample.size),
        "pitc": np.zeros_like(dense),
    }[kind]
    if kind == "pitc":
        for index in settings.blocks:
            keep[np.ix_(index[0], index[0])] = 1.0
    approximate = dense + nugget + keep * (full - nugget - dense)
    w = process.scores(theta, sample)
    expected = 0.5 * w @ (np.linalg.solve(approximate, w) - w)
    expected += 0.5 * np.linalg.slogdet(approximate)[1]
    expected -= process.marginals[0].log_density(sample.values).sum()
    value, _ = method.objective(process, sample, theta, settings)
    assert value == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(ours.alpha, np.linalg.solve(approximate, w), atol=1e-8)
    precision = np.diagonal(np.linalg.inv(approximate))
    np.testing.assert_allclose(ours.leave_one_out().variance, 1.0 / precision, atol=1e-8)


def test_more_inducing_points_than_data_are_reduced():
    """A count beyond the data is cut to one at each observation, with a warning."""
    _, sample, _, _ = make("mixed")
    with pytest.warns(UserWarning, match=f"inducing=500 is more than the {sample.size} obs"):
        settings = METHODS["fitc"].prepare(sample, Settings(inducing=500))
    assert sum(p.shape[1] for p in settings.inducing) == sample.size


class TestPartition:
    def test_sites_are_whole(self):
        """Observations at one place are in one block, whichever partition."""
        _, sample, _, _ = make("mixed")
        site = site_numbers(sample)
        for blocks in (by_site(sample), by_cluster(sample, 4)):
            seen = np.concatenate([b.ravel() for b in blocks])
            assert sorted(seen) == list(range(sample.size))
            owner = np.empty(sample.size, int)
            count = 0
            for batch in blocks:
                for index in batch:
                    owner[index] = count
                    count += 1
            assert all(np.unique(owner[site == s]).size == 1 for s in site)

    def test_centres_are_deterministic_and_inside(self):
        """The same points have the same centres, within their extent."""
        points = np.random.default_rng(0).uniform(size=(2, 80))
        first, second = centres(points, 7), centres(points, 7)
        np.testing.assert_array_equal(first, second)
        assert first.shape == (2, 7)
        assert first.min() > 0
        assert first.max() < 1


class TestCommittee:
    def test_one_block_is_exact(self):
        """A committee of one is the exact model, to 1e-10."""
        process, sample, theta, rng = make("mixed")
        settings = committee.prepare(sample, Settings(blocks=1))
        value, gradient = committee.objective(process, sample, theta, settings)
        full_value, full_gradient = exact.objective(process, sample, theta)
        assert value == pytest.approx(full_value, abs=1e-10)
        np.testing.assert_allclose(gradient, full_gradient, atol=1e-10)
        targets = some_targets(sample, rng)
        ours = committee.condition(process, sample, theta, settings)
        full = exact.condition(process, sample, theta)
        np.testing.assert_allclose(
            ours.moments(targets).mean, full.moments(targets).mean, atol=1e-9
        )
        np.testing.assert_allclose(
            ours.leave_one_out().mean[: sample.task(0).stop],
            full.leave_one_out().mean[: sample.task(0).stop],
            atol=1e-9,
        )

    def test_votes_add_precisions(self):
        """Two blocks vote by the formula: sum of precisions less the prior's."""
        process, sample, theta, rng = make("mixed", sizes=(40, 30, 30))
        settings = committee.prepare(sample, Settings(blocks=2))
        ours = committee.condition(process, sample, theta, settings)
        targets = np.ascontiguousarray(rng.uniform(size=(2, 5)))
        a, b = (m.moments(targets) for m in ours.members)
        precision = 1 / a.variance + 1 / b.variance - 1.0
        got = ours.moments(targets)
        np.testing.assert_allclose(got.variance, 1 / precision, rtol=1e-10)
        np.testing.assert_allclose(
            got.mean, (a.mean / a.variance + b.mean / b.variance) / precision, rtol=1e-9
        )

    def test_blocks_that_are_too_small(self):
        """Blocks of fewer than five sites are refused."""
        _, sample, _, _ = make("mixed")
        with pytest.raises(ValueError, match=r"blocks=20 leaves a block of \d sites"):
            committee.prepare(sample, Settings(blocks=20))


class TestCokriging:
    def test_weights_are_unbiased(self):
        """Weights of the primary add up to one, those of each secondary to zero, to 1e-10."""
        process, sample, theta, rng = make("lmc", law=Normal(1.0, 2.0))
        ours = cokriging.condition(process, sample, theta)
        targets = some_targets(sample, rng)
        weights = ours.weights(targets)
        np.testing.assert_allclose(weights[:, sample.task(0)].sum(axis=1), 1.0, atol=1e-10)
        np.testing.assert_allclose(weights[:, sample.task(1)].sum(axis=1), 0.0, atol=1e-10)
        w = process.scores(theta, sample)
        np.testing.assert_allclose(weights @ w, ours.moments(targets).mean, atol=1e-10)

    def test_against_the_kriging_system(self):
        """Mean and variance solve the bordered system of ordinary co-kriging, to 1e-9."""
        process, sample, theta, rng = make("lmc", law=Normal(1.0, 2.0))
        ours = cokriging.condition(process, sample, theta)
        new = rng.uniform(size=(3, 2))
        parts = [sample.inputs[:, sample.task(i)].T for i in range(2)]
        joint = reference.covariance_matrix(
            process.covariance, process.split(theta)[0], [np.vstack([new, parts[0]]), parts[1]]
        )
        k, inner = joint[:3, 3:], joint[3:, 3:]
        n = sample.size
        f = np.zeros((n, 2))
        f[sample.task(0), 0] = f[sample.task(1), 1] = 1.0
        bordered = np.block([[inner, f], [f.T, np.zeros((2, 2))]])
        right = np.vstack([k.T, np.array([[1.0] * 3, [0.0] * 3])])
        solution = np.linalg.solve(bordered, right)
        w = process.scores(theta, sample)
        got = ours.moments(np.ascontiguousarray(new.T))
        np.testing.assert_allclose(got.mean, solution[:n].T @ w, atol=1e-9)
        variance = 1.0 - (solution * right).sum(axis=0)
        np.testing.assert_allclose(got.variance, variance, atol=1e-9)

    def test_leave_one_out(self):
        """Closed-form leave-one-out equals deleting each observation, means estimated anew."""
        process, sample, theta, _ = make("lmc", sizes=(14, 13), law=Normal(0.0, 1.0))
        loo = cokriging.condition(process, sample, theta).leave_one_out()
        for i in range(sample.task(0).stop):
            keep = np.arange(sample.size) != i
            part = Sample(
                np.ascontiguousarray(sample.inputs[:, keep]),
                np.array([0, 13, 26]),
                sample.values[keep],
            )
            moments = cokriging.condition(process, part, theta).moments(sample.inputs[:, [i]])
            assert moments.mean[0] == pytest.approx(loo.mean[i], abs=1e-9)
            assert moments.variance[0] == pytest.approx(loo.variance[i], abs=1e-9)

    def test_constant_shift_is_followed(self):
        """Adding a constant to the primary's scores shifts the prediction by it."""
        process, sample, theta, rng = make("lmc", law=Normal(0.0, 1.0))
        targets = np.ascontiguousarray(rng.uniform(size=(2, 4)))
        before = cokriging.condition(process, sample, theta).moments(targets).mean
        values = sample.values.copy()
        values[sample.task(0)] += 3.0
        moved = Sample(sample.inputs, sample.offsets, values)
        after = cokriging.condition(process, moved, theta).moments(targets).mean
        np.testing.assert_allclose(after - before, 3.0, atol=1e-9)


@pytest.mark.parametrize("method", ["full", "dtc", "fitc", "pitc", "bcm", "cokriging"])
def test_information_belongs_to_transduction(method):
    """Methods that join all data say that they cannot tell secondaries apart."""
    process, sample, theta, rng = make("lmc", law=Normal(0.0, 1.0))
    chosen = METHODS[method]
    settings = chosen.prepare(sample, Settings(inducing=10, blocks=2))
    ours = chosen.condition(process, sample, theta, settings)
    with pytest.raises(ValueError, match="Fit with method='transductive'"):
        ours.information(rng.uniform(size=(2, 3)))
