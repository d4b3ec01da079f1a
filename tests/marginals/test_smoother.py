"""The tabulated scores of a smoothed sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.marginals.smoother import smooth, tabulate


@pytest.mark.parametrize("bandwidth", [1e-5, 1e-4, 1e-3])
def test_scores_increase_between_knots_that_are_far_apart(bandwidth):
    """Kernels narrower than the knots' distance have slopes that no cubic could follow."""
    rng = np.random.default_rng(0)
    sample = np.sort(rng.uniform(-1.0, 1.0, 50))
    table = tabulate(sample, bandwidth, float(sample[5]), float(sample[-6]))
    within = np.linspace(0.0, 1.0, 21)[1:-1]
    x = (table.x[:-1, None] + np.diff(table.x)[:, None] * within).ravel()
    z, slope = table.evaluate(x)
    assert (slope >= 0.0).all()
    assert (np.diff(z) >= 0.0).all()


@pytest.mark.parametrize("size", [400, 1999, 2500, 20_000])
def test_smooth_against_all_kernels(size):
    """Kernel by kernel; the quantiles of a large sample stand for it."""
    sample = np.sort(np.random.default_rng(size).gamma(2.0, size=size))
    x = np.quantile(sample, [0.1, 0.3, 0.5, 0.7, 0.9])
    cdf, density = smooth(x, sample, 0.1)
    u = (x[:, None] - sample) / 0.1
    wide = (x - sample.mean()) / (1.5 * sample.std())
    expected = (stats.norm.cdf(u).sum(axis=1) + stats.norm.cdf(wide)) / (size + 1)
    slope = stats.norm.pdf(u).sum(axis=1) / 0.1 + stats.norm.pdf(wide) / (1.5 * sample.std())
    atol = 1e-12 if size <= 2000 else 3e-4
    np.testing.assert_allclose(cdf, expected, rtol=0.0, atol=atol)
    np.testing.assert_allclose(density, slope / (size + 1), rtol=0.0, atol=10.0 * atol)
