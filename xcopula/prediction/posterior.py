"""The labelled posterior of a variable on a target."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.methods import Method
from xcopula.prediction import blocks
from xcopula.process import outcome
from xcopula.warn import shown

if TYPE_CHECKING:
    from xcopula.plot.of_posterior import PosteriorPlots

__all__ = ["Posterior", "check_levels"]

FloatArray = npt.NDArray[np.float64]

_KEPT = ("units", "standard_name", "long_name", "cell_methods", "grid_mapping")


@dataclass(frozen=True, repr=False)
class Posterior:
    """What a model knows about one variable on a target: a distribution in every cell.

    It is lazy if the target is chunked. Every method then returns dask-backed arrays. In memory,
    the latent moments are evaluated when something first needs them; the median needs the mean
    alone.

    Attributes
    ----------
    tasks : tuple of str
        The variables of the model, the primary first.
    method : Method
        How the model was fitted.
    query : Query
        The cells of the target.
    predictor : Predictor, or delayed
    coords : mapping
        Coordinates of the target.
    attrs : dict
        Attributes of the variable.
    """

    tasks: tuple[str, ...]
    method: Method
    query: blocks.Query
    predictor: Any
    coords: dict[Hashable, xr.DataArray]
    attrs: dict[str, Any]

    @cached_property
    def moments(self) -> Any:
        """Latent mean and standard deviation (2, ...), an ndarray or a dask array."""
        return self.query.evaluate(self.predictor, "latent", 2)

    @cached_property
    def _mean(self) -> Any:
        """Latent mean (1, ...) alone."""
        return self.query.evaluate(self.predictor, "mean", 1)

    def _rows(self, levels: FloatArray) -> Any:
        """Return what quantiles of some levels need: both moments, or the mean for the median."""
        if (levels != 0.5).any() or not self.method.mean_is_cheaper(
            len(self.tasks), self.query.task
        ):
            return self.moments
        # What is known in memory is not computed again. A graph does not depend on what was asked
        # before, and the mean costs little beside both.
        return self.moments if "moments" in self.__dict__ and not self.lazy else self._mean

    @property
    def name(self) -> str:
        """The variable."""
        return self.tasks[self.query.task]

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Dims of the target."""
        return self.query.dims

    def __repr__(self) -> str:
        sizes = ", ".join(f"{d}: {n}" for d, n in zip(self.dims, self.query.shape, strict=True))
        kind = "lazy" if self.lazy else "in memory"
        return f"<xcopula.Posterior of {self.name!r} on ({sizes}), {kind}>"

    @property
    def lazy(self) -> bool:
        """Whether results are dask-backed."""
        return self.query.chunks is not None

    @property
    def latent(self) -> xr.Dataset:
        """Mean and standard deviation of the latent Gaussian process."""
        coords = {n: c for n, c in self.coords.items() if n not in ("mean", "std")}
        return xr.Dataset(
            {
                "mean": (self.dims, self.moments[0], {"long_name": "latent mean", "units": "1"}),
                "std": (
                    self.dims,
                    self.moments[1],
                    {"long_name": "latent standard deviation", "units": "1"},
                ),
            },
            coords=coords,
        )

    def quantile(self, q: float | Sequence[float] | FloatArray) -> xr.DataArray:
        """Return quantiles: on a first dim ``quantile``, or with a scalar coordinate for a number.

        Raises
        ------
        ValueError
            If a level is not strictly between 0 and 1.
        """
        levels = check_levels(q)
        return self._over(
            outcome.quantile,
            "quantile",
            levels,
            {"long_name": "quantile level", "units": "1"},
            self._value_attrs(),
            self._rows(levels),
        )

    def median(self) -> xr.DataArray:
        """Return the median."""
        return self.quantile(0.5).drop_vars("quantile")

    def interval(self, level: float = 0.9) -> xr.DataArray:
        """Return the central interval of a level, on a first dim ``bound`` (lower, upper)."""
        levels = check_levels(level)
        if levels.size > 1:
            raise ValueError(
                f"`level` must be one number, found {shown(level)}. Call `interval` for each level."
            )
        (level,) = levels.reshape(-1)
        both = self.quantile([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
        return (
            both.drop_vars("quantile")
            .rename(quantile="bound")
            .assign_coords(bound=["lower", "upper"])
        )

    def cdf(self, value: float | Sequence[float] | FloatArray) -> xr.DataArray:
        """Return P(Y <= value); a sequence gives a first dim ``threshold``."""
        return self._probability(outcome.cdf, value, "probability of at most")

    def exceedance(self, threshold: float | Sequence[float] | FloatArray) -> xr.DataArray:
        """Return P(Y > threshold); a sequence gives a first dim ``threshold``."""
        return self._probability(outcome.exceedance, threshold, "probability of more than")

    def mean(self) -> xr.DataArray:
        """Return the mean, NaN where the tail of the law is too heavy for a mean to exist."""
        return self._apply(outcome.mean, None, self._value_attrs())

    def std(self) -> xr.DataArray:
        """Return the standard deviation, NaN where it does not exist."""
        attrs = self._value_attrs()
        attrs.pop("standard_name", None)
        return self._apply(outcome.std, None, attrs).rename(f"{self.name}_std")

    def information(self) -> xr.DataArray:
        """Return what each secondary adds in each cell, on a first dim ``secondary``.

        It is the latent precision of the pair of the primary and that secondary, minus that of
        the primary alone, times the weight of the secondary in the combination.

        Raises
        ------
        ValueError
            If the model has no secondaries, its method is not transductive, or the variable is
            not the primary.
        """
        secondaries = list(self.tasks[1:])
        if not secondaries:
            raise ValueError(f"The model of {self.name!r} has no secondaries.")
        if not self.method.informs:
            raise ValueError(
                f"method={self.method.name!r} cannot tell what each secondary adds. "
                "Fit with method='transductive'."
            )
        if self.query.task:
            raise ValueError(
                f"The secondaries inform only the primary, {self.tasks[0]!r}, found "
                f"{self.name!r}. Leave `variable` out."
            )
        values = self.query.evaluate(self.predictor, "information", len(secondaries))
        return xr.DataArray(
            values,
            dims=("secondary", *self.dims),
            coords={**self.coords, "secondary": secondaries},
            name="information",
            attrs={
                "long_name": f"latent precision of {self.name} added by a secondary",
                "units": "1",
            },
        )

    @property
    def plot(self) -> PosteriorPlots:
        """Pictures of the posterior: ``posterior.plot.map()``, ``exceedance``, ``information``."""
        from xcopula.plot.of_posterior import PosteriorPlots

        return PosteriorPlots(self)

    def _value_attrs(self) -> dict[str, Any]:
        return {k: self.attrs[k] for k in _KEPT if k in self.attrs}

    def _probability(
        self, function: Callable[..., FloatArray], value: Any, phrase: str
    ) -> xr.DataArray:
        thresholds = _numbers(value)
        if thresholds.ndim > 1 or thresholds.size == 0 or np.isnan(thresholds).any():
            raise ValueError(
                f"A threshold must be a number or a sequence of numbers, found {shown(value)}. "
                f"Give it in the units of {self.name!r}."
            )
        attrs = {"long_name": f"{phrase} the threshold of {self.name}", "units": "1"}
        units = {k: v for k, v in self.attrs.items() if k == "units"}
        return self._over(function, "threshold", thresholds, units, attrs)

    def _over(
        self,
        function: Callable[..., FloatArray],
        dim: str,
        values: FloatArray,
        dim_attrs: dict[str, Any],
        attrs: dict[str, Any],
        rows: Any = None,
    ) -> xr.DataArray:
        result = self._apply(function, values.reshape(-1), attrs, dim, rows)
        result = result.assign_coords({dim: (dim, values.reshape(-1), dim_attrs)})
        return result.isel({dim: 0}) if values.ndim == 0 else result

    def _apply(
        self,
        function: Callable[..., FloatArray],
        leading: FloatArray | None,
        attrs: dict[str, Any],
        dim: str | None = None,
        rows: Any = None,
    ) -> xr.DataArray:
        moments = self.moments if rows is None else rows
        values = self.query.transform(moments, function, self.predictor, leading)
        dims = self.dims if dim is None else (dim, *self.dims)
        return xr.DataArray(values, dims=dims, coords=self.coords, name=self.name, attrs=attrs)


def _numbers(given: Any) -> FloatArray:
    """Return numbers as an array, and NaN for what is none."""
    try:
        array = np.asarray(given)
        return array.astype(np.float64) if array.dtype.kind in "iufO" else np.full(1, np.nan)
    except (TypeError, ValueError):  # lists of different lengths, or objects that are no numbers
        return np.full(1, np.nan)


def check_levels(q: Any) -> FloatArray:
    """Return quantile levels as an array.

    Raises
    ------
    ValueError
        If a level is not strictly between 0 and 1.
    """
    levels = _numbers(q)
    if levels.ndim > 1 or levels.size == 0 or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError(
            f"Quantile levels must lie strictly between 0 and 1, found {shown(q)}. "
            "Give fractions, such as 0.95 for the 95th percentile."
        )
    return levels
