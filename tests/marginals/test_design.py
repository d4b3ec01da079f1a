"""Least squares with a level for each group, against dummy columns."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.marginals.design import reduce_columns, standardise
from xcopula.marginals.grouping import rows_of_groups

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(("rows", "groups"), [(40, 1), (40, 4), (70_000, 1), (140_000, 7)])
def test_coefficients_equal_dummy_columns(rows, groups):
    """Means of groups taken off leave the coefficients of a fit with a column for each group."""
    codes = RNG.integers(0, groups, rows)
    matrix = RNG.normal(size=(rows, 3)) + codes[:, None]
    response = matrix @ [1.0, -2.0, 0.5] + 3.0 * codes + RNG.normal(size=rows)
    dummies = (codes[:, None] == np.arange(groups)).astype(np.float64)
    expected = np.linalg.lstsq(np.hstack([matrix, dummies]), response, rcond=None)[0][:3]
    reduced = reduce_columns(matrix, response, codes)
    np.testing.assert_allclose(reduced.coefficients(), expected, rtol=1e-11)
    reduced.check_rank(["a", "b", "c"])


def test_collinear_columns_are_named_in_any_block():
    """Columns that differ in the last rows of many only are not collinear; equal ones are."""
    x = RNG.normal(size=70_000)
    codes, response = np.zeros(x.size, int), RNG.normal(size=x.size)
    other = x.copy()
    other[-1] += 5.0
    reduce_columns(np.column_stack([x, other]), response, codes).check_rank(["x", "other"])
    with pytest.raises(ValueError, match="'x', 'other' are collinear over the 70000"):
        reduce_columns(np.column_stack([x, 2.0 * x]), response, codes).check_rank(["x", "other"])


def test_matrix_is_the_products():
    """Columns are products of the standardised covariates, by their labels."""
    table = RNG.normal(3.0, 2.0, size=(20, 2))
    design = standardise(table, ("a", "b"), 3)
    a, b = ((table - table.mean(axis=0)) / table.std(axis=0)).T
    expected = {"a": a, "b": b, "a^2": a**2, "a b": a * b, "b^2": b**2, "a^3": a**3}
    expected |= {"a^2 b": a**2 * b, "a b^2": a * b**2, "b^3": b**3}
    assert design.labels == list(expected)
    np.testing.assert_allclose(design.matrix(table).T, list(expected.values()), rtol=1e-12)


def test_rows_of_groups():
    """Each group has its rows in order, an empty group has none, and -1 is no group."""
    codes = RNG.integers(-1, 5, 200)
    codes[codes == 2] = 0
    for g, rows in enumerate(rows_of_groups(codes, 5)):
        np.testing.assert_array_equal(rows, np.flatnonzero(codes == g))
