"""Contracts that every marginal law keeps, over one list of laws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from xcopula.errors import SupportError
from xcopula.marginals import (
    GEV,
    MARGINALS,
    Exponential,
    Gamma,
    LogNormal,
    Marginal,
    Normal,
    Parzen,
    SinhArcsinh,
    StudentT,
    resolve,
)
from xcopula.marginals.intervals import check_limits

RNG = np.random.default_rng(7)
POSITIVE = RNG.gamma(2.0, 3.0, size=259)

GEV_SHAPES = [-0.3, -1e-9, 0.0, 1e-9, 1e-4, 0.4]
ALL_MARGINALS: dict[str, Marginal] = {
    **{f"{name}-fitted": law.fit(POSITIVE) for name, law in MARGINALS.items()},
    **{f"gev{shape:g}": GEV(3.0, 2.0, shape) for shape in GEV_SHAPES},
    "t2.5": StudentT(1.0, 2.0, 2.5),
    "t80": StudentT(-4.0, 0.5, 80.0),
    "gamma0.5": Gamma(0.5, 2.0),
    "gamma30": Gamma(30.0, 0.1),
    "flexible-heavy": SinhArcsinh(3.0, 2.0, 0.8, 0.6),
    "flexible-light": SinhArcsinh(-1.0, 0.3, -0.5, 1.8),
    "parzen-real": Parzen.fit(RNG.standard_t(3.0, size=150)),
    "parzen-gap": Parzen.fit(np.r_[RNG.normal(size=60), RNG.normal(size=60) + 50.0]),
}
REFERENCES = {
    Normal: lambda m: stats.norm(m.location, m.scale),
    LogNormal: lambda m: stats.lognorm(m.scale, scale=np.exp(m.location)),
    Exponential: lambda m: stats.expon(scale=m.scale),
    GEV: lambda m: stats.genextreme(-m.shape, m.location, m.scale),
    Gamma: lambda m: stats.gamma(m.shape, scale=m.scale),
    StudentT: lambda m: stats.t(m.df, m.location, m.scale),
}

every = pytest.mark.parametrize("law", ALL_MARGINALS.values(), ids=ALL_MARGINALS.keys())


def deepest(law: Marginal) -> tuple[float, float]:
    """Return the range of z over which y still resolves it in floating point."""
    if isinstance(law, GEV) and law.shape < -0.1:
        return -30.0, 8.0
    if isinstance(law, Gamma) and law.shape < 1.0:
        return -25.0, 30.0
    return -30.0, 30.0


@pytest.mark.parametrize("law", MARGINALS.values(), ids=MARGINALS)
def test_complex_values(law):
    """They are refused, with what to take of them."""
    with pytest.raises(TypeError, match=r"needs real values, found dtype complex128\. Take their"):
        law.fit(POSITIVE + 1j)


@every
def test_round_trip(law):
    """Scores survive the way to values and back, far into both tails."""
    z = np.linspace(*deepest(law), 401)
    np.testing.assert_allclose(law.to_normal(law.from_normal(z)), z, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(z=st.floats(-8.0, 8.0), name=st.sampled_from(sorted(ALL_MARGINALS)))
def test_round_trip_anywhere(z, name):
    """Scores drawn at random survive the round trip as scalars."""
    law = ALL_MARGINALS[name]
    y = law.from_normal(z)
    assert y.shape == ()
    np.testing.assert_allclose(law.to_normal(y), z, rtol=1e-9, atol=1e-9)


@every
def test_increasing(law):
    """Values increase with scores."""
    assert np.all(np.diff(law.from_normal(np.linspace(-8.0, 8.0, 2001))) > 0.0)


@every
def test_nan_infinity_and_shape(law):
    """NaN stays NaN, infinite scores are the ends of the support, shapes are kept."""
    z = np.array([[np.nan, -np.inf, np.inf]])
    y = law.from_normal(z)
    assert y.shape == z.shape
    assert y.dtype == np.float64
    np.testing.assert_allclose(y[0], [np.nan, *law.support])
    np.testing.assert_array_equal(law.to_normal([np.nan, -np.inf, np.inf]), z[0])
    np.testing.assert_array_equal(law.log_density([np.nan, -np.inf, np.inf])[1:], -np.inf)
    assert np.isnan(law.log_density(np.nan))


@every
def test_past_the_support(law):
    """Values past a finite end have an infinite score and no density, and are reported."""
    low, high = law.support
    y = np.array([end + step for end, step in [(low, -1.0), (high, 1.0)] if np.isfinite(end)])
    expected = [s for end, s in [(low, -np.inf), (high, np.inf)] if np.isfinite(end)]
    np.testing.assert_array_equal(law.to_normal(y), expected)
    np.testing.assert_array_equal(law.log_density(y), -np.inf)
    if y.size:
        with pytest.raises(
            SupportError, match=rf"^lead: {law.name} needs .*: {y.size} of {y.size}"
        ):
            law.check_support(y, "lead")
    law.check_support(np.append(law.from_normal([-1.0, 0.0, 2.0]), np.nan), "lead")


@every
def test_density_is_the_derivative(law):
    """The log density is the derivative of F, through dz/dy."""
    z = np.linspace(-4.0, 4.0, 60)
    y = law.from_normal(z)
    # by differences in z, which are well scaled for every law
    h = 1e-5
    dy = (law.from_normal(z + h) - law.from_normal(z - h)) / (2.0 * h)
    np.testing.assert_allclose(law.log_density(y), stats.norm.logpdf(z) - np.log(dy), atol=2e-5)


@every
def test_density_integrates_to_one(law):
    """The density over the values between two scores is their probability."""
    knots = law.from_normal(np.linspace(-6.0, 6.0, 61))
    total = sum(
        quad(lambda y: float(np.exp(law.log_density(y))), a, b, epsabs=1e-11, limit=500)[0]
        for a, b in pairwise(knots)
    )
    assert total == pytest.approx(1.0, abs=1e-7)


@every
def test_agrees_with_scipy_stats(law):
    """Scores and log densities equal those of an independent implementation."""
    if type(law) not in REFERENCES:
        pytest.skip("no counterpart in scipy.stats")
    reference = REFERENCES[type(law)](law)
    p = np.linspace(0.01, 0.99, 41)
    y = reference.ppf(p)
    np.testing.assert_allclose(law.to_normal(y), stats.norm.ppf(p), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(law.log_density(y), reference.logpdf(y), rtol=1e-6, atol=1e-7)


@every
def test_sensitivity(law):
    """Derivatives in theta equal five-point differences, at moderate and deep scores."""
    # the differences themselves fail close to a finite upper end
    high = 4.0 if np.isfinite(law.support[1]) and law.support[1] < 100.0 else 15.0
    y = law.from_normal(np.linspace(-15.0, high, 31))
    dz, dlogf = law.sensitivity(y)
    assert dz.shape == dlogf.shape == (31, law.theta.size)
    h = 1e-3 * (0.1 if law.name == "gev" else 1.0)
    for k, unit in enumerate(np.eye(law.theta.size)):
        shifted = [law.with_theta(law.theta + m * h * unit) for m in (-2, -1, 1, 2)]
        for got, method in [(dz, "to_normal"), (dlogf, "log_density")]:
            a, b, c, d = (getattr(other, method)(y) for other in shifted)
            expected = (a - 8.0 * b + 8.0 * c - d) / (12.0 * h)
            ok = np.isfinite(expected)
            assert ok.sum() > 20
            np.testing.assert_allclose(got[ok, k], expected[ok], rtol=1e-6, atol=1e-7)


@every
def test_pullbacks(law):
    """Sums over values equal those of the derivatives, with weights and without."""
    y = law.from_normal(np.linspace(-4.0, 3.0, 41))
    weights = np.linspace(-1.0, 2.0, 41)
    for derivative, pullback in zip(
        law.sensitivity(y), (law.score_pullback, law.density_pullback), strict=True
    ):
        np.testing.assert_allclose(pullback(y, weights), weights @ derivative, rtol=1e-12)
        np.testing.assert_allclose(pullback(y), derivative.sum(axis=0), rtol=1e-12)


def test_pullback_of_many_values():
    """Values beyond the size of a block count as the first ones do."""
    y = RNG.normal(size=150_000)
    law, weights = Normal(0.1, 1.2), RNG.uniform(size=y.size)
    expected = weights @ law.log_density_gradient(y)
    np.testing.assert_allclose(law.density_pullback(y, weights), expected, rtol=1e-10)


@every
def test_theta(law):
    """Free parameters rebuild the law and lie within their bounds."""
    again = law.with_theta(law.theta)
    np.testing.assert_allclose(again.theta, law.theta, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(again.from_normal(1.5), law.from_normal(1.5), rtol=1e-14)
    assert law.bounds.shape == (law.theta.size, 2)
    assert np.all((law.bounds[:, 0] <= law.theta) & (law.theta <= law.bounds[:, 1]))
    assert law.dof >= law.theta.size
    assert law.tail_index >= 0.0
    assert all(isinstance(value, float) for value in law.parameters.values())


@every
def test_log_prior_gradient(law):
    """The gradient of the log prior equals central differences."""
    _, gradient = law.log_prior()
    assert gradient.shape == law.theta.shape
    for k, unit in enumerate(np.eye(law.theta.size)):
        above, below = (law.with_theta(law.theta + s * 1e-5 * unit).log_prior()[0] for s in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("truth", "errors"),
    [
        (Normal(10.0, 3.0), (3.0, 0.7)),
        (LogNormal(1.0, 0.5), (0.5, 0.7)),
        (Exponential(4.0), (1.0,)),
        (GEV(1000.0, 2.0, 0.2), (2.5, 0.9, 1.0)),
        (GEV(5.0, 2.0, -0.2), (2.5, 0.9, 1.0)),
        (Gamma(2.5, 3.0), (1.5, 1.7)),
        (Gamma(50.0, 0.01), (1.5, 1.5)),
        (StudentT(-20.0, 0.1, 4.0), (0.15, 1.2, 5.0)),
        (SinhArcsinh(5.0, 2.0, 0.4, 0.8), (6.0, 2.0, 1.7, 1.0)),
    ],
    ids=repr,
)
def test_fit_recovers(truth, errors):
    """Estimates from 4000 values lie within four standard errors of the truth."""
    n = 4000
    fitted = type(truth).fit(truth.from_normal(np.random.default_rng(3).normal(size=n)))
    assert np.all(np.abs(fitted.theta - truth.theta) < 4.0 * np.asarray(errors) / np.sqrt(n))


@pytest.mark.parametrize("name", [name for name in MARGINALS if name != "parzen"])
def test_fit_is_a_maximum(name):
    """The likelihood with the prior is flat at the estimate."""
    law = MARGINALS[name].fit(POSITIVE)
    gradient = law.sensitivity(POSITIVE)[1].sum(axis=0) + law.log_prior()[1]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("lognormal", [-0.2, 0.0, 1.0, 2.0, -1.1, -5.0], "positive values: 4 of 6 are not"),
        ("gamma", [0.0, 1.0, 2.0], r"positive values: 1 of 3 are not \(first: 0.0\)"),
        ("exponential", [0.0, 1.0, -2.0], r"non-negative values: 1 of 3 are not \(first: -2.0\)"),
        ("normal", [0.0, np.inf], r"finite values: 1 of 2 are not \(first: inf\). Mask them"),
    ],
)
def test_fit_rejects(name, values, text):
    """Values outside the support are counted and shown."""
    with pytest.raises(SupportError, match=f"^{name} needs {text}"):
        MARGINALS[name].fit(values)


def test_fit_rejects_with_advice():
    """The message shows the first three offenders and names the laws that would hold them."""
    with pytest.raises(SupportError) as caught:
        LogNormal.fit([-0.2, 0.0, 1.0, -1.1, -5.0])
    assert str(caught.value) == (
        "lognormal needs positive values: 4 of 5 are not (first: -0.2, 0.0, -1.1). Choose a "
        "marginal with wider support ('normal', 'gev', 't', 'parzen') or mask them."
    )


@pytest.mark.parametrize("law", [GEV(0.0, 1.0, -0.4), Parzen.fit(POSITIVE)], ids=["gev", "parzen"])
def test_advice_is_not_what_is_in_use(law):
    """A marginal that excludes a value is not among those that would hold it."""
    bad = 5.0 if isinstance(law, GEV) else -1.0
    for refuse in (
        lambda: law.check_support(np.array([bad])),
        lambda: check_limits(law, np.array([[bad], [bad + 0.5]])),
    ):
        with pytest.raises(SupportError) as caught:
            refuse()
        assert f"'{law.name}'" not in str(caught.value)


@pytest.mark.parametrize("name", MARGINALS)
def test_fit_rejects_samples_without_spread(name):
    """Constant, empty, NaN-bearing and 2-D samples are refused."""
    law = MARGINALS[name]
    for bad, text in [
        ([2.0, 2.0], "two different values"),
        ([], "two different values"),
        ([1.0, np.nan], "1 of 2 values are NaN"),
        ([[1.0, 2.0]], "1-D"),
    ]:
        with pytest.raises(ValueError, match=text):
            law.fit(bad)


def test_resolve():
    """Names, classes and instances resolve; anything else is refused with the valid names."""
    assert resolve("t") is StudentT
    assert resolve(Gamma) is Gamma
    law = Normal()
    assert resolve(law) is law
    assert all(law.name == name for name, law in MARGINALS.items())
    with pytest.raises(ValueError, match=r"'weibull'.*'normal', 'lognormal', .*'parzen'"):
        resolve("weibull")
    with pytest.raises(TypeError, match="found int"):
        resolve(3)


class Logistic(Marginal):
    """A user's law with the five required members only."""

    def __init__(self, location):
        self.location = location

    def to_normal(self, y):
        return stats.norm.ppf(stats.logistic.cdf(np.asarray(y) - self.location))

    def from_normal(self, z):
        return self.location + stats.logistic.ppf(stats.norm.cdf(z))

    def log_density(self, y):
        return stats.logistic.logpdf(np.asarray(y) - self.location)

    @property
    def theta(self):
        return np.array([self.location])

    def with_theta(self, theta):
        return Logistic(float(theta[0]))


def test_user_marginal():
    """A minimal subclass inherits derivatives, bounds, support and checks."""
    law = Logistic(2.0)
    y = np.linspace(-2.0, 6.0, 9)
    dz, dlogf = law.sensitivity(y)
    z = law.to_normal(y)
    slope = np.exp(law.log_density(y)) / stats.norm.pdf(z)
    np.testing.assert_allclose(dz[:, 0], -slope, rtol=1e-6)
    np.testing.assert_allclose(dlogf[:, 0], np.tanh((y - 2.0) / 2.0), rtol=1e-6, atol=1e-9)
    assert law.parameters == {"theta0": 2.0}
    assert law.support == (-np.inf, np.inf)
    assert law.log_prior()[0] == 0.0
    law.check_support(y)
    with pytest.raises(NotImplementedError, match="Pass an instance"):
        Logistic.fit(y)
