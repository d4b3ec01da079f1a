"""What a fit takes where nothing was asked for: supports, structures, kernels, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
from sources import daily

import xcopula
from xcopula.errors import SupportError
from xcopula.fitting.defaults import (
    count_structures,
    default_kernel,
    fit_within,
    has_censored_end,
    start_marginal,
    support_of,
)
from xcopula.kernels import KERNELS, Nested
from xcopula.labels.observations import observe
from xcopula.marginals import Gamma, LogNormal, Normal, Parzen, SinhArcsinh, by, regress
from xcopula.marginals.censored import Censored
from xcopula.marginals.truncation import Truncated
from xcopula.process import Sample

RNG = np.random.default_rng(0)
INF = np.inf
N = 60
POSITIVE = RNG.gamma(2.0, 2.0, N)
ZEROS = np.where(np.arange(N) % 4, POSITIVE, 0.0)
REAL = RNG.normal(size=N)
ROWS = np.column_stack([np.arange(N) % 2.0, RNG.normal(size=N)])


def sample(values, rows=None, limits=None) -> Sample:
    """Values of one task on a line."""
    places = np.linspace(0.0, 1.0, len(values))[:, None]
    table = np.empty((len(values), 0)) if rows is None else rows
    ends = None if limits is None else [np.asarray(limits, float)]
    return Sample.of([places], [np.asarray(values, float)], [table], limits=ends)


def field(values, **attrs) -> xr.Dataset:
    """Values at random places, with a height."""
    rng = np.random.default_rng(1)
    n = len(values)
    places = {name: ("site", rng.uniform(0.0, 9.0, n), {"units": "km"}) for name in ("x", "y")}
    return xr.Dataset({"v": ("site", np.asarray(values, float), attrs)}, places)


@pytest.mark.parametrize(
    ("values", "units", "stated", "law", "name"),
    [
        (POSITIVE, "", None, "auto", "flexible above 0"),
        (POSITIVE, "mg", None, "flexible", "flexible above 0"),
        (ZEROS, "mm", None, "auto", "flexible censored at 0"),
        (REAL, "", None, "auto", "flexible"),
        *((POSITIVE, u, None, "auto", "flexible") for u in ("degC", " Celsius", "°F", "degrees_F")),
        (POSITIVE, "K", None, "auto", "flexible above 0"),
        (ZEROS, "degC", None, "auto", "flexible"),
        (POSITIVE, "", (None, None), "auto", "flexible"),
        (ZEROS, "", (None, None), "auto", "flexible"),
        (POSITIVE, "degC", (0, None), "auto", "flexible above 0"),
        (REAL, "", (-20, 20), "auto", "flexible between -20 and 20"),
        (POSITIVE, "", (0, 100), "auto", "flexible between 0 and 100"),
        (ZEROS, "", (0, 100), "auto", "flexible below 100 censored at 0"),
        (POSITIVE, "", (None, 100), "auto", "flexible below 100"),
        (np.maximum(REAL, -0.5), "", (-0.5, None), "auto", "flexible censored at -0.5"),
        (POSITIVE, "", None, "normal", "normal"),
        (POSITIVE, "", (0, None), "normal", "normal above 0"),
        (ZEROS, "", (0, None), "normal", "normal censored at 0"),
        (ZEROS, "", None, "normal", "normal"),
        (POSITIVE, "", (0, None), "gamma", "gamma"),
        (ZEROS, "", (0, None), "parzen", "parzen censored at 0"),
        (ZEROS, "", (0, None), Normal(1.0, 2.0), "normal censored at 0"),
        (POSITIVE, "", (0, None), LogNormal(1.0, 1.0), "lognormal"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*heap:", "ignore:.*are exactly 0")
def test_supports(values, units, stated, law, name):
    """Told by the values and the units, unless they are stated; only the default law has any."""
    options = {"marginals": law, "kernels": "matern32", "anisotropy": False, "support": stated}
    model = xcopula.fit(field(values, units=units), "v", **options)
    assert model.marginals["v"].name == name
    support = model.marginals["v"].support
    assert support[0] <= values.min()
    assert support[1] >= values.max()


@pytest.mark.filterwarnings("ignore:.*are exactly 5, the largest")
@pytest.mark.parametrize(
    ("values", "stated", "law", "match"),
    [
        (REAL, (0, None), "auto", r"`support` of 'v' is from 0 to inf, but \d+ of 60 values lie"),
        (ZEROS - 0.1, (0, None), "auto", r"but 15 of 60 values lie outside \(first: -0.1"),
        (POSITIVE, (None, 2.0), "normal", r"from -inf to 2, but \d+ of 60 values"),
        (np.minimum(POSITIVE, 5.0), (0, 5.0), "auto", "'v': .* values have no finite normal score"),
        (np.maximum(REAL, 0.5), (0.5, None), "gamma", "no finite normal score|needs values above"),
        (ZEROS, None, "gamma", "'v': gamma needs positive values: 15 of 60"),
        (ZEROS, (0, None), "gamma", "'v': gamma needs positive values: 15 of 60"),
    ],
)
def test_values_that_a_support_does_not_hold(values, stated, law, match):
    """They are counted, with what to do; those at an upper end have no finite score."""
    with pytest.raises(SupportError, match=match):
        xcopula.fit(field(values), "v", marginals=law, support=stated)


class TestFitWithin:
    """A marginal as if values were independent."""

    def test_recovers_what_was_cut_off(self):
        """The law before it is cut off is found, where the values alone are another."""
        y = Truncated(Normal(1.0, 2.0), 0.0).from_normal(np.random.default_rng(3).normal(size=4000))
        law = fit_within(Normal, sample(y), {}, (0.0, INF))
        assert law.base.location == pytest.approx(1.0, abs=0.5)
        assert law.base.scale == pytest.approx(2.0, abs=0.2)
        assert abs(Normal.fit(y).location - 1.0) > 0.5
        np.testing.assert_allclose(law.density_pullback(y), 0.0, atol=1e-2)

    def test_recovers_what_is_below_zero(self):
        """Half of the values are zeros: location and scale are those of all of them."""
        y = np.maximum(np.random.default_rng(4).normal(0.2, 3.0, 4000), 0.0)
        law = fit_within(Normal, sample(y), {}, (0.0, INF))
        assert isinstance(law, Censored)
        np.testing.assert_allclose([law.base.location, law.base.scale], [0.2, 3.0], atol=0.15)
        np.testing.assert_allclose(law.density_pullback(y) + law.log_prior()[1], 0.0, atol=1e-2)

    @pytest.mark.parametrize("recipe", [regress("normal", on="h"), by("k", "normal")])
    def test_laws_that_vary(self, recipe):
        """Each row has its own share below zero; the gradient vanishes at the estimate."""
        latent = 1.0 + 2.0 * ROWS[:, 1] + ROWS[:, 0] + RNG.normal(size=N)
        y = np.maximum(latent, 0.0)
        rows = ROWS[:, 1:] if recipe.fields == ("h",) else ROWS[:, :1]
        law = fit_within(recipe, sample(y, rows), {}, (0.0, INF)).at(rows)
        np.testing.assert_allclose(law.density_pullback(y), 0.0, atol=1e-2)
        chances = np.exp(law.log_density(np.zeros(N)))
        assert np.ptp(chances) > 0.1

    def test_a_log_link_with_zeros(self):
        """Logarithms need values above zero to start from; the maximum is with the zeros."""
        factor, rows = np.exp(0.5 * ROWS[:, 1]), ROWS[:, 1:]
        own = sample(np.maximum(factor * (1.0 + REAL), 0.0), rows)
        recipe = regress("normal", on="h", link="log")
        assert has_censored_end(recipe, own, (0.0, INF))
        assert not has_censored_end(regress("gamma", on="h"), own, (0.0, INF))
        law = fit_within(recipe, own, {}, (0.0, INF)).at(rows)
        assert law.name == "normal ~ h (log link), censored at 0"
        np.testing.assert_allclose(law.density_pullback(own.values), 0.0, atol=1e-2)

    def test_what_ends_there_already_stays(self):
        """A law is not cut off where it ends anyway."""
        own = sample(POSITIVE)
        assert fit_within(Gamma, own, {}, (0.0, INF)) == Gamma.fit(POSITIVE)
        assert isinstance(fit_within(Parzen, own, {}, (0.0, INF)), Parzen)
        assert isinstance(fit_within(Parzen, own, {}, (0.0, 90.0)), Truncated)

    def test_intervals_beside_zeros(self):
        """Values below a limit and zeros are in one fit."""
        y = np.maximum(np.random.default_rng(5).normal(1.0, 2.0, 3000), 0.0)
        hidden = (y > 0.0) & (y < 0.8)
        limits = np.stack([np.where(hidden, 1e-9, y), np.where(hidden, 0.8, y)])
        law = fit_within(Normal, sample(np.where(hidden, 0.4, y), limits=limits), {}, (0.0, INF))
        np.testing.assert_allclose([law.base.location, law.base.scale], [1.0, 2.0], atol=0.15)

    def test_a_given_law_is_checked(self):
        """It is taken as it is, if its scores are finite."""
        law = start_marginal(Normal(1.0, 2.0), sample(ZEROS), {}, (0.0, INF), "v")
        assert law.base == Normal(1.0, 2.0)
        with pytest.raises(SupportError, match="v: lognormal needs positive values: 15 of 60"):
            start_marginal(LogNormal(), sample(ZEROS), {}, None, "v")


def test_intervals_do_not_tell_a_support():
    """Only exact values do: a detection limit says nothing of zero."""
    limits = np.stack([np.full(N, -INF), np.full(N, 1.0)])
    limits[:, 10:] = REAL[10:]
    values = np.where(np.arange(N) < 10, 0.0, REAL)
    assert support_of(SinhArcsinh, sample(values, limits=limits), None, {}) is None
    assert support_of(SinhArcsinh, sample(POSITIVE), None, {}) == (0.0, INF)
    assert support_of(Normal, sample(POSITIVE), None, {}) is None
    assert support_of(Normal, sample(POSITIVE), (1.0, 2.0), {}) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("step", "coords", "coupling", "structures"),
    [
        (1, ["lon", "lat", "time"], "convolution", 2),
        (1, ["lon", "lat", "time"], "lmc", 2),
        (1, ["lon", "lat", "time"], "icm", 1),
        (1, {"place": ["lon", "lat"], "cycle": xcopula.cycle("time")}, "convolution", 2),
        (1, {"all": ["lon", "lat"]}, "convolution", 1),
        (20, ["lon", "lat", "time"], "convolution", 1),  # five values
    ],
)
def test_structures(step, coords, coupling, structures):
    """One in space, two where a second group joins it, if there are values for them."""
    data = daily()
    if coords == {"all": ["lon", "lat"]}:
        data = data.isel(time=0)
    level = data["level"]
    data["level"] = level.where(np.arange(level.size).reshape(level.shape) % step == 0)
    seen = observe(data, ["level"], coords)
    assert count_structures(seen, coupling) == structures
    smooth, rough = KERNELS["matern32"], KERNELS["matern12"]
    expected = rough if structures == 1 else Nested((smooth, rough))
    assert default_kernel(structures) == expected


def grid_of(noise, size=18, seed=0):
    """A smooth field on a grid, as of a model, with this share of noise."""
    x, y = np.meshgrid(np.linspace(0.0, 1.0, size), np.linspace(0.0, 1.0, size))
    sites = np.column_stack([x.ravel(), y.ravel()])
    r = np.sqrt(5.0) * np.linalg.norm(sites[:, None] - sites[None], axis=-1) / 0.25
    matrix = (1.0 + r + r * r / 3.0) * np.exp(-r) + 1e-9 * np.eye(len(sites))
    rng = np.random.default_rng(seed)
    z = np.linalg.cholesky(matrix) @ rng.normal(size=len(sites))
    z = np.sqrt(1.0 - noise) * z + np.sqrt(noise) * rng.normal(size=len(sites))
    coords = {"x": x[0], "y": y[:, 0]}
    return xr.Dataset({"v": (("y", "x"), z.reshape(x.shape))}, coords)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("noise", "options", "kernel"),
    [
        (0.0, {}, "matern32"),
        (0.05, {}, "matern12"),
        (0.0, {"kernels": "matern12"}, "matern12"),
        (0.0, {"structures": 2}, "matern32 + matern12"),
    ],
)
def test_a_field_without_noise_is_smooth(noise, options, kernel, seed):
    """Where no nugget is left under both kernels, and nothing else was asked for."""
    model = xcopula.fit(grid_of(noise, seed=seed), "v", **options)
    assert model.parameters["kernel"].values.tolist() == [kernel]


BAD = {
    "five": RNG.normal(size=5),
    "five with zeros": np.array([0.0, 0.0, 1.0, 2.0, 3.0]),
    "zeros and one value": np.r_[np.zeros(29), 3.0],
    "zeros and two values": np.r_[np.zeros(28), 3.0, 4.0],
    "two values": np.repeat([1.0, 2.0], 15),
    "all equal but one": np.r_[np.full(29, 2.0), 5.0],
    "counts": RNG.poisson(3.0, N) + 1.0,
    "counts with zeros": RNG.poisson(0.5, N).astype(float),
    "tiny": 1e-140 * RNG.gamma(2.0, 1.0, 40),
    "huge": 1e140 * RNG.gamma(2.0, 1.0, 40),
    "two clusters": np.r_[RNG.normal(1.0, 0.01, 30), RNG.normal(100.0, 0.01, 30)],
    "negative with a long tail": -RNG.gamma(0.3, 1.0, N),
}


@pytest.mark.parametrize("values", BAD.values(), ids=BAD)
def test_bad_input_that_has_a_fit(values):
    """Predictions are finite, and nothing is said twice."""
    target = xr.Dataset(coords={n: ("p", [1.0, 5.0], {"units": "km"}) for n in ("x", "y")})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = xcopula.fit(field(values), "v")
        quantiles = model.predict(target)["v"].values
        crps = model.loo()["crps"].values
    assert np.isfinite(quantiles).all()
    assert np.isfinite(crps).all()
    # A heap of 29 values makes the 30th an outlier: both are said.
    assert len(seen) <= (2 if (values == 2.0).sum() == 29 else 1)
    assert all(issubclass(w.category, UserWarning) for w in seen)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "match"),
    [
        (np.full(30, 2.0), "'v' is constant: all 30 values are 2"),
        (np.zeros(30), "'v' is constant: all 30 values are 0"),
        (10.0 ** np.random.default_rng(1).uniform(-15.0, 15.0, N), "no finite normal .*lognormal"),
        (1e151 * RNG.gamma(2.0, 1.0, 40), "Rescale its units"),
    ],
)
def test_bad_input_that_has_none(values, match):
    """One sentence says why, before any work."""
    with pytest.raises(ValueError, match=match):
        xcopula.fit(field(values), "v")
