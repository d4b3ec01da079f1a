"""A marginal whose values below a limit are seen as the limit: rain that is zero, say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import Array, log_phi
from xcopula.marginals.varying import Composed

__all__ = ["Censored"]

_NEGATIVE = (
    "If they are the noise of an instrument about zero, set them to 0. If not, state "
    "`support=(None, None)`, or mask them."
)


@dataclass(frozen=True, eq=False)
class Censored(Composed):
    r"""Describe a variable by a law that goes on below a limit, where values are the limit.

    .. math:: Y = \max(a, Y^*), \qquad Y^* \sim F_0

    The limit is an atom of probability :math:`F_0(a)`: all scores up to :math:`\Phi^{-1}(F_0(a))`
    are mapped to it. It has no parameter of its own, and follows groups and trends with
    :math:`F_0`.

    Attributes
    ----------
    base : Marginal
        The law :math:`F_0`, which may vary from row to row.
    lower : float
        The limit a.

    Examples
    --------
    >>> from xcopula.marginals import Normal
    >>> Censored(Normal(1.0, 2.0)).from_normal([-1.0, 0.0, 1.0])
    array([0., 1., 3.])
    """

    base: Marginal
    lower: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.lower):
            raise ValueError(f"Censored: the limit must be finite, found {self.lower}.")
        if self.base.atom is not None:
            raise ValueError(
                f"Censored: a law with an atom cannot be censored, found {self.base.name!r}."
            )

    @property
    def inner(self) -> Marginal:
        """The law that goes on below the limit."""
        return self.base

    @property
    def name(self) -> str:  # type: ignore[override]
        """The law, and where it is censored."""
        comma = "," if "~" in self.base.name else ""
        return f"{self.base.name}{comma} censored at {self.lower:g}"

    @property
    def needs(self) -> str:  # type: ignore[override]
        """What it needs."""
        return "non-negative values" if self.lower == 0.0 else f"values from {self.lower:g} on"

    @property
    def includes_lower_end(self) -> bool:  # type: ignore[override]
        """The limit has a probability."""
        return True

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """What to do about values below the limit."""
        return _NEGATIVE

    @property
    def atom(self) -> float:
        """The limit."""
        return self.lower

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Raise: the law that goes on below the limit is needed too."""
        raise NotImplementedError(
            "Censored cannot be fitted without a family. State `support=` in xcopula.fit instead."
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The covariates of the law."""
        return self.base.fields

    def at(self, covariates: npt.ArrayLike) -> Self:
        """Return the law bound to rows of covariates (n, c)."""
        return replace(self, base=self.base.at(covariates))

    def _above(self, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the values, at least the limit, and the values as they are."""
        y = np.asarray(y, dtype=np.float64)
        return np.maximum(y, self.lower), y

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores; the limit to the largest of its scores."""
        inside, y = self._above(y)
        z = self.base.to_normal(inside)
        return np.where((y < self.lower) & ~np.isnan(z), -np.inf, z)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        return np.asarray(np.maximum(self.base.from_normal(z), self.lower))

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density above the limit, and the log probability of the limit."""
        inside, y = self._above(y)
        out = np.where(y > self.lower, self.base.log_density(inside), -np.inf)
        out = np.where(y == self.lower, log_ndtr(self.base.to_normal(inside)), out)
        return np.where(np.isnan(self.base.to_normal(inside)), np.nan, out)

    def to_normal_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / dy; 0 at the limit, which stays where it is."""
        inside, y = self._above(y)
        return np.where(y > self.lower, self.base.to_normal_slope(inside), 0.0)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy; 0 at the limit."""
        inside, y = self._above(y)
        return np.where(y > self.lower, self.base.log_density_slope(inside), 0.0)

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p); at the limit that of its largest score."""
        return self.base.to_normal_gradient(self._above(y)[0])

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p)."""
        inside, y = self._above(y)
        above, ratio = self._factors(inside, y)
        by_score = self.base.to_normal_gradient(inside)
        return np.where(
            above[:, None], self.base.log_density_gradient(inside), ratio[:, None] * by_score
        )

    def _factors(self, inside: Array, y: Array) -> tuple[npt.NDArray[np.bool_], Array]:
        """Return which values lie above the limit, and d log Phi(z) / dz at the limit, else 0."""
        z = self.base.to_normal(inside)
        with np.errstate(over="ignore"):
            ratio = np.exp(log_phi(z) - log_ndtr(z))
        return y > self.lower, np.where(y == self.lower, ratio, 0.0)

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        inside, y = self._above(y)
        if method == "to_normal_gradient":
            return self.base._pullback(method, inside, weights)
        above, ratio = self._factors(inside, y)
        counts = np.ones(y.size) if weights is None else weights
        out = self.base._pullback(method, inside, np.where(above, counts, 0.0))
        return out + self.base._pullback("to_normal_gradient", inside, counts * ratio)

    @property
    def theta(self) -> Array:
        """Parameters of the law."""
        return self.base.theta

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with other parameters, bound to the same rows if to any."""
        return replace(self, base=self.base.with_theta(theta))

    @property
    def bounds(self) -> Array:
        """Bounds of the law."""
        return self.base.bounds

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the log prior of the law, and its gradient."""
        return self.base.log_prior()

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the law, before it is censored."""
        return self.base.parameters

    @property
    def support(self) -> tuple[float, float]:
        """From the limit on."""
        return self.lower, self.base.support[1]

    def ends(self) -> tuple[Array, Array]:
        """Return the ends of the support at each row."""
        lower, upper = self.base.ends()
        return np.asarray(np.where(np.isnan(lower), np.nan, self.lower)), upper

    @property
    def dof(self) -> float:
        """The degrees of freedom of the law."""
        return self.base.dof

    @property
    def tail_index(self) -> float | Array:
        """The index of the law."""
        return self.base.tail_index
