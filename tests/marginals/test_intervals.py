"""Laws fitted to values of which some are intervals, against independent likelihoods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from xcopula.errors import SupportError
from xcopula.marginals import (
    GEV,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Parzen,
    SinhArcsinh,
    StudentT,
    by,
    fit_law,
    regress,
)
from xcopula.marginals.censored import Censored
from xcopula.marginals.intervals import (
    check_limits,
    interval_pullback,
    interval_scores,
    is_interval,
    log_evidence,
    starting_values,
)

RNG = np.random.default_rng(2)
POSITIVE = RNG.gamma(2.0, 3.0, 200)


def censor(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and limits: below one of two limits, above one, rounded, or known."""
    kind = np.arange(y.size) % 4
    limit = np.where(np.arange(y.size) < y.size // 2, *np.quantile(y, [0.25, 0.4]))
    top = np.quantile(y, 0.9)
    step = np.ptp(y) / 10.0
    limits = np.stack([y, y])
    below, above, rounded = (kind < 2) & (y < limit), (kind < 2) & (y > top), kind == 2
    limits[:, below] = np.stack([np.full(y.size, -np.inf), limit])[:, below]
    limits[:, above] = [[top], [np.inf]]
    cell = np.floor(y / step)
    limits[:, rounded] = (np.stack([cell, cell + 1.0]) * step)[:, rounded]
    return np.where(is_interval(limits), starting_values(y, limits), y), limits


FROZEN = {
    Normal: lambda t: stats.norm(t[0], np.exp(t[1])),
    LogNormal: lambda t: stats.lognorm(np.exp(t[1]), scale=np.exp(t[0])),
    Exponential: lambda t: stats.expon(scale=np.exp(t[0])),
    Gamma: lambda t: stats.gamma(np.exp(t[0]), scale=np.exp(t[1])),
    GEV: lambda t: stats.genextreme(-t[2], t[0], np.exp(t[1])),
    StudentT: lambda t: stats.t(np.exp(t[2]), t[0], np.exp(t[1])),
}


@pytest.mark.parametrize("family", FROZEN, ids=lambda family: family.__name__)
def test_maximum_of_an_independent_formula(family):
    """The estimate is where scipy's densities and probabilities have their maximum."""
    values, limits = censor(POSITIVE)
    open_ = is_interval(limits)
    assert 60 < open_.sum() < 140
    law = fit_law(family, values, limits=limits)

    def loss(theta):
        reference = FROZEN[family](theta)
        known = reference.logpdf(values[~open_]).sum()
        between = reference.cdf(limits[1, open_]) - reference.cdf(limits[0, open_])
        with np.errstate(divide="ignore", invalid="ignore"):
            total = known + np.log(between).sum() + family().with_theta(theta).log_prior()[0]
        return -total if np.isfinite(total) else 1e6

    best = minimize(loss, law.theta + 0.05, method="Nelder-Mead", options={"xatol": 1e-7})
    assert loss(law.theta) <= best.fun + 1e-6
    np.testing.assert_allclose(law.theta, best.x, atol=2e-3)


@pytest.mark.parametrize(
    "truth",
    [Normal(10.0, 3.0), LogNormal(1.0, 0.7), Gamma(2.5, 3.0), GEV(5.0, 2.0, 0.1)],
    ids=repr,
)
def test_recovers_the_truth(truth):
    """A third of the values are below a limit: the law is found, where half the limit misleads."""
    z = np.random.default_rng(8).normal(size=3000)
    y = truth.from_normal(z)
    limit = float(truth.from_normal(stats.norm.ppf(0.35)))
    limits = np.stack([np.where(y < limit, -np.inf, y), np.maximum(y, limit)])
    law = fit_law(type(truth), np.maximum(y, limit), limits=limits)
    levels = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    found = law.to_normal(truth.from_normal(levels))
    np.testing.assert_allclose(found, levels, atol=0.15)
    replaced = type(truth).fit(np.where(y < limit, 0.5 * limit, y))
    assert (
        np.abs(found - levels).max()
        < np.abs(replaced.to_normal(truth.from_normal(levels)) - levels).max()
    )


def test_narrow_intervals_are_values():
    """As an interval narrows, its probability is the density times its width."""
    width = 1e-7
    limits = np.stack([POSITIVE - 0.5 * width, POSITIVE + 0.5 * width])
    law = fit_law(Gamma, POSITIVE, limits=limits)
    np.testing.assert_allclose(law.theta, Gamma.fit(POSITIVE).theta, atol=1e-6)


LAWS = [
    Normal(5.0, 4.0),
    Gamma(1.5, 4.0),
    GEV(4.0, 3.0, 0.2),
    Censored(Normal(5.0, 4.0)),
    SinhArcsinh(5.0, 4.0, 0.3, 0.8),
    regress("gamma", on="h").fit(POSITIVE, np.linspace(-1.0, 1.0, 200)[:, None]),
    Censored(by("k", "normal").fit(POSITIVE, (np.arange(200) % 2.0)[:, None])),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_pullback(law):
    """The gradient is that of the likelihood, by differences, with weights and without."""
    values, limits = censor(POSITIVE)
    rows = {"h": np.linspace(-1.0, 1.0, 200), "k": np.arange(200) % 2.0}
    table = np.column_stack([rows[f] for f in law.fields]) if law.fields else np.empty((200, 0))
    bound, h = law.at(table), 1e-4
    for weights in (None, RNG.uniform(0.0, 3.0, 200), (np.arange(200) < 3).astype(float)):
        counts = np.ones(200) if weights is None else weights
        got = interval_pullback(bound, values, limits, weights)
        for k, unit in enumerate(np.eye(law.theta.size)):
            a, b, c, d = (
                counts @ log_evidence(bound.with_theta(law.theta + m * h * unit), values, limits)
                for m in (-2, -1, 1, 2)
            )
            expected = (a - 8.0 * b + 8.0 * c - d) / (12.0 * h)
            assert got[k] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_far_out():
    """Intervals of tiny probability have a logarithm and a gradient."""
    law, limits = Normal(), np.array([[35.0, -np.inf, 50.0], [36.0, -40.0, 50.5]])
    each = log_evidence(law, limits[1], limits)
    np.testing.assert_allclose(each[1], stats.norm.logcdf(-40.0), rtol=1e-12)
    assert np.isfinite(each).all()
    assert np.isfinite(interval_pullback(law, limits[1], limits)).all()


def test_an_atom_within():
    """An interval from zero on, or from further down, includes the zeros."""
    law = Censored(Normal(1.0, 2.0))
    limits = np.array([[-np.inf, 0.0, 1e-9, 0.0], [1.0, 1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(interval_scores(law, limits)[0, :2], -np.inf)
    zero = stats.norm.cdf(-0.5)
    expected = np.log([0.5, 0.5, 0.5 - zero, zero])
    np.testing.assert_allclose(log_evidence(law, limits[1], limits), expected, rtol=1e-7)


def test_zeros_and_limits():
    """Values at or below zero, between limits, and others: all are in the fit."""
    truth = Normal(2.0, 3.0)
    y = truth.from_normal(np.random.default_rng(4).normal(size=4000))
    hidden, zero = (y > 0.0) & (y < 2.0), y <= 0.0
    limits = np.stack([np.where(hidden, 1e-12, y), np.where(hidden, 2.0, y)])
    limits[:, zero] = [[-np.inf], [0.0]]
    law = fit_law(Normal, np.where(hidden, 1.0, np.maximum(y, 0.0)), limits=limits)
    np.testing.assert_allclose(law.theta, truth.theta, atol=0.1)


@pytest.mark.parametrize(
    "recipe", [by("k", "lognormal"), regress("gamma", on="h"), regress(by("k", "gev"), on="h")]
)
def test_laws_that_vary(recipe):
    """The gradient vanishes at the estimate."""
    values, limits = censor(POSITIVE)
    rows = {"h": np.linspace(-1.0, 1.0, 200), "k": np.arange(200) % 2.0}
    table = np.column_stack([rows[f] for f in recipe.fields])
    law = fit_law(recipe, values, table, limits=limits)
    gradient = interval_pullback(law.at(table), values, limits) + law.log_prior()[1]
    np.testing.assert_allclose(gradient, 0.0, atol=2e-3)


def test_many_values():
    """A part of a large sample is climbed first, with its own limits."""
    y = np.random.default_rng(6).normal(3.0, 2.0, 30_000)
    limits = np.stack([np.where(y < 2.0, -np.inf, y), np.maximum(y, 2.0)])
    law = fit_law(Normal, np.maximum(y, 2.0), limits=limits)
    np.testing.assert_allclose([law.location, law.scale], [3.0, 2.0], atol=0.05)
    np.testing.assert_allclose(interval_pullback(law, y, limits), 0.0, atol=0.05)


def test_without_intervals():
    """Limits that are all values change nothing; an instance stays as it is."""
    both = np.stack([POSITIVE, POSITIVE])
    assert fit_law(Gamma, POSITIVE, limits=both) == Gamma.fit(POSITIVE)
    law = Gamma(2.0, 3.0)
    assert fit_law(law, *censor(POSITIVE)[:1], limits=censor(POSITIVE)[1]) is law
    assert starting_values(POSITIVE, both) is POSITIVE


def test_stand_ins():
    """They lie within their intervals, and those of positive values are positive."""
    values, limits = censor(POSITIVE)
    assert ((limits[0] <= values) & (values <= limits[1]) & (values > 0.0)).all()
    values, limits = censor(POSITIVE - 6.0)
    assert ((limits[0] <= values) & (values <= limits[1])).all()
    limits = np.array([[-np.inf, 3.0], [-2.0, np.inf]])
    assert (np.array([-1, 1]) * (starting_values(np.zeros(2), limits) - [-2.0, 3.0]) > 0.0).all()


class TestMessages:
    def test_parzen(self):
        """It has nothing that a likelihood could move."""
        values, limits = censor(POSITIVE)
        with pytest.raises(SupportError, match=r"parzen is made of the values.*such as 'gamma"):
            fit_law(Parzen, values, limits=limits)

    def test_limits_below_zero(self):
        """A law of positive values has no room for them."""
        limits = np.array([[1.0, 2.0, -np.inf], [1.0, 2.0, -0.5]])
        with pytest.raises(SupportError, match=r"1 of 1 intervals end at or below zero .*-0.5.*un"):
            fit_law(Gamma, limits[1], limits=limits)

    def test_limits_outside_the_support(self):
        """Of a law that is given, once it is asked."""
        limits = np.array([[1.0, 200.0], [1.0, 300.0]])
        with pytest.raises(
            SupportError,
            match=r"'flow': 1 of its limits lie outside the support of the gev law, from -inf to "
            r"9\.66667 \(first: between 200 and 300\)\. Correct the limits",
        ):
            check_limits(GEV(3.0, 2.0, -0.3), limits, "flow")
        check_limits(GEV(3.0, 2.0, 0.3), limits, "flow")
