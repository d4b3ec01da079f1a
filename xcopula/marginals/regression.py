"""A law whose location or scale follows covariates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.marginals.design import Design
from xcopula.marginals.tails import Array
from xcopula.marginals.varying import Varying

__all__ = ["Regression", "regression_name"]

_REACH = 10.0


@dataclass(frozen=True, eq=False)
class Regression(Varying):
    r"""Describe a variable by a law that moves with covariates.

    .. math:: y - \eta \sim F_0 \quad\text{(identity link)}, \qquad
        y\,e^{-\eta} \sim F_0 \quad\text{(log link)}, \qquad \eta = X\beta

    The columns of X are monomials of the standardised covariates. There is no intercept: the
    location or scale of :math:`F_0`, the law at the mean covariates, takes its place.
    :math:`\theta` joins the parameters of :math:`F_0` and :math:`\beta`.

    Attributes
    ----------
    base : Marginal
        The law :math:`F_0`, which may differ from group to group.
    design : Design
    coefficients : ndarray (k,)
    multiplicative : bool
        Whether the link is "log".
    spread : float
        Standard deviation of the values (of their logarithms with a log link), for the bounds.
    rows : ndarray (n, k), optional
        The design at the rows that the law is bound to.
    """

    base: Marginal
    design: Design
    coefficients: Array
    multiplicative: bool = False
    spread: float = 1.0
    rows: Array | None = field(default=None, repr=False)

    @property
    def inner(self) -> Marginal:
        """The law at the mean covariates."""
        return self.base

    @property
    def name(self) -> str:  # type: ignore[override]
        """The family and its covariates."""
        return regression_name(
            self.base.name, self.design.fields, self.design.degree, self.link, self.base.link
        )

    @property
    def link(self) -> str:  # type: ignore[override]
        """How the trend enters."""
        return "log" if self.multiplicative else "identity"

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the base law's covariates, then of the regression's."""
        return self.base.fields + self.design.fields

    def at(self, covariates: npt.ArrayLike) -> Self:
        """Return the law bound to rows of covariates (n, c)."""
        table, own = self._rows(covariates), len(self.base.fields)
        return replace(
            self, base=self.base.at(table[:, :own]), rows=self.design.matrix(table[:, own:])
        )

    def _trend(self) -> Array:
        if self.rows is None:
            raise self._unbound()
        return np.asarray(self.rows @ self.coefficients)

    def _strip(self, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the values without their trend, and the trend."""
        trend, y = self._trend(), np.asarray(y, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return (y * np.exp(-trend) if self.multiplicative else y - trend), trend

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        return self.base.to_normal(self._strip(y)[0])

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        trend, rest = self._trend(), self.base.from_normal(z)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(np.exp(trend) * rest if self.multiplicative else trend + rest)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density."""
        rest, trend = self._strip(y)
        out = self.base.log_density(rest)
        return out - trend if self.multiplicative else out

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy."""
        rest, trend = self._strip(y)
        slope = self.base.log_density_slope(rest)
        return np.asarray(slope * np.exp(-trend)) if self.multiplicative else slope

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p)."""
        return self._gradient("to_normal_gradient", y)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p)."""
        return self._gradient("log_density_gradient", y)

    def _gradient(self, method: str, y: npt.ArrayLike) -> Array:
        rest, rows, by_trend = self._by_rows(method, y)
        return np.hstack([getattr(self.base, method)(rest), by_trend[:, None] * rows])

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        rest, rows, by_trend = self._by_rows(method, y)
        if weights is not None:
            by_trend = weights * by_trend
        return np.concatenate([self.base._pullback(method, rest, weights), by_trend @ rows])

    def _by_rows(self, method: str, y: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return values without their trend, the design, and derivatives by the trend."""
        rest, _ = self._strip(y)
        assert self.rows is not None
        return rest, self.rows, self._by_trend(method, rest)

    def _by_trend(self, method: str, rest: Array) -> Array:
        """Return the derivative by the trend (n,)."""
        base, of_density = self.base, method == "log_density_gradient"
        slope = base.log_density_slope(rest) if of_density else base.to_normal_slope(rest)
        if not self.multiplicative:
            return -slope
        with np.errstate(invalid="ignore"):
            # at the end of the support the slope may be infinite, but nothing moves there
            by_trend = -np.where(rest == 0.0, 0.0, slope * rest)
        if of_density:
            by_trend -= 1.0
        return np.asarray(by_trend)

    @property
    def theta(self) -> Array:
        """Parameters of the base law, then the coefficients."""
        return np.concatenate([self.base.theta, self.coefficients])

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the law with other parameters, bound to the same rows if to any."""
        theta = np.asarray(theta, dtype=np.float64)
        start = self.base.theta.size
        return replace(self, base=self.base.with_theta(theta[:start]), coefficients=theta[start:])

    @property
    def bounds(self) -> Array:
        """Bounds of the base law, then coefficients within ten spreads of the values."""
        reach = np.array([-1.0, 1.0])
        own = self.coefficients[:, None] + _REACH * self.spread * reach
        return np.concatenate([self.base.bounds, own])

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the log prior of the base law; that of the coefficients is flat."""
        value, gradient = self.base.log_prior()
        return value, np.concatenate([gradient, np.zeros(self.coefficients.size)])

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the base law, slopes per unit of a covariate, and higher coefficients."""
        out = dict(self.base.parameters)
        for label, value in self._per_unit(self.coefficients).items():
            # a covariate named "scale"
            out[f"slope of {label}" if label in out else label] = value
        return out

    def _per_unit(self, coefficients: Array) -> dict[str, float]:
        """Return coefficients by their labels, those of degree 1 per unit of the covariate."""
        terms = zip(self.design.labels, self.design.monomials, coefficients.tolist(), strict=True)
        return {
            label: value / float(self.design.spread[factors[0]]) if len(factors) == 1 else value
            for label, factors, value in terms
        }

    @property
    def support(self) -> tuple[float, float]:
        """The widest support that the law can have at any row."""
        lower, upper = self.base.support
        if not self.multiplicative:
            return -np.inf, np.inf
        return (0.0 if lower >= 0.0 else -np.inf), (0.0 if upper <= 0.0 else np.inf)

    def ends(self) -> tuple[Array, Array]:
        """Return the ends of the support at each row."""
        if self.rows is None:
            return super().ends()
        trend, (lower, upper) = self._trend(), self.base.ends()
        with np.errstate(over="ignore", invalid="ignore"):
            if self.multiplicative:
                return lower * np.exp(trend), upper * np.exp(trend)
            return lower + trend, upper + trend

    @property
    def dof(self) -> float:
        """The degrees of freedom of the base law, plus one for each coefficient."""
        return self.base.dof + self.coefficients.size

    @property
    def tail_index(self) -> float | Array:
        """The index of the base law: neither a shift nor a factor changes it."""
        return self.base.tail_index


def regression_name(
    family: str, fields: tuple[str, ...], degree: int, link: str, usual_link: str
) -> str:
    """Name a regression by its family, its covariates, and what is unusual about it."""
    notes = [f"degree {degree}"] if degree > 1 else []
    notes += [f"{link} link"] if link != usual_link else []
    return f"{family} ~ {' + '.join(fields)}" + (f" ({', '.join(notes)})" if notes else "")
