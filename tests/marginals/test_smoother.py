"""The tabulated scores of a smoothed sample."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.marginals.smoother import tabulate


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
