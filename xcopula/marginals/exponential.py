"""The exponential law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample
from xcopula.marginals.tails import Array, normal_score

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential(Marginal):
    r"""Describe a non-negative variable by an exponential law.

    .. math:: 1 - F(y) = e^{-y/b}, \qquad \theta = \log b

    Accurate while y is a normal floating-point number: z from -37 to 100 and beyond. A value of 0
    is the lower end of the support; its score is -inf.

    Examples
    --------
    >>> Exponential(scale=2.0).from_normal(0.0).round(4)
    np.float64(1.3863)
    """

    name: ClassVar[str] = "exponential"
    link: ClassVar[str] = "log"
    needs: ClassVar[str] = "non-negative values"
    includes_lower_end: ClassVar[bool] = True
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self, "scale")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit the mean."""
        return cls(float(check_sample(values, cls, lower=0.0).mean()))

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        x = np.maximum(np.asarray(y, dtype=np.float64) / self.scale, 0.0)
        with np.errstate(divide="ignore"):
            return normal_score(np.log(-np.expm1(-x)), -x)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        return np.asarray(-self.scale * log_ndtr(-np.asarray(z, dtype=np.float64)))

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        x = np.asarray(y, dtype=np.float64) / self.scale
        return np.where(x < 0.0, -np.inf, -x - np.log(self.scale))

    @property
    def theta(self) -> Array:
        """Log scale."""
        return np.array([np.log(self.scale)])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with another log scale."""
        (log_scale,) = np.asarray(theta, dtype=np.float64)
        return type(self)(float(np.exp(log_scale)))

    @property
    def bounds(self) -> Array:
        """The scale, within a factor of twenty."""
        return np.asarray(self.theta[:, None] + np.array([-3.0, 3.0]))

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, 1)."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            slope = -y * self.to_normal_slope(y)
        return np.where(y == 0.0, 0.0, slope)[:, None]

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, 1)."""
        return (np.asarray(y, dtype=np.float64) / self.scale - 1.0)[:, None]

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(np.isnan(y), np.nan, -1.0 / self.scale)

    @property
    def parameters(self) -> dict[str, float]:
        """Scale, which is also the mean."""
        return {"scale": self.scale}

    @property
    def support(self) -> tuple[float, float]:
        """Non-negative numbers."""
        return 0.0, np.inf
