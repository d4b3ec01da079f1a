"""The low-rank covariance: every piece against the dense matrix of its definition."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.methods import Sparse
from xcopula.methods.lowrank import factorise, pull_back

KINDS = ("dtc", "fitc", "pitc")


@pytest.fixture(params=KINDS)
def pieces(request):
    """Factorise a sample of three tasks; also give the dense S and Q of some cells of task 1."""
    process, sample, theta, rng = reference.example("shared")
    method = Sparse(request.param, 15)
    made = reference.prepare(method, process, sample, theta)
    blocks = made.blocks
    if request.param == "pitc":  # several blocks, though the sample is small
        half = np.flatnonzero(sample.inputs[0] < 0.5)
        blocks = (half[None], np.setdiff1d(np.arange(sample.size), half)[None])
        assert not set(sample.sites[blocks[0][0]]) & set(sample.sites[blocks[1][0]])
    found = factorise(request.param, process, sample, made.points, blocks, theta)
    cells = reference.some_targets(sample, rng)
    dense = reference.low_rank(request.param, process, theta, sample, made.points, blocks, cells, 1)
    return found, dense, cells, sample


def test_solve(pieces):
    """Rows times the inverse of S, to 1e-6."""
    found, (matrix, *_), _, sample = pieces
    rows = np.random.default_rng(0).normal(size=(4, sample.size))
    expected = np.linalg.solve(matrix, rows.T).T
    np.testing.assert_allclose(found.solve(rows), expected, rtol=0, atol=1e-6)


def test_precision(pieces):
    """The diagonal of the inverse, to 1e-6."""
    found, (matrix, *_), _, _ = pieces
    expected = np.diagonal(np.linalg.inv(matrix))
    np.testing.assert_allclose(found.precision(), expected, rtol=0, atol=1e-6)


def test_log_determinant(pieces):
    """The logarithm of the determinant, to 1e-6."""
    found, (matrix, *_), _, _ = pieces
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-6)


def test_whitened_rows_have_the_products_of_q(pieces):
    """Rows of cells, and columns of the data, multiply to Q, to 1e-7."""
    found, (_, cross, own), cells, _ = pieces
    white = found.whiten(cells.inputs, 1)
    assert white.shape == (cells.size, len(found.root))
    np.testing.assert_allclose(white @ found.white, cross, rtol=0, atol=1e-7)
    np.testing.assert_allclose((white**2).sum(axis=1), own, rtol=0, atol=1e-7)


def test_uncertain_rows_are_what_the_data_leave(pieces):
    """Their squares sum to Q** - Q*f S^-1 Qf*, to 1e-6: what is not known of u."""
    found, (matrix, cross, own), cells, _ = pieces
    rows = found.uncertain(found.whiten(cells.inputs, 1))
    expected = own - np.einsum("ij,ji->i", cross, np.linalg.solve(matrix, cross.T))
    np.testing.assert_allclose((rows**2).sum(axis=1), expected, rtol=0, atol=1e-6)


def test_missing_variance(pieces):
    """What inducing points leave of the signal's variance at the data is one less N less Q."""
    found, _, _, sample = pieces
    task = np.repeat(np.arange(3), sample.sizes)
    expected = 1.0 - found.state.nugget[task, task] - (found.white**2).sum(axis=0)
    np.testing.assert_allclose(found.missing(sample), expected, rtol=0, atol=1e-12)
    assert (found.missing(sample) >= 0.0).all()
    assert found.missing(sample).max() > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_pull_back(kind):
    """Contractions with S^-1 - aa' are the derivatives of the Gaussian likelihood, to 1e-6."""
    process, sample, theta, rng = reference.example("shared", sizes=(12, 10, 9))
    made = reference.prepare(Sparse(kind, 9), process, sample, theta)
    w = rng.normal(size=sample.size)
    size = process.covariance.size

    def value(x):
        pieces = factorise(kind, process, sample, made.points, made.blocks, x)
        alpha = pieces.solve(w[None])[0]
        return 0.5 * w @ alpha + 0.5 * pieces.log_determinant

    pieces = factorise(kind, process, sample, made.points, made.blocks, theta)
    by = pull_back(kind, sample, pieces, pieces.solve(w[None])[0])
    gradient = process.covariance.pullback(theta[:size], by)
    expected = reference.differences(value, theta, step=3e-4)[:size]
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
