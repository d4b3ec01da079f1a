"""Tails deeper than scipy's own probabilities, against closed forms that need none of the series.

A gamma law of an integer shape k is the waiting time of k events: its tails are Poisson sums, and
those of shape 1/2 and 3/2 are error functions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr

from xcopula.marginals import Gamma, Parzen

FAR = np.array([650.0, 700.0, 1000.0, 3000.0])  # scipy's gammaincc is 0, or denormal, from 645 on


def log_upper(shape: float, x: np.ndarray) -> np.ndarray:
    """Return log P(X > x) in closed form."""
    if shape in (0.5, 1.5):
        root = np.sqrt(x)
        rest = 2.0 * root / np.sqrt(np.pi) if shape == 1.5 else 0.0
        return np.log(erfcx(root) + rest) - x
    return np.log(sum(x**j / math.factorial(j) for j in range(int(shape)))) - x


def log_lower(shape: int, x: Fraction) -> float:
    """Return log P(X < x), from fractions: exact but for the last rounding."""
    terms = (x**j / math.factorial(j) for j in range(shape, shape + 80))
    total = sum(terms, Fraction(0))
    return math.log(total.numerator) - math.log(total.denominator) - float(x)


class TestGamma:
    @pytest.mark.parametrize("shape", [0.5, 1.5, 1.0, 2.0, 3.0])
    def test_upper_tail(self, shape):
        """Scores beyond 36 have the probability of their values, to 1e-13 of its logarithm."""
        z = Gamma(shape, 2.0).to_normal(2.0 * FAR)
        assert z.min() > 35.5
        np.testing.assert_allclose(log_ndtr(-z), log_upper(shape, FAR), rtol=1e-13)

    @pytest.mark.parametrize("shape", [0.5, 1.5, 3.0])
    def test_upper_quantiles(self, shape):
        """Values of scores beyond 36 have the probability of the scores."""
        z = np.array([36.5, 40.0, 60.0])
        x = Gamma(shape, 2.0).from_normal(z) / 2.0
        np.testing.assert_allclose(log_upper(shape, x), log_ndtr(-z), rtol=1e-12)

    @pytest.mark.parametrize(("shape", "x"), [(200, 1), (250, 3), (300, 8)])
    def test_lower_tail(self, shape, x):
        """Scores below -36 have the probability of their values."""
        z = Gamma(float(shape), 2.0).to_normal(np.array([2.0 * x]))
        assert z[0] < -36.0
        np.testing.assert_allclose(log_ndtr(z), log_lower(shape, Fraction(x)), rtol=1e-13)

    def test_lower_quantiles(self):
        """Values of scores below -36 have the probability of the scores."""
        z = np.array([-37.0, -40.0])
        x = Gamma(200.0, 2.0).from_normal(z) / 2.0
        found = [log_lower(200, Fraction(float(v))) for v in x]
        np.testing.assert_allclose(found, log_ndtr(z), rtol=1e-12)


class TestParzen:
    @pytest.mark.parametrize(
        ("size", "beyond"), [(40, 8), (99, 19), (100, 20), (250, 20), (400, 20), (1000, 50)]
    )
    def test_values_of_each_tail(self, size, beyond):
        """Twenty, or as many as 20 % of a small and 5 % of a large sample."""
        sample = np.random.default_rng(0).normal(size=size)
        law = Parzen.fit(sample)
        assert (sample < law.lower.threshold).sum() == beyond
        assert (sample > law.upper.threshold).sum() == beyond
