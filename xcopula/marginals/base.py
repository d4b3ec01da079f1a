"""The contract of a marginal law, and what every law inherits from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.marginals.tails import Array, log_phi
from xcopula.warn import shown

__all__ = ["Marginal", "check_parameters", "check_scores", "reject_outside", "wider"]

_STEP = 1e-6  # of the width of the bounds
_SCORE_STEP = 1e-5
_SHOWN = 3
_WIDE = ("normal", "gev", "t", "parzen")
_BLOCK = 65_536  # values
# Names of parameters of the families.
_NUMBERS = ("location", "scale", "shape", "df", "skewness", "tail")


class Marginal(ABC):
    """A continuous law F of one variable, and its map to normal scores.

    To write your own law, define ``to_normal``, ``from_normal``, ``log_density``, ``theta`` and
    ``with_theta``. Everything else has a default. Instances are immutable.

    Attributes
    ----------
    name : str
        Key of the law in :data:`xcopula.marginals.MARGINALS`.
    link : {"identity", "log"}
        How a trend enters the law: added to the values, or as the logarithm of a factor.
    """

    name: ClassVar[str] = "custom"
    link: ClassVar[str] = "identity"
    needs: ClassVar[str] = "finite values"
    includes_lower_end: ClassVar[bool] = False
    remedy: ClassVar[str] = ""

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Fit the law to independent values, a 1-D array without NaN, by maximum likelihood."""
        raise NotImplementedError(
            f"{cls.__name__} does not define fit. Pass an instance with starting parameters."
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the covariates that the law depends on; a constant law has none."""
        return ()

    def at(self, covariates: npt.ArrayLike) -> Marginal:
        """Return the law at rows of covariates (n, c), whose columns are those of ``fields``.

        The law is then bound: it takes arrays whose last axis has n values, and each value
        follows the law of its own row. A row with NaN gives NaN. A constant law returns itself.
        """
        return self

    @abstractmethod
    def to_normal(self, y: npt.ArrayLike) -> Array:
        r"""Map values to normal scores :math:`z = \Phi^{-1}(F(y))`.

        NaN stays NaN; values below or above the support become -inf or +inf.
        """

    @abstractmethod
    def from_normal(self, z: npt.ArrayLike) -> Array:
        r"""Map normal scores to values :math:`y = F^{-1}(\Phi(z))`.

        NaN stays NaN; -inf and +inf become the ends of the support.
        """

    @abstractmethod
    def log_density(self, y: npt.ArrayLike) -> Array:
        r"""Evaluate :math:`\log f(y)`, -inf outside the support."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """Free parameters (p,) on an unconstrained scale."""

    @abstractmethod
    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return the same law with other free parameters."""

    @property
    def bounds(self) -> Array:
        """Lower and upper bounds (p, 2) of theta, for an optimiser that starts here."""
        return np.asarray(self.theta[:, None] + np.array([-5.0, 5.0]))

    def log_prior(self) -> tuple[float, Array]:
        """Evaluate the weak log prior of theta, and its gradient (p,)."""
        return 0.0, np.zeros(self.theta.size)

    def to_normal_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / d theta (n, p) at fixed values (n,), here by central differences."""
        return self._differences("to_normal", y)

    def log_density_gradient(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / d theta (n, p) at fixed values (n,), here by central differences."""
        return self._differences("log_density", y)

    def sensitivity(self, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Evaluate dz / d theta and d log f / d theta, each (n, p), at fixed values (n,)."""
        return self.to_normal_gradient(y), self.log_density_gradient(y)

    def score_pullback(self, y: npt.ArrayLike, weights: Array | None = None) -> Array:
        """Evaluate the sum over values of dz / d theta (p,), times weights (n,) if there are any.

        Unlike :meth:`to_normal_gradient` it needs no array (n, p).
        """
        return self._pullback("to_normal_gradient", y, weights)

    def density_pullback(self, y: npt.ArrayLike, weights: Array | None = None) -> Array:
        """Evaluate the sum over values of d log f / d theta (p,), times weights if there are any.

        Unlike :meth:`log_density_gradient` it needs no array (n, p).
        """
        return self._pullback("log_density_gradient", y, weights)

    def _pullback(self, method: str, y: npt.ArrayLike, weights: Array | None) -> Array:
        y, out = np.asarray(y, dtype=np.float64), np.zeros(self.theta.size)
        # a law that is bound to rows takes all of them at once
        size = max(y.size, 1) if self.fields else _BLOCK
        for start in range(0, y.size, size):
            block = slice(start, start + size)
            each = getattr(self, method)(y[block])
            out += each.sum(axis=0) if weights is None else weights[block] @ each
        return out

    @property
    def parts(self) -> list[slice]:
        """Slices of theta that each affect values of their own; what follows them affects all."""
        return [slice(0, self.theta.size)]

    def to_normal_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate dz / dy."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(self.log_density(y) - log_phi(self.to_normal(y))))

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy, here by central differences."""
        # equal steps in z are well scaled for every law
        z = self.to_normal(y)
        below, above = self.from_normal(z - _SCORE_STEP), self.from_normal(z + _SCORE_STEP)
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = self.log_density(above) - self.log_density(below)
            return np.asarray(rise / (above - below))

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by their natural names."""
        return {f"theta{k}": float(value) for k, value in enumerate(self.theta)}

    @property
    def support(self) -> tuple[float, float]:
        """Lower and upper end of the values that have a density."""
        return -np.inf, np.inf

    @property
    def atom(self) -> float | None:
        """The one value that has a probability of its own, at the lower end; None as a rule.

        Its score is not one number: all scores up to ``to_normal(atom)`` are mapped to it.
        """
        return None

    @property
    def dof(self) -> float:
        """Number of parameters that information criteria count."""
        return float(self.theta.size)

    @property
    def tail_index(self) -> float | Array:
        """Extreme value index of the heavier tail, 0 for a light one; (n,) where rows differ.

        The mean of a predictive law with latent variance s2 exists where ``tail_index * s2 < 1``.
        """
        return 0.0

    def check_support(self, y: npt.ArrayLike, variable: str = "") -> None:
        """Raise SupportError if a value lies outside the support; NaN is ignored.

        Raises
        ------
        SupportError
            It names the variable, counts the bad values, shows the first, and says what to do.
        """
        lower, upper = ends = self.ends()
        needs = self.needs
        if needs == Marginal.needs and np.isfinite(lower).any() | np.isfinite(upper).any():
            needs = (
                "values within the support of their own row"
                if np.size(lower) > 1
                else f"values between {float(lower):.6g} and {float(upper):.6g}"
            )
        reject_outside(np.asarray(y, dtype=np.float64), self, ends, needs, variable)

    def ends(self) -> tuple[Array, Array]:
        """Return the lower and upper ends of the support: (n,) where rows differ, else scalar."""
        lower, upper = self.support
        return np.asarray(lower, np.float64), np.asarray(upper, np.float64)

    def _differences(self, method: str, y: npt.ArrayLike, *, only: int | None = None) -> Array:
        theta, widths = self.theta, np.ptp(self.bounds, axis=1)
        columns = range(theta.size) if only is None else [only]
        out = np.empty((np.size(y), len(columns)))
        for column, k in enumerate(columns):
            step = np.zeros(theta.size)
            step[k] = _STEP * widths[k]
            above = getattr(self.with_theta(theta + step), method)(y)
            below = getattr(self.with_theta(theta - step), method)(y)
            with np.errstate(invalid="ignore"):
                out[:, column] = (above - below) / (2.0 * step[k])
        return out


def check_parameters(law: Marginal, *positive: str) -> None:
    """Refuse a parameter of a law that is no finite number.

    Raises
    ------
    TypeError
        If one is no number.
    ValueError
        If one is not finite, or not positive although it must be.
    """
    kind = type(law).__name__
    own = vars(law)
    for name, number in ((n, own[n]) for n in _NUMBERS if n in own):
        if isinstance(number, bool) or not isinstance(number, int | float | np.number):
            raise TypeError(f"{kind}: the {name} must be a number, found {shown(number)}.")
        if not np.isfinite(number) or (name in positive and not number > 0.0):
            needs = "positive and finite" if name in positive else "finite"
            raise ValueError(
                f"{kind}: the {name} must be {needs}, found {number}. "
                f"`{kind}.fit(values)` finds one."
            )


class Named(Protocol):
    """What a message says of a law: its class, or a recipe for it, will do."""

    @property
    def name(self) -> str: ...
    @property
    def includes_lower_end(self) -> bool: ...
    @property
    def remedy(self) -> str: ...


def reject_outside(
    y: Array,
    law: Named,
    support: tuple[Array | float, Array | float],
    needs: str,
    variable: str = "",
) -> None:
    """Raise SupportError if a value lies outside the support (of its row); NaN is ignored."""
    lower, upper = support
    inside = (y > lower) & (y < upper)
    if law.includes_lower_end:
        inside |= y == lower
    bad = y[~inside & ~np.isnan(y) & ~np.isnan(lower)]
    if bad.size == 0:
        return
    prefix = f"{variable}: " if variable else ""
    raise SupportError(
        f"{prefix}{law.name} needs {needs}: {bad.size} of {y.size} are not (first: {_first(bad)}). "
        f"{_advice(bad, law, np.max(upper))}"
    )


def _first(values: Array) -> str:
    return ", ".join(str(float(value)) for value in values[:_SHOWN])


def _advice(bad: Array, law: Named, upper: float) -> str:
    """Say what to do about values that a law does not admit."""
    if np.isinf(bad).all():
        return "Mask them."
    if (bad >= upper).all():
        return (
            f"If they mean '{upper:g} or more', name the limit by `censored=` and the pair "
            f"({upper:g}, None), with a `support` that is open above. If not, state a wider "
            "`support`, or mask them."
        )
    if (bad == 0.0).all():
        return (
            "`marginals='auto'` takes zeros for values at or below zero. Or choose another "
            "marginal with wider support, or mask them."
        )
    return law.remedy or f"Choose a marginal with wider support ({wider(law)}) or mask them."


def wider(law: Named) -> str:
    """List marginals with a wide support, but not the one in use."""
    return ", ".join(repr(name) for name in _WIDE if name not in law.name.split())


def check_scores(
    law: Marginal, values: Array, variable: str, known: npt.NDArray[np.bool_] | None = None
) -> None:
    """Refuse values at the very end of a support, such as zeros under an exponential law.

    Only known values count, where some are intervals.

    Raises
    ------
    SupportError
        If a value has no finite normal score; it counts them, and says what to do.
    """
    outside = ~np.isfinite(law.to_normal(values))
    bad = values[outside if known is None else outside & known]
    if bad.size:
        raise SupportError(
            f"Variable {variable!r}: {bad.size} of {values.size} values have no finite normal "
            f"score under the {law.name} law (first: {_first(bad)}). "
            f"{_advice(bad, law, law.support[1])}"
        )
