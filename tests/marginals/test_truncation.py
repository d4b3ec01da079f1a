"""Laws that are cut off at the ends of a support, against scipy and differences."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from xcopula.errors import SupportError
from xcopula.marginals import (
    GEV,
    Gamma,
    Marginal,
    Normal,
    Parzen,
    SinhArcsinh,
    StudentT,
    by,
    regress,
)
from xcopula.marginals.censored import Censored
from xcopula.marginals.truncation import Truncated
from xcopula.model.reading import CLASSES
from xcopula.state import put_together, take_apart

RNG = np.random.default_rng(5)
INF = np.inf
ROWS = np.column_stack([np.arange(60) % 2.0, RNG.normal(size=60)])
LAWS: dict[str, Marginal] = {
    "normal": Truncated(Normal(1.0, 2.0), 0.0),
    "both": Truncated(Normal(60.0, 30.0), 0.0, 100.0),
    "t": Truncated(StudentT(1.0, 2.0, 3.0), 0.0),
    "gev": Truncated(GEV(1.0, 2.0, 0.2), 0.0),
    "gev-ends": Truncated(GEV(1.0, 2.0, -0.3), 0.0, 5.0),
    "flexible": Truncated(SinhArcsinh(1.0, 2.0, 0.5, 0.8), 0.0),
    "gamma": Truncated(Gamma(2.0, 3.0), 0.0, 20.0),
    "below": Truncated(Normal(3.0, 1.0), -INF, 4.0),
    "far": Truncated(Normal(-3.0, 1.0), 0.0),
    "parzen": Truncated(Parzen.fit(RNG.normal(2.0, 1.0, 80)), 0.0),
}
every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


@every
def test_against_the_formula(law):
    """F is that of the base between the ends, rescaled; so is the density."""
    y = law.from_normal(np.linspace(-2.5, 2.5, 31))
    a, b = stats.norm.cdf(law.base.to_normal(np.array([law.lower, law.upper])))
    expected = (stats.norm.cdf(law.base.to_normal(y)) - a) / (b - a)
    np.testing.assert_allclose(stats.norm.cdf(law.to_normal(y)), expected, rtol=1e-9)
    density = law.base.log_density(y) - np.log(b - a)
    np.testing.assert_allclose(law.log_density(y), density, rtol=1e-9)
    z, h = np.linspace(-2.0, 2.0, 9), 1e-5
    slope = (law.from_normal(z + h) - law.from_normal(z - h)) / (2.0 * h)
    found = law.log_density(law.from_normal(z))
    np.testing.assert_allclose(found, stats.norm.logpdf(z) - np.log(slope), atol=1e-4)


@every
def test_round_trip_and_ends(law):
    """Scores survive between -6 and 6; infinite ones are the ends; NaN stays NaN."""
    z = np.linspace(-6.0, 6.0, 81)
    np.testing.assert_allclose(law.to_normal(law.from_normal(z)), z, atol=2e-7)
    np.testing.assert_allclose(law.from_normal([[np.nan, -INF, INF]]), [[np.nan, *law.support]])
    low, high = law.support
    outside = [v for v in (low - 1.0, high + 1.0) if np.isfinite(v)]
    assert np.isinf(law.to_normal(outside)).all()
    np.testing.assert_array_equal(law.log_density(outside), -INF)
    assert law.to_normal(1.0).shape == law.from_normal(0.3).shape == ()


@settings(max_examples=40, deadline=None)
@given(z=st.floats(-5.0, 5.0), location=st.floats(-2.0, 6.0))
def test_truncated_normal(z, location):
    """Scipy's truncated normal law has the same probabilities."""
    law = Truncated(Normal(location, 1.5), 0.0)
    known = stats.truncnorm(-location / 1.5, INF, location, 1.5)
    y = float(law.from_normal(z))
    assert known.cdf(y) == pytest.approx(stats.norm.cdf(z), rel=1e-6, abs=1e-9)
    assert float(law.log_density(y)) == pytest.approx(known.logpdf(y), rel=1e-6, abs=1e-8)


VARYING = {
    "regression": (regress("normal", on="h"), ROWS[:, 1:]),
    "groups": (by("k", "t"), ROWS[:, :1]),
    "both": (regress(by("k", "gev"), on="h"), ROWS),
}


@pytest.mark.parametrize("case", [*LAWS, *(f"of {name}" for name in VARYING)])
def test_sensitivity_and_pullbacks(case):
    """Derivatives equal differences, and their sums equal the pullbacks."""
    if case in LAWS:
        law = LAWS[case]
    else:
        recipe, rows = VARYING[case.removeprefix("of ")]
        y = np.abs(RNG.normal(2.0, 1.0, 60)) + 0.05
        law = Truncated(recipe.fit(y, rows), 0.0).at(rows)
    y = law.from_normal(np.linspace(-4.0, 4.0, 60))
    weights = np.linspace(-1.0, 2.0, 60)
    pulls = (law.score_pullback, law.density_pullback)
    for got, method, pull in zip(
        law.sensitivity(y), ("to_normal", "log_density"), pulls, strict=True
    ):
        np.testing.assert_allclose(
            got, reference.by_theta(law, method, y, 1e-4), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(pull(y, weights), weights @ got, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(pull(y), got.sum(axis=0), rtol=1e-8, atol=1e-9)


@every
def test_the_rest_is_the_base(law):
    """Parameters, bounds and prior are those of the law that is cut off."""
    assert law.parameters == law.base.parameters
    np.testing.assert_array_equal(law.theta, law.base.theta)
    np.testing.assert_array_equal(law.bounds, law.base.bounds)
    assert law.log_prior()[0] == law.base.log_prior()[0]
    assert law.dof == law.base.dof
    assert law.parts == law.base.parts
    assert law.tail_index == (
        0.0 if np.isfinite([law.lower, law.upper]).all() else law.base.tail_index
    )
    again = put_together(take_apart(law, lambda kind: kind.__name__), CLASSES)
    assert repr(again) == repr(law)


def test_names():
    """They say where the law ends."""
    assert [LAWS[k].name for k in ("normal", "both", "below")] == [
        "normal above 0",
        "normal between 0 and 100",
        "normal below 4",
    ]
    recipe, rows = VARYING["groups"]
    assert Truncated(recipe.fit(RNG.normal(size=60), rows), 0.0).name == "t by k above 0"


class TestMessages:
    def test_values_outside(self):
        """They are counted, and what to do is said."""
        with pytest.raises(
            SupportError, match=r"rh: normal between 0 and 100 needs values between 0 and 100: 2 of"
        ):
            LAWS["both"].check_support([101.0, 50.0, -1.0], "rh")
        with pytest.raises(SupportError, match=r"'100 or more', name the limit by `censored=`"):
            LAWS["both"].check_support([101.0])
        with pytest.raises(SupportError, match=r"State a wider `support`.*`censored=`"):
            LAWS["both"].check_support([-1.0])

    @pytest.mark.parametrize(
        ("make", "error", "match"),
        [
            (lambda: Truncated(Normal(), 1.0, 1.0), ValueError, "lower end must be below"),
            (lambda: Truncated(Censored(Normal()), 0.0, 9.0), ValueError, "with an atom"),
            (lambda: Truncated.fit([1.0]), NotImplementedError, "State `support=`"),
        ],
    )
    def test_refusals(self, make, error, match):
        """What cannot be cut off is refused."""
        with pytest.raises(error, match=match):
            make()
