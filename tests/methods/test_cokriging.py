"""Ordinary co-kriging against R's gstat, where R and gstat are installed."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from xcopula.kernels import KERNELS
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.methods import cokriging
from xcopula.process.copula import Process, Sample

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
    ours = cokriging.condition(process, Sample.of(inputs, values), process.join(theta))
    moments = ours.moments(np.ascontiguousarray(new.T))

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
