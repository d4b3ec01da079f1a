"""Numbers of sites against a comparison of all pairs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.process import NO_SITE, Sites, number_sites


def partition(places, tolerance):
    """Join every two positions (k, n) that agree within the tolerance; return a label of each."""
    size = places.shape[1]
    label = list(range(size))
    for a in range(size):
        for b in range(a):
            if (np.abs(places[:, a] - places[:, b]) <= tolerance).all():
                label = [label[a] if x == label[b] else x for x in label]
    return np.array(label)


def assert_same_partition(left, right):
    """Compare two labellings, whatever their labels are."""
    np.testing.assert_array_equal(left[:, None] == left, right[:, None] == right)


@st.composite
def lattices(draw):
    """Draw positions on a lattice of half tolerances: chains, ties, and pairs just one apart.

    Tolerances are powers of two, so that distances are exact.
    """
    dimension = draw(st.integers(1, 3))
    tolerance = np.array([2.0 ** draw(st.integers(-30, 6)) for _ in range(dimension)])
    extent = draw(st.sampled_from([3, 8, 20, 60]))
    column = st.lists(st.integers(0, extent), min_size=dimension, max_size=dimension)
    steps = draw(st.lists(column, min_size=1, max_size=40))
    return 0.5 * np.array(steps, float).T * tolerance[:, None], tolerance


class TestNumbers:
    @given(lattices())
    @settings(max_examples=150, deadline=None)
    def test_against_all_pairs(self, drawn):
        """Chains are one site, and each coordinate has a tolerance of its own."""
        places, tolerance = drawn
        sites, numbers = number_sites(places, tolerance)
        assert_same_partition(numbers, partition(places, tolerance))
        assert numbers.dtype == sites.numbers.dtype == np.int64
        assert set(numbers.tolist()) == set(range(numbers.max() + 1))

    @given(st.integers(0, 2**16), st.integers(1, 40), st.sampled_from([1e-9, 0.02, 0.2]))
    @settings(max_examples=50, deadline=None)
    def test_any_positions(self, seed, size, near):
        """The same for positions anywhere, some of them repeated and some moved a little."""
        rng = np.random.default_rng(seed)
        places = rng.uniform(-1.0, 1.0, size=(2, size))
        again = places[:, rng.integers(size, size=size)] + rng.choice([0.0, 0.6 * near], size)
        places, tolerance = np.hstack([places, again]), near * np.array([1.0, 0.5])
        _, numbers = number_sites(places, tolerance)
        assert_same_partition(numbers, partition(places, tolerance))

    def test_a_chain_is_one_site(self):
        """Neighbours within the tolerance join the ends, however far these are apart."""
        chain = np.arange(50.0)[None] * 0.9
        _, numbers = number_sites(np.hstack([chain, chain[:, -1:] + 1.1]), np.array([1.0]))
        assert set(numbers[:50].tolist()) == {numbers[0]}
        assert numbers[50] != numbers[0]

    def test_each_coordinate_has_its_tolerance(self):
        """Metres and seconds: what is near along one coordinate is far along another."""
        places = np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 5.0]])
        _, numbers = number_sites(places, np.array([10.0, 1.0]))
        assert numbers[0] == numbers[1] != numbers[2]

    def test_order_does_not_matter(self):
        """A permutation of the positions permutes the numbers, up to their names."""
        rng = np.random.default_rng(0)
        places = rng.integers(0, 6, size=(2, 60)) * 0.7
        order = rng.permutation(60)
        _, numbers = number_sites(places, np.ones(2))
        _, again = number_sites(places[:, order], np.ones(2))
        assert_same_partition(numbers[order], again)

    def test_many_observations_of_few_sites(self):
        """Positions that repeat are found by sorting: their pairs are never listed."""
        rng = np.random.default_rng(0)
        which = rng.integers(20, size=200_000)
        few = rng.uniform(size=(2, 20))
        sites, numbers = number_sites(few[:, which], np.full(2, 1e-9))
        assert sites.places.shape == (2, 20)
        assert np.unique(numbers).size == 20
        assert all(np.unique(numbers[which == k]).size == 1 for k in range(20))

    def test_negative_zero_is_zero(self):
        """The two zeros of floating point are one place."""
        _, numbers = number_sites(np.array([[0.0, -0.0, 1.0, -0.0]]), np.array([1e-9]))
        assert_same_partition(numbers, np.array([0, 0, 1, 0]))

    def test_none(self):
        """No positions have no sites, and nothing is found among them."""
        sites, numbers = number_sites(np.empty((2, 0)), np.ones(2))
        assert numbers.shape == (0,)
        assert sites.find(np.zeros((2, 3))).tolist() == [NO_SITE] * 3


class TestFind:
    @given(lattices())
    @settings(max_examples=60, deadline=None)
    def test_the_data_are_found(self, drawn):
        """Each position is found with the number it was given."""
        places, tolerance = drawn
        sites, numbers = number_sites(places, tolerance)
        np.testing.assert_array_equal(sites.find(places), numbers)

    @given(st.integers(0, 2**16))
    @settings(max_examples=40, deadline=None)
    def test_against_all_distances(self, seed):
        """The nearest position counts, if it is within the tolerance along every coordinate."""
        rng = np.random.default_rng(seed)
        tolerance = np.array([0.1, 0.02])
        places, points = rng.uniform(size=(2, 30)), rng.uniform(size=(2, 50))
        sites, numbers = number_sites(places, tolerance)
        gaps = np.abs(points[:, :, None] - places[:, None]) / tolerance[:, None, None]
        far = gaps.max(axis=0)
        expected = np.where(far.min(axis=1) <= 1.0, numbers[far.argmin(axis=1)], NO_SITE)
        np.testing.assert_array_equal(sites.find(points), expected)

    def test_a_tolerance_away_is_there_and_beyond_is_not(self):
        """A point exactly one tolerance off stands at the site; rounding is forgiven."""
        sites, _ = number_sites(np.array([[0.3], [0.7]]), np.array([1e-3, 1e-2]))
        points = np.array([[0.301, 0.3, 0.3011, 0.3], [0.7, 0.71, 0.7, 0.7101]])
        assert sites.find(points).tolist() == [0, 0, NO_SITE, NO_SITE]

    def test_unknown_positions_are_no_site(self):
        """NaN and infinity are nowhere, and do not disturb the others."""
        sites, _ = number_sites(np.array([[0.0, 1.0], [0.0, 1.0]]), np.full(2, 1e-9))
        points = np.array([[1.0, np.nan, 0.0, np.inf], [1.0, 0.0, np.nan, 0.0]])
        assert sites.find(points).tolist() == [sites.find(np.ones((2, 1)))[0], -1, -1, -1]

    def test_no_points(self):
        """Nothing asked, nothing found."""
        sites, _ = number_sites(np.zeros((2, 1)), np.ones(2))
        found = sites.find(np.empty((2, 0)))
        assert found.shape == (0,)
        assert found.dtype == np.int64

    def test_numbers_may_be_any(self):
        """Places may repeat and have numbers that were given elsewhere."""
        sites = Sites(np.array([[0.0, 0.0, 5.0]]), np.array([7, 7, 3]), np.array([1e-9]))
        assert sites.find(np.array([[5.0, 0.0, 1.0]])).tolist() == [3, 7, NO_SITE]


class TestTravel:
    def test_the_tree_stays_at_home(self):
        """A pickle holds the arrays only; what comes back finds the same."""
        rng = np.random.default_rng(1)
        places = rng.uniform(size=(2, 500))
        sites, numbers = number_sites(places, np.full(2, 1e-9))
        before = pickle.dumps(sites)
        np.testing.assert_array_equal(sites.find(places), numbers)
        assert "_tree" in vars(sites)
        assert pickle.dumps(sites) == before
        back = pickle.loads(before)
        assert set(vars(back)) == {"places", "numbers", "tolerance"}
        np.testing.assert_array_equal(back.find(places), numbers)

    def test_the_tree_is_built_once(self, monkeypatch):
        """Many questions, one tree."""
        from xcopula.process import sites as module

        built = []
        original = module._tree
        monkeypatch.setattr(module, "_tree", lambda *a: built.append(1) or original(*a))
        sites = Sites(np.zeros((1, 1)), np.zeros(1, np.int64), np.ones(1))
        for _ in range(5):
            sites.find(np.zeros((1, 4)))
        assert built == [1]

    def test_it_is_frozen(self):
        """Sites cannot be changed."""
        with pytest.raises(AttributeError):
            Sites(np.zeros((1, 1)), np.zeros(1, np.int64), np.ones(1)).numbers = np.ones(1)
