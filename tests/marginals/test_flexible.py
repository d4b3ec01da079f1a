"""The sinh-arcsinh marginal, beyond what every law is tested for: formula, priors, odd samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.marginals import LogNormal, Normal, SinhArcsinh, flexible

SHAPES = [(0.0, 1.0), (0.6, 0.7), (-1.2, 0.5), (0.4, 1.6), (-0.3, 2.5)]
shapes = pytest.mark.parametrize(("skewness", "tail"), SHAPES)


@shapes
def test_against_the_formula(skewness, tail):
    """The score and the density of Jones and Pewsey (2009), equation 2."""
    law = SinhArcsinh(3.0, 2.0, skewness, tail)
    y = np.linspace(-9.0, 15.0, 61)
    x = (y - 3.0) / 2.0
    s = np.sinh(tail * np.arcsinh(x) - skewness)
    c = np.sqrt(1.0 + s * s)
    density = tail * c / np.sqrt(2.0 * np.pi * (1.0 + x * x)) * np.exp(-0.5 * s * s) / 2.0
    np.testing.assert_allclose(law.to_normal(y), s, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.exp(law.log_density(y)), density, rtol=1e-10)


def test_is_normal_without_skewness_and_with_a_tail_of_one():
    """With its location, its scale, its density and no penalty."""
    law, y = SinhArcsinh(10.0, 3.0), np.linspace(-20.0, 40.0, 41)
    np.testing.assert_allclose(law.to_normal(y), (y - 10.0) / 3.0, atol=1e-12)
    np.testing.assert_allclose(law.log_density(y), stats.norm.logpdf(y, 10.0, 3.0), rtol=1e-12)
    value, gradient = law.log_prior()
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_what_the_shapes_mean():
    """A positive skewness has a longer upper tail; a small tail parameter has two long ones."""

    def tails(**shape):
        low, a, middle, b, high = SinhArcsinh(**shape).from_normal([-3.0, -0.7, 0.0, 0.7, 3.0])
        return (high - middle) / (middle - low), (high - low) / (b - a)

    assert tails(skewness=0.5)[0] > 1.5
    assert tails(skewness=-0.5)[0] == pytest.approx(1.0 / tails(skewness=0.5)[0])
    assert tails(tail=0.6)[0] == pytest.approx(1.0)
    assert tails(tail=0.6)[1] > 1.3 * tails(tail=1.0)[1]
    assert tails(tail=1.6)[1] < tails(tail=1.0)[1] == pytest.approx(3.0 / 0.7)


@shapes
def test_round_trip_as_far_as_probabilities_go(skewness, tail):
    """From -37 to 37, where the normal tail probability is the smallest number."""
    law, z = SinhArcsinh(-4.0, 0.5, skewness, tail), np.linspace(-37.0, 37.0, 149)
    np.testing.assert_allclose(law.to_normal(law.from_normal(z)), z, rtol=1e-9, atol=1e-11)
    assert np.isfinite(law.log_density(law.from_normal(z))).all()


@shapes
def test_recovers_the_truth(skewness, tail):
    """From 20,000 draws, where the priors say little."""
    truth = SinhArcsinh(50.0, 4.0, skewness, tail)
    y = truth.from_normal(np.random.default_rng(1).normal(size=20_000))
    law = SinhArcsinh.fit(y)
    z = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose(law.to_normal(truth.from_normal(z)), z, atol=0.1)
    # a light tail and its scale say nearly the same
    tolerance = 0.06 if tail <= 1.0 else 0.25
    np.testing.assert_allclose(law.theta[2:], truth.theta[2:], atol=tolerance)


def test_few_normal_values_have_a_nearly_normal_law():
    """Of 20 values the shapes stray by half of what the priors allow, and scores by little."""
    found, free = [], []
    for seed in range(20):
        y = np.random.default_rng(seed).normal(5.0, 2.0, 20)
        law = SinhArcsinh.fit(y)
        found.append([law.skewness, np.log(law.tail)])
        z = law.to_normal(y)
        free.append(np.abs(z - Normal.fit(y).to_normal(y)).max())
    assert np.sqrt(np.mean(np.square(found), axis=0))[0] < 0.25
    assert np.sqrt(np.mean(np.square(found), axis=0))[1] < 0.125
    assert np.median(free) < 0.35


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_priors_do_not_matter_much(monkeypatch, factor):
    """Twice or half as wide, left-out values of a skewed law have nearly the same density."""
    truth, scores = LogNormal(0.0, 0.6), {}
    sd = flexible._SD_SKEW, flexible._SD_TAIL
    for scaled in (1.0, factor):
        monkeypatch.setattr(flexible, "_SD_SKEW", scaled * sd[0])
        monkeypatch.setattr(flexible, "_SD_TAIL", scaled * sd[1])
        each = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            seen, left_out = np.split(truth.from_normal(rng.normal(size=1100)), [100])
            each.append(SinhArcsinh.fit(seen).log_density(left_out).mean())
        scores[scaled] = np.mean(each)
    assert scores[factor] == pytest.approx(scores[1.0], abs=0.02)
    # and they gain on the normal law by far more
    rng = np.random.default_rng(0)
    seen, left_out = np.split(truth.from_normal(rng.normal(size=1100)), [100])
    assert scores[1.0] > Normal.fit(seen).log_density(left_out).mean() + 0.1


RNG = np.random.default_rng(3)
ODD = {
    "nine in ten equal": np.where(np.arange(100) % 10, 2.0, RNG.normal(2.0, 1.0, 100)),
    "two values": np.repeat([1.0, 4.0], [30, 10]),
    "one differs": np.r_[np.full(49, 3.0), 3.5],
    "five": RNG.normal(size=5),
    "integers": RNG.poisson(0.7, 80).astype(float),
    "tiny": 1e-140 * RNG.normal(size=50),
    "huge": 1e149 * RNG.uniform(-1.0, 1.0, 50),
    "an outlier": np.r_[RNG.normal(size=60), 1e6],
    "far from zero": 1e9 + RNG.normal(size=50),
    "thirty orders": 10.0 ** RNG.uniform(-15.0, 15.0, 80),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
def test_odd_samples(values):
    """A law with finite scores, densities and quantiles, and no warning on the way."""
    law = SinhArcsinh.fit(values)
    assert np.isfinite(law.theta).all()
    assert np.isfinite(law.to_normal(values)).all()
    assert np.isfinite(law.log_density(values)).all()
    assert np.isfinite(law.from_normal([-4.0, 0.0, 4.0])).all()
    assert np.isfinite(law.sensitivity(values)[1]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([3.0] * 20, "needs at least two different values, found 1 in a sample of 20"),
        ([], "needs at least two different values, found 0"),
        ([1.0, np.inf], "finite values: 1 of 2"),
        (np.array([1.0, -1.0, 2.0]) * 1e151, "values up to 2e.151 are too large"),
        (np.arange(20.0) * 1e-160, "too close to compute with"),
        (1.0 + np.arange(20.0) * 1e-16, "differ by little more than rounding"),
    ],
)
def test_samples_that_have_none(values, match):
    """One sentence says why."""
    with pytest.raises(ValueError, match=match):
        SinhArcsinh.fit(values)


@pytest.mark.filterwarnings("error")
def test_orders_of_magnitude():
    """Of three hundred of them there is a law, or one sentence."""
    values = 10.0 ** np.random.default_rng(0).uniform(-150.0, 149.9, 200)
    law = SinhArcsinh.fit(values)
    assert np.isfinite(law.to_normal(values)).all()
    assert np.isfinite(law.log_density(values)).all()
