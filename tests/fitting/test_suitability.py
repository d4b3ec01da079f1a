"""Which laws suit a variable: the rules for zeros and for positive values."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtri

import xcopula
from xcopula.errors import SupportError
from xcopula.fitting.suitability import (
    begin_law,
    check_values,
    has_zeros,
    stays_positive,
    suited,
    within,
)
from xcopula.marginals import (
    GEV,
    MARGINALS,
    Gamma,
    Normal,
    Parzen,
    StudentT,
    by,
    regress,
    zero_inflated,
)
from xcopula.marginals.truncation import Truncate, Truncated
from xcopula.process import Sample

INF = np.inf
RNG = np.random.default_rng(1)
QUICK = {"kernels": "matern32", "restarts": 0, "anisotropy": False, "uncertainty": "plugin"}


def sample_of(values, limits=None) -> Sample:
    """Return a sample of one task."""
    values = np.asarray(values, float)
    places = np.arange(values.size, dtype=float)[:, None]
    return Sample.of([places], [values], limits=None if limits is None else [limits])


def some(count: int, zeros: int) -> Sample:
    """Return a sample of positive values and some zeros."""
    return sample_of(np.append(np.zeros(zeros), RNG.gamma(2.0, 3.0, count - zeros)))


class TestZeros:
    @pytest.mark.parametrize(
        ("sample", "support", "expected"),
        [
            (some(60, 0), None, False),
            (some(60, 2), None, False),
            (some(60, 3), None, True),
            (sample_of([0.0, 0.0, 0.0, 1.0, -0.2]), None, False),
            (some(60, 1), (0.0, INF), True),
            (some(60, 0), (0.0, INF), False),
            (some(60, 9), (-INF, INF), False),
            (some(60, 9), (-5.0, INF), False),
        ],
    )
    def test_rule(self, sample, support, expected):
        """Three zeros and no negative value, or one zero at the end of a stated support."""
        assert has_zeros(sample, support) is expected

    def test_intervals_are_no_zeros(self):
        """Values below a limit are none, whatever stands in their place."""
        values = np.append(np.zeros(5), RNG.gamma(2.0, 3.0, 20))
        limits = np.stack([values, values])
        limits[:, :5] = [[-INF], [0.2]]
        assert has_zeros(sample_of(values), None)
        assert not has_zeros(sample_of(values, limits), None)

    def test_laws(self):
        """Families of positive values get zeros, others are passed over; recipes as well."""
        sample = some(60, 8)
        found = {name: suited(law, sample, None) for name, law in MARGINALS.items()}
        passed_over = {name for name, law in found.items() if law is None}
        assert passed_over == {"normal", "gev", "t"}
        assert found["gamma"] == zero_inflated("gamma")
        assert suited(by("k", "gamma"), sample, None) == by("k", zero_inflated("gamma"))
        assert suited(regress("t", on="h"), sample, None) is None
        assert suited(Gamma, some(60, 0), None) is Gamma


class TestSupport:
    def test_stated(self):
        """Laws are cut off there; an instance too, if it needs to be."""
        sample = some(60, 0)
        assert suited(Normal, sample, (0.0, INF)) == Truncate(Normal, 0.0, INF)
        assert suited(Normal, sample, (-INF, INF)) is Normal
        assert isinstance(suited(Normal(5.0, 2.0), sample, (0.0, INF)), Truncated)
        law = Gamma(2.0, 3.0)
        assert suited(law, sample, (0.0, INF)) is law
        assert suited(law, sample, None) is law
        assert suited(Gamma, some(60, 1), (0.0, INF)) == Truncate(zero_inflated("gamma"), 0.0, INF)

    @pytest.mark.parametrize("units", ["degC", "°C", "celsius", "Degrees_Celsius", "degF"])
    def test_an_arbitrary_zero(self, units):
        """The zero of a temperature in degrees is a convention, unless something is stated."""
        assert within(None, {"units": units}) == (-INF, INF)
        assert within((0.0, INF), {"units": units}) == (0.0, INF)
        assert within(None, {"units": "mm"}) is within(None, {}) is None

    def test_values_outside(self):
        """They are counted and shown; what to do is said."""
        with pytest.raises(
            SupportError,
            match=r"`support` of 'rh' is from 0 to 100, but 2 of 3 values lie outside "
            r"\(first: -1, 101\)\. Mask them, or state a wider one",
        ):
            check_values(sample_of([-1.0, 50.0, 101.0]), (0.0, 100.0), "rh")
        check_values(sample_of([0.0, 50.0, 100.0]), (0.0, 100.0), "rh")


class TestPositive:
    @pytest.mark.parametrize(("ratio", "kept"), [(2.0, False), (3.0, False), (3.2, True)])
    def test_a_hair(self, ratio, kept):
        """A normal law stays if its mean is more than 3.1 standard deviations above zero."""
        law = Normal(5.0 * ratio, 5.0)
        assert stays_positive(law, some(60, 0), None) is kept

    def test_who_is_judged(self):
        """Not where a value is zero or negative, where the support is stated, or a law is safe."""
        law = Normal(1.0, 1.0)
        assert not stays_positive(law, some(60, 0), None)
        assert stays_positive(law, some(60, 1), None)
        assert stays_positive(law, sample_of([-1.0, 2.0, 3.0]), None)
        assert stays_positive(law, some(60, 0), (-INF, INF))
        for family in (Gamma, Parzen):
            assert stays_positive(family.fit(some(60, 0).values), some(60, 0), None)

    def test_rows(self):
        """The mean over rows counts, of a law that varies with them."""
        sample = some(60, 0)
        rows = np.linspace(-1.0, 1.0, 60)[:, None]
        law = regress("normal", on="h").fit(sample.values, rows).at(rows)
        assert not stays_positive(law, sample, None)

    @pytest.mark.parametrize("family", [Normal, GEV, StudentT])
    def test_temperatures_and_rain(self, family):
        """All values are positive in both: a temperature keeps its laws, rain does not."""
        rng = np.random.default_rng(3)
        warm, rain = rng.normal(20.0, 4.0, 100), rng.gamma(1.5, 4.0, 100)
        assert warm.min() > 0.0
        assert stays_positive(family.fit(warm), sample_of(warm), None)
        assert not stays_positive(family.fit(rain), sample_of(rain), None)


class TestBegin:
    def test_open_laws_stay_open(self):
        """They are chosen later; values outside the support are refused now."""
        sample = some(60, 0)
        assert begin_law(None, sample, {}, None, "rain") is None
        assert begin_law(by("k", "auto"), sample, {}, None, "rain") == by("k", "auto")
        with pytest.raises(SupportError, match="`support` of 'rain'"):
            begin_law(None, sample, {}, (0.0, 1.0), "rain")

    def test_laws_that_were_asked_for(self):
        """They are fitted, cut off where it was stated, from intervals where there are any."""
        sample = some(60, 0)
        assert begin_law(Gamma, sample, {}, None, "rain") == Gamma.fit(sample.values)
        assert begin_law(Normal, sample, {}, (0.0, INF), "rain").support == (0.0, INF)
        law = begin_law(Normal(5.0, 9.0), sample, {}, (0.0, INF), "rain")
        assert (law.base, law.lower) == (Normal(5.0, 9.0), 0.0)
        limits = np.stack([sample.values] * 2)
        hidden = sample.values < 3.0
        limits[:, hidden] = [[-INF], [3.0]]
        found = begin_law(
            Gamma, sample_of(np.where(hidden, 3.0, sample.values), limits), {}, None, "Cd"
        )
        np.testing.assert_allclose(found.theta, Gamma.fit(sample.values).theta, atol=0.5)

    @pytest.mark.parametrize(
        ("law", "values", "support", "match"),
        [
            (Gamma, [0.0, 1.0, 2.0], None, r"'rain'.*`zero_inflated\('gamma'\)` gives zero"),
            (Gamma(), [-1.0, 1.0, 2.0], None, "rain: gamma needs positive values: 1 of 3"),
            (zero_inflated("gamma"), [-1.0, 1.0, 0.0], None, "'rain'.*set them to 0"),
            (Normal, [100.0, 1.0, 2.0], (0.0, 100.0), r"'rain': 1 of 3 values.*`censored="),
            (zero_inflated("gamma"), [0.0, 1.0, 2.0], (0.0, 9.0), "'rain'.*cannot be cut off at 9"),
        ],
    )
    def test_refusals(self, law, values, support, match):
        """The variable is named, and what to do is said."""
        with pytest.raises(ValueError, match=match):
            begin_law(law, sample_of(values), {}, support, "rain")


def field(draw, seed: int = 0, count: int = 70) -> xr.Dataset:
    """Return a smooth field of values with the quantiles of a draw."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.0, 10.0, (2, count))
    z = np.sin(x) + np.cos(0.7 * y) + 0.5 * rng.normal(size=count)
    ranks = (np.argsort(np.argsort(z)) + 0.5) / count
    return xr.Dataset({"v": ("site", draw(ranks))}, {"x": ("site", x), "y": ("site", y)})


def rain(p):
    return Gamma(1.5, 4.0).from_normal(ndtri(p))


class TestWhole:
    def test_rain_keeps_a_law_of_positive_values(self):
        """Nothing that was tried reaches below zero, and no quantile is negative."""
        ds = field(rain)
        model = xcopula.fit(ds, "v", **QUICK)
        tried = {str(name) for name in model.selection["marginal"].values}
        assert tried <= {"lognormal", "exponential", "gamma", "parzen"}
        assert float(model.predict(ds, quantiles=[0.01])["v"].min()) > 0.0

    def test_temperatures_in_degrees_keep_all(self):
        """Units say that zero is a convention."""
        ds = field(rain)
        ds["v"].attrs["units"] = "degC"
        model = xcopula.fit(ds, "v", **QUICK)
        assert {"normal", "t", "gev"} <= {str(n) for n in model.selection["marginal"].values}

    def test_a_stated_support(self):
        """The law is cut off at both ends, and predictions stay between them."""
        ds = field(lambda p: 100.0 * p**0.5)
        model = xcopula.fit(ds, "v", marginals="normal", support={"v": (0, 100)}, **QUICK)
        assert model.marginals["v"].name == "normal between 0 and 100"
        found = model.predict(ds, quantiles=[0.001, 0.999])["v"]
        assert float(found.min()) >= 0.0
        assert float(found.max()) <= 100.0
        assert "normal between 0 and 100" in model.summary()

    def test_compare_with_a_support(self):
        """Laws that reach beyond are cut off, and stand under their own names."""
        found = xcopula.compare(
            field(rain, count=40),
            "v",
            kernels=["se"],
            marginals=["normal", "gamma"],
            support=(0, None),
        )
        free = xcopula.compare(field(rain, count=40), "v", kernels=["se"], marginals=["normal"])
        assert np.isfinite(found["aic"]).all()
        assert found["aic"].sel(marginal="normal").item() < free["aic"].item()

    def test_zeros_as_they_are(self):
        """Laws with zeros are chosen and named; dry places are exactly zero, none is below."""
        ds = field(lambda p: np.where(p < 0.3, 0.0, rain(np.clip((p - 0.3) / 0.7, 1e-9, 1.0))))
        zeros = int((ds["v"] == 0.0).sum())
        model = xcopula.fit(ds, "v", **QUICK)
        law = model.marginals["v"]
        assert law.atom == 0.0
        assert law.p0 == pytest.approx(0.3, abs=0.15)
        assert all("zero-inflated" in str(name) for name in model.selection["marginal"].values)
        expected = (
            f"v is 0 in {zeros} of {ds.sizes['site']} values: that has a probability of its own"
        )
        assert expected in model.summary()
        grid = xr.Dataset(coords={"x": np.linspace(0.0, 10.0, 12), "y": np.linspace(0.0, 10.0, 12)})
        found = model.predict(grid, quantiles=[0.05, 0.5])["v"]
        assert float(found.min()) == 0.0
        assert (found == 0.0).sel(quantile=0.05).sum() > (found == 0.0).sel(quantile=0.5).sum() > 0
