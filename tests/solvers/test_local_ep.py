"""Stand-ins by neighbours: against the exact ones, and where the product of terms would fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.errors import NotPositiveDefiniteError
from xcopula.process import Evidence
from xcopula.process.intervals import Held
from xcopula.solvers import Neighbours
from xcopula.solvers import local_ep as module
from xcopula.solvers.exact import _Made


def setting(size=40, neighbours=None):
    """Return evidence of a sample of which 30 % are below a limit, and its structure."""
    process, _, theta, rng = reference.example("shared", (size, size, size))
    inputs = reference.random_inputs(process.covariance, rng, (size,) * 3, size // 2)
    sample = reference.censor(reference.simulate(process, theta, inputs))
    solver = Neighbours(neighbours=neighbours or sample.size - 1)
    return Evidence.of(process, sample, theta), solver.prepare(process, theta, sample)


def test_all_others_as_neighbours_are_exact():
    """Scores, errors and cavities are those of the exact solver, to 1e-7."""
    evidence, structure = setting(14)
    found = module.fill_in(evidence, structure)
    made = _Made.of(evidence.process, evidence.sample, evidence.theta)
    expected = made.fill_in(evidence, Held())
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-7)
    np.testing.assert_allclose(found.extra, expected.extra, rtol=1e-7)
    np.testing.assert_allclose(found.cavity, expected.cavity, atol=1e-7)


def test_few_neighbours_always_settle():
    """Of eight neighbours cavities have a variance, and those that were found are kept."""
    evidence, structure = setting(60, 8)
    found = module.fill_in(evidence, structure)
    assert (found.cavity.variance > 0.0).all()
    assert (found.cavity.variance < 1.0 + 1e-9).all()
    (first, *_) = structure.kept["around"]
    again = module.fill_in(evidence, structure)
    assert structure.kept["around"][0] is first
    np.testing.assert_array_equal(again.scores, found.scores)
    rows = evidence.intervals.rows
    for own in structure.kept["around"]:
        for row, near, count in zip(own.rows, own.which.neighbours, own.which.counts, strict=True):
            assert row in rows
            assert row not in near[:count]


def test_other_intervals_have_other_neighbours():
    """A structure serves several laws, and with an atom some values are other intervals."""
    evidence, structure = setting(14)
    module.fill_in(evidence, structure)
    sample = evidence.sample
    fewer = sample.limits.copy()
    fewer[:, evidence.intervals.rows[:3]] = sample.values[evidence.intervals.rows[:3]]
    other = Evidence.of(evidence.process, replace(sample, limits=fewer), evidence.theta)
    fresh = setting(14)[1]
    found, want = (module.fill_in(other, s) for s in (structure, fresh))
    np.testing.assert_array_equal(found.scores, want.scores)


def test_numbers_need_none():
    """Evidence without intervals is returned as it is."""
    evidence, structure = setting(14)
    plain = Evidence.of(
        evidence.process,
        reference.simulate(evidence.process, evidence.theta, reference.parts(evidence.sample)[0]),
        evidence.theta,
    )
    assert module.fill_in(plain, structure) is plain


def test_a_singular_matrix_is_told(monkeypatch):
    """What the loop gives up is an error that names the parameters."""
    evidence, structure = setting(14)
    monkeypatch.setattr(module, "tile_moments", lambda *given: 3)
    with pytest.raises(
        NotPositiveDefiniteError, match=r"neighbours of an interval .* length_scale"
    ):
        module.fill_in(evidence, structure)
