"""A law that is cut off at the ends of a support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import Array, log_between, log_phi, normal_score
from xcopula.marginals.varying import Composed

__all__ = ["Truncated"]


@dataclass(frozen=True, eq=False)
class Truncated(Composed):
    r"""Describe a variable by a law that is cut off at one end or at both.

    .. math:: F(y) = \frac{F_0(y) - F_0(a)}{F_0(b) - F_0(a)}, \quad a < y < b

    :math:`\theta` is that of :math:`F_0`. Accurate for z from -6 to 6; past that a value next to an
    end is rounded to it.

    Attributes
    ----------
    base : Marginal
        The law :math:`F_0`, which may vary from row to row.
    lower, upper : float
        The ends a and b; infinite where the law is not cut off.

    Examples
    --------
    >>> from xcopula.marginals import Normal
    >>> law = Truncated(Normal(1.0, 2.0), lower=0.0)
    >>> law.support, float(law.from_normal(-np.inf))
    ((0.0, inf), 0.0)
    """

    base: Marginal
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise ValueError(
                f"Truncated: the lower end must be below the upper one, found {self.lower} and "
                f"{self.upper}."
            )
        if self.base.atom is not None:
            raise ValueError(
                f"Truncated: a law with an atom cannot be cut off, found {self.base.name!r}. "
                "Truncate the law of the values above zero."
            )

    @property
    def inner(self) -> Marginal:
        """The law that is cut off."""
        return self.base

    @property
    def name(self) -> str:  # type: ignore[override]
        """The law, and where it is cut off."""
        return _truncated_name(self.base.name, self.lower, self.upper)

    @property
    def needs(self) -> str:  # type: ignore[override]
        """What it needs."""
        return f"values {_where(self.lower, self.upper)}"

    @property
    def includes_lower_end(self) -> bool:  # type: ignore[override]
        """The ends have no finite score."""
        return False

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """What to do about values at an end, or beyond it."""
        return (
            "State a wider `support`, mask them, or, if they mean 'that much or less' or 'that "
            "much or more', name the limit with `censored=`. Positive values over many orders of "
            "magnitude have marginals='lognormal'."
        )

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Raise: the law that is cut off is needed too."""
        raise NotImplementedError(
            "Truncated cannot be fitted without a family and the ends. State `support=` in "
            "xcopula.fit instead."
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The covariates of the law that is cut off."""
        return self.base.fields

    def at(self, covariates: npt.ArrayLike) -> Self:
        """Return the law bound to rows of covariates (n, c)."""
        return replace(self, base=self.base.at(covariates))

    def _inside(self, y: npt.ArrayLike) -> Array:
        return np.clip(np.asarray(y, dtype=np.float64), self.lower, self.upper)

    def _ends(self, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
        """Return the base's scores of both ends, and the log probability between them."""
        # a law that varies has them at each row, a constant one once
        rows = shape[-1:] if self.fields else ()
        low, high = (
            self.base.to_normal(np.full(rows, end)) if np.isfinite(end) else np.asarray(end)
            for end in (self.lower, self.upper)
        )
        return low, high, log_between(low, high)

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        y = self._inside(y)
        return self._score(self.base.to_normal(y), self._ends(y.shape))

    def _score(self, base: Array, ends: tuple[Array, Array, Array]) -> Array:
        """Return normal scores, from those of the base law."""
        low, high, total = ends
        log_cdf = np.minimum(log_between(low, base) - total, 0.0)
        return normal_score(log_cdf, np.minimum(log_between(base, high) - total, 0.0))

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        z = np.asarray(z, dtype=np.float64)
        low, high, total = self._ends(z.shape)
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            log_cdf = np.logaddexp(log_ndtr(low), total + log_ndtr(z))
            log_sf = np.logaddexp(log_ndtr(-high), total + log_ndtr(-z))
        own = normal_score(np.minimum(log_cdf, 0.0), np.minimum(log_sf, 0.0))
        lower, upper = self.ends()
        y = np.where(z == -np.inf, lower, self._inside(self.base.from_normal(own)))
        return np.where(z == np.inf, upper, y)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        y = np.asarray(y, dtype=np.float64)
        out = self.base.log_density(y) - self._ends(y.shape)[2]
        return np.where((y <= self.lower) | (y >= self.upper), -np.inf, out)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        return self.base.log_density_slope(y)

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p)."""
        return self._gradient("to_normal_gradient", y)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p)."""
        return self._gradient("log_density_gradient", y)

    def _gradient(self, method: str, y: npt.ArrayLike) -> Array:
        y, factors = self._factors(method, y)
        out: Array = factors[0][:, None] * getattr(self.base, method)(y)
        for end, factor in zip((self.lower, self.upper), factors[1:], strict=True):
            if np.isfinite(end):
                ends = np.full(y.size if self.fields else 1, end)
                out = out + factor[:, None] * _finite(self.base.to_normal_gradient(ends))
        return out

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        y, factors = self._factors(method, y)
        counts = np.ones(y.size) if weights is None else weights
        out = self.base._pullback(method, y, counts * factors[0])
        for end, factor in zip((self.lower, self.upper), factors[1:], strict=True):
            if np.isfinite(end):
                ends, pull = np.full(y.size, end), counts * factor
                if not self.fields:
                    ends, pull = ends[:1], pull.sum(keepdims=True)
                out = out + _finite(self.base._pullback("to_normal_gradient", ends, pull))
        return out

    def _factors(self, method: str, y: npt.ArrayLike) -> tuple[Array, tuple[Array, Array, Array]]:
        """Return the values, and what the base's derivatives at them and at the ends count."""
        y = np.asarray(y, dtype=np.float64)
        low, high, total = ends = self._ends(y.shape)
        by_low, by_high = np.exp(log_phi(low) - total), np.exp(log_phi(high) - total)
        if method == "log_density_gradient":
            factors = (np.ones(y.size), by_low, -by_high)
        else:
            base = self.base.to_normal(self._inside(y))
            z = self._score(base, ends)
            with np.errstate(over="ignore", invalid="ignore"):
                slope = np.exp(log_phi(base) - total - log_phi(z))
                above, below = (
                    np.exp(log_ndtr(side) - log_phi(z)) if np.isfinite(end) else 0.0
                    for side, end in ((-z, self.lower), (z, self.upper))
                )
            factors = (slope, -above * by_low, -below * by_high)
        a, b, c = (np.broadcast_to(factor, y.shape) for factor in factors)
        return y, (a, b, c)

    @property
    def theta(self) -> Array:
        """Parameters of the base law."""
        return self.base.theta

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with other parameters, bound to the same rows if to any."""
        return replace(self, base=self.base.with_theta(theta))

    @property
    def bounds(self) -> Array:
        """Bounds of the base law."""
        return self.base.bounds

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the log prior of the base law, and its gradient."""
        return self.base.log_prior()

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the base law, before it is cut off."""
        return self.base.parameters

    @property
    def support(self) -> tuple[float, float]:
        """The ends, or those of the base law where it does not reach them."""
        lower, upper = self.base.support
        return max(lower, self.lower), min(upper, self.upper)

    def ends(self) -> tuple[Array, Array]:
        """Return the ends of the support at each row."""
        lower, upper = self.base.ends()
        return np.maximum(lower, self.lower), np.minimum(upper, self.upper)

    @property
    def dof(self) -> float:
        """The degrees of freedom of the base law."""
        return self.base.dof

    @property
    def tail_index(self) -> float | Array:
        """The index of the base law, unless it is cut off at both ends."""
        both = np.isfinite(self.lower) and np.isfinite(self.upper)
        return 0.0 if both else self.base.tail_index


def _finite(gradient: Array) -> Array:
    """Return derivatives, none where an end of the base's own support cannot move."""
    return np.where(np.isfinite(gradient), gradient, 0.0)


def _where(lower: float, upper: float) -> str:
    if np.isinf(lower) or np.isinf(upper):
        return f"below {upper:g}" if np.isinf(lower) else f"above {lower:g}"
    return f"between {lower:g} and {upper:g}"


def _truncated_name(family: str, lower: float, upper: float) -> str:
    """Name a law that is cut off by the law, and where."""
    comma = "," if "~" in family else ""  # what is above is not the covariate
    return f"{family}{comma} {_where(lower, upper)}"
