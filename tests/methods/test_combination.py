"""How sub-models become one: precisions, stacking, and weights learnt by leave-one-out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from xcopula import jit
from xcopula.methods import combination
from xcopula.methods.combination import WEIGHTS, Combination, calibrate, combine
from xcopula.marginals import LogNormal, Normal
from xcopula.process.outcome import crps

UNIT = Normal(0.0, 1.0)


def rule(kind, beta, precision=None):
    """Build a rule by hand."""
    beta = np.asarray(beta, np.float64)
    precision = np.eye(beta.size + 1) if precision is None else precision
    return Combination(kind, beta, precision, {}, {})


def predictions(rng, secondaries, size, *, redundant=False):
    """Draw truths and coherent predictions of them: each pair has a clue beside the first's.

    The clues are independent, or with ``redundant`` one and the same.
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
    return truth, np.stack(pulls) * variance, variance


def log_score(beta, scores, mean, variance):
    """Return the mean log density of scores under precisions weighted by beta."""
    weights = np.array([1.0 - sum(beta), *beta])[:, None] / variance
    total = weights.sum(axis=0)
    error = scores - (weights * mean).sum(axis=0) / total
    return float(np.mean(0.5 * np.log(total / (2.0 * np.pi)) - 0.5 * total * error**2))


class TestPrecisions:
    @given(seed=st.integers(0, 2**16), secondaries=st.integers(1, 5))
    @settings(max_examples=30, deadline=None)
    def test_report_is_the_product_of_pairs_over_powers_of_the_single(self, seed, secondaries):
        """Densities multiply: prod_i N_1i / N_1^(t - 2), up to a constant, at any point."""
        rng = np.random.default_rng(seed)
        variance = np.vstack([[1.0], rng.uniform(0.1, 1.0, size=(secondaries, 1))])
        mean = rng.normal(size=(secondaries + 1, 1))
        found = combine(rule("report", np.ones(secondaries)), mean, variance)

        def log_ratio(y):
            terms = -0.5 * (y - mean[:, 0]) ** 2 / variance[:, 0]
            return terms[1:].sum() - (secondaries - 1) * terms[0]

        def log_found(y):
            return float(-0.5 * (y - found.mean[0]) ** 2 / found.variance[0])

        differences = [log_ratio(y) - log_found(y) for y in (-2.0, -0.3, 0.0, 1.1, 3.0)]
        np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)

    def test_beta_interpolates_between_the_single_and_the_report(self):
        """No weight is the single prediction, and precision grows linearly with each weight."""
        rng = np.random.default_rng(0)
        _, mean, variance = predictions(rng, 3, 5)
        none = combine(rule("calibrated", [0, 0, 0]), mean, variance)
        np.testing.assert_allclose(none.mean, mean[0], rtol=1e-12)
        np.testing.assert_allclose(none.variance, variance[0], rtol=1e-12)
        for beta in ([0.2, 0.0, 0.7], [1.0, 1.0, 0.5]):
            expected = 1.0 / variance[0] + beta @ (1.0 / variance[1:] - 1.0 / variance[0])
            found = combine(rule("calibrated", beta), mean, variance)
            np.testing.assert_allclose(1.0 / found.variance, expected, rtol=1e-12)

    @pytest.mark.parametrize("kind", ["report", "stacked"])
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


class TestStacking:
    @given(seed=st.integers(0, 2**16), models=st.integers(2, 6))
    @settings(max_examples=30, deadline=None)
    def test_equals_the_best_linear_unbiased_combination(self, seed, models):
        """Weights are (D C D)^-1 1, normalised, and the variance 1 / 1'(D C D)^-1 1, to 1e-10.

        Unless that is less than what secondaries with nothing in common could know.
        """
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(models, models + 3))
        second = root @ root.T / (models + 3) + 0.1 * np.eye(models)
        mean, variance = rng.normal(size=(models, 7)), rng.uniform(0.1, 2.0, (models, 7))
        variance = -np.sort(-variance, axis=0)  # a pair never knows less than the primary alone
        found = combine(rule("stacked", np.ones(models - 1), np.linalg.inv(second)), mean, variance)
        for k in range(7):
            scale = np.diag(np.sqrt(variance[:, k]))
            weights = np.linalg.solve(scale @ second @ scale, np.ones(models))
            expected = 1.0 / weights.sum()
            gains = (1.0 / variance[1:, k] - 1.0 / variance[0, k]).sum()
            least = 1.0 / (1.0 / variance[0, k] + gains)
            assert found.variance[k] == pytest.approx(max(expected, least), rel=1e-10)
            assert found.mean[k] == pytest.approx(weights @ mean[:, k] * expected, rel=0, abs=1e-9)

    def test_a_cell_that_no_secondary_informs_is_the_primary_alone(self):
        """Where all sub-models say the same, so does their combination, whatever their errors."""
        precision = np.linalg.inv(np.full((4, 4), 0.6) + 0.4 * np.eye(4))
        mean, variance = np.full((4, 1), 0.3), np.full((4, 1), 0.8)
        found = combine(rule("stacked", np.ones(3), precision), mean, variance)
        assert found.mean[0] == pytest.approx(0.3, rel=1e-12)
        assert found.variance[0] == pytest.approx(0.8, rel=1e-12)

    def test_error_moments_are_those_of_leave_one_out_shrunk_by_five_percent(self):
        """The learnt matrix inverts the shrunk moments of errors, less what the fit flatters."""
        rng = np.random.default_rng(3)
        truth, mean, variance = predictions(rng, 3, 40)
        errors = (truth - mean) / np.sqrt(variance)
        second = errors @ errors.T / 40
        shrunk = np.where(np.eye(4, dtype=bool), second, 0.95 * second)
        found = calibrate("stacked", UNIT, truth, mean, variance)
        flattery = 40 / 37 * 39 / 36
        product = flattery * found.error_precision @ shrunk
        np.testing.assert_allclose(product, np.eye(4), rtol=0, atol=1e-10)

    def test_a_duplicate_counts_once(self):
        """A sub-model listed twice moves stacked predictions by less than 3 % of the report's."""
        truth, mean, variance = predictions(np.random.default_rng(4), 1, 4000)
        twice = np.array([0, 1, 1])
        once = calibrate("report", UNIT, truth, mean, variance)
        pair = combine(once, mean, variance)
        report = calibrate("report", UNIT, truth, mean[twice], variance[twice])
        stacked = calibrate("stacked", UNIT, truth, mean[twice], variance[twice])
        double = combine(report, mean[twice], variance[twice]).variance / pair.variance
        single = combine(stacked, mean[twice], variance[twice]).variance / pair.variance
        assert (double < 0.8).all()
        np.testing.assert_allclose(single, 1.0, rtol=0, atol=0.05)


class TestCalibration:
    @given(seed=st.integers(0, 2**16), secondaries=st.integers(2, 4), redundant=st.booleans())
    @settings(max_examples=25, deadline=None)
    def test_weights_are_in_the_unit_box_and_beat_fixed_ones(self, seed, secondaries, redundant):
        """Calibrated weights lie in [0, 1] and score no worse than random ones or the report's."""
        rng = np.random.default_rng(seed)
        truth, mean, variance = predictions(rng, secondaries, 60, redundant=redundant)
        found = calibrate("calibrated", UNIT, truth, mean, variance)
        assert found.beta.shape == (secondaries,)
        assert ((found.beta >= 0.0) & (found.beta <= 1.0)).all()
        best = log_score(found.beta, truth, mean, variance)
        assert found.log_scores["calibrated"] == pytest.approx(best, abs=1e-12)
        assert best >= found.log_scores["report"] - 1e-5
        for beta in rng.uniform(size=(50, secondaries)):
            assert best >= log_score(beta, truth, mean, variance) - 1e-5

    def test_no_point_of_a_fine_grid_is_better(self):
        """With two secondaries a grid of step 0.01 finds no higher score than by 1e-5 nats."""
        rng = np.random.default_rng(5)
        for redundant in (False, True):
            truth, mean, variance = predictions(rng, 2, 80, redundant=redundant)
            found = calibrate("calibrated", UNIT, truth, mean, variance)
            steps = np.linspace(0.0, 1.0, 101)
            grid = [log_score((a, b), truth, mean, variance) for a in steps for b in steps]
            assert found.log_scores["calibrated"] > max(grid) - 1e-5

    def test_the_gradient_of_the_loss_is_right(self, monkeypatch):
        """What the optimiser is given equals central differences of the loss, to 1e-6."""
        seen = []
        original = combination.minimise

        def spy(objective, start, box):
            seen.append(objective)
            return original(objective, start, box)

        monkeypatch.setattr(combination, "minimise", spy)
        truth, mean, variance = predictions(np.random.default_rng(6), 3, 50)
        calibrate("calibrated", UNIT, truth, mean, variance * np.linspace(0.8, 1.2, 50))
        (loss,) = seen
        beta = np.array([0.3, 0.8, 0.1])
        expected = reference.differences(lambda b: loss(b)[0], beta)
        np.testing.assert_allclose(loss(beta)[1], expected, rtol=1e-6)
        assert check_grad(lambda b: loss(b)[0], lambda b: loss(b)[1], beta) < 1e-4

    def test_independent_clues_keep_their_weight(self):
        """Where the report is right, calibrated weights are near one."""
        truth, mean, variance = predictions(np.random.default_rng(7), 2, 4000)
        found = calibrate("calibrated", UNIT, truth, mean, variance)
        assert (found.beta > 0.85).all()

    @pytest.mark.parametrize("copies", [2, 3, 5])
    def test_duplicates_share_one_weight(self, copies):
        """The weights of a sub-model listed several times add up to one, within 0.1."""
        rng = np.random.default_rng(8)
        truth, mean, variance = predictions(rng, copies, 4000, redundant=True)
        found = calibrate("calibrated", UNIT, truth, mean, variance)
        assert found.beta.sum() == pytest.approx(1.0, abs=0.1)
        combined = combine(found, mean, variance)
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

    @pytest.mark.parametrize("kind", ["calibrated", "stacked", "report"])
    def test_what_is_asked_for_is_taken(self, kind):
        """A named rule is kept whatever the scores say, which are kept for all rules."""
        truth, mean, variance = predictions(np.random.default_rng(1), 3, 30)
        found = calibrate(kind, UNIT, truth, mean, variance)
        assert found.kind == kind
        assert set(found.crps) == set(found.log_scores) == {"report", "calibrated", "stacked"}

    @pytest.mark.parametrize("seed", range(4))
    def test_auto_takes_the_lower_crps_of_two(self, seed):
        """Between calibrated and stacked, the mean leave-one-out CRPS of the values decides."""
        truth, mean, variance = predictions(np.random.default_rng(seed), 3, 30)
        law = LogNormal(0.3, 0.6)
        values = law.from_normal(truth)
        found = calibrate("auto", law, values, mean, variance)
        assert found.kind == min(("calibrated", "stacked"), key=found.crps.__getitem__)
        for kind in ("calibrated", "stacked", "report"):
            moments = combine(calibrate(kind, law, values, mean, variance), mean, variance)
            expected = crps(moments.mean, np.sqrt(moments.variance), law, values).mean()
            assert found.crps[kind] == pytest.approx(expected, rel=1e-12)
            density = -0.5 * ((truth - moments.mean) ** 2 / moments.variance
                              + np.log(2.0 * np.pi * moments.variance))  # fmt: skip
            assert found.log_scores[kind] == pytest.approx(density.mean(), abs=1e-10)


def laws_given_anchors(rng, models, anchors, scale):
    """Draw coherent laws N(a_k + B_k f_A, s_k) of one cell, and precisions and means of f_A.

    The first has s of the given scale. Each other has seen h'f_A + f* too, with some noise v.
    """
    root = rng.normal(size=(anchors, anchors))
    at_anchors, means = [root @ root.T + np.eye(anchors)], [rng.normal(size=anchors)]
    gains, variances = [rng.normal(size=anchors)], [scale * rng.uniform(1.0, 2.0)]
    intercepts = [rng.normal()]
    for _ in range(models - 1):
        (p, m, g, s, a), v = (
            (x[0] for x in (at_anchors, means, gains, variances, intercepts)),
            rng.uniform(0.5, 2.0),
        )
        h, seen = rng.normal(size=anchors), rng.normal()
        both = h + g
        at_anchors.append(p + np.outer(both, both) / (s + v))
        means.append(np.linalg.solve(at_anchors[-1], p @ m + both * (seen - a) / (s + v)))
        share = s / (s + v)
        gains.append(g - share * both)
        intercepts.append(a + share * (seen - a))
        variances.append(s * v / (s + v))
    return at_anchors, np.stack(gains), np.array(variances), np.array(intercepts), np.stack(means)


def join(precision, gain, variance):
    """Return the precision of (f_A, f*) from that of f_A and the law of f* given f_A."""
    row = np.concatenate([-gain, [1.0]])
    joint = np.outer(row, row) / variance
    joint[:-1, :-1] += precision
    return joint


def run(coefficients, laws):
    """Combine one cell as the package does."""
    at_anchors, gains, variances, intercepts, means = laws
    base = sum(c * p for c, p in zip(coefficients, at_anchors, strict=True))
    pull = sum(c * p @ m for c, p, m in zip(coefficients, at_anchors, means, strict=True))
    lower = np.linalg.cholesky(base)
    mean, variance = np.empty(1), np.empty(1)
    jit.combine_conditionals(
        np.linalg.solve(lower, gains.T).T[None].copy(),
        intercepts[None].copy(),
        variances[None].copy(),
        coefficients,
        np.linalg.solve(lower, pull),
        mean,
        variance,
    )
    return mean[0], variance[0]


def solved(matrix, right):
    """Solve a linear system in exact arithmetic, by elimination over fractions."""
    rows = [
        [Fraction(float(v)) if not isinstance(v, Fraction) else v for v in (*row, b)]
        for row, b in zip(matrix, right, strict=True)
    ]
    size = len(rows)
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exactly(coefficients, laws):
    """Combine one cell by joint precisions, with fractions: no rounding, however small s is."""
    at_anchors, gains, variances, intercepts, means = laws
    size = gains.shape[1] + 1
    total = [[Fraction(0)] * size for _ in range(size)]
    pull = [Fraction(0)] * size
    for k, c in enumerate(map(float, coefficients)):
        row = [*(-Fraction(float(g)) for g in gains[k]), Fraction(1)]
        scale = Fraction(c) / Fraction(float(variances[k]))
        for i in range(size):
            pull[i] += scale * row[i] * Fraction(float(intercepts[k]))
            for j in range(size):
                total[i][j] += scale * row[i] * row[j]
        for i in range(size - 1):
            for j in range(size - 1):
                entry = Fraction(c) * Fraction(float(at_anchors[k][i, j]))
                total[i][j] += entry
                pull[i] += entry * Fraction(float(means[k, j]))
    unit = [Fraction(int(i == size - 1)) for i in range(size)]
    return float(solved(total, pull)[-1]), float(solved(total, unit)[-1])


class TestCombineConditionals:
    @given(
        seed=st.integers(0, 2**16),
        models=st.integers(2, 6),
        anchors=st.integers(1, 7),
        beta=st.floats(0.0, 1.0),
    )
    @settings(max_examples=40, deadline=None)
    def test_equals_the_weighted_sum_of_joint_precisions(self, seed, models, anchors, beta):
        """Mean and variance equal those of dense precisions of anchors and cell, to 1e-9."""
        rng = np.random.default_rng(seed)
        laws = laws_given_anchors(rng, models, anchors, 1.0)
        at_anchors, gains, variances, intercepts, means = laws
        betas = np.clip(beta * rng.uniform(0.5, 1.5, models - 1), 0.0, 1.0)
        coefficients = np.array([1.0 - betas.sum(), *betas])
        precision, pull = 0.0, 0.0
        for k, c in enumerate(coefficients):
            joint = join(at_anchors[k], gains[k], variances[k])
            centre = np.append(means[k], intercepts[k] + gains[k] @ means[k])
            precision, pull = precision + c * joint, pull + c * joint @ centre
        covariance = np.linalg.inv(precision)
        mean, variance = run(coefficients, laws)
        size = max(1.0, abs(covariance @ pull)[-1])
        assert mean == pytest.approx((covariance @ pull)[-1], rel=0, abs=1e-9 * size)
        assert variance == pytest.approx(covariance[-1, -1], rel=1e-9)

    @pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6, 1e-10])
    @pytest.mark.parametrize("models", [2, 3, 5])
    def test_a_tiny_conditional_variance_costs_no_digits(self, models, scale):
        """Against exact arithmetic the error is below 1e-9, however well anchors tell the cell."""
        rng = np.random.default_rng(models)
        laws = laws_given_anchors(rng, models, 3, scale)
        coefficients = np.array([2.0 - models, *np.ones(models - 1)])
        expected = exactly(coefficients, laws)
        mean, variance = run(coefficients, laws)
        assert mean == pytest.approx(expected[0], rel=1e-9, abs=1e-9)
        assert variance == pytest.approx(expected[1], rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize("scale", [1e-10, 1e-14])
    def test_a_cell_at_an_anchor_has_the_anchor_s_law(self, scale):
        """With equal gains and all s tiny the cell is the anchor under the combined law."""
        rng = np.random.default_rng(0)
        at_anchors, _, _, _, means = laws_given_anchors(rng, 4, 5, 1.0)
        gains = np.zeros((4, 5))
        gains[:, 2] = 1.0
        coefficients = np.array([-2.0, 1.0, 1.0, 1.0])
        base = sum(c * p for c, p in zip(coefficients, at_anchors, strict=True))
        pull = sum(c * p @ m for c, p, m in zip(coefficients, at_anchors, means, strict=True))
        covariance = np.linalg.inv(base)
        laws = at_anchors, gains, np.full(4, scale), np.zeros(4), means
        mean, variance = run(coefficients, laws)
        assert mean == pytest.approx((covariance @ pull)[2], rel=0, abs=1e-9)
        assert variance == pytest.approx(covariance[2, 2] + scale, rel=0, abs=1e-9)
