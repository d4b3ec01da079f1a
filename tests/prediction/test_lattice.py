"""Waves on cells that are a product, against the sum of waves at each cell."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.groups import CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.system import CoordinateSystem
from xcopula.prediction import lattice
from xcopula.prediction.lattice import find_lattice
from xcopula.process.paths import Prior


def axes(*names: str) -> tuple[Axis, ...]:
    return tuple(Axis(name, name) for name in names)


PLANE = CoordinateGroup("space", axes("x", "y"))
TURNED = (2, False, ((1.0, 0.0), (0.0, 1.0)))
TIME = CoordinateGroup("time", axes("t"))
GLOBE = Globe("space", axes("lon", "lat"))
YEAR = Cycle("season", axes("s"), period=10.0)
X, Y, T = np.linspace(1.0, 5.0, 6), np.linspace(-2.0, 3.0, 5), np.array([0.0, 1.0, 4.0])
CURVED = X[None, :] + 0.1 * Y[:, None] ** 2, Y[:, None] + 0.05 * X[None, :] ** 2

# Groups, their metrics, coordinates with all axes of the block, and how many sides are there.
BLOCKS = {
    "plane": ((PLANE,), [TURNED], [X[None, :], Y[:, None]], 2),
    "transposed": ((PLANE,), [TURNED], [X[:, None], Y[None, :]], 2),
    "points": ((PLANE,), [TURNED], [X[:5], Y], 1),
    "one row": ((PLANE,), [TURNED], [X[None, :], Y[:1, None]], 2),
    "curved": ((PLANE,), [TURNED], list(CURVED), 1),
    "plane in time": (
        (PLANE, TIME),
        [TURNED, (1,)],
        [X[None, None, :], Y[None, :, None], T[:, None, None]],
        2,
    ),
    "curved in time": (
        (PLANE, TIME),
        [TURNED, (1,)],
        [c[None] for c in CURVED] + [T[:, None, None]],
        2,
    ),
    "stations in time": ((PLANE, TIME), [TURNED, (1,)], [X[:5, None], Y[:, None], T[None, :]], 2),
    "globe": ((GLOBE,), [(3,)], [X[None, :], Y[:, None]], 1),
    "globe in time": (
        (GLOBE, TIME),
        [(3,), (1,)],
        [X[:, None, None], Y[None, None, :], T[None, :, None]],
        2,
    ),
    "one parallel in time": (
        (GLOBE, TIME),
        [(3,), (1,)],
        [X[:, None, None], Y[None, None, :1], T[None, :, None]],
        2,
    ),
    "one date": ((GLOBE, TIME), [(3,), (1,)], [X[:, None], Y[None, :], T[:1, None]], 1),
    "season": ((PLANE, YEAR), [TURNED, (2,)], [X[:5, None], Y[:, None], T[None, :]], 2),
    "both dates of one dim": (
        (TIME, YEAR, PLANE),
        [(1,), (2,), TURNED],
        [T[:, None, None], T[:, None, None], X[None, None, :], Y[None, :, None]],
        2,
    ),
}


@pytest.mark.parametrize("name", [*BLOCKS])
def test_a_lattice_is_the_sum_of_waves(name, monkeypatch):
    monkeypatch.setattr(lattice, "_CELLS", 4)
    monkeypatch.setattr(lattice, "_WAVES", 1000)
    groups, metrics, coordinates, sides = BLOCKS[name]
    shape = np.broadcast_shapes(*(c.shape for c in coordinates))
    flat = [np.broadcast_to(c, shape).ravel() for c in coordinates]
    extent = np.random.default_rng(1).uniform(0.0, 5.0, (9, len(flat)))
    system = CoordinateSystem(groups).scaled_to(extent)
    covariance = Covariance(
        (KERNELS["matern12"], KERNELS["se"]), tuple(InputGroup(*m) for m in metrics)
    )
    theta = np.random.default_rng(0).normal(size=covariance.size)
    waves = Prior.of(covariance, theta).draw(0, 0)
    found = find_lattice(system, coordinates, shape)
    if sides == 1:
        assert found is None
        return
    assert found is not None
    for task in range(2):
        want = waves.at(system.to_columns(flat), task).reshape(shape)
        np.testing.assert_allclose(found.signal(waves, task), want, rtol=0.0, atol=1e-9)


def test_sides_have_few_cells():
    shape = (40, 6, 5)
    coordinates = [X[None, None, :5], np.linspace(0, 1, 6)[None, :, None]]
    coordinates += [np.linspace(0, 1, 40)[:, None, None]]
    system = CoordinateSystem((PLANE, TIME)).scaled_to(np.random.default_rng(0).random((9, 3)))
    found = find_lattice(system, coordinates, shape)
    assert found is not None
    assert sorted(found.sides) == [(0,), (1, 2)]


def test_a_cell_without_a_place_spoils_no_other():
    x = X.copy()
    x[2] = np.nan
    system = CoordinateSystem((PLANE,)).scaled_to(np.stack([X[:5], Y]).T)
    covariance = Covariance((KERNELS["se"],), (InputGroup(2),))
    waves = Prior.of(covariance, np.zeros(covariance.size)).draw(0, 0)
    blocks = [find_lattice(system, [c[None, :], Y[:, None]], (5, 6)) for c in (X, x)]
    whole, holed = (b.signal(waves, 0) for b in blocks)
    assert np.isnan(holed[:, 2]).all()
    np.testing.assert_array_equal(np.delete(holed, 2, 1), np.delete(whole, 2, 1))
