"""What is withheld together."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.observations import observe
from xcopula.validation.folds import assign, find_labels


@pytest.fixture(scope="module")
def seen(sites):
    """40 values of the metal and 60 of the proxy."""
    return observe(sites, ["metal", "proxy"])


@pytest.fixture(scope="module")
def panel(network):
    """Stations with several times."""
    return observe(network, ["flow", "level"])


def of_primary(folds, seen):
    """Return the fold of each value of the primary."""
    return folds.of(seen)[seen.sample.task(0)]


class TestSites:
    def test_even_and_by_seed(self, seen):
        """Each fold has as many sites; the seed decides which."""
        first, again, other = (assign(seen, 7, seed=s) for s in (3, 3, 4))
        np.testing.assert_array_equal(first.of_site, again.of_site)
        assert (first.of_site != other.of_site).any()
        sizes = np.bincount(of_primary(first, seen))
        assert sizes.size == 7
        assert np.ptp(sizes) <= 1

    def test_sites_without_the_primary_are_never_withheld(self, seen):
        """They are no places that are predicted."""
        fold = assign(seen, 5).of(seen)[seen.sample.task(1)]
        np.testing.assert_array_equal(fold < 0, np.arange(60) >= 40)

    def test_more_folds_than_sites(self, seen):
        """As many as there are leave one out each."""
        assert np.bincount(of_primary(assign(seen, 40), seen)).tolist() == [1] * 40
        with pytest.raises(ValueError, match=r"41 folds were asked for, .* has 40 sites"):
            assign(seen, 41)


class TestBlocks:
    def test_values_are_nearest_to_their_own_block(self, seen):
        """Each site belongs to the block whose middle is nearest, secondaries too."""
        folds = assign(seen, "blocks", count=6)
        fold = folds.of(seen)
        assert set(fold) == set(range(6))
        own = of_primary(folds, seen)
        x = seen.positions[:40]
        middles = np.array([x[own == k].mean(axis=0) for k in range(6)])
        near = np.linalg.norm(x[:, None] - middles, axis=2).argmin(axis=1)
        assert (near == own).mean() > 0.9  # means of the last step, not of the last but one
        spread = [np.ptp(x[own == k], axis=0).max() for k in range(6)]
        assert max(spread) < 0.8 * np.ptp(x, axis=0).max()

    def test_every_block_has_values_of_the_primary(self, seen):
        """Also where many are asked for; ten by default."""
        assert np.unique(of_primary(assign(seen, "blocks"), seen)).size == 10
        for count in (2, 20, 40):
            folds = assign(seen, "blocks", count=count)
            assert (np.bincount(of_primary(folds, seen), minlength=folds.labels.size) > 0).all()

    def test_all_times_of_a_place(self, panel):
        """Blocks are in space where there is space."""
        fold = of_primary(assign(panel, "blocks", count=3), panel)
        places = panel.positions[panel.sample.task(0)][:, :2]
        for place in np.unique(places, axis=0):
            assert np.unique(fold[(places == place).all(axis=1)]).size == 1

    def test_more_blocks_than_places(self, panel):
        """Stations count once."""
        with pytest.raises(ValueError, match=r"9 folds were asked for, .* 8 different places"):
            assign(panel, "blocks", count=9)


class TestStations:
    def test_whole(self, panel, network):
        """All times of a station, and its secondaries, are in one fold."""
        folds = assign(panel, "stations")
        assert folds.labels.size == 8
        stations = np.repeat(np.arange(8), 6)
        for task, name in enumerate(("flow", "level")):
            own = folds.of(panel)[panel.sample.task(task)]
            known = stations[network[name].notnull().values.ravel()]
            assert all(np.unique(own[known == k]).size == 1 for k in range(8))
        few = assign(panel, "stations", count=3, seed=1)
        assert np.unique(of_primary(few, panel)).size == 3

    def test_none_that_repeats(self, seen):
        """Without times there are no stations."""
        with pytest.raises(ValueError, match=r"several values.*found one value at each place"):
            assign(seen, "stations")

    def test_one_only(self, network):
        """A series has one place."""
        one = observe(network.isel(station=0), ["level"], coords="time")
        with pytest.raises(ValueError, match="found all values at one place"):
            assign(one, "stations")


class TestTime:
    def test_spans_follow_each_other(self, panel):
        """Each value belongs to the span of its day."""
        folds = assign(panel, "time", count=3)
        days = panel.positions[:, 2]
        np.testing.assert_array_equal(folds.of(panel), (days - days.min()) // 2)
        assert assign(panel, "time").labels.size == 6

    def test_secondaries_outside_are_not_withheld(self, network):
        """Before the first and after the last time of the primary."""
        late = network.assign(flow=network["flow"].where(network["time"].dt.day.isin([2, 3, 4])))
        seen = observe(late, ["flow", "level"])
        fold = assign(seen, "time").of(seen)[seen.sample.task(1)].reshape(8, 6)
        assert (fold == [-1, 0, 1, 2, -1, -1]).all()

    def test_without_a_time(self, seen):
        """The coordinates are named."""
        with pytest.raises(ValueError, match=r"needs a time among the coordinates, found \['x'"):
            assign(seen, "time")


class TestGiven:
    def test_labels_of_the_values(self, panel, network):
        """On some of the dims; secondaries at the same sites share them."""
        region = xr.DataArray(list("aabbccab"), dims="station")
        folds = assign(panel, "region", given=region)
        assert folds.labels.tolist() == ["a", "b", "c"]
        assert folds.kind == "given"
        each = folds.labels[of_primary(folds, panel)]
        known = network["flow"].notnull().values.ravel()
        assert each.tolist() == np.repeat(list("aabbccab"), 6)[known].tolist()

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            (xr.DataArray(np.arange(7), dims="station"), r"dims of its own, \{'station': 8"),
            (xr.DataArray(np.arange(8), dims="place"), r"found \{'place': 8\}"),
            (xr.DataArray(1), r"found \{\}"),
            (xr.DataArray([0, 1, np.nan, 0, 1, 2, 1, 0.0], dims="station"), "missing at 5 of the"),
            (xr.DataArray([4] * 8, dims="station"), "one label only, .*4"),
            (
                xr.DataArray(np.arange(8), {"station": list("abcdefgh")}, dims="station"),
                "other labels along 'station'",
            ),
        ],
    )
    def test_bad_labels(self, panel, given, match):
        """Dims, gaps and labels are checked."""
        with pytest.raises(ValueError, match=match):
            assign(panel, "x", given=given)

    def test_labels_of_one_dim(self, sites):
        """An index of the data is compared too where it is as long as the values."""
        named = sites.assign_coords(site=[f"s{k}" for k in range(60)])
        seen, half = observe(named, ["metal"]), np.arange(60) % 2
        assert assign(seen, "x", given=named["metal"].copy(data=half)).labels.tolist() == [0, 1]
        turned = named["metal"].copy(data=half)[::-1]
        with pytest.raises(ValueError, match="other labels along 'site'"):
            assign(seen, "x", given=turned)

    def test_a_count_beside(self, panel):
        """It would have no effect."""
        with pytest.raises(
            ValueError, match="`count` is for 'blocks', 'stations', 'time'; found 3"
        ):
            assign(panel, 5, count=3)
        with pytest.raises(ValueError, match="`count` must be at least 2"):
            assign(panel, "blocks", count=1)


class TestFind:
    def test_names(self, network):
        """A variable of the data, or a coordinate of the primary; kinds come first."""
        data = network.assign(part=("station", np.arange(8) % 2))
        assert find_labels("part", data, "flow").dims == ("station",)
        assert find_labels("station", {"flow": network["flow"]}, "flow").dims == ("station",)
        assert find_labels("time", data, "flow") is None
        assert find_labels(5, data, "flow") is None

    def test_unknown(self, network):
        """The message says what there is."""
        with pytest.raises(ValueError, match=r"Unknown folds 'squares'.*'level', 'station'"):
            find_labels("squares", network, "flow")
        with pytest.raises(TypeError, match=r"`folds` must be an integer, found 2\.5"):
            find_labels(2.5, network, "flow")
        with pytest.raises(ValueError, match="`folds` must be at least 2, found 1"):
            find_labels(1, network, "flow")
