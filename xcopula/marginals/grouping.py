"""A law for each group of observations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from xcopula.arrays import IntArray
from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import Array
from xcopula.marginals.varying import Varying

__all__ = ["Grouped", "check_codes", "rows_of_groups"]


@dataclass(frozen=True, eq=False)
class Grouped(Varying):
    """Describe a variable by one law for each group, such as each month of the year.

    The first covariate is the number of the group, 0 to G - 1; the others belong to the laws.
    Theta joins the parameters of the laws, in order.

    Attributes
    ----------
    key : str
        What the values are grouped by, such as "time.month".
    labels : tuple of str
        A name for each group.
    laws : tuple of Marginal
        The law of each group.
    members : tuple of ndarray of int, optional
        The rows of each group, if the law is bound to rows.
    size : int
        Number of rows. A row without a group gives NaN.
    """

    key: str
    labels: tuple[str, ...]
    laws: tuple[Marginal, ...]
    members: tuple[IntArray, ...] | None = field(default=None, repr=False)
    size: int = field(default=0, repr=False)

    @property
    def inner(self) -> Marginal:
        """The law of the first group."""
        return self.laws[0]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The family and the key."""
        return f"{self.inner.name} by {self.key}"

    @property
    def fields(self) -> tuple[str, ...]:
        """The key, then the covariates of the laws."""
        return (self.key, *self.inner.fields)

    def at(self, covariates: npt.ArrayLike) -> Self:
        """Return the law bound to rows of covariates (n, c).

        Raises
        ------
        ValueError
            If the law was not fitted to the group of a row.
        """
        table = self._rows(covariates)
        codes = check_codes(table[:, 0], self.key, self.labels)
        members = rows_of_groups(codes, len(self.labels))
        laws = tuple(law.at(table[rows, 1:]) for law, rows in zip(self.laws, members, strict=True))
        return replace(self, laws=laws, members=members, size=len(table))

    def _occupied(self) -> Iterator[tuple[int, Marginal, IntArray]]:
        """Yield number, law and rows of each group that has rows."""
        if self.members is None:
            raise self._unbound()
        for g, (law, rows) in enumerate(zip(self.laws, self.members, strict=True)):
            if rows.size:
                yield g, law, rows

    def _each(self, method: str, x: npt.ArrayLike) -> Array:
        occupied = list(self._occupied())
        x = np.asarray(x, dtype=np.float64)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, (self.size,)))
        out = np.full(x.shape, np.nan)
        for _, law, rows in occupied:
            out[..., rows] = getattr(law, method)(x[..., rows])
        return out

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        return self._each("to_normal", y)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        return self._each("from_normal", z)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        return self._each("log_density", y)

    def to_normal_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / dy."""
        return self._each("to_normal_slope", y)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        return self._each("log_density_slope", y)

    def _gradient(self, method: str, y: npt.ArrayLike) -> Array:
        y, slices = np.asarray(y, dtype=np.float64), self._slices
        out = np.zeros((self.size, slices[-1].stop))
        for g, law, rows in self._occupied():
            out[rows, slices[g]] = getattr(law, method)(y[rows])
        return out

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p)."""
        return self._gradient("to_normal_gradient", y)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p)."""
        return self._gradient("log_density_gradient", y)

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        y, slices = np.asarray(y, dtype=np.float64), self._slices
        out = np.zeros(slices[-1].stop)
        for g, law, rows in self._occupied():
            own = None if weights is None else weights[rows]
            out[slices[g]] = law._pullback(method, y[rows], own)
        return out

    @property
    def parts(self) -> list[slice]:
        """One part of theta for each group."""
        return self._slices

    @property
    def _slices(self) -> list[slice]:
        stops = itertools.accumulate((law.theta.size for law in self.laws), initial=0)
        return [slice(a, b) for a, b in itertools.pairwise(stops)]

    @property
    def theta(self) -> Array:
        """Parameters of the laws."""
        return np.concatenate([law.theta for law in self.laws])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with other parameters, bound to the same rows if to any."""
        theta = np.asarray(theta, dtype=np.float64)
        return replace(
            self,
            laws=tuple(
                law.with_theta(theta[where])
                for law, where in zip(self.laws, self._slices, strict=True)
            ),
        )

    @property
    def bounds(self) -> Array:
        """The bounds of all laws, joined."""
        return np.concatenate([law.bounds for law in self.laws])

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the sum of the laws' log priors, and its gradient."""
        parts = [law.log_prior() for law in self.laws]
        return sum(value for value, _ in parts), np.concatenate([g for _, g in parts])

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of each law, such as "scale[JJA]"."""
        return {
            f"{name}[{label}]": value
            for label, law in zip(self.labels, self.laws, strict=True)
            for name, value in law.parameters.items()
        }

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds the supports of all groups."""
        lower, upper = zip(*(law.support for law in self.laws), strict=True)
        return min(lower), max(upper)

    def ends(self) -> tuple[Array, Array]:
        """Return the ends of the support at each row."""
        if self.members is None:
            return super().ends()
        lower, upper = np.full(self.size, np.nan), np.full(self.size, np.nan)
        for _, law, rows in self._occupied():
            lower[rows], upper[rows] = law.ends()
        return lower, upper

    @property
    def dof(self) -> float:
        """The sum over the laws."""
        return sum(law.dof for law in self.laws)

    @property
    def tail_index(self) -> float | Array:
        """The index of each row's law; the largest of all laws if there are no rows."""
        if self.members is None:
            return max(float(np.max(law.tail_index)) for law in self.laws)
        out = np.full(self.size, np.nan)
        for _, law, rows in self._occupied():
            out[rows] = law.tail_index
        return out


def check_codes(codes: Array, key: str, labels: tuple[str, ...]) -> IntArray:
    """Return group numbers as integers, with -1 for NaN.

    Raises
    ------
    ValueError
        If a number belongs to no group.
    """
    known = (codes >= 0.0) & (codes < len(labels)) & (codes == np.floor(codes))
    strange = np.unique(codes[~known & ~np.isnan(codes)])
    if strange.size:
        first = ", ".join(f"{code:g}" for code in strange[:3])
        raise ValueError(
            f"{key!r} has groups that the law was not fitted to, numbered {first}. It was fitted "
            f"to {len(labels)}: {', '.join(labels)}. Fit it to every group, or mask the others."
        )
    return np.where(known, codes, -1.0).astype(np.intp)


def rows_of_groups(codes: IntArray, count: int) -> tuple[IntArray, ...]:
    """Return the rows of each group 0 to ``count`` - 1, in their order; -1 is no group."""
    order = np.argsort(codes, kind="stable")
    stops = np.searchsorted(codes[order], np.arange(count + 1))
    return tuple(order[a:b] for a, b in itertools.pairwise(stops))
