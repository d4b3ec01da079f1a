"""The metric of a group against its definition by the matrix exponential."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from reference import PLANE_AXES, SPACE_AXES, TANGENT_AXES

from xcopula.kernels.metric import InputGroup

GROUPS = {
    "all alike": InputGroup(2),
    "ard": InputGroup(3, ard=True),
    "plane": InputGroup(2, directions=PLANE_AXES),
    "space": InputGroup(3, directions=SPACE_AXES),
    "globe": InputGroup(3, directions=TANGENT_AXES),
}
every = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())


@every
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
def test_mapping_is_a_root_of_the_metric(group, spread):
    """L'L is the metric that expm gives, to 1e-12 of its largest entry."""
    parameters = np.random.default_rng(1).normal(0.0, spread, group.parameters)
    mapping, expected = group.mapping(parameters), reference.metric(group, parameters)
    np.testing.assert_allclose(
        mapping.T @ mapping, expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", ["plane", "space", "globe"])
def test_volume_is_one(name):
    """The size of a metric is the length scale: its determinant is one."""
    group = GROUPS[name]
    parameters = np.random.default_rng(2).normal(size=group.parameters)
    assert np.linalg.det(group.mapping(parameters)) == pytest.approx(1.0, abs=1e-12)


def test_number_of_parameters():
    found = {name: group.parameters for name, group in GROUPS.items()}
    assert found == {"all alike": 0, "ard": 3, "plane": 2, "space": 5, "globe": 2}
    assert InputGroup(4, directions=tuple(map(tuple, np.eye(4)))).parameters == 9


def test_principal_directions_of_a_plane():
    """A length of e along 30 degrees, of 1/e across: what the parameters were made from."""
    angle, ratio = np.deg2rad(30.0), np.e**2
    parameters = -np.log(ratio) * np.array([np.cos(2 * angle), np.sin(2 * angle)])
    group = GROUPS["plane"]
    logs, directions = group.principal(parameters)
    np.testing.assert_allclose(logs, [1.0, -1.0], atol=1e-14)
    np.testing.assert_allclose(
        np.abs(directions @ [np.cos(angle), np.sin(angle)]), [1.0, 0.0], atol=1e-14
    )
    # A step of e along the long axis is as far as one of 1/e across it.
    mapping = group.mapping(parameters)
    for log, direction in zip(logs, directions, strict=True):
        assert np.linalg.norm(mapping @ direction) == pytest.approx(np.exp(-log))


def test_the_globe_keeps_its_vertical():
    """What is up at the centre of the data is neither stretched nor turned."""
    group = GROUPS["globe"]
    up = np.cross(*TANGENT_AXES)
    np.testing.assert_allclose(group.mapping(np.array([1.2, -0.7])) @ up, up, atol=1e-15)


@every
@pytest.mark.parametrize("spread", [0.0, 1e-6, 0.7, 2.0])
def test_pullback_is_the_derivative(group, spread):
    """Of a sum of log distances, by differences: to 1e-7, also where stretches are equal."""
    rng = np.random.default_rng(3)
    parameters = rng.normal(0.0, spread, group.parameters)
    steps, weights = rng.normal(size=(group.size, 9)), rng.normal(size=9)

    def total(parameters):
        mapped = group.mapping(parameters) @ steps
        return float(weights @ np.log(np.linalg.norm(mapped, axis=0)))

    mapped = group.mapping(parameters) @ steps
    moments = -np.tril((weights / (mapped**2).sum(axis=0) * mapped) @ mapped.T)
    found = group.pullback(parameters, moments)
    np.testing.assert_allclose(found, reference.differences(total, parameters), atol=1e-7)


def test_the_parameters_know_no_direction():
    """Turning a metric keeps the norm of its parameters: a prior is the same for all directions."""
    rng = np.random.default_rng(4)
    parameters = rng.normal(size=5)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    matrix = turn @ reference.symmetric(parameters, 3) @ turn.T
    assert 2.0 * parameters @ parameters == pytest.approx((matrix**2).sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ard": True, "directions": PLANE_AXES}, "not both"),
        ({"directions": SPACE_AXES}, r"at least two of 2 numbers each, found \(3, 3\)"),
        ({"directions": ((1.0, 0.0),)}, r"at least two of 2 numbers each, found \(1, 2\)"),
    ],
)
def test_groups_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        InputGroup(2, **options)
