"""How sub-models become one: precisions, and weights learnt by leave-one-out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from xcopula.marginals import LogNormal, Normal
from xcopula.methods import combination
from xcopula.methods.combination import WEIGHTS, Combination
from xcopula.process import Predictive

UNIT = Normal(0.0, 1.0)

# The part of the variance that no sub-model can explain: none, and a nugget.
RESTS = [0.0, 0.3]


def combine(rule, mean, variance, rest=0.0):
    """Combine predictions with the same rest at every point."""
    return combination.combine(rule, mean, variance, np.full(mean.shape[1], rest))


def calibrate(kind, law, values, mean, variance, rest=0.0):
    """Learn a rule with the same rest at every point."""
    return combination.calibrate(kind, law, values, mean, variance, np.full(mean.shape[1], rest))


def rule(kind, beta):
    """Build a rule by hand."""
    return Combination(kind, np.asarray(beta, np.float64), {}, {})


def predictions(rng, secondaries, size, *, redundant=False, rest=0.0):
    """Draw truths and coherent predictions of them: each pair has a clue beside the first's.

    The clues are independent, or with ``redundant`` one and the same. Of a nugget of variance
    ``rest`` they tell nothing.
    """
    truth = rng.normal(size=size)
    noises = rng.uniform(0.5, 1.5, size=secondaries)
    clues = [truth + np.sqrt(s) * rng.normal(size=size) for s in noises]
    if redundant:
        noises, clues = noises[[0] * secondaries], clues[:1] * secondaries
    first = truth + rng.normal(size=size)
    precisions, pulls = [2.0], [first]
    for s, clue in zip(noises, clues, strict=True):
        precisions.append(2.0 + 1.0 / s)
        pulls.append(first + clue / s)
    variance = 1.0 / np.array(precisions)[:, None] * np.ones(size)
    observed = truth + np.sqrt(rest) * rng.normal(size=size)
    return observed, np.stack(pulls) * variance, variance + rest


def log_score(beta, scores, mean, variance, rest=0.0):
    """Return the mean log density of scores under precisions weighted by beta."""
    weights = np.array([1.0 - sum(beta), *beta])[:, None] / (variance - rest)
    total = weights.sum(axis=0)
    centre, spread = (weights * mean).sum(axis=0) / total, np.sqrt(1.0 / total + rest)
    return float(stats.norm(centre, spread).logpdf(scores).mean())


class TestPrecisions:
    @given(seed=st.integers(0, 2**16), secondaries=st.integers(1, 5), rest=st.sampled_from(RESTS))
    @settings(max_examples=30, deadline=None)
    def test_report_is_the_product_of_pairs_over_powers_of_the_single(
        self, seed, secondaries, rest
    ):
        """Densities multiply: prod_i N_1i / N_1^(t - 2), up to a constant, at any point.

        Those of what can be known; the rest is added to the variance.
        """
        rng = np.random.default_rng(seed)
        variance = np.vstack([[1.0], rng.uniform(0.1, 1.0, size=(secondaries, 1))])
        mean = rng.normal(size=(secondaries + 1, 1))
        found = combine(rule("report", np.ones(secondaries)), mean, variance + rest, rest)

        def log_ratio(y):
            terms = -0.5 * (y - mean[:, 0]) ** 2 / variance[:, 0]
            return terms[1:].sum() - (secondaries - 1) * terms[0]

        def log_found(y):
            return float(-0.5 * (y - found.mean[0]) ** 2 / (found.variance[0] - rest))

        differences = [log_ratio(y) - log_found(y) for y in (-2.0, -0.3, 0.0, 1.1, 3.0)]
        np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)

    @pytest.mark.parametrize("rest", RESTS)
    def test_beta_interpolates_between_the_single_and_the_report(self, rest):
        """No weight is the single prediction, and precision grows linearly with each weight."""
        rng = np.random.default_rng(0)
        _, mean, variance = predictions(rng, 3, 5, rest=rest)
        none = combine(rule("calibrated", [0, 0, 0]), mean, variance, rest)
        np.testing.assert_allclose(none.mean, mean[0], rtol=1e-12)
        np.testing.assert_allclose(none.variance, variance[0], rtol=1e-12)
        for beta in ([0.2, 0.0, 0.7], [1.0, 1.0, 0.5]):
            known = 1.0 / (variance - rest)
            expected = known[0] + beta @ (known[1:] - known[0])
            found = combine(rule("calibrated", beta), mean, variance, rest)
            np.testing.assert_allclose(1.0 / (found.variance - rest), expected, rtol=1e-12)

    @pytest.mark.parametrize("kind", ["report", "calibrated"])
    def test_what_every_sub_model_knows_is_known(self, kind):
        """Variances of zero give the common mean and next to no variance, not NaN."""
        known = combine(rule(kind, [1.0, 1.0]), np.full((3, 2), 0.7), np.zeros((3, 2)))
        np.testing.assert_allclose(known.mean, 0.7, rtol=1e-9)
        assert (known.variance < 1e-11).all()
        assert (known.variance >= 0.0).all()

    def test_coefficients_add_up_to_one(self):
        """The single task's coefficient is what the secondaries leave, so it may be negative."""
        found = rule("report", np.ones(4)).coefficients
        np.testing.assert_array_equal(found, [-3.0, 1.0, 1.0, 1.0, 1.0])


class TestRest:
    """What no sub-model can explain is combined by none, and is there afterwards."""

    @given(
        seed=st.integers(0, 2**16),
        secondaries=st.integers(1, 5),
        kind=st.sampled_from(WEIGHTS),
    )
    @settings(max_examples=60, deadline=None)
    def test_no_rule_promises_less(self, seed, secondaries, kind):
        """The variance is at least the rest, and at most the primary's alone."""
        rng = np.random.default_rng(seed)
        known = -np.sort(-rng.uniform(1e-9, 1.0, size=(secondaries + 1, 8)), axis=0)
        rest = rng.choice([0.0, 1e-6, 0.1, 0.8], size=8)
        beta = np.ones(secondaries) if kind == "report" else rng.uniform(size=secondaries)
        mean = rng.normal(size=known.shape)
        found = combination.combine(rule(kind, beta), mean, known + rest, rest)
        assert (found.variance >= rest).all()
        assert np.isfinite(found.mean).all()
        assert (found.variance <= (known[0] + rest) * (1.0 + 1e-9)).all()

    @pytest.mark.parametrize("kind", ["calibrated", "report"])
    def test_is_an_independent_error(self, kind):
        """Means are those of the signal, and the variance is the signal's plus the rest."""
        rng = np.random.default_rng(1)
        _, mean, variance = predictions(rng, 3, 6)
        rest = rng.uniform(0.0, 0.5, size=6)
        chosen = rule(kind, np.ones(3) if kind == "report" else [0.3, 0.9, 0.5])
        signal = combine(chosen, mean, variance)
        found = combination.combine(chosen, mean, variance + rest, rest)
        np.testing.assert_allclose(found.mean, signal.mean, rtol=1e-12)
        np.testing.assert_allclose(found.variance, signal.variance + rest, rtol=1e-12)

    def test_not_to_keep_it_apart_is_overconfident(self):
        """Many values with a nugget: their errors are as large as said, and not so without."""
        rng = np.random.default_rng(2)
        truth, mean, variance = predictions(rng, 4, 20_000, rest=0.3)
        report = rule("report", np.ones(4))
        apart, together = (combine(report, mean, variance, r) for r in (0.3, 0.0))
        errors = [np.mean((truth - m.mean) ** 2 / m.variance) for m in (apart, together)]
        assert errors[0] == pytest.approx(1.0, abs=0.04)
        assert errors[1] > 1.1


class TestCalibration:
    @given(
        seed=st.integers(0, 2**16),
        secondaries=st.integers(2, 4),
        redundant=st.booleans(),
        rest=st.sampled_from(RESTS),
    )
    @settings(max_examples=25, deadline=None)
    def test_weights_are_in_the_unit_box_and_beat_fixed_ones(
        self, seed, secondaries, redundant, rest
    ):
        """Calibrated weights lie in [0, 1] and score no worse than random ones or the report's."""
        rng = np.random.default_rng(seed)
        truth, mean, variance = predictions(rng, secondaries, 60, redundant=redundant, rest=rest)
        found = calibrate("calibrated", UNIT, truth, mean, variance, rest)
        assert found.beta.shape == (secondaries,)
        assert ((found.beta >= 0.0) & (found.beta <= 1.0)).all()
        best = log_score(found.beta, truth, mean, variance, rest)
        assert found.log_scores["calibrated"] == pytest.approx(best, abs=1e-12)
        assert best >= found.log_scores["report"] - 1e-5
        for beta in rng.uniform(size=(50, secondaries)):
            assert best >= log_score(beta, truth, mean, variance, rest) - 1e-5

    def test_no_point_of_a_fine_grid_is_better(self):
        """With two secondaries a grid of step 0.01 finds no higher score than by 1e-5 nats."""
        rng = np.random.default_rng(5)
        for redundant, rest in itertools.product((False, True), RESTS):
            truth, mean, variance = predictions(rng, 2, 80, redundant=redundant, rest=rest)
            found = calibrate("calibrated", UNIT, truth, mean, variance, rest)
            a, b = (g.reshape(-1, 1) for g in np.meshgrid(*[np.linspace(0.0, 1.0, 101)] * 2))
            weights = np.stack([1.0 - a - b, a, b])[..., None] / (variance - rest)[:, None, None]
            total = weights.sum(axis=0)[:, 0]
            centre = (weights[:, :, 0] * mean[:, None]).sum(axis=0) / total
            grid = stats.norm(centre, np.sqrt(1.0 / total + rest)).logpdf(truth).mean(axis=1)
            assert found.log_scores["calibrated"] > max(grid) - 1e-5

    @pytest.mark.parametrize("rest", RESTS)
    def test_the_gradient_of_the_loss_is_right(self, monkeypatch, rest):
        """What the optimiser is given equals central differences of the loss, to 1e-6."""
        seen = []
        original = optimize.minimize

        def spy(objective, *arguments, **options):
            seen.append(objective)
            return original(objective, *arguments, **options)

        monkeypatch.setattr(optimize, "minimize", spy)
        truth, mean, variance = predictions(np.random.default_rng(6), 3, 50)
        variance = variance * np.linspace(0.8, 1.2, 50) + rest
        calibrate("calibrated", UNIT, truth, mean, variance, rest)
        (loss,) = seen
        beta = np.array([0.3, 0.8, 0.1])
        expected = reference.differences(lambda b: loss(b)[0], beta)
        np.testing.assert_allclose(loss(beta)[1], expected, rtol=1e-6)
        assert optimize.check_grad(lambda b: loss(b)[0], lambda b: loss(b)[1], beta) < 1e-4

    @pytest.mark.parametrize("rest", RESTS)
    def test_independent_clues_keep_their_weight(self, rest):
        """Where the report is right, calibrated weights are near one."""
        truth, mean, variance = predictions(np.random.default_rng(7), 2, 4000, rest=rest)
        found = calibrate("calibrated", UNIT, truth, mean, variance, rest)
        assert (found.beta > 0.85).all()

    @pytest.mark.parametrize("rest", RESTS)
    @pytest.mark.parametrize("copies", [2, 3, 5])
    def test_duplicates_share_one_weight(self, copies, rest):
        """The weights of a sub-model listed several times add up to one, within 0.1."""
        rng = np.random.default_rng(8)
        truth, mean, variance = predictions(rng, copies, 4000, redundant=True, rest=rest)
        found = calibrate("calibrated", UNIT, truth, mean, variance, rest)
        assert found.beta.sum() == pytest.approx(1.0, abs=0.1)
        combined = combine(found, mean, variance, rest)
        np.testing.assert_allclose(combined.variance, variance[1], rtol=0.05)

    def test_a_secondary_that_misleads_is_left_out(self):
        """A pair whose error is far above what it claims gets next to no weight."""
        rng = np.random.default_rng(9)
        truth, mean, variance = predictions(rng, 2, 500)
        mean[2] += rng.normal(scale=3.0, size=500)
        found = calibrate("calibrated", UNIT, truth, mean, variance)
        assert found.beta[1] < 0.05
        assert found.beta[0] > 0.5


class TestChoice:
    @pytest.mark.parametrize("kind", WEIGHTS)
    def test_one_secondary_leaves_no_choice(self, kind):
        """With one pair every rule is the report's, which is exact."""
        truth, mean, variance = predictions(np.random.default_rng(1), 1, 30)
        found = calibrate(kind, UNIT, truth, mean, variance)
        assert found.kind == "report"
        np.testing.assert_array_equal(found.beta, [1.0])
        assert set(found.crps) == set(found.log_scores) == {"report"}

    @pytest.mark.parametrize("kind", WEIGHTS)
    def test_what_is_asked_for_is_taken(self, kind):
        """A named rule is kept whatever the scores say, which are kept for all rules."""
        truth, mean, variance = predictions(np.random.default_rng(1), 3, 30)
        found = calibrate(kind, UNIT, truth, mean, variance)
        assert found.kind == kind
        assert set(found.crps) == set(found.log_scores) == {"report", "calibrated"}

    @pytest.mark.parametrize("rest", RESTS)
    @pytest.mark.parametrize("seed", range(4))
    def test_both_rules_are_scored(self, seed, rest):
        """By the mean leave-one-out CRPS of the values, and by the log score."""
        truth, mean, variance = predictions(np.random.default_rng(seed), 3, 30, rest=rest)
        law = LogNormal(0.3, 0.6)
        values = law.from_normal(truth)
        found = calibrate("calibrated", law, values, mean, variance, rest)
        for kind in WEIGHTS:
            chosen = calibrate(kind, law, values, mean, variance, rest)
            moments = combine(chosen, mean, variance, rest)
            expected = Predictive.of(moments, law).crps(values).mean()
            assert found.crps[kind] == pytest.approx(expected, rel=1e-12)
            density = -0.5 * ((truth - moments.mean) ** 2 / moments.variance
                              + np.log(2.0 * np.pi * moments.variance))  # fmt: skip
            assert found.log_scores[kind] == pytest.approx(density.mean(), abs=1e-10)
