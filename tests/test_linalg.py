"""Factorisations in place against numpy, the jitter and the error."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.errors import NotPositiveDefiniteError
from xcopula.linalg import JITTERS, cholesky, inverse_from_cholesky, log_determinant, solve_lower

sizes = pytest.mark.parametrize("n", [1, 2, 7, 130])


def correlation_matrix(n, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n + 5))
    matrix = root @ root.T
    scale = np.sqrt(np.diagonal(matrix))
    return matrix / np.outer(scale, scale)


def lower_only(matrix):
    """Return a copy with rubbish above the diagonal, which nothing may read."""
    out = matrix.copy()
    out[np.triu_indices(len(out), 1)] = 1e300
    return out


def factorise(matrix):
    factor, jitter = cholesky(lambda: lower_only(matrix), lambda: "length_scale=[1.]")
    assert jitter == 0.0
    return factor


@sizes
def test_cholesky(n):
    """The factor equals numpy's, to 1e-12, and reads the lower triangle alone."""
    matrix = correlation_matrix(n)
    np.testing.assert_allclose(
        np.tril(factorise(matrix)), np.linalg.cholesky(matrix), rtol=0, atol=1e-12
    )


@sizes
def test_inverse(n):
    """The lower triangle of the inverse equals numpy's, to 1e-9 of its largest entry."""
    matrix = correlation_matrix(n)
    expected = np.linalg.inv(matrix)
    np.testing.assert_allclose(
        np.tril(inverse_from_cholesky(factorise(matrix))),
        np.tril(expected),
        rtol=0,
        atol=1e-9 * np.abs(expected).max(),
    )


@sizes
def test_log_determinant(n):
    """The log determinant equals numpy's, to 1e-10."""
    matrix = correlation_matrix(n)
    _, expected = np.linalg.slogdet(matrix)
    assert log_determinant(factorise(matrix)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m", [1, 4])
@sizes
def test_solve_lower(n, m, transposed):
    """Rows are solved in place with the factor or its transpose: the residual is below 1e-11."""
    factor = factorise(correlation_matrix(n))
    lower = np.tril(factor)
    right = np.random.default_rng(1).normal(size=(m, n))
    solution = right.copy()
    assert solve_lower(factor, solution, transposed=transposed) is solution
    matrix = lower.T if transposed else lower
    np.testing.assert_allclose(solution @ matrix.T, right, rtol=0, atol=1e-11)


def test_solve_lower_takes_a_vector():
    """One right-hand side may be a vector."""
    matrix = correlation_matrix(6)
    factor = factorise(matrix)
    b = np.arange(6.0)
    x = solve_lower(factor, solve_lower(factor, b.copy()), transposed=True)
    np.testing.assert_allclose(matrix @ x, b, rtol=0, atol=1e-12)


def test_singular_matrix_is_jittered():
    """Two observations of the same thing need a jitter, the smallest that helps."""
    matrix = np.array([[1.0, 1.0 + 1e-11, 0.5], [1.0 + 1e-11, 1.0, 0.5], [0.5, 0.5, 1.0]])
    calls = []

    def fill():
        calls.append(1)
        return matrix.copy()

    factor, jitter = cholesky(fill, lambda: "")
    assert jitter == JITTERS[1]
    assert len(calls) == 2
    lower = np.tril(factor)
    np.testing.assert_allclose(lower @ lower.T, matrix + jitter * np.eye(3), rtol=0, atol=1e-12)


def test_hopeless_matrix_names_parameters_and_remedy():
    """A matrix that no small jitter saves is an error with its size, parameters and remedy."""
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"2 observations .* at length_scale=\[9\.\].*1e-06.*near-duplicate.*'matern12'",
    ):
        cholesky(matrix.copy, lambda: "length_scale=[9.]")


def test_nan_is_not_positive_definite():
    """A matrix with NaN is refused, not returned."""
    with pytest.raises(NotPositiveDefiniteError):
        cholesky(lambda: np.full((3, 3), np.nan), lambda: "")


def test_error_is_a_value_error():
    """Code that knows nothing of the package still catches the failure."""
    assert issubclass(NotPositiveDefiniteError, ValueError)


@pytest.mark.parametrize(
    "array",
    [np.eye(3, dtype=np.float32), np.asfortranarray(np.ones((3, 3))), np.eye(4)[::2, ::2]],
    ids=["float32", "fortran", "strided"],
)
def test_wrong_layout_is_refused(array):
    """Memory that LAPACK would misread is a TypeError, not a wrong result."""
    with pytest.raises(TypeError, match="C-contiguous float64"):
        cholesky(lambda: array, lambda: "")


def test_a_factor_may_be_read_only():
    """What is only read need not be writeable; what is overwritten must be, and stays as it was."""
    factor = factorise(correlation_matrix(6))
    expected = solve_lower(factor, np.arange(6.0))
    factor.flags.writeable = False
    right = np.arange(6.0)
    np.testing.assert_array_equal(solve_lower(factor, right), expected)
    kept = factor.copy()
    with pytest.raises(
        TypeError, match=r"overwrites this array, and it is read-only\. Pass a copy"
    ):
        inverse_from_cholesky(factor)
    right.flags.writeable = False
    with pytest.raises(TypeError, match="Pass a copy"):
        solve_lower(factor, right)
    np.testing.assert_array_equal(factor, kept)


def test_zero_pivot_has_no_inverse():
    """A singular factor is an error that says where."""
    with pytest.raises(NotPositiveDefiniteError, match="zero pivot at row 2"):
        inverse_from_cholesky(np.diag([1.0, 0.0, 1.0]))
