"""Batches of targets: every one once, in order, within the byte budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.solvers import batches as module
from xcopula.solvers.batches import batches, batches_of_lists


@given(st.integers(0, 10**9), st.integers(0, 10**9))
@settings(max_examples=200, deadline=None)
def test_a_batch_stays_within_the_budget(size, width):
    """The first batch is as large as the budget allows, or one target that is larger than it."""
    first = next(batches(size, width), slice(0, 0))
    assert first.start == 0
    assert first.stop <= size
    bytes_of_one = 8 * max(width, 1)
    assert (first.stop - first.start <= 1) or first.stop * bytes_of_one <= module._BATCH_BYTES
    if first.stop < size:
        assert (first.stop + 1) * bytes_of_one > module._BATCH_BYTES


@given(st.integers(0, 3000), st.integers(0, 50), st.integers(1, 5000))
@settings(max_examples=100, deadline=None)
def test_every_target_comes_once_and_in_order(size, width, budget):
    """Slices follow each other without gaps, and end with the last target."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_BYTES", budget)
        parts = list(batches(size, width))
    assert list(itertools.chain(*(range(p.start, p.stop) for p in parts))) == list(range(size))
    assert all(p.stop > p.start for p in parts)


def test_nothing_is_cut_into_nothing():
    """No targets, no batches."""
    assert list(batches(0, 10)) == []


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(1, 4),
    st.integers(0, 30),
    st.integers(1, 9000),
)
@settings(max_examples=200, deadline=None)
def test_lists_in_batches(lengths, copies, width, budget):
    """Every list comes once and in order, and a batch is as large as the budget allows."""
    lists = [np.full(n, k) for k, n in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_BYTES", budget)
        parts = list(batches_of_lists(iter(lists), copies, width))
    assert [id(own) for _, held in parts for own in held] == [id(own) for own in lists]
    stops = [0, *(part.stop for part, _ in parts)]
    for start, (part, held) in zip(stops, parts, strict=False):
        assert (part.start, part.stop) == (start, start + len(held))
        assert held

        def size(some):
            return 8 * len(some) * (width + copies * max(map(len, some)))

        assert len(held) == 1 or size(held) <= budget
        if part.stop < len(lists):
            assert size([*held, lists[part.stop]]) > budget


def test_lists_are_taken_when_they_are_needed():
    """One batch is held, and the list that did not fit into it."""
    taken = []

    def lists():
        for k in range(10):
            taken.append(k)
            yield np.zeros(10)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_BYTES", 8 * 10 * 3)
        for part, held in batches_of_lists(lists(), 1, 0):
            assert len(held) <= 3
            assert len(taken) <= part.stop + 1
    assert len(taken) == 10
