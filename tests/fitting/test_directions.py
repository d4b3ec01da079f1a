"""In which groups of coordinates ranges may differ by direction, and what is found there."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from directional import world
from sources import EAST, NORTH

import xcopula
from xcopula.errors import CoordinateError
from xcopula.fitting.directions import free_groups, input_groups
from xcopula.labels.observations import observe

NAMES = {"plane": ["x", "y"], "height": "z"}
GIVEN = {"marginals": "lognormal", "kernels": "matern32"}
RNG = np.random.default_rng(0)


def seen(names="xyz", coords=None, size=30, **options):
    """Observe sites with these coordinates."""
    places = {name: ("s", RNG.uniform(size=size)) for name in names}
    data = xr.Dataset({"v": ("s", RNG.uniform(1.0, 2.0, size))}, coords=places)
    return observe(data, ["v"], coords, **options)


def globe(lon, lat):
    coords = {"lon": ("s", np.asarray(lon), EAST), "lat": ("s", np.asarray(lat), NORTH)}
    return observe(xr.Dataset({"v": ("s", np.arange(len(lon)) + 1.0)}, coords=coords), ["v"])


def season():
    times = np.datetime64("2001-01-01", "ns") + np.arange(9) * np.timedelta64(40, "D")
    data = xr.Dataset({"v": ("time", np.arange(9.0))}, coords={"time": times})
    return observe(data, ["v"], xcopula.cycle("time"))


SYSTEMS = {
    "plane and height": lambda: seen(coords=NAMES),
    "scaled": lambda: seen(coords=NAMES, ard=["plane"]),
    "line": lambda: seen("x", "x"),
    "space": lambda: seen("xyz", ["x", "y", "z"]),
    "four": lambda: seen("abcd", list("abcd")),
    "globe": lambda: globe(RNG.uniform(5.0, 10.0, 20), RNG.uniform(45.0, 48.0, 20)),
    "cycle": season,
}


@pytest.mark.parametrize(
    ("system", "given", "expected"),
    [
        *(("plane and height", given, (True, False)) for given in (True, np.True_)),
        *(("plane and height", given, (True, False)) for given in ("plane", ["plane"])),
        *(("plane and height", given, (False, False)) for given in (False, [], np.False_)),
        ("scaled", True, (False, False)),
        ("line", True, (False,)),
        ("line", False, (False,)),
        ("space", True, (True,)),
        ("four", True, (False,)),  # nine parameters are not taken unasked
        ("four", "space", (True,)),
        ("globe", True, (True,)),
        ("cycle", True, (False,)),
    ],
)
def test_groups_that_are_free(system, given, expected):
    """All planes, none, or those that are named."""
    assert free_groups(given, SYSTEMS[system]().coordinates) == expected


@pytest.mark.parametrize(
    ("system", "given", "kind", "message"),
    [
        *(
            ("plane and height", given, TypeError, "is True, False or the names of groups, found")
            for given in (5, None, 1.0, b"plane", {"plane": True})
        ),
        ("plane and height", "wind", CoordinateError, r"groups \['wind'\]; .*\['plane', 'height'"),
        ("plane and height", ["plane", 3], CoordinateError, r"names groups \[3\]"),
        ("plane and height", "auto", CoordinateError, r"names groups \['auto'\]"),
        ("plane and height", "height", ValueError, "two coordinates in a group; 'height' has only"),
        ("scaled", "plane", ValueError, "`anisotropy` and `ard` are both set for group 'plane'"),
        ("line", "space", ValueError, "'space' has only one coordinate. Leave it out"),
        ("cycle", "season", ValueError, "'season' is a cycle"),
    ],
)
def test_what_cannot_be(system, given, kind, message):
    """What was found is said, and what there is."""
    with pytest.raises(kind, match=message):
        free_groups(given, SYSTEMS[system]().coordinates)


@pytest.mark.parametrize("call", [xcopula.fit, xcopula.cross_validate])
def test_before_any_work(call, monkeypatch):
    """Also where the result would be thrown away."""
    monkeypatch.setattr("xcopula.fitting.alone.Alone.fit", None)
    with pytest.raises(CoordinateError, match=r"`anisotropy` names groups \['wind'\]"):
        call(world(20, 0.0, 1.0), "v0", anisotropy="wind")


@pytest.mark.parametrize(("width", "free"), [(20.0, True), (150.0, True), (360.0, False)])
def test_half_the_globe(width, free):
    """On more of it sites have no east and north in common: nothing is free there."""
    observed = globe(np.linspace(0.0, width, 40, endpoint=False), np.tile([-10.0, 10.0], 20))
    given = free_groups(True, observed.coordinates)
    assert given == (True,)
    (group,) = input_groups(observed, given)
    assert (len(group.directions) == 2) == free
    assert input_groups(observed)[0].directions == ()


def test_default_on_a_line():
    """There are no directions, and nothing is said of it."""
    x = np.linspace(0.0, 10.0, 40)
    data = xr.Dataset({"v": ("x", np.exp(np.sin(x) + 0.1 * RNG.normal(size=40)))}, {"x": x})
    model = xcopula.fit(data, "v", **GIVEN)
    assert model.theta.size == 4
    assert "along" not in model.summary()


def test_default_at_fewer_sites_than_a_metric_has_parameters():
    """Two stations and many days: the prior says that ranges are equal."""
    days = np.datetime64("2020-01-01", "ns") + np.arange(30) * np.timedelta64(1, "D")
    values = np.exp(np.sin(np.arange(30) / 5.0) + 0.2 * RNG.normal(size=(2, 30)))
    coords = {"x": ("s", [0.0, 1.0]), "y": ("s", [0.0, 2.0]), "time": days}
    model = xcopula.fit(xr.Dataset({"v": (("s", "time"), values)}, coords), "v", **GIVEN)
    assert float(model.parameters["anisotropy_ratio"].sel(group="space")) < 1.5
    assert np.isfinite(model.loo()["crps"]).all()


@pytest.mark.parametrize(
    ("angle", "ratio", "seed"),
    [(52.0, 5.0, 0), (140.0, 5.0, 1), (0.0, 1.0, 0), (0.0, 1.0, 1), (0.0, 1.0, 2)],
)
def test_worlds_of_200_sites(angle, ratio, seed):
    """A strong direction is recovered; without one ranges stay nearly equal."""
    model = xcopula.fit(world(200, angle, ratio, seed=seed), "v0", **GIVEN)
    found = model.parameters.sel(group="space")
    if ratio == 1.0:
        assert float(found["anisotropy_ratio"]) < 1.5
    else:
        away = (float(found["anisotropy_angle"]) - angle + 90.0) % 180.0 - 90.0
        assert abs(away) < 8.0
        assert 0.6 * ratio < float(found["anisotropy_ratio"]) < 1.5 * ratio
