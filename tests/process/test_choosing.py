"""The greedy choice of candidates, against conditioning with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.process import choosing
from xcopula.process.choosing import choose
from xcopula.process.decision import Misclassification, Variance


def covariance(seed=0, candidates=6, cells=9):
    root = np.random.default_rng(seed).normal(size=(candidates + cells, 12))
    return root @ root.T / 12.0 + 0.05 * np.eye(candidates + cells)


def reduced(whole, chosen, candidates):
    """Return what the chosen ones take off the variances of the cells."""
    cross = whole[candidates:, chosen]
    return np.einsum("ij,ji->i", cross, np.linalg.solve(whole[np.ix_(chosen, chosen)], cross.T))


@pytest.fixture(params=[2**21, 10], ids=["one batch", "several"])
def batches(request, monkeypatch):
    monkeypatch.setattr(choosing, "_BATCH", request.param)


@pytest.mark.parametrize("kind", ["variance", "misclassification"])
def test_is_the_best_at_each_step(kind, batches):
    """Every candidate that is left is tried, with all that were chosen before."""
    whole, c = covariance(), 6
    variance = np.diagonal(whole)[c:].copy()
    weights = np.random.default_rng(3).uniform(size=9)
    weights /= weights.sum()
    distance = np.random.default_rng(4).uniform(0.0, 1.5, 9)
    loss = Variance(variance) if kind == "variance" else Misclassification(distance, variance)
    found = choose(whole[:c, c:].copy(), whole[:c, :c].copy(), weights, c, loss)
    chosen: list[int] = []
    for step in range(c):
        left = [j for j in range(c) if j not in chosen]
        each = {j: weights @ loss(reduced(whole, [*chosen, j], c)) for j in left}
        best = min(each, key=each.get)
        assert found.order[step] == best
        assert found.criterion[step + 1] == pytest.approx(each[best], rel=1e-10)
        chosen.append(best)
    np.testing.assert_allclose(found.reduction, reduced(whole, chosen, c), rtol=1e-10)
    assert found.criterion[0] == pytest.approx(weights @ loss(np.zeros(9)))
    assert (np.diff(found.criterion) < 0.0).all()


def test_cells_that_do_not_count():
    """Their loss may be unknown; what is taken off their variance is told all the same."""
    whole, c = covariance(), 6
    variance = np.diagonal(whole)[c:].copy()
    distance = np.where(np.arange(9) < 3, np.nan, 0.5)
    weights = np.where(np.arange(9) < 3, 0.0, 1.0 / 6.0)
    loss = Misclassification(distance, variance)
    found = choose(whole[:c, c:].copy(), whole[:c, :c].copy(), weights, 2, loss)
    assert np.isfinite(found.criterion).all()
    assert (found.reduction[:3] > 0.0).all()


def test_a_candidate_that_is_known_comes_last():
    """One that tells what another has told gains nothing, and divides by nothing."""
    whole, c = covariance(), 6
    shared, among = whole[:c, c:].copy(), whole[:c, :c].copy()
    shared[1], among[1], among[:, 1] = shared[0], among[0], among[:, 0]
    loss = Variance(np.diagonal(whole)[c:].copy())
    found = choose(shared, among, np.full(9, 1.0 / 9.0), c, loss)
    assert found.order[-1] in (0, 1)
    assert found.criterion[-1] == pytest.approx(found.criterion[-2], rel=1e-10)
