"""State taken apart into plain values and put together again: whatever a model is made of."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import math
import pickle
import pkgutil
from typing import Any, ClassVar, NamedTuple

import cftime
import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr
from conftest import METHODS
from scipy.special import expit, logit, ndtr, ndtri
from sources import EAST, NORTH, daily, stations

import xcopula
from xcopula.kernels import KERNELS, Kernel
from xcopula.labels.observations import Observations
from xcopula.marginals import MARGINALS, Marginal
from xcopula.methods import Sparse, Transductive
from xcopula.model.reading import CLASSES
from xcopula.process import Sample, Sites
from xcopula.solvers import Neighbours
from xcopula.state import check_types, freeze, put_together, take_apart

QUICK = {"method": "full", "marginals": "normal", "kernels": "matern32", "restarts": 0}

# Dataclasses and named tuples that hold no state of a fitted or conditioned model.
WITHOUT_STATE = {
    # on the way to a model: gone when it is there
    "xcopula.process.intervals.Intervals": "limits as scores, at each evaluation anew",
    "xcopula.process.intervals.StandIns": "found anew when a process is conditioned",
    "xcopula.process.intervals.TruncatedNormal": "what follows from moments and limits",
    "xcopula.process.bounded.Bounded": "a law between limits, while it is asked for",
    "xcopula.solvers.local_ep._Around": "the values around intervals, found once",
    "xcopula.solvers.exact._Made": "a covariance during one evaluation",
    "xcopula.fitting.cost.Estimate": "what a fit was expected to take",
    "xcopula.fitting.fit._Fitting": "the steps of a fit, to be run or recorded",
    "xcopula.model.leave_one_out.LeftOutScore": "a score for the summary",
    "xcopula.solvers.contract.Informed": "an objective at one point",
    "xcopula.solvers.terms.InformedTerms": "terms at one point",
    "xcopula.solvers.graph.Split": "terms with and without intervals, at an evaluation",
    "xcopula.storage.netcdf._Target": "a variable of a file while it is written",
    "xcopula.fitting.newton.Optimum": "where a search ended: the model repeats what counts",
    "xcopula.fitting.request.Request": "what was asked of a fit",
    "xcopula.fitting.alone.Alone": "a variable during step one",
    "xcopula.fitting.select.Options": "what a marginal or a kernel is selected from",
    "xcopula.model.directions.Directions": "what the metric says, in words",
    "xcopula.fitting.score._Extension": "what a score test asks",
    "xcopula.progress.run.Event": "reported and forgotten",
    "xcopula.progress.run.Step": "of a fit under way",
    "xcopula.fitting.maximise.Fit": "where a search ended: the model repeats what counts",
    "xcopula.labels.entries.Entries": "a variable while it is read",
    "xcopula.labels.entries.Unread": "a variable before it is read",
    "xcopula.labels.entries._Part": "what one chunk of a variable holds",
    "xcopula.labels.flags.Flags": "what flags mean while they are read",
    "xcopula.labels.flags.Beside": "flags and detection limits while they are looked for",
    "xcopula.labels.additions.Joined": "old and new data while they are joined",
    "xcopula.labels.additions.New": "new data while they are read",
    "xcopula.labels.rows.Rows": "a variable while it is read",
    "xcopula.cli.options.FitOptions": "of a command",
    "xcopula.storage.blocks._Target": "where blocks are written",
    "xcopula.storage.blocks._Partial": "a prediction that is being written",
    "xcopula.labels.buffer.Within": "lists of what is near, made one at a time",
    "xcopula.labels.coordinates.extent.Extent": "how far a coordinate reaches, while it is read",
    "xcopula.labels.coordinates.cycles.Recurring": "what `cycle` returns, to name a coordinate",
    "xcopula.labels.coordinates.discovery._Source": "coordinates while they are looked for",
    "xcopula.labels.coordinates.groups.Frame": "centre and scale, which the system repeats",
    "xcopula.labels.coordinates.groups.Tolerance": "how sites are told apart, while they are",
    "xcopula.labels.coordinates.units._Unit": "a row of the table of units",
    "xcopula.marginals.design.Reduced": "a least squares problem while it is solved",
    "xcopula.marginals.estimation._Objective": "a law's likelihood while it is maximised",
    "xcopula.marginals.recipe.Recipe": "abstract",
    "xcopula.marginals.by.By": "a law before it is fitted",
    "xcopula.marginals.regress.Regress": "a law before it is fitted",
    # made of a model or of a target, and made again
    "xcopula.prediction.ensembles.Ensemble": "how many draws were asked for",
    "xcopula.prediction.thresholds.Limit": "a threshold, while draws are compared with it",
    "xcopula.prediction.weighting.Weighting": "weights and regions, while cells are added up",
    "xcopula.jit.neighbours.Terms": "a graph as the compiled loops read it",
    "xcopula.jit.neighbours._Room": "a small system while it is solved",
    "xcopula.jit.neighbours._Sites": "intervals of a small system while it is solved",
    "xcopula.jit.pairs.Contraction": "derivatives of one evaluation",
    "xcopula.jit.pairs._Block": "a part of the covariance during one evaluation",
    "xcopula.kernels.base.CrossProfile": "rows of a table while it is made",
    "xcopula.process.evidence.Evidence": "one evaluation of the laws",
    "xcopula.process.scores.Scores": "results of leave-one-out",
    "xcopula.process.predictive.Predictive": "a prediction of some cells",
    "xcopula.process.choosing.Chosen": "which sites were chosen, told in a Dataset",
    "xcopula.process.decision.Misclassification": "what is to become less by measuring",
    "xcopula.process.decision.Variance": "what is to become less by measuring",
    "xcopula.methods.posterior_covariance.Places": "the cells of a target while sites are chosen",
    "xcopula.model.design._Candidates": "sites while some of them are chosen",
    "xcopula.model.design._World": "what a model knows while sites are chosen",
    "xcopula.model.worth._Map": "a prediction of some cells, with or without some data",
    "xcopula.solvers.cost.Cost": "an estimate",
    "xcopula.solvers.graph.Graph": "neighbours, which are found again",
    "xcopula.solvers.likelihood.Likelihood": "what one evaluation leaves",
    "xcopula.solvers.near.Near": "a sample in units of the length scales",
    "xcopula.solvers.terms.Evaluated": "what one evaluation leaves",
    "xcopula.solvers.search.Level": "trees, which are built again",
    "xcopula.solvers.search.Search": "trees, which are built again",
    "xcopula.model.lazy.LazyModel": "a graph: nothing is fitted yet",
    "xcopula.model.notation.Place": "where an array of a file stands",
    "xcopula.prediction.blocks.Query": "what is asked of a target",
    "xcopula.prediction.lattice.Lattice": "the cells of a block, as a product",
    "xcopula.prediction.simulation.Realizations": "draws at the data, made anew of a seed",
    "xcopula.process.paths.Waves": "one realization, made anew of a seed",
    "xcopula.process.paths.Prior": "what draws need of a covariance at its parameters",
    "xcopula.process.paths._Structure": "a structure of it",
    "xcopula.prediction.posterior.Posterior": "a prediction",
    "xcopula.prediction.several.Posteriors": "predictions of several variables",
    "xcopula.prediction.target.Cells": "the cells of a target",
    # of cross-validation, which keeps no model
    "xcopula.validation.crossing._Asked": "what was asked, and the data",
    "xcopula.validation.folds.Folds": "which sites are withheld together",
    "xcopula.validation.folds._Sites": "sites while folds are made of them",
    "xcopula.validation.scoring.Predicted": "predictions of a fold",
    "xcopula.validation.scoring.Withheld": "values that a fold predicts",
    "xcopula.validation.splits.Split": "what a fold is trained on",
    # no part of inference
    "xcopula.datasets._toy._Task": "a task of the toy data",
    "xcopula.model.correlations.Correlogram": "what a picture of correlations shows",
    "xcopula.model.correlations._Drawn": "some observations while correlations are computed",
    "xcopula.model.correlations._Facet": "a group of coordinates while they are",
    "xcopula.model.correlations._Pairs": "pairs of observations while they are",
    "xcopula.plot.fields.Dots": "sites on a map",
    "xcopula.plot.fields.Limits": "of a colour scale",
    "xcopula.plot.maps._Shade": "a panel of a map",
    "xcopula.plot.of_model.ModelPlots": "a handle on a model",
    "xcopula.plot.of_posterior.PosteriorPlots": "a handle on a posterior",
    "xcopula.plot.places.Place": "where a picture draws a result",
}


@functools.cache
def classes() -> dict[str, type]:
    """Return the dataclasses, named tuples and laws of the package, by the names of their homes."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(xcopula.__path__, "xcopula."):
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and kind.__module__ == module.name and _holds_state(kind):
                found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return found


def _holds_state(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


@dataclasses.dataclass(frozen=True)
class Logistic(Marginal):
    """A law of one's own."""

    location: float = 0.0
    log_scale: float = 0.0

    name: ClassVar[str] = "logistic"

    @property
    def theta(self):
        return np.array([self.location, self.log_scale])

    def with_theta(self, theta):
        return Logistic(*map(float, theta))

    def to_normal(self, y):
        return ndtri(expit((np.asarray(y, float) - self.location) / np.exp(self.log_scale)))

    def from_normal(self, z):
        return self.location + np.exp(self.log_scale) * logit(ndtr(np.asarray(z, float)))

    def log_density(self, y):
        u = (np.asarray(y, float) - self.location) / np.exp(self.log_scale)
        return -u - self.log_scale - 2.0 * np.log1p(np.exp(-u))


@dataclasses.dataclass(frozen=True)
class RationalQuadratic:
    """A kernel of one's own."""

    alpha: float = 2.5
    smoothness: float = math.inf
    name: str = "rq"

    @property
    def reach(self):
        return math.sqrt(2.0 * self.alpha * (5e-9 ** (-1.0 / self.alpha)))

    def profile(self, x):
        a, base = self.alpha, 1.0 + x**2 / (2.0 * self.alpha)
        curvature = ((1.0 + 1.0 / a) * x**2 / base - 1.0) * base ** (-a - 1.0)
        return base**-a, -x * base ** (-a - 1.0), curvature


FILED = {
    f"{k.__module__}.{k.__qualname__}"
    for k in (*CLASSES.values(), xcopula.CopulaModel, Observations, Sample, Sites)
}
OWN = {f"{k.__module__}.{k.__qualname__}": k for k in (Logistic, RationalQuadratic)}


def leaves(plain: Any):
    """Yield the values that are neither lists nor mappings."""
    if isinstance(plain, dict):
        for key, part in plain.items():
            assert type(key) is str
            yield from leaves(part)
    elif isinstance(plain, list):
        for part in plain:
            yield from leaves(part)
    else:
        yield plain


def named(plain: Any) -> set[str]:
    """Return the classes that something taken apart refers to."""
    if isinstance(plain, list):
        return set().union(*map(named, plain))
    if not isinstance(plain, dict):
        return set()
    own = {plain["name"]} if plain["class"] == "type" else {plain["class"]}
    return own.union(*(named(part) for key, part in plain.items() if key not in ("class", "name")))


def assert_same(left: Any, right: Any, path: str = "") -> None:
    """Compare two states that were taken apart, arrays bit by bit."""
    assert type(left) is type(right), path
    if isinstance(left, dict):
        assert list(left) == list(right), path
        for key in left:
            assert_same(left[key], right[key], f"{path}.{key}")
    elif isinstance(left, list):
        assert len(left) == len(right), path
        for k, pair in enumerate(zip(left, right, strict=True)):
            assert_same(*pair, f"{path}.{k}")
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, path
        assert left.shape == right.shape, path
        assert left.tobytes() == right.tobytes(), path
        assert left.flags.c_contiguous == right.flags.c_contiguous, path
    else:
        assert left == right or left != left, path


def there_and_back(state: Any) -> Any:
    """Take state apart, look at what is left, and put it together."""
    plain = take_apart(state)
    for leaf in leaves(plain):
        assert type(leaf) in (np.ndarray, str, int, float, bool, type(None)), type(leaf)
        assert not isinstance(leaf, np.ndarray) or leaf.dtype.kind in "biufUM", leaf.dtype
    return put_together(plain, classes() | OWN)


class Case(NamedTuple):
    """A model, and a target to predict on."""

    model: xcopula.CopulaModel
    target: xr.Dataset


@pytest.fixture(scope="module")
def make(request, sites, grid, sloped, sloped_grid, trio):
    """Give tests a model by the name of its case, fitted once."""
    fit_by = request.getfixturevalue("fit_by")
    places = stations()
    globe = xr.Dataset(
        coords={
            "lat": ("lat", [44.5, 47.0, 49.5], NORTH),
            "lon": ("lon", [5.0, 8.5, 11.0], EAST),
        }
    )
    series = daily()
    later = series.drop_vars("level").assign_coords(
        time=series["time"].values[:3] + np.timedelta64(36, "h")
    )
    side = sloped.assign_coords(side=("site", np.where(sloped["x"] > 2.0, "east", "west")))
    sides = sloped_grid.assign(side=("x", np.where(sloped_grid["x"] > 2.0, "east", "west")))
    dry = sites.assign(metal=(sites["metal"] - 1.0).clip(0.0))
    points = sites[["x", "y"]].isel(site=slice(0, 60, 3))

    def single(target=grid, data=sites, name="metal", **options):
        return Case(xcopula.fit(data, name, **QUICK | options), target)

    def several(method, **options):
        options = QUICK | {"coupling": "icm", "method": method} | options
        fitted = xcopula.fit(trio, "metal", ["proxy", "other"], **options)
        return Case(fitted, grid)

    def law(spec):
        return single(sides, side, marginals=spec)

    def on_the_globe(**changes):
        options = {"data": places, "name": "rain", "target": globe} | changes
        return single(**options)

    def projected():
        crs = {
            "grid_mapping_name": "transverse_mercator",
            "standard_parallel": np.array([40.0, 60.0]),
            "scale_factor": np.float32(0.9996),
        }
        data = sites.assign_coords(crs=((), 0, crs))
        return single(data=data.assign(metal=data["metal"].assign_attrs(grid_mapping="crs")))

    def with_height():
        up = {"standard_name": "altitude", "units": "m", "positive": "up"}
        data = places.assign_coords(alt=("station", places["elevation"].values, up))
        target = globe.assign_coords(alt=((), 700.0, up))
        return on_the_globe(data=data.drop_vars("elevation"), target=target)

    def dated(calendar):
        if calendar is not None:
            dates = cftime.num2date(3.0 * np.arange(8), "days since 2001-03-01", calendar)
            data = series.assign_coords(time=np.asarray(dates))
            return single(data=data, name="level", target=data.drop_vars("level"))
        return single(data=series, name="level", target=later)

    def by_date(calendar):
        data = series
        if calendar is not None:
            dates = cftime.num2date(3.0 * np.arange(8), "days since 2001-03-01", calendar)
            data = series.assign_coords(time=np.asarray(dates))
        law = xcopula.by("time", "normal")
        return single(data=data, name="level", target=data.drop_vars("level"), marginals=law)

    def cycle():
        coords = ["lon", "lat", xcopula.cycle("time")]
        return single(data=series, name="level", target=later, coords=coords)

    cases = {
        **{f"method {m}": lambda m=m: Case(fit_by(m), sloped_grid) for m in METHODS},
        **{f"law {m}": lambda m=m: law(m) for m in MARGINALS},
        **{f"kernel {k}": lambda k=k: single(kernels=k) for k in KERNELS},
        **{
            f"weights {w}": lambda w=w: several(Transductive(weights=w))
            for w in ("report", "calibrated")
        },
        "neighbours": lambda: several(Transductive(), solver="neighbours"),
        "few neighbours": lambda: several("full", solver=Neighbours(5, 9, tiles=False)),
        "no anchors": lambda: several(Transductive("calibrated", anchors=None)),
        "given anchors": lambda: several(Transductive("calibrated", anchors=points)),
        "blocks as anchors": lambda: several(Transductive("calibrated", anchors="block")),
        "numbers of points": lambda: several(
            Sparse("dtc", inducing={"metal": 9, "proxy": 7, "other": 8})
        ),
        "several laws": lambda: single(marginals=["normal", "gamma"]),
        "flexible": lambda: single(marginals="auto"),
        "regress": lambda: law(xcopula.regress("gamma", on=["height", "x"], degree=2)),
        "by": lambda: law(xcopula.by("side", "parzen")),
        "regress in by": lambda: law(xcopula.by("side", xcopula.regress("gev", on="height"))),
        "by in regress": lambda: law(xcopula.regress(xcopula.by("side", "t"), on="height")),
        "zeros": lambda: single(data=dry, marginals="auto"),
        "cut off": lambda: single(marginals="normal", support=(0.0, None)),
        "own law": lambda: law(Logistic(1.5, -1.0)),
        "own kernel": lambda: single(kernels=RationalQuadratic()),
        "structures": lambda: single(structures=2),
        "a kernel each": lambda: single(kernels=["matern52", "matern12"]),
        "scales of their own": lambda: single(ard=True),
        "directions": lambda: single(anisotropy=True),
        "directions on the globe": lambda: on_the_globe(anisotropy=True),
        "convolution": lambda: Case(xcopula.fit(sites, "metal", "proxy", **QUICK), grid),
        "globe": on_the_globe,
        "longitude in a law": lambda: on_the_globe(
            marginals=xcopula.regress("lognormal", on="lon")
        ),
        "time": lambda: dated(None),
        "noleap": lambda: dated("noleap"),
        "by date": lambda: by_date(None),
        "by date of a calendar": lambda: by_date("360_day"),
        "by month": lambda: single(
            data=series, name="level", target=later, marginals=xcopula.by("time.month", "normal")
        ),
        "cycle": cycle,
        "height": with_height,
        "projection": projected,
        "other data": lambda: Case(
            fit_by("full").with_only(sloped.isel(site=slice(0, 50))), sloped_grid
        ),
        "inflated errors": lambda: several(Transductive(), uncertainty="inflated"),
    }
    return functools.cache(lambda name: cases[name]()), cases


CASES = [
    *(f"method {m}" for m in METHODS),
    *(f"law {m}" for m in MARGINALS),
    *(f"kernel {k}" for k in KERNELS),
    *(f"weights {w}" for w in ("report", "calibrated")),
    "neighbours",
    "few neighbours",
    "no anchors",
    "given anchors",
    "blocks as anchors",
    "numbers of points",
    "several laws",
    "flexible",
    "regress",
    "by",
    "regress in by",
    "by in regress",
    "zeros",
    "cut off",
    "own law",
    "own kernel",
    "structures",
    "a kernel each",
    "scales of their own",
    "directions",
    "directions on the globe",
    "convolution",
    "globe",
    "longitude in a law",
    "time",
    "noleap",
    "by date",
    "by date of a calendar",
    "by month",
    "cycle",
    "height",
    "projection",
    "other data",
    "inflated errors",
]
every = pytest.mark.parametrize("case", CASES)


class TestModels:
    def test_the_list_is_whole(self, make):
        """Every case has its test."""
        assert list(make[1]) == CASES

    @every
    def test_predict_bit_by_bit_the_same(self, make, case):
        """Of all variables, with all that the record says of itself."""
        model, target = make[0](case)
        again = there_and_back(model)
        assert type(again) is type(model)
        for variable in model.tasks:
            for of in ("observation", "signal"):
                left, right = (m.predict(target, variable=variable, of=of) for m in (model, again))
                xr.testing.assert_identical(left, right)
            xr.testing.assert_identical(again.loo(variable), model.loo(variable))
        xr.testing.assert_identical(again.parameters, model.parameters)
        assert again.alternatives == model.alternatives
        assert bool(model.alternatives) == (case == "several laws")
        assert again.summary() == model.summary()
        # Arrays have no truth value: methods that hold points cannot be compared.
        assert "points" in case or "anchors" in case or again.method == model.method

    @every
    def test_files_hold_all_of_it(self, make, case, tmp_path):
        """Read from its file, a model is the same state to the last bit."""
        model = make[0](case).model
        path = model.save(tmp_path / "model.nc")
        laws, kernels = {"Logistic": Logistic}, {"RationalQuadratic": RationalQuadratic}
        again = xcopula.load(path, laws=laws, kernels=kernels)
        assert_same(take_apart(again), take_apart(model))
        assert not again.theta.flags.writeable
        xr.open_datatree(path).close()
        assert named(take_apart(model)) <= {*FILED, *OWN, "tuple", "dict", "type"}

    @every
    def test_conditioned_processes_too(self, make, case):
        """What predicts needs no data: it is put together as it was, factors and all."""
        model = make[0](case).model
        again = there_and_back(model.predictor)
        rng = np.random.default_rng(0)
        seen = model.observations.positions
        new = seen.mean(axis=0) + seen.std(axis=0) * rng.normal(size=(9, seen.shape[1]))
        numbers = list(np.vstack([new, seen[:4]]).T)
        for task, nugget in itertools.product(range(len(model.tasks)), (True, False)):
            expected = model.predictor.latent(numbers, task, nugget)
            np.testing.assert_array_equal(again.latent(numbers, task, nugget), expected)
        there, here = again.process.conditioned, model.conditioned
        left, right = there.leave_one_out(), here.leave_one_out()
        np.testing.assert_array_equal(left.mean, right.mean)
        np.testing.assert_array_equal(left.variance, right.variance)
        assert there.describe() == here.describe()

    def test_every_class_that_holds_state_is_met(self, make):
        """Each frozen dataclass of the package is in a model, or listed with a reason."""
        met: set[str] = set()
        for case in CASES:
            model = make[0](case).model
            for state in (model, model.predictor, model.structure):
                met |= named(take_apart(state))
        missing = set(classes()) - met
        assert missing == set(WITHOUT_STATE), "take the class into a case, or say why it is none"
        frozen = [k for k in classes().values() if dataclasses.is_dataclass(k)]
        assert all(k.__dataclass_params__.frozen for k in frozen)

    def test_what_is_left_can_be_written_down(self, make):
        """Without its arrays, a model is text."""
        plain = take_apart(make[0]("projection").model)
        text = json.dumps(plain, default=lambda array: array.tolist())
        assert "transverse_mercator" in text


class Pair(NamedTuple):
    """A named tuple of the test."""

    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Box:
    """A dataclass of the test, with a field that is derived."""

    value: Any
    derived: Any = dataclasses.field(default=None, init=False)


HERE = {f"{k.__module__}.{k.__qualname__}": k for k in (Pair, Box)}


class TestValues:
    @pytest.mark.parametrize(
        "state",
        [
            None,
            True,
            3,
            0.1,
            math.inf,
            "text",
            (),
            (1, (2.5, "x")),
            [1, [None]],
            {},
            {"class": "a trap", "items": {"class": "tuple"}},
            Pair(1, Pair("a", None)),
            Box((Box(1), {"k": Box(2.0)})),
            Box(Box),
        ],
        ids=repr,
    )
    def test_there_and_back(self, state):
        """Values, tuples, lists, mappings, named tuples, dataclasses and types."""
        again = put_together(take_apart(state), HERE)
        assert again == state
        assert type(again) is type(state)

    def test_arrays_are_as_they_were(self):
        """Neither copied nor changed, whatever their dtype."""
        for array in (np.arange(3), np.eye(2, dtype="f4"), np.array(["a", "bc"]), np.array(2.0)):
            assert put_together(take_apart(Box(array)), HERE).value is array

    @pytest.mark.parametrize(
        ("scalar", "plain"),
        [(np.float64(0.1), 0.1), (np.int64(7), 7), (np.True_, True), (np.str_("a"), "a")],
    )
    def test_numbers_of_numpy_become_python_s(self, scalar, plain):
        """Of the same value."""
        found = take_apart((scalar,))["items"][0]
        assert found == plain
        assert type(found) is type(plain)

    def test_what_is_derived_is_left_out(self):
        """A field that is no argument is made anew."""
        assert set(take_apart(Box(1))) == {"class", "value"}

    @pytest.mark.parametrize(
        "state",
        [
            object(),
            {1, 2},
            1j,
            b"bytes",
            len,
            range(3),
            np.datetime64("2001", "ns"),
            np.timedelta64(3, "D"),
            np.complex128(1.0),
            np.bytes_("a"),
            np.longdouble(0.1),
            np.array([object()]),
            {1: "a key that is no text"},
        ],
        ids=lambda state: type(state).__name__,
    )
    def test_what_cannot_be_taken_apart(self, state):
        """Is a TypeError that names its class, wherever it is hidden."""
        with pytest.raises(TypeError, match=type(state).__name__):
            take_apart({"a": [Box((state,))]})

    def test_classes_may_be_named_otherwise(self):
        """All of them, however deep, and types too."""
        state = Box([Pair({"k": Box(Box)}, (Box(1),))])
        plain = take_apart(state, lambda kind: f"my {kind.__name__}")
        assert named(plain) == {"my Box", "my Pair", "tuple", "dict"}
        mine = {f"my {k.__name__}": k for k in (Box, Pair)}
        assert put_together(plain, mine) == state

    def test_unknown_classes_are_refused(self):
        """Nothing is made that is not listed, however it is spelt."""
        for plain in (
            take_apart(Box(1)),
            take_apart(Pair(1, 2)),
            take_apart(Box),
            {"class": "os.system", "command": "true"},
            {"class": "builtins.dict"},
            [{"class": "type", "name": "builtins.eval"}],
        ):
            with pytest.raises(KeyError, match="Unknown class"):
                put_together(plain, {})
        with pytest.raises(KeyError, match=r"Unknown class .*Box.*\. Known are \['a'\]"):
            put_together(take_apart(Box(1)), {"a": Pair})

    def test_fields_that_a_class_has_not(self):
        """A class that has changed since says so."""
        plain = take_apart(Box(1)) | {"colour": "red"}
        with pytest.raises(TypeError, match="colour"):
            put_together(plain, HERE)


@dataclasses.dataclass(frozen=True)
class Typed:
    """Fields of many types."""

    number: float = 0.0
    count: int = 0
    flag: bool = False
    text: str = ""
    column: npt.NDArray[np.float64] | None = None
    either: npt.NDArray[Any] | None = None
    many: tuple[Pair, ...] = ()
    two: tuple[int, str] = (0, "")
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    kernel: Kernel = KERNELS["se"]
    kind: type[Marginal] | None = None
    anything: Any = None


class TestTypes:
    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"number": 3, "count": 2, "flag": True, "text": "x"},
            {"column": np.zeros(2), "either": np.array(["a"])},
            {"many": (Pair(1, "x"), Pair(None, 2.0)), "two": (1, "a")},
            {"attrs": {"k": Typed(number=1.0)}, "anything": [object()]},
            {"kernel": RationalQuadratic(), "kind": Logistic},
        ],
        ids=lambda values: "-".join(values) or "none",
    )
    def test_what_fits(self, values):
        """An integer may stand for a number."""
        check_types(Typed(**values))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("number", "1"), ("number", True), ("number", None)),
            *(("count", 1.0), ("count", True), ("flag", 1), ("text", None), ("text", 3)),
            *(("column", np.zeros(2, "f4")), ("column", np.array(["a"])), ("column", [1.0])),
            *(("either", 1.0), ("many", [Pair(1, 2)]), ("many", (1,)), ("many", Pair(1, 2))),
            *(("two", (1,)), ("two", (1, 2)), ("two", (1, "a", "b")), ("attrs", [])),
            *(("kernel", "se"), ("kernel", RationalQuadratic), ("kind", Logistic())),
        ],
        ids=str,
    )
    def test_what_does_not(self, name, value):
        """The field and its class are named, wherever they are."""
        for state in (Typed(**{name: value}), [Pair({"k": (Typed(**{name: value}),)}, 1)]):
            with pytest.raises(TypeError, match=rf"'{name}' of Typed must be .*, found "):
                check_types(state)

    def test_names_that_are_not_known(self):
        """A class that was made inside a function cannot be checked; what it holds can."""
        own = dataclasses.make_dataclass("Own", [("a", "Nowhere"), ("b", "int")])
        check_types(own(1, "x"))
        with pytest.raises(TypeError, match="'count' of Typed"):
            check_types(own(Typed(count="1"), 2))

    def test_every_model(self, make):
        """Models keep their own annotations."""
        for case in CASES:
            check_types(make[0](case).model)


class TestFreeze:
    def test_closes_every_array(self):
        """In dataclasses, named tuples, lists, tuples and mappings."""
        arrays = [np.zeros(2) for _ in range(6)]
        state = Box([arrays[0], (arrays[1], {"k": arrays[2]}), Pair(arrays[3], Box(arrays[4]))])
        freeze([state, arrays[5]])
        assert not any(array.flags.writeable for array in arrays)

    def test_leaves_the_rest_alone(self):
        """Whatever it meets."""
        for state in (None, 3, "text", object(), Box, collections.OrderedDict(a=1), {1, 2}):
            freeze(state)

    def test_a_view_is_closed_and_its_base_is_not(self):
        """What belongs to the user stays open."""
        base = np.zeros(4)
        view = base[1:]
        freeze(Box(view))
        assert not view.flags.writeable
        assert base.flags.writeable

    def test_pickles_of_state_are_closed_by_the_model(self, make):
        """A model that travelled is as closed as before."""
        model = pickle.loads(pickle.dumps(make[0]("globe").model))
        assert not model.theta.flags.writeable
        assert not copy.deepcopy(model).theta.flags.writeable
