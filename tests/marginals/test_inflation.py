"""Laws with an atom at zero, against brute force and differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from xcopula.errors import SupportError
from xcopula.marginals import (
    Exponential,
    Gamma,
    LogNormal,
    Marginal,
    Normal,
    Parzen,
    ZeroInflated,
    by,
    regress,
    zero_inflated,
)
from xcopula.marginals.truncation import Truncated
from xcopula.model.reading import CLASSES
from xcopula.state import put_together, take_apart

RNG = np.random.default_rng(5)
POSITIVE = RNG.gamma(2.0, 3.0, 120)
ROWS = np.column_stack([np.arange(120) % 3, RNG.normal(size=120)])

LAWS: dict[str, Marginal] = {
    "gamma": ZeroInflated(Gamma(0.7, 3.0), 0.3),
    "rare": ZeroInflated(Gamma(2.0, 3.0), 1e-3),
    "mostly": ZeroInflated(LogNormal(1.0, 0.8), 0.97),
    "half": ZeroInflated(Exponential(2.0), 0.5),
    "parzen": ZeroInflated(Parzen.fit(POSITIVE), 0.2),
}
VARYING: dict[str, Marginal] = {
    "by": by("k", zero_inflated("gamma")).fit(
        np.where(RNG.uniform(size=120) < 0.2, 0.0, POSITIVE), ROWS[:, :1]
    ),
    "of groups": zero_inflated(by("k", "lognormal")).fit(
        np.where(RNG.uniform(size=120) < 0.2, 0.0, POSITIVE), ROWS[:, :1]
    ),
    "of a regression": zero_inflated(regress("gamma", on="h")).fit(
        np.where(RNG.uniform(size=120) < 0.2, 0.0, POSITIVE), ROWS[:, 1:]
    ),
    "regression": regress(zero_inflated("gamma"), on="h").fit(
        np.where(RNG.uniform(size=120) < 0.2, 0.0, POSITIVE), ROWS[:, 1:]
    ),
    "regression of groups": regress(by("k", zero_inflated("exponential")), on="h").fit(
        np.where(RNG.uniform(size=120) < 0.2, 0.0, POSITIVE), ROWS
    ),
}
BOUND = {
    name: law.at(
        ROWS[:, {"k": [0], "h": [1]}.get(law.fields[0]) if len(law.fields) == 1 else [0, 1]]
    )
    for name, law in VARYING.items()
}

every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def threshold(law: ZeroInflated) -> float:
    """Return the largest score of zero, independently."""
    return float(stats.norm.ppf(law.p0))


@every
def test_against_the_formula(law):
    """F is p0 + (1 - p0) G, and so is its inverse."""
    y = law.base.from_normal(np.linspace(-3.0, 3.0, 41))
    expected = law.p0 + (1.0 - law.p0) * stats.norm.cdf(law.base.to_normal(y))
    np.testing.assert_allclose(stats.norm.cdf(law.to_normal(y)), expected, rtol=1e-12)
    np.testing.assert_allclose(law.from_normal(law.to_normal(y)), y, rtol=1e-7)


@every
def test_the_atom(law):
    """Zero has the largest of its scores, and all up to it are mapped to zero."""
    top = law.to_normal(0.0)
    assert law.atom == 0.0
    assert top == pytest.approx(threshold(law), rel=1e-13)
    assert law.log_density(0.0) == pytest.approx(np.log(law.p0), rel=1e-14)
    np.testing.assert_array_equal(law.from_normal([-np.inf, -30.0, top - 1e-9, top]), 0.0)
    assert law.from_normal(top + 1e-3) > 0.0
    assert law.to_normal_slope(0.0) == law.log_density_slope(0.0) == 0.0


@every
def test_ends_nan_and_shapes(law):
    """NaN stays NaN, negative values have no score, shapes are kept."""
    found = law.to_normal([[np.nan, -1.0, np.inf]])
    np.testing.assert_array_equal(found, [[np.nan, -np.inf, np.inf]])
    np.testing.assert_array_equal(law.from_normal([[np.nan, np.inf]]), [[np.nan, np.inf]])
    np.testing.assert_array_equal(law.log_density([-1.0, np.inf, -np.inf]), -np.inf)
    assert np.isnan(law.log_density(np.nan))
    assert law.from_normal(1.0).shape == law.to_normal(1.0).shape == ()
    assert law.support == (0.0, np.inf)


@every
def test_round_trip_far_out(law):
    """Scores above the threshold survive, next to it and far into the upper tail."""
    low = float(law.to_normal(0.0))
    z = np.concatenate([low + np.geomspace(1e-6, 1.0, 30), np.linspace(low + 1.1, 30.0, 60)])
    np.testing.assert_allclose(law.to_normal(law.from_normal(z)), z, rtol=1e-9, atol=1e-12)
    assert (np.diff(law.from_normal(z)) > 0.0).all()


@settings(max_examples=60, deadline=None)
@given(
    z=st.floats(-8.0, 8.0),
    p0=st.floats(1e-6, 1.0 - 1e-6),
    shape=st.floats(0.3, 20.0),
)
def test_round_trip_anywhere(z, p0, shape):
    """Scores above the threshold come back; the others come back as the threshold."""
    law = ZeroInflated(Gamma(shape, 2.0), p0)
    back, top = law.to_normal(law.from_normal(z)), law.to_normal(0.0)
    assert back == pytest.approx(max(z, float(top)), rel=1e-8, abs=1e-8)


@every
def test_density_and_atom_add_up_to_one(law):
    """The density above zero, and the probability of zero."""
    knots = law.from_normal(np.linspace(float(law.to_normal(0.0)), 6.5, 40))
    total = sum(
        quad(lambda y: float(np.exp(law.log_density(y))), max(a, 1e-300), b, limit=400)[0]
        for a, b in itertools.pairwise(knots)
    )
    assert total + np.exp(law.log_density(0.0)) == pytest.approx(1.0, abs=1e-6)


@every
def test_sensitivity(law):
    """Derivatives equal differences, at zero, next to it, and far out."""
    top = float(law.to_normal(0.0))
    y = np.append(0.0, law.from_normal(np.linspace(top + 1e-3, 12.0, 40)))
    for got, method in zip(law.sensitivity(y), ("to_normal", "log_density"), strict=True):
        np.testing.assert_allclose(got, reference.by_theta(law, method, y), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", VARYING)
def test_sensitivity_of_rows(name):
    """So do those of laws that vary from row to row; zeros are among their values."""
    law = BOUND[name]
    z = RNG.normal(size=120)
    y = law.from_normal(z)
    assert 5 < (y == 0.0).sum() < 60
    for got, method in zip(law.sensitivity(y), ("to_normal", "log_density"), strict=True):
        np.testing.assert_allclose(got, reference.by_theta(law, method, y), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("law", [*LAWS.values(), *BOUND.values()], ids=[*LAWS, *BOUND])
def test_pullbacks(law):
    """Sums over values equal those of the derivatives, with weights and without."""
    y = law.from_normal(np.random.default_rng(1).normal(size=120))
    weights = np.linspace(-1.0, 2.0, 120)
    for each, pullback in zip(
        law.sensitivity(y), (law.score_pullback, law.density_pullback), strict=True
    ):
        np.testing.assert_allclose(pullback(y, weights), weights @ each, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(pullback(y), each.sum(axis=0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("law", [*LAWS.values(), *VARYING.values()], ids=[*LAWS, *VARYING])
def test_theta_and_prior(law):
    """Free parameters rebuild the law, lie within bounds, and have a smooth prior."""
    again = law.with_theta(law.theta)
    np.testing.assert_allclose(again.theta, law.theta, rtol=1e-12, atol=1e-12)
    assert ((law.bounds[:, 0] <= law.theta) & (law.theta <= law.bounds[:, 1])).all()
    assert law.dof >= law.theta.size
    assert law.parts[-1].stop <= law.theta.size
    value, gradient = law.log_prior()
    for k, unit in enumerate(np.eye(law.theta.size)):
        above, below = (law.with_theta(law.theta + s * 1e-5 * unit).log_prior()[0] for s in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-5, abs=1e-6)
    assert np.isfinite(value)


def test_far_theta():
    """A probability that rounds to 1 or 0 stays one that has a logarithm."""
    law = LAWS["gamma"]
    for logit in (-800.0, 800.0):
        moved = law.with_theta([*law.base.theta, logit])
        assert 0.0 < moved.p0 < 1.0
        assert np.isfinite(moved.log_density([0.0, 1.0])).all()


@pytest.mark.parametrize("name", ["regression", "regression of groups"])
def test_the_trend_leaves_the_atom(name):
    """A factor moves the values above zero; zero stays, and its log odds have their own slope."""
    law, other = BOUND[name], BOUND["of a regression"]
    np.testing.assert_array_equal(law.from_normal(np.full(120, -5.0)), 0.0)
    p0 = np.exp(law.log_density(np.zeros(120)))
    h = (ROWS[:, 1] - ROWS[:, 1].mean()) / ROWS[:, 1].std()
    if name == "regression":
        level = law.parameters["p0"]
    else:
        level = np.array([law.parameters[f"p0[{k}]"] for k in range(3)])[ROWS[:, 0].astype(int)]
    expected = stats.logistic.ppf(level) + law.zero_slopes[0] * h
    np.testing.assert_allclose(stats.logistic.ppf(p0), expected, rtol=1e-10)
    np.testing.assert_allclose(stats.norm.cdf(law.to_normal(np.zeros(120))), p0, rtol=1e-10)
    assert abs(law.zero_slopes[0]) > 0.01
    assert law.atom == other.atom == VARYING["by"].atom == 0.0
    assert Normal().atom is regress("gamma", on="h").fit(POSITIVE, ROWS[:, 1:]).atom is None


@pytest.mark.parametrize("logit", [-900.0, -50.0, 50.0, 900.0])
def test_odds_far_out(logit):
    """Odds beyond what a probability can tell from 0 or 1 have scores and derivatives."""
    law = LAWS["gamma"].tilted(np.full(3, logit))
    y = np.array([0.0, 1.0, 4.0])
    assert np.isfinite(law.log_density(y)).all()
    assert not any(np.isnan(each).any() for each in law.sensitivity(y))
    found = law.from_normal(np.array([-3.0, 0.0, 3.0]))
    alone = LAWS["gamma"].base.from_normal([-3.0, 0.0, 3.0])
    np.testing.assert_allclose(found, 0.0 if logit > 0 else alone, rtol=1e-9)


def test_a_row_without_a_law():
    """A row whose covariate is NaN is NaN, also at zero."""
    law = VARYING["of a regression"].at([[0.3], [np.nan]])
    for method in (law.to_normal, law.log_density):
        assert np.isnan(method(np.zeros(2))).tolist() == [False, True]
    assert np.isnan(law.from_normal([-3.0, -3.0])).tolist() == [False, True]
    assert np.isnan(law.ends()[0]).tolist() == [False, True]


def test_names_and_parameters():
    """The probability has its natural name, and comes first."""
    law = LAWS["half"]
    assert law.name == "zero-inflated exponential"
    assert law.parameters == {"p0": 0.5, "scale": 2.0}
    assert VARYING["by"].name == "zero-inflated gamma by k"
    assert {"p0[0]", "p0[1]", "p0[2]"} <= set(VARYING["by"].parameters)
    assert law.tail_index == 0.0
    assert LAWS["parzen"].tail_index == LAWS["parzen"].base.tail_index
    assert repr(law) == "ZeroInflated(base=Exponential(scale=2.0), p0=0.5)"
    slopes = VARYING["regression"].parameters
    assert slopes["logit p0 ~ h"] == VARYING["regression"].zero_slopes[0] / ROWS[:, 1].std()
    with pytest.raises(NotImplementedError, match="no atom whose odds"):
        Truncated(Normal(), 0.0).tilted(np.zeros(2))
    with pytest.raises(NotImplementedError, match="no atom whose odds"):
        Truncated(Normal(), 0.0).by_tilt("to_normal_gradient", np.zeros(2))


@pytest.mark.parametrize("law", [*LAWS.values(), *VARYING.values()], ids=[*LAWS, *VARYING])
def test_saving(law):
    """A law that is taken apart and put together is the same to the last bit."""
    again = put_together(take_apart(law, lambda kind: kind.__name__), CLASSES)
    assert type(again) is type(law)
    np.testing.assert_array_equal(again.theta, law.theta)
    if not law.fields:
        y = law.from_normal(np.linspace(-2.0, 4.0, 50))
        np.testing.assert_array_equal(again.to_normal(y), law.to_normal(y))


def test_values_below_zero():
    """They are counted, and what to do is said."""
    with pytest.raises(SupportError) as caught:
        LAWS["gamma"].check_support([0.0, 1.0, -0.2, -3.0, np.nan], "ppt")
    assert str(caught.value).startswith(
        "ppt: zero-inflated gamma needs non-negative values: 2 of 5 are not (first: -0.2, -3.0). "
        "If they are the noise of an instrument about zero, set them to 0. If not, choose"
    )
    LAWS["gamma"].check_support([0.0, 1.0])


@pytest.mark.parametrize(
    ("base", "p0", "error", "match"),
    [
        (Normal(), 0.2, ValueError, "a law of positive values without an atom, found 'normal'"),
        (LAWS["gamma"], 0.2, ValueError, "without an atom, found 'zero-inflated gamma'"),
        ("gamma", 0.2, TypeError, "the base must be a Marginal, found 'gamma'"),
        (Gamma(), 0.0, ValueError, "between 0 and 1, found 0.0"),
        (Gamma(), 1.0, ValueError, "between 0 and 1, found 1.0"),
        (Gamma(), np.nan, ValueError, "between 0 and 1, found nan"),
        (Gamma(), True, TypeError, "p0 must be a number, found True"),
        (Gamma(), "0.3", TypeError, "p0 must be a number, found '0.3'"),
    ],
)
def test_refusals(base, p0, error, match):
    """A base that is no law of positive values, and a p0 that is no probability."""
    with pytest.raises(error, match=match):
        ZeroInflated(base, p0)


def test_it_has_no_fit():
    """The class alone does not say what the values above zero follow."""
    with pytest.raises(NotImplementedError, match=r"zero_inflated\('gamma'\)"):
        ZeroInflated.fit(POSITIVE)
