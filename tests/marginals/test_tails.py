"""Probabilities in logarithms, against plain arithmetic where that is exact enough."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import log_ndtr

from xcopula.marginals.tails import (
    log_between,
    log_phi,
    normal_score,
    smaller_tail,
    stretch,
    stretch_slope,
    unstretch,
)

SHAPES = [-0.4, -1e-9, 0.0, 1e-12, 0.03, 0.7]


def test_log_phi():
    """It is the log density of the standard normal law."""
    z = np.linspace(-40.0, 40.0, 17)
    np.testing.assert_allclose(log_phi(z), stats.norm.logpdf(z), rtol=1e-14)


@pytest.mark.parametrize("z", [-37.0, -5.0, -1e-8, 0.0, 0.3, 8.0, 37.0])
def test_a_score_is_found_in_both_tails(z):
    """Nothing saturates at 0 or 1: the smaller tail decides, to 1e-12."""
    found = normal_score(log_ndtr(np.array([z])), log_ndtr(np.array([-z])))
    np.testing.assert_allclose(found, [z], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(smaller_tail(z), log_ndtr(-abs(z)), rtol=1e-15)


def test_scores_of_certain_events_are_infinite():
    """A value at the end of a support has no finite score."""
    never, always = np.array([-np.inf]), np.array([0.0])
    assert normal_score(never, always)[0] == -np.inf
    assert normal_score(always, never)[0] == np.inf


@pytest.mark.parametrize("shape", SHAPES)
def test_stretching_is_undone(shape):
    """The inverse gives back what was stretched, to 1e-13, also next to a shape of zero."""
    s = np.linspace(-1.2, 2.0, 33)
    np.testing.assert_allclose(unstretch(stretch(s, shape), shape), s, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("shape", [-0.5, 0.5])
def test_past_the_support(shape):
    """The stretched value is infinite on the side of the end, and leads back to the end."""
    end = -1.0 / shape
    for s in (end, 3.0 * end):
        g = stretch(np.array([s]), shape)
        assert g[0] == np.copysign(np.inf, end)
        np.testing.assert_allclose(unstretch(g, shape), [end], rtol=1e-15)


@pytest.mark.parametrize("shape", [-0.4, -0.03, 0.0, 0.03, 0.7])
def test_slope_by_the_shape(shape):
    """It equals central differences, with the series near zero and without it, to 1e-7."""
    s, h = np.linspace(-1.0, 2.0, 31), 1e-5
    expected = (stretch(s, shape + h) - stretch(s, shape - h)) / (2.0 * h)
    np.testing.assert_allclose(stretch_slope(s, shape), expected, rtol=1e-7, atol=1e-8)


def test_log_between():
    """Probabilities of intervals, wide and narrow, near and far, on both sides."""

    def brute(a, b):
        # the integral of the density over its value at the nearer end, which cannot vanish
        near = min(max(a, 0.0), b) if b > 0.0 else b
        total = quad(lambda t: np.exp(0.5 * (near - t) * (near + t)), a, b, epsabs=0, limit=200)[0]
        return np.log(total) + log_phi(near)

    for low in (-30.0, -8.0, -1.0, -0.01, 0.0, 0.4, 5.0, 25.0):
        for width in (1e-12, 1e-6, 1e-3, 0.02, 0.05, 0.5, 2.0):
            high = low + width
            assert log_between(low, high) == pytest.approx(brute(low, high), rel=1e-11)


def test_log_between_open_ends():
    """An open end leaves a tail; an empty interval has nothing, NaN stays NaN."""
    low = np.array([-np.inf, 3.0, -np.inf, 1.0, np.nan, -np.inf])
    high = np.array([-3.0, np.inf, np.inf, 1.0, 1.0, -np.inf])
    expected = [log_ndtr(-3.0), log_ndtr(-3.0), 0.0, -np.inf, np.nan, -np.inf]
    np.testing.assert_allclose(log_between(low, high), expected, rtol=1e-15)
