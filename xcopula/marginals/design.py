"""The design of a regression: monomials of standardised covariates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.marginals.tails import Array

__all__ = ["Design", "Reduced", "reduce_columns", "standardise"]

# The others explain a column if they leave less of it than this, which is more than the rounding
# of single precision.
_COLLINEAR = 1e-6
_CONSTANT = 1e-12
_BLOCK = 65_536  # rows


@dataclass(frozen=True, eq=False)
class Design:
    """All monomials of total degree 1 to ``degree`` of covariates, standardised.

    Attributes
    ----------
    fields : tuple of str
        Names of the covariates.
    centre, spread : ndarray (c,)
        Their means and standard deviations in the data that the law was fitted to.
    degree : int
    """

    fields: tuple[str, ...]
    centre: Array
    spread: Array
    degree: int = 1

    @property
    def monomials(self) -> list[tuple[int, ...]]:
        """For each column, the numbers of the covariates that it multiplies."""
        numbers = range(len(self.fields))
        return [
            factors
            for degree in range(1, self.degree + 1)
            for factors in itertools.combinations_with_replacement(numbers, degree)
        ]

    @property
    def labels(self) -> list[str]:
        """A name for each column, such as "x", "x^2" or "x y"."""
        return [
            " ".join(
                self.fields[c] if factors.count(c) == 1 else f"{self.fields[c]}^{factors.count(c)}"
                for c in dict.fromkeys(factors)
            )
            for factors in self.monomials
        ]

    def matrix(self, covariates: Array) -> Array:
        """Evaluate the columns (n, k) at covariates (n, c)."""
        standard = (covariates - self.centre) / self.spread
        monomials = self.monomials
        out = np.ones((len(covariates), len(monomials)))
        for k, factors in enumerate(monomials):
            for c in factors:
                out[:, k] *= standard[:, c]
        return out


def standardise(covariates: Array, fields: tuple[str, ...], degree: int) -> Design:
    """Return the design whose covariates (n, c) have mean 0 and standard deviation 1.

    Raises
    ------
    ValueError
        If a covariate is constant.
    """
    centre, spread = covariates.mean(axis=0), covariates.std(axis=0)
    for name, mean, sd in zip(fields, centre, spread, strict=True):
        if not sd > _CONSTANT * abs(mean):
            raise ValueError(
                f"The covariate {name!r} is constant: {mean:.6g} at all {len(covariates)} "
                "observations. It has no slope to learn: leave it out."
            )
    return Design(fields, centre, spread, degree)


@dataclass(frozen=True, eq=False)
class Reduced:
    """Columns reduced to what least squares needs, where each group has its own level.

    Attributes
    ----------
    triangle : ndarray (k + 1, k + 1)
        R of the QR decomposition of the columns, then the response, less the means of their groups.
    lengths : ndarray (k,)
        Norms of the columns as they are.
    count : int
        Number of rows.
    """

    triangle: Array
    lengths: Array
    count: int

    def coefficients(self) -> Array:
        """Return the least squares coefficients of the columns (k,)."""
        return np.asarray(np.linalg.solve(self.triangle[:-1, :-1], self.triangle[:-1, -1]))

    def check_rank(self, labels: list[str], groups: str = "") -> None:
        """Raise if the levels or other columns explain a column.

        Raises
        ------
        ValueError
            It names the columns.
        """
        left = np.linalg.norm(self.triangle[:, :-1], axis=0)
        for k, label in enumerate(labels):
            if left[k] <= _COLLINEAR * self.lengths[k]:
                where = f"within each group of {groups}" if groups else "at all observations"
                raise ValueError(
                    f"{label!r} is constant {where}: its slope cannot be told apart from the level "
                    "of the law. Leave it out, or choose a lower degree."
                )
            # what the columns before this one leave of it
            if abs(self.triangle[k, k]) <= _COLLINEAR * left[k]:
                share = np.linalg.solve(self.triangle[:k, :k], self.triangle[:k, k])
                weights = np.abs(share) * left[:k]
                others = [labels[j] for j in np.flatnonzero(weights > 1e-3 * weights.max())]
                names = ", ".join(repr(name) for name in [*others, label])
                raise ValueError(
                    f"The covariates {names} are collinear over the {self.count} observations: "
                    "their slopes cannot be told apart. Leave one out, or choose a lower degree."
                )


def reduce_columns(matrix: Array, response: Array, codes: npt.NDArray[np.intp]) -> Reduced:
    """Reduce columns (n, k) and a response (n,) of the groups ``codes`` (n,), numbered from 0.

    Subtracting the mean of each group gives the same slopes as fitting a level for each group
    (Frisch, Waugh and Lovell), and needs no column for each group. The triangle is updated by one
    block of rows after another.
    """
    counts = np.bincount(codes)
    columns = [*matrix.T, response]
    means = np.stack([np.bincount(codes, column) / counts for column in columns], axis=1)
    triangle = np.zeros((0, len(columns)))
    for start in range(0, response.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = np.column_stack([matrix[rows], response[rows]]) - means[codes[rows]]
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    lengths = np.sqrt([column @ column for column in matrix.T])
    return Reduced(triangle, lengths, response.size)
