"""The loops over pairs of sites against a few lines of numpy, and as derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from reference import PLANE_AXES, TANGENT_AXES

from xcopula.jit import pairs
from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import no_contraction, scaled_inputs
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.kernels.hermite import quintic

THREE = (KERNELS["matern32"], KERNELS["se"], KERNELS["matern12"])
TURNED = InputGroup(2, directions=PLANE_AXES)
COVARIANCES = {
    "plane": Covariance(THREE, (InputGroup(2),)),
    "line": Covariance(THREE, (InputGroup(1, ard=True),)),
    "two of each": Covariance(THREE, (InputGroup(2, ard=True), InputGroup(1)), structures=2),
    "three groups": Covariance(THREE, (InputGroup(1), InputGroup(3), InputGroup(2, ard=True))),
    "directions": Covariance(THREE, (TURNED, InputGroup(1)), structures=2),
    "globe": Covariance(THREE, (InputGroup(3, directions=TANGENT_AXES),)),
    "lmc": Covariance((KERNELS["matern52"],) * 3, (InputGroup(2),), "lmc", structures=2),
}
every = pytest.mark.parametrize("covariance", COVARIANCES.values(), ids=COVARIANCES.keys())

# Three tasks, partly at common sites. ``LARGE`` has more pairs than are worked on together.
SIZES, EMPTY, LARGE, TOGETHER = [9, 7, 8], [6, 0, 5], [80, 60, 70], 4


def draw(covariance, sizes=SIZES, together=TOGETHER):
    """Return random parameters, the state, and scaled inputs, sites and offsets."""
    rng = np.random.default_rng(0)
    theta = reference.random_theta(covariance, rng)
    blocks = reference.random_inputs(covariance, rng, sizes, together)
    inputs, sites, offsets = reference.stacked(blocks)
    state = covariance.state(theta)
    return theta, state, scaled_inputs(inputs, state), sites, offsets


def polynomials(tables, t, p):
    """Return the value and the derivative of tables t at the positions p."""
    k = np.minimum(p.astype(int), tables.shape[1] - 1)
    c = np.moveaxis(tables[t, k], -1, 0)
    n = np.arange(len(c)).reshape(-1, *[1] * p.ndim)
    return (c * (p - k) ** n).sum(0), (n[1:] * c[1:] * (p - k) ** (n[1:] - 1)).sum(0)


def parts(state, targets, target_offsets, inputs, offsets):
    """Return, for all pairs: tasks, squared distances (g, ..), tables, and table values (q, g, ..).

    The values are a tuple of the correlation, its slope by the log distance, and its sensitivity.
    """
    i = np.repeat(np.arange(len(target_offsets) - 1), np.diff(target_offsets))[:, None]
    j = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[None]
    delta = targets[:, :, None] - inputs[:, None]
    squared = np.add.reduceat(delta**2, state.groups[:-1], axis=0)
    t = state.tables[:, :, i, j]
    cells = state.coefficients.shape[1] - 1
    p = np.minimum(cells * (np.sqrt(squared) * state.ranges[t]) ** 0.25, cells)
    value, by_p = polynomials(state.coefficients, t, p)
    sensitivity = np.where(i != j, polynomials(state.sensitivities, t, p)[0], 0.0)
    return i, j, delta, squared, t, (value, 0.25 * p * by_p, sensitivity)


def signal(state, targets, target_offsets, inputs, offsets):
    """Return the signal's covariance of two sets, both sorted by task."""
    i, j, *_, (value, _, _) = parts(state, targets, target_offsets, inputs, offsets)
    return (state.amplitudes[:, i, j] * value.prod(axis=1)).sum(axis=0)


def contracted(weights, state, targets, target_offsets, inputs, offsets):
    """Return the contraction of weights with the derivatives of the signal's covariance."""
    by = no_contraction(state)
    i, j, delta, squared, t, (value, slope, sensitivity) = parts(
        state, targets, target_offsets, inputs, offsets
    )
    high, low = np.maximum(i, j), np.minimum(i, j)
    column_group = np.searchsorted(state.groups, np.arange(len(delta)), side="right") - 1
    for q, amplitudes in enumerate(state.amplitudes):
        weighted = weights * amplitudes[i, j]
        np.add.at(by.amplitudes[q], (high, low), weights * value[q].prod(axis=0))
        for g in range(len(squared)):
            others = weighted * np.delete(value[q], g, axis=0).prod(axis=0)
            np.add.at(by.slope, t[q, g], others * slope[q, g])
            np.add.at(by.sensitivity, t[q, g], others * sensitivity[q, g])
            pull = others * slope[q, g] / np.where(squared[g] > 0.0, squared[g], 1.0)
            own = np.flatnonzero(column_group == g)
            products = np.tril(np.einsum("mn,cmn,emn->ce", pull, delta[own], delta[own]))
            keep = [np.zeros_like(products), np.eye(own.size), 1.0][state.freedom[g]]
            by.moments[np.ix_(own, own)] -= keep * products
    return by


def assert_contractions_equal(actual, expected):
    for name, a, b in zip(actual._fields, actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=2e-12, err_msg=name)


def fill_below(state, inputs, sites, offsets):
    """Fill below the diagonal; the rest is left NaN."""
    out = np.full((sites.size, sites.size), np.nan)
    pairs.fill(inputs, sites, offsets, inputs, sites, offsets, True, True, state, out)
    return out


def contract_below(state, inverse, alpha, inputs, sites, offsets):
    by = no_contraction(state)
    pairs.contract(inverse, alpha, inputs, offsets, inputs, sites, offsets, True, state, by)
    return by


@every
@pytest.mark.parametrize("sizes", [SIZES, EMPTY, LARGE])
def test_fill_below_the_diagonal(covariance, sizes):
    """What is below the diagonal equals signal plus shared nugget, to 1e-14; no more is written."""
    _, state, inputs, sites, offsets = draw(covariance, sizes, together=min(*sizes, TOGETHER))
    out = fill_below(state, inputs, sites, offsets)
    tasks = np.repeat(np.arange(3), np.diff(offsets))
    shared = state.nugget[np.ix_(tasks, tasks)] * (sites[:, None] == sites)
    expected = signal(state, inputs, offsets, inputs, offsets) + shared
    below = np.tril_indices(sites.size, -1)
    np.testing.assert_allclose(out[below], expected[below], rtol=0, atol=1e-14)
    assert np.isnan(out[np.triu_indices(sites.size)]).all()


@every
@pytest.mark.parametrize("nugget", [True, False])
def test_fill_between_two_sets(covariance, nugget):
    """Rows at sites and elsewhere equal signal plus shared nugget, to 1e-14.

    The nugget follows the numbers: a target at a site of the data, but numbered -1, has none.
    """
    _, state, inputs, sites, offsets = draw(covariance)
    targets, target_offsets = np.require(inputs[:, :12], float, "CW"), np.array([0, 3, 3, 12])
    target_sites = np.where(np.arange(12) < 10, sites[:12], -1)
    out = np.empty((12, sites.size))
    rows = targets, target_sites, target_offsets
    pairs.fill(*rows, inputs, sites, offsets, False, nugget, state, out)
    expected = signal(state, targets, target_offsets, inputs, offsets)
    if nugget:
        i, j = (np.repeat(np.arange(3), np.diff(x)) for x in (target_offsets, offsets))
        expected += state.nugget[np.ix_(i, j)] * (target_sites[:, None] == sites)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)


def test_a_site_is_its_number_and_not_its_place():
    """Two observations a rounding apart share the nugget, two at one place but numbered apart not.

    This is what the numbers are for: places are rounded when they are scaled.
    """
    covariance = Covariance((KERNELS["se"],) * 2, (InputGroup(1),))
    state = covariance.state(reference.random_theta(covariance, np.random.default_rng(0)))
    offsets, near = np.array([0, 1, 2]), np.array([[0.5, 0.5 + 1e-8]])
    apart = fill_below(state, np.array([[0.5, 0.5]]), np.array([0, 1]), offsets)[1, 0]
    shared = fill_below(state, near, np.array([3, 3]), offsets)[1, 0]
    assert shared - apart == pytest.approx(state.nugget[1, 0], abs=1e-12)


def test_a_place_that_is_no_number_is_far_from_all():
    """A coordinate that is NaN reads nothing outside the table: its correlation is zero."""
    covariance = Covariance((KERNELS["se"],), (InputGroup(1),))
    state = covariance.state(np.zeros(covariance.size))
    inputs, sites, offsets = np.array([[0.5, np.nan]]), np.array([0, 1]), np.array([0, 2])
    assert fill_below(state, inputs, sites, offsets)[1, 0] == 0.0


@every
@pytest.mark.parametrize("sizes", [SIZES, EMPTY, LARGE])
def test_contract_below_the_diagonal(covariance, sizes):
    """The contraction equals sums over all pairs below the diagonal, to 1e-12."""
    _, state, inputs, sites, offsets = draw(covariance, sizes, together=min(*sizes, TOGETHER))
    rng = np.random.default_rng(1)
    inverse, alpha = rng.normal(size=(sites.size, sites.size)), rng.normal(size=sites.size)
    by = contract_below(state, inverse, alpha, inputs, sites, offsets)
    weights = np.tril(inverse - np.outer(alpha, alpha), -1)
    expected = contracted(weights, state, inputs, offsets, inputs, offsets)
    tasks = np.repeat(np.arange(3), np.diff(offsets))
    same = weights * (sites[:, None] == sites)
    np.add.at(expected.nugget, np.ix_(tasks, tasks), same)
    assert_contractions_equal(by, expected)


@every
def test_contract_between_two_sets(covariance):
    """The contraction of two sets equals sums over all pairs, to 1e-12, added to what was there."""
    _, state, inputs, _, offsets = draw(covariance)
    targets = np.require(inputs[:, 3:15] + 0.01, float, "CW")
    targets[:, 0] = inputs[:, 0]
    target_offsets = np.array([0, 6, 6, 12])
    weights = np.random.default_rng(1).normal(size=(12, inputs.shape[1]))
    by, none = no_contraction(state), np.empty(0, np.int64)
    arguments = weights, np.empty(0), targets, target_offsets, inputs, none, offsets, False, state
    pairs.contract(*arguments, by)
    expected = contracted(weights, state, targets, target_offsets, inputs, offsets)
    assert_contractions_equal(by, expected)
    pairs.contract(*arguments, by)
    assert_contractions_equal(by, [2.0 * x for x in expected])


@every
def test_contraction_is_the_derivative(covariance):
    """The contraction pulled back equals differences of sum G_ab K_ab over a > b, to 1e-6.

    G is an arbitrary symmetric matrix less an outer product, as in the likelihood.
    """
    theta, state, inputs, sites, offsets = draw(covariance)
    unscaled = np.linalg.solve(state.mapping, inputs)
    rng = np.random.default_rng(1)
    inverse, alpha = rng.normal(size=(sites.size, sites.size)), rng.normal(size=sites.size)
    weights = np.tril(inverse - np.outer(alpha, alpha), -1)

    def weighted(theta):
        state = covariance.state(theta)
        out = fill_below(state, scaled_inputs(unscaled, state), sites, offsets)
        return float((weights * np.tril(out, -1)).sum())

    by = contract_below(state, inverse, alpha, inputs, sites, offsets)
    expected = reference.differences(weighted, theta)
    np.testing.assert_allclose(
        covariance.pullback(theta, by), expected, rtol=0, atol=1e-6 * np.abs(expected).max()
    )


def test_interpolate_reads_the_fourth_root_of_the_distance():
    """A table of s = (r / R)^(1/4) that holds s itself returns it, and zero past R."""
    s = np.linspace(0.0, 1.0, 17)
    table = quintic(s, np.ones_like(s), np.zeros_like(s))
    r = np.array([0.0, 0.1, 1.0, 2.99, 3.0 + 1e-12, 10.0])
    out = np.empty(r.size)
    pairs.interpolate(r**2, 1.0 / 3.0, table, out)
    np.testing.assert_allclose(out[:4], (r[:4] / 3.0) ** 0.25, rtol=0, atol=1e-14)
    assert (out[4:] == 0.0).all()
