"""The multi-task covariance against its definition, and its positive definiteness."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from reference import PLANE_AXES, SPACE_AXES, TANGENT_AXES

from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import lower, scaled_inputs
from xcopula.kernels.convolution import cross_profile
from xcopula.kernels.covariance import Covariance, InputGroup

PLANE, LINE, SPACE = (InputGroup(2),), (InputGroup(1),), (InputGroup(3),)
PLANE_AND_TIME = (InputGroup(2), InputGroup(1))
TURNED = InputGroup(2, directions=PLANE_AXES)


def make(names, groups=PLANE, **options):
    return Covariance(reference.kernels_of(names), groups, **options)


SETUPS = {
    "one task": make("matern32"),
    "convolution": make("matern32 se"),
    "three tasks": make("matern12 matern52 se"),
    "independent noise": make("matern32 matern12", noise="independent"),
    "line": make("matern12 matern32", LINE),
    "space": make("se matern52", SPACE),
    "two structures": make("matern32 matern12", structures=2),
    "two groups": make("matern32 se", PLANE_AND_TIME),
    "two of each": make("matern12 matern52", PLANE_AND_TIME, structures=2),
    "ard": make("matern32 matern52", (InputGroup(2, ard=True),)),
    "ard in one group": make("se matern12", (InputGroup(2), InputGroup(2, ard=True))),
    "plane, directions": make("matern32 se", (TURNED,)),
    "space, directions": make("matern52 matern52", (InputGroup(3, directions=SPACE_AXES),)),
    "globe, directions": make("se matern12", (InputGroup(3, directions=TANGENT_AXES),)),
    "directions and time": make("matern32 matern12", (TURNED, InputGroup(1)), structures=2),
    "ard and directions": make("se matern12", (InputGroup(2, ard=True), TURNED)),
    "icm, directions": make("matern32 matern32", (TURNED,), coupling="icm"),
    "lmc, directions": make("se se", (InputGroup(1), TURNED), coupling="lmc", structures=2),
    "a kernel each": make("matern52+matern12", structures=2),
    "a kernel each, convolution": make("matern32+se matern12+matern52 se", structures=2),
    "a kernel each, directions and time": make(
        "matern12+matern32 se+matern12", (TURNED, InputGroup(1)), structures=2
    ),
    "a kernel each, lmc": make("se+matern12 se+matern12", coupling="lmc", structures=2),
    "icm": make("matern32 matern32 matern32", coupling="icm"),
    "icm, two groups": make("se se", PLANE_AND_TIME, coupling="icm", noise="independent"),
    "lmc": make("matern12 matern12 matern12", coupling="lmc", structures=2),
    "lmc, ard": make("se se", (InputGroup(2, ard=True),), coupling="lmc", structures=2),
}
every = pytest.mark.parametrize("covariance", SETUPS.values(), ids=SETUPS.keys())


def dense(covariance, theta, inputs):
    """Return the covariance as the compiled loops fill it."""
    stack, sites, offsets = reference.stacked(inputs)
    state = covariance.state(theta)
    matrix = lower(state, scaled_inputs(stack, state), sites, offsets)
    return np.tril(matrix) + np.tril(matrix, -1).T


@every
def test_unit_variance_at_every_site(covariance):
    """The structures' and the nugget's shares add up to one for each task, to 1e-14."""
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 5.0):
        for _ in range(20):
            matrices = covariance.matrices(rng.normal(0.0, scale, size=covariance.size))
            np.testing.assert_allclose(
                np.einsum("qii->i", matrices), np.ones(covariance.tasks), rtol=0, atol=1e-14
            )


@every
def test_task_matrices_match_the_definition(covariance):
    """Task matrices equal the softmax shares times the partial-correlation recursion, to 1e-14."""
    theta = reference.random_theta(covariance, np.random.default_rng(1))
    np.testing.assert_allclose(
        covariance.matrices(theta), reference.task_matrices(covariance, theta), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("together", [0, 3])
@every
def test_fill_matches_the_definition(covariance, together):
    """The compiled fill equals the formula entry by entry, to 1e-9, co-located or not."""
    rng = np.random.default_rng(2)
    theta = reference.random_theta(covariance, rng)
    inputs = reference.random_inputs(covariance, rng, [5, 4, 3][: covariance.tasks], together)
    np.testing.assert_allclose(
        dense(covariance, theta, inputs),
        reference.covariance_matrix(covariance, theta, inputs),
        rtol=0,
        atol=1e-9,
    )


def test_nugget_correlates_tasks_at_common_sites_only():
    """Two tasks at the same site share the correlated nugget; a nanometre-scale gap does not."""
    covariance = make("matern32 matern32")
    theta = np.zeros(covariance.size)
    covariance.part(theta, "noise_correlation")[:] = 1.0
    nugget = covariance.matrices(theta)[-1, 0, 1]
    site = np.full((1, 2), 0.5)
    here = dense(covariance, theta, [site, site])[1, 0]
    there = dense(covariance, theta, [site, site + 1e-7])[1, 0]
    assert nugget == pytest.approx(0.5 * math.tanh(1.0))
    assert here - there == pytest.approx(nugget, abs=1e-10)


def test_a_site_is_the_same_in_every_group():
    """The same place at another time, or another place at the same time, shares no nugget."""
    covariance = make("matern32 matern32", PLANE_AND_TIME)
    theta = reference.random_theta(covariance, np.random.default_rng(4))
    first = np.array([[0.2, 0.3, 0.1], [0.2, 0.3, 0.7], [0.8, 0.3, 0.1]])
    second = np.array([[0.2, 0.3, 0.1], [0.2, 0.3, 0.5], [0.6, 0.6, 0.1]])
    np.testing.assert_allclose(
        dense(covariance, theta, [first, second]),
        reference.covariance_matrix(covariance, theta, [first, second]),
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_positive_definite_for_random_parameters(dimension):
    """No eigenvalue falls below -1e-8 over 80 draws a dimension, without nugget.

    Two to five tasks of mixed families, one or two structures, length ratios up to 50, random
    correlations, sites on all scales.
    """
    rng = np.random.default_rng(dimension)
    names = list(KERNELS)
    worst = np.inf
    for draw in range(80):
        tasks = int(rng.integers(2, 6))
        kernels = " ".join(rng.choice(names, size=tasks))
        covariance = make(kernels, (InputGroup(dimension),), structures=1 + draw % 2)
        theta = reference.random_theta(covariance, rng, logit=40.0)
        shape = covariance.part(theta, "length").shape
        covariance.part(theta, "length")[:] = np.log(0.03) + rng.uniform(0, np.log(50), size=shape)
        where = covariance.layout["correlation"][0]
        theta[where] = rng.normal(0.0, 1.5, size=theta[where].size)
        inputs = [
            rng.uniform(size=(40, dimension)) * 10 ** rng.uniform(-2, 0, size=(40, 1))
            for _ in range(tasks)
        ]
        worst = min(worst, np.linalg.eigvalsh(dense(covariance, theta, inputs)).min())
    assert worst > -1e-8


@pytest.mark.parametrize(
    ("names", "dimension"),
    [
        ("matern32 matern12", 1),
        ("matern32 matern12", 2),
        ("matern32 matern12", 3),
        ("matern12 matern32", 1),
        ("matern12 matern32", 2),
        ("se matern12", 1),
        ("se matern12", 2),
    ],
)
def test_positive_definite_for_clustered_sites(names, dimension):
    """Sites a ten-thousandth apart, almost perfect correlation, a length ratio of 50: > -1e-8.

    The hardest case there is for the tables, which have to follow r^2 log r at the origin.
    """
    rng = np.random.default_rng(0)
    covariance = make(names, (InputGroup(dimension),))
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log([0.02, 1.0])
    covariance.part(theta, "logit")[:] = 40.0
    covariance.part(theta, "correlation")[:] = 4.0
    inputs = [1e-4 * rng.uniform(size=(60, dimension)) for _ in range(2)]
    assert np.linalg.eigvalsh(dense(covariance, theta, inputs)).min() > -1e-8


def test_one_dimensional_form_is_not_positive_definite_in_the_plane():
    """The D = 1 cross-kernel fed distances in the plane fails by far; the D = 2 one does not.

    A length ratio of 2 is enough: this is why the convolution is taken in the inputs' dimension.
    """
    kernel = KERNELS["matern32"]
    x, y = np.meshgrid(np.arange(15.0), np.arange(15.0))
    points = np.column_stack([x.ravel(), y.ravel()]) / 15
    r = np.linalg.norm(points[:, None] - points[None], axis=2)

    def smallest(dimension):
        cross = cross_profile(kernel, kernel, 0.4, 0.8, dimension, r.ravel()).value.reshape(r.shape)
        same = [kernel.profile(r / length)[0] for length in (0.4, 0.8)]
        return np.linalg.eigvalsh(np.block([[same[0], cross], [cross.T, same[1]]])).min()

    assert smallest(1) < -1.0
    assert smallest(2) > -1e-8


@every
def test_layout_covers_theta_once(covariance):
    """The named blocks partition theta, and the bounds hold a box for each entry."""
    seen = np.concatenate([np.arange(covariance.size)[w] for w, _ in covariance.layout.values()])
    np.testing.assert_array_equal(seen, np.arange(covariance.size))
    bounds = covariance.bounds()
    assert bounds.shape == (covariance.size, 2)
    assert (bounds[:, 0] < bounds[:, 1]).all()


def test_parts_are_views():
    """Writing to a named part writes to theta."""
    covariance = SETUPS["two of each"]
    theta = np.zeros(covariance.size)
    covariance.part(theta, "logit")[1, 0] = 3.0
    assert np.count_nonzero(theta) == 1


@every
def test_prior_gradient(covariance):
    """The gradient of the weak log prior equals central differences, to 1e-9."""
    theta = reference.random_theta(covariance, np.random.default_rng(3))
    _, gradient = covariance.log_prior(theta)
    expected = reference.differences(lambda x: covariance.log_prior(x)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupling": "slfm"}, "Unknown coupling 'slfm'. Choose one of .*'convolution'"),
        ({"noise": "white"}, "Unknown noise 'white'. Choose one of .*'correlated'"),
        ({"structures": 0}, "structures must be at least 1, found 0"),
        ({"coupling": "icm", "structures": 2}, "one structure, found structures=2.*'lmc'"),
        ({"coupling": "icm"}, r"needs one kernel .* found \['matern12', 'se'\]"),
        ({"coupling": "lmc", "structures": 2}, "or use coupling='convolution'"),
    ],
)
def test_impossible_combinations_are_refused(options, message):
    """What cannot be built is refused with what was found and what to do."""
    with pytest.raises(ValueError, match=message):
        make("se matern12", **options)


@pytest.mark.parametrize("name", ["three tasks", "icm", "lmc"])
def test_covariance_of_a_pair_of_tasks(name):
    """The first task with another has the parameters that the whole has, to 1e-14."""
    covariance = SETUPS[name]
    rng = np.random.default_rng(5)
    theta = reference.random_theta(covariance, rng)
    inputs = reference.random_inputs(covariance, rng, [5, 4, 6], together=3)
    whole = dense(covariance, theta, inputs)
    for tasks, kept in {(0,): np.r_[0:5], (0, 1): np.r_[0:9], (0, 2): np.r_[0:5, 9:15]}.items():
        sub, index = covariance.with_tasks(tasks)
        assert sub.size == index.size
        matrix = dense(sub, theta[index], [inputs[i] for i in tasks])
        np.testing.assert_allclose(matrix, whole[np.ix_(kept, kept)], rtol=0, atol=1e-14)


@pytest.mark.parametrize("tasks", [(), (1,), (1, 0), (0, 0), (0, 3), (0, -1), (0, 1, 2)])
def test_other_choices_of_tasks_are_refused(tasks):
    """Only the first task, alone or with one other, can be taken out of the whole."""
    with pytest.raises(ValueError, match=r"found tasks=\(.*of 3. Give \(0,\) or \(0, i\)"):
        SETUPS["three tasks"].with_tasks(tasks)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("convolution", "convolution"),
        ("two structures", "two structures"),
        ("two groups", "two of each"),
        ("icm", "lmc"),
        ("independent noise", "convolution"),
        ("convolution", "plane, directions"),
        ("ard", "ard"),
    ],
)
def test_parameters_are_carried_over(old, new):
    """The wider covariance is the same matrix, but for the least share of further structures."""
    old, new = SETUPS[old], SETUPS[new]
    if old.tasks == new.tasks:
        new = replace(new, kernels=old.kernels)
    theta = reference.random_theta(old, np.random.default_rng(1))
    inputs = reference.random_inputs(old, np.random.default_rng(2), [6, 5, 4][: old.tasks])
    carried = new.carry_over(old, np.append(theta, 7.0))
    assert carried.size == new.size
    same = new.structures == old.structures
    np.testing.assert_allclose(
        dense(new, carried, inputs), dense(old, theta, inputs), atol=1e-12 if same else 1e-3
    )


def test_tasks_are_carried_over_one_by_one():
    """What tasks share is that of the last one; the rest stays."""
    new, old = SETUPS["three tasks"], make("matern32")
    onto = np.arange(new.size, dtype=float)
    found = new.carry_over(old, np.array([-50.0, -60.0]), onto, task=1)
    changed = np.flatnonzero(found != onto)
    assert set(found[changed]) == {-50.0, -60.0}
    np.testing.assert_array_equal(
        changed, [new.layout["length"][0].start + 1, new.layout["logit"][0].start + 1]
    )
    assert onto[changed[0]] != -50.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("two structures", "convolution", "2 structures, not 1"),
        ("three tasks", "convolution", "3 tasks, not 2"),
        ("two groups", "convolution", "other groups of coordinates"),
        ("ard", "plane, directions", "a metric of other directions"),
        ("convolution", "independent noise", "correlated nuggets"),
        ("three tasks", "icm", "different lengths"),
    ],
)
def test_what_cannot_be_carried_over(old, new, message):
    """The message says what the other covariance has that this one lacks."""
    old, new = SETUPS[old], SETUPS[new]
    with pytest.raises(ValueError, match=f"`old` has .*{message}.*Carry over to one"):
        new.carry_over(old, np.zeros(old.size))
