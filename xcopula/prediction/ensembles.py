"""The law of a quantity that is computed from each draw: mean and quantiles, and how sure they are.

Draws in memory come in batches, and only what is computed from them is kept. Lazy ones are
chunked along realizations, and dask does the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_integer
from xcopula.prediction.levels import check_levels
from xcopula.prediction.sampling import check_draws, drawn_together
from xcopula.process.ensemble import count_statistics, draws_needed, summarise
from xcopula.warn import shown

if TYPE_CHECKING:
    from xcopula.prediction.functionals import Functionals
    from xcopula.prediction.several import Posteriors

__all__ = ["Ensemble"]


@dataclass(frozen=True)
class Ensemble:
    """How many draws are taken, from which seed, and which quantiles are told of them.

    Attributes
    ----------
    n, seed : int
    levels : tuple of float
    """

    n: int
    seed: int
    levels: tuple[float, ...]

    @classmethod
    def of(cls, n: Any, seed: Any, quantiles: Any) -> Ensemble:
        """Check what was asked for.

        Raises
        ------
        TypeError
            If ``n`` or ``seed`` is no integer.
        ValueError
            If ``n`` is less than one, the seed negative, or a level not between 0 and 1.
        """
        levels = check_levels(quantiles)
        return cls(
            check_integer("n", n, least=1),
            check_integer("seed", seed),
            tuple(levels.reshape(-1).tolist()),
        )

    def law(
        self,
        posterior: Functionals | Posteriors,
        function: Callable[[Any], xr.DataArray],
        dims: Sequence[Hashable],
        attrs: dict[str, Any] | None = None,
        endless: xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Return mean and quantiles of a function of each draw, with their errors.

        Parameters
        ----------
        posterior : Functionals or Posteriors
        function : callable
            Takes draws, returns what has a dim ``realization`` and none of ``dims``.
        dims : sequence
        attrs : dict, optional
            Attributes of the quantity; those that the function gives if None.
        endless : DataArray, optional
            Where the quantity has no mean.
        """
        values = self._values(posterior, function, dims)
        attrs = dict(values.attrs) if attrs is None else attrs
        if values.chunks is not None:
            values = values.chunk({"realization": -1})
        levels = np.array(self.levels)
        found: xr.DataArray = xr.apply_ufunc(
            summarise,
            values.astype(np.float64),
            kwargs={"levels": levels},
            input_core_dims=[["realization"]],
            output_core_dims=[["statistic"]],
            dask="parallelized",
            output_dtypes=[np.float64],
            dask_gufunc_kwargs={"output_sizes": {"statistic": count_statistics(levels.size)}},
        )
        split = 2 + levels.size
        statistics = {
            "mean": found.isel(statistic=0),
            "mean_error": found.isel(statistic=1),
            "quantiles": found.isel(statistic=slice(2, split)),
            "quantile_error": found.isel(statistic=slice(split, None)),
        }
        if endless is not None:
            for name in ("mean", "mean_error"):
                statistics[name] = statistics[name].where(~endless)
        return self._labelled(statistics, attrs)

    def _labelled(self, statistics: dict[str, xr.DataArray], attrs: dict[str, Any]) -> xr.Dataset:
        """Return statistics as a Dataset that says how many draws they are of."""
        titles = {
            "mean": "mean",
            "mean_error": "Monte-Carlo standard error of the mean",
            "quantiles": "quantiles",
            "quantile_error": "Monte-Carlo standard error of the quantiles",
        }
        result = {}
        for name, array in statistics.items():
            array = array.drop_vars([n for n in statistics if n in array.coords])
            if "statistic" in array.dims:
                array = array.rename(statistic="quantile").transpose("quantile", ...)
            title = f"{titles[name]} of {attrs['long_name']}" if "long_name" in attrs else None
            result[name] = array.assign_attrs(
                attrs | ({"long_name": title} if title else {"long_name": titles[name]})
            )
        few = [f"{q:g} ({draws_needed(q)})" for q in self.levels if draws_needed(q) > self.n]
        if few:
            result["quantile_error"].attrs["comment"] = (
                f"{self.n} draws are too few for the error of some quantiles, which is NaN. Draws "
                f"needed: {', '.join(few)}."
            )
        level = ("quantile", list(self.levels), {"long_name": "quantile level", "units": "1"})
        return xr.Dataset(result, attrs={"realizations": self.n, "seed": self.seed}).assign_coords(
            quantile=level
        )

    def _values(
        self,
        posterior: Functionals | Posteriors,
        function: Callable[[Any], xr.DataArray],
        dims: Sequence[Hashable],
    ) -> xr.DataArray:
        """Return the function of all draws: those in memory come in batches."""
        cells = math.prod(posterior.sizes.values())
        if not cells:
            raise ValueError(
                f"The target must have cells, found sizes {dict(posterior.sizes)}. Select at least "
                "one along each dim."
            )
        check_draws(self.n, cells, kept=1, lazy=posterior.lazy)
        batch = self.n if posterior.lazy else drawn_together(cells, posterior.data)
        parts = []
        for start in range(0, self.n, batch):
            size = min(batch, self.n - start)
            parts.append(_computed(function, posterior.sample(size, self.seed, start=start), dims))
        return parts[0] if len(parts) == 1 else xr.concat(parts, "realization")


def _computed(
    function: Callable[[Any], xr.DataArray],
    draws: xr.DataArray | xr.Dataset,
    dims: Sequence[Hashable],
) -> xr.DataArray:
    """Return a function of draws after a check of its dims.

    Raises
    ------
    TypeError
        If it does not return a DataArray of numbers.
    ValueError
        If that lacks the realizations, or has dims that it should not have.
    """
    # What the function says of its result is its own: units of the draws may not be those.
    found = function(draws.drop_attrs(deep=False))
    if not isinstance(found, xr.DataArray) or found.dtype.kind not in "biuf":
        kind = f"dtype {found.dtype}" if isinstance(found, xr.DataArray) else shown(found)
        raise TypeError(f"`function` must return a DataArray of numbers, found {kind}.")
    left = [str(d) for d in dims if d in found.dims]
    if "realization" not in found.dims or left:
        raise ValueError(
            f"`function` must return the dim 'realization' and none of {[str(d) for d in dims]}, "
            f"found the dims {[str(d) for d in found.dims]}. Reduce over `dims` only."
        )
    if found.sizes["realization"] != draws.sizes["realization"]:
        raise ValueError(
            f"`function` must return one entry for each of {draws.sizes['realization']} "
            f"realizations, found {found.sizes['realization']}. Reduce over `dims` only."
        )
    return found
