"""Numbers that users ask for."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.prediction.levels import check_levels, numbers_of


@pytest.mark.parametrize("given", [0.5, [0.05, 0.95], np.array([0.1]), (0.2, 0.3, 0.4)])
def test_levels(given):
    """One number, or a sequence of them."""
    np.testing.assert_array_equal(check_levels(given), np.asarray(given))


@pytest.mark.parametrize("given", [0.0, 1.0, -0.1, 5, "median", [], [[0.5]], [0.5, np.nan], None])
def test_what_is_no_level(given):
    """Percent, words and nothing are refused."""
    with pytest.raises(ValueError, match="strictly between 0 and 1, found"):
        check_levels(given)


def test_what_is_no_number():
    """NaN stands for it."""
    np.testing.assert_array_equal(numbers_of([1, 2]), [1.0, 2.0])
    for given in ("a", [1, [2, 3]], [object()], [True]):
        assert np.isnan(numbers_of(given)).all()
