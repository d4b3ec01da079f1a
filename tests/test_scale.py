"""Large requests: what they warn of, what their graphs weigh, and what memory they take."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import cloudpickle
import dask
import numpy as np
import pytest
import xarray as xr
from strategies import raise_if_dask_computes

import xcopula
from xcopula.errors import PerformanceWarning
from xcopula.methods import Transductive, transductive
from xcopula.prediction import blocks
from xcopula.process import Predictive

FIXED = {"kernels": "matern32", "restarts": 0, "uncertainty": "plugin"}
CELL_BYTES = 8 * (2 + 2 + 3)  # coordinates in the plane, latent moments, three quantiles


def plane(rows: int, columns: int) -> xr.Dataset:
    """Return a grid of the field."""
    return xr.Dataset(
        coords={"y": np.linspace(0.0, 3.0, rows), "x": np.linspace(0.0, 4.0, columns)}
    )


@pytest.fixture(scope="module")
def pairs(sites):
    """A transductive model of three variables, with anchors."""
    noise = np.random.default_rng(0).normal(size=sites.sizes["site"])
    data = sites.assign(other=sites["proxy"].copy(data=sites["proxy"].values + noise))
    laws = {"metal": "lognormal", "proxy": "normal", "other": "normal"}
    method = Transductive(weights="calibrated")
    found = xcopula.fit(data, "metal", ["proxy", "other"], method=method, marginals=laws, **FIXED)
    assert found.conditioned.anchors is not None
    return found


@pytest.fixture(params=["exact", "pairs"])
def either(request, model, pairs):
    """Each of the two kinds of model."""
    return {"exact": model, "pairs": pairs}[request.param]


class TestWarnings:
    def suggested(self, warning: str) -> dict[str, int]:
        """Read the chunks that a warning names."""
        (text,) = re.findall(r"Give `chunks=\{(.*)\}`", warning)
        return {k: int(v) for k, v in re.findall(r"'(\w+)': (\d+)", text)}

    @pytest.mark.parametrize(
        ("chunks", "message"),
        [
            (50, r"has 40,000 blocks; with more than 10,000 the scheduler"),
            (5000, r"has blocks of 25,000,000 cells; each takes 1\.3 GiB"),
        ],
    )
    def test_blocks_too_many_or_too_large(self, model, chunks, message):
        """The count or the size is named, at the caller's line, and the advice is good."""
        target = plane(10_000, 10_000)
        with pytest.warns(PerformanceWarning, match=message) as record:
            model.predict(target, chunks=chunks)
        assert [w.filename for w in record] == [__file__]
        better = self.suggested(str(record[0].message))
        assert 2**19 < math.prod(better.values()) < 2**21
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(target, chunks=better)

    def test_a_huge_grid_is_told_chunks_that_are_few_enough(self, model):
        """The advice grows with the grid, up to the largest block."""
        target = plane(10**6, 10**5)
        with pytest.warns(PerformanceWarning, match="100,000 blocks") as record:
            model.predict(target, 0.5, chunks=1000)
        better = self.suggested(str(record[0].message))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(target, 0.5, chunks=better)

    def test_results_count(self, model):
        """Many quantiles make a block large that is not with one."""
        with pytest.warns(PerformanceWarning, match="each takes"):
            model.predict(plane(4000, 4000), np.linspace(0.1, 0.9, 9), chunks=4000)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(plane(4000, 4000), 0.5, chunks=4000)

    def test_a_chunked_target_and_a_lazy_model_count_too(self, model, sites):
        """Chunks that nobody gave by name are looked at as well."""
        rows = xr.DataArray(np.ones(20_000, bool), dims="y").chunk(y=1)
        with pytest.warns(PerformanceWarning, match="20,000 blocks"):
            model.predict(plane(20_000, 10), mask=rows, chunks={"y": 1})
        with pytest.warns(PerformanceWarning, match="20,000 blocks"):
            model.predict(plane(20_000, 10).assign(land=rows))
        lazy = xcopula.fit(sites, "metal", compute=False, marginals="lognormal", **FIXED)
        with pytest.warns(PerformanceWarning, match="each takes 5.2 GiB"):
            lazy.predict(plane(10_000, 10_000))

    def test_auto_counts_all_that_a_block_holds(self, model):
        """The blocks of "auto" stay within dask's own limit, whatever the number of quantiles."""
        with dask.config.set({"array.chunk-size": "4MiB"}), warnings.catch_warnings():
            warnings.simplefilter("error")
            out = model.predict(plane(3000, 3000), chunks="auto")["metal"]
        cells = math.prod(max(out.chunksizes[d]) for d in ("y", "x"))
        assert 2 * 2**20 < cells * CELL_BYTES < 5 * 2**20


class TestGraph:
    def graph(self, model, rows: int, columns: int, chunk: int) -> dict:
        """Build a prediction and return its optimised graph."""
        with raise_if_dask_computes(), warnings.catch_warnings():
            warnings.simplefilter("error")
            out = model.predict(plane(rows, columns), chunks=chunk)["metal"].data
        (final,) = dask.optimize(out)
        return dict(final.__dask_graph__())

    def test_a_thousand_blocks(self, either):
        """A few tasks for each block, one of all with the model, and 5 MB on the wire."""
        graph = self.graph(either, 25_000, 40_000, 1000)
        assert len(graph) < 3 * 1000
        theta = either.theta.tobytes()
        assert sum(theta in cloudpickle.dumps(task) for task in graph.values()) == 1
        assert len(cloudpickle.dumps(graph)) < 5e6

    def test_is_linear_in_blocks(self, either):
        """Ten times the blocks, ten times the tasks and bytes at most."""
        small, large = (self.graph(either, 10_000, n, 1000) for n in (10_000, 100_000))
        assert len(large) <= 10 * len(small)
        assert len(cloudpickle.dumps(large)) <= 10 * len(cloudpickle.dumps(small))


class TestMemory:
    def evaluate(self, model, x, y, mask) -> np.ndarray:
        """Run the block function on an outer product."""
        return blocks.evaluate(
            x,
            y,
            mask,
            missing=[(0,), (1,), () if mask.ndim else (0, 1)],
            predictor=model.predictor,
            quantity="latent",
            rows=2,
            task=0,
            nugget=True,
        )

    def test_slices_of_a_block_do_not_change_it(self, either, monkeypatch):
        """A block that is worked on in slices equals the whole, with gaps anywhere."""
        rng = np.random.default_rng(0)
        x, y = rng.uniform(0.0, 3.0, 23), rng.uniform(0.0, 3.0, 17)
        x[4] = np.nan
        mask = rng.random((17, 23)) < 0.7
        whole = self.evaluate(either, x, y, mask)
        options = {"predictor": either.predictor, "function": Predictive.quantile, "task": 0}
        options["missing"] = ()
        quantiles = blocks.transform(whole, leading=np.array([0.1, 0.9]), **options)
        monkeypatch.setattr(blocks, "_CELLS", 7)
        np.testing.assert_allclose(self.evaluate(either, x, y, mask), whole, rtol=1e-12)
        parts = blocks.transform(whole, leading=np.array([0.1, 0.9]), **options)
        np.testing.assert_allclose(parts, quantiles, rtol=1e-12)

    def test_a_block_as_query_set_is_never_sliced(self):
        """With anchors="block" every cell of a block must be seen at once."""
        assert blocks._CELLS > transductive._LARGEST_BLOCK

    def test_a_large_block_takes_little_more_than_its_result(self, alone):
        """Beyond a fixed budget, a cell costs its moments, its number and its mark."""
        alone.predict(plane(2, 2))
        peaks = []
        for side in (300, 600):
            axis = np.linspace(0.0, 3.0, side)
            tracemalloc.start()
            out = self.evaluate(alone, axis, axis, np.array(True))
            options = {"predictor": alone.predictor, "function": Predictive.mean, "task": 0}
            blocks.transform(out, leading=None, missing=(), **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] - peaks[0] < 1.1 * (16 + 8 + 1) * (600**2 - 300**2)

    def test_peak_does_not_grow_with_the_grid(self, alone, tmp_path):
        """Thirty-six times the cells in blocks of one size, written as they come."""
        peaks = []
        for side in (100, 100, 600):  # the first run warms up
            out = alone.predict(plane(side, side), chunks=50)
            tracemalloc.start()
            with dask.config.set(scheduler="threads", num_workers=2):
                out.to_zarr(tmp_path / f"{side}.zarr", mode="w", consolidated=False)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[2] - peaks[1] < 8 * 3 * 600**2 / 2


class TestFiles:
    @pytest.mark.parametrize("kind", ["zarr", "netcdf"])
    def test_streaming_equals_memory(self, either, tmp_path, kind):
        """What is written block by block is what stands in memory."""
        target = plane(31, 23)
        eager = either.predict(target)
        lazy = either.predict(target, chunks={"y": 10, "x": 9})
        path = tmp_path / f"prediction.{kind}"
        if kind == "zarr":
            lazy.to_zarr(path, consolidated=False)
            found = xr.open_zarr(path, consolidated=False)
        else:
            lazy.to_netcdf(path, engine="netcdf4")
            found = xr.open_dataset(path, engine="netcdf4")
        with found:
            xr.testing.assert_allclose(found.load(), eager, rtol=1e-12, atol=0.0)
            assert found["metal"].attrs == eager["metal"].attrs


def test_the_benchmark_runs():
    """Its quick mode measures everything at small sizes."""
    script = Path(__file__).parent.parent / "benchmarks" / "bench_scale.py"
    # One BLAS thread: this is a test of the script, and a busy machine makes more very slow.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), "--quick"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["graph"] * 2 + ["run"] * 5 + ["threads"] * 3
    assert all("the model in it 1 time(s)" in line for line in lines[:2])
