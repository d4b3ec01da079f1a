"""How a result is cut into blocks."""

from __future__ import annotations

import math
import warnings

import dask
import numpy as np
import pytest
import xarray as xr

from xcopula.errors import PerformanceWarning
from xcopula.prediction.layout import check_layout, choose_chunks, own_chunks

SIZES = {"y": 10, "x": 8}
DIMS = ("y", "x")


class TestOwnChunks:
    """The chunks that a target has."""

    def test_of_what_is_read_before_anything_else(self):
        """A mask in chunks counts more than a variable that nobody reads."""
        target = xr.Dataset({"land": (DIMS, np.ones((10, 8)))}).chunk(y=5, x=4)
        mask = xr.DataArray(np.ones(10, bool), dims="y").chunk(y=2)
        assert own_chunks(target, [mask]) == {"y": (2,) * 5, "x": (4, 4)}

    def test_of_a_dataarray(self):
        """A DataArray is its own variable."""
        target = xr.DataArray(np.ones((10, 8)), dims=DIMS).chunk(y=5)
        assert own_chunks(target, []) == {"y": (5, 5), "x": (8,)}

    def test_of_a_target_in_memory(self):
        """There are none."""
        assert own_chunks(xr.Dataset({"land": (DIMS, np.ones((10, 8)))}), []) == {}


class TestChooseChunks:
    @pytest.mark.parametrize(
        ("own", "chunks", "expected"),
        [
            ({}, None, None),
            ({"time": (3, 3)}, None, None),
            ({"y": (4, 6)}, None, {"y": (4, 6), "x": (8,)}),
            ({}, 5, {"y": (5, 5), "x": (5, 3)}),
            ({}, -1, {"y": (10,), "x": (8,)}),
            ({}, {"x": 3}, {"y": (10,), "x": (3, 3, 2)}),
            ({"y": (4, 6), "x": (8,)}, {"x": 3}, {"y": (4, 6), "x": (3, 3, 2)}),
            ({"y": (4, 6)}, {"y": 10, "x": (1, 7)}, {"y": (10,), "x": (1, 7)}),
            ({}, "auto", {"y": (10,), "x": (8,)}),
        ],
    )
    def test_what_is_asked_wins_over_what_is_there(self, own, chunks, expected):
        """None follows the target, a number is for all dims, a mapping for those it names."""
        assert choose_chunks(own, DIMS, SIZES, chunks, 56) == expected

    def test_dims_whose_names_are_not_text(self):
        """Such as numbers, which xarray allows."""
        assert choose_chunks({}, (0, 1), {0: 10, 1: 8}, {0: 5}, 56) == {0: (5, 5), 1: (8,)}

    def test_a_point_is_never_cut(self):
        """Without dims there is one block in memory."""
        assert choose_chunks({}, (), {}, 3, 56) is None

    def test_a_stranger(self):
        """Chunks name dims of the result."""
        with pytest.raises(ValueError, match=r"`chunks` names \['time'\], but .*dims \['y', 'x'\]"):
            choose_chunks({}, DIMS, SIZES, {"time": 2}, 56)

    @pytest.mark.parametrize("cell_bytes", [56, 560])
    def test_auto_counts_all_that_a_cell_holds(self, cell_bytes):
        """Blocks stay within dask's limit, whatever a cell holds."""
        with dask.config.set({"array.chunk-size": "1MiB"}):
            found = choose_chunks({}, DIMS, {"y": 3000, "x": 3000}, "auto", cell_bytes)
        cells = math.prod(max(c) for c in found.values())
        assert 0.25 * 2**20 < cells * cell_bytes <= 2**20


class TestCheckLayout:
    def test_what_is_sensible_passes(self):
        """Nothing is said of a few blocks of a good size."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_layout({"y": (1000,) * 10, "x": (1000,) * 10}, 56)
            check_layout({"y": ()}, 56)

    @pytest.mark.parametrize(
        ("layout", "match"),
        [
            ({"y": (1,) * 10_001}, r"has 10,001 blocks; .*Give `chunks=\{'y': 10001\}`"),
            ({"y": (5000,), "x": (5000,)}, r"has blocks of 25,000,000 cells; each takes 1.3 GiB"),
        ],
    )
    def test_too_many_or_too_large(self, layout, match):
        """Where the caller stands, with better chunks."""
        with pytest.warns(PerformanceWarning, match=match) as seen:
            check_layout(layout, 56)
        assert seen[0].filename == __file__

    def test_the_limits_themselves_pass(self):
        """Ten thousand blocks, and a block of one GiB, are just right."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_layout({"y": (1,) * 10_000}, 56)
            check_layout({"y": (2**24,)}, 64)
