"""Lazy fitting: a graph that nothing has run, that predictions extend, and that fits the same."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from strategies import count_computes, raise_if_dask_computes

import xcopula
from xcopula.methods import Full, Sparse, Transductive
from xcopula.model.lazy import LazyModel

SECONDARIES = ["Ni", "Zn"]
QUICK = {
    "marginals": "lognormal",
    "kernels": "matern32",
    "coupling": "icm",
    "noise": "independent",
    "restarts": 0,
}


@pytest.fixture(scope="module")
def metals() -> xr.Dataset:
    """45 sites of the Jura; cadmium is unknown at the validation sites."""
    data = xcopula.datasets.jura().isel(site=slice(None, None, 8))
    return data.assign(Cd=data["Cd"].where(data["split"] == "prediction").assign_attrs(units="mg"))


@pytest.fixture(scope="module")
def fitted(metals):
    """The model, fitted at once."""
    return xcopula.fit(metals, "Cd", SECONDARIES, **QUICK)


@pytest.fixture(scope="module")
def lazy(metals) -> LazyModel:
    """The model as a graph."""
    return xcopula.fit(metals, "Cd", SECONDARIES, compute=False, **QUICK)


@pytest.fixture(scope="module")
def five(metals) -> LazyModel:
    """The graph of a five-task model."""
    return xcopula.fit(metals, "Cd", ["Ni", "Zn", "Co", "Cr"], compute=False, **QUICK)


@pytest.fixture(scope="module")
def field() -> xr.Dataset:
    """A grid over part of the Jura."""
    return xr.Dataset(coords={"y": np.linspace(1.0, 5.0, 5), "x": np.linspace(1.0, 4.5, 6)})


@pytest.fixture
def no_optimisation(monkeypatch):
    """Fail on any work of the optimiser."""

    def refuse(*args, **kwargs):
        raise AssertionError("optimised while the graph was built")

    monkeypatch.setattr("scipy.optimize.minimize", refuse)


@pytest.mark.usefixtures("no_optimisation")
class TestNothingRuns:
    @pytest.mark.parametrize("chunked", [False, True], ids=["in memory", "dask-backed"])
    @pytest.mark.parametrize("method", ["transductive", "full"])
    def test_building_fit_and_predictions_computes_nothing(self, metals, field, method, chunked):
        """Fit, predict, every result of the posterior and the repr only describe work."""
        data = metals.chunk(site=10) if chunked else metals
        with raise_if_dask_computes():
            model = xcopula.fit(data, "Cd", SECONDARIES, method=method, compute=False, **QUICK)
            posterior = model.posterior(field, chunks=3)
            results = [
                model.predict(field)["Cd"],
                model.predict(field, chunks={"x": 2})["Cd"],
                posterior.median(),
                posterior.mean(),
                posterior.exceedance([0.8, 2.0]),
                *posterior.latent.values(),
                model.predict(field, variable="Zn")["Zn"],
            ]
            if method == "transductive":
                results.append(posterior.information())
            else:
                with pytest.raises(ValueError, match="method='full' cannot tell what each second"):
                    posterior.information()
            repr(model)
            repr(posterior)
        assert isinstance(model, LazyModel)
        assert all(r.chunks is not None for r in results)

    def test_labels_are_known_before_any_work(self, lazy, field):
        """Shape, dims, coordinates and attributes of a result need no model."""
        out = lazy.predict(field, [0.1, 0.9])["Cd"]
        assert out.dims == ("quantile", "y", "x")
        assert out.shape == (2, 5, 6)
        assert out.attrs["units"] == "mg"
        assert lazy.tasks == ("Cd", "Ni", "Zn")
        information = lazy.posterior(field).information()
        assert information["secondary"].values.tolist() == SECONDARIES

    def test_bad_data_in_memory_are_refused_at_once(self, metals):
        """What can be seen without computing is not left for later."""
        empty = metals.assign(Zn=metals["Zn"] * np.nan)
        with pytest.raises(ValueError, match="'Zn' has 0 finite values"):
            xcopula.fit(empty, "Cd", SECONDARIES, compute=False, **QUICK)

    def test_bad_dask_backed_data_are_refused_when_computed(self, metals):
        """The same error comes with the compute, and names the variable."""
        empty = metals.assign(Zn=metals["Zn"] * np.nan).chunk(site=20)
        model = xcopula.fit(empty, "Cd", SECONDARIES, compute=False, **QUICK)
        with pytest.raises(ValueError, match="'Zn' has 0 finite values"):
            model.compute(scheduler="sync")

    def test_bad_options_and_targets_are_refused_at_once(self, metals, lazy, field):
        """Options are checked before a graph is built, targets before it is extended."""
        with pytest.raises(ValueError, match="Unknown optimizer 'heavy'"):
            xcopula.fit(metals.chunk(), "Cd", SECONDARIES, optimizer="heavy", compute=False)
        nowhere = Transductive(anchors=field.drop_vars("y"))
        with pytest.raises(ValueError, match="`anchors` lacks the coordinate 'y'"):
            xcopula.fit(metals.chunk(), "Cd", SECONDARIES, method=nowhere, compute=False)
        with pytest.raises(ValueError, match="lacks the coordinate 'y'"):
            lazy.predict(field.drop_vars("y"))
        with pytest.raises(KeyError, match=r"no variable 'Pb'; it has \['Cd', 'Ni', 'Zn'\]"):
            lazy.predict(field, variable="Pb")
        with pytest.raises(ValueError, match=r"inform only the primary, 'Cd', found 'Ni'"):
            lazy.posterior(field, variable="Ni").information()

    def test_an_unpicklable_callback_is_refused(self, metals):
        """A callback that cannot travel with the graph is a TypeError that says so."""
        lock = threading.Lock()

        def callback(iteration, log_likelihood, theta):
            with lock:
                pass

        with pytest.raises(TypeError, match=r"compute=False.*callback.*cannot be pickled.*locks"):
            xcopula.fit(metals, "Cd", SECONDARIES, compute=False, callback=callback, **QUICK)


class TestCompute:
    @pytest.mark.parametrize("scheduler", ["sync", "threads"])
    @pytest.mark.parametrize("chunked", [False, True], ids=["in memory", "dask-backed"])
    def test_gives_the_model_of_a_fit_at_once(self, metals, fitted, chunked, scheduler):
        """Theta and likelihood are identical, whatever runs the graph."""
        data = metals.chunk(site=10) if chunked else metals
        model = xcopula.fit(data, "Cd", SECONDARIES, compute=False, **QUICK)
        found = model.compute(scheduler=scheduler)
        np.testing.assert_array_equal(found.theta, fitted.theta)
        assert found.log_likelihood == fitted.log_likelihood
        assert found.tasks == fitted.tasks
        xr.testing.assert_identical(found.parameters, fitted.parameters)
        assert found.selection is fitted.selection is None

    def test_a_selection(self, metals):
        """Is the one that a fit at once makes."""
        options = QUICK | {"marginals": {"Cd": ["gamma", "lognormal"]}, "kernels": "se"}
        found = xcopula.fit(metals, "Cd", "Ni", compute=False, **options).compute()
        expected = xcopula.fit(metals, "Cd", "Ni", **options)
        assert expected.selection.sizes == {"alternative": 2}
        xr.testing.assert_identical(found.selection, expected.selection)

    def test_under_processes(self, metals, fitted, field, monkeypatch):
        """Worker processes fit the same model, and predict from it the same quantiles."""
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # two workers on few cores
        model = xcopula.fit(metals, "Cd", SECONDARIES, compute=False, **QUICK)
        out = model.predict(field, chunks={"x": 3}).compute(scheduler="processes", num_workers=2)
        xr.testing.assert_allclose(out, fitted.predict(field), rtol=1e-9)

    def test_one_compute_and_no_more(self, lazy):
        """A fit is one request of the scheduler, whose steps are its tasks."""
        with count_computes() as scheduler:
            lazy.compute()
        assert scheduler.computes == 1

    def test_other_methods_and_no_secondary_are_lazy_too(self, metals, field):
        """The full model and a single task give the eager results."""
        for method, secondary in (("full", ["Ni"]), ("transductive", ())):
            options = QUICK | {"method": method}
            expected = xcopula.fit(metals, "Cd", secondary, **options)
            model = xcopula.fit(metals, "Cd", secondary, compute=False, **options)
            np.testing.assert_array_equal(model.compute(scheduler="sync").theta, expected.theta)

    def test_a_callback_that_can_travel_is_called(self, metals):
        """Iterations are counted over all steps of the graph."""
        model = xcopula.fit(metals, "Cd", SECONDARIES, compute=False, callback=record, **QUICK)
        CALLS.clear()
        model.compute(scheduler="sync")
        np.testing.assert_array_equal(CALLS, np.arange(1, len(CALLS) + 1))
        assert CALLS

    def test_anchors_travel_with_the_graph(self, metals, field):
        """Explicit anchors, in memory or chunked, give the eager prediction."""
        points = xr.Dataset(coords={"x": ("p", [1.5, 2.5, 3.5]), "y": ("p", [2.0, 3.0, 4.0])})

        def method(anchors):
            return Transductive(weights="report", anchors=anchors, polish=False)

        expected = xcopula.fit(metals, "Cd", SECONDARIES, method=method(points), **QUICK)
        assert "given 3 anchors" in expected.summary()
        for data, anchors in ((metals, points), (metals.chunk(site=10), points.chunk(p=2))):
            with raise_if_dask_computes():
                model = xcopula.fit(
                    data, "Cd", SECONDARIES, method=method(anchors), compute=False, **QUICK
                )
                out = model.predict(field)
            xr.testing.assert_allclose(
                out.compute(scheduler="sync"), expected.predict(field), rtol=1e-12
            )


CALLS: list[int] = []


def record(iteration, log_likelihood, theta):
    """Remember the iteration: a callback of module level can be pickled."""
    CALLS.append(iteration)


class TestPredict:
    @pytest.mark.parametrize("chunks", [None, 2, {"x": (1, 5), "y": (4, 1)}])
    def test_equals_the_prediction_of_the_fitted_model(self, lazy, fitted, field, chunks):
        """Quantiles and information from the graph are those of the eager model, to 1e-12."""
        out = lazy.predict(field, chunks=chunks)
        xr.testing.assert_allclose(out.compute(scheduler="sync"), fitted.predict(field), rtol=1e-12)
        information = lazy.posterior(field, chunks=chunks).information()
        expected = fitted.posterior(field).information()
        xr.testing.assert_allclose(information.compute(scheduler="sync"), expected, rtol=1e-10)

    @pytest.mark.parametrize("variable", ["Cd", "Ni", "Zn"])
    def test_of_any_variable(self, lazy, fitted, field, variable):
        """A secondary is predicted from the graph as from the fitted model, to 1e-12."""
        out = lazy.predict(field, variable=variable, chunks=4)
        assert list(out) == [variable]
        expected = fitted.predict(field, variable=variable)
        xr.testing.assert_allclose(out.compute(scheduler="sync"), expected, rtol=1e-12)
        assert out[variable].attrs == expected[variable].attrs

    def test_a_single_point(self, lazy, fitted, field):
        """A target without dims is a lazy scalar."""
        point = field.isel(x=2, y=3)
        with raise_if_dask_computes():
            out = lazy.predict(point, 0.5)["Cd"]
        assert out.shape == ()
        expected = float(fitted.predict(point, 0.5)["Cd"])
        assert float(out.compute(scheduler="sync")) == pytest.approx(expected, rel=1e-12)

    def test_extends_the_graph_of_the_fit(self, lazy, field):
        """A prediction holds the very tasks of the fit, each once, and one more of the model."""
        fit = set(lazy.node.dask.to_dict())
        prediction = lazy.predict(field, chunks=2)["Cd"].data.__dask_graph__().to_dict()
        assert fit <= set(prediction)
        assert sum("fit_pair" in str(k) for k in prediction) == len(SECONDARIES)
        assert sum("_predictor" in str(k) for k in prediction) == 1

    def test_fit_and_predictions_run_in_one_request(self, lazy, field):
        """Two predictions computed together fit once."""
        both = xr.merge(
            [lazy.predict(field, 0.5), lazy.posterior(field).information().to_dataset()],
            compat="override",
        )
        with count_computes() as scheduler:
            both.compute()
        assert scheduler.computes == 1


class TestPersist:
    def test_keeps_the_model_and_drops_the_work(self, lazy, fitted, field):
        """After persist the graph holds the model only, and predicts the same."""
        kept = lazy.persist(scheduler="sync")
        assert isinstance(kept, LazyModel)
        assert len(dict(kept.node.dask)) == 1
        assert kept.tasks == lazy.tasks
        np.testing.assert_array_equal(kept.compute(scheduler="sync").theta, fitted.theta)
        out = kept.predict(field, chunks=3)
        assert not any("fit_pair" in str(k) for k in out["Cd"].data.__dask_graph__().to_dict())
        xr.testing.assert_allclose(out.compute(scheduler="sync"), fitted.predict(field), rtol=1e-12)


class TestGraph:
    def dependencies(self, model):
        """Return the direct dependencies of each task, by key."""
        return {k: set(v.dependencies) for k, v in model.node.dask.to_dict().items()}

    @pytest.mark.parametrize("chunked", [False, True], ids=["in memory", "dask-backed"])
    def test_pairs_stand_side_by_side(self, metals, chunked):
        """There is one task for each pair, and none needs another, directly or not."""
        data = metals.chunk(site=10) if chunked else metals
        model = xcopula.fit(data, "Cd", ["Ni", "Zn", "Co", "Cr"], compute=False, **QUICK)
        needs = self.dependencies(model)
        pairs = {k for k in needs if "fit_pair" in str(k)}
        alone = {k for k in needs if "fit_alone" in str(k)}
        assert len(pairs) == 4
        assert len(alone) == 5
        for name in (pairs, alone):
            for key in name:
                above, queue = set(), [key]
                while queue:
                    found = needs[queue.pop()] - above
                    above |= found
                    queue += found
                assert not above & name

    def test_the_model_waits_for_all_pairs(self, five):
        """All pairs are joined by one task, which the node of the model takes."""
        needs = self.dependencies(five)
        pairs = {k for k in needs if "fit_pair" in str(k)}
        (together,) = (k for k in needs if "fit_together" in str(k))
        assert pairs <= needs[together]
        assert together in needs[five.node.key]

    def test_grows_by_two_tasks_for_each_secondary(self, metals, five):
        """One more has its fit alone, and its pair."""
        four = xcopula.fit(metals, "Cd", ["Ni", "Zn", "Co"], compute=False, **QUICK)
        assert len(self.dependencies(five)) - len(self.dependencies(four)) == 2

    def test_the_data_are_in_it_once(self, metals):
        """Dask-backed variables are loaded by one task, which every step refers to."""
        model = xcopula.fit(metals.chunk(site=10), "Cd", SECONDARIES, compute=False, **QUICK)
        assert sum(str(k).startswith("_start") for k in self.dependencies(model)) == 1

    def test_repr_counts_the_tasks(self, five):
        """The repr names the variables and says how many tasks wait."""
        text = repr(five)
        assert text.startswith("<xcopula.LazyModel of 'Cd' with ['Ni', 'Zn', 'Co', 'Cr']")
        assert f"{len(five.node.dask.to_dict())} tasks, not computed" in text

    def test_of_one_variable_and_what_it_lacks(self, metals):
        """No list of others; each method of a fitted model asks for the fit."""
        alone = xcopula.fit(metals, "Cd", compute=False, **QUICK)
        assert repr(alone).startswith("<xcopula.LazyModel of 'Cd': ")
        for name in ("loo", "design", "worth", "theta"):
            with pytest.raises(AttributeError, match=f"no '{name}'.*Run the fit first"):
                getattr(alone, name)

    @pytest.mark.skipif(importlib.util.find_spec("graphviz") is None, reason="needs graphviz")
    def test_visualize(self, five, tmp_path):
        """The graph can be drawn without computing it."""
        with raise_if_dask_computes():
            five.visualize(filename=str(tmp_path / "graph"), format="dot")
        assert (tmp_path / "graph.dot").read_text().count("fit_pair") >= 4


class TestKeys:
    """The same inputs have the same key: a cluster that has a model need not fit it again."""

    def key(self, data, **options) -> str:
        """Return the key of a fit."""
        return xcopula.fit(data, "Cd", SECONDARIES, compute=False, **QUICK | options).node.key

    @pytest.mark.parametrize("chunked", [False, True], ids=["in memory", "dask-backed"])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"method": "full"},
            {"method": Transductive(anchors=xr.Dataset(coords={"x": [2.0], "y": [3.0]}))},
            {"method": Sparse("fitc", inducing=10)},
            {"marginals": {"Cd": xcopula.regress("lognormal", on="x")}},
            {"marginals": {"Ni": xcopula.by("split", "normal"), "Zn": "auto"}},
        ],
        ids=["default", "full", "anchors", "inducing", "regress", "by"],
    )
    def test_equal_data_and_options(self, metals, options, chunked):
        """A copy of the data gives the very keys, of the model and of each step."""
        data = [metals, metals.copy(deep=True)]
        if chunked:
            data = [d.chunk(site=20) for d in data]
        first, second = (
            xcopula.fit(d, "Cd", SECONDARIES, compute=False, **QUICK | options) for d in data
        )
        assert first.node.key == second.node.key
        # Loading lazy data ends in tasks that dask itself names at random.
        steps = [{str(k) for k in m.node.dask if "finalize" not in str(k)} for m in (first, second)]
        assert steps[0] == steps[1]
        assert any("fit_alone" in key for key in steps[0])

    def test_predictions_have_them_too(self, metals, field):
        """So what was computed of a prediction need not be computed again."""
        one, two = (
            xcopula.fit(d, "Cd", SECONDARIES, compute=False, **QUICK).predict(field, chunks=3)
            for d in (metals, metals.copy(deep=True))
        )
        assert one["Cd"].data.name == two["Cd"].data.name

    def test_the_model_keeps_its_key_in_a_prediction(self, lazy, field):
        """Dask's own optimisation does not hide it: a cluster that has it would fit again."""
        import dask

        for variable in lazy.tasks:
            out = lazy.predict(field, variable=variable, chunks=3)[variable].data
            (final,) = dask.optimize(out)
            assert lazy.node.key in dict(final.__dask_graph__())

    def test_whatever_is_different_has_another(self, metals):
        """Seed, method, its options, laws, kernels, values, places and variables all count."""
        values = metals["Cd"].values.copy()
        values[np.flatnonzero(np.isfinite(values))[0]] *= 1.0 + 1e-12
        keys = [
            self.key(metals),
            self.key(metals, seed=1),
            self.key(metals, method="full"),
            self.key(metals, method=Full(), noise="correlated"),
            self.key(metals, method=Transductive(weights="report")),
            self.key(metals, method=Transductive(polish=False)),
            self.key(metals, marginals="gamma"),
            self.key(metals, kernels="se"),
            self.key(metals, restarts=1),
            self.key(metals, optimizer="cg"),
            self.key(metals.assign(Cd=("site", values))),
            self.key(metals.assign_coords(x=metals["x"] + 1e-9)),
            self.key(metals.isel(site=slice(1, None))),
            xcopula.fit(metals, "Cd", SECONDARIES[::-1], compute=False, **QUICK).node.key,
        ]
        assert len(set(keys)) == len(keys)

    def test_named_methods_are_their_objects(self, metals):
        """A name and the object it stands for are one."""
        assert self.key(metals, method="transductive") == self.key(metals, method=Transductive())
        assert self.key(metals, solver="auto") == self.key(metals, solver="exact")

    def test_another_interpreter_has_the_same(self, metals):
        """Keys do not hang on the seed of Python's own hashes."""
        code = (
            "import sys, xcopula, numpy as np\n"
            "data = xcopula.datasets.jura().isel(site=slice(None, None, 8))\n"
            "model = xcopula.fit(data, 'Cd', ['Ni', 'Zn'], kernels='matern32', compute=False)\n"
            "print(model.node.key)\n"
        )
        found = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
                cwd=Path(__file__).parent,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(found) == 1
        assert found.pop().startswith("_assemble-")
