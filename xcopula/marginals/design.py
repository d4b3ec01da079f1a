"""The design of a regression: monomials of standardised covariates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from xcopula.marginals.tails import Array

__all__ = ["Design", "check_rank", "standardise"]

# A column of which the others leave less than this is theirs: rounding of single precision passes.
_COLLINEAR = 1e-6
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """All monomials of total degree 1 to ``degree`` of covariates, standardised.

    Attributes
    ----------
    fields : tuple of str
        Names of the covariates.
    centre, spread : ndarray (c,)
        Their means and standard deviations where the law was fitted.
    degree : int
    """

    fields: tuple[str, ...]
    centre: Array
    spread: Array
    degree: int = 1

    @property
    def monomials(self) -> list[tuple[int, ...]]:
        """The covariates, by number, that are multiplied in each column."""
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
        return np.stack([standard[:, list(f)].prod(axis=1) for f in self.monomials], axis=1)


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
                "observations. A slope cannot be learnt from it: leave it out."
            )
    return Design(fields, centre, spread, degree)


def check_rank(matrix: Array, labels: list[str], intercepts: Array, groups: str = "") -> None:
    """Refuse columns (n, k) that the intercepts (n, g) or other columns explain.

    Raises
    ------
    ValueError
        With the names of the columns.
    """
    q, _ = np.linalg.qr(intercepts)
    left = matrix - q @ (q.T @ matrix)
    lengths = np.linalg.norm(matrix, axis=0)
    for k, label in enumerate(labels):
        if np.linalg.norm(left[:, k]) <= _COLLINEAR * lengths[k]:
            where = f"within each group of {groups}" if groups else "at all observations"
            raise ValueError(
                f"{label!r} is constant {where}: its slope cannot be told from the level of the "
                "law itself. Leave it out, or choose a lower degree."
            )
        if k == 0:
            continue
        share, *_ = np.linalg.lstsq(left[:, :k], left[:, k], rcond=None)
        rest = left[:, k] - left[:, :k] @ share
        if np.linalg.norm(rest) <= _COLLINEAR * np.linalg.norm(left[:, k]):
            weights = np.abs(share) * np.linalg.norm(left[:, :k], axis=0)
            others = [labels[j] for j in np.flatnonzero(weights > 1e-3 * weights.max())]
            names = ", ".join(repr(name) for name in [*others, label])
            raise ValueError(
                f"The covariates {names} are collinear over the {len(matrix)} observations: "
                "their slopes cannot be told apart. Leave one out, or choose a lower degree."
            )
