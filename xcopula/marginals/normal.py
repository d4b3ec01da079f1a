"""The normal law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample
from xcopula.marginals.tails import Array, log_phi

__all__ = ["Normal"]


@dataclass(frozen=True)
class Normal(Marginal):
    r"""Describe a variable by a normal law.

    .. math:: z = (y - \mu) / \sigma, \qquad \theta = (\mu, \log\sigma)

    Exact at every z.

    Examples
    --------
    >>> Normal(location=10.0, scale=2.0).to_normal([10.0, 14.0])
    array([0., 2.])
    """

    name: ClassVar[str] = "normal"
    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self, "scale")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit the mean and the standard deviation."""
        y = check_sample(values, cls)
        return cls(float(y.mean()), float(y.std()))

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        return np.asarray((np.asarray(y, dtype=np.float64) - self.location) / self.scale)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        return np.asarray(self.location + self.scale * np.asarray(z, dtype=np.float64))

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        return np.asarray(log_phi(self.to_normal(y)) - np.log(self.scale))

    @property
    def theta(self) -> Array:
        """Location and log scale."""
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
        return np.asarray(-self.to_normal(y) / self.scale)

    @property
    def parameters(self) -> dict[str, float]:
        """Location and scale."""
        return {"location": self.location, "scale": self.scale}
