"""Recipes for laws with zeros: what they are made of, how they are fitted, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import gamma as gamma_law

import xcopula
from xcopula.errors import SupportError
from xcopula.marginals import (
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Parzen,
    Regression,
    ZeroInflated,
    by,
    regress,
    resolve,
    zero_inflated,
)
from xcopula.marginals.checks import check_law
from xcopula.marginals.zero_inflated import Inflate, with_zeros

RNG = np.random.default_rng(11)
RAIN = np.where(RNG.uniform(size=400) < 0.3, 0.0, RNG.gamma(1.5, 4.0, 400))
MONTH = (np.arange(400) % 4).astype(float)
HEIGHT = RNG.normal(size=400)
ZEROS = int((RAIN == 0.0).sum())


class TestFit:
    def test_the_probability(self):
        """It is (k + 1/2) / (n + 1), and the law above zero is that of the values above zero."""
        law = zero_inflated("gamma").fit(RAIN, np.empty((400, 0)))
        assert law.p0 == pytest.approx((ZEROS + 0.5) / 401.0, rel=1e-15)
        assert law.base == Gamma.fit(RAIN[RAIN > 0.0])
        gradient = law.density_pullback(RAIN) + law.log_prior()[1]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-6)

    def test_recovers_the_truth(self):
        """Within four standard errors."""
        truth = ZeroInflated(LogNormal(1.0, 0.5), 0.2)
        y = truth.from_normal(np.random.default_rng(3).normal(size=4000))
        fitted = zero_inflated("lognormal").fit(y, np.empty((4000, 0)))
        errors = np.array([0.5, 0.71, 2.5]) / np.sqrt([3200.0, 3200.0, 4000.0])
        assert (np.abs(fitted.theta - truth.theta) < 4.0 * errors).all()

    def test_a_group_without_zeros(self):
        """It has a probability of zero, and a small one."""
        y = np.where(MONTH == 2.0, np.maximum(RAIN, 0.1), RAIN)
        law = by("month", zero_inflated("exponential")).fit(y, MONTH[:, None])
        assert law.laws[2].p0 == pytest.approx(0.5 / 101.0)
        assert [each.p0 > 0.1 for each in law.laws] == [True, True, False, True]
        bound = law.at(MONTH[:, None])
        assert np.isfinite(bound.to_normal(y)).all()
        assert np.isfinite(bound.to_normal(np.zeros(400))).all()

    def test_all_groups_together(self):
        """Groups have a law each and share the probability, also one that is always zero."""
        y = np.where(MONTH == 3.0, 0.0, RAIN)
        with pytest.raises(ValueError, match=r"5 values in each group.*: 3 \(0\)"):
            zero_inflated(by("month", "gamma")).fit(y, MONTH[:, None])
        law = zero_inflated(by("month", "gamma")).fit(RAIN, MONTH[:, None])
        assert law.p0 == pytest.approx((ZEROS + 0.5) / 401.0)
        assert law.theta.size == 9
        assert law.parameters["p0"] == law.p0

    @pytest.mark.parametrize("inside", [True, False])
    def test_with_a_covariate(self, inside):
        """Both ways round are one law: that of an independent formula's maximum."""
        y = RAIN * np.exp(0.4 * HEIGHT)
        recipe = (
            zero_inflated(regress("gamma", on="h"))
            if inside
            else regress(zero_inflated("gamma"), on="h")
        )
        law = recipe.fit(y, HEIGHT[:, None])
        wet, h = y > 0.0, (HEIGHT - HEIGHT.mean()) / HEIGHT.std()

        def loss(theta):
            shape, scale, slope, logit, odds = theta
            x, eta = y[wet], slope * h[wet]
            p0, each = expit(logit), expit(logit + odds * h)
            density = gamma_law.logpdf(x, np.exp(shape), scale=np.exp(scale + eta))
            zeros = np.log(np.where(wet, 1.0 - each, each)).sum()
            prior = 0.5 * np.log(p0 * (1.0 - p0)) - 0.5 * (odds / 2.5) ** 2
            return -density.sum() - zeros - prior

        best = minimize(loss, [0.3, 1.4, 0.3, -0.8, 0.0], method="BFGS").x
        bound = law.at(HEIGHT[:, None])
        total = bound.log_density(y).sum() + bound.log_prior()[0]
        assert total == pytest.approx(-loss(best), abs=1e-4)
        assert law.parameters["shape"] == pytest.approx(np.exp(best[0]), rel=1e-3)
        assert law.parameters["h"] * HEIGHT.std() == pytest.approx(best[2], abs=1e-3)
        assert law.parameters["p0"] == pytest.approx(expit(best[3]), rel=1e-3)
        assert law.zero_slopes[0] == pytest.approx(best[4], abs=1e-4)

    @pytest.mark.parametrize("family", ["gamma", "parzen"])
    def test_zeros_that_follow(self, family):
        """Slopes of the log odds come back, and AIC tells them from none."""
        rng = np.random.default_rng(9)
        n, h = 3000, rng.normal(500.0, 200.0, 3000)
        for slope in (0.0, -0.004):
            p0 = expit(-1.0 + slope * (h - 500.0))
            y = np.where(rng.uniform(size=n) < p0, 0.0, rng.gamma(1.5, 2.0, n))
            if slope == 0.0:  # each value stands as low as high, so that there is none
                y, h = np.tile(y[: n // 2], 2), np.append(h[: n // 2], 1000.0 - h[: n // 2])
            law = zero_inflated(regress(family, on="h")).fit(y, h[:, None])
            assert law.parameters["logit p0 ~ h"] == pytest.approx(slope, abs=4 * 2.4e-4)
            assert law.parameters["h"] == pytest.approx(0.0, abs=4e-4)
            assert (law.zero_gain > 0.0) is (slope != 0.0)
            assert slope != 0.0 or law.zero_gain == pytest.approx(-2.0, abs=1e-3)
            one = zero_inflated(regress(family, on="h"), follows=False).fit(y, h[:, None])
            assert one.zero_slopes is None
            assert one.parameters["p0"] == pytest.approx(((y == 0.0).sum() + 0.5) / (n + 1.0))
            both = [each.at(h[:, None]).log_density(y).sum() for each in (law, one)]
            assert law.zero_gain == pytest.approx(2.0 * (both[0] - both[1]) - 2.0, abs=1e-3)

    def test_zeros_that_a_covariate_tells(self):
        """Where all zeros are low, the prior keeps the slope finite."""
        y = np.where(HEIGHT < -0.5, 0.0, RAIN + 0.1)
        law = regress(zero_inflated("gamma"), on="h").fit(y, HEIGHT[:, None])
        assert -12.0 < law.zero_slopes[0] < -3.0
        gradient = law.at(HEIGHT[:, None]).density_pullback(y) + law.log_prior()[1]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-4)

    def test_slopes_of_groups(self):
        """A slope for each group, or one for all; each group has its own probability."""
        y, rows = RAIN * np.exp(0.4 * HEIGHT), np.column_stack([MONTH, HEIGHT])
        each = by("month", regress(zero_inflated("gamma"), on="h")).fit(y, rows)
        one = regress(by("month", zero_inflated("gamma")), on="h").fit(y, rows)
        assert isinstance(one, Regression)
        assert (each.theta.size, one.theta.size) == (20, 14)
        shared = zero_inflated(by("month", regress("gamma", on="h"))).fit(y, rows)
        assert shared.theta.size == 13
        for law in (each, one):
            assert law.fields == ("month", "h")
            bound = law.at(rows)
            gradient = bound.density_pullback(y) + bound.log_prior()[1]
            np.testing.assert_allclose(gradient, 0.0, atol=2e-3)

    def test_smoothed_samples(self):
        """The values above zero are smoothed as positive ones are, with a trend as well."""
        law = zero_inflated("parzen").fit(RAIN, np.empty((400, 0)))
        assert law.base.logarithmic
        trend = zero_inflated(regress("parzen", on="h"))
        assert trend.fit(RAIN, HEIGHT[:, None]).support == (0.0, np.inf)


class TestRecipes:
    def test_names_and_fields(self):
        """A recipe is named as its law, and has the fields of what it is made of."""
        assert zero_inflated("gamma").name == "zero-inflated gamma"
        assert zero_inflated().name == "zero-inflated auto"
        assert zero_inflated(by("time.month", "gamma")).fields == ("time.month",)
        assert zero_inflated(by("time.month", "gamma")).keys == ("time.month",)
        assert by("time.month", zero_inflated("gamma")).name == "zero-inflated gamma by time.month"
        assert xcopula.zero_inflated is zero_inflated
        assert resolve(zero_inflated(Gamma)) == Inflate(Gamma)

    @pytest.mark.parametrize(
        ("recipe", "count"),
        [
            (zero_inflated(), 4),
            (by("k", zero_inflated("auto")), 4),
            (zero_inflated(regress("auto", on="h")), 4),
            (zero_inflated("gamma"), 1),
        ],
    )
    def test_candidates(self, recipe, count):
        """Families of positive values, each."""
        found = recipe.candidates()
        assert len(found) == count
        assert {r.family for r in found} <= {LogNormal, Exponential, Gamma, Parzen}
        assert all(r.includes_lower_end for r in found)
        for each in found:
            rows = np.column_stack([{"k": MONTH, "h": HEIGHT}[f] for f in each.fields] or [RAIN])
            law = each.fit(RAIN, rows[:, : len(each.fields)])
            assert law.atom == 0.0
            check_law(law)

    def test_an_instance(self):
        """It keeps its parameters, and starts from a probability."""
        law = zero_inflated(Gamma(2.0, 3.0), p0=0.1)
        assert isinstance(law, ZeroInflated)
        assert (law.base, law.p0) == (Gamma(2.0, 3.0), 0.1)
        assert zero_inflated(Gamma(2.0, 3.0)).p0 == 0.5
        assert resolve(law) is law

    @pytest.mark.parametrize(
        ("make", "error", "match"),
        [
            (lambda: zero_inflated("normal"), ValueError, "found 'normal'. Choose one of 'lognor"),
            (lambda: zero_inflated("weibull"), ValueError, "Unknown marginal 'weibull'"),
            (lambda: zero_inflated(3), TypeError, "zero_inflated needs a law: .* found int"),
            (lambda: zero_inflated("gamma", p0=0.3), ValueError, "`p0` is fitted.*Gamma"),
            (lambda: zero_inflated(zero_inflated("gamma")), ValueError, "cannot contain another"),
            (lambda: zero_inflated(by("k", zero_inflated())), ValueError, "cannot contain another"),
            (
                lambda: zero_inflated(regress("gamma", on="h", link="identity")),
                ValueError,
                "Give `regress` no `link`, or 'log'",
            ),
            (
                lambda: regress(zero_inflated("gamma"), on="h", link="identity"),
                ValueError,
                "would move the zeros.*Leave `link` out",
            ),
            (lambda: zero_inflated(Normal()), ValueError, "a law of positive values"),
        ],
    )
    def test_refusals(self, make, error, match):
        """What does not make sense is refused as it is written."""
        with pytest.raises(error, match=match):
            make()

    def test_the_link(self):
        """A trend is a factor, whatever the family's own link."""
        assert zero_inflated(regress("parzen", on="h")).link == "log"
        assert regress(zero_inflated("parzen"), on="h").link == "log"


class TestWithZeros:
    def test_families_and_recipes(self):
        """What is innermost gets the zeros, so that groups have a probability each."""
        assert with_zeros(Gamma) == zero_inflated("gamma")
        assert with_zeros(Normal) is None
        assert with_zeros(by("k", "gamma")) == by("k", zero_inflated("gamma"))
        assert with_zeros(regress("gamma", on="h")) == regress(zero_inflated("gamma"), on="h")
        assert with_zeros(regress("gamma", on="h", link="identity")) is None
        assert with_zeros(by("k", "t")) is None
        assert with_zeros(zero_inflated("gamma")) == zero_inflated("gamma")


class TestMessages:
    def test_values_below_zero(self):
        """They are counted, and what to do is said, in groups and trends as well."""
        y = np.where(np.arange(400) < 2, -0.1, RAIN)
        for recipe, rows in [
            (zero_inflated("gamma"), np.empty((400, 0))),
            (by("k", zero_inflated("gamma")), MONTH[:, None]),
            (regress(zero_inflated("gamma"), on="h"), HEIGHT[:, None]),
        ]:
            with pytest.raises(
                SupportError, match=r"needs non-negative values: 2 of 400 .*set them to 0"
            ):
                recipe.fit(y, rows)

    def test_zeros_under_a_law_without_them(self):
        """The message names the law that has them."""
        with pytest.raises(
            SupportError, match=r"gamma needs positive values.*`zero_inflated\('gamma'\)` gives"
        ):
            Gamma.fit(RAIN)

    def test_an_atom_elsewhere(self):
        """The value is named, and what to do about it; a few ties are none."""
        flow = np.append(np.full(17, 20.0), RNG.gamma(4.0, 10.0, 86) + 20.0)
        with pytest.raises(
            ValueError,
            match=r"17 of 103 are exactly 20, the smallest.*`censored=\{variable: 20\}`.*subtract",
        ):
            zero_inflated("gamma").fit(flow, np.empty((103, 0)))
        zero_inflated("gamma").fit(flow - 20.0, np.empty((103, 0)))
        zero_inflated("gamma").fit(flow[14:], np.empty((89, 0)))

    @pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [0.0, 2.0, 2.0]])
    def test_too_few_above_zero(self, values):
        """No law can be fitted to them."""
        with pytest.raises(ValueError, match=r"two different values above zero, found [01] in"):
            zero_inflated("gamma").fit(values, np.empty((3, 0)))

    def test_too_few_for_a_trend_or_a_group(self):
        """Values above zero are counted."""
        y = np.where(np.arange(400) % 80 == 0, RAIN + 1.0, 0.0)
        with pytest.raises(ValueError, match="at least 6 values above zero; found 5"):
            regress(zero_inflated("gamma"), on="h").fit(y, HEIGHT[:, None])
        with pytest.raises(ValueError, match=r"5 values above zero in each group.*1 \(0\)"):
            by("k", zero_inflated("gamma")).fit(y, MONTH[:, None])

    def test_a_law_of_ones_own_with_negative_values(self):
        """It is seen once it is fitted."""

        class Own(Normal):
            name = "own"

        with pytest.raises(SupportError, match=r"zero-inflated own: .* gives negative values"):
            zero_inflated(Own).fit(RAIN, np.empty((400, 0)))
