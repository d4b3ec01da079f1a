"""How far coordinates reach that are not in memory."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.labels.coordinates import Extent

DATES = np.array(["2001-02-03", "NaT", "1999-12-31"], "M8[ns]")


@pytest.mark.parametrize(
    ("values", "low", "high", "gaps", "varies"),
    [
        ([3.0, np.nan, -1.0], -1.0, 3.0, True, True),
        ([2.0, 2.0], 2.0, 2.0, False, False),
        ([2.0, np.nan], 2.0, 2.0, True, True),
        ([5, 5, 6], 5, 6, False, True),
        (DATES, DATES[2], DATES[0], True, True),
        (DATES[[0, 0]], DATES[0], DATES[0], False, False),
        (DATES - DATES[0], DATES[2] - DATES[0], np.timedelta64(0, "ns"), True, True),
    ],
)
def test_of_numbers_and_dates(values, low, high, gaps, varies):
    """What is missing counts as different; chunks together reach as far as the whole."""
    values = np.array(values)
    found = Extent.of(values)
    assert found == (low, high, gaps)
    assert found.varies == varies
    parts = [Extent.of(values[k : k + 1]) for k in range(len(values))]
    assert Extent.joined([None, *parts]) == found


def test_of_nothing():
    """No value, no extent; all missing, one without an end."""
    assert Extent.of(np.empty(0)) is None
    assert Extent.of(np.array(["a"])) is None
    assert Extent.joined([None, None]) is None
    assert np.isnat(Extent.of(DATES[[1, 1]]).low)
    assert Extent.of(np.array([np.nan])).varies
