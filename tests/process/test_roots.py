"""Roots of many increasing functions at a time."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.process.roots import find_roots

GOALS = np.array([0.3, 1.0, 8.0, 40.0])


@pytest.mark.parametrize(
    ("function", "inverse"),
    [
        (lambda x: x**3, np.cbrt),
        (np.expm1, np.log1p),
        (lambda x: np.arctan(x) * 100.0, lambda y: np.tan(y / 100.0)),
        (lambda x: np.where(x < 2.0, x, 50.0 * x - 98.0), None),
    ],
    ids=["cube", "exponential", "arctangent", "kinked"],
)
def test_finds_them(function, inverse):
    """Whatever the curvature."""
    expected = GOALS if inverse is None else inverse(GOALS)
    if inverse is None:
        expected = np.where(GOALS < 2.0, GOALS, (GOALS + 98.0) / 50.0)
    found = find_roots(lambda x: function(x) - GOALS, np.full(4, -1.0), np.full(4, 60.0))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_each_on_its_own():
    """A root does not depend on which others are sought beside it, to the last bit."""
    together = find_roots(lambda x: np.sinh(x) - GOALS, np.zeros(4), np.full(4, 9.0))
    alone = [
        find_roots(lambda x, g=g: np.sinh(x) - g, np.zeros(1), np.full(1, 9.0))[0] for g in GOALS
    ]
    np.testing.assert_array_equal(together, alone)


def test_few_evaluations():
    """A function that is nearly straight takes a few."""
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x + 0.05 * np.sin(x) - GOALS

    find_roots(function, GOALS - 3.0, GOALS + 2.0)
    assert count <= 8


def test_ends_of_a_bracket():
    """A bracket of no width is its root, one without a change of sign ends at its nearer end."""
    found = find_roots(lambda x: x - 2.0, np.array([2.0, 3.0, -1.0]), np.array([2.0, 4.0, 1.0]))
    np.testing.assert_array_equal(found, [2.0, 3.0, 1.0])


def test_nowhere():
    """NaN gives NaN, and what is beside it is found."""
    found = find_roots(lambda x: x - 0.5, np.array([np.nan, 0.0]), np.array([np.nan, 1.0]))
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(0.5, rel=1e-12)
