"""Small models at fixed parameters give the numbers that they gave before."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_models import CASES, FILE, at, fitted, numbers

EXPECTED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_numbers(name):
    """Likelihood, gradient, predictions, left-out values, draws and a functional."""
    theta, expected = EXPECTED[name]["theta"], EXPECTED[name]["numbers"]
    found = numbers(name, at(fitted(name), theta))
    assert found.keys() == expected.keys()
    for what, values in expected.items():
        scale = max(1.0, float(np.nanmax(np.abs(values))))
        np.testing.assert_allclose(found[what], values, rtol=0.0, atol=1e-10 * scale, err_msg=what)
