"""The sinh-arcsinh marginal: a normal one that may be skewed and have heavy or light tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal, check_parameters
from xcopula.marginals.estimation import check_sample, maximise
from xcopula.marginals.tails import Array, log_phi

__all__ = ["SinhArcsinh"]

# Standard deviations of the priors that shrink skewness and log tail weight to the normal law.
_SD_SKEW, _SD_TAIL = 0.5, 0.25
# Ends of skewness and log tail weight.
_SKEW_REACH, _TAIL_REACH = 3.0, 1.8
# Half the distance of the quartiles of a normal law.
_QUARTILE = 0.6744897501960817
_LOG_2 = float(np.log(2.0))


@dataclass(frozen=True)
class SinhArcsinh(Marginal):
    r"""Describe a variable by the sinh-arcsinh law of Jones and Pewsey (2009).

    .. math:: z = \sinh\left(\delta \operatorname{arsinh} \frac{y - \mu}{\sigma} - \epsilon\right),
        \qquad \theta = (\mu, \log\sigma, \epsilon, \log\delta)

    :math:`\epsilon > 0` skews to the right, :math:`\delta < 1` makes tails heavier than normal
    ones. Weak priors, :math:`\epsilon \sim N(0, 0.5^2)` and :math:`\log\delta \sim N(0, 0.25^2)`,
    shrink it to the normal law, which it is at :math:`\epsilon = 0, \delta = 1`.

    Attributes
    ----------
    location, scale : float
        :math:`\mu` and :math:`\sigma`, those of the normal law.
    skewness : float
        :math:`\epsilon`.
    tail : float
        :math:`\delta`, the tail weight.

    Examples
    --------
    >>> law = SinhArcsinh(location=10.0, scale=2.0)
    >>> law.to_normal([10.0, 14.0])
    array([0., 2.])
    """

    name: ClassVar[str] = "flexible"
    location: float = 0.0
    scale: float = 1.0
    skewness: float = 0.0
    tail: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self, "scale", "tail")

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit all parameters, with their priors, to independent values."""
        y = check_sample(values, cls)
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
        # Ties may leave no distance between the quartiles.
        scale = max(0.5 * float(high - low) / _QUARTILE, 0.1 * float(y.std()))
        return maximise(cls(float(middle), scale), y)

    def _arc(self, y: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return the standardised values, their inverse hyperbolic sine, and that of the scores."""
        x = (np.asarray(y, dtype=np.float64) - self.location) / self.scale
        arc = np.arcsinh(x)
        return x, arc, self.tail * arc - self.skewness

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        with np.errstate(over="ignore"):
            return np.asarray(np.sinh(self._arc(y)[2]))

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        arc = (np.arcsinh(np.asarray(z, dtype=np.float64)) + self.skewness) / self.tail
        with np.errstate(over="ignore"):
            return np.asarray(self.location + self.scale * np.sinh(arc))

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        x, _, u = self._arc(y)
        with np.errstate(over="ignore", invalid="ignore"):
            out = log_phi(np.sinh(u)) + np.logaddexp(u, -u) - _LOG_2
            out += np.log(self.tail) - np.log(np.hypot(1.0, x)) - np.log(self.scale)
        return np.where(np.isinf(x), -np.inf, out)

    @property
    def theta(self) -> Array:
        """Location, log scale, skewness and log tail weight."""
        return np.array([self.location, np.log(self.scale), self.skewness, np.log(self.tail)])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with another location, log scale, skewness and log tail weight."""
        location, log_scale, skewness, log_tail = np.asarray(theta, dtype=np.float64)
        return type(self)(
            float(location), float(np.exp(log_scale)), float(skewness), float(np.exp(log_tail))
        )

    @property
    def bounds(self) -> Array:
        """Location within four scales, scale within a factor of twenty, shapes near normal ones."""
        theta = self.theta
        box = theta[:, None] + np.outer([4.0 * self.scale, 3.0, 0.0, 0.0], [-1.0, 1.0])
        for k, reach in ((2, _SKEW_REACH), (3, _TAIL_REACH)):
            box[k] = min(-reach, theta[k]), max(reach, theta[k])
        return np.asarray(box)

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the normal log priors of skewness and log tail weight, and their gradient."""
        skew, tail = self.skewness / _SD_SKEW, float(np.log(self.tail)) / _SD_TAIL
        gradient = np.array([0.0, 0.0, -skew / _SD_SKEW, -tail / _SD_TAIL])
        return -0.5 * (skew * skew + tail * tail), gradient

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, 4)."""
        x, arc, u = self._arc(y)
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.cosh(u)
            slope = rise * self.tail / np.hypot(1.0, x)
            parts = [-slope / self.scale, -x * slope, -rise, rise * self.tail * arc]
        return np.stack(parts, axis=-1)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, 4)."""
        x, arc, u = self._arc(y)
        pull, by_x = self._pulls(x, u)
        parts = [-by_x / self.scale, -x * by_x - 1.0, -pull, pull * self.tail * arc + 1.0]
        return np.stack(parts, axis=-1)

    def _pulls(self, x: Array, u: Array) -> tuple[Array, Array]:
        """Return the derivatives of the log density by u and by the standardised values."""
        root = np.hypot(1.0, x)
        with np.errstate(over="ignore", invalid="ignore"):
            pull = np.tanh(u) - np.sinh(u) * np.cosh(u)
            return pull, pull * self.tail / root - x / root / root

    def to_normal_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / dy."""
        x, _, u = self._arc(y)
        with np.errstate(over="ignore"):
            return np.asarray(np.cosh(u) * self.tail / np.hypot(1.0, x) / self.scale)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        x, _, u = self._arc(y)
        return np.asarray(self._pulls(x, u)[1] / self.scale)

    @property
    def parameters(self) -> dict[str, float]:
        """Location, scale, skewness and tail weight."""
        return {
            "location": self.location,
            "scale": self.scale,
            "skewness": self.skewness,
            "tail": self.tail,
        }
