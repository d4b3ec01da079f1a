"""Laws of one's own: what the contract asks is asked once, and said in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr, ndtri

import xcopula
from xcopula.marginals import MARGINALS, Marginal, Normal, by, regress
from xcopula.marginals.checks import check_family, check_law
from xcopula.marginals.varying import Varying


class Logistic(Marginal):
    """A law with the members that are required, and a fit."""

    def __init__(self, location: float = 0.0, log_scale: float = 0.0) -> None:
        self.location, self.log_scale = location, log_scale

    @classmethod
    def fit(cls, values):
        return cls(float(np.mean(values)), float(np.log(np.std(values) / 1.8)))

    @property
    def theta(self):
        return np.array([self.location, self.log_scale])

    def with_theta(self, theta):
        return type(self)(*map(float, theta))

    def to_normal(self, y):
        return ndtri(expit((np.asarray(y, float) - self.location) / np.exp(self.log_scale)))

    def from_normal(self, z):
        return self.location + np.exp(self.log_scale) * logit(ndtr(np.asarray(z, float)))

    def log_density(self, y):
        u = (np.asarray(y, float) - self.location) / np.exp(self.log_scale)
        return -u - self.log_scale - 2.0 * np.log1p(np.exp(-u))


class Decreasing(Logistic):
    def to_normal(self, y):
        return -super().to_normal(y)

    def from_normal(self, z):
        return super().from_normal(-np.asarray(z))


class Elsewhere(Logistic):
    def to_normal(self, y):
        return super().to_normal(np.asarray(y) + 0.01)


class OneNumber(Logistic):
    def from_normal(self, z):
        return super().from_normal(z).sum()


class Overflowing(Logistic):
    def from_normal(self, z):
        return np.where(np.asarray(z) > 2.0, np.inf, super().from_normal(z))


class Unnormalised(Logistic):
    def log_density(self, y):
        return super().log_density(y) + 1.0


class NotFinite(Logistic):
    @property
    def theta(self):
        return np.array([self.location, np.nan])


class Table(Logistic):
    @property
    def theta(self):
        return np.array([[self.location, self.log_scale]])


class Nothing(Logistic):
    def with_theta(self, theta):
        return None


class Unfitted(Logistic):
    fit = Marginal.fit


BROKEN = {
    Decreasing: r"from_normal goes from .* to .* as the score grows.* It must increase",
    Elsewhere: r"to_normal\(from_normal\(.*\)\) is .*inverse of the other",
    OneNumber: r"from_normal returns shape \(\) for an array of shape \(25,\)",
    Overflowing: r"from_normal\(2\.25\) is inf.*finite value for every finite score",
    Unnormalised: r"log_density\(.*\) is .*, where to_normal has",
    NotFinite: r"its theta is array\(\[ ?0\., nan\]\)\. Give it a 1-D array of finite numbers",
    Table: r"its theta is array\(\[\[0\., 0\.\]\]\)",
    Nothing: r"with_theta returns None\. Return the law",
}


class TestLaws:
    def test_one_that_keeps_the_contract(self):
        """The members that are required are enough."""
        check_law(Logistic())
        check_law(Logistic(1e6, -9.0))

    @pytest.mark.parametrize("family", MARGINALS.values(), ids=MARGINALS)
    def test_our_own(self, family):
        """They would pass if they were looked at."""
        values = np.random.default_rng(1).gamma(2.0, 3.0, 60)
        law = family.fit(values)
        check_law(law)
        check_law(type("Own", (family,), {}).fit(values))

    @pytest.mark.parametrize("law", BROKEN, ids=lambda law: law.__name__)
    def test_broken(self, law):
        """What was found is said, and what to do."""
        with pytest.raises(ValueError, match=f"{law.__name__} is no law: {BROKEN[law]}"):
            check_law(law())

    @pytest.mark.parametrize("recipe", [regress(Decreasing, on="h"), by("k", Decreasing)])
    def test_broken_inside(self, recipe):
        """Of a law that varies, what it is made of is looked at."""
        values = np.random.default_rng(1).normal(size=20)
        rows = np.repeat([0.0, 1.0], 10)[:, None]
        with pytest.raises(ValueError, match="Decreasing is no law"):
            check_law(recipe.fit(values, rows))


class TestFamilies:
    def test_that_can_be_fitted(self):
        """Our own, and one's own with a fit."""
        for family in (*MARGINALS.values(), Logistic):
            check_family(family)

    @pytest.mark.parametrize(
        ("family", "match"),
        [
            (Marginal, r"Marginal is no law: it lacks .*with_theta\. Choose one of 'flexible'"),
            (Varying, r"Varying is fitted by a recipe\. Give `regress\(...\)`"),
            (xcopula.marginals.Grouped, "Grouped is fitted by a recipe"),
            (Unfitted, "Unfitted has no fit. Pass an instance"),
        ],
    )
    def test_that_cannot(self, family, match):
        """The class is named, and what to give instead."""
        with pytest.raises(TypeError, match=match):
            check_family(family)


class TestWhereTheyAreAsked:
    @pytest.mark.parametrize("law", [Decreasing(), Decreasing])
    def test_by_fit(self, sites, law):
        """An instance when it is given, a class when it has been fitted."""
        with pytest.raises(ValueError, match=r"'proxy'.*Decreasing is no law"):
            xcopula.fit(sites, "metal", "proxy", marginals={"metal": "normal", "proxy": law})

    @pytest.mark.parametrize("law", [Decreasing(), Decreasing])
    def test_by_compare(self, sites, law):
        """Before anything is compared."""
        with pytest.raises(ValueError, match="Decreasing is no law"):
            xcopula.compare(sites, "metal", kernels=["se"], marginals=[Normal, law])

    @pytest.mark.parametrize("law", [Marginal, regress(Marginal, on="x"), by("x", Marginal)])
    def test_the_base_class(self, sites, law):
        """It stands for no law, alone or in a recipe."""
        with pytest.raises(TypeError, match=r"'metal'.*Marginal is no law: it lacks"):
            xcopula.fit(sites, "metal", marginals=law)
