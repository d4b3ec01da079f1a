"""The log-normal law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample
from xcopula.marginals.tails import Array, log_phi

__all__ = ["LogNormal"]


@dataclass(frozen=True)
class LogNormal(Marginal):
    r"""Describe a positive variable whose logarithm is normal.

    .. math:: z = (\log y - \mu) / \sigma, \qquad \theta = (\mu, \log\sigma)

    Exact while ``exp(location + scale * z)`` is a normal floating-point number.

    Examples
    --------
    >>> LogNormal(location=0.0, scale=0.5).from_normal(0.0)
    array(1.)
    """

    name: ClassVar[str] = "lognormal"
    link: ClassVar[str] = "log"
    needs: ClassVar[str] = "positive values"
    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self, "scale")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit the mean and the standard deviation of the logarithm."""
        x = np.log(check_sample(values, cls, lower=0.0))
        return cls(float(x.mean()), float(x.std()))

    def _log(self, y: npt.ArrayLike) -> Array:
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(y, 0.0)))

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        return np.asarray((self._log(y) - self.location) / self.scale)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        with np.errstate(over="ignore", under="ignore"):
            x = self.location + self.scale * np.asarray(z, dtype=np.float64)
            return np.asarray(np.exp(x))

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        x = self._log(y)
        with np.errstate(invalid="ignore"):
            out = log_phi((x - self.location) / self.scale) - np.log(self.scale) - x
        return np.where(np.isinf(x), -np.inf, out)

    @property
    def theta(self) -> Array:
        """Location and log scale of the logarithm."""
        return np.array([self.location, np.log(self.scale)])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with another location and log scale."""
        location, log_scale = np.asarray(theta, dtype=np.float64)
        return type(self)(float(location), float(np.exp(log_scale)))

    @property
    def bounds(self) -> Array:
        """Location within four scales, scale within a factor of twenty."""
        return np.asarray(self.theta[:, None] + np.outer([4.0 * self.scale, 3.0], [-1.0, 1.0]))

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, 2)."""
        z = self.to_normal(y)
        return np.stack([np.full_like(z, -1.0 / self.scale), -z], axis=-1)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, 2)."""
        z = self.to_normal(y)
        return np.stack([z / self.scale, z * z - 1.0], axis=-1)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        with np.errstate(divide="ignore", invalid="ignore"):
            pull = self.to_normal(y) / self.scale + 1.0
            return np.asarray(-pull / np.asarray(y, dtype=np.float64))

    @property
    def parameters(self) -> dict[str, float]:
        """Location and scale of the logarithm."""
        return {"location": self.location, "scale": self.scale}

    @property
    def support(self) -> tuple[float, float]:
        """Positive numbers."""
        return 0.0, np.inf
