"""Student's t law with location and scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, gammaln, hyp2f1, stdtr, stdtrit

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample, maximise
from xcopula.marginals.tails import Array, normal_score, smaller_tail

__all__ = ["StudentT"]

_TINY = 1e-30  # below this probability, series in logarithms: stdtr and stdtrit lose digits
_LOG_TINY = np.log(_TINY)
_DF_BOUNDS = (1.0, 200.0)
_DF_PRIOR = (np.log(10.0), 1.0)  # mean and standard deviation of log df
_ROUNDS = 60


@dataclass(frozen=True)
class StudentT(Marginal):
    r"""Describe a variable with two heavy tails by Student's t law.

    .. math:: f(y) \propto (1 + s^2/\nu)^{-(\nu + 1)/2}, \quad s = (y - \mu)/\sigma, \quad
        \theta = (\mu, \log\sigma, \log\nu)

    with a weak prior :math:`\log\nu \sim N(\log 10, 1)`. Without it a normal sample would have no
    finite estimate of the degrees of freedom. Accurate for |z| up to 50 at 2.5 degrees of freedom,
    where y overflows, and further for more.

    Examples
    --------
    >>> StudentT(location=1.0, scale=2.0, df=4.0).tail_index
    0.25
    """

    name: ClassVar[str] = "t"
    location: float = 0.0
    scale: float = 1.0
    df: float = 10.0

    def __post_init__(self) -> None:
        check_parameters(self, "scale", "df")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit by maximum likelihood with the weak prior on the degrees of freedom."""
        y = check_sample(values, cls)
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        scale = max(float(high - low) / 1.4, 0.1 * float(y.std()))
        return maximise(cls(float(middle), scale), y)

    def _standardise(self, y: npt.ArrayLike) -> Array:
        return np.asarray((np.asarray(y, dtype=np.float64) - self.location) / self.scale)

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        s = self._standardise(y)
        z = normal_score(_log_tail(self.df, np.abs(s)), np.zeros_like(s))
        return np.where(np.isnan(s), np.nan, -np.sign(s) * z)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        z = np.asarray(z, dtype=np.float64)
        s = np.sign(z) * _tail_quantile(self.df, smaller_tail(z))
        return np.asarray(self.location + self.scale * s)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        return np.asarray(_log_density(self.df, self._standardise(y)) - np.log(self.scale))

    @property
    def theta(self) -> Array:
        """Location, log scale and log degrees of freedom."""
        return np.array([self.location, np.log(self.scale), np.log(self.df)])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with another location, log scale and log degrees of freedom."""
        location, log_scale, log_df = np.asarray(theta, dtype=np.float64)
        return type(self)(float(location), float(np.exp(log_scale)), float(np.exp(log_df)))

    @property
    def bounds(self) -> Array:
        """Location within four scales, scale within a factor of twenty, df from 1 to 200."""
        low, high = _DF_BOUNDS
        box = self.theta[:, None] + np.outer([4.0 * self.scale, 3.0, 0.0], [-1.0, 1.0])
        box[2] = np.log([min(low, self.df), max(high, self.df)])
        return np.asarray(box)

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the normal log prior of log df, and its gradient."""
        mean, sd = _DF_PRIOR
        ratio = float((np.log(self.df) - mean) / sd)
        return -0.5 * ratio**2, np.array([0.0, 0.0, -ratio / sd])

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, 3), by differences for the degrees of freedom."""
        y = np.asarray(y, dtype=np.float64)
        slope = self.to_normal_slope(y)
        by_df = self._differences("to_normal", y, only=2)
        return np.column_stack([-slope, -(y - self.location) * slope, by_df])

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, 3)."""
        s, v = self._standardise(y), self.df
        ratio = s * s / v
        pull = (v + 1.0) * (s / v) / (1.0 + ratio)
        constant = digamma((v + 1.0) / 2.0) - digamma(v / 2.0) - 1.0 / v
        by_df = 0.5 * v * (constant - np.log1p(ratio)) + 0.5 * s * pull
        return np.stack([pull / self.scale, s * pull - 1.0, by_df], axis=-1)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        s, v = self._standardise(y), self.df
        return np.asarray(-(v + 1.0) * (s / v) / (1.0 + s * s / v) / self.scale)

    @property
    def parameters(self) -> dict[str, float]:
        """Location, scale and degrees of freedom."""
        return {"location": self.location, "scale": self.scale, "df": self.df}

    @property
    def tail_index(self) -> float:
        """Reciprocal of the degrees of freedom."""
        return 1.0 / self.df


def _log_kernel(v: float, s: Array) -> Array:
    """Evaluate log(1 + s^2 / v) without overflow of the square."""
    return np.asarray(2.0 * np.log(np.hypot(1.0, s / np.sqrt(v))))


def _log_density(v: float, s: Array) -> Array:
    with np.errstate(over="ignore"):
        kernel = np.asarray(np.log1p(np.minimum(s * s / v, 1.0)))
    far = np.asarray(~(np.abs(s) < np.sqrt(v)))
    kernel[far] = _log_kernel(v, s[far])
    constant = gammaln((v + 1.0) / 2.0) - gammaln(v / 2.0) - 0.5 * np.log(np.pi * v)
    return np.asarray(constant - 0.5 * (v + 1.0) * kernel)


def _log_tail(v: float, s: Array) -> Array:
    """Evaluate log P(T > s) for s >= 0."""
    p = np.asarray(stdtr(v, -s))
    out = np.asarray(np.log(np.maximum(p, _TINY)))
    deep = np.asarray(p < _TINY)
    if deep.any():
        # half the incomplete beta function of x = v / (v + s^2): a power times a 2F1 near 1
        a, log_x = 0.5 * v, -_log_kernel(v, s[deep])
        x = np.exp(log_x)
        factor = hyp2f1(a + 0.5, 1.0, a + 1.0, x) * np.sqrt(-np.expm1(log_x)) / (2.0 * a)
        out[deep] = a * log_x - betaln(a, 0.5) + np.log(factor)
    return out


def _tail_quantile(v: float, log_p: Array) -> Array:
    """Invert :func:`_log_tail`."""
    p = np.exp(np.maximum(log_p, _LOG_TINY))
    s: Array = np.where(log_p == -np.inf, np.inf, -stdtrit(v, p))
    deep = np.asarray((log_p < _LOG_TINY) & np.isfinite(log_p))
    if deep.any():
        # Newton in log s; the start is a pure power law, an upper bound of a concave function's
        # root, so the iterates only descend
        target = log_p[deep]
        u = (0.5 * v * np.log(v) - betaln(0.5 * v, 0.5) - np.log(v) - target) / v
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(_ROUNDS):
                current = _log_tail(v, np.exp(u))
                slope = np.exp(_log_density(v, np.exp(u)) + u - current)
                u = np.where(np.isfinite(slope), u + (current - target) / slope, u)
            s[deep] = np.exp(u)
    return s
