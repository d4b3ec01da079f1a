"""A marginal that is seen as its limit below it: against formulas, differences and draws."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy import stats

from xcopula.errors import SupportError
from xcopula.marginals import GEV, Marginal, Normal, Parzen, SinhArcsinh, StudentT, by, regress
from xcopula.marginals.censored import Censored
from xcopula.marginals.truncation import Truncated
from xcopula.model.reading import CLASSES
from xcopula.state import put_together, take_apart

RNG = np.random.default_rng(5)
INF = np.inf
N = 60
ROWS = {"k": np.arange(N) % 3.0, "h": RNG.normal(size=N)}
LATENT = RNG.normal(1.0, 2.0, N) + ROWS["h"]


def vary(recipe) -> Marginal:
    """Return a law that varies, fitted and bound to the rows."""
    table = np.column_stack([ROWS[name] for name in recipe.fields])
    return Censored(recipe.fit(LATENT, table)).at(table)


LAWS: dict[str, Marginal] = {
    "normal": Censored(Normal(1.0, 2.0)),
    "elsewhere": Censored(Normal(1.0, 2.0), -1.5),
    "flexible": Censored(SinhArcsinh(0.5, 2.0, 0.4, 0.8)),
    "t": Censored(StudentT(1.0, 2.0, 3.0)),
    "gev": Censored(GEV(1.0, 2.0, 0.2)),
    "cut": Censored(Truncated(Normal(3.0, 4.0), upper=9.0)),
    "rare": Censored(Normal(8.0, 1.0)),  # an atom of 6e-16
    "common": Censored(Normal(-8.0, 1.0)),
    "regression": vary(regress("normal", on="h")),
    "groups": vary(by("k", "flexible")),
    "both": vary(regress(by("k", "normal"), on="h")),
}
every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def values_of(law: Marginal) -> np.ndarray:
    """Return values at the limit and above it, N of them."""
    ends = law.base.to_normal(np.full(N, law.lower))
    z = np.maximum(ends, -6.0) + np.linspace(0.0, 3.0, N)
    return np.where(np.arange(N) % 4, law.from_normal(z), law.lower)


@every
def test_against_the_formula(law):
    """F is that of the base from the limit on, with an atom there, and zero below."""
    y = values_of(law)
    np.testing.assert_array_equal(law.to_normal(y), law.base.to_normal(y))
    above = y > law.lower
    assert 10 < above.sum() < N - 10
    np.testing.assert_array_equal(law.log_density(y)[above], law.base.log_density(y)[above])
    atom = stats.norm.logcdf(law.base.to_normal(np.full(N, law.lower)))
    np.testing.assert_allclose(law.log_density(y)[~above], atom[~above], rtol=1e-12)
    below = np.full(N, law.lower - 0.1)
    np.testing.assert_array_equal(law.to_normal(below), -INF)
    np.testing.assert_array_equal(law.log_density(below), -INF)
    assert law.atom == law.lower == law.support[0]


@every
def test_quantiles(law):
    """The limit for all scores up to its own, then those of the base; its ends and NaN."""
    end = law.base.to_normal(np.full(N, law.lower))
    for step in (-INF, -3.0, -1e-9):
        np.testing.assert_array_equal(law.from_normal(end + step), law.lower)
    z = np.maximum(end + 0.5, -6.0)
    np.testing.assert_array_equal(law.from_normal(z), law.base.from_normal(z))
    np.testing.assert_allclose(law.to_normal(law.from_normal(z)), z, atol=1e-9)
    assert np.isnan(law.from_normal(np.full(N, np.nan))).all()
    assert np.isnan(law.to_normal(np.full(N, np.nan))).all()
    assert np.isnan(law.log_density(np.full(N, np.nan))).all()
    low, high = law.ends()
    np.testing.assert_array_equal(low, law.lower)
    np.testing.assert_array_equal(high, law.base.ends()[1])


@every
def test_sensitivity_and_pullbacks(law):
    """Derivatives equal differences, at the limit too; their sums equal the pullbacks."""
    y, weights = values_of(law), np.linspace(-1.0, 2.0, N)
    pulls = (law.score_pullback, law.density_pullback)
    for got, method, pull in zip(
        law.sensitivity(y), ("to_normal", "log_density"), pulls, strict=True
    ):
        expected = reference.by_theta(law, method, y, 1e-4)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pull(y, weights), weights @ got, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pull(y), got.sum(axis=0), rtol=1e-9, atol=1e-9)


@every
def test_slopes(law):
    """By the value they are those of the base above the limit, and nothing at it."""
    y = values_of(law)
    above = y > law.lower
    for method in ("to_normal_slope", "log_density_slope"):
        found = getattr(law, method)(y)
        np.testing.assert_array_equal(found[above], getattr(law.base, method)(y)[above])
        np.testing.assert_array_equal(found[~above], 0.0)


@pytest.mark.parametrize("name", ["normal", "elsewhere", "flexible", "t", "regression", "groups"])
def test_draws(name):
    """As many are the limit as the law says, and the others lie above it."""
    law, rng = LAWS[name], np.random.default_rng(0)
    draws = law.from_normal(rng.normal(size=(4000, N)))
    at_limit = (draws == law.lower).mean(axis=0)
    expected = stats.norm.cdf(law.base.to_normal(np.full(N, law.lower)))
    np.testing.assert_allclose(at_limit, expected, atol=0.04)
    assert draws.min() == law.lower


@every
def test_the_rest_is_the_base(law):
    """Parameters, bounds and prior are those of the law that is censored; a file keeps it."""
    assert law.parameters == law.base.parameters
    np.testing.assert_array_equal(law.theta, law.base.theta)
    np.testing.assert_array_equal(law.bounds, law.base.bounds)
    assert law.log_prior()[0] == law.base.log_prior()[0]
    assert (law.dof, law.fields, law.parts) == (law.base.dof, law.base.fields, law.base.parts)
    np.testing.assert_array_equal(law.tail_index, law.base.tail_index)
    comma = "," if "~" in law.base.name else ""
    assert law.name == f"{law.base.name}{comma} censored at {law.lower:g}"
    again = put_together(take_apart(law, lambda kind: kind.__name__), CLASSES)
    np.testing.assert_array_equal(again.theta, law.theta)
    assert (again.name, again.lower) == (law.name, law.lower)


def test_a_smoothed_sample():
    """It has no parameters, and an atom all the same."""
    law = Censored(Parzen.fit(RNG.normal(1.0, 1.0, 80)))
    assert law.theta.size == 0
    atom = stats.norm.logcdf(law.base.to_normal(0.0))
    assert float(law.log_density(0.0)) == pytest.approx(float(atom))
    assert law.sensitivity(np.array([0.0, 1.0]))[1].shape == (2, 0)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: Censored(Normal(), -INF), ValueError, "the limit must be finite, found -inf"),
        (lambda: Censored(Censored(Normal())), ValueError, "a law with an atom cannot be cens"),
        (lambda: Censored.fit([1.0]), NotImplementedError, "State `support=`"),
        (
            lambda: LAWS["normal"].check_support([1.0, 0.0, -0.5], "rain"),
            SupportError,
            r"rain: normal censored at 0 needs non-negative values: 1 of 3 .*set them to 0",
        ),
        (
            lambda: LAWS["elsewhere"].check_support([-2.0], "v"),
            SupportError,
            "needs values from -1.5 on: 1 of 1",
        ),
    ],
)
def test_refusals(call, error, match):
    """What cannot be censored, and values below the limit."""
    with pytest.raises(error, match=match):
        call()
