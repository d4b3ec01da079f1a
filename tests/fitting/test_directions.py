"""What is asked of directions, what a variable alone tells of them, and the choice of all."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from directional import turned_signal, world
from sources import EAST, NORTH

import xcopula
from xcopula.errors import CoordinateError, NotPositiveDefiniteError
from xcopula.fitting import directions
from xcopula.fitting.alone import Alone
from xcopula.fitting.directions import (
    Turned,
    asked_of_groups,
    check_directions,
    choose_directions,
    input_groups,
    open_groups,
    try_directions,
)
from xcopula.kernels import KERNELS
from xcopula.labels.observations import observe
from xcopula.marginals import LogNormal
from xcopula.solvers import Exact, Neighbours

NAMES = {"plane": ["x", "y"], "height": "z"}


def plane(size=30, **options):
    """Observe a plane and a height."""
    rng = np.random.default_rng(0)
    places = {name: ("s", rng.uniform(size=size)) for name in ("x", "y", "z")}
    data = xr.Dataset({"v": ("s", rng.uniform(1.0, 2.0, size))}, coords=places)
    return observe(data, ["v"], NAMES, **options)


def globe(lon, lat):
    coords = {
        "lon": ("s", np.asarray(lon, float), EAST),
        "lat": ("s", np.asarray(lat, float), NORTH),
    }
    return observe(xr.Dataset({"v": ("s", np.arange(len(lon)) + 1.0)}, coords=coords), ["v"])


class TestAsked:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("auto", (None, False)),
            (True, (True, False)),
            (np.True_, (True, False)),
            (False, (False, False)),
            ("plane", (True, False)),
            (["plane"], (True, False)),
            ([], (False, False)),
            ({"plane": "auto"}, (None, False)),
            ({"plane": False}, (False, False)),
            ({"height": "auto"}, (None, False)),
            ({"plane": True, "height": False}, (True, False)),
        ],
    )
    def test_by_group(self, given, expected):
        assert asked_of_groups(given, plane().coordinates) == expected

    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            (5, TypeError, r"`anisotropy` is 'auto', True, False or the names of groups, found 5"),
            (None, TypeError, r"`anisotropy` is 'auto', True, False or the names of groups"),
            ({"plane": 2.0}, TypeError, r"`anisotropy` of 'plane' must be 'auto', True or False"),
            ("wind", CoordinateError, r"names groups \['wind'\]; the groups .* \['plane', 'height"),
            ({"wind": True}, CoordinateError, r"names groups \['wind'\]"),
            ("height", ValueError, r"at least two coordinates in a group; 'height' has only one"),
            ({"height": True}, ValueError, r"'height' has only one coordinate\. Leave it out"),
        ],
    )
    def test_what_cannot_be(self, given, kind, message):
        with pytest.raises(kind, match=message):
            asked_of_groups(given, plane().coordinates)

    @pytest.mark.parametrize("given", [True, "plane", {"plane": True}])
    def test_not_beside_scales_of_axes(self, given):
        system = plane(ard=["plane"]).coordinates
        with pytest.raises(ValueError, match=r"`anisotropy` and `ard` are both asked for"):
            asked_of_groups(given, system)
        assert asked_of_groups("auto", system) == (False, False)

    def test_a_line_has_no_directions(self):
        data = xr.Dataset({"v": ("x", np.arange(9.0))}, coords={"x": np.arange(9.0)})
        with pytest.raises(ValueError, match=r"`anisotropy=True` needs a group of at least two"):
            asked_of_groups(True, observe(data, ["v"], "x").coordinates)

    def test_a_cycle_has_none(self):
        times = np.datetime64("2001-01-01", "ns") + np.arange(9) * np.timedelta64(40, "D")
        data = xr.Dataset({"v": ("time", np.arange(9.0))}, coords={"time": times})
        system = observe(data, ["v"], xcopula.cycle("time")).coordinates
        assert asked_of_groups("auto", system) == (False,)
        with pytest.raises(ValueError, match=r"in a group; 'season' is a cycle"):
            asked_of_groups("season", system)

    def test_many_columns_are_not_tried_unasked(self):
        rng = np.random.default_rng(0)
        places = {name: ("s", rng.uniform(size=40)) for name in "abcd"}
        data = xr.Dataset({"v": ("s", rng.uniform(size=40))}, coords=places)
        system = observe(data, ["v"], list("abcd")).coordinates
        assert asked_of_groups("auto", system) == (False,)
        assert asked_of_groups(True, system) == (True,)

    def test_before_any_work(self):
        with pytest.raises(CoordinateError, match=r"`anisotropy` names groups \['wind'\]"):
            xcopula.fit(world(20, 0.0, 1.0), "v0", anisotropy="wind")
        with pytest.raises(CoordinateError, match=r"`anisotropy` names groups \['wind'\]"):
            xcopula.cross_validate(world(20, 0.0, 1.0), "v0", anisotropy="wind")


class TestSites:
    def test_fewer_than_the_metric_has_parameters(self):
        """Two stations and many days: an angle, a ratio and a length are three."""
        rng = np.random.default_rng(0)
        x = np.repeat([0.0, 1.0], 20)
        data = xr.Dataset(
            {"v": ("s", rng.uniform(size=40))},
            coords={"x": ("s", x), "y": ("s", 2.0 * x), "t": ("s", np.tile(np.arange(20.0), 2))},
        )
        seen = observe(data, ["v"], {"space": ["x", "y"], "t": "t"})
        message = r"`anisotropy` of 'space' has 3 parameters .* variable 'v' has only 2 sites"
        with pytest.raises(ValueError, match=message):
            check_directions(seen, (True, False))
        assert check_directions(seen, (None, False)) == (False, False)

    @pytest.mark.parametrize(("size", "expected"), [(29, False), (30, None)])
    def test_a_few_decide_nothing(self, size, expected):
        """Ten sites for each parameter, or it is not tried; what was asked for is done."""
        seen = plane(size)
        assert check_directions(seen, (None, False)) == (expected, False)
        assert check_directions(seen, (True, False)) == (True, False)

    def test_all_over_the_globe(self):
        rng = np.random.default_rng(0)
        everywhere = globe(rng.uniform(-180, 180, 60), rng.uniform(-80, 80, 60))
        with pytest.raises(CoordinateError, match=r"needs sites on less than half the globe"):
            check_directions(everywhere, (True,))
        assert check_directions(everywhere, (None,)) == (False,)
        region = globe(rng.uniform(5, 15, 60), rng.uniform(40, 50, 60))
        assert check_directions(region, (None,)) == (None,)


def test_groups_that_were_asked_for_have_directions():
    seen = plane()
    free, line = input_groups(seen, (True, False))
    assert free.directions == ((1.0, 0.0), (0.0, 1.0))
    assert line.directions == ()
    assert input_groups(seen, (None, False)) == input_groups(seen)
    assert open_groups((True, None, False, None)) == [1, 3]


def variable(data, name="v0", solver=None):
    """Return a variable alone, how it is fitted without directions, and the coordinates."""
    seen = observe(data, [name])
    alone = Alone(seen.sample, input_groups(seen), 1, solver or Exact())
    null = alone.fit(KERNELS["matern32"], LogNormal.fit(seen.sample.values))
    return alone, null, seen.coordinates


def tried(data, name="v0", solver=None):
    alone, null, system = variable(data, name, solver)
    (found,) = try_directions(alone, null, (None,), system)
    return alone, null, found


class TestTry:
    def test_a_direction_is_fitted(self):
        """As from any start: the fit with a free metric from the beginning ends there too."""
        alone, null, (turned, gain, error) = tried(world(100, 52.0, 4.0))
        assert gain == pytest.approx(turned.log_likelihood - null.log_likelihood)
        assert gain > 10.0
        assert error == 0.0
        assert turned.aic == pytest.approx(
            2.0 * (null.theta.size + 2 - turned.log_likelihood), abs=1e-9
        )
        free = Alone(alone.sample, turned.groups, 1, Exact())
        again = free.fit(KERNELS["matern32"], null.marginal)
        assert turned.log_likelihood == pytest.approx(again.log_likelihood, abs=0.02)

    def test_none_costs_a_few_evaluations(self, monkeypatch):
        """Where the score promises little there is no fit, only the step that it suggests."""
        fits = []
        monkeypatch.setattr(Alone, "fit", lambda *a, fit=Alone.fit: fits.append(a) or fit(*a))
        alone, null, (turned, gain, _) = tried(world(80, 0.0, 1.0, seed=1))
        assert len(fits) == 1  # the null
        assert gain == pytest.approx(turned.log_likelihood - null.log_likelihood)
        assert 0.0 < gain < 1.0
        free = Alone(alone.sample, turned.groups, 1, Exact())
        whole = free.fit(KERNELS["matern32"], null.marginal)
        assert gain == pytest.approx(whole.log_likelihood - null.log_likelihood, abs=0.2)

    def test_what_cannot_be_factorised_is_passed_over(self, monkeypatch):
        alone, null, system = variable(world(40, 0.0, 1.0))

        def fail(*_):
            raise NotPositiveDefiniteError("no")

        monkeypatch.setattr(directions, "_try", fail)
        found = try_directions(alone, null, (None,), system)
        assert found == [(null, 0.0, 0.0)]
        assert choose_directions([[null]], [found], [alone], (None,)) == [[null]]

    def test_a_value_far_in_the_tail_has_no_say(self):
        """An outlier under a light tail would be explained by a ratio of 40."""
        data = world(60, 0.0, 1.0, seed=1)
        data["v0"][3] = 1e3
        alone, null, (turned, gain, _) = tried(data)
        assert null.largest_score > 5.0
        assert gain == 0.0
        assert turned.log_likelihood == pytest.approx(null.log_likelihood, abs=1e-9)
        free = Alone(alone.sample, turned.groups, 1, Exact())
        whole = free.fit(KERNELS["matern32"], null.marginal)
        assert whole.log_likelihood > null.log_likelihood + 2.0
        assert choose_directions([[null]], [[Turned(turned, 0.0, 0.0)]], [alone], (None,)) == [
            [null]
        ]


class TestChoice:
    def test_of_one_variable(self):
        alone, null, turned = tried(world(100, 52.0, 4.0))
        (table,) = choose_directions([[null]], [[turned]], [alone], (None,))
        assert table == [turned.candidate, null]
        alone, null, turned = tried(world(80, 0.0, 1.0, seed=1))
        assert choose_directions([[null]], [[turned]], [alone], (None,)) == [[null]]

    def test_by_neighbours_on_common_terms(self):
        alone, null, turned = tried(world(100, 52.0, 4.0), solver=Neighbours(20))
        (table,) = choose_directions([[null]], [[turned]], [alone], (None,))
        assert table[0] is turned.candidate

    @pytest.mark.parametrize(("bearing", "together"), [(52.0, True), (142.0, False)])
    def test_variables_that_agree_or_not(self, bearing, together):
        """Each alone has a direction; where they are across each other no metric suits both."""
        one, other = world(100, 52.0, 3.0, seed=2), world(100, bearing, 3.0, seed=8)
        trials = [tried(one), tried(other)]
        nulls, turned = [[t[1]] for t in trials], [[t[2]] for t in trials]
        alone = [t[0] for t in trials]
        for k in range(2):
            (table,) = choose_directions([nulls[k]], [turned[k]], [alone[k]], (None,))
            assert len(table) == 2
        tables = choose_directions(nulls, turned, alone, (None,))
        assert [len(t) for t in tables] == [1 + together] * 2

    def test_of_two_groups(self):
        """Each is tried by itself; candidates with both have the metrics of both."""
        rng = np.random.default_rng(3)
        places = rng.uniform(0.0, 100.0, (4, 150))
        signal = turned_signal(places[:2].T, 52.0, 5.0, 50.0)
        signal *= turned_signal(places[2:].T, 10.0, 5.0, 50.0)
        z = np.linalg.cholesky(signal + 0.01 * np.eye(150)) @ rng.normal(size=150)
        coords = {name: ("s", own) for name, own in zip("xypq", places, strict=True)}
        data = xr.Dataset({"v0": ("s", np.exp(z))}, coords=coords)
        seen = observe(data, ["v0"], {"first": ["x", "y"], "second": ["p", "q"]})
        alone = Alone(seen.sample, input_groups(seen), 1, Exact())
        null = alone.fit(KERNELS["matern32"], LogNormal.fit(seen.sample.values))
        trials = try_directions(alone, null, (None, None), seen.coordinates)
        both = [t.candidate for t in trials]
        assert [bool(g.directions) for c in both for g in c.groups] == [True, False, False, True]
        (table,) = choose_directions([[null]], [trials], [alone], (None, None))
        assert [bool(g.directions) for g in table[0].groups] == [True, True]
        whole = alone.process(null.kernel, null.marginal).covariance
        whole = type(whole)(whole.kernels, table[0].groups, noise="independent")
        for k in range(2):
            single = type(whole)(whole.kernels, both[k].groups, noise="independent")
            np.testing.assert_array_equal(
                whole.metrics(table[0].theta)[k], single.metrics(both[k].theta)[k]
            )
