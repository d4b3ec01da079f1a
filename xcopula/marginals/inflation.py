"""A law of positive values with a probability of its own for zero."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_ndtr, logit

from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import Array, log_between, log_phi, normal_score
from xcopula.marginals.varying import Composed
from xcopula.warn import shown

__all__ = ["NEGATIVE", "ZeroInflated", "inflated_name"]

_REACH = 5.0  # of the logit
NEGATIVE = (
    "If they are the noise of an instrument about zero, set them to 0. If not, choose a marginal "
    "with wider support ('normal', 'gev', 't', 'parzen') or mask them."
)


@dataclass(frozen=True, eq=False)
class ZeroInflated(Composed):
    r"""Describe a variable that is zero with a probability of its own, and else positive.

    .. math:: F(y) = p_0 + (1 - p_0)\, G(y), \quad y \ge 0, \qquad
        \theta = (\theta_G, \operatorname{logit} p_0)

    Zero is an atom: all scores up to :math:`\Phi^{-1}(p_0)` are mapped to it, and its log density
    is :math:`\log p_0`. A weak prior, :math:`\tfrac12\log p_0 + \tfrac12\log(1 - p_0)`, keeps the
    probability off 0 and 1: of n values of which k are zero it becomes (k + 1/2) / (n + 1).

    Attributes
    ----------
    base : Marginal
        The law G of the values above zero, which may vary from row to row.
    p0 : float
        The probability of zero.
    tilt : ndarray (n,), optional
        By how much its log odds differ at each row, where they follow covariates: see
        :class:`~xcopula.marginals.regression.Regression`.

    Examples
    --------
    >>> from xcopula.marginals import Gamma
    >>> law = ZeroInflated(Gamma(2.0, 3.0), p0=0.5)
    >>> law.from_normal([-1.0, 0.0]), law.to_normal(0.0).round(6)
    (array([0., 0.]), np.float64(0.0))
    """

    base: Marginal
    p0: float
    tilt: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.base, Marginal):
            raise TypeError(f"ZeroInflated: the base must be a Marginal, found {shown(self.base)}.")
        if not self.base.support[0] >= 0.0 or self.base.atom is not None:
            raise ValueError(
                f"ZeroInflated: the base must be a law of positive values without an atom, found "
                f"{self.base.name!r}. Choose 'gamma', 'lognormal' or 'exponential', or `Truncated` "
                "at zero."
            )
        if isinstance(self.p0, bool) or not isinstance(self.p0, int | float | np.number):
            raise TypeError(f"ZeroInflated: p0 must be a number, found {shown(self.p0)}.")
        if not 0.0 < self.p0 < 1.0:
            raise ValueError(
                f"ZeroInflated: p0 is a probability between 0 and 1, found {self.p0}. "
                "`zero_inflated(...)` finds one."
            )

    @property
    def inner(self) -> Marginal:
        """The law of the values above zero."""
        return self.base

    @property
    def name(self) -> str:  # type: ignore[override]
        """The law of the values above zero, and that zero has a probability."""
        return inflated_name(self.base.name)

    @property
    def needs(self) -> str:  # type: ignore[override]
        """What it needs."""
        return "non-negative values"

    @property
    def includes_lower_end(self) -> bool:  # type: ignore[override]
        """Zero has a probability."""
        return True

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """What to do about negative values."""
        return NEGATIVE

    @property
    def atom(self) -> float:
        """Zero."""
        return 0.0

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Raise: the law of the values above zero is needed too."""
        raise NotImplementedError(
            "ZeroInflated cannot be fitted without a family for the values above zero. Use "
            "xcopula.zero_inflated('gamma'), say, and fit what it returns."
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The covariates of the values above zero."""
        return self.base.fields

    def at(self, covariates: npt.ArrayLike) -> Self:
        """Return the law bound to rows of covariates (n, c)."""
        return replace(self, base=self.base.at(covariates))

    @property
    def _logit(self) -> float:
        return float(logit(self.p0))

    @property
    def _logits(self) -> Array:
        """Log odds of zero: (n,) where rows differ, else scalar."""
        return np.asarray(self._logit if self.tilt is None else self._logit + self.tilt)

    @property
    def _logs(self) -> tuple[Array, Array]:
        """Log probabilities of zero, and of more than zero."""
        logits = self._logits
        return np.asarray(log_expit(logits)), np.asarray(log_expit(-logits))

    @property
    def _threshold(self) -> Array:
        """The score up to which all scores are mapped to zero."""
        return normal_score(*self._logs)

    def tilted(self, tilt: Array) -> Self:
        """Return the law with log odds of zero that differ by ``tilt`` (n,)."""
        return replace(self, tilt=tilt)

    def by_tilt(self, method: str, y: npt.ArrayLike) -> Array:
        """Evaluate the derivative by the tilt (n,) of what ``method`` is the gradient of."""
        return self._factors(method, y)[1]

    def _above(self, y: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], Array]:
        """Return which values are above zero, and the values with a median in place of others."""
        y = np.asarray(y, dtype=np.float64)
        wet = np.asarray(y > 0.0)
        if wet.all():
            return wet, y
        # any value of a law that is smooth there: what becomes of it is not used
        return wet, np.where(wet | np.isnan(y), y, self.base.from_normal(np.zeros_like(y)))

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores; zero to the largest of its scores."""
        y = np.asarray(y, dtype=np.float64)
        (log_zero, log_rest), own = self._logs, self.base.to_normal(y)
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            log_cdf = np.logaddexp(log_zero, log_rest + log_ndtr(own))
        z = normal_score(log_cdf, log_rest + log_ndtr(-own))
        # of rows without a law NaN is left, also at zero
        z = np.where((y == 0.0) & ~np.isnan(own), self._threshold, z)
        return np.where((y < 0.0) & ~np.isnan(own), -np.inf, z)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        z = np.asarray(z, dtype=np.float64)
        (_, log_rest), threshold = self._logs, self._threshold
        wet = z > threshold
        # G from the smaller of its tails
        high = np.where(wet, z, threshold)
        log_sf = np.minimum(log_ndtr(-high) - log_rest, 0.0)
        log_cdf = np.minimum(log_between(threshold, high) - log_rest, 0.0)
        own = np.where(np.isnan(z), np.nan, normal_score(log_cdf, log_sf))
        y = self.base.from_normal(own)
        return np.where(wet | np.isnan(y), y, 0.0)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density above zero, and the log probability of zero."""
        y = np.asarray(y, dtype=np.float64)
        (log_zero, log_rest), (wet, safe) = self._logs, self._above(y)
        out = log_rest + self.base.log_density(safe)
        dry = np.where(y == 0.0, log_zero, -np.inf)
        return np.where(wet | np.isnan(out), out, dry)

    def to_normal_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / dy; 0 at zero, which stays where it is."""
        return np.where(np.asarray(y, dtype=np.float64) > 0.0, super().to_normal_slope(y), 0.0)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy; 0 at zero."""
        wet, safe = self._above(y)
        return np.where(wet, self.base.log_density_slope(safe), 0.0)

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p); at zero that of the threshold."""
        by_base, by_logit = self._factors("to_normal_gradient", y)
        own = self.base.to_normal_gradient(self._above(y)[1])
        return np.column_stack([_times(by_base[:, None], own), by_logit])

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p)."""
        by_base, by_logit = self._factors("log_density_gradient", y)
        own = self.base.log_density_gradient(self._above(y)[1])
        return np.column_stack([np.where(by_base[:, None] > 0.0, own, 0.0), by_logit])

    def _factors(self, method: str, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return what the base's own derivative counts, and the one by the logit, of each value."""
        wet, safe = self._above(y)
        (log_zero, log_rest) = self._logs
        if method == "log_density_gradient":
            return wet.astype(np.float64), np.where(wet, -np.exp(log_zero), np.exp(log_rest))
        z, own = self.to_normal(y), self.base.to_normal(safe)
        with np.errstate(invalid="ignore", over="ignore"):
            by_base = np.exp(log_rest + log_phi(own) - log_phi(z))
            by_logit = np.exp(log_zero + log_ndtr(-z) - log_phi(z))
        return np.where(wet, by_base, 0.0), by_logit

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        by_base, by_logit = self._factors(method, y)
        if weights is not None:
            by_base, by_logit = weights * by_base, weights * by_logit
        own = self.base._pullback(method, self._above(y)[1], by_base)
        return np.append(own, by_logit.sum())

    @property
    def theta(self) -> Array:
        """Parameters of the values above zero, then the logit of the probability of zero."""
        return np.append(self.base.theta, self._logit)

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with other parameters, bound to the same rows if to any."""
        theta = np.asarray(theta, dtype=np.float64)
        # a probability that rounds to 1 is none
        p0 = float(np.clip(expit(theta[-1]), np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg))
        return replace(self, base=self.base.with_theta(theta[:-1]), p0=p0)

    @property
    def bounds(self) -> Array:
        """Bounds of the base law, and odds of zero within a factor of 150."""
        own = self._logit + np.array([[-_REACH, _REACH]])
        return np.concatenate([self.base.bounds, own])

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the log prior of the base law and of the probability, and its gradient."""
        value, gradient = self.base.log_prior()
        both = float(log_expit(self._logit) + log_expit(-self._logit))
        return value + 0.5 * both, np.append(gradient, 0.5 - self.p0)

    @property
    def parameters(self) -> dict[str, float]:
        """The probability of zero, then the parameters of the values above zero."""
        return {"p0": self.p0, **self.base.parameters}

    @property
    def support(self) -> tuple[float, float]:
        """Zero, and the support of the values above it."""
        return 0.0, self.base.support[1]

    def ends(self) -> tuple[Array, Array]:
        """Return the ends of the support at each row."""
        lower, upper = self.base.ends()
        return np.asarray(np.where(np.isnan(lower), np.nan, 0.0)), upper

    @property
    def dof(self) -> float:
        """The degrees of freedom of the base law, and one for the probability."""
        return self.base.dof + 1.0

    @property
    def tail_index(self) -> float | Array:
        """The index of the base law: its upper tail is the law's, but for a factor."""
        return self.base.tail_index


def inflated_name(family: str) -> str:
    """Name a law with zeros by the law of the values above zero."""
    return f"zero-inflated {family}"


def _times(factor: Array, each: Array) -> Array:
    """Multiply, where nothing times anything is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(factor == 0.0, 0.0, factor * each)
