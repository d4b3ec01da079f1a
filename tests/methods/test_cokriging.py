"""Ordinary co-kriging: the bordered system, its constraints, and R's gstat where it is there."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal, regress
from xcopula.methods import CoKriging, Full
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact

LAW = Normal(1.0, 2.0)


def setting(**options):
    """Condition two or three tasks with normal laws, and give cells of all kinds."""
    process, sample, theta, rng = reference.example(**({"name": "lmc", "law": LAW} | options))
    ours = reference.condition(CoKriging(), process, sample, theta)
    return process, sample, theta, ours, reference.some_targets(sample, rng)


class TestConstraints:
    @pytest.mark.parametrize("name", ["lmc", "shared"])
    @pytest.mark.parametrize("nugget", [True, False])
    def test_weights_are_unbiased(self, name, nugget):
        """Weights of the task add up to one, those of each other task to zero, to 1e-10."""
        process, sample, theta, ours, targets = setting(name=name)
        for task in range(sample.tasks):
            weights = ours.means(targets, np.eye(sample.size), task=task, nugget=nugget).T
            for i in range(sample.tasks):
                total = weights[:, sample.task(i)].sum(axis=1)
                np.testing.assert_allclose(total, float(i == task), atol=1e-10)
            w = process.scores(theta, sample)
            expected = ours.moments(targets, task=task, nugget=nugget).mean
            np.testing.assert_allclose(weights @ w, expected, atol=1e-10)

    @pytest.mark.parametrize("task", [0, 1])
    def test_constant_shift_is_followed(self, task):
        """Adding a constant to a task's scores shifts its prediction by it, and no other's."""
        process, sample, theta, ours, targets = setting(law=Normal(0.0, 1.0))
        values = sample.values.copy()
        values[sample.task(task)] += 3.0
        moved = reference.condition(CoKriging(), process, replace(sample, values=values), theta)
        for other in (0, 1):
            before, after = (m.moments(targets, task=other).mean for m in (ours, moved))
            np.testing.assert_allclose(after - before, 3.0 * (other == task), atol=1e-9)


class TestSystem:
    @pytest.mark.parametrize("name", ["lmc", "shared"])
    @pytest.mark.parametrize("nugget", [True, False])
    def test_any_task_against_the_kriging_system(self, name, nugget):
        """Mean and variance solve the bordered system of ordinary co-kriging, to 1e-8."""
        process, sample, theta, ours, cells = setting(name=name)
        n, t = sample.size, sample.tasks
        f = np.zeros((n, t))
        for i in range(t):
            f[sample.task(i), i] = 1.0
        w = process.scores(theta, sample)
        for task in range(t):
            inner, k, own = reference.joint(process, theta, sample, cells, task, nugget=nugget)
            bordered = np.block([[inner, f], [f.T, np.zeros((t, t))]])
            wanted = np.zeros((t, cells.size))
            wanted[task] = 1.0
            right = np.vstack([k.T, wanted])
            solution = np.linalg.solve(bordered, right)
            got = ours.moments(cells, task=task, nugget=nugget)
            np.testing.assert_allclose(got.mean, solution[:n].T @ w, rtol=0, atol=1e-8)
            variance = np.diagonal(own) - (solution * right).sum(axis=0)
            np.testing.assert_allclose(got.variance, variance, rtol=0, atol=1e-8)

    def test_variance_is_more_than_that_of_known_means(self):
        """What is not known of the means adds to the variance, but at the data."""
        process, sample, theta, ours, cells = setting()
        for task in (0, 1):
            simple = reference.condition(Exact(), process, sample, theta).moments(cells, task=task)
            found = ours.moments(cells, task=task)
            open_ = sample.observed(task, cells.sites) < 0
            assert (found.variance[open_] > simple.variance[open_]).all()
            np.testing.assert_allclose(found.variance[~open_], 0.0, atol=1e-10)

    def test_far_from_data_the_mean_is_the_estimated_one(self):
        """Beyond every length scale: the generalised least squares mean, and its variance."""
        process, sample, theta, ours, _ = setting()
        far = Targets.nowhere(np.full((2, 1), 1e3))
        inputs, _ = reference.parts(sample)
        matrix = reference.covariance_matrix(process.covariance, theta, inputs)
        f = np.repeat(np.eye(2), sample.sizes, axis=0)
        information = f.T @ np.linalg.solve(matrix, f)
        w = process.scores(theta, sample)
        level = np.linalg.solve(information, f.T @ np.linalg.solve(matrix, w))
        for task in (0, 1):
            mean, variance = ours.moments(far, task=task)
            assert mean[0] == pytest.approx(level[task], abs=1e-8)
            expected = 1.0 + np.linalg.inv(information)[task, task]
            assert variance[0] == pytest.approx(expected, abs=1e-8)


class TestLeaveOneOut:
    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    def test_equals_deletion(self, noise):
        """Closed form equals deleting each observation, the means estimated anew, to 1e-9."""
        process, sample, theta, ours, _ = setting(sizes=(14, 13), law=Normal(0.0, 1.0), noise=noise)
        loo = ours.leave_one_out()
        for i in range(sample.size):
            task = int(i >= 14)
            part = reference.without(sample, i)
            again = reference.condition(CoKriging(), process, part, theta)
            moments = again.moments(sample.targets(np.array([i])), task=task)
            assert moments.mean[0] == pytest.approx(loo.mean[i], abs=1e-9)
            assert moments.variance[0] == pytest.approx(loo.variance[i], abs=1e-9)


class TestMethod:
    def test_likelihood_is_the_full_one(self):
        """The means are those of the laws until the process is conditioned."""
        process, sample, theta, _, _ = setting()
        value, gradient = reference.objective(CoKriging(), process, sample, theta)
        expected, by_theta = reference.objective(Full(), process, sample, theta)
        assert value == expected
        np.testing.assert_array_equal(gradient, by_theta)
        assert CoKriging().cost(Exact(), [30, 20]) == Full().cost(Exact(), [30, 20])

    def test_law_and_coupling_are_settled(self):
        """Normal laws and a linear model of coregionalisation."""
        assert (CoKriging().law, CoKriging().coupling) == ("normal", "lmc")
        assert CoKriging().name == "cokriging"

    def test_description(self):
        """It says that the means are unknown."""
        *_, ours, _ = setting()
        assert ours.describe() == [
            "ordinary co-kriging: unknown means by generalised least squares"
        ]

    def test_normal_laws_that_vary(self):
        """Co-kriging takes a normal law that varies."""
        process, sample, theta = reference.varying(2)
        first = regress("normal", on=["x", "y"]).fit(
            sample.values[sample.task(0)], sample.covariates_of(0)
        )
        normal = Process(process.covariance, (first, process.marginals[1]))
        theta = normal.join(process.split(theta)[0])
        fitted = reference.condition(CoKriging(), normal, sample, theta)
        np.testing.assert_allclose(fitted.base.scores, normal.scores(theta, sample))


SCRIPT = """
suppressMessages({library(sp); library(gstat)})
a <- read.csv("a.csv"); b <- read.csv("b.csv"); new <- read.csv("new.csv"); p <- read.csv("p.csv")
for (d in c("a", "b", "new")) { x <- get(d); coordinates(x) <- ~x+y; assign(d, x) }
model <- function(sill, nugget) vgm(sill, "Exp", p$range, nugget)
g <- gstat(NULL, "a", z ~ 1, a, model = model(p$s11, p$n1))
g <- gstat(g, "b", z ~ 1, b, model = model(p$s22, p$n2))
g <- gstat(g, c("a", "b"), model = model(p$s12, 0))
out <- predict(g, new, debug.level = 0)
write.csv(data.frame(mean = out$a.pred, variance = out$a.var), "out.csv", row.names = FALSE)
"""


def gstat_is_there() -> bool:
    """Tell whether R runs and has gstat."""
    if shutil.which("Rscript") is None:
        return False
    ask = ["Rscript", "-e", "quit(status = !requireNamespace('gstat', quietly = TRUE))"]
    return subprocess.run(ask, capture_output=True, check=False).returncode == 0


def write(path, header, *columns):
    """Write columns to a CSV file with all digits."""
    np.savetxt(path, np.column_stack(columns), "%.17g", ",", header=header, comments="")


def test_cokriging_equals_gstat(tmp_path):
    """Mean and variance of an LMC with exponential kernels equal those of gstat, to 1e-8."""
    if not gstat_is_there():
        pytest.skip("R with the package gstat is not installed")
    rng = np.random.default_rng(0)
    length, correlation, shares = 0.3, 0.7, np.array([0.8, 0.9])
    covariance = Covariance(
        (KERNELS["matern12"],) * 2, (InputGroup(2),), "lmc", noise="independent"
    )
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log(length)
    covariance.part(theta, "logit")[:] = np.log(shares / (1.0 - shares))
    covariance.part(theta, "correlation")[:] = parameters_of(
        np.array([[1.0, correlation], [correlation, 1.0]])
    )
    process = Process(covariance, (Normal(0.0, 1.0),) * 2)
    inputs = [rng.uniform(size=(20, 2)), rng.uniform(size=(25, 2))]
    values = [rng.normal(size=20), rng.normal(size=25)]
    new = rng.uniform(size=(7, 2))
    sample = Sample.of(inputs, values)
    ours = reference.condition(CoKriging(), process, sample, process.join(theta))
    moments = ours.moments(Targets.nowhere(np.ascontiguousarray(new.T)))

    write(tmp_path / "a.csv", "x,y,z", inputs[0], values[0])
    write(tmp_path / "b.csv", "x,y,z", inputs[1], values[1])
    write(tmp_path / "new.csv", "x,y", new)
    cross = correlation * np.sqrt(shares.prod())
    row = [length, *shares, cross, *(1.0 - shares)]
    write(tmp_path / "p.csv", "range,s11,s22,s12,n1,n2", *row)
    (tmp_path / "script.R").write_text(SCRIPT)
    subprocess.run(["Rscript", "script.R"], cwd=tmp_path, check=True, capture_output=True)
    theirs = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(moments.mean, theirs[:, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(moments.variance, theirs[:, 1], rtol=0, atol=1e-8)
