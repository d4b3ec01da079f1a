"""The gamma law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import (
    digamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    polygamma,
    xlogy,
)

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample
from xcopula.marginals.tails import Array, normal_score, smaller_tail

__all__ = ["Gamma"]

_TINY = 1e-280  # below this probability, series in logarithms
_LOG_TINY = np.log(_TINY)
_TERMS = 200
_ROUNDS = 30


@dataclass(frozen=True)
class Gamma(Marginal):
    r"""Describe a positive variable by a gamma law.

    .. math:: f(y) = \frac{x^{k-1} e^{-x}}{b\,\Gamma(k)}, \quad x = y/b, \quad
        \theta = (\log k, \log b)

    Accurate for z up to 100 and beyond, and down to where y stops being a normal floating-point
    number: z = -26 at a shape of 0.5, z = -37 at 1, and lower for larger shapes.

    Examples
    --------
    >>> Gamma(shape=1.0, scale=2.0).from_normal(0.0).round(4)
    np.float64(1.3863)
    """

    name: ClassVar[str] = "gamma"
    link: ClassVar[str] = "log"
    needs: ClassVar[str] = "positive values"
    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self, "shape", "scale")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit by maximum likelihood: Newton's method for the shape, which determines the scale."""
        y = check_sample(values, cls, lower=0.0)
        mean = y.mean()
        gap = max(float(np.log(mean) - np.log(y).mean()), 1e-12)
        k = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
        for _ in range(_ROUNDS):
            # a step in 1/k (Minka): it cannot leave the positive numbers in practice
            excess = np.log(k) - digamma(k) - gap
            k = 1.0 / (1.0 / k + excess / (k * k * (1.0 / k - polygamma(1, k))))
        return cls(float(k), float(mean / k))

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        x = np.maximum(np.asarray(y, dtype=np.float64) / self.scale, 0.0)
        return normal_score(_log_cdf(self.shape, x), _log_sf(self.shape, x))

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        z = np.asarray(z, dtype=np.float64)
        log_p, lower, x = smaller_tail(z), np.asarray(z <= 0.0), np.empty_like(z)
        x[lower] = _lower_quantile(self.shape, log_p[lower])
        x[~lower] = _upper_quantile(self.shape, log_p[~lower])
        return np.asarray(self.scale * x)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        x = np.asarray(y, dtype=np.float64) / self.scale
        outside = (x <= 0.0) | np.isinf(x)
        safe = np.where(outside, 1.0, x)
        out = (self.shape - 1.0) * np.log(safe) - safe - gammaln(self.shape) - np.log(self.scale)
        return np.where(outside, -np.inf, out)

    @property
    def theta(self) -> Array:
        """Log shape and log scale."""
        return np.log([self.shape, self.scale])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with another log shape and log scale."""
        shape, scale = np.exp(np.asarray(theta, dtype=np.float64))
        return type(self)(float(shape), float(scale))

    @property
    def bounds(self) -> Array:
        """The shape and the scale, each within a factor of twenty."""
        return np.asarray(self.theta[:, None] + np.array([-3.0, 3.0]))

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, 2), by differences for the shape."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            by_scale = -y * self.to_normal_slope(y)
        return np.column_stack([self._differences("to_normal", y, only=0), by_scale])

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, 2)."""
        x = np.asarray(y, dtype=np.float64) / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            by_shape = self.shape * (np.log(x) - digamma(self.shape))
        return np.stack([by_shape, x - self.shape], axis=-1)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        with np.errstate(divide="ignore"):
            return (self.shape - 1.0) / np.asarray(y, dtype=np.float64) - 1.0 / self.scale

    @property
    def parameters(self) -> dict[str, float]:
        """Shape and scale."""
        return {"shape": self.shape, "scale": self.scale}

    @property
    def support(self) -> tuple[float, float]:
        """Positive numbers."""
        return 0.0, np.inf


def _log_cdf(k: float, x: Array) -> Array:
    p = np.asarray(gammainc(k, x))
    out = np.asarray(np.log(np.maximum(p, _TINY)))
    deep = np.asarray(p < _TINY)
    if deep.any():
        # x^k e^-x / Gamma(k+1) * (1 + x/(k+1) + x^2/((k+1)(k+2)) + ...)
        small = x[deep]
        term, total = np.ones_like(small), np.ones_like(small)
        for n in range(1, _TERMS):
            term = term * small / (k + n)
            total = total + term
        out[deep] = xlogy(k, small) - small - gammaln(k + 1.0) + np.log(total)
    return out


def _log_sf(k: float, x: Array) -> Array:
    q = np.asarray(gammaincc(k, x))
    out = np.asarray(np.log(np.maximum(q, _TINY)))
    deep = np.asarray(q < _TINY)
    if deep.any():
        # Legendre's continued fraction from its far end
        large = x[deep]
        tail = large + 2.0 * _TERMS + 1.0 - k
        for n in range(_TERMS, 0, -1):
            tail = large + 2.0 * n - 1.0 - k - n * (n - k) / tail
        with np.errstate(invalid="ignore"):
            log_q = k * np.log(large) - large - gammaln(k) - np.log(tail)
        out[deep] = np.where(np.isinf(large), -np.inf, log_q)
    return out


def _lower_quantile(k: float, log_p: Array) -> Array:
    x: Array = np.asarray(gammaincinv(k, np.exp(log_p)))
    deep = np.asarray((log_p < _LOG_TINY) & np.isfinite(log_p))
    if deep.any():
        # Newton in log x; the start is a lower bound and log F is concave, so it only climbs
        target = log_p[deep]
        u = (target + gammaln(k + 1.0)) / k
        for _ in range(_ROUNDS):
            log_f = _log_cdf(k, np.exp(u))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = (target - log_f) / np.exp(k * u - np.exp(u) - gammaln(k) - log_f)
            u = np.where(np.isfinite(log_f), u + step, u)
        x[deep] = np.exp(u)
    return x


def _upper_quantile(k: float, log_q: Array) -> Array:
    x: Array = np.asarray(gammainccinv(k, np.exp(log_q)))
    deep = np.asarray((log_q < _LOG_TINY) & np.isfinite(log_q))
    if deep.any():
        target = log_q[deep]
        x0 = np.full_like(target, gammainccinv(k, _TINY))
        for _ in range(_ROUNDS):
            log_s = _log_sf(k, x0)
            slope = np.exp((k - 1.0) * np.log(x0) - x0 - gammaln(k) - log_s)
            x0 = np.maximum(x0 + (log_s - target) / slope, x0 / 2.0)
        x[deep] = x0
    return x
