"""Inference with marginal laws that vary from observation to observation."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
import reference
from scipy.optimize import minimize

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Gamma, Normal, by, regress
from xcopula.methods import METHODS, Settings, committee, exact, sparse, transductive
from xcopula.process.copula import Process, Sample

PLANE = (InputGroup(2),)
SIZES = (22, 19, 16)


def varying(tasks):
    """Return a process of varying laws, its sample, and theta away from the start."""
    rng = np.random.default_rng(5)
    recipes = [
        regress("gamma", on=["x", "y"]),
        by("k", regress("normal", on="x")),
        regress(by("k", "t"), on="x", degree=2),
    ][:tasks]
    inputs = [rng.uniform(size=(n, 2)) for n in SIZES[:tasks]]
    tables, values = [], []
    for n, recipe in zip(SIZES, recipes, strict=False):
        columns = {"x": rng.normal(size=n), "y": rng.normal(size=n), "k": np.arange(n) % 2.0}
        tables.append(np.column_stack([columns[name] for name in recipe.fields]))
        values.append(rng.gamma(3.0, np.exp(0.3 * columns["x"])))
    laws = tuple(r.fit(v, c) for r, v, c in zip(recipes, values, tables, strict=True))
    kernels = tuple(KERNELS[k] for k in ("matern32", "matern52", "se")[:tasks])
    process = Process(Covariance(kernels, PLANE), laws)
    theta = process.join(reference.random_theta(process.covariance, rng))
    theta[process.covariance.size :] += 0.05 * rng.normal(size=theta.size - process.covariance.size)
    return process, Sample.of(inputs, values, tables), theta


def prepared(name, sample):
    """Return the settings of a method, resolved for a sample."""
    return METHODS[name].prepare(sample, Settings(inducing=12, blocks=2))


@pytest.mark.parametrize(
    ("tasks", "name"),
    [(1, "full"), (2, "full"), (2, "transductive"), (3, "transductive"), (2, "fitc"), (2, "bcm")],
)
def test_gradient(tasks, name):
    """The gradient of the objective equals central differences, to 1e-6."""
    process, sample, theta = varying(tasks)
    settings = prepared(name, sample)
    objective = METHODS[name].objective
    _, gradient = objective(process, sample, theta, settings)
    expected = reference.differences(
        lambda x: objective(process, sample, x, settings)[0], theta, step=1e-4
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=2e-6 * np.abs(gradient).max())


def test_value_by_definition():
    """The likelihood is that of the definition, each value under the law of its own row."""
    process, sample, theta = varying(2)
    value, _ = exact.objective(process, sample, theta)
    covariance_theta, marginals = process.split(theta)
    inputs = [sample.inputs[:, sample.task(i)].T for i in range(2)]
    matrix = reference.covariance_matrix(process.covariance, covariance_theta, inputs)
    w, log_density = [], 0.0
    for i, law in enumerate(marginals):
        for y, row in zip(sample.values[sample.task(i)], sample.covariates_of(i), strict=True):
            alone = law.at(row[None])
            w.append(float(alone.to_normal([y])[0]))
            log_density += float(alone.log_density([y])[0])
    w = np.array(w)
    expected = 0.5 * w @ np.linalg.solve(matrix, w) - 0.5 * w @ w
    expected += 0.5 * np.linalg.slogdet(matrix)[1] - log_density
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.law is None])
def test_condition_uses_the_rows_laws(name):
    """Every method is conditioned on the scores of the bound laws."""
    process, sample, theta = varying(2)
    w = process.scores(theta, sample)
    plain = Process(process.covariance, (Normal(), Normal()))
    scored = Sample(sample.inputs, sample.offsets, w)
    theta_plain = plain.join(process.split(theta)[0])
    targets = np.random.default_rng(0).uniform(size=(2, 7))
    got, expected = (
        METHODS[name].condition(p, s, t, prepared(name, s)).moments(targets)
        for p, s, t in [(process, sample, theta), (plain, scored, theta_plain)]
    )
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.variance, expected.variance, rtol=1e-8)


def test_cokriging_of_varying_normal_laws():
    """Co-kriging takes a normal law that varies."""
    process, sample, theta = varying(2)
    first = regress("normal", on=["x", "y"]).fit(
        sample.values[sample.task(0)], sample.covariates_of(0)
    )
    normal = Process(process.covariance, (first, process.marginals[1]))
    theta = normal.join(process.split(theta)[0])
    fitted = METHODS["cokriging"].condition(normal, sample, theta, Settings())
    np.testing.assert_allclose(fitted.base.scores, normal.scores(theta, sample))


def test_combination_is_learnt_in_the_rows_units():
    """The CRPS of each rule is that of the bound law of the primary."""
    process, sample, theta = varying(3)
    combined = transductive.condition(process, sample, theta)
    assert all(np.isfinite(v) for v in combined.rule.crps.values())
    factor = 1000.0
    law = process.marginals[0]  # gamma: its scale is the second parameter
    larger = theta.copy()
    larger[process.slices[0].start + 1] += math.log(factor)
    values = sample.values.copy()
    values[sample.task(0)] *= factor
    assert law.link == "log"
    scaled = transductive.condition(process, dataclasses.replace(sample, values=values), larger)
    for name, value in combined.rule.crps.items():
        assert scaled.rule.crps[name] == pytest.approx(factor * value, rel=1e-6)


def test_committee_members_keep_their_rows():
    """With one block the committee is the exact method; with two each has its own covariates."""
    process, sample, theta = varying(2)
    for blocks in (1, 2):
        settings = committee.prepare(sample, Settings(blocks=blocks))
        value, _ = committee.objective(process, sample, theta, settings)
        parts = [sample.take(index) for index in settings.blocks]
        assert value == pytest.approx(sum(exact.objective(process, p, theta)[0] for p in parts))
    w = process.scores(theta, sample)
    for index, part in zip(settings.blocks, parts, strict=True):
        np.testing.assert_allclose(process.scores(theta, part), w[index])


def test_missing_covariate_is_infinite():
    """A sample with NaN among its covariates has no likelihood."""
    process, sample, theta = varying(1)
    table = sample.covariates_of(0).copy()
    table[3, 0] = np.nan
    broken = dataclasses.replace(sample, covariates=(table,))
    assert exact.objective(process, broken, theta)[0] == np.inf
    settings = sparse.prepare("fitc", sample, Settings(inducing=5))
    assert sparse.objective(process, broken, theta, settings, kind="fitc")[0] == np.inf


class TestGeneralisedLeastSquares:
    """A normal regression under a known covariance."""

    N, SCALE, SLOPE = 60, 0.7, 1.5

    @functools.cached_property
    def problem(self):
        """Draw sites, a smooth covariate, and values with correlated errors."""
        rng = np.random.default_rng(8)
        covariance = Covariance((KERNELS["matern32"],), PLANE)
        theta = np.array([math.log(0.4), math.log(9.0)])
        sites = rng.uniform(size=(self.N, 2))
        x = sites[:, 0] + 0.3 * rng.normal(size=self.N)
        matrix = reference.covariance_matrix(covariance, theta, [sites])
        noise = np.linalg.cholesky(matrix) @ rng.normal(size=self.N)
        y = 4.0 + self.SLOPE * x + self.SCALE * noise
        law = regress("normal", on="x").fit(y, x[:, None])
        law = law.with_theta([law.base.location, math.log(self.SCALE), law.coefficients[0]])
        process = Process(covariance, (law,))
        design = np.column_stack([np.ones(self.N), x])
        weights = design.T @ np.linalg.inv(matrix)
        estimate = np.linalg.solve(weights @ design, weights @ y)
        error = self.SCALE * math.sqrt(np.linalg.inv(weights @ design)[1, 1])
        return process, Sample.of([sites], [y], [x[:, None]]), process.join(theta), estimate, error

    def maximum(self):
        """Maximise the likelihood over location and slope alone."""
        process, sample, theta, *_ = self.problem
        free = [process.covariance.size, process.size - 1]

        def value(part):
            point = theta.copy()
            point[free] = part
            nll, gradient = exact.objective(process, sample, point)
            return nll, gradient[free]

        found = minimize(value, theta[free], jac=True, method="BFGS", options={"gtol": 1e-9})
        point = theta.copy()
        point[free] = found.x
        return process.split(point)[1][0]

    def test_equals_the_closed_form(self):
        """The likelihood's maximum is the generalised least squares estimate, to 1e-6."""
        _, sample, _, (level, slope), _ = self.problem
        law, x = self.maximum(), sample.covariates_of(0)[:, 0]
        assert law.parameters["x"] == pytest.approx(slope, abs=1e-6)
        assert law.base.location == pytest.approx(level + slope * x.mean(), abs=1e-6)
        ordinary = np.polyfit(x, sample.values, 1)[0]
        assert abs(ordinary - slope) > 0.05

    def test_recovers_the_slope(self):
        """The slope is found within two and a half of its standard errors."""
        *_, error = self.problem
        assert abs(self.maximum().parameters["x"] - self.SLOPE) < 2.5 * error < 1.0


def test_groups_are_independent_under_pure_nugget():
    """With nothing but nugget the fit of a grouped law is that of each group alone."""
    rng = np.random.default_rng(3)
    n = 90
    codes = np.arange(n) % 3.0
    values = rng.gamma(2.0 + codes, 1.0 + codes)
    law = by("k", "gamma").fit(values, codes[:, None])
    process = Process(Covariance((KERNELS["se"],), PLANE), (law,))
    sample = Sample.of([rng.uniform(size=(n, 2))], [values], [codes[:, None]])
    # the logit of the signal's share
    theta = process.join(np.array([math.log(0.1), -30.0]))
    where = process.slices[0]
    _, gradient = exact.objective(process, sample, theta)
    np.testing.assert_allclose(gradient[where], 0.0, atol=1e-5)
    alone = [Gamma.fit(values[codes == g]).theta for g in range(3)]
    np.testing.assert_allclose(law.theta, np.concatenate(alone))
