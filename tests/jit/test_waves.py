"""Compiled sums of waves, and numbers that belong to a place."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.jit.waves import add_waves, fold, normals, turn

RNG = np.random.default_rng(0)
INPUTS = RNG.uniform(-0.5, 0.5, (2, 1300))
# As a rough kernel has them: some are very high.
FREQUENCIES = RNG.standard_cauchy((2, 50)) * 30.0
COSINES, SINES = RNG.normal(size=(2, 50))
PHASES = INPUTS.T @ FREQUENCIES


def summed(inputs: np.ndarray) -> np.ndarray:
    out = np.zeros(inputs.shape[1])
    add_waves(np.ascontiguousarray(inputs), FREQUENCIES, COSINES, SINES, out)
    return out


def test_a_sum_of_waves():
    want = np.cos(PHASES) @ COSINES + np.sin(PHASES) @ SINES
    np.testing.assert_allclose(summed(INPUTS), want, rtol=0.0, atol=1e-10)


def test_it_adds_to_what_is_there():
    out = np.ones(INPUTS.shape[1])
    add_waves(INPUTS, FREQUENCIES, COSINES, SINES, out)
    np.testing.assert_allclose(out, 1.0 + summed(INPUTS), atol=1e-12)


@pytest.mark.parametrize("window", [slice(0, 1), slice(3, 600), slice(511, 514), slice(90, 1300)])
def test_a_cell_has_the_same_bits_in_every_window(window):
    assert (summed(INPUTS[:, window]) == summed(INPUTS)[window]).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_cosines_and_sines(rows):
    out = np.empty((1300, 100))
    turn(np.ascontiguousarray(INPUTS[:rows]), np.ascontiguousarray(FREQUENCIES[:rows]), out)
    phases = INPUTS[:rows].T @ FREQUENCIES[:rows]
    want = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    np.testing.assert_allclose(out, want, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("phase", [0.0, 1e-300, np.pi / 4, np.pi, -np.pi / 2, 1e4, -3e6])
def test_single_phases(phase):
    out = np.empty((1, 2))
    turn(np.array([[phase]]), np.ones((1, 1)), out)
    np.testing.assert_allclose(out[0], [np.cos(phase), np.sin(phase)], rtol=0.0, atol=3e-16)


def numbers(keys: np.ndarray, stream: int) -> np.ndarray:
    out = np.zeros(keys.size)
    normals(keys, np.uint64(stream), 1.0, out)
    return out


@pytest.fixture(scope="module")
def keys() -> np.ndarray:
    """Keys of neighbouring cells: their numbers differ in a bit or two."""
    made = np.zeros(40_000, np.uint64)
    fold(np.indices((200, 200)).reshape(2, -1).astype(np.uint64), made)
    return made


class TestNormals:
    def test_keys_differ(self, keys):
        assert np.unique(keys).size == keys.size

    def test_they_are_normal(self, keys):
        assert stats.kstest(numbers(keys, 3), "norm").pvalue > 1e-3

    def test_neighbours_are_independent(self, keys):
        field = numbers(keys, 3).reshape(200, 200)
        other_stream = numbers(keys, 4).reshape(200, 200)
        for other in (np.roll(field, 1, 0), np.roll(field, 1, 1), other_stream):
            assert abs(np.corrcoef(field.ravel(), other.ravel())[0, 1]) < 4.0 / 200.0

    def test_one_belongs_to_its_key(self, keys):
        order = np.random.default_rng(1).permutation(keys.size)[:100]
        assert (numbers(keys[order], 3) == numbers(keys, 3)[order]).all()

    def test_scale(self, keys):
        out = np.ones(keys.size)
        normals(keys, np.uint64(3), 2.0, out)
        np.testing.assert_allclose(out, 1.0 + 2.0 * numbers(keys, 3), rtol=1e-12)
