"""What each fold trains on."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.observations import observe
from xcopula.marginals import by
from xcopula.validation.folds import assign
from xcopula.validation.splits import split


@pytest.fixture(scope="module")
def seen(sites):
    """40 values of the metal and 60 of the proxy, both at the first 40 sites."""
    return observe(sites, ["metal", "proxy"])


def test_every_value_once(seen):
    """Predicted in one fold, and trained on in all others."""
    splits = split(seen, assign(seen, 4), drop=False, buffer=None)
    assert sorted(np.concatenate([s.test for s in splits])) == list(range(40))
    for s in splits:
        assert set(s.test) | set(s.train) == set(range(100))
        assert not set(s.test) & set(s.train)


def test_secondaries_at_the_same_places(seen):
    """With drop they are withheld too, and no others."""
    for s in split(seen, assign(seen, 4), drop=True, buffer=None):
        assert set(s.test + 40) == set(range(40, 100)) - set(s.train)


@pytest.mark.parametrize("drop", [False, True])
def test_a_buffer(seen, drop):
    """Nothing of what is withheld lies within the distance; all else is there."""
    x, own = seen.positions, np.arange(100) < 40
    for s in split(seen, assign(seen, "blocks", count=4), drop=drop, buffer={"space": 0.5}):
        distance = np.linalg.norm(x[:, None] - x[s.test], axis=2).min(axis=1)
        near = distance <= 0.5
        fold = assign(seen, "blocks", count=4).of(seen) == int(s.label)
        expected = ~(near | fold) | (~own & (not drop))
        np.testing.assert_array_equal(np.flatnonzero(expected), s.train)


class TestErrors:
    def test_nothing_left(self, seen):
        """A buffer of everything."""
        with pytest.raises(ValueError, match=r"Fold 0 leaves nothing of 'metal'.*smaller `buffer`"):
            split(seen, assign(seen, 4), drop=False, buffer={"space": 100.0})

    def test_too_little_left(self, seen):
        """Fewer than a law needs, of any variable."""
        few = xr.DataArray(np.r_[np.zeros(37), np.ones(23)], dims="site")
        folds = assign(seen, "x", given=few)
        with pytest.raises(ValueError, match=r"Fold 0.0 leaves 3 of 40 .*'metal'.*other folds\."):
            split(seen, folds, drop=False, buffer=None)

    def test_of_a_secondary(self, sites):
        """It can be kept."""
        both = sites.assign(proxy=sites["proxy"].where(sites["metal"].notnull()))
        seen = observe(both, ["metal", "proxy"])
        with pytest.raises(ValueError, match=r"of 'proxy' to train on.*secondaries='keep'"):
            split(
                observe(both.assign(proxy=both["proxy"].where(np.arange(60) < 8)), seen.names),
                assign(seen, 2),
                drop=True,
                buffer=None,
            )

    def test_values_that_are_all_the_same(self, sites):
        """They have no law."""
        flat = xr.where(np.arange(60) < 20, 1.0, sites["metal"])
        seen = observe(sites.assign(metal=flat), ["metal"])
        part = xr.DataArray(np.arange(60) < 20, dims="site")
        with pytest.raises(ValueError, match=r"20 values of 'metal' .* all the same, 1"):
            split(seen, assign(seen, "x", given=part), drop=False, buffer=None)

    def test_a_whole_group_of_a_law(self, sites):
        """There is nothing to fit its law to."""
        side = xr.where(sites["x"] > 2.0, "east", "west")
        seen = observe(
            sites.assign_coords(side=side.variable), ["metal"], laws=[by("side", "normal")]
        )
        with pytest.raises(ValueError, match=r"Fold .* withholds every value of side"):
            split(seen, assign(seen, "side", given=side), drop=False, buffer=None)
