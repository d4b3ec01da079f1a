"""Two normal variables above their thresholds, against quadrature and simple cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from xcopula.process.bivariate import both_above

NUMBERS = [-3.0, -1.0, -1e-9, 0.0, 0.4, 2.5]


def by_quadrature(a: float, b: float, rho: float) -> float:
    left = np.sqrt(1.0 - rho**2)

    def inner(z: float) -> float:
        return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * ndtr((rho * z - b) / left)

    return integrate.quad(inner, a, 12.0, epsabs=1e-13, points=[b / rho] if rho else None)[0]


@pytest.mark.parametrize("rho", [-0.99, -0.5, 0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("a", NUMBERS)
def test_against_quadrature(a, rho):
    found = both_above(np.full(6, a), np.array(NUMBERS), np.full(6, rho))
    want = [by_quadrature(a, b, rho) for b in NUMBERS]
    np.testing.assert_allclose(found, want, rtol=0.0, atol=2e-11)


def test_ends():
    infinite, zero = np.array([np.inf, -np.inf]), np.zeros(2)
    np.testing.assert_allclose(both_above(infinite, zero, zero + 0.3), [0.0, 0.5], atol=1e-15)
    np.testing.assert_allclose(both_above(infinite, -infinite, zero), 0.0, atol=1e-15)
    assert both_above(-np.array(np.inf), -np.array(np.inf), np.array(-0.9)) == 1.0


def test_one_line():
    a, b = np.array([0.3, -1.0]), np.array([-0.2, 0.5])
    np.testing.assert_allclose(both_above(a, b, np.ones(2)), ndtr(-np.maximum(a, b)))
    want = np.maximum(ndtr(-a) - ndtr(b), 0.0)
    np.testing.assert_allclose(both_above(a, b, -np.ones(2)), want, atol=1e-15)


def test_unknown():
    found = both_above(np.array([np.nan, 0.0]), np.zeros(2), np.array([0.0, np.nan]))
    assert np.isnan(found).all()
