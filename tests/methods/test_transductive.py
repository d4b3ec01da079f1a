"""Transductive inference: exact where the theorem holds, coherent, and honest when calibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.kernels import KERNELS
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Gamma, LogNormal, Normal
from xcopula.methods import Full, Transductive, transductive
from xcopula.methods.anchors import anchor
from xcopula.methods.nugget import unexplained
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact

LAWS = (LogNormal(0.3, 0.6), Normal(1.0, 2.0), Gamma(2.5, 0.8), Normal(-1.0, 0.5))


def apart(combined, sample, sites):
    """Return the nugget where no secondary stands at the site, and what secondaries leave of it.

    Nuggets of the settings are correlated: a secondary at the site tells of the primary's.
    """
    secondary = sample.sites[sample.offsets[1] :]
    alone = ~np.isin(sites, secondary)
    left = unexplained(combined.nugget, sample, sites, 0)
    return np.where(alone, combined.nugget[0, 0], 0.0), left


def condition(process, sample, theta, weights="calibrated", anchors="auto"):
    """Condition by the method with these options; anchors may be plain points (d, m)."""
    if isinstance(anchors, np.ndarray):
        anchors = reference.targets(sample, anchors)
    return reference.condition(Transductive(weights, anchors), process, sample, theta)


def exact(process, sample, theta):
    """Condition the full model."""
    return reference.condition(Exact(), process, sample, theta)


def dense(process, theta, inputs):
    """Return the covariance of all tasks' inputs."""
    _, marginals = process.split(theta)
    values = [m.from_normal(np.zeros(len(x))) for m, x in zip(marginals, inputs, strict=True)]
    conditioned = exact(process, Sample.of(inputs, values), theta)
    assert conditioned.jitter == 0.0
    lower = np.tril(conditioned.factor)
    return lower @ lower.T


def setting(tasks, *, coupling="convolution", noise="correlated", seed=0):
    """Draw a process of some tasks, its parameters, and a partly co-located sample."""
    rng = np.random.default_rng(seed)
    names = ("matern32", "matern52", "matern12", "matern32")[:tasks]
    kernels = [KERNELS["matern32" if coupling == "lmc" else name] for name in names]
    structures = 2 if coupling == "lmc" else 1
    covariance = Covariance(tuple(kernels), (InputGroup(2),), coupling, structures, noise)
    process = Process(covariance, LAWS[:tasks])
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, (12, 10, 9, 8)[:tasks], together=5)
    return process, reference.simulate(process, theta, inputs, seed), theta


class TestExactness:
    """Where secondaries are independent given the primary, nothing is approximated."""

    def markov(self, tasks, dimension, *, spatial, seed=0):
        """Build secondaries a_i x primary + own process: a nugget, and with it a spatial one."""
        rng = np.random.default_rng(seed)
        structures = tasks if spatial else 1
        covariance = Covariance(
            (KERNELS["matern32"],) * tasks,
            (InputGroup(dimension),),
            "lmc",
            structures,
            "independent",
        )
        theta = np.zeros(covariance.size)
        covariance.part(theta, "length")[:] = np.log(rng.uniform(0.2, 0.5, (structures, 1, 1)))
        logit = covariance.part(theta, "logit")
        logit[:] = -35.0
        logit[0, 0] = 35.0  # the primary is the first structure, without a nugget
        logit[0, 1:] = rng.uniform(0.0, 2.0, tasks - 1)
        for i in range(1, structures):
            logit[i, i] = rng.uniform(-1.0, 1.0)
        with_first = [i * (i - 1) // 2 for i in range(1, tasks)]
        covariance.part(theta, "correlation")[0, with_first] = rng.choice([-20.0, 20.0], tasks - 1)
        process = Process(covariance, (LAWS[0],) + (LAWS[1],) * (tasks - 1))
        return process, process.join(theta)

    def sites(self, tasks, dimension, *, seed=0):
        """Draw sites of the primary, places without it, and secondaries at some of both."""
        rng = np.random.default_rng(100 + seed)
        known, unknown = rng.uniform(size=(14, dimension)), rng.uniform(size=(9, dimension))
        secondaries = [
            np.vstack([rng.permutation(known)[:7], rng.permutation(unknown)[:6]])
            for _ in range(tasks - 1)
        ]
        return [known, *secondaries], unknown, rng.uniform(-0.1, 1.1, size=(20, dimension))

    @pytest.mark.parametrize("spatial", [False, True], ids=["nugget", "spatial"])
    @pytest.mark.parametrize("dimension", [1, 2])
    @pytest.mark.parametrize("tasks", [3, 4, 5])
    def test_equals_the_full_model(self, tasks, dimension, spatial):
        """With all sites of secondaries in the query set, mean and variance agree to 1e-9."""
        process, theta = self.markov(tasks, dimension, spatial=spatial, seed=tasks)
        inputs, unknown, elsewhere = self.sites(tasks, dimension, seed=tasks)
        sample = reference.simulate(process, theta, inputs)
        # Cells anywhere, at the anchors themselves, and at sites of the primary.
        targets = reference.targets(sample, np.vstack([elsewhere, unknown, inputs[0]]).T)
        full = exact(process, sample, theta)
        for anchors in ("auto", np.ascontiguousarray(unknown.T), "block"):
            report = condition(process, sample, theta, "report", anchors)
            for nugget in (True, False):
                expected = full.moments(targets, nugget=nugget)
                found = report.moments(targets, nugget=nugget)
                np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-9)
                np.testing.assert_allclose(found.variance, expected.variance, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("spatial", [False, True], ids=["nugget", "spatial"])
    def test_equals_the_full_model_in_covariance(self, spatial):
        """The joint precision of a query set, added up from the pairs, agrees to 1e-9."""
        process, theta = self.markov(4, 2, spatial=spatial)
        inputs, unknown, elsewhere = self.sites(4, 2)
        sample = reference.simulate(process, theta, inputs)
        report = condition(process, sample, theta, "report", None)
        query = reference.targets(sample, np.vstack([unknown, elsewhere]).T)
        single, *pairs = (np.linalg.inv(covariance_at(m, query)) for m in report.models)
        combined = np.linalg.inv(single + sum(pair - single for pair in pairs))
        expected = covariance_at(exact(process, sample, theta), query)
        np.testing.assert_allclose(combined, expected, rtol=0, atol=1e-9)

    def test_without_the_anchors_it_is_an_approximation(self):
        """The anchors do the work: point by point the same model differs by more than 1e-3."""
        process, theta = self.markov(4, 2, spatial=True)
        inputs, _, elsewhere = self.sites(4, 2)
        sample = reference.simulate(process, theta, inputs)
        targets = Targets.nowhere(np.ascontiguousarray(elsewhere.T))
        pointwise = condition(process, sample, theta, "report", None)
        full = exact(process, sample, theta)
        difference = pointwise.moments(targets).mean - full.moments(targets).mean
        assert np.abs(difference).max() > 1e-3

    def test_the_composite_likelihood_is_the_joint_one(self):
        """With secondaries at sites of the primary only, the composite likelihood is exact."""
        process, theta = self.markov(4, 2, spatial=True)
        inputs, _, _ = self.sites(4, 2)
        inside = [inputs[0], *(x[:7] for x in inputs[1:])]
        sample = reference.simulate(process, theta, inside)
        joint, _ = reference.objective(Full(), process, sample, theta)
        composite, _ = reference.objective(Transductive(), process, sample, theta)
        assert composite == pytest.approx(joint, rel=0, abs=1e-8)


def covariance_at(model, targets, *, nugget=True):
    """Return the posterior covariance of the primary at targets, no two of them at one site."""
    _, white = model.whiten(targets, nugget=nugget)
    prior = model.prior(targets, targets, nugget=False)
    np.fill_diagonal(prior, model.prior_variance(nugget=nugget))
    return prior - white @ white.T


class TestObjective:
    @pytest.mark.parametrize("noise", ["correlated", "independent"])
    @pytest.mark.parametrize("coupling", ["convolution", "lmc"])
    @pytest.mark.parametrize("tasks", [1, 2, 3, 4])
    def test_gradient_matches_differences(self, tasks, coupling, noise):
        """The gradient equals central differences, to 1e-6 of its largest entry."""
        process, sample, theta = setting(tasks, coupling=coupling, noise=noise)
        _, gradient = reference.objective(Transductive(), process, sample, theta)
        expected = reference.differences(
            lambda x: reference.objective(Transductive(), process, sample, x)[0], theta, step=5e-4
        )
        np.testing.assert_allclose(
            gradient, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max())
        )

    @pytest.mark.parametrize("tasks", [1, 2])
    def test_one_and_two_tasks_are_exact(self, tasks):
        """A primary alone, or with one secondary, has its full likelihood and gradient."""
        process, sample, theta = setting(tasks)
        value, gradient = reference.objective(Transductive(), process, sample, theta)
        expected, expected_gradient = reference.objective(Full(), process, sample, theta)
        assert value == expected
        np.testing.assert_array_equal(gradient, expected_gradient)

    @pytest.mark.parametrize("tasks", [3, 4])
    def test_is_the_pairs_less_the_singles(self, tasks):
        """The value is sum l(1, i) - (t - 2) l(1), each from scipy's normal density, to 1e-7."""
        process, sample, theta = setting(tasks, coupling="lmc")
        inputs = [sample.inputs[:, sample.task(i)].T for i in range(tasks)]
        values = [sample.values[sample.task(i)] for i in range(tasks)]
        matrix = reference.covariance_matrix(process.covariance, theta, inputs)
        edges = sample.offsets

        def likelihood(*chosen):
            where = np.concatenate([np.arange(edges[i], edges[i + 1]) for i in chosen])
            return reference.log_likelihood(
                matrix[np.ix_(where, where)],
                [process.marginals[i] for i in chosen],
                [values[i] for i in chosen],
            )

        expected = sum(likelihood(0, i) for i in range(1, tasks)) - (tasks - 2) * likelihood(0)
        value, _ = reference.objective(Transductive(), process, sample, theta)
        assert -value == pytest.approx(expected, rel=0, abs=1e-7)

    def test_infinite_outside_the_support(self):
        """A value that its law does not allow gives an infinite value and a zero gradient."""
        process, sample, theta = setting(3)
        bad = replace(sample, values=np.where(np.arange(sample.size) == 3, -1.0, sample.values))
        value, gradient = reference.objective(Transductive(), process, bad, theta)
        assert value == np.inf
        assert gradient.shape == theta.shape
        assert (gradient == 0.0).all()


class TestSubmodels:
    @pytest.mark.parametrize("noise", ["correlated", "independent"])
    @pytest.mark.parametrize("coupling", ["convolution", "lmc"])
    def test_a_pair_is_a_selection_of_parameters(self, coupling, noise):
        """The covariance of a pair is the pair's blocks of the full matrix, to 1e-12."""
        process, sample, theta = setting(4, coupling=coupling, noise=noise)
        inputs = [sample.inputs[:, sample.task(i)].T for i in range(4)]
        matrix = dense(process, theta, inputs)
        for tasks in [(0,), (0, 1), (0, 2), (0, 3)]:
            sub, index = process.with_tasks(tasks)
            assert sub.size == index.size == np.unique(index).size
            assert sub.marginals == tuple(process.marginals[i] for i in tasks)
            where = np.concatenate(
                [np.arange(sample.offsets[i], sample.offsets[i + 1]) for i in tasks]
            )
            part = dense(sub, theta[index], [inputs[i] for i in tasks])
            np.testing.assert_allclose(part, matrix[np.ix_(where, where)], rtol=0, atol=1e-12)

    def test_groups_and_scales_belong_to_every_pair(self):
        """With two groups, scales and structures the pair's blocks are those of the whole."""
        groups = (InputGroup(2, ard=True), InputGroup(1))
        kernels = tuple(KERNELS[k] for k in ("matern32", "se", "matern52"))
        process = Process(Covariance(kernels, groups, structures=2), LAWS[:3])
        rng = np.random.default_rng(4)
        theta = process.join(reference.random_theta(process.covariance, rng))
        inputs = reference.random_inputs(process.covariance, rng, (6, 5, 4), 3)
        matrix = dense(process, theta, inputs)
        sub, index = process.with_tasks((0, 2))
        where = np.concatenate([np.arange(6), np.arange(11, 15)])
        part = dense(sub, theta[index], [inputs[0], inputs[2]])
        np.testing.assert_allclose(part, matrix[np.ix_(where, where)], rtol=0, atol=1e-12)

    def test_all_parameters_of_pairs_together_are_those_that_count(self):
        """Only the correlations between secondaries are outside every pair."""
        process, _, _ = setting(4)
        reached = np.unique(np.concatenate([process.with_tasks((0, i))[1] for i in (1, 2, 3)]))
        missing = np.setdiff1d(np.arange(process.size), reached)
        between = [2, 4, 5]  # of rows (1,0) (2,0) (2,1) (3,0) (3,1) (3,2)
        places = np.arange(process.size)
        expected = [process.covariance.part(places, n)[..., between] for n in
                    ("correlation", "noise_correlation")]  # fmt: skip
        np.testing.assert_array_equal(
            missing, np.sort(np.concatenate([np.ravel(e) for e in expected]))
        )


def reweighted(combined, beta, points=None):
    """Return a conditioned model with other weights, and anchors to match."""
    rule = replace(combined.rule, kind="calibrated", beta=np.asarray(beta, np.float64))
    anchored = None if points is None else anchor(combined.models, rule.coefficients, points)
    return replace(combined, rule=rule, anchors=anchored)


def posterior(model, points, cell, *, nugget):
    """Return mean and covariance of the signal at points and of one cell, the nugget with it."""
    both = [model.whiten(points, nugget=False), model.whiten(cell, nugget=nugget)]
    white = np.vstack([w for _, w in both])
    query = Targets.nowhere(np.column_stack([points.inputs, cell.inputs]))
    prior = model.prior(query, query, nugget=False)
    prior[-1, -1] = model.prior_variance(nugget=nugget)
    return np.concatenate([mean for mean, _ in both]), prior - white @ white.T


class TestCoherence:
    @given(
        seed=st.integers(0, 2**16),
        tasks=st.integers(3, 4),
        coupling=st.sampled_from(["convolution", "lmc"]),
        nugget=st.booleans(),
        beta=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    )
    @settings(max_examples=25, deadline=None)
    def test_any_weights_give_a_valid_posterior(self, seed, tasks, coupling, nugget, beta):
        """For all parameters and beta in [0, 1] pairs know no less and precisions stay positive."""
        process, sample, theta = setting(tasks, coupling=coupling, seed=seed)
        combined = condition(process, sample, theta, "report", None)
        rng = np.random.default_rng(seed)
        targets, points = (Targets.nowhere(rng.uniform(size=(2, n))) for n in (9, 4))
        beta = beta[: tasks - 1]

        single, *pairs = (covariance_at(m, targets, nugget=nugget) for m in combined.models)
        for pair in pairs:
            assert np.linalg.eigvalsh(single - pair).min() > -1e-10
            assert (np.diagonal(pair) <= np.diagonal(single) + 1e-12).all()

        each = [covariance_at(m, targets) for m in combined.models]
        base, *others = (np.linalg.inv(c) for c in each)
        precision = base + sum(b * (p - base) for b, p in zip(beta, others, strict=True))
        assert np.linalg.eigvalsh(precision).min() > 0.0

        for anchors in (None, points):
            moments = reweighted(combined, beta, anchors).moments(targets, nugget=nugget)
            assert (moments.variance > 0.0).all()
            assert (moments.variance <= np.diagonal(single) + 1e-9).all()
            assert np.isfinite(moments.mean).all()

    @pytest.mark.parametrize("nugget", [True, False])
    @pytest.mark.parametrize("beta", [(1.0, 1.0, 1.0), (0.3, 0.0, 0.9), (0.0, 0.0, 0.0)])
    def test_anchored_equals_the_joint_posterior_of_anchors_and_cell(self, beta, nugget):
        """Cell by cell, moments equal those of dense precisions over anchors and cell, to 1e-9."""
        process, sample, theta = setting(4)
        combined = condition(process, sample, theta, "report", None)
        rng = np.random.default_rng(1)
        points = Targets.nowhere(rng.uniform(size=(2, 5)))
        # Cells anywhere, and at sites of one, of two and of three secondaries without the primary.
        lonely = sample.inputs[:, sample.offsets[1:-1] + 7]
        targets = reference.targets(sample, np.column_stack([rng.uniform(size=(2, 8)), lonely]))
        assert (targets.sites[-3:] >= 0).all()
        found = reweighted(combined, beta, points).moments(targets, nugget=nugget)
        rest, left = (part * nugget for part in apart(combined, sample, targets.sites))
        weights = [1.0 - sum(beta), *beta]
        for k in range(targets.size):
            cell = targets.take(slice(k, k + 1))
            precision, pull = 0.0, 0.0
            for weight, model in zip(weights, combined.models, strict=True):
                # The anchors are signals; the cell has its nugget where a secondary tells of it.
                mean, covariance = posterior(model, points, cell, nugget=nugget)
                covariance[-1, -1] -= rest[k]
                inverse = np.linalg.inv(covariance)
                precision = precision + weight * inverse
                pull = pull + weight * inverse @ mean
            joint = np.linalg.inv(precision)
            assert found.mean[k] == pytest.approx((joint @ pull)[-1], rel=0, abs=1e-9)
            expected = max(joint[-1, -1] + rest[k], left[k])
            assert found.variance[k] == pytest.approx(expected, rel=0, abs=1e-9)

    def test_no_weight_is_the_primary_alone_and_one_weight_its_pair(self):
        """Beta of zeros gives the single task, a single one gives that pair, to 1e-12."""
        process, sample, theta = setting(4)
        combined = condition(process, sample, theta, "report", None)
        targets = Targets.nowhere(np.random.default_rng(2).uniform(size=(2, 30)))
        for k, beta in enumerate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]):
            expected = combined.models[k].moments(targets)
            for points in (None, Targets.nowhere(np.random.default_rng(3).uniform(size=(2, 4)))):
                found = reweighted(combined, beta, points).moments(targets)
                np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-12)
                np.testing.assert_allclose(found.variance, expected.variance, rtol=0, atol=1e-12)

    @given(seed=st.integers(0, 2**16), nugget=st.booleans())
    @settings(max_examples=15, deadline=None)
    def test_information_is_the_weighted_gain_of_precision(self, seed, nugget):
        """It equals beta_i (1 / s2_1i - 1 / s2_1) and is never negative."""
        process, sample, theta = setting(4, seed=seed)
        combined = condition(process, sample, theta, "calibrated")
        own = sample.inputs[:, sample.task(0)]
        fresh = np.random.default_rng(seed).uniform(size=(2, 12))
        targets = reference.targets(sample, np.column_stack([fresh, own]))
        information = combined.information(targets, nugget=nugget)
        assert information.shape == (3, targets.size)
        assert (information >= 0.0).all()
        cells = targets.take(slice(0, 12))
        single, *pairs = (np.diagonal(covariance_at(m, cells, nugget=nugget))
                          for m in combined.models)  # fmt: skip
        for i, pair in enumerate(pairs):
            expected = combined.rule.beta[i] * (1.0 / pair - 1.0 / single)
            np.testing.assert_allclose(information[i, :12], expected, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("anchors", [None, "auto"])
    def test_leave_one_out_is_the_combined_prediction_of_the_primary(self, anchors):
        """Left-out moments of the primary are the sub-models', combined point by point.

        The nugget is apart where no secondary at the site tells of it.
        """
        process, sample, theta = setting(3)
        combined = condition(process, sample, theta, "report", anchors)
        loo, primary = combined.leave_one_out(), sample.task(0)
        each = [exact(process.with_tasks(t)[0], sample.select(t), theta[process.with_tasks(t)[1]])
                .leave_one_out() for t in [(0,), (0, 1), (0, 2)]]  # fmt: skip
        rest, left = apart(combined, sample, sample.sites[primary])
        weights = np.array([-1.0, 1.0, 1.0])[:, None] / [m.variance[primary] - rest for m in each]
        expected = np.maximum(1.0 / weights.sum(axis=0) + rest, left)
        np.testing.assert_allclose(loo.variance[primary], expected, rtol=1e-12)
        means = np.stack([m.mean[primary] for m in each])
        expected = (weights * means).sum(axis=0) / weights.sum(axis=0)
        np.testing.assert_allclose(loo.mean[primary], expected, rtol=0, atol=1e-12)

    def test_secondaries_are_left_out_of_their_pairs(self):
        """Left-out moments of a secondary are those of its pair with the primary."""
        process, sample, theta = setting(4)
        loo = condition(process, sample, theta).leave_one_out()
        for i in (1, 2, 3):
            sub, index = process.with_tasks((0, i))
            pair = exact(sub, sample.select([0, i]), theta[index]).leave_one_out()
            own = slice(sample.task(0).stop, None)
            np.testing.assert_array_equal(loo.mean[sample.task(i)], pair.mean[own])
            np.testing.assert_array_equal(loo.variance[sample.task(i)], pair.variance[own])


class TestSecondaries:
    @pytest.mark.parametrize("weights", ["calibrated", "report"])
    @pytest.mark.parametrize("anchors", ["auto", None, "block"])
    def test_a_secondary_is_predicted_by_its_pair(self, weights, anchors):
        """Its moments and means are those of the pair with the primary, whatever the options."""
        process, sample, theta = setting(4)
        fresh = np.random.default_rng(0).uniform(size=(2, 6))
        lonely = sample.inputs[:, sample.offsets[1:-1] + 7]
        points = np.column_stack([fresh, lonely, sample.inputs[:, :7]])
        targets = reference.targets(sample, points)
        combined = condition(process, sample, theta, weights, anchors)
        scores = np.random.default_rng(1).normal(size=(2, sample.size))
        for i in (1, 2, 3):
            sub, index = process.with_tasks((0, i))
            pair = exact(sub, sample.select([0, i]), theta[index])
            own = np.concatenate([scores[:, sample.task(0)], scores[:, sample.task(i)]], axis=1)
            for nugget in (True, False):
                found = combined.moments(targets, task=i, nugget=nugget)
                expected = pair.moments(targets, task=1, nugget=nugget)
                np.testing.assert_array_equal(found, expected)
                means = combined.means(targets, scores, task=i, nugget=nugget)
                expected = pair.means(targets, own, task=1, nugget=nugget)
                np.testing.assert_allclose(means, expected, rtol=0, atol=1e-12)


class TestFewTasks:
    @pytest.mark.parametrize("tasks", [1, 2])
    @pytest.mark.parametrize("weights", ["calibrated", "report"])
    @pytest.mark.parametrize("anchors", ["auto", None, "block"])
    def test_is_the_full_model(self, tasks, weights, anchors):
        """Without, or with one, secondary all settings predict as the full model, to 1e-12."""
        process, sample, theta = setting(tasks)
        points = np.column_stack(
            [np.random.default_rng(0).uniform(size=(2, 25)), sample.inputs[:, ::4]]
        )
        targets = reference.targets(sample, points)
        expected = exact(process, sample, theta).moments(targets)
        combined = condition(process, sample, theta, weights, anchors)
        found = combined.moments(targets)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.variance, expected.variance, rtol=0, atol=1e-12)
        assert combined.anchors is None
        assert not combined.block


class TestBlock:
    def by_precisions(self, combined, sample, targets, *, nugget):
        """Combine the sub-models over all targets at once, by dense precisions."""
        rest, left = (part * nugget for part in apart(combined, sample, targets.sites))
        precision, pull = 0.0, 0.0
        for weight, model in zip(combined.rule.coefficients, combined.models, strict=True):
            covariance = covariance_at(model, targets, nugget=nugget) - np.diag(rest)
            inverse = np.linalg.inv(covariance)
            precision = precision + weight * inverse
            pull = pull + weight * inverse @ model.whiten(targets, nugget=nugget)[0]
        joint = np.linalg.inv(precision)
        return joint @ pull, np.maximum(np.diagonal(joint) + rest, left)

    @pytest.mark.parametrize("nugget", [True, False])
    @pytest.mark.parametrize("weights", ["report", "calibrated"])
    def test_the_block_is_the_query_set(self, weights, nugget):
        """Moments of a block are those of dense precisions over all its cells, to 1e-7.

        Cells anywhere, and at sites of secondaries; a jitter of 1e-10 keeps known cells finite.
        """
        process, sample, theta = setting(4)
        fresh = np.random.default_rng(0).uniform(size=(2, 9))
        lonely = sample.inputs[:, sample.offsets[1:-1] + 7]
        targets = reference.targets(sample, np.column_stack([fresh, lonely]))
        combined = condition(process, sample, theta, weights, "block")
        found = combined.moments(targets, nugget=nugget)
        mean, variance = self.by_precisions(combined, sample, targets, nugget=nugget)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-7)

    def test_one_cell_is_point_by_point(self):
        """A block of one cell is combined from scalars, to 1e-8."""
        process, sample, theta = setting(4)
        fresh = np.random.default_rng(0).uniform(size=(2, 5))
        lonely = sample.inputs[:, sample.offsets[1:-1] + 7]
        targets = reference.targets(sample, np.column_stack([fresh, lonely]))
        block, pointwise = (condition(process, sample, theta, "report", a) for a in ("block", None))
        for nugget in (True, False):
            expected = pointwise.moments(targets, nugget=nugget)
            each = [block.moments(targets.take(slice(k, k + 1)), nugget=nugget) for k in range(8)]
            found = np.concatenate(each, axis=1)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)

    def test_a_site_that_is_asked_twice_is_one_observation(self):
        """Cells at one site share its nugget: each has the moments it has alone in the block."""
        process, sample, theta = setting(4)
        lonely = sample.inputs[:, sample.offsets[1:-1] + 7]
        fresh = np.random.default_rng(0).uniform(size=(2, 4))
        once = reference.targets(sample, np.column_stack([fresh, lonely]))
        twice = reference.targets(sample, np.column_stack([fresh, lonely, lonely[:, :2]]))
        combined = condition(process, sample, theta, "report", "block")
        for nugget in (True, False):
            expected = combined.moments(once, nugget=nugget)
            found = combined.moments(twice, nugget=nugget)
            np.testing.assert_allclose(np.array(found)[:, :7], expected, rtol=0, atol=1e-5)
            np.testing.assert_allclose(
                np.array(found)[:, 7:], np.array(expected)[:, 4:6], rtol=0, atol=1e-5
            )

    def test_cells_at_the_data_tell_the_others_nothing(self):
        """Known values are in every sub-model: a block with their sites says the same, to 1e-6."""
        process, sample, theta = setting(4)
        fresh = np.random.default_rng(0).uniform(size=(2, 6))
        own = sample.inputs[:, sample.task(0)]
        alone = reference.targets(sample, fresh)
        among = reference.targets(sample, np.column_stack([fresh, own]))
        combined = condition(process, sample, theta, "report", "block")
        expected, found = combined.moments(alone), combined.moments(among)
        np.testing.assert_allclose(np.array(found)[:, :6], expected, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(found.mean[6:], process.scores(theta, sample)[: own.shape[1]])
        np.testing.assert_array_equal(found.variance[6:], 0.0)

    def test_too_large_a_block_is_refused_with_advice(self, monkeypatch):
        """The error says how large the block is, the limit, and what to do."""
        process, sample, theta = setting(3)
        combined = condition(process, sample, theta, "report", "block")
        monkeypatch.setattr(transductive, "_LARGEST_BLOCK", 10)
        targets = Targets.nowhere(np.random.default_rng(0).uniform(size=(2, 11)))
        with pytest.raises(ValueError, match=r"whole block of 11 cells.*limit is 10.*smaller chun"):
            combined.moments(targets)
        assert np.isfinite(combined.moments(targets.take(slice(0, 10))).mean).all()


class TestDescribe:
    @pytest.mark.parametrize(
        ("weights", "anchors", "phrase"),
        [
            ("report", "auto", "report weights (information 1.00, 1.00), given 9 anchors"),
            ("report", None, "report weights (information 1.00, 1.00), point by point"),
            ("report", "block", "report weights (information 1.00, 1.00), block by block"),
            ("calibrated", "auto", "calibrated weights"),
        ],
    )
    def test_names_weights_anchors_and_scores(self, weights, anchors, phrase):
        """The lines say how sub-models are combined, where, and how each rule scores."""
        process, sample, theta = setting(3)
        lines = condition(process, sample, theta, weights, anchors)
        first, second = lines.describe()
        assert phrase in first
        scores = {"report", "calibrated"}
        assert all(f"{name} " in second for name in scores)
        assert second.startswith("leave-one-out CRPS by rule")

    def test_says_when_there_is_nothing_to_combine(self):
        """One secondary: the pair is the full model; none: nothing to say."""
        for tasks, expected in ((1, ""), (2, "the pair is the full model")):
            process, sample, theta = setting(tasks)
            lines = condition(process, sample, theta).describe()
            assert expected in " ".join(lines)
            assert len(lines) == tasks - 1


class TestRedundancy:
    """Near-copies of one secondary: counted once each, they make the report overconfident."""

    PRIMARY, HIDDEN, SETS = 120, 50, 20

    def process(self, tasks):
        """Secondaries that correlate by 0.8 with the primary and by 0.99 with each other."""
        kernels = (KERNELS["matern32"],) * tasks
        covariance = Covariance(kernels, (InputGroup(2),), "icm", noise="independent")
        between = np.full((tasks, tasks), 0.99)
        between[0, 1:] = between[1:, 0] = 0.8
        np.fill_diagonal(between, 1.0)
        theta = np.zeros(covariance.size)
        covariance.part(theta, "length")[:] = np.log(0.15)
        covariance.part(theta, "logit")[:] = np.log(0.98 / 0.02)
        covariance.part(theta, "correlation")[:] = parameters_of(between)
        process = Process(covariance, (Normal(0.0, 1.0),) * tasks)
        return process, process.join(theta)

    def coverage(self, tasks):
        """Return which hidden values of the primary 90 % intervals hold, set by set, by rule."""
        process, theta = self.process(tasks)
        inside = {"report": [], "calibrated": []}
        for seed in range(self.SETS):
            sites = np.random.default_rng(seed).uniform(size=(self.PRIMARY + self.HIDDEN, 2))
            whole = reference.simulate(process, theta, [sites] * tasks, 5000 + seed)
            truth = whole.values[self.PRIMARY : len(sites)]
            known = np.delete(np.arange(whole.size), np.s_[self.PRIMARY : len(sites)])
            sample = whole.take(known)
            targets = whole.targets(slice(self.PRIMARY, len(sites)))
            for rule, hits in inside.items():
                combined = condition(process, sample, theta, rule)
                mean, variance = combined.moments(targets)
                hits.append(np.abs(truth - mean) < 1.6448536269514722 * np.sqrt(variance))
        return {rule: np.mean(hits, axis=1) for rule, hits in inside.items()}

    @pytest.mark.parametrize("tasks", [3, 4, 5, 6])
    def test_coverage(self, tasks):
        """Calibrated weights cover 90 % within 3 points (and the error); the report fails."""
        each = self.coverage(tasks)
        found = {rule: hits.mean() for rule, hits in each.items()}
        error = 2.0 * each["calibrated"].std() / np.sqrt(self.SETS)
        assert abs(found["calibrated"] - 0.9) < 0.03 + error
        assert found["report"] < {3: 0.87, 4: 0.84, 5: 0.81, 6: 0.79}[tasks]
        assert found["report"] < found["calibrated"]


def test_rules_are_learnt_in_the_rows_units():
    """The CRPS of each rule is that of the primary's law, bound to the rows of its values."""
    process, sample, theta = reference.varying(3)
    combined = condition(process, sample, theta)
    assert all(np.isfinite(v) for v in combined.rule.crps.values())
    factor = 1000.0
    law = process.marginals[0]  # gamma: its scale is the second parameter
    larger = theta.copy()
    larger[process.slices[0].start + 1] += np.log(factor)
    values = sample.values.copy()
    values[sample.task(0)] *= factor
    assert law.link == "log"
    scaled = condition(process, replace(sample, values=values), larger)
    for name, value in combined.rule.crps.items():
        assert scaled.rule.crps[name] == pytest.approx(factor * value, rel=1e-6)


class TestCost:
    def test_is_that_of_all_sub_models(self):
        """The primary alone, and each pair."""
        solver = Exact()
        found = Transductive().cost(solver, [300, 200, 100])
        each = [solver.cost(sizes) for sizes in ([300], [300, 200], [300, 100])]
        assert found[:2] == (sum(c.bytes for c in each), sum(c.flops for c in each))
        assert Transductive().cost(solver, [300]) == solver.cost([300])


class TestOptions:
    """Bad options are refused when the method is made."""

    @pytest.mark.parametrize("weights", ["x", "", None, 1, "Report"])
    def test_weights(self, weights):
        """The message names the rules."""
        with pytest.raises(ValueError, match=r"Unknown weights .* Choose one of \('calib"):
            Transductive(weights=weights)

    @pytest.mark.parametrize("anchors", [3, "x", "none", np.zeros((2, 3)), [1.0]])
    def test_anchors(self, anchors):
        """The message names the choices; plain arrays have no coordinates."""
        with pytest.raises(ValueError, match=r"(?s)Unknown anchors .* 'block', None, or give"):
            Transductive(anchors=anchors)

    @pytest.mark.parametrize("polish", ["no", 1, None])
    def test_polish(self, polish):
        """A truth value, nothing that stands for one."""
        with pytest.raises(TypeError, match="`polish` must be True or False, found"):
            Transductive(polish=polish)

    def test_what_is_allowed(self):
        """Every named choice, points with labels, and located ones."""
        for weights in ("calibrated", "report"):
            assert Transductive(weights).weights == weights
        points = Targets.nowhere(np.zeros((2, 1)))
        for anchors in ("auto", "block", None, xr.Dataset(), points):
            assert Transductive(anchors=anchors).anchors is anchors
        assert Transductive(polish=np.False_).polish == False  # noqa: E712
