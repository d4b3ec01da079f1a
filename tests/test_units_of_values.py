"""A fit does not depend on the units of the values: kg/kg, mg/kg or ng/kg, degrees C or kelvin."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula import by, regress

FACTORS = [1e-9, 1e-6, 1e3, 1e9]
QUICK = {"kernels": "matern32", "restarts": 1, "uncertainty": "plugin"}
# Families of all numbers: their origin means nothing.
SHIFTED = ["normal", "gev", "t"]


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """Fifty sites of the Jura, with a field and a group."""
    whole = xcopula.datasets.jura().isel(site=slice(0, 359, 7))
    rng = np.random.default_rng(0)
    return whole[["Cd", "Ni"]].assign_coords(
        height=("site", rng.normal(500.0, 100.0, whole.sizes["site"]), {"units": "m"}),
        soil=("site", rng.integers(0, 2, whole.sizes["site"])),
    )


@pytest.fixture(scope="module")
def target(data) -> xr.Dataset:
    """Points between the sites."""
    moved = data.drop_vars(["Cd", "Ni"]).isel(site=slice(0, 12))
    return moved.assign_coords(x=moved["x"] + 0.11, y=moved["y"] - 0.07)


def fitted(data, laws, factor=1.0, shift=0.0, secondary=("Ni",), **options):
    """Fit in other units."""
    other = data.assign({name: factor * (data[name] + shift) for name in data.data_vars})
    return xcopula.fit(other, "Cd", secondary, marginals=laws, **QUICK | options)


PLAIN: dict[str, xcopula.CopulaModel] = {}


def in_plain_units(data, laws, **options):
    """Fit in mg/kg, once for all comparisons."""
    key = repr((laws, options))
    if key not in PLAIN:
        PLAIN[key] = fitted(data, laws, **options)
    return PLAIN[key]


def latent(model, target) -> np.ndarray:
    """Return latent means and deviations: numbers without units."""
    found = model.posterior(target).latent
    return np.stack([found["mean"].values, found["std"].values])


def check(data, target, laws, factor, shift=0.0, **options):
    """Compare a fit in other units with that in mg/kg: 1e-6 of a standard deviation.

    The shape of gamma and t marginals has derivatives by differences, which magnify rounding: 1e-4.
    """
    plain = in_plain_units(data, laws, **options)
    other = fitted(data, laws, factor, shift, **options)
    names = " ".join(m.name for m in plain.marginals).split()
    atol = 1e-4 if {"gamma", "t"} & set(names) else 1e-6
    np.testing.assert_allclose(latent(other, target), latent(plain, target), rtol=0, atol=atol)
    size = plain.observations.sample.size
    moved = other.log_likelihood + size * np.log(factor)
    assert moved == pytest.approx(plain.log_likelihood, abs=1e-5)
    assert [m.name for m in other.marginals] == [m.name for m in plain.marginals]
    assert other.process.covariance.kernels == plain.process.covariance.kernels
    quantiles = plain.predict(target)["Cd"].values
    np.testing.assert_allclose(
        other.predict(target)["Cd"].values / factor - shift,
        quantiles,
        rtol=0,
        atol=3.0 * atol * quantiles.std() + 1e-12 * abs(shift),
    )


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("law", list(xcopula.marginals.MARGINALS))
def test_every_law(data, target, law, factor):
    """Predictions agree to 1e-6 of a standard deviation, likelihoods to the change of density."""
    check(data, target, law, factor)


@pytest.mark.parametrize("law", SHIFTED)
def test_another_origin(data, target, law):
    """Degrees C or kelvin: laws of all numbers do not know where zero is."""
    check(data, target, law, 1.8, 273.15)


@pytest.mark.parametrize(
    "law",
    [
        regress("normal", on="height"),
        regress("gamma", on="height"),
        regress("t", on="height"),
        regress("gev", on="height"),
        by("soil", "normal"),
        by("soil", regress("gev", on="height")),
    ],
    ids=lambda law: law.name,
)
@pytest.mark.parametrize("factor", FACTORS)
def test_laws_that_vary(data, target, law, factor):
    """Slopes and groups scale with the values.

    Without directions: that of these few sites is flat, and a search in other units ends 2e-6 away.
    """
    check(data, target, {"Cd": law, "Ni": "lognormal"}, factor, anisotropy=False)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("method", ["transductive", "full"])
def test_the_defaults(data, target, factor, method):
    """The same laws and kernels are taken in all units, and predict the same."""
    check(data, target, "auto", factor, kernels="auto", method=method)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_secondary_in_other_units(data, target, factor):
    """Rescaling a secondary alone does not move the primary."""
    laws = {"Cd": "lognormal", "Ni": "normal"}
    plain = in_plain_units(data, laws)
    other = fitted(data.assign(Ni=factor * data["Ni"]), laws)
    names = " ".join(m.name for m in plain.marginals).split()
    atol = 1e-4 if {"gamma", "t"} & set(names) else 1e-6
    np.testing.assert_allclose(latent(other, target), latent(plain, target), rtol=0, atol=atol)


CANDIDATES = {"kernels": ["matern32", "se"], "marginals": list(xcopula.marginals.MARGINALS)}


@pytest.fixture(scope="module")
def compared(data):
    """All laws with two kernels, compared in mg/kg."""
    return xcopula.compare(data, "Cd", **CANDIDATES)


@pytest.mark.parametrize("factor", FACTORS)
def test_compare(data, compared, factor):
    """Differences between candidates are the same; scores have the units of the variable."""
    other = xcopula.compare(data.assign(Cd=factor * data["Cd"]), "Cd", **CANDIDATES)
    size = int(data["Cd"].notnull().sum())
    moved = {
        "log_likelihood": size * np.log(factor),
        "aic": -2.0 * size * np.log(factor),
        "loo_log_score": np.log(factor),
    }
    for name, shift in moved.items():
        np.testing.assert_allclose(other[name] + shift, compared[name], rtol=0, atol=1e-4)
    np.testing.assert_allclose(other["loo_crps"] / factor, compared["loo_crps"], rtol=1e-6)
    np.testing.assert_allclose(other["largest_score"], compared["largest_score"], rtol=1e-6)
    for name in ("aic", "loo_log_score", "loo_crps"):  # the ranking
        order, before = (np.argsort(table[name].values.ravel()) for table in (other, compared))
        np.testing.assert_array_equal(order, before)
