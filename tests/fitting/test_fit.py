"""What fit refuses, what it returns, and whether its intervals are honest."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr
from strategies import count_computes

import xcopula
from xcopula.errors import CoordinateError, MarginalWarning, SupportError
from xcopula.marginals import Exponential, LogNormal, Normal
from xcopula.methods import Transductive
from xcopula.solvers import Exact

FIXED = {"method": "full", "kernels": "matern32", "anisotropy": False, "uncertainty": "plugin"}


@pytest.fixture
def no_optimisation(monkeypatch):
    """Fail on any work of the optimiser: bad input must end the fit before it."""

    def refuse(*args, **kwargs):
        raise AssertionError("optimised before the input was checked")

    monkeypatch.setattr("scipy.optimize.minimize", refuse)


def with_values(sites: xr.Dataset, **changes: float) -> xr.Dataset:
    """Set the first values of the metal, by position: ``_3=-1.0``."""
    values = sites["metal"].values.copy()
    for position, value in changes.items():
        values[int(position[1:])] = value
    return sites.assign(metal=("site", values))


@pytest.mark.usefixtures("no_optimisation")
class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"_0": np.inf}, "'metal' has 1 infinite values"),
            ({f"_{k}": np.nan for k in range(36)}, "'metal' has 4 finite values of 60"),
            ({f"_{k}": 2.5 for k in range(40)}, "'metal' is constant: all 40 values are 2.5"),
        ],
    )
    def test_values(self, sites, changes, match):
        """Infinite, too few and constant values end the fit at once."""
        with pytest.raises(ValueError, match=match):
            xcopula.fit(with_values(sites, **changes), "metal", "proxy")

    @pytest.mark.parametrize("law", ["lognormal", "gamma", "exponential"])
    @pytest.mark.parametrize("form", ["name", "by variable"])
    def test_values_outside_the_support(self, sites, law, form):
        """The variable, the count and the first offenders are named."""
        data = with_values(sites, _1=-1.5, _4=-2.5)
        laws = law if form == "name" else {"metal": law}
        with pytest.raises(SupportError, match=rf"'metal': {law} needs .*2 of 40") as info:
            xcopula.fit(data, "metal", "proxy", marginals=laws)
        assert "(first: -1.5, -2.5)" in str(info.value)
        assert "Choose a marginal with wider support" in str(info.value)

    @pytest.mark.parametrize("law", ["lognormal", "gamma", "exponential", Exponential(1.0)])
    def test_exact_zeros_are_outside_or_at_the_end_of_the_support(self, sites, law):
        """A zero would have an infinite score, so it is refused by name, count and value."""
        with pytest.raises(SupportError, match=r"'metal'.*2 of 40.*first: 0.0, 0.0"):
            xcopula.fit(with_values(sites, _1=0.0, _4=0.0), "metal", marginals={"metal": law})

    def test_a_given_law_is_checked_too(self, sites):
        """A Marginal instance that does not cover the data is refused by variable."""
        with pytest.raises(SupportError, match=r"metal: lognormal needs .*1 of 40.*first: -3.0"):
            xcopula.fit(with_values(sites, _7=-3.0), "metal", marginals=LogNormal(0.0, 1.0))

    def test_duplicate_sites(self, sites):
        """Two values at one site are refused."""
        with pytest.raises(ValueError, match="'metal' has several values at 1 of its sites"):
            xcopula.fit(xr.concat([sites, sites.isel(site=[3])], "site"), "metal", "proxy")

    def test_not_numbers(self, sites):
        """A variable of strings is refused."""
        with pytest.raises(TypeError, match="'rock' has dtype <U1"):
            xcopula.fit(sites.assign(rock=("site", ["a"] * 60)), "rock")

    def test_coordinates_that_are_no_distance(self, sites):
        """Degrees beside lengths, and dates among them, are refused."""
        degrees = sites.assign_coords(x=sites["x"].assign_attrs(units="degrees_east"))
        with pytest.raises(CoordinateError, match="'x' is a longitude, in degrees, which are not"):
            xcopula.fit(degrees, "metal")
        with pytest.raises(CoordinateError, match=r"\['x'\] .* are in degrees, which are not"):
            xcopula.fit(degrees, "metal", coords=["x", "y"])
        dated = sites.assign_coords(t=("site", np.arange(60).astype("M8[D]").astype("M8[ns]")))
        with pytest.raises(CoordinateError, match=r"\['x', 't'\] .* include dates, which have"):
            xcopula.fit(dated, "metal", coords={"space": ["x", "t"]})

    @pytest.mark.parametrize("data", [None, [1.0], "sites.nc", np.ones(3)])
    def test_data_of_a_wrong_type(self, data):
        """Data that are neither a Dataset nor a mapping are refused."""
        with pytest.raises(TypeError, match="`data` must be a Dataset, a DataFrame or a mapping"):
            xcopula.fit(data, "metal")


class TestFit:
    def test_a_secondary_may_be_a_name_or_a_sequence(self, sites, model):
        """A lone secondary needs no list."""
        listed = xcopula.fit(
            sites,
            "metal",
            ["proxy"],
            marginals={"metal": "lognormal", "proxy": "normal"},
            **FIXED,
        )
        np.testing.assert_array_equal(listed.theta, model.theta)
        assert listed.tasks == ("metal", "proxy")

    def test_dask_backed_data_are_computed_once_and_give_the_same_model(self, sites, alone):
        """Lazy in, one compute, the same theta."""
        with count_computes() as scheduler:
            lazy = xcopula.fit(sites.chunk(site=11), "metal", marginals="lognormal", **FIXED)
        assert scheduler.computes == 1
        np.testing.assert_array_equal(lazy.theta, alone.theta)

    def test_a_mapping_of_dataarrays_gives_the_same_model(self, sites, alone):
        """A variable on its own sites is the variable with its gaps."""
        apart = {"metal": sites["metal"].dropna("site")}
        same = xcopula.fit(apart, "metal", marginals="lognormal", **FIXED)
        np.testing.assert_array_equal(same.theta, alone.theta)

    def test_a_grid_gives_the_model_of_its_stacked_points(self):
        """Gridded training data are points like any others."""
        values = np.random.default_rng(2).normal(size=(5, 6))
        data = xr.Dataset(
            {"v": (("y", "x"), values)}, coords={"y": np.arange(5.0), "x": np.arange(6.0)}
        )
        options = {"marginals": "normal", "coords": ["x", "y"], **FIXED}
        left = xcopula.fit(data, "v", **options)
        right = xcopula.fit(data.stack(cell=("y", "x")), "v", **options)
        np.testing.assert_array_equal(left.theta, right.theta)

    def test_the_same_seed_gives_the_same_model(self):
        """Restarts are seeded: theta is identical to the last bit."""
        data = xcopula.datasets.toy(2)
        options = FIXED | {"marginals": "normal", "coupling": "icm", "restarts": 1}
        first, again = (xcopula.fit(data, "primary", "cotask", seed=5, **options) for _ in range(2))
        np.testing.assert_array_equal(first.theta, again.theta)
        assert first.log_likelihood == again.log_likelihood

    def test_the_seed_reaches_the_annealing(self, sites, monkeypatch):
        """Two seeds look at different points, the same seed at the same."""
        monkeypatch.setattr("xcopula.fitting.optimiser._MAX_ITERATIONS", 20)
        seen: list[np.ndarray] = []
        objective = Exact.objective

        def spy(self, process, sample, structure, theta):
            seen.append(theta.copy())
            return objective(self, process, sample, structure, theta)

        monkeypatch.setattr(Exact, "objective", spy)

        def trace(seed):
            seen.clear()
            options = FIXED | {"marginals": "lognormal", "optimizer": "annealing"}
            xcopula.fit(sites, "metal", seed=seed, **options)
            return np.array(seen)

        first, again, other = (trace(seed) for seed in (1, 1, 2))
        assert len(first) > 200
        np.testing.assert_array_equal(first, again)
        assert first.shape != other.shape or not np.array_equal(first, other)

    def test_a_method_and_its_name_give_the_same_model(self, sites, grid):
        """The default method is Transductive(), by name or as an object."""
        options = {"marginals": "normal", "kernels": "matern32", "coupling": "icm", "restarts": 0}
        default, named, given = (
            xcopula.fit(sites, "metal", "proxy", **options | o)
            for o in ({}, {"method": "transductive"}, {"method": Transductive()})
        )
        for other in (named, given):
            assert other.method == default.method == Transductive()
            np.testing.assert_array_equal(other.theta, default.theta)
            xr.testing.assert_identical(other.predict(grid), default.predict(grid))

    def test_restarts_do_not_make_it_worse(self):
        """The best of several starts is kept."""
        data = xcopula.datasets.toy(2)
        options = FIXED | {"marginals": "normal", "coupling": "icm"}
        one, three = (
            xcopula.fit(data, "primary", "cotask", **options | {"restarts": r}) for r in (0, 2)
        )
        assert three.log_likelihood > one.log_likelihood - 0.5

    def test_callback_sees_iterations_rise(self, sites):
        """The callback gets the iteration, a log posterior that never falls, and theta."""
        calls: list[tuple[int, float, np.ndarray]] = []
        model = xcopula.fit(
            sites,
            "metal",
            "proxy",
            marginals="normal",
            coupling="icm",
            callback=lambda *args: calls.append(args),
            **FIXED,
        )
        iterations, values, thetas = zip(*calls, strict=True)
        assert list(iterations) == list(range(1, len(calls) + 1))
        assert (np.diff(values) >= 0).all()
        np.testing.assert_array_equal(thetas[-1], model.theta)

    def test_data_and_laws_are_left_alone(self, sites):
        """Neither the dataset nor a law given as an instance is changed by a fit."""
        before = sites.copy(deep=True)
        law = Normal(10.0, 2.0)
        fitted = xcopula.fit(sites, "proxy", marginals=law, **FIXED)
        xr.testing.assert_identical(sites, before)
        assert (law.location, law.scale) == (10.0, 2.0)
        assert fitted.marginals[0].location != 10.0

    @pytest.mark.parametrize("law", ["gamma", "normal"])
    def test_a_light_tail_on_an_outlier_warns(self, sites, law):
        """The warning names the law, the variable, the value and how far out it is."""
        data = with_values(sites, _3=60.0)
        with pytest.warns(
            MarginalWarning, match=rf"Under the {law} law of 'metal' its value 60 lies \+\d"
        ) as seen:
            xcopula.fit(data, "metal", marginals=law, **FIXED)
        assert len(seen) == 1
        assert seen[0].filename == __file__
        assert "heavier tails" in str(seen[0].message)

    def test_the_default_law_has_room_for_an_outlier(self, sites):
        """Its tail is as heavy as the outlier asks for, which is then believable."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", MarginalWarning)
            chosen = xcopula.fit(with_values(sites, _3=60.0), "metal", **FIXED)
        assert float(abs(chosen.loo()["score"]).max()) < 5.0

    def test_the_default_law_with_zeros(self, sites):
        """Zeros are values at or below zero."""
        chosen = xcopula.fit(with_values(sites, _1=0.0, _4=0.0), "metal", **FIXED)
        assert np.isfinite(chosen.log_likelihood)
        assert chosen.marginals[0].name == "flexible censored at 0"

    @pytest.mark.parametrize(
        "options",
        [
            {"coupling": "icm"},
            {"coupling": "lmc", "structures": 2},
            {"noise": "independent"},
            {"ard": True, "coupling": "icm"},
            {"coords": {"east": "x", "north": "y"}, "coupling": "icm"},
        ],
    )
    def test_every_option_fits_and_predicts(self, sites, grid, options):
        """Couplings, structures, noises, scales and products of groups run to a prediction."""
        fitted = xcopula.fit(sites, "metal", "proxy", marginals="normal", **options, **FIXED)
        assert np.isfinite(fitted.log_likelihood)
        assert np.isfinite(fitted.predict(grid)["metal"]).all()


@dataclass(frozen=True)
class RationalQuadratic:
    """A kernel of one's own, cut off where 5e-9 is left."""

    alpha: float = 2.5
    smoothness: float = math.inf

    @property
    def name(self):
        return f"rq{self.alpha:g}"

    @property
    def reach(self):
        return math.sqrt(2.0 * self.alpha * (5e-9 ** (-1.0 / self.alpha)))

    def profile(self, x):
        a = self.alpha
        base = 1.0 + x**2 / (2.0 * a)
        curvature = ((1.0 + 1.0 / a) * x**2 / base - 1.0) * base ** (-a - 1.0)
        return base**-a, -x * base ** (-a - 1.0), curvature


@dataclass(frozen=True)
class Matern:
    """The kernel "matern32" by another name."""

    name: str = "mine"
    smoothness: float = 1.5
    reach: float = 44.0 / math.sqrt(3.0)

    def profile(self, x):
        u = math.sqrt(3.0) * x
        decay = np.exp(-u)
        return (1.0 + u) * decay, -3.0 * x * decay, 3.0 * (u - 1.0) * decay


class TestOwnKernel:
    """An object with a profile is a kernel like any other."""

    def brute_force(self, model, places) -> np.ndarray:
        """Return the covariance of (task, place) pairs from the reported parameters, in km."""
        p = model.parameters
        length = float(p["length_scale"].values[0, 0, 0])
        share, nugget = p["variance"].values[0], p["nugget"].values
        signal = p["correlation"].values[0] * np.sqrt(np.outer(share, share))
        noise = p["nugget_correlation"].values * np.sqrt(np.outer(nugget, nugget))
        task = np.array([i for i, _ in places])
        xy = np.array([place for _, place in places])
        r = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
        rq = (1.0 + (r / length) ** 2 / 5.0) ** -2.5
        return signal[np.ix_(task, task)] * rq + noise[np.ix_(task, task)] * (r == 0.0)

    @pytest.mark.parametrize("method", ["full", "transductive"])
    @pytest.mark.parametrize("secondary", [(), "proxy"], ids=["single", "icm"])
    def test_is_fitted_and_predicts(self, sites, grid, method, secondary):
        """Likelihood and latent moments are those of the formula, in kilometres."""
        from scipy import stats

        options = FIXED | {"method": method, "coupling": "icm", "kernels": RationalQuadratic()}
        model = xcopula.fit(sites, "metal", secondary, marginals="normal", **options)
        assert model.converged
        assert "rq2.5" in model.summary()
        xy = np.column_stack([sites["x"], sites["y"]])
        seen = [(0, place) for place in xy[:40]] + [(1, place) for place in xy if secondary]
        values = np.r_[sites["metal"].values[:40], sites["proxy"].values if secondary else []]
        location, scale = (
            np.array([m.parameters[k] for m in model.marginals])[[i for i, _ in seen]]
            for k in ("location", "scale")
        )
        matrix = self.brute_force(model, seen)
        z = (values - location) / scale
        expected = stats.multivariate_normal(cov=matrix).logpdf(z) - np.log(scale).sum()
        assert model.log_likelihood == pytest.approx(expected, abs=1e-4)
        x, y = np.meshgrid(grid["x"], grid["y"])
        cells = [(0, place) for place in np.column_stack([x.ravel(), y.ravel()])]
        whole = self.brute_force(model, seen + cells)
        n = len(seen)
        weights = np.linalg.solve(matrix, whole[:n, n:])
        latent = model.posterior(grid).latent
        np.testing.assert_allclose(latent["mean"].values.ravel(), z @ weights, atol=1e-6)
        variance = np.diagonal(whole)[n:] - (whole[:n, n:] * weights).sum(axis=0)
        np.testing.assert_allclose(latent["std"].values.ravel() ** 2, variance, rtol=1e-6)

    @pytest.mark.parametrize("coupling", ["icm", "lmc"])
    def test_is_the_builtin_of_the_same_formula(self, sites, grid, coupling):
        """A Matern kernel by another name gives the model that the name gives."""
        options = FIXED | {"coupling": coupling, "marginals": "normal"}
        mine, builtin = (
            xcopula.fit(sites, "metal", "proxy", **options | {"kernels": kernel})
            for kernel in (Matern(), "matern32")
        )
        assert mine.log_likelihood == pytest.approx(builtin.log_likelihood, abs=1e-6)
        xr.testing.assert_allclose(mine.predict(grid), builtin.predict(grid), rtol=1e-4)

    def test_for_one_variable_of_several(self, sites):
        """Where the kernel is shared, to give it once is enough."""
        options = FIXED | {"coupling": "icm", "kernels": {"proxy": RationalQuadratic()}}
        model = xcopula.fit(sites, "metal", "proxy", marginals="normal", **options)
        assert model.process.covariance.kernels == (RationalQuadratic(),) * 2

    def test_travels(self, sites, grid):
        """A model with such a kernel predicts lazily, and from a copy."""
        options = FIXED | {"kernels": RationalQuadratic()}
        model = xcopula.fit(sites, "metal", marginals="normal", **options)
        expected = model.predict(grid)
        xr.testing.assert_allclose(model.predict(grid, chunks=3).compute(), expected, rtol=1e-12)
        xr.testing.assert_identical(copy.deepcopy(model).predict(grid), expected)

    @pytest.mark.usefixtures("no_optimisation")
    @pytest.mark.parametrize("kernels", [RationalQuadratic(), {"metal": RationalQuadratic()}])
    def test_without_a_cross_correlation_it_cannot_be_convolved(self, sites, kernels):
        """Also where the other's kernel is still to be chosen: that is said before any work."""
        with pytest.raises(
            ValueError, match=r"does not know .* of the kernels 'rq2.5' and .*Use coupling='icm"
        ):
            xcopula.fit(sites, "metal", "proxy", kernels=kernels)

    @pytest.mark.usefixtures("no_optimisation")
    def test_a_class_is_no_kernel(self, sites):
        """An instance is asked for."""
        with pytest.raises(TypeError, match=r"found the class RationalQuadratic. Give an instance"):
            xcopula.fit(sites, "metal", kernels=RationalQuadratic)


class TestEndToEnd:
    def test_the_cotask_fills_the_gap(self):
        """With everything automatic, two tasks beat one by far where the primary has a gap."""
        data = xcopula.datasets.toy(seed=0)
        truth = xcopula.datasets.toy_truth(np.linspace(0.0, 1.0, 201))
        models = [
            data.mtcopula.fit("primary", s, method="full", restarts=0) for s in ("cotask", ())
        ]
        together, apart = (
            float(abs(m.predict(truth, 0.5)["primary"] - truth["primary"]).mean()) for m in models
        )
        assert together < 0.75 * apart
        assert together < 0.4


def test_intervals_cover_what_they_promise(simulate):
    """Pooled over simulations, 90 % intervals hold 90 % of held-out values within their error."""
    inside = []
    for seed in range(10):
        data, truth = simulate(100 + seed, size=130, known=80)
        fitted = xcopula.fit(
            data,
            "metal",
            "proxy",
            marginals={"metal": "lognormal", "proxy": "normal"},
            coupling="icm",
            noise="independent",
            **FIXED,
        )
        hidden = truth.isel(site=slice(80, None))
        low, high = fitted.posterior(hidden).interval(0.9)
        inside.append(((hidden["metal"] > low) & (hidden["metal"] < high)).values)
    pooled = np.concatenate(inside)
    # Parameters that are estimated and then taken for true narrow the intervals a little: with the
    # true ones coverage is 0.90, with 35 sites 0.85, with 100 sites 0.89. Hence the allowance.
    assert abs(pooled.mean() - 0.9) < 3.0 * np.sqrt(0.9 * 0.1 / pooled.size) + 0.02
