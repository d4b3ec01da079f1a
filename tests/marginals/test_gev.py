"""The generalised extreme value law near its Gumbel limit and its ends."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.errors import SupportError
from xcopula.marginals import GEV
from xcopula.marginals.tails import stretch, stretch_slope, unstretch


def test_gumbel_limit_is_smooth():
    """Scores, densities and derivatives have no step as the shape passes through zero."""
    y = np.linspace(-3.0, 12.0, 40)
    shapes = [-1e-7, -1e-12, -1e-300, 0.0, 1e-300, 1e-12, 1e-7]
    for shape in shapes:
        law, gumbel = GEV(0.0, 1.0, shape), GEV(0.0, 1.0, 0.0)
        change = 1e3 * abs(shape) + 1e-13
        np.testing.assert_allclose(law.to_normal(y), gumbel.to_normal(y), atol=change)
        np.testing.assert_allclose(law.log_density(y), gumbel.log_density(y), atol=10 * change)
        for a, b in zip(law.sensitivity(y), gumbel.sensitivity(y), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e4 * abs(shape) + 1e-12)


@pytest.mark.parametrize("x", [-0.0499999, 0.0499999])
def test_series_joins_the_closed_form(x):
    """The derivative in the shape is continuous where its series ends."""
    inside = stretch_slope(np.array([x]), 1.0)
    outside = stretch_slope(np.array([x * (1.0 + 1e-5)]), 1.0)
    np.testing.assert_allclose(inside, outside, rtol=1e-4)
    closed = x / (1.0 + x) - np.log1p(x)
    np.testing.assert_allclose(inside, closed, rtol=1e-12)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 1e-8, 0.4])
def test_stretch_inverts(shape):
    """The reduced variate returns to itself."""
    g = np.linspace(-5.0, 20.0, 26)
    np.testing.assert_allclose(stretch(unstretch(g, shape), shape), g, rtol=1e-12)


def test_bounded_support_is_a_clear_error():
    """A value past the parameter-dependent end is named with that end."""
    law = GEV(0.0, 1.0, -0.25)
    assert law.support == (-np.inf, 4.0)
    with pytest.raises(SupportError, match=r"^Cd: gev needs values between -inf and 4: 1 of 2"):
        law.check_support([1.0, 5.0], "Cd")


def test_fit_survives_an_outlier():
    """One value a hundred scales away leaves a finite fit that holds every value."""
    y = np.append(np.random.default_rng(0).gumbel(size=100), 100.0)
    law = GEV.fit(y)
    assert np.isfinite(law.log_density(y)).all()
    assert np.abs(law.to_normal(y)).max() < 6.0


def test_fit_at_a_bound_is_a_maximum_in_the_rest():
    """A shape held at its bound leaves location and scale at their optimum."""
    y = np.random.default_rng(1).pareto(0.7, size=60)
    law = GEV.fit(y)
    gradient = law.sensitivity(y)[1].sum(axis=0) * [law.scale, 1.0, 1.0]
    assert law.shape == 0.9
    np.testing.assert_allclose(gradient[:2], 0.0, atol=1e-2)
