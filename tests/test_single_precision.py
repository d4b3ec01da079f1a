"""Coordinates that were stored in single precision: the same sites, and so the same model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH

import xcopula

SIZE = 140
FIXED = {
    "anisotropy": False,
    "method": "full",
    "marginals": "normal",
    "kernels": "matern32",
    "coupling": "icm",
    "restarts": 0,
}
UP = {"standard_name": "altitude", "units": "m"}


def places(kind: str) -> dict[str, tuple[np.ndarray, dict[str, str]]]:
    """Draw sites of a kind of coordinates, with their attributes."""
    u, v, w = np.random.default_rng(0).uniform(size=(3, SIZE))
    if kind in ("km", "m"):
        factor = {"km": 1.0, "m": 1000.0}[kind]
        return {
            "x": (factor * (432.0 + 4.0 * u), {"units": kind, "axis": "X"}),
            "y": (factor * (4500.0 + 4.0 * v), {"units": kind, "axis": "Y"}),
        }
    west = {"0..360": 340.0, "-180..180": -20.0, "heights": 6.0}[kind]
    found = {"lon": (west + 5.0 * u, EAST), "lat": (45.0 + 4.0 * v, NORTH)}
    return found | ({"alt": (3000.0 * w, UP)} if kind == "heights" else {})


KINDS = ["km", "m", "0..360", "-180..180", "heights"]


def variable(name: str, values, kind: str, dtype: str = "f8", move: float = 0.0) -> xr.DataArray:
    """Return a variable at sites whose coordinates were stored in a precision, or moved."""
    coords = {
        n: ("site", (c + (move * np.abs(c).max() if n in ("y", "lat") else 0.0)).astype(dtype), a)
        for n, (c, a) in places(kind).items()
    }
    return xr.DataArray(values, dims="site", coords=coords, name=name)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Two variables whose nuggets are large and almost the same."""
    rng = np.random.default_rng(1)
    u, v, _ = np.random.default_rng(0).uniform(size=(3, SIZE))
    r = np.sqrt(3.0) * np.hypot(u[:, None] - u, v[:, None] - v) / 0.4
    signal = np.linalg.cholesky((1.0 + r) * np.exp(-r) + 1e-9 * np.eye(SIZE)) @ rng.normal(
        size=(SIZE, 2)
    )
    shared = rng.normal(size=SIZE)
    own = rng.normal(size=(2, SIZE))
    nugget = 0.9 * shared + np.sqrt(1.0 - 0.9**2) * own
    return np.sqrt(0.3) * signal.T + np.sqrt(0.7) * nugget


def fit(values, kind, first="f8", second="f8", move=0.0, method="full"):
    """Fit both variables, each with coordinates of its own."""
    data = {
        "a": variable("a", values[0], kind, first),
        "b": variable("b", values[1], kind, second, move),
    }
    return xcopula.fit(data, "a", "b", **FIXED | {"method": method})


@pytest.mark.parametrize("kind", KINDS)
class TestModel:
    @pytest.mark.parametrize(("first", "second"), [("f8", "f4"), ("f4", "f8"), ("f4", "f4")])
    def test_has_the_nugget_that_double_precision_has(self, values, kind, first, second):
        """Where sites are no longer common, the nugget goes into the signal."""
        exact, single = fit(values, kind), fit(values, kind, first, second)
        sites = single.observations.sample.sites
        np.testing.assert_array_equal(sites[:SIZE], sites[SIZE:])
        left, right = (m.parameters for m in (exact, single))
        assert (left["nugget"] > 0.3).all()
        np.testing.assert_allclose(right["nugget"], left["nugget"], atol=5e-3)
        np.testing.assert_allclose(
            right["nugget_correlation"], left["nugget_correlation"], atol=5e-3
        )
        assert single.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.05)

    def test_is_another_where_the_sites_are(self, values, kind):
        """Moved by some roundings, sites are not common: the test above proves something."""
        apart = fit(values, kind, move=3e-6)
        sites = apart.observations.sample.sites
        assert not set(sites[:SIZE]) & set(sites[SIZE:])
        exact = fit(values, kind)
        assert apart.log_likelihood < exact.log_likelihood - 5.0
        assert abs(apart.parameters["nugget"] - exact.parameters["nugget"]).max() > 0.05

    @pytest.mark.parametrize("method", ["full", "transductive"])
    @pytest.mark.parametrize(("trained", "asked"), [("f8", "f4"), ("f4", "f8"), ("f4", "f4")])
    def test_gives_back_the_data(self, values, kind, trained, asked, method):
        """At its sites in either precision, for every variable, in memory and lazily."""
        model = fit(values, kind, trained, "f8", method=method)
        target = variable("t", values[0], kind, asked).to_dataset().drop_vars("t")
        for name, datum in zip("ab", values, strict=True):
            out = model.predict(target, variable=name)[name]
            # The nugget is known; the signal has moved by a rounding, a millionth of the extent
            # and more in metres. The values have a deviation of one.
            np.testing.assert_allclose(out.sel(quantile=0.5), datum, atol=2e-4)
            np.testing.assert_allclose(out.sel(quantile=0.95), datum, atol=5e-4)
            lazy = model.predict(target, chunks=30, variable=name)[name].compute()
            xr.testing.assert_allclose(lazy, out, rtol=1e-9, atol=1e-9)
        signal = model.predict(target, 0.5, of="signal")["a"]
        assert float(abs(signal - values[0]).max()) > 0.2
