"""Hypothesis strategies for targets and their chunks, and a scheduler that counts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import dask
import numpy as np
import xarray as xr
from hypothesis import strategies as st

MAX_SIDE = 7


@st.composite
def chunkings(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Cut a dimension at random places."""
    cuts = draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()
    edges = [0, *sorted(cuts), size]
    return tuple(b - a for a, b in itertools.pairwise(edges))


@st.composite
def grids(draw: st.DrawFn, names: tuple[str, ...] = ("x", "y")) -> xr.Dataset:
    """Draw a target: a grid in any order of dims, scattered points, or a curvilinear grid."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(["grid", "points", "curvilinear"]))
    if kind == "grid":
        order = draw(st.permutations(names))
        sizes = {n: draw(st.integers(1, MAX_SIDE), label=n) for n in order}
        coords = {n: (n, np.sort(rng.uniform(0.0, 3.0, k))) for n, k in sizes.items()}
    elif kind == "points":
        size = draw(st.integers(1, MAX_SIDE**2))
        coords = {n: ("point", rng.uniform(0.0, 3.0, size)) for n in names}
    else:
        shape = (draw(st.integers(1, MAX_SIDE)), draw(st.integers(1, MAX_SIDE)))
        coords = {n: (("row", "column"), rng.uniform(0.0, 3.0, shape)) for n in names}
        if draw(st.booleans()):
            coords[names[0]][1][0, 0] = np.nan
    return xr.Dataset(coords=coords)


@st.composite
def chunked_grids(draw: st.DrawFn) -> tuple[xr.Dataset, dict[str, tuple[int, ...]]]:
    """Draw a target and how to cut each of its dims."""
    grid = draw(grids())
    return grid, {str(d): draw(chunkings(n), label=f"chunks of {d}") for d, n in grid.sizes.items()}


class CountingScheduler:
    """A synchronous dask scheduler that counts how often it is asked to compute."""

    def __init__(self) -> None:
        self.computes = 0

    def __call__(self, dsk, keys, **kwargs):
        self.computes += 1
        return dask.get(dsk, keys, **kwargs)


@contextlib.contextmanager
def count_computes() -> Iterator[CountingScheduler]:
    """Count the computations inside the block."""
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        yield scheduler


@contextlib.contextmanager
def raise_if_dask_computes() -> Iterator[None]:
    """Fail if anything inside the block computes."""
    with count_computes() as scheduler:
        yield
    assert scheduler.computes == 0, f"dask computed {scheduler.computes} times"
