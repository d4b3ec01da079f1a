"""What happens to one block of a target, and how blocks become a lazy array.

The block functions are plain numpy. The same function serves an in-memory target (one block) and
a chunked one, where dask calls it for each chunk; so lazy equals eager by construction. What they
need of the model enters the graph once, as a delayed object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.coordinates import CoordinateSystem
from xcopula.inference import Conditioned

__all__ = ["latent", "latent_lazily", "transform", "transform_lazily"]

FloatArray = npt.NDArray[np.float64]

# Index symbols of blockwise for the axes that are not dimensions of the target.
_MOMENT, _LEADING = "__moment__", "__leading__"


def latent(
    *arrays: npt.NDArray[Any],
    missing: Sequence[tuple[int, ...]],
    conditioned: Conditioned,
    system: CoordinateSystem,
    nugget: bool,
) -> FloatArray:
    """Return the latent mean and standard deviation, stacked first, on a block.

    Parameters
    ----------
    *arrays : ndarray
        One coordinate for each axis of the system, then a boolean mask; each with the dims that
        it has, in the order of the block's.
    missing : sequence of tuple of int
        For each array, the dims of the block that it lacks.
    """
    whole = [np.expand_dims(a, axes) for a, axes in zip(arrays, missing, strict=True)]
    *coordinates, mask = np.broadcast_arrays(*whole)
    shape = mask.shape
    columns = system.to_columns([c.reshape(-1) for c in coordinates])
    wanted = mask.reshape(-1) & np.isfinite(columns).all(axis=0)
    out = np.full((2, columns.shape[1]), np.nan)
    if wanted.any():
        moments = conditioned.moments(columns[:, wanted], nugget=nugget)
        out[0, wanted] = moments.mean
        out[1, wanted] = np.sqrt(moments.variance)
    return out.reshape(2, *shape)


def latent_lazily(
    arrays: Sequence[Any],
    index: Sequence[tuple[Hashable, ...]],
    dims: tuple[Hashable, ...],
    chunks: Mapping[Hashable, tuple[int, ...]],
    **options: Any,
) -> Any:
    """Build the dask array of :func:`latent` on every chunk; ``index`` are the arrays' dims."""
    import dask.array as da

    pairs: list[Any] = []
    for array, names in zip(arrays, index, strict=True):
        if not names:
            pairs += [array, None]
        elif isinstance(array, da.Array):
            pairs += [array.rechunk({k: chunks[n] for k, n in enumerate(names)}), names]
        else:
            pairs += [da.from_array(array, chunks=tuple(chunks[n] for n in names)), names]
    return da.blockwise(
        latent,
        (_MOMENT, *dims),
        *pairs,
        new_axes={_MOMENT: 2},
        dtype=np.float64,
        meta=np.empty((0,) * (1 + len(dims))),
        **options,
    )


def transform(
    moments: FloatArray,
    *,
    function: Callable[..., FloatArray],
    marginal: Any,
    leading: FloatArray | None,
) -> FloatArray:
    """Apply ``function(mean, std, marginal[, value])``, stacked first over leading values."""
    if leading is None:
        return function(moments[0], moments[1], marginal)
    return np.stack([function(moments[0], moments[1], marginal, v) for v in leading])


def transform_lazily(moments: Any, *, leading: FloatArray | None, **options: Any) -> Any:
    """Build the dask array of :func:`transform` on every chunk of the moments."""
    import dask.array as da

    inner = tuple(range(moments.ndim - 1))
    outer = inner if leading is None else (_LEADING, *inner)
    return da.blockwise(
        transform,
        outer,
        moments,
        (_MOMENT, *inner),
        new_axes={} if leading is None else {_LEADING: len(leading)},
        concatenate=True,
        dtype=np.float64,
        meta=np.empty((0,) * len(outer)),
        leading=leading,
        **options,
    )
