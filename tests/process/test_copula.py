"""The copula process on arrays: samples and the layout of theta."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy import stats

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import GEV, Exponential, LogNormal, Normal, StudentT, by, regress
from xcopula.process.copula import Process, Sample

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


def test_sample_joins_tasks_in_order(sample):
    """Inputs are transposed, contiguous and sorted by task."""
    assert sample.size == 12
    assert sample.inputs.flags.c_contiguous
    np.testing.assert_array_equal(sample.offsets, [0, 4, 7, 12])
    for i in range(3):
        np.testing.assert_array_equal(sample.inputs[:, sample.task(i)].T, INPUTS[i])
        np.testing.assert_array_equal(sample.values[sample.task(i)], VALUES[i])


def test_sample_selects_tasks_in_the_order_asked(sample):
    """A sub-sample holds the asked tasks, in that order, and stays contiguous."""
    part = sample.select([2, 0])
    expected = Sample.of([INPUTS[2], INPUTS[0]], [VALUES[2], VALUES[0]])
    np.testing.assert_array_equal(part.inputs, expected.inputs)
    np.testing.assert_array_equal(part.offsets, expected.offsets)
    np.testing.assert_array_equal(part.values, expected.values)
    assert part.inputs.flags.c_contiguous


def test_task_without_observations():
    """A task may have no observation at all."""
    sample = Sample.of([INPUTS[0], np.empty((0, 2))], [VALUES[0], np.empty(0)])
    assert sample.values[sample.task(1)].size == 0
    assert sample.inputs.shape == (2, 4)


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


class TestCovariates:
    TABLES = (np.arange(8.0).reshape(4, 2), np.empty((3, 0)), np.arange(5.0)[:, None] % 2)

    @pytest.fixture
    def varying(self):
        """Three tasks, of which the first has two covariates and the last one."""
        return Sample.of(INPUTS, VALUES, self.TABLES)

    def test_none_by_default(self, sample):
        """A task of a sample without covariates has rows of no columns."""
        assert sample.covariates == ()
        assert [sample.covariates_of(i).shape for i in range(3)] == [(4, 0), (3, 0), (5, 0)]
        assert sample.select([1]).covariates == ()
        assert sample.take(np.arange(5)).covariates == ()

    def test_selection_carries_them(self, varying):
        """Selected tasks keep their covariates, in the order asked."""
        part = varying.select([2, 0])
        np.testing.assert_array_equal(part.covariates_of(0), self.TABLES[2])
        np.testing.assert_array_equal(part.covariates_of(1), self.TABLES[0])

    def test_observations_carry_them(self, varying):
        """Observations taken out keep inputs, values and covariates, task by task."""
        index = np.array([1, 3, 8, 11])
        part = varying.take(index)
        np.testing.assert_array_equal(part.offsets, [0, 2, 2, 4])
        np.testing.assert_array_equal(part.values, varying.values[index])
        np.testing.assert_array_equal(part.inputs, varying.inputs[:, index])
        assert part.inputs.flags.c_contiguous
        np.testing.assert_array_equal(part.covariates_of(0), self.TABLES[0][[1, 3]])
        assert part.covariates_of(1).shape == (0, 0)
        np.testing.assert_array_equal(part.covariates_of(2), self.TABLES[2][[1, 4]])

    @pytest.mark.parametrize("wrong", [TABLES[:2], TABLES[::-1], (*TABLES[:2], np.arange(5.0))])
    def test_rows_must_match(self, wrong):
        """A row of covariates for each observation, or an error with the shapes."""
        with pytest.raises(ValueError, match=r"\[4, 3, 5\] observations, covariates of shapes"):
            Sample.of(INPUTS, VALUES, wrong)

    def test_laws_are_bound(self):
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
