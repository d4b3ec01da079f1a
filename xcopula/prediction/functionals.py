"""Questions about many cells at once, answered by draws: each result is the law of one number.

A map of quantiles says nothing of sums, shares and extremes of cells, because errors of
neighbouring cells go together. Each draw is a field that might be the true one. What is computed
from many of them has the law that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_methods
from xcopula.labels.areas import space_dims
from xcopula.prediction.blocks import Query
from xcopula.prediction.ensembles import Ensemble
from xcopula.prediction.levels import check_levels
from xcopula.prediction.thresholds import Limit
from xcopula.prediction.weighting import Weighting, find_weighting
from xcopula.process.ensemble import quantile_of_present
from xcopula.warn import shown, warn_user

__all__ = ["Functionals"]

Levels = float | Sequence[float]
Function = str | Callable[[xr.DataArray, tuple[Hashable, ...]], xr.DataArray]

# Reductions of a DataArray by name, and whether they have the units of the values.
_NAMED = {
    "max": True,
    "mean": True,
    "median": True,
    "min": True,
    "prod": False,
    "std": True,
    "sum": True,
    "var": False,
}


@check_methods
class Functionals:
    """What a posterior answers by draws.

    Every method returns a Dataset with ``mean`` and ``quantiles`` (on a dim ``quantile``), and the
    Monte-Carlo standard errors of both, ``mean_error`` and ``quantile_error``: how much they would
    differ with another seed. An error is NaN where draws are too few to tell it. Attributes of the
    Dataset say how many draws there were, and of which seed. It is lazy where the posterior is.

    No ensemble is ever held: draws come in batches, and what is computed from each is kept.
    """

    if TYPE_CHECKING:  # properties here would stand in the way of fields of the same name

        @property
        def name(self) -> str:
            """The variable."""

        @property
        def dims(self) -> tuple[Hashable, ...]:
            """Dims of the target."""

        @property
        def sizes(self) -> dict[Hashable, int]:
            """Number of cells along each."""

        @property
        def coords(self) -> xr.Coordinates:
            """Coordinates of the target."""

        @property
        def attrs(self) -> dict[str, Any]:
            """Attributes of the variable."""

        @property
        def query(self) -> Query:
            """The cells."""

        @property
        def lazy(self) -> bool:
            """Whether results are dask-backed."""

        @property
        def data(self) -> int:
            """Number of observations."""

        def sample(self, n: int = 1, seed: int = 0, *, start: int = 0) -> xr.DataArray:
            """Return draws."""

        def _evaluate(self, quantity: str, rows: int | None) -> Any: ...

    def reduce(
        self,
        function: Function,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of what a function makes of each draw.

        Parameters
        ----------
        function : str or callable
            The name of a reduction of a DataArray, such as "max", "mean" or "sum"; or
            ``function(draws, dims)``, which takes a DataArray of draws, with a first dim
            ``realization``, and reduces it over ``dims`` only. It gets no attributes; those that
            its result has, such as units, are kept.
        dims : str or iterable of str, optional
            Dims of the target that are reduced; all of them by default.
        n : int
            How many draws.
        seed : int
            Other seeds have other draws; the same seed has the same.
        quantiles : float or sequence of float
            Levels strictly between 0 and 1.

        Returns
        -------
        Dataset
            ``mean``, ``mean_error``, ``quantiles`` and ``quantile_error``. Where the law of the
            variable has no mean, that of a named reduction is NaN, and a warning says so; of a
            function of your own, look at the quantiles.

        Raises
        ------
        TypeError, ValueError
            If an argument is not valid, or the function returns other dims.
        """
        ensemble, over = Ensemble.of(n, seed, quantiles), self.check_dims(dims)
        if callable(function):
            own = function
            return ensemble.law(self, lambda draws: own(draws, over), over)
        if not isinstance(function, str) or function not in _NAMED:
            raise ValueError(
                f"`function` must be one of {list(_NAMED)}, or a function of draws and dims, found "
                f"{shown(function)}."
            )
        options = {"min_count": 1} if function in ("sum", "prod") else {}
        attrs = self._about(function, over, None if _NAMED[function] else "")
        return ensemble.law(
            self,
            lambda draws: getattr(draws, function)(over, **options),
            over,
            attrs,
            self._endless(lambda flags: flags.max(over)),
        )

    def max(
        self,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of the largest value along dims, all by default; see :meth:`reduce`."""
        return self.reduce("max", dims, n=n, seed=seed, quantiles=quantiles)

    def area_mean(
        self,
        weights: xr.DataArray | None = None,
        regions: xr.DataArray | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of the mean over all places, or over those of each region.

        Parameters
        ----------
        weights : DataArray, optional
            What a cell counts: population, crop area. On dims of the target, not negative. By
            default the area of the cell, from the coordinates of a grid; cells of other targets
            count the same. Cells outside the mask never count.
        regions : DataArray, optional
            Labels of cells, names or integers, on dims of space: results have a dim ``region``.
        n, seed, quantiles
            See :meth:`reduce`.

        Returns
        -------
        Dataset
            See :meth:`reduce`. Dims that are not space, such as time, are kept.

        Raises
        ------
        TypeError, ValueError
            If an argument is not valid, or of other cells than the target.
        """
        ensemble = Ensemble.of(n, seed, quantiles)
        weighting = self._weighting(weights, regions)
        endless = self._endless(lambda flags: weighting.sums(flags)[0])
        what = "area mean" if weights is None else "weighted mean"
        attrs = self._about(what, weighting.dims)
        return ensemble.law(self, weighting.mean, weighting.dims, attrs, endless)

    def fraction_above(
        self,
        threshold: float | xr.DataArray,
        weights: xr.DataArray | None = None,
        regions: xr.DataArray | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of the share of places with more than a threshold.

        Parameters
        ----------
        threshold : float or DataArray
            A number in the variable's units. A DataArray has units of its own, and may differ from
            cell to cell; cells where it is NaN do not count.
        weights, regions
            See :meth:`area_mean`.
        n, seed, quantiles
            See :meth:`reduce`.
        """
        ensemble = Ensemble.of(n, seed, quantiles)
        limit, weighting = self._limit(threshold), self._weighting(weights, regions)
        attrs = self._about("share above the threshold", weighting.dims, "1")
        result = ensemble.law(self, lambda d: weighting.mean(limit.above(d)), weighting.dims, attrs)
        return limit.label(result)

    def area_above(
        self,
        threshold: float | xr.DataArray,
        weights: xr.DataArray | None = None,
        regions: xr.DataArray | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of the area with more than a threshold, or of the weights there.

        The result has the units of the weights: how many people, how much of a crop. By default
        these are areas of cells, in the squared units of a plane or in km2 on the globe.

        Parameters
        ----------
        threshold : float or DataArray
            See :meth:`fraction_above`.
        weights, regions
            See :meth:`area_mean`. Targets that are no rectilinear grid need weights.
        n, seed, quantiles
            See :meth:`reduce`.

        Raises
        ------
        TypeError, ValueError
            If an argument is not valid, or the cells have no areas and there are no weights.
        """
        ensemble = Ensemble.of(n, seed, quantiles)
        limit, weighting = self._limit(threshold), self._weighting(weights, regions)
        if not weighting.factors:
            raise ValueError(
                "`weights` must be given where cells have no known area. They have one where the "
                "target is a grid with two cells or more along x and along y, or along longitude "
                "and latitude, each a coordinate of one dim. Or use `fraction_above`."
            )
        what = "area" if weights is None else str(weights.name or "weight")
        attrs = self._about(f"{what} above the threshold", weighting.dims, weighting.units)
        result = ensemble.law(
            self, lambda d: weighting.sums(limit.above(d))[0], weighting.dims, attrs
        )
        return limit.label(result)

    def exceedance_days(
        self,
        threshold: float | xr.DataArray,
        dim: Hashable = "time",
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law, in each cell, of the number of steps with more than a threshold.

        Steps along ``dim`` are days where the target has one for each day. See
        :meth:`fraction_above` for the threshold and :meth:`reduce` for the rest.
        """
        ensemble, over = Ensemble.of(n, seed, quantiles), self.check_dims(dim, "dim")
        limit = self._limit(threshold)
        attrs = self._about("number of steps above the threshold", over, "1")
        result = ensemble.law(self, lambda d: limit.above(d).sum(over, min_count=1), over, attrs)
        return limit.label(result)

    def time_quantile(
        self,
        q: float,
        dim: Hashable = "time",
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: Levels = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law, in each cell, of a quantile of the values along time.

        Parameters
        ----------
        q : float
            Level of the quantile of each draw along ``dim``, between its values as
            :func:`numpy.quantile` has it: 0.904 of 365 days is about the 36th largest.
        dim : str
        n, seed, quantiles
            See :meth:`reduce`.
        """
        ensemble, over = Ensemble.of(n, seed, quantiles), self.check_dims(dim, "dim")
        (level,) = check_levels(q).reshape(-1) if np.ndim(q) == 0 else (None,)
        if level is None:
            raise ValueError(f"`q` must be one level between 0 and 1, found {shown(q)}.")

        def along(draws: xr.DataArray) -> xr.DataArray:
            found: xr.DataArray = xr.apply_ufunc(
                quantile_of_present,
                draws if draws.chunks is None else draws.chunk({dim: -1}),
                kwargs={"level": float(level)},
                input_core_dims=[list(over)],
                dask="parallelized",
                output_dtypes=[np.float64],
            )
            return found

        attrs = self._about(f"{100 * level:.4g} % quantile along {dim}", over)
        return ensemble.law(self, along, over, attrs, self._endless(lambda f: f.max(over)))

    def _about(
        self, what: str, over: Sequence[Hashable], units: str | None = None
    ) -> dict[str, Any]:
        """Return the attributes of a quantity, in the variable's units if None are said.

        It lies on the target's grid if not all dims of space are reduced.
        """
        attrs = {"long_name": f"{what} of {self.attrs.get('long_name', self.name)}"}
        own = _units(self.attrs) if units is None else units
        if own:
            attrs["units"] = own
        if "grid_mapping" in self.attrs and set(space_dims(self.coords, self.dims)) - set(over):
            attrs["grid_mapping"] = self.attrs["grid_mapping"]
        return attrs

    def check_dims(self, dims: Any, argument: str = "dims") -> tuple[Hashable, ...]:
        """Return dims of the target as a tuple.

        Raises
        ------
        ValueError
            If there are none, or some that the target does not have.
        """
        several = argument == "dims" and isinstance(dims, list | tuple | set | frozenset)
        asked = self.dims if argument == "dims" and dims is None else dims if several else (dims,)
        if not asked or any(d not in self.dims for d in asked):
            what = "dims" if argument == "dims" else "one of the dims"
            raise ValueError(
                f"`{argument}` must be {what} of the target, {[str(d) for d in self.dims]}, found "
                f"{shown(dims)}."
            )
        return tuple(d for d in self.dims if d in asked)

    def _weighting(self, weights: xr.DataArray | None, regions: xr.DataArray | None) -> Weighting:
        """Return how cells are added up over space."""
        mask = xr.DataArray(self.query.arrays[-1], dims=self.query.index[-1])
        return find_weighting(weights, regions, self.sizes, self.coords, mask)

    def _limit(self, threshold: Any) -> Limit:
        return Limit.of(threshold, self.name, _units(self.attrs), self.sizes, self.coords)

    def _endless(self, function: Callable[[xr.DataArray], xr.DataArray]) -> xr.DataArray | None:
        """Return where a function of all values has no mean; None where it always has one.

        The function takes draws of flags, each 1 in cells where the variable has no mean, and
        returns what is positive where such cells count. What is in memory is warned of.
        """
        flags = xr.DataArray(self._evaluate("endless", 1), dims=("realization", *self.dims))
        if not self.lazy and not (flags > 0.0).any():
            return None
        endless: xr.DataArray = function(flags).isel(realization=0) > 0.0
        if not self.lazy and endless.any():
            warn_user(
                f"The tail of the law of {self.name!r} is too heavy for a mean to exist in some "
                "cells, so `mean` is NaN where these count. Quantiles exist: use them, or a law "
                "with lighter tails in `marginals`."
            )
        return endless


def _units(attrs: dict[str, Any]) -> str:
    return str(attrs.get("units", ""))
