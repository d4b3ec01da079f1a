"""Hermite pieces: polynomials are reproduced, and positions past the grid read zero."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from xcopula.kernels.hermite import cubic, quintic

NODES = np.linspace(0.0, 1.0, 5)
RNG = np.random.default_rng(0)


def evaluate(table: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Evaluate a table at positions in [0, 1): the cell, and the position in it."""
    cell = np.floor(s * (len(table) - 1)).astype(int)
    u = s * (len(table) - 1) - cell
    return (table[cell] * u[:, None] ** np.arange(table.shape[1])).sum(axis=1)


def made(degree: int, p: Polynomial) -> np.ndarray:
    """Tabulate a function by its derivatives at the nodes."""
    derivatives = [p(NODES), p.deriv()(NODES), p.deriv(2)(NODES)]
    return quintic(*derivatives) if degree == 5 else cubic(*derivatives[:2])


@pytest.mark.parametrize("degree", [3, 5])
def test_polynomials_are_reproduced(degree):
    """A polynomial of the pieces' degree is its own interpolant, to 1e-12."""
    p = Polynomial(RNG.normal(size=degree + 1))
    s = np.linspace(0.0, 0.999, 101)
    np.testing.assert_allclose(evaluate(made(degree, p), s), p(s), rtol=0, atol=1e-12)


@pytest.mark.parametrize("degree", [3, 5])
def test_pieces_join_smoothly(degree):
    """Where two pieces meet, they agree in the value and in every derivative that was given."""
    table = made(degree, Polynomial(RNG.normal(size=9)))
    pieces = [Polynomial(row) for row in table[:-1]]
    for left, right in pairwise(pieces):
        for order in range((degree + 1) // 2):
            assert left.deriv(order)(1.0) == pytest.approx(right.deriv(order)(0.0), abs=1e-10)


@pytest.mark.parametrize("degree", [3, 5])
def test_the_last_row_is_zero(degree):
    """It serves every position past the grid."""
    table = made(degree, Polynomial([1.0, 2.0, 3.0]))
    assert table.shape == (NODES.size, degree + 1)
    assert (table[-1] == 0.0).all()
