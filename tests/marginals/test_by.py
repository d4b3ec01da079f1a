"""A law for each group: how few values a group may have."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.marginals import by

VALUES = np.random.default_rng(0).normal(size=30)


def test_five_values_are_enough():
    """A group of five has a law of its own."""
    law = by("k", "normal").fit(VALUES, np.repeat([0.0, 1.0], [25, 5])[:, None])
    assert law.laws[1].location == pytest.approx(VALUES[25:].mean())


def test_four_values_are_too_few():
    """A group of four is named with its size."""
    with pytest.raises(ValueError, match=r"at least 5 values in each group; .* fewer: 1 \(4\)\."):
        by("k", "normal").fit(VALUES, np.repeat([0.0, 1.0], [26, 4])[:, None])
