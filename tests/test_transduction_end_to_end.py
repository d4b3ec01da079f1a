"""The transductive method from data to maps: chunks, schedulers, attribution and bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from strategies import chunked_grids, raise_if_dask_computes

import xcopula
from xcopula.errors import CoordinateError
from xcopula.methods import Full, Transductive
from xcopula.process import Targets
from xcopula.solvers import Exact

SECONDARIES = ["Ni", "Zn", "Co"]
QUICK = {
    "marginals": "lognormal",
    "kernels": "matern32",
    "restarts": 0,
    "uncertainty": "plugin",
    "coupling": "icm",
    "noise": "independent",
}


def method(weights="calibrated", anchors="auto"):
    """Return the method without its polish, which takes long."""
    return Transductive(weights=weights, anchors=anchors, polish=False)


@pytest.fixture(scope="module")
def metals() -> xr.Dataset:
    """45 sites of the Jura; cadmium is unknown at the validation sites."""
    data = xcopula.datasets.jura().isel(site=slice(None, None, 8))
    return data.assign(Cd=data["Cd"].where(data["split"] == "prediction"))


@pytest.fixture(scope="module")
def fitted(metals):
    """A four-task model with the report's weights and automatic anchors."""
    return xcopula.fit(metals, "Cd", SECONDARIES, method=method("report"), **QUICK)


@pytest.fixture(scope="module")
def variants(fitted):
    """The same parameters with other weights and anchors."""
    points = Targets.nowhere(np.random.default_rng(0).uniform(-0.4, 0.4, size=(2, 8)))
    methods = {
        "auto": method("report"),
        "explicit": method("report", points),
        "none": method("report", None),
        "block": method("report", "block"),
        "calibrated": method("calibrated"),
    }
    return {name: replace(fitted, method=chosen) for name, chosen in methods.items()}


@pytest.fixture(scope="module")
def field() -> xr.Dataset:
    """A grid over part of the Jura."""
    return xr.Dataset(coords={"y": np.linspace(1.0, 5.0, 6), "x": np.linspace(1.0, 4.5, 7)})


class TestChunkInvariance:
    @pytest.mark.parametrize("anchors", ["auto", "explicit", "none", "calibrated"])
    @given(drawn=chunked_grids())
    @settings(max_examples=20, deadline=None)
    @pytest.mark.filterwarnings("ignore:.* cells of the target have a coordinate:UserWarning")
    def test_any_chunking_equals_memory(self, variants, anchors, drawn):
        """Random cuts of random grids leave latent moments and quantiles as they are, to 1e-12."""
        model = variants[anchors]
        target, chunks = drawn
        eager, lazy = model.posterior(target).latent, model.posterior(target, chunks=chunks).latent
        xr.testing.assert_allclose(lazy.compute(scheduler="sync"), eager, rtol=0.0, atol=1e-12)
        out = model.predict(target, chunks=chunks).compute(scheduler="sync")
        xr.testing.assert_allclose(out, model.predict(target), rtol=1e-11, atol=0.0)

    def test_at_anchors_and_sites_too(self, fitted, metals):
        """Cells that are anchors or sites of the primary, one by one, are as in one block."""
        one = fitted.posterior(metals, chunks={"site": 1}).latent.compute(scheduler="sync")
        whole = fitted.posterior(metals).latent
        np.testing.assert_allclose(one["mean"], whole["mean"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(one["std"] ** 2, whole["std"] ** 2, rtol=0, atol=1e-12)

    def test_block_depends_on_the_chunks(self, variants, field):
        """The report's own query set is the chunk: other chunks, other predictions."""
        model = variants["block"]
        whole = model.posterior(field).latent["mean"]
        cut = model.posterior(field, chunks={"x": 2, "y": 3}).latent["mean"].compute()
        uncut = model.posterior(field, chunks=-1).latent["mean"].compute()
        np.testing.assert_allclose(uncut, whole, rtol=0, atol=1e-12)
        assert float(abs(cut - whole).max()) > 1e-4

    def test_block_refuses_what_is_too_large(self, variants):
        """A whole grid as query set is refused with the advice to chunk it, which then works."""
        grid = xr.Dataset(coords={"y": np.linspace(1, 5, 70), "x": np.linspace(1, 4.5, 70)})
        with pytest.raises(ValueError, match=r"whole block of 4900 cells.*limit is 4096.*chunks"):
            variants["block"].predict(grid)
        part = variants["block"].predict(grid, 0.5, chunks={"y": 5, "x": 10})["Cd"]
        assert np.isfinite(part.isel(y=slice(5), x=slice(10)).compute(scheduler="sync")).all()


class TestSchedulers:
    def test_fits_are_identical(self, metals, fitted):
        """Synchronous and threaded schedulers fit the same theta, to the last bit."""
        import dask

        for scheduler in ("sync", "threads"):
            with dask.config.set(scheduler=scheduler):
                again = xcopula.fit(metals, "Cd", SECONDARIES, method=method("report"), **QUICK)
            np.testing.assert_array_equal(again.theta, fitted.theta)

    def test_predictions_are_identical(self, fitted, field):
        """Synchronous and threaded schedulers predict the same, to the last bit."""
        lazy = fitted.predict(field, chunks={"x": 3, "y": 2})
        left, right = (lazy.compute(scheduler=s) for s in ("sync", "threads"))
        xr.testing.assert_identical(left, right)

    def test_processes(self, fitted, field, monkeypatch):
        """Worker processes predict the same, to 1e-10."""
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # two workers on few cores
        lazy = fitted.predict(field, chunks={"x": 4})
        out = lazy.compute(scheduler="processes", num_workers=2)
        xr.testing.assert_allclose(out, fitted.predict(field), rtol=1e-10)


class TestInformation:
    @pytest.mark.parametrize("of", ["observation", "signal"])
    def test_labels_and_values(self, fitted, field, of):
        """A map for each secondary, by name, not negative; for a signal they add up to the gain."""
        found = fitted.posterior(field, of=of).information()
        assert found.dims == ("secondary", "y", "x")
        assert found["secondary"].values.tolist() == SECONDARIES
        assert found.name == "information"
        assert "Cd" in found.attrs["long_name"]
        for name in ("x", "y"):
            xr.testing.assert_equal(found[name], field[name])
        assert (found >= 0.0).all()
        assert (found.max(["x", "y"]) > 0.0).all()
        columns = fitted.coordinates.to_columns(
            [c.values.ravel() for c in xr.broadcast(field["x"], field["y"])]
        )
        targets, nugget = Targets.nowhere(columns), of == "observation"
        variance = [m.moments(targets, nugget=nugget).variance for m in fitted.conditioned.models]
        for k in range(3):
            gain = 1.0 / variance[k + 1] - 1.0 / variance[0]
            flat = found[k].transpose("x", "y").values.ravel()
            np.testing.assert_allclose(flat, gain, rtol=1e-9, atol=1e-12)
        # Sub-models are combined in what data can tell: all but the nugget of a cell.
        rest = float(fitted.parameters["nugget"][0]) if nugget else 0.0
        first, *others = (1.0 / (v - rest) for v in variance)
        precision = first + sum(other - first for other in others)
        pointwise = replace(fitted, method=method("report", None))
        after = pointwise.posterior(field, of=of).latent["std"].transpose("x", "y") ** 2.0
        np.testing.assert_allclose(after.values.ravel(), 1.0 / precision + rest, rtol=1e-9)
        if not nugget:
            total = found.sum("secondary").transpose("x", "y").values.ravel()
            np.testing.assert_allclose(first + total, 1.0 / after.values.ravel(), rtol=1e-9)

    @pytest.mark.parametrize("anchors", ["auto", "none", "calibrated"])
    def test_lazy_equals_eager(self, variants, field, anchors):
        """Chunked, it is built without computing and has the same values, to 1e-10."""
        model = variants[anchors]
        with raise_if_dask_computes():
            lazy = model.posterior(field, chunks={"x": 2, "y": 4}).information()
        assert lazy.chunksizes == {"secondary": (3,), "y": (4, 2), "x": (2, 2, 2, 1)}
        eager = model.posterior(field).information()
        xr.testing.assert_allclose(lazy.compute(), eager, rtol=1e-10)
        assert lazy.attrs == eager.attrs

    def test_is_weighted(self, variants, field):
        """Calibrated weights scale the report's maps."""
        report, calibrated = (
            variants[k].posterior(field).information() for k in ("auto", "calibrated")
        )
        beta = variants["calibrated"].conditioned.rule.beta
        for k in range(3):
            np.testing.assert_allclose(calibrated[k], beta[k] * report[k], rtol=1e-12)

    def test_fades_with_distance_and_masks(self, fitted, field):
        """Far away nothing informs; cells that are masked or nowhere are NaN."""
        far = xr.Dataset(coords={"x": [4000.0], "y": [3000.0]})
        assert float(abs(fitted.posterior(far).information()).max()) < 1e-9
        found = fitted.posterior(field, mask=field["x"] > 2.0).information()
        np.testing.assert_array_equal(
            np.isnan(found).all(["secondary", "y"]), (field["x"] <= 2.0).values
        )

    def test_the_full_model_cannot_tell(self, fitted, field):
        """With method='full' it is a ValueError that says what to do."""
        full = replace(fitted, method=Full())
        with pytest.raises(ValueError, match=r"method='full' cannot tell.*method='transductive'"):
            full.posterior(field).information()

    def test_without_secondaries_there_is_nothing_to_tell(self, metals, field):
        """A single-task model names its variable in the error."""
        alone = xcopula.fit(metals, "Cd", method=method(), **QUICK)
        with pytest.raises(ValueError, match="'Cd' has no secondaries"):
            alone.posterior(field).information()


class TestSummary:
    @pytest.mark.parametrize(
        ("variant", "phrase"),
        [
            ("auto", "report weights (information 1.00, 1.00, 1.00), given 12 anchors"),
            ("explicit", "given 8 anchors"),
            ("none", "point by point"),
            ("block", "block by block"),
            ("calibrated", "calibrated weights (information 0."),
        ],
    )
    def test_says_weights_anchors_and_scores(self, variants, variant, phrase):
        """The summary says how the sub-models are combined and how each rule scores."""
        text = variants[variant].summary()
        assert phrase in text
        assert "leave-one-out CRPS by rule: report " in text
        assert "method 'transductive'" in text

    def test_loo_scores_the_combination(self, fitted):
        """Leave-one-out of the model is that of the combined sub-models, in the summary too."""
        score = float(fitted.loo()["crps"].mean())
        assert score == pytest.approx(fitted.conditioned.rule.crps["report"], rel=1e-9)
        assert f"report {score:.4g}" in fitted.summary()


class TestOneSecondary:
    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls, metals):
        """A two-task model with the default method."""
        return xcopula.fit(metals, "Cd", "Ni", method=method(), **QUICK)

    def test_says_that_nothing_is_approximated(self, pair):
        """The summary says that the pair is the full model."""
        assert (
            "one secondary: the pair is the full model, nothing is approximated" in pair.summary()
        )

    def test_is_the_full_model(self, pair, field):
        """Predictions and leave-one-out equal those of method='full' at the same theta."""
        full = replace(pair, method=Full())
        for of in ("observation", "signal"):
            xr.testing.assert_allclose(
                pair.predict(field, of=of), full.predict(field, of=of), rtol=1e-12
            )
        np.testing.assert_allclose(pair.loo()["crps"], full.loo()["crps"], rtol=1e-9)

    def test_the_likelihood_is_the_full_one(self, pair):
        """The composite likelihood of one pair is its likelihood."""
        value, _ = Exact().objective(pair.process, pair.observations.sample, None, pair.theta)
        assert pair.log_likelihood == pytest.approx(-value, rel=0, abs=1e-9)


class TestBadInput:
    def test_a_secondary_elsewhere_warns_and_adds_nothing(self, metals, field):
        """No overlap in extent: a warning by name, finite predictions, next to no information."""
        away = metals["Zn"].assign_coords(x=metals["x"] + 60.0)
        data = {"Cd": metals["Cd"], "Ni": metals["Ni"], "Zn": away}
        with pytest.warns(UserWarning, match="'Zn' do not overlap with those of 'Cd'"):
            model = xcopula.fit(data, "Cd", ["Ni", "Zn"], method=method("report"), **QUICK)
        found = model.posterior(field).information()
        assert float(abs(found.sel(secondary="Zn")).max()) < 1e-6
        assert np.isfinite(model.predict(field)["Cd"]).all()

    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    @pytest.mark.parametrize("weights", ["calibrated", "report"])
    def test_a_copy_of_the_primary_fits(self, metals, field, noise, weights):
        """A secondary equal to the primary gives finite predictions and no failure."""
        data = metals.assign(copy=metals["Cd"].copy())
        options = QUICK | {"noise": noise, "method": method(weights)}
        model = xcopula.fit(data, "Cd", ["copy", "Ni"], **options)
        assert np.isfinite(model.log_likelihood)
        latent = model.posterior(field).latent
        assert np.isfinite(latent["mean"]).all()
        assert (latent["std"] > 0.0).all()
        assert np.isfinite(model.posterior(metals).latent["std"]).all()

    def test_an_empty_secondary_is_named(self, metals):
        """All values missing is an error that names the variable."""
        empty = metals.assign(Zn=metals["Zn"] * np.nan)
        with pytest.raises(ValueError, match="'Zn' has 0 finite values of 45"):
            xcopula.fit(empty, "Cd", SECONDARIES, **QUICK)

    @pytest.mark.parametrize("weights", ["heavy", None, 1.0, ["auto"]])
    def test_unknown_weights(self, metals, weights):
        """The error lists what there is."""
        with pytest.raises(ValueError, match=r"Unknown weights .*'calibrated', 'report'"):
            xcopula.fit(metals, "Cd", SECONDARIES, method=Transductive(weights=weights))

    @pytest.mark.parametrize(
        "anchors",
        ["corner", 30, ["auto"], np.zeros((2, 3)), xr.DataArray([1.0, 2.0], dims="p")],
        ids=["name", "number", "list", "array", "DataArray"],
    )
    def test_unknown_anchors(self, metals, anchors):
        """What is neither a known word nor a Dataset is refused with the choice."""
        with pytest.raises(ValueError, match=r"(?s)Unknown anchors .*'auto', 'block', None, or"):
            xcopula.fit(metals, "Cd", SECONDARIES, method=Transductive(anchors=anchors))

    @pytest.fixture
    def points(self):
        """Three points in the field."""
        return xr.Dataset(coords={"x": ("p", [1.5, 2.5, 3.5]), "y": ("p", [2.0, 3.0, 4.0])})

    @pytest.mark.usefixtures("no_search")
    @pytest.mark.parametrize("compute", [True, False])
    def test_anchors_that_lack_a_coordinate(self, metals, points, compute):
        """A missing coordinate and other units are refused before any work."""

        def fit(anchors):
            options = QUICK | {"method": method(anchors=anchors), "compute": compute}
            return xcopula.fit(metals, "Cd", SECONDARIES, **options)

        with pytest.raises(CoordinateError, match="`anchors` lacks the coordinate 'y'"):
            fit(points.drop_vars("y"))
        pressure = points.assign_coords(x=points["x"].assign_attrs(units="hPa"))
        with pytest.raises(
            CoordinateError, match="'x' is in 'hPa', the training data had 'x' in 'km'"
        ):
            fit(pressure)

    @pytest.mark.parametrize("compute", [True, False])
    def test_anchors_that_are_nowhere(self, metals, points, compute):
        """A NaN among the coordinates of anchors is refused, with how many there are."""
        nowhere = points.assign_coords(x=points["x"].where([True, False, True]))
        options = QUICK | {"method": method(anchors=nowhere), "compute": compute}

        def run():
            model = xcopula.fit(metals, "Cd", SECONDARIES, **options)
            return model if compute else model.compute()

        with pytest.raises(CoordinateError, match=r"1 of 3 anchors have a coordinate that is not"):
            run()

    def test_anchors_outside_the_data_warn(self, metals, points, field):
        """They are said to be idle, and do no harm."""
        outside = xr.concat([points, points + 0.0], "p").assign_coords(
            x=("p", [1.5, 2.5, 3.5, 50.0, 60.0, 70.0]), y=("p", [2.0, 3.0, 4.0] * 2)
        )
        with pytest.warns(UserWarning, match="3 of 6 anchors lie outside the extent of the data"):
            far = xcopula.fit(metals, "Cd", SECONDARIES, method=method("report", outside), **QUICK)
        near = xcopula.fit(metals, "Cd", SECONDARIES, method=method("report", points), **QUICK)
        xr.testing.assert_allclose(far.predict(field), near.predict(field), rtol=1e-6)

    def test_a_grid_may_be_the_anchors(self, metals, field):
        """Anchors on two dims are all their cells."""
        coarse = field.isel(x=slice(1, 5, 2), y=slice(1, 5, 2))
        model = xcopula.fit(metals, "Cd", SECONDARIES, method=method("report", coarse), **QUICK)
        assert f"given {coarse.sizes['x'] * coarse.sizes['y']} anchors" in model.summary()
