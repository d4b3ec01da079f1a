"""The copula process on arrays: the layout of theta, and parts that share parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import reference
from scipy import stats

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import GEV, Exponential, LogNormal, Normal, StudentT, by, regress
from xcopula.process import Process, Sample

RNG = np.random.default_rng(0)
INPUTS = [RNG.uniform(size=(n, 2)) for n in (4, 3, 5)]
VALUES = [RNG.gamma(2.0, size=n) for n in (4, 3, 5)]
PROCESS = Process(
    Covariance((KERNELS["se"], KERNELS["matern12"], KERNELS["matern32"]), (InputGroup(2),)),
    (LogNormal(0.5, 0.8), GEV(1.0, 2.0, 0.1), Exponential(1.5)),
)


@pytest.fixture
def sample():
    """Three tasks of four, three and five observations."""
    return Sample.of(INPUTS, VALUES)


@pytest.fixture
def theta():
    """Random covariance parameters with the marginals' own."""
    return PROCESS.join(reference.random_theta(PROCESS.covariance, np.random.default_rng(1)))


def test_join_and_split_are_inverse(theta):
    """Theta splits into the covariance's parameters and marginals at theirs."""
    covariance_theta, marginals = PROCESS.split(theta)
    np.testing.assert_array_equal(PROCESS.join(covariance_theta), theta)
    assert marginals == PROCESS.marginals
    assert theta.size == PROCESS.size


def test_split_uses_theta_not_the_starting_values(theta):
    """Marginals come back with the parameters in theta, each from its own slice."""
    theta = theta.copy()
    theta[PROCESS.slices[1]] = [7.0, np.log(3.0), -0.2]
    _, marginals = PROCESS.split(theta)
    assert marginals[1].parameters == pytest.approx(GEV(7.0, 3.0, -0.2).parameters)
    assert marginals[0] == PROCESS.marginals[0]


def test_slices_follow_the_covariance_without_gaps():
    """The marginals' parameters stand one after the other at the end of theta."""
    stops = [PROCESS.covariance.size, *(s.stop for s in PROCESS.slices)]
    assert [s.start for s in PROCESS.slices] == stops[:-1]
    assert stops[-1] == PROCESS.size


def test_bounds_contain_the_marginals_start(theta):
    """There is a box for each parameter and the marginals start inside it."""
    bounds = PROCESS.bounds()
    assert bounds.shape == (PROCESS.size, 2)
    tail = slice(PROCESS.covariance.size, None)
    assert (bounds[tail, 0] < theta[tail]).all()
    assert (theta[tail] < bounds[tail, 1]).all()


def test_prior_is_the_sum_of_its_parts():
    """The joint log prior has the gradient of central differences, to 1e-8."""
    process = Process(PROCESS.covariance, (StudentT(0.0, 1.0, 5.0), *PROCESS.marginals[1:]))
    theta = process.join(reference.random_theta(process.covariance, np.random.default_rng(2)))
    value, gradient = process.log_prior(theta)
    covariance_theta, marginals = process.split(theta)
    parts = [process.covariance.log_prior(covariance_theta), *(m.log_prior() for m in marginals)]
    assert value == pytest.approx(sum(v for v, _ in parts))
    expected = reference.differences(lambda x: process.log_prior(x)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-8)


def test_scores_use_each_tasks_own_law(sample, theta):
    """Normal scores equal those of the scipy distributions, to 1e-9."""
    expected = [
        stats.norm.ppf(reference.law(m).cdf(y))
        for m, y in zip(PROCESS.marginals, VALUES, strict=True)
    ]
    np.testing.assert_allclose(
        PROCESS.scores(theta, sample), np.concatenate(expected), rtol=0, atol=1e-9
    )


def test_description_names_lengths_and_nuggets():
    """Errors quote the length scales and nuggets of all tasks."""
    process = Process(PROCESS.covariance, (Normal(), Normal(), Normal()))
    theta = np.zeros(process.size)
    process.covariance.part(theta, "length")[:] = np.log([[[0.25, 0.5, 2.0]]])
    text = process.describe(theta)
    assert "length_scale=[0.25 0.5  2.  ] (of the extent)" in text
    assert "nugget=[0.5 0.5 0.5]" in text


def test_laws_are_bound():
    """Laws that vary are bound to their rows, constant ones are left alone."""
    rng = np.random.default_rng(3)
    values = [rng.gamma(2.0, size=12) for _ in range(2)]
    tables = [np.empty((12, 0)), np.column_stack([np.arange(12) % 2.0, rng.normal(size=12)])]
    law = regress(by("k", "gamma"), on="x").fit(values[1], tables[1])
    covariance = Covariance((KERNELS["se"],) * 2, (InputGroup(2),))
    process = Process(covariance, (Normal(), law))
    sample = Sample.of([rng.uniform(size=(12, 2))] * 2, values, tables)
    theta = process.join(np.zeros(covariance.size))
    theta[-1] += 0.1
    plain, bound = process.laws(theta, sample)
    assert plain == Normal()
    unbound = process.split(theta)[1][1]
    assert bound.coefficients[0] == law.coefficients[0] + 0.1
    expected = unbound.at(tables[1]).to_normal(values[1])
    np.testing.assert_array_equal(bound.to_normal(values[1]), expected)
    np.testing.assert_array_equal(process.scores(theta, sample)[12:], expected)
    with pytest.raises(ValueError, match=r"at\(covariates\)"):
        unbound.to_normal(values[1])
    with pytest.raises(ValueError, match="needs covariates"):
        process.laws(theta, Sample.of([rng.uniform(size=(12, 2))] * 2, values))


class TestParts:
    """The first task, alone or with another, is a process of its own with shared parameters."""

    @pytest.mark.parametrize("tasks", [(0,), (0, 1), (0, 2)])
    def test_have_a_selection_of_the_parameters(self, theta, tasks):
        """Laws, lengths and shares of a part are those of its tasks in the whole."""
        part, index = PROCESS.with_tasks(tasks)
        assert part.size == index.size == np.unique(index).size
        assert part.marginals == tuple(PROCESS.marginals[i] for i in tasks)
        assert part.covariance.kernels == tuple(PROCESS.covariance.kernels[i] for i in tasks)
        own, laws = part.split(theta[index])
        assert laws == tuple(PROCESS.split(theta)[1][i] for i in tasks)
        np.testing.assert_allclose(
            part.covariance.matrices(own),
            PROCESS.covariance.matrices(theta)[np.ix_(range(2), tasks, tasks)],
            rtol=0,
            atol=1e-14,
        )

    def test_all_tasks_are_the_process_itself(self):
        """The whole is its own part."""
        part, index = PROCESS.with_tasks((0, 1, 2))
        assert part is PROCESS
        np.testing.assert_array_equal(index, np.arange(PROCESS.size))

    def test_are_made_once(self, monkeypatch):
        """Each likelihood asks for its part again: it is the same object."""
        process = Process(PROCESS.covariance, PROCESS.marginals)
        made = []
        original = Process._of
        monkeypatch.setattr(
            Process, "_of", lambda self, tasks: made.append(tasks) or original(self, tasks)
        )
        parts = [process.with_tasks((0, 1))[0] for _ in range(4)]
        assert made == [(0, 1)]
        assert all(part is parts[0] for part in parts)

    def test_do_not_travel(self):
        """A pickle holds what the process is; parts are made again."""
        process = Process(PROCESS.covariance, PROCESS.marginals)
        process.with_tasks((0, 1))
        back = pickle.loads(pickle.dumps(process))
        assert set(vars(back)) == {"covariance", "marginals"}
        assert back == process
        assert back.with_tasks((0, 1))[0].marginals == process.marginals[:2]

    @pytest.mark.parametrize("tasks", [(1,), (1, 0), (0, 3), ()])
    def test_of_other_tasks_are_refused(self, tasks):
        """Other choices have no parameters of their own."""
        with pytest.raises(ValueError, match="Only the first task, alone or with one other"):
            PROCESS.with_tasks(tasks)
