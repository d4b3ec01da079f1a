"""From numpy to the compiled loops: shapes, blocks that agree, one compilation for all arrays."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.jit import pairs
from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import (
    add_signal_contraction,
    contract_lower,
    cross,
    floats,
    ints,
    lower,
    no_contraction,
    scaled_inputs,
    signal,
)
from xcopula.kernels.covariance import Covariance, CovarianceState, InputGroup

COVARIANCE = Covariance(
    (KERNELS["matern32"], KERNELS["se"], KERNELS["matern12"]),
    (InputGroup(2, ard=True), InputGroup(1)),
    structures=2,
)


@pytest.fixture
def setting():
    """Three tasks, partly at common sites: state, scaled inputs, sites, offsets."""
    rng = np.random.default_rng(0)
    state = COVARIANCE.state(reference.random_theta(COVARIANCE, rng))
    blocks = reference.random_inputs(COVARIANCE, rng, [9, 7, 8], together=4)
    inputs, sites, offsets = reference.stacked(blocks)
    return state, scaled_inputs(inputs, state), sites, offsets


@pytest.mark.parametrize("task", [0, 1, 2])
def test_cross_is_a_block_of_the_full_matrix(setting, task):
    """The covariance of a task's own sites with all is a row block of the whole, to 1e-15."""
    state, inputs, sites, offsets = setting
    matrix = lower(state, inputs, sites, offsets)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    own = slice(offsets[task], offsets[task + 1])
    rows = cross(state, inputs[:, own], sites[own], task, inputs, sites, offsets)
    np.testing.assert_allclose(rows, matrix[own], rtol=0, atol=1e-15)


def test_cross_fills_the_first_rows_of_out(setting):
    """A buffer with more rows than targets is filled from the top, and those rows returned."""
    state, inputs, sites, offsets = setting
    out = np.full((10, sites.size), np.nan)
    rows = cross(state, inputs[:, :4], None, 0, inputs, sites, offsets, nugget=False, out=out)
    assert rows.base is out
    assert rows.shape == (4, sites.size)
    assert np.isfinite(out[:4]).all()
    assert np.isnan(out[4:]).all()


def test_cross_with_a_nugget_needs_the_targets_sites(setting):
    """Without the numbers of the targets' sites nobody knows where the nugget is shared."""
    state, inputs, sites, offsets = setting
    with pytest.raises(ValueError, match=r"target_sites is None.*or nugget=False"):
        cross(state, inputs, None, 0, inputs, sites, offsets)


def test_signal_is_the_covariance_without_nugget(setting):
    """The signal of the data with itself is the whole less the nugget at common sites, to 1e-15."""
    state, inputs, sites, offsets = setting
    tasks = np.repeat(np.arange(3), np.diff(offsets))
    nugget = state.nugget[np.ix_(tasks, tasks)] * (sites[:, None] == sites)
    both = signal(state, inputs, offsets, inputs, offsets) + nugget
    whole = lower(state, inputs, sites, offsets)
    np.testing.assert_allclose(np.tril(both), np.tril(whole), rtol=0, atol=1e-15)
    np.testing.assert_allclose(both, both.T, rtol=0, atol=1e-15)


def test_contractions_rebuild_the_sum(setting):
    """The covariance is linear in its task matrices: contractions rebuild the sum, to 1e-12."""
    state, inputs, sites, offsets = setting
    weights = np.random.default_rng(2).normal(size=(sites.size, sites.size))
    unscaled = state._replace(freedom=np.zeros(len(state.freedom), np.int64))
    by = contract_lower(unscaled, weights, np.zeros(sites.size), inputs, sites, offsets)
    total = (by.amplitudes * state.amplitudes).sum() + (by.nugget * state.nugget).sum()
    filled = np.tril(lower(state, inputs, sites, offsets), -1)
    assert total == pytest.approx(float((np.tril(weights, -1) * filled).sum()), abs=1e-12)
    assert (by.moments == 0.0).all()


def test_signal_contraction_is_added(setting):
    """Lower weights against the data twice, as two sets and as one, give the same, to 1e-12."""
    state, inputs, sites, offsets = setting
    rng = np.random.default_rng(3)
    weights = np.tril(rng.normal(size=(sites.size, sites.size)), -1)
    expected = contract_lower(state, weights, np.zeros(sites.size), inputs, sites, offsets)
    by = no_contraction(state)
    by.slope[:] = 1.0
    add_signal_contraction(by, state, weights, inputs, offsets, inputs, offsets)
    np.testing.assert_allclose(by.slope - 1.0, expected.slope, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by.moments, expected.moments, rtol=1e-12, atol=1e-12)
    assert (by.nugget == 0.0).all()


def test_no_loop_is_compiled_twice(setting):
    """Arrays that are read-only, or of another layout, do not make numba compile again."""
    state, inputs, sites, offsets = setting
    n = sites.size
    rng = np.random.default_rng(4)

    def run(inputs, sites, offsets, weights, alpha, *state):
        state = CovarianceState(*state)
        filled = lower(state, inputs, sites, offsets)
        rows = cross(state, inputs, sites, 1, inputs, sites, offsets)
        by = contract_lower(state, weights, alpha, inputs, sites, offsets)
        add_signal_contraction(by, state, weights, inputs, offsets, inputs, offsets)
        return np.tril(filled), rows, *by

    arrays = inputs, sites, offsets, rng.normal(size=(n, n)), rng.normal(size=n), *state
    expected = run(*arrays)
    loops = (pairs.fill, pairs.contract)
    before = [len(loop.signatures) for loop in loops]
    frozen = [a.copy() for a in arrays]
    for a in frozen:
        a.flags.writeable = False
    for changed in (frozen, [np.asfortranarray(a) for a in arrays]):
        for a, b in zip(run(*changed), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert [len(loop.signatures) for loop in loops] == before


@pytest.mark.parametrize("shape", [(3, 4), (0,), (2, 0)])
@pytest.mark.parametrize(("alike", "kind"), [(floats, np.float64), (ints, np.int64)])
def test_read_only_arrays_are_not_copied(alike, kind, shape):
    """The loops see the same memory, as writeable; the array itself stays closed and alive."""
    array = np.ones(shape, kind)
    array.flags.writeable = False
    seen = alike(array)
    assert seen.flags.carray
    assert seen.dtype == kind
    assert seen.shape == shape
    assert seen.ctypes.data == array.ctypes.data
    assert not array.flags.writeable
    del array
    assert (seen == 1).all()


@pytest.mark.parametrize("made", [np.asfortranarray, lambda a: a[:, ::2], lambda a: a.astype("f4")])
def test_arrays_of_another_kind_are_copied(made):
    """Another layout or another type is brought into the one that the loops were compiled for."""
    array = made(np.arange(12.0).reshape(3, 4))
    array.flags.writeable = False
    seen = floats(array)
    assert seen.flags.carray
    assert seen.dtype == np.float64
    assert not np.shares_memory(seen, array)
    np.testing.assert_array_equal(seen, array)


def test_scaled_inputs(setting):
    """Points are mapped, each as it would be alone, and the result is ready for the loops."""
    state, inputs, _, _ = setting
    scaled = scaled_inputs(np.asfortranarray(inputs), state)
    np.testing.assert_allclose(scaled, state.mapping @ inputs, rtol=1e-14)
    assert scaled.flags.carray
    alone = [scaled_inputs(inputs[:, [k]], state) for k in range(inputs.shape[1])]
    np.testing.assert_array_equal(np.concatenate(alone, axis=1), scaled)


def test_scaled_inputs_are_those_given_where_all_directions_are_alike():
    """To the last bit, and a copy."""
    covariance = Covariance((KERNELS["se"],), (InputGroup(2), InputGroup(1)))
    inputs = np.random.default_rng(0).normal(size=(3, 5))
    scaled = scaled_inputs(inputs, covariance.state(np.zeros(covariance.size)))
    np.testing.assert_array_equal(scaled, inputs)
    assert not np.shares_memory(scaled, inputs)
