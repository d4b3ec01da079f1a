"""How cells are added up: the weight of each, and the region that it belongs to.

Sums by region are partial sums of blocks, added up. No array of regions times cells is made.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.labels.areas import cell_widths, space_dims
from xcopula.labels.coordinates.units import units_of
from xcopula.prediction.thresholds import check_on_cells
from xcopula.warn import shown

__all__ = ["Weighting", "add_up", "check_regions", "check_weights", "find_weighting"]

# Index symbols of blockwise for the axes that are not dims of the draws.
_BOTH, _REGION = "__both__", "__region__"


@dataclass(frozen=True, eq=False)
class Weighting:
    """How the cells along some dims are added up.

    Attributes
    ----------
    dims : tuple
        The dims that are summed over.
    factors : tuple of DataArray
        On dims of the target; a cell's weight is their product, one without any.
    units : str
        Of the weights.
    codes : DataArray, optional
        On the summed dims: the number of the region of each cell.
    labels : DataArray, optional
        Of the regions, on a dim ``region``.
    """

    dims: tuple[Hashable, ...]
    factors: tuple[xr.DataArray, ...] = ()
    units: str = ""
    codes: xr.DataArray | None = None
    labels: xr.DataArray | None = None

    def sums(self, values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the weighted sum of values, and the sum of the weights of cells that have one.

        Cells that are NaN count in neither. Which these are must not depend on the first dim,
        the realizations. Both have the other dims, and ``region`` last where there are regions.
        """
        kept = [d for d in values.dims if d not in self.dims]
        values = values.transpose(*kept, *self.dims)
        beside = [f.transpose(*(d for d in values.dims if d in f.dims)) for f in self.factors]
        if self.codes is not None:
            beside.append(self.codes.transpose(*self.dims))
        count = 1 if self.labels is None else self.labels.size
        options: dict[str, Any] = {
            "missing": [
                tuple(k for k, d in enumerate(values.dims) if d not in a.dims) for a in beside
            ],
            "summed": len(self.dims),
            "coded": self.codes is not None,
            "count": count,
        }
        both: Any
        if values.chunks is None:
            both = add_up(values.values, *(a.values for a in beside), **options)
        else:
            both = _add_up_blocks(values, beside, options)
        axes = tuple(range(1 + len(kept), 1 + values.ndim))
        both = both.sum(axis=axes)
        dims = (*kept, "region")
        if self.labels is None:
            both, dims = both[..., 0], tuple(kept)
        beyond = [n for n, c in values.coords.items() if set(c.dims) & set(self.dims)]
        coords = values.coords.to_dataset().drop_vars(beyond).coords
        total, weight = (xr.DataArray(part, dims=dims, coords=coords) for part in both)
        if self.labels is None:
            return total, weight
        return total.assign_coords(region=self.labels), weight.assign_coords(region=self.labels)

    def mean(self, values: xr.DataArray) -> xr.DataArray:
        """Return the weighted mean of values; NaN where no cell counts."""
        total, weight = self.sums(values)
        return total / weight.where(weight > 0.0)


def _add_up_blocks(
    values: xr.DataArray, beside: Sequence[xr.DataArray], options: Mapping[str, Any]
) -> Any:
    """Add up each block of what is lazy; the summed dims have one entry for each block then."""
    import dask.array as da

    chunks = values.chunksizes
    pairs: list[Any] = []
    for array in beside:
        pairs += [array.chunk({d: chunks[d] for d in array.dims}).data, array.dims]
    outer = (_BOTH, *values.dims, _REGION)
    return da.blockwise(
        add_up,
        outer,
        values.data,
        values.dims,
        *pairs,
        new_axes={_BOTH: 2, _REGION: options["count"]},
        adjust_chunks={d: lambda _: 1 for d in values.dims[values.ndim - options["summed"] :]},
        align_arrays=False,
        dtype=np.float64,
        meta=np.empty((0,) * len(outer)),
        **options,
    )


def add_up(
    values: FloatArray,
    *beside: npt.NDArray[Any],
    missing: Sequence[tuple[int, ...]],
    summed: int,
    coded: bool,
    count: int,
) -> FloatArray:
    """Return weighted sums by region, and the sums of weights, of one block.

    Parameters
    ----------
    values : ndarray (realization, ..., cells)
        Cells are the last ``summed`` axes.
    *beside : ndarray
        Factors of the weights, then numbers of the regions if ``coded``.
    missing : sequence of tuple of int
        For each of these, the axes of the values that it lacks.
    summed : int
    coded : bool
    count : int
        Number of regions.

    Returns
    -------
    ndarray (2, realization, ..., 1, ..., count)
        The cells' axes have length one.
    """
    kept, cells = values.shape[: values.ndim - summed], values.shape[values.ndim - summed :]
    whole = [np.expand_dims(a, axes) for a, axes in zip(beside, missing, strict=True)]
    codes = np.broadcast_to(whole.pop(), (1,) * len(kept) + cells).reshape(-1) if coded else None
    weights = np.ones((1,) * values.ndim)
    for factor in whole:
        weights = weights * factor
    rows = values.reshape(kept[0], -1, int(np.prod(cells)))
    weights = np.broadcast_to(weights, (1, *kept[1:], *cells)).reshape(rows.shape[1:])
    present = ~np.isnan(rows[0])
    weights = np.where(present, weights, 0.0)
    out = np.empty((2, *rows.shape[:2], count))
    for k, own in enumerate(weights):
        out[1, :, k] = _by_region(own, codes, count)
        for total, row in zip(out[0, :, k], rows[:, k], strict=True):
            total[:] = _by_region(own * np.where(present[k], row, 0.0), codes, count)
    return out.reshape(2, *kept, *(1,) * summed, count)


def _by_region(values: FloatArray, codes: npt.NDArray[np.intp] | None, count: int) -> FloatArray:
    if codes is None:
        return np.asarray(values.sum())
    return np.asarray(np.bincount(codes, weights=values, minlength=count), np.float64)


def find_weighting(
    weights: Any,
    regions: Any,
    sizes: Mapping[Hashable, int],
    coords: xr.Coordinates,
    mask: xr.DataArray,
) -> Weighting:
    """Return how the cells of a target are added up over space.

    Parameters
    ----------
    weights : DataArray, optional
        None for the areas of cells; where these are not known, there are no factors.
    regions : DataArray, optional
    sizes, coords : mapping
        Of the target.
    mask : DataArray
        Which cells count.

    Raises
    ------
    TypeError, ValueError
        If weights or regions cannot be used, or there are no dims of space.
    """
    dims = space_dims(coords, tuple(sizes))
    if not dims:
        raise ValueError(
            f"The target must have dims of space, found {[str(d) for d in sizes]}. Use `reduce` "
            "for other dims."
        )
    factors: tuple[xr.DataArray, ...] = ()
    if weights is not None:
        factors, units = (check_weights(weights, sizes, coords, mask),), units_of(weights)
    else:
        factors = cell_widths(coords, tuple(sizes)) or ()
        units = "".join(f"{units_of(f)}2" for f in factors[:1] if units_of(f))
    if regions is None:
        return Weighting(dims, factors, units)
    if "region" in sizes and "region" not in dims:
        raise ValueError(
            "The target has a dim 'region', which results by region need for themselves. Rename "
            "it, as in `target.rename(region='part')`."
        )
    return Weighting(dims, factors, units, *check_regions(regions, sizes, coords, mask, dims))


def check_weights(
    weights: Any,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
    mask: xr.DataArray,
) -> xr.DataArray:
    """Return weights as numbers without coordinates, zero outside the mask.

    Those that are lazy, or have a lazy mask, are checked when they are computed.

    Raises
    ------
    TypeError
        If they are no DataArray of numbers.
    ValueError
        If they have other dims, sizes or labels, or are negative, not finite or all zero.
    """
    if not isinstance(weights, xr.DataArray) or weights.dtype.kind not in "biuf":
        found = f"dtype {weights.dtype}" if isinstance(weights, xr.DataArray) else shown(weights)
        raise TypeError(
            f"`weights` must be a DataArray of numbers on dims of the target, found {found}. "
            "Give it as in `weights=target['population']`."
        )
    check_on_cells("`weights`", weights, sizes, labels)
    bare = weights.drop_vars(list(weights.coords)).astype(np.float64)
    counts = _counting(mask, bare)
    options: dict[str, Any] = {"dask": "parallelized", "output_dtypes": [np.float64]}
    checked: xr.DataArray = xr.apply_ufunc(_check_numbers, bare, counts, **options)
    if checked.chunks is None and not (checked > 0.0).any():
        raise ValueError(
            "`weights` must be positive somewhere, found zeros in all cells that count. Check that "
            "they are on the cells of the target, and its mask."
        )
    return checked


def _counting(mask: xr.DataArray, array: xr.DataArray) -> xr.DataArray:
    """Return in which entries of an array a cell is wanted."""
    return mask.any([d for d in mask.dims if d not in array.dims])


def _check_numbers(weights: FloatArray, counts: npt.NDArray[np.bool_]) -> FloatArray:
    wrong = counts & ~((weights >= 0.0) & np.isfinite(weights))
    if wrong.any():
        raise ValueError(
            f"`weights` must be finite and not negative, found {weights[wrong].flat[0]:g} in "
            f"{np.count_nonzero(wrong)} cells that count. Put zero there, or leave these cells out "
            "by `mask`."
        )
    return np.where(counts, weights, 0.0)


def check_regions(
    regions: Any,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
    mask: xr.DataArray,
    dims: tuple[Hashable, ...],
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the number of the region of each cell along ``dims``, and the labels of all.

    Labels outside the mask do not count, where the mask is in memory.

    Raises
    ------
    TypeError
        If they are no DataArray.
    ValueError
        If they have other dims, sizes or labels, are lazy, or missing in a cell that counts.
    """
    if not isinstance(regions, xr.DataArray) or regions.dtype.kind not in "biufUSO":
        kind = f"dtype {regions.dtype}" if isinstance(regions, xr.DataArray) else shown(regions)
        raise TypeError(
            "`regions` must be a DataArray of labels, names or integers, on dims of the target, "
            f"found {kind}. Give it as in `regions=target['rock']`."
        )
    check_on_cells("`regions`", regions, sizes, labels)
    beyond = [str(d) for d in regions.dims if d not in dims]
    if beyond:
        raise ValueError(
            f"`regions` must be on the dims {[str(d) for d in dims]}, found also {beyond}. Select "
            "one entry along them."
        )
    if regions.chunks is not None:
        raise ValueError(
            "`regions` must be in memory, since its labels are labels of the result. Call its "
            "`compute()` first."
        )
    lacking = {d: sizes[d] for d in dims if d not in regions.dims}
    whole = regions.drop_vars(list(regions.coords)).expand_dims(lacking).transpose(*dims)
    known = mask if mask.chunks is None else xr.DataArray(True)
    wanted = _counting(known, whole).broadcast_like(whole).transpose(*dims).values
    missing = wanted & whole.isnull().values
    if missing.any():
        raise ValueError(
            f"`regions` must have a label in every cell that counts, found none in "
            f"{np.count_nonzero(missing)}. Give these a label of their own, or leave them out by "
            "`mask`."
        )
    found, inverse = np.unique(whole.values[wanted], return_inverse=True)
    if not found.size:
        raise ValueError("`regions` has no label in any cell that counts. Check the mask.")
    codes = np.zeros(whole.shape, np.intp)
    codes[wanted] = inverse.reshape(-1)
    attrs = {"long_name": str(regions.attrs.get("long_name", regions.name or "region"))}
    return whole.copy(data=codes), xr.DataArray(found, dims="region", attrs=attrs)
