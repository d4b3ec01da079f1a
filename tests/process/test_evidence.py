"""The laws' part of the likelihood: against scipy's densities and central differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from scipy import stats

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import GEV, Gamma, LogNormal, Normal, StudentT, regress
from xcopula.methods import Sparse
from xcopula.methods import sparse as sparse_module
from xcopula.process import Evidence, Process, Sample
from xcopula.solvers import Exact
from xcopula.solvers import exact as exact_module

LAWS = {
    "normal, log-normal": (Normal(1.0, 2.0), LogNormal(0.3, 0.6)),
    "gamma, t": (Gamma(2.5, 0.8), StudentT(0.5, 1.2, 5.0)),
    "gev, bounded gev": (GEV(2.0, 1.5, 0.15), GEV(2.0, 1.5, -0.2)),
}


def setting(laws):
    """Draw a sample of two tasks, and the covariance of its scores by the definition."""
    covariance = Covariance((KERNELS["matern32"],) * 2, (InputGroup(2),), "icm")
    process = Process(covariance, laws)
    rng = np.random.default_rng(0)
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, (9, 7), 4)
    sample = reference.simulate(process, theta, inputs)
    return process, sample, theta, reference.covariance_matrix(covariance, theta, inputs)


@pytest.mark.parametrize("laws", LAWS.values(), ids=LAWS.keys())
class TestPieces:
    def test_scores_and_density(self, laws):
        """Scores and log density are those of scipy's distributions, to 1e-9."""
        process, sample, theta, _ = setting(laws)
        evidence = Evidence.of(process, sample, theta)
        _, values = reference.parts(sample)
        pairs = [(reference.law(m), y) for m, y in zip(laws, values, strict=True)]
        w = np.concatenate([stats.norm.ppf(d.cdf(y)) for d, y in pairs])
        np.testing.assert_allclose(evidence.scores, w, rtol=0, atol=1e-9)
        expected = sum(d.logpdf(y).sum() for d, y in pairs)
        assert evidence.log_densities.sum() == pytest.approx(expected, abs=1e-9)
        assert evidence.possible
        assert [type(m) for m in evidence.laws] == [type(m) for m in laws]

    def test_value(self, laws):
        """With alpha and the determinant of any covariance it is scipy's likelihood, to 1e-8."""
        process, sample, theta, matrix = setting(laws)
        _, values = reference.parts(sample)
        evidence = Evidence.of(process, sample, theta)
        for covariance in (matrix, np.eye(sample.size), 0.5 * (matrix + np.eye(sample.size))):
            alpha = np.linalg.solve(covariance, evidence.scores)
            value = evidence.value(alpha, np.linalg.slogdet(covariance)[1])
            expected = reference.log_likelihood(covariance, laws, values)
            assert -value == pytest.approx(expected, abs=1e-8)

    def test_gradient_by_the_laws(self, laws):
        """At a fixed covariance the laws' entries equal central differences, to 1e-6."""
        process, sample, theta, matrix = setting(laws)
        state = process.covariance.state(theta[: process.covariance.size])
        inverse, log_determinant = np.linalg.inv(matrix), np.linalg.slogdet(matrix)[1]

        def value(x):
            evidence = Evidence.of(process, sample, x)
            return evidence.value(inverse @ evidence.scores, log_determinant)

        evidence = Evidence.of(process, sample, theta)
        nothing = exact_module.contract_lower(
            state, np.zeros_like(matrix), np.zeros(sample.size), np.zeros((2, sample.size)),
            sample.sites, sample.offsets,
        )  # fmt: skip
        gradient = evidence.gradient(inverse @ evidence.scores, nothing)
        expected = reference.differences(value, theta, step=1e-4)
        tail = slice(process.covariance.size, None)
        np.testing.assert_allclose(
            gradient[tail], expected[tail], rtol=1e-6, atol=1e-6 * np.abs(expected).max()
        )

    def test_gradient_by_the_covariance(self, laws):
        """At fixed laws the covariance's entries equal differences of the dense likelihood.

        To 1e-6 of the largest, with a covariance that is not the package's.
        """
        process, sample, theta, _ = setting(laws)
        inputs, values = reference.parts(sample)
        size = process.covariance.size

        def value(x):
            matrix = reference.covariance_matrix(process.covariance, x, inputs)
            return -reference.log_likelihood(matrix, laws, values)

        _, gradient = reference.objective(Exact(), process, sample, theta)
        expected = reference.differences(value, theta[:size], step=1e-3)
        np.testing.assert_allclose(
            gradient[:size], expected, rtol=0, atol=1e-6 * np.abs(expected).max()
        )


class TestImpossible:
    def setting(self):
        """Give one value that its law does not allow."""
        process, sample, theta, _ = setting(LAWS["gev, bounded gev"])
        _, upper = process.marginals[1].support
        values = sample.values.copy()
        values[sample.task(1).start] = upper + 1.0
        return process, replace(sample, values=values), theta

    def test_a_value_outside_its_law(self):
        """Infinite, with a zero gradient of the right size."""
        process, sample, theta = self.setting()
        evidence = Evidence.of(process, sample, theta)
        assert not evidence.possible
        value, gradient = evidence.impossible()
        assert value == np.inf
        np.testing.assert_array_equal(gradient, np.zeros(process.size))

    @pytest.mark.parametrize("how", [Exact(), Sparse("fitc", 6), Sparse("pitc", 6)])
    def test_nothing_is_factorised(self, how, monkeypatch):
        """Who evaluates a covariance asks first, and then says so."""
        process, sample, theta = self.setting()
        structure = reference.prepare(how, process, sample, theta)
        for module, name in [(exact_module, "cholesky"), (sparse_module, "factorise")]:
            monkeypatch.setattr(module, name, lambda *_: pytest.fail("factorised in vain"))
        value, gradient = how.objective(process, sample, structure, theta)
        assert value == np.inf
        assert (gradient == 0.0).all()

    def test_a_missing_covariate(self):
        """A sample with NaN among its covariates has no likelihood."""
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=(12, 1)), rng.gamma(3.0, size=12)
        law = regress("gamma", on="x").fit(y, x)
        process = Process(Covariance((KERNELS["se"],), (InputGroup(2),)), (law,))
        theta = process.join(np.zeros(process.covariance.size))
        broken = x.copy()
        broken[3] = np.nan
        sample = Sample.of([rng.uniform(size=(12, 2))], [y], [broken])
        assert not Evidence.of(process, sample, theta).possible
        assert Evidence.of(process, replace(sample, covariates=(x,)), theta).possible
        for how in (Exact(), Sparse("fitc", 5)):
            assert reference.objective(how, process, sample, theta)[0] == np.inf


@pytest.mark.parametrize("how", [Exact(), Sparse("dtc", 6), Sparse("fitc", 6), Sparse("pitc", 6)])
def test_both_ways_of_solving_use_it(how, monkeypatch):
    """The laws are evaluated once in an evaluation, here and nowhere else."""
    process, sample, theta, _ = setting(LAWS["gamma, t"])
    structure = reference.prepare(how, process, sample, theta)
    asked = []
    original = Evidence.of.__func__

    def spy(cls, *arguments):
        asked.append(original(cls, *arguments))
        return asked[-1]

    monkeypatch.setattr(Evidence, "of", classmethod(spy))
    value, gradient = how.objective(process, sample, structure, theta)
    (evidence,) = asked
    assert evidence.theta is theta
    monkeypatch.setattr(Evidence, "value", lambda *_: 7.0)
    monkeypatch.setattr(Evidence, "gradient", lambda *_: "by theta")
    assert how.objective(process, sample, structure, theta) == (7.0, "by theta")
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_each_value_has_the_law_of_its_row():
    """Scores and density of laws that vary are those of every value alone, under its own row."""
    process, sample, theta = reference.varying(2)
    evidence = Evidence.of(process, sample, theta)
    w, log_density = [], 0.0
    for i, law in enumerate(process.split(theta)[1]):
        for y, row in zip(sample.values[sample.task(i)], sample.covariates_of(i), strict=True):
            alone = law.at(row[None])
            w.append(float(alone.to_normal([y])[0]))
            log_density += float(alone.log_density([y])[0])
    np.testing.assert_allclose(evidence.scores, w, rtol=0, atol=1e-12)
    assert evidence.log_densities.sum() == pytest.approx(log_density, rel=1e-12)
