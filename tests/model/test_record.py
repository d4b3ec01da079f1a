"""The fitted model: what it says of itself, and that it does not change."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from scipy.special import expit, logit, ndtr, ndtri

import xcopula
from xcopula.errors import MarginalWarning
from xcopula.methods import Committee, Transductive
from xcopula.methods.committee import Blocks
from xcopula.methods.part import Part
from xcopula.model.extremes import EXTREME_SCORE, extreme_score, warn_of_laws
from xcopula.model.selection import Alternative
from xcopula.process import Sample, Targets


class Logistic(xcopula.marginals.Marginal):
    """A law of one's own that is no dataclass."""

    name = "logistic"

    def __init__(self, location: float = 0.0, log_scale: float = 0.0) -> None:
        self.location, self.log_scale = location, log_scale

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


def without(model, k: int):
    """Return the model at the same parameters without one observation."""
    seen, sample = model.observations, model.observations.sample
    task = int(np.searchsorted(sample.offsets, k, side="right")) - 1
    covariates = tuple(
        np.delete(rows, k - sample.offsets[i], axis=0) if i == task else rows
        for i, rows in enumerate(sample.covariates)
    )
    fewer = Sample(
        np.require(np.delete(sample.inputs, k, axis=1), float, "CW"),
        sample.offsets - (sample.offsets > k),
        np.delete(sample.values, k),
        np.delete(sample.sites, k),
        covariates,
    )
    seen = dataclasses.replace(seen, sample=fewer, positions=np.delete(seen.positions, k, axis=0))
    reduced = dataclasses.replace(model, observations=seen)
    if isinstance(model.method, Committee):  # its blocks stay as they were
        blocks = [b[b != k] - (b[b != k] > k) for b in model.structure.index]
        parts = [
            Part.of(model.solver, model.process, model.theta, fewer.take(block)) for block in blocks
        ]
        reduced.__dict__["structure"] = Blocks(tuple(blocks), tuple(parts))
    return reduced


def sparse_covariance(model) -> np.ndarray:
    """Return the dense S = Q + Lambda of a sparse model, from its definition."""
    sample, points = model.observations.sample, model.structure.points
    covariance = model.process.covariance
    theta = model.theta[: covariance.size]
    data = [sample.inputs[:, sample.task(i)].T for i in range(sample.tasks)]
    rows = [np.vstack([x, u.T]) for x, u in zip(data, points, strict=True)]
    whole = reference.covariance_matrix(covariance, theta, rows)
    *_, nugget = reference.task_matrices(covariance, theta)
    task = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    flat = np.vstack(rows)
    same = (flat[:, None] == flat[None]).all(axis=-1)
    shared = np.where(same, nugget[np.ix_(task, task)], 0.0)
    observed = np.concatenate([np.arange(len(r)) < len(x) for r, x in zip(rows, data, strict=True)])
    signal = whole - shared
    k, noise = signal[np.ix_(observed, observed)], shared[np.ix_(observed, observed)]
    kfu, kuu = signal[np.ix_(observed, ~observed)], signal[np.ix_(~observed, ~observed)]
    q = kfu @ np.linalg.solve(kuu + 1e-8 * np.eye(len(kuu)), kfu.T)
    kept = {"dtc": np.zeros_like(k), "fitc": np.eye(len(k)), "pitc": np.ones_like(k)}
    return q + noise + kept[model.method.kind] * (k - q)


class TestSelection:
    def test_lists_what_was_compared_best_first(self, sites):
        """Laws under the first kernel, then kernels under the best law; of one variable."""
        laws = {"metal": ["normal", "lognormal", "gamma"], "proxy": "normal"}
        options = {"method": "full", "marginals": laws, "kernels": {"metal": {"se", "matern32"}}}
        fitted = xcopula.fit(sites, "metal", "proxy", **options)
        table = fitted.selection
        assert table.sizes == {"alternative": 4}
        assert set(table) == {f.name for f in dataclasses.fields(Alternative)}
        assert set(table["variable"].values) == {"metal"}
        assert set(table["marginal"].values) == {"normal", "lognormal", "gamma"}
        assert (np.diff(table["aic"]) >= 0).all()
        assert table["selected"].values.tolist() == [True, False, False, False]
        assert fitted.marginals[0].name == str(table["marginal"].values[0])
        assert str(fitted.parameters["kernel"].values[0]) == str(table["kernel"].values[0])
        assert len(fitted.alternatives) == 4

    def test_of_given_laws_and_kernels(self, model):
        """Nothing was compared."""
        assert model.selection is None
        assert model.alternatives == ()


class TestLeaveOneOut:
    def test_is_a_labelled_table_of_the_primary(self, model, sites):
        """Every observation of the primary has its place, its quantiles and its scores."""
        loo = model.loo()
        assert loo.sizes == {"site": 40}
        np.testing.assert_array_equal(loo["observed"], sites["metal"].values[:40])
        np.testing.assert_array_equal(loo["x"], sites["x"].values[:40])
        assert ((loo["pit"] > 0) & (loo["pit"] < 1)).all()
        assert (loo["lower"] < loo["median"]).all()
        assert (loo["median"] < loo["upper"]).all()
        assert (loo["std"] <= 1.0 + 1e-9).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_of_any_variable(self, fit_by, sloped, method):
        """A secondary has a table of its own, at its own sites and in its own units."""
        model = fit_by(method)
        xr.testing.assert_identical(model.loo("metal"), model.loo())
        loo = model.loo(variable="proxy")
        assert loo.sizes == {"site": 60}
        np.testing.assert_array_equal(loo["observed"], sloped["proxy"])
        np.testing.assert_array_equal(loo["x"], sloped["x"])
        assert all(np.isfinite(loo[name]).all() for name in loo)
        assert (loo["lower"] < loo["median"]).all()
        assert (loo["median"] < loo["upper"]).all()
        # The law varies with height: it is that of each site which turns values into scores.
        p = model.marginals[1].parameters
        height = sloped["height"].values
        centre = p["location"] + p["height"] * (height - height.mean())
        score = (sloped["proxy"].values - centre) / p["scale"]
        np.testing.assert_allclose(loo["score"], score, rtol=1e-8)
        np.testing.assert_allclose(loo["pit"], ndtr((score - loo["mean"]) / loo["std"]), rtol=1e-8)
        expected = centre + p["scale"] * loo["mean"].values
        np.testing.assert_allclose(loo["median"], expected, rtol=1e-10)

    def test_of_an_unknown_variable(self, model):
        """The error lists what there is."""
        with pytest.raises(KeyError, match=r"no variable 'lead'; it has \['metal', 'proxy'\]"):
            model.loo("lead")

    @pytest.mark.parametrize("k", [0, 17, 39, 40, 52, 99])
    @pytest.mark.parametrize("method", ["transductive", "full", "bcm", "cokriging"])
    def test_equals_a_model_without_the_observation(self, fit_by, method, k):
        """Closed form and honest deletion agree, at the same parameters, for every variable."""
        model = fit_by(method)
        task, sample = int(k >= 40), model.observations.sample
        reduced = without(model, k)
        moments = reduced.conditioned.moments(sample.targets(np.array([k])), task=task)
        loo = model.loo(model.tasks[task]).isel(site=k - 40 * task)
        np.testing.assert_allclose(loo["mean"], moments.mean[0], rtol=1e-8)
        np.testing.assert_allclose(loo["std"], np.sqrt(moments.variance[0]), rtol=1e-8)

    @pytest.mark.parametrize("method", ["dtc", "fitc", "pitc"])
    def test_of_a_sparse_model_is_that_of_its_covariance(self, fit_by, method):
        """Each score given all others, under the approximate law written out in full."""
        model = fit_by(method)
        sample = model.observations.sample
        scores = np.concatenate([model.loo(name)["score"] for name in model.tasks])
        matrix = sparse_covariance(model)
        for k in (3, 21, 44, 90):
            rest = np.delete(np.arange(sample.size), k)
            weights = np.linalg.solve(matrix[np.ix_(rest, rest)], matrix[rest, k])
            task = int(k >= 40)
            loo = model.loo(model.tasks[task]).isel(site=k - 40 * task)
            np.testing.assert_allclose(loo["mean"], weights @ scores[rest], rtol=1e-5, atol=1e-6)
            # What is left out has the whole prior variance, one, as a target has.
            variance = 1.0 - weights @ matrix[rest, k]
            np.testing.assert_allclose(loo["std"] ** 2, variance, rtol=1e-5)

    @pytest.mark.parametrize("k", [40, 77, 100, 149])
    def test_a_secondary_is_left_out_of_its_own_pair(self, triple, k):
        """In a transductive model of several secondaries the others have no say."""
        task = 1 if k < 100 else 2
        start = (40, 100)[task - 1]
        assert triple.observations.sample.task(task).start == start
        sample = triple.observations.sample
        where = np.array([k])
        reduced = without(triple, k).conditioned.moments(sample.targets(where), task=task)
        loo = triple.loo(triple.tasks[task]).isel(site=k - start)
        np.testing.assert_allclose(loo["mean"], reduced.mean[0], rtol=1e-8)
        np.testing.assert_allclose(loo["std"], np.sqrt(reduced.variance[0]), rtol=1e-8)

    @pytest.mark.parametrize(("k", "variable"), [(5, "metal"), (40 + 8, "proxy")])
    def test_equals_prediction_by_a_reduced_model(self, model, sites, k, variable):
        """The same through the labelled side: a model with the datum removed predicts it."""
        place = k if variable == "metal" else k - 40
        target, levels = sites.isel(site=[place]), [0.05, 0.5, 0.95]
        at = without(model, k).predict(target, levels, variable=variable)[variable].values[:, 0]
        loo = model.loo(variable).isel(site=place)
        np.testing.assert_allclose(
            at, [float(loo[n]) for n in ("lower", "median", "upper")], rtol=1e-8
        )

    def test_log_score_is_a_log_density(self, model):
        """The score is the derivative of the predictive distribution function at the datum."""
        loo, law, step = model.loo(), model.marginals[0], 1e-5
        y, mean, std = loo["observed"].values, loo["mean"].values, loo["std"].values
        above, below = (ndtr((law.to_normal(v) - mean) / std) for v in (y + step, y - step))
        np.testing.assert_allclose(
            np.exp(loo["log_score"]), (above - below) / (2 * step), rtol=1e-4, atol=1e-9
        )


class TestObjective:
    @pytest.mark.parametrize("method", METHODS)
    def test_is_minus_the_likelihood_at_the_fitted_parameters(self, fit_by, method):
        """What the model reports is what can be evaluated again."""
        model = fit_by(method)
        value, gradient = model.objective(model.theta)
        assert value == pytest.approx(-model.log_likelihood, rel=0, abs=1e-8)
        assert gradient.shape == model.theta.shape

    def test_is_the_likelihood_of_the_definition(self, fit_by, sloped):
        """The density of all values, from scipy, at parameters of no fit."""
        from scipy import stats

        model = fit_by("full")
        rng = np.random.default_rng(1)
        theta = model.theta + rng.normal(scale=0.1, size=model.theta.size)
        sample, covariance = model.observations.sample, model.process.covariance
        inputs = [sample.inputs[:, sample.task(i)].T for i in range(2)]
        matrix = reference.covariance_matrix(covariance, theta[: covariance.size], inputs)
        _, laws = model.process.split(theta)
        height = sloped["height"].values - sloped["height"].values.mean()
        p, q = (law.parameters for law in laws)
        normal = [
            stats.norm(p["location"], p["scale"]),
            stats.norm(q["location"] + q["height"] * height, q["scale"]),
        ]
        values = [sample.values[:40], sample.values[40:]]
        w = np.concatenate([stats.norm.ppf(d.cdf(y)) for d, y in zip(normal, values, strict=True)])
        expected = stats.multivariate_normal(cov=matrix).logpdf(w) - stats.norm.logpdf(w).sum()
        expected += sum(d.logpdf(y).sum() for d, y in zip(normal, values, strict=True))
        assert model.objective(theta)[0] == pytest.approx(-expected, rel=1e-8)

    @pytest.mark.parametrize("prior", [False, True])
    @pytest.mark.parametrize("method", METHODS)
    def test_gradient(self, fit_by, method, prior):
        """Against central differences, away from the optimum."""
        model = fit_by(method)
        theta = model.theta + np.random.default_rng(0).normal(scale=0.1, size=model.theta.size)
        _, gradient = model.objective(theta, prior=prior)
        expected = reference.differences(lambda t: model.objective(t, prior=prior)[0], theta)
        np.testing.assert_allclose(gradient, expected, rtol=2e-4, atol=2e-4)

    @pytest.mark.parametrize("method", METHODS)
    def test_with_the_prior_it_is_what_the_fit_minimised(self, fit_by, method):
        """The gradient at the optimum is next to nothing, but for parameters at a bound."""
        model = fit_by(method)
        _, gradient = model.objective(model.theta, prior=True)
        bounds = model.process.bounds()
        inside = (model.theta > bounds[:, 0]) & (model.theta < bounds[:, 1])
        away = model.theta + 0.1
        steep = np.abs(model.objective(away, prior=True)[1]).max()
        assert np.abs(gradient[inside]).max() < min(0.5, 0.05 * steep)

    def test_the_prior_is_the_difference(self, model):
        """Value and gradient differ by the weak priors of the process."""
        theta = model.theta + 0.05
        value, gradient = model.objective(theta)
        whole, slope = model.objective(theta, prior=True)
        weak, weak_slope = model.process.log_prior(theta)
        assert weak != 0.0
        assert value - whole == pytest.approx(weak, rel=1e-9)
        np.testing.assert_allclose(gradient - slope, weak_slope, rtol=1e-9, atol=1e-12)

    def test_takes_a_list_and_changes_nothing(self, model):
        """Theta is read, whatever holds it."""
        theta = model.theta.copy()
        value, _ = model.objective(theta.tolist())
        assert value == model.objective(theta)[0]
        np.testing.assert_array_equal(theta, model.theta)

    @pytest.mark.parametrize("theta", [0.0, [0.0], np.zeros((2, 7)), np.zeros(100)])
    def test_wrong_shapes(self, model, theta):
        """The number of parameters is said, and what was found."""
        with pytest.raises(
            ValueError, match=rf"The model has {model.theta.size} parameters, found an array of sh"
        ):
            model.objective(theta)


class TestWarnings:
    def test_a_law_far_wider_than_its_values(self, model, recwarn):
        """A process of far longer range than the data is warned of, and one that fits is not."""
        warn_of_laws(model)
        assert not recwarn
        wide = model.theta.copy()
        wide[-1] += np.log(10.0)  # the log scale of the normal law
        with pytest.warns(MarginalWarning, match=r"'proxy' is 1\d times wider .*`cycle`"):
            warn_of_laws(dataclasses.replace(model, theta=wide))

    def test_a_value_far_out(self, model):
        """The law, the variable, the value and its score are named."""
        narrow = model.theta.copy()
        narrow[-1] -= np.log(4.0)
        with pytest.warns(
            MarginalWarning, match=r"Under the normal law of 'proxy' its value [\d.]+ lies [+-]\d"
        ) as seen:
            warn_of_laws(dataclasses.replace(model, theta=narrow))
        assert seen[0].filename == __file__


class TestExtremes:
    def test_what_chance_reaches_is_not_extreme(self):
        """In one of a hundred samples of the right law a value is further out than the limit."""
        assert extreme_score(2) == extreme_score(17_000) == EXTREME_SCORE
        for size in (50_000, 10**6):
            inside = 1.0 - 2.0 * ndtr(-extreme_score(size))
            assert inside**size == pytest.approx(0.99, abs=1e-4)


def arrays_of(state: Any, path: str = "model"):
    """Yield every array that dataclasses, tuples, lists and mappings hold, and where."""
    if isinstance(state, np.ndarray):
        yield path, state
    elif isinstance(state, list | tuple):
        for k, part in enumerate(state):
            yield from arrays_of(part, f"{path}[{k}]")
    elif isinstance(state, dict):
        for key, part in state.items():
            yield from arrays_of(part, f"{path}[{key!r}]")
    elif dataclasses.is_dataclass(state) and not isinstance(state, type):
        for field in dataclasses.fields(state):
            yield from arrays_of(getattr(state, field.name), f"{path}.{field.name}")


def assert_read_only(model) -> None:
    """Try to write to every array of a model."""
    found = dict(arrays_of(model))
    for path in ("theta", "observations.sample.values", "observations.sites.places"):
        assert f"model.{path}" in found
    for path, array in found.items():
        assert not array.flags.writeable, path
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


class TestReadOnly:
    @pytest.mark.parametrize("method", METHODS)
    def test_every_array_refuses_writes(self, fit_by, method):
        """Whatever a model holds, the data, the parameters and laws."""
        assert_read_only(fit_by(method))

    def test_anchors_too(self, sites):
        """Given points become arrays of the model; those that were given are left alone."""
        points = (
            sites[["x", "y"]]
            .isel(site=slice(0, 60, 3))
            .drop_vars(["metal", "proxy"], errors="ignore")
        )
        model = xcopula.fit(
            sites,
            "metal",
            "proxy",
            method=Transductive(anchors=points),
            marginals="normal",
            kernels="matern32",
            coupling="icm",
            restarts=0,
        )
        assert_read_only(model)
        assert any("model.method" in path for path, _ in arrays_of(model))
        assert points["x"].values.flags.writeable

    @pytest.mark.parametrize("derived", ["conditioned", "structure"])
    @pytest.mark.parametrize("method", [*METHODS, "triple"])
    def test_what_is_computed_on_first_use_too(self, fit_by, triple, method, derived):
        """The factors, the sub-models and the structure are closed, and nothing is left out."""
        model = triple if method == "triple" else fit_by(method)
        found = dict(arrays_of(getattr(model, derived)))
        assert len(found) >= 3
        for path, array in found.items():
            assert not array.flags.writeable, path
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0

    @pytest.mark.parametrize("nugget", [True, False])
    @pytest.mark.parametrize("task", [0, 1])
    @pytest.mark.parametrize("method", [*METHODS, "triple", "block"])
    def test_closed_arrays_serve_as_well_as_open_ones(self, fit_by, triple, method, task, nugget):
        """Moments, means and leave-one-out are those of arrays that can be written to."""
        if method in METHODS:
            model = fit_by(method)
        elif method == "block":
            model = dataclasses.replace(triple, method=Transductive("report", anchors="block"))
        else:
            model = dataclasses.replace(triple, method=Transductive("calibrated"))
        sample = model.observations.sample
        open_structure = model.method.prepare(model.solver, model.process, model.theta, sample)
        opened = model.method.condition(model.process, sample, open_structure, model.theta)
        targets = Targets(
            np.concatenate([sample.inputs[:, ::7], sample.inputs[:, :9] + 0.01], axis=1),
            np.concatenate([sample.sites[::7], np.full(9, -1)]),
        )
        other = np.random.default_rng(0).normal(size=(2, sample.size))
        other.flags.writeable = False
        asked = {"task": task, "nugget": nugget}
        for ask in (
            lambda c: c.moments(targets, **asked),
            lambda c: c.means(targets, other, **asked),
            lambda c: c.leave_one_out(),
        ):
            np.testing.assert_array_equal(ask(model.conditioned), ask(opened))

    @pytest.mark.parametrize("method", METHODS)
    def test_no_large_array_is_copied_for_a_prediction(self, fit_by, method):
        """A block of one cell takes no more memory than with arrays that can be written to."""
        model = fit_by(method)
        sample = model.observations.sample
        opened = model.method.condition(
            model.process,
            sample,
            model.method.prepare(model.solver, model.process, model.theta, sample),
            model.theta,
        )
        target = Targets.nowhere(np.zeros((2, 1)))

        def peak(conditioned) -> int:
            conditioned.moments(target)
            tracemalloc.start()
            conditioned.moments(target)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return most

        # Views take some bytes each; the tables of one kernel alone take 40 kB.
        assert peak(model.conditioned) < peak(opened) + 16384

    @pytest.mark.parametrize("method", METHODS)
    def test_results_are_open(self, fit_by, grid, sloped_grid, method):
        """What a model returns belongs to the caller, and changing it changes no model."""
        model = fit_by(method)
        loo, map_ = model.loo(), model.predict(grid)
        before = loo.copy(deep=True)
        for found in (loo, map_, model.loo("proxy"), model.predict(sloped_grid, variable="proxy")):
            for name, array in found.data_vars.items():
                assert array.values.flags.writeable, name
                array.values[...] = 0.0
        xr.testing.assert_identical(model.loo(), before)

    def test_laws_with_arrays_too(self, sites):
        """A Parzen law holds its sample."""
        model = xcopula.fit(
            sites, "metal", method="full", marginals="parzen", kernels="matern32", restarts=0
        )
        assert_read_only(model)
        assert any("marginals" in path for path, _ in arrays_of(model))

    @pytest.mark.parametrize(
        "made", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "copy"]
    )
    def test_copies_too(self, model, made):
        """A model that travelled is as closed as before."""
        assert_read_only(made(model))

    def test_what_the_user_has_stays_open(self, sites):
        """Data, attributes that are arrays, and a law given as an instance can be written to."""
        law = xcopula.marginals.Parzen.fit(sites["metal"].values[:40])
        valid = np.array([0.0, 100.0])
        data = sites.assign(metal=sites["metal"].assign_attrs(valid_range=valid)).copy(deep=True)
        data["metal"].attrs["valid_range"] = valid
        model = xcopula.fit(
            data, "metal", method="full", marginals=law, kernels="matern32", restarts=0
        )
        assert_read_only(model)
        np.testing.assert_array_equal(model.variables[0].attrs["valid_range"], valid)
        assert valid.flags.writeable
        assert all(array.flags.writeable for _, array in arrays_of(law))
        assert data["metal"].values.flags.writeable
        assert data["x"].values.flags.writeable


class TestImmutability:
    @pytest.mark.parametrize("name", ["theta", "method", "log_likelihood", "anything"])
    def test_attributes_cannot_be_set(self, model, name):
        """A fitted model is frozen."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, name, 1)

    def test_predicting_changes_nothing_visible(self, model, grid):
        """Predictions before and after each other are the same."""
        theta = model.theta.copy()
        first = model.predict(grid)
        model.predict(grid, 0.9, of="signal")
        model.loo()
        xr.testing.assert_identical(model.predict(grid), first)
        np.testing.assert_array_equal(model.theta, theta)


class TestPickle:
    def test_the_factor_does_not_travel(self, model, grid):
        """A pickle is small, and predicts the same to the last bit."""
        before = model.predict(grid)
        data = pickle.dumps(model)
        assert len(data) < model.conditioned.factor.nbytes
        loaded = pickle.loads(data)
        assert not {"conditioned", "predictor", "structure"} & set(loaded.__dict__)
        xr.testing.assert_identical(loaded.predict(grid), before)
        assert loaded.summary() == model.summary()

    def test_copy(self, model, grid):
        """A deep copy predicts the same."""
        xr.testing.assert_identical(copy.deepcopy(model).predict(grid), model.predict(grid))

    def test_the_token_tells_models_apart(self, model, alone):
        """Dask gives equal models one name and different models two."""
        from dask.base import tokenize

        assert tokenize(model) == tokenize(pickle.loads(pickle.dumps(model)))
        moved = dataclasses.replace(model, theta=model.theta + 1e-9)
        full = dataclasses.replace(model, method=Transductive())
        other = dataclasses.replace(model, prepared=model.prepared + 1e-9)
        assert len({tokenize(m) for m in (model, alone, moved, full, other)}) == 5

    def test_a_law_that_is_no_dataclass_has_a_token_too(self, sites, grid):
        """Whatever holds the parameters of a law, a lazy prediction equals one in memory."""
        from dask.base import tokenize

        model = xcopula.fit(
            sites,
            "metal",
            marginals=Logistic(1.5, -1.0),
            method="full",
            kernels="matern32",
            restarts=0,
        )
        lazy = model.predict(grid, chunks=3)
        xr.testing.assert_allclose(lazy.compute(), model.predict(grid), rtol=1e-12)
        assert tokenize(model) == tokenize(copy.deepcopy(model))
