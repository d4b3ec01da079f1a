"""Block functions on plain arrays, and the dask arrays that are made of them."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import raise_if_dask_computes

from xcopula.prediction import blocks
from xcopula.process import Predictive, Targets

X, Y = np.linspace(0.5, 3.5, 5), np.linspace(0.2, 2.8, 4)
AXES = [(0,), (1,), (0, 1)]


@pytest.fixture
def options(model):
    """What a block needs of the model."""
    return {
        "predictor": model.predictor,
        "quantity": "latent",
        "rows": 2,
        "task": 0,
        "nugget": True,
    }


class TestEvaluate:
    def test_is_the_conditional_of_the_model(self, model, options):
        """A block is the outer product of its coordinates, mean and standard deviation first."""
        out = blocks.evaluate(X, Y, np.array(True), missing=AXES, **options)
        assert out.shape == (2, 4, 5)
        x, y = np.meshgrid(X, Y)
        columns = model.observations.coordinates.to_columns([x.ravel(), y.ravel()])
        moments = model.conditioned.moments(Targets.nowhere(columns))
        np.testing.assert_allclose(out[0].ravel(), moments.mean, rtol=1e-12)
        np.testing.assert_allclose(out[1].ravel() ** 2, moments.variance, rtol=1e-10)

    @pytest.mark.parametrize("task", [0, 1])
    def test_of_any_task_with_and_without_its_nugget(self, model, options, task):
        """Task and nugget reach the conditioned process."""
        x, y = np.meshgrid(X, Y)
        targets = Targets.nowhere(model.coordinates.to_columns([x.ravel(), y.ravel()]))
        found = []
        for nugget in (True, False):
            chosen = options | {"task": task, "nugget": nugget}
            out = blocks.evaluate(X, Y, np.array(True), missing=AXES, **chosen)
            moments = model.conditioned.moments(targets, task=task, nugget=nugget)
            np.testing.assert_allclose(out[0].ravel(), moments.mean, rtol=1e-12)
            np.testing.assert_allclose(out[1].ravel() ** 2, moments.variance, rtol=1e-10)
            found.append(out[1] ** 2)
        own = float(model.parameters["nugget"][task])
        np.testing.assert_allclose(found[0] - found[1], own, rtol=1e-6)

    def test_mask_and_nan(self, options):
        """Masked cells and cells without a place are NaN."""
        mask = np.ones((4, 5), bool)
        mask[1, 2] = False
        x = X.copy()
        x[0] = np.nan
        out = blocks.evaluate(x, Y, mask, missing=[(0,), (1,), ()], **options)
        expected = mask & np.isfinite(x)
        np.testing.assert_array_equal(np.isfinite(out[0]), expected)
        np.testing.assert_array_equal(np.isfinite(out[1]), expected)

    def test_places_are_the_cells_that_are_evaluated(self):
        """By their numbers in C order, with their coordinates."""
        mask = np.ones((4, 5), bool)
        mask[1, 2] = False
        x = X.copy()
        x[0] = np.nan
        index = [("x",), ("y",), ("y", "x")]
        query = blocks.Query([x, Y, mask], index, ("y", "x"), None, task=0, nugget=True)
        cells, (found_x, found_y) = query.places()
        rows, columns = np.nonzero(mask & np.isfinite(x))
        np.testing.assert_array_equal(cells, 5 * rows + columns)
        np.testing.assert_array_equal(found_x, x[columns])
        np.testing.assert_array_equal(found_y, Y[rows])

    def test_nothing_wanted_is_all_nan(self, options):
        """A fully masked block asks nothing of the model."""
        options["quantity"] = "no such method"
        out = blocks.evaluate(X, Y, np.array(False), missing=AXES, **options)
        assert np.isnan(out).all()

    def test_the_byte_budget_does_not_change_the_result(self, monkeypatch, options):
        """Batches are a matter of memory only."""
        whole = blocks.evaluate(X, Y, np.array(True), missing=AXES, **options)
        monkeypatch.setattr("xcopula.solvers.batches._BATCH_BYTES", 3 * 8 * 100)
        parts = blocks.evaluate(X, Y, np.array(True), missing=AXES, **options)
        np.testing.assert_allclose(parts, whole, rtol=1e-12)

    @pytest.mark.parametrize("cells", [1, 7, 19, 20, 21])
    def test_so_many_cells_at_a_time_do_not_change_the_result(self, monkeypatch, options, cells):
        """No cell is left out or asked twice between two pieces of a block."""
        whole = blocks.evaluate(X, Y, np.array(True), missing=AXES, **options)
        monkeypatch.setattr(blocks, "_CELLS", cells)
        parts = blocks.evaluate(X, Y, np.array(True), missing=AXES, **options)
        np.testing.assert_allclose(parts, whole, rtol=1e-12)


class TestQuery:
    index = (("x",), ("y",), ())

    def test_lazy_equals_eager(self, model):
        """Chunks of the dask array are blocks of the function, whatever the arrays are."""
        import dask.array as da

        plain = blocks.Query([X, Y, np.array(True)], self.index, ("y", "x"), None, 0, True)
        whole = plain.evaluate(model.predictor, "latent", 2)
        arrays = [X, da.from_array(Y, chunks=3), np.array(True)]
        chunks = {"y": (1, 3), "x": (2, 3)}
        with raise_if_dask_computes():
            query = blocks.Query(arrays, self.index, ("y", "x"), chunks, 0, True)
            lazy = query.evaluate(model.predictor, "latent", 2)
        assert lazy.chunks == ((2,), (1, 3), (2, 3))
        assert lazy.dtype == np.float64
        np.testing.assert_allclose(lazy.compute(), whole, rtol=1e-12)

    def test_a_point_may_be_lazy(self, model):
        """Without dims there is one block."""
        arrays = [np.array(1.0), np.array(2.0), np.array(True)]
        results = [
            blocks.Query(arrays, ((), (), ()), (), chunks, 0, True).evaluate(
                model.predictor, "latent", 2
            )
            for chunks in (None, {})
        ]
        assert results[1].shape == (2,)
        np.testing.assert_allclose(results[1].compute(), results[0], rtol=1e-12)


class TestTransform:
    moments = np.stack([np.linspace(-1, 1, 12).reshape(3, 4), np.full((3, 4), 0.5)])

    def test_leading_values_are_stacked_first(self, model):
        """One result for each leading value."""
        out = blocks.transform(
            self.moments,
            missing=(),
            function=Predictive.quantile,
            predictor=model.predictor,
            task=0,
            leading=np.array([0.1, 0.9]),
        )
        assert out.shape == (2, 3, 4)
        assert (out[0] < out[1]).all()

    @pytest.mark.parametrize("leading", [None, np.array([0.5, 2.0, 3.0])])
    def test_lazily(self, model, leading):
        """The dask array equals the function, with and without a leading dim."""
        import dask.array as da

        function = Predictive.mean if leading is None else Predictive.cdf
        options = {"function": function, "predictor": model.predictor, "leading": leading}
        moments = da.from_array(self.moments, chunks=(1, 2, 3))
        query = blocks.Query([], [], ("y", "x"), {"y": (2, 1), "x": (3, 1)}, 0, True)
        with raise_if_dask_computes():
            lazy = query.transform(moments, **options)
        eager = query.transform(self.moments, **options)
        assert isinstance(eager, np.ndarray)
        np.testing.assert_array_equal(
            eager, blocks.transform(self.moments, missing=(), task=0, **options)
        )
        np.testing.assert_array_equal(lazy.compute(), eager)
        assert lazy.shape == eager.shape

    @pytest.mark.parametrize("leading", [None, np.array([0.5, 2.0])])
    def test_fields_have_the_dims_they_have(self, leading):
        """A field along one dim is broadcast to the cells, in memory and in blocks."""
        import dask.array as da

        fields = [np.array([1.0, 2.0, 3.0, 4.0]), np.arange(12.0).reshape(3, 4), np.array(5.0)]
        index = [("x",), ("y", "x"), ()]

        def function(law, value=0.0):
            return law + value

        options = {"function": function, "predictor": SumOfFields(), "leading": leading}
        expected = self.moments[0] + fields[0] + fields[1] + fields[2] + 200.0
        if leading is not None:
            expected = expected + leading[:, None, None]
        whole = blocks.Query([], [], ("y", "x"), None, 2, True, fields, index)
        np.testing.assert_allclose(whole.transform(self.moments, **options), expected)
        chunks = {"y": (2, 1), "x": (3, 1)}
        cut = blocks.Query([], [], ("y", "x"), chunks, 2, True, fields, index)
        lazy = cut.transform(da.from_array(self.moments, chunks=(1, 2, 3)), **options)
        np.testing.assert_allclose(lazy.compute(), expected)


class SumOfFields:
    """A predictor whose law is its mean, the sum of its fields, and a hundred for each task."""

    def predictive(self, task, moments, values):
        """Add up the columns."""
        return moments[0] + np.sum(values, axis=0) + 100.0 * task
