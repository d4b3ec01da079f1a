"""The entries of variables: in memory and chunk by chunk, always the same."""

from __future__ import annotations

import collections
import pickle
import subprocess
import sys
import threading

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import chunkings, count_computes, raise_if_dask_computes

import xcopula
from xcopula.labels.entries import Entries, Unread, find_entries, to_read
from xcopula.labels.observations import gather, observe
from xcopula.marginals import by, regress

KM = {"units": "km"}
TIMES = np.datetime64("2001-01-20", "ns") + np.arange(9) * np.timedelta64(9, "D")


def field(seed: int, shape: tuple[int, int, int], *, share: float, curved: str) -> xr.Dataset:
    """Draw two variables with gaps, in the plane and in time, with fields beside them.

    The places are coordinates of the dims, of the plane, or of every cell.
    """
    rng = np.random.default_rng(seed)
    dims, (days, rows, columns) = ("time", "y", "x"), shape

    def gappy(values):
        return np.where(rng.random(values.shape) < share, np.nan, values)

    y, x = np.meshgrid(np.arange(rows) * 1.5, np.arange(columns) * 1.1, indexing="ij")
    coords = {"time": TIMES[:days]}
    if curved == "no":
        coords |= {"y": ("y", y[:, 0], KM), "x": ("x", x[0], KM)}
    else:
        places = {"v": (y + 0.1 * x, "Y"), "u": (x - 0.2 * y, "X")}
        own = dims if curved == "cells" else dims[1:]
        coords |= {
            n: (own, np.broadcast_to(p, shape[-len(own) :]).copy(), KM | {"axis": a})
            for n, (p, a) in places.items()
        }
    return xr.Dataset(
        {
            "metal": (dims, gappy(rng.normal(size=shape)).astype("f4"), {"units": "mg"}),
            "proxy": (dims[::-1], gappy(rng.normal(size=shape[::-1]))),
            "height": (dims, rng.uniform(size=shape), {"units": "m"}),
            "side": (dims[1:], np.where(rng.random((rows, columns)) < 0.5, "east", "west")),
        },
        coords=coords,
    )


LAWS = {
    "none": [None, None],
    "fields": [regress("normal", on="height"), by("side", "normal")],
    "months": [by("time.month", "normal"), regress("normal", on=["height", "time"])],
}


def seen(data, laws, coords=None):
    """Return all that is read of the data, or why it is refused."""
    try:
        found = observe(data, ["metal", "proxy"], coords, laws=laws)
    except (ValueError, TypeError) as error:
        return type(error), str(error)
    sample = found.sample
    arrays = [found.positions, sample.inputs, sample.values, sample.sites, sample.offsets]
    arrays += [*sample.covariates, found.sites.places, found.sites.numbers]
    return found.variables, found.coordinates, [(a.shape, a.dtype, a.tobytes()) for a in arrays]


@st.composite
def cut_fields(draw):
    """Draw data, and the same in chunks, each array in its own."""
    shape = tuple(draw(st.integers(1, 4)) for _ in range(3))
    assume(np.prod(shape) >= 6)
    data = field(
        draw(st.integers(0, 99)),
        shape,
        share=draw(st.sampled_from([0.0, 0.3, 0.7, 0.95])),
        curved=draw(st.sampled_from(["no", "plane", "cells"])),
    )
    lazy = data.copy()
    for name in data.variables:
        if name not in data.dims and draw(st.integers(0, 5), label=f"{name} in memory"):
            chunks = {d: draw(chunkings(n)) for d, n in data[name].sizes.items()}
            lazy[name] = data[name].chunk(chunks)
    return data, lazy


class TestChunks:
    @settings(max_examples=60, deadline=None)
    @given(drawn=cut_fields(), laws=st.sampled_from(list(LAWS.values())))
    @pytest.mark.filterwarnings("ignore:The sites of 'proxy' do not overlap:UserWarning")
    def test_equal_memory_to_the_last_bit(self, drawn, laws):
        """Whatever the chunks, gaps and coordinates: the same sample, or the same error."""
        data, lazy = drawn
        assert seen(lazy, laws) == seen(data, laws)

    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize("constant", [False, True])
    def test_dates_of_every_cell(self, missing, constant):
        """The epoch is the earliest date, also of cells without a value; one date is no input."""
        data = field(1, (3, 4, 5), share=0.3, curved="no").isel(time=0, drop=True)
        days = np.zeros(20, int) if constant else np.arange(20) % 7
        when = (TIMES[0] + days * np.timedelta64(30, "h")).reshape(4, 5)
        if missing:
            gaps = np.eye(4, 5) == 1.0
            data = data.where(xr.DataArray(~gaps, dims=("y", "x")))
            when[gaps] = "NaT"
        data = data.assign_coords(when=(("y", "x"), when, {"standard_name": "time"}))
        expected = seen(data, [None, None])
        assert seen(data.chunk(y=3, x=2), [None, None]) == expected
        if not missing:
            assert ("when" in expected[1].names) == (not constant)

    @pytest.mark.parametrize("bad", ["infinite", "empty", "constant", "few", "huge", "places"])
    def test_refused_as_in_memory(self, bad):
        """With the same words: counts and positions are those of the whole array."""
        data = field(2, (3, 4, 5), share=0.3, curved="plane")
        values = data["metal"].values.astype(float)
        known = np.flatnonzero(~np.isnan(values))
        if bad == "infinite":
            values.flat[known[[9, 11, 4]]] = np.inf, -np.inf, np.inf
        elif bad == "empty":
            values[:] = np.nan
        elif bad == "constant":
            values[~np.isnan(values)] = 3.0
        elif bad == "few":
            values.flat[known[4:]] = np.nan
        elif bad == "huge":
            values.flat[known[3]] = 1e200
        else:
            data["u"][1, 2] = np.nan
        data["metal"] = data["metal"].copy(data=values)
        expected = seen(data, [None, None])
        assert isinstance(expected[1], str)
        assert seen(data.chunk(time=2, y=3, x=2), [None, None]) == expected

    def test_missing_fields_are_named_by_labels(self):
        """The first sites without a field are those of the array in memory."""
        data = field(3, (3, 4, 5), share=0.3, curved="no")
        data["height"][1:, 2] = np.nan
        expected = seen(data, LAWS["fields"])
        assert "is missing at" in expected[1]
        assert "time=2001-01-29" in expected[1]
        assert seen(data.chunk(time=1, y=3), LAWS["fields"]) == expected

    def test_objects_are_refused_before_anything_is_computed(self):
        """By their dtype."""
        data = field(0, (3, 4, 5), share=0.3, curved="no").chunk(y=2)
        data = data.assign(metal=data["metal"].astype(object))
        with (
            raise_if_dask_computes(),
            pytest.raises(TypeError, match="'metal' has dtype object; a task needs numbers"),
        ):
            observe(data, ["metal"])

    def test_a_number_that_is_lazy(self):
        """A variable without dims has one value, which is too few."""
        data = xr.Dataset({"a": ((), da.zeros(()))}, coords={"x": 1.0, "y": 2.0})
        with pytest.raises(ValueError, match="'a' has 1 finite values of 1;"):
            observe(data, ["a"], ["x", "y"])

    def test_objects_beside_are_kept_whole(self):
        """Dates of cftime, or names, of every cell."""
        data = field(4, (3, 4, 5), share=0.3, curved="cells")
        names = np.where(data["height"] < 0.5, "low", "high").astype(object)
        data = data.assign(level=(("time", "y", "x"), names))
        laws = [by("level", "normal"), None]
        assert seen(data.chunk(y=3, x=2), laws) == seen(data, laws)


class Counting:
    """A source that counts how often each of its chunks is made."""

    def __init__(self, chunks) -> None:
        self.made: collections.Counter = collections.Counter()
        self.lock = threading.Lock()
        self.array = da.map_blocks(self.make, chunks=chunks, dtype=float, meta=np.empty((0,) * 3))

    def make(self, block_info=None):
        """Draw a chunk."""
        info = block_info[None]
        with self.lock:
            self.made[info["chunk-location"]] += 1
        rng = np.random.default_rng(info["chunk-location"])
        values = rng.normal(size=info["chunk-shape"])
        values[rng.random(values.shape) < 0.6] = np.nan
        return values

    def __dask_tokenize__(self):
        return id(self)


class TestOnce:
    @pytest.fixture
    def source(self):
        """Twelve chunks."""
        return Counting(((3, 2), (2, 2, 2), (4, 3)))

    @pytest.fixture
    def data(self, source):
        """Two variables, a field and a place of every cell, all made of one source."""
        dims, base = ("time", "y", "x"), da.nan_to_num(source.array)
        coords = {"time": TIMES[:5], "y": ("y", np.arange(6.0), KM), "x": ("x", np.arange(7.0), KM)}
        return xr.Dataset(
            {
                "metal": (dims, source.array),
                "proxy": (dims, 2.0 * source.array + 1.0),
                "height": (dims, da.cos(3.0 * base)),
                "depth": (dims, -base, {"units": "m", "standard_name": "depth", "axis": "Z"}),
            },
            coords=coords,
        ).set_coords("depth")

    laws = (regress("normal", on="height"), None)

    @pytest.mark.parametrize("scheduler", ["sync", "threads"])
    def test_each_chunk_is_computed_once(self, source, data, scheduler):
        """For all variables, coordinates and fields together, in one request."""
        with dask.config.set(scheduler=scheduler):
            found = observe(data, ["metal", "proxy"], laws=self.laws)
        assert set(found.coordinates.names) == {"x", "y", "time", "depth"}
        assert set(source.made.values()) == {1}
        assert len(source.made) == 12

    def test_in_one_request(self, data):
        """Dask is asked once."""
        with count_computes() as scheduler:
            observe(data, ["metal", "proxy"], laws=self.laws)
        assert scheduler.computes == 1

    def test_a_lazy_fit_reads_in_its_graph(self, source, data):
        """Nothing is made before the compute, and then each chunk once."""
        options = {"kernels": "matern32", "method": "full", "restarts": 0}
        laws = {"metal": self.laws[0], "proxy": "normal"}
        data = data.drop_vars("depth")
        with raise_if_dask_computes():
            lazy = xcopula.fit(data, "metal", "proxy", marginals=laws, compute=False, **options)
        assert not source.made
        found = lazy.compute()
        assert set(source.made.values()) == {1}
        expected = xcopula.fit(data.compute(), "metal", "proxy", marginals=laws, **options)
        np.testing.assert_array_equal(found.theta, expected.theta)

    def test_no_task_holds_the_array(self, data):
        """What a lazy fit reads ends in small tasks; no chunk is joined with another."""
        sources, _ = gather(data, ["metal", "proxy"], load=False)
        unread = to_read(sources)
        assert all(isinstance(u, Unread) for u in unread.values())
        for u in unread.values():
            assert u.parts.shape == (2, 3, 2)
            assert u.parts.dtype == object


class TestEntries:
    def test_hold_what_is_not_nan(self):
        """Places in C order, values as numbers, infinities included."""
        values = np.array([[1.0, np.nan, np.inf], [np.nan, 5.0, 6.0]], "f4")
        array = xr.DataArray(values, dims=("y", "x"), coords={"x": [0.0, 1.0, 2.0]}, name="other")
        for given_ in (array, array.chunk(x=2), array.chunk(y=1)):
            found = find_entries({"a": given_})["a"]
            assert found.name == "a"
            assert found.places.tolist() == [0, 2, 4, 5]
            assert found.values.tolist() == [1.0, np.inf, 5.0, 6.0]
            assert found.values.dtype == np.float64
            assert found.sizes == {"y": 2, "x": 3}
            assert found.at(found.labels["x"]).tolist() == [0.0, 2.0, 1.0, 2.0]
            assert found.called(2) == "y=1, x=1.0"

    def test_coordinates_as_large_as_the_array_are_kept_at_the_entries_only(self):
        """Others are kept whole; both are right at the entries, in memory and chunk by chunk."""
        values = np.array([[1.0, np.nan, np.nan], [np.nan, 5.0, np.nan]])
        u = np.arange(6.0).reshape(2, 3)
        coords = {"u": (("y", "x"), u), "t": (("x", "y"), 10.0 * u.T), "x": [0.0, 1.0, 2.0]}
        array = xr.DataArray(values, dims=("y", "x"), coords=coords)
        for given_ in (array, array.chunk(x=2), array.chunk(y=1)):
            found = find_entries({"a": given_})["a"]
            assert {n: c.size for n, c in found.labels.coords.items()} == {"u": 2, "t": 2, "x": 3}
            assert found.at(found.labels["u"]).tolist() == [0.0, 4.0]
            assert found.at(found.labels["t"]).tolist() == [0.0, 40.0]

    def test_what_was_found_is_not_looked_for_again(self):
        """Entries are their own."""
        found = find_entries({"a": xr.DataArray(np.arange(3.0), dims="x")})
        assert find_entries(found)["a"] is found["a"]

    def test_travel(self):
        """Through a pickle, found or not."""
        array = xr.DataArray(np.arange(6.0), dims="x", coords={"u": ("x", np.arange(6.0))})
        for given_ in (array, array.chunk(x=4)):
            (ready,) = to_read({"a": given_}).values()
            found = find_entries({"a": pickle.loads(pickle.dumps(ready))})["a"]
            assert isinstance(found, Entries)
            assert found.values.tolist() == array.values.tolist()
            assert found.at(found.labels["u"]).tolist() == array.values.tolist()

    @pytest.mark.parametrize("chunked", [False, True])
    def test_of_nothing(self, chunked):
        """An empty array has none."""
        array = xr.DataArray(np.zeros((0, 3)), dims=("y", "x"))
        array = array.assign_coords(u=array)
        found = find_entries({"a": array.chunk() if chunked else array})["a"]
        assert found.values.size == 0


SWATH = """
import resource, sys
import dask, dask.array as da, numpy as np, xarray as xr
from xcopula.labels.observations import observe

def make(block_info=None):
    info = block_info[None]
    values = np.full(info["chunk-shape"], np.nan, "f4")
    rng = np.random.default_rng(info["chunk-location"])
    where = rng.choice(values.size, values.size // 1000, replace=False)
    values.flat[where] = rng.normal(size=where.size)
    return values

def swath(days, size):
    cells = da.map_blocks(
        make, chunks=((1,) * days, (500,) * (size // 500), (500,) * (size // 500)), dtype="f4",
        meta=np.empty((0, 0, 0), "f4"),
    )
    lines = da.arange(size, chunks=500, dtype="f8")
    lat = da.broadcast_to(lines[:, None], cells.shape, chunks=cells.chunks)
    lon = da.broadcast_to(lines[None, :], cells.shape, chunks=cells.chunks)
    days = np.datetime64("2001-01-01", "ns") + np.arange(days) * np.timedelta64(1, "D")
    dims, km = ("time", "line", "pixel"), {"units": "km"}
    return xr.Dataset(
        {"a": (dims, cells), "b": (dims, 2.0 * cells)},
        coords={"time": days, "v": (dims, lat, km | {"axis": "Y"}),
                "u": (dims, lon, km | {"axis": "X"})},
    )

def peak():
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

observe(swath(1, 500), ["a"])  # imports, and what dask and numpy keep for themselves
before = peak()
found = observe(swath(10, 2000), ["a", "b"])
print(found.sample.size, peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
def test_memory_does_not_grow_with_the_array():
    """4 x 10^7 cells of two variables and two coordinates, 960 MB: far less is ever held."""
    done = subprocess.run([sys.executable, "-c", SWATH], capture_output=True, text=True, check=True)
    size, megabytes = map(float, done.stdout.split())
    assert size == 2 * 40_000
    assert megabytes < 150.0
