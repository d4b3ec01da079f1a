"""Numbers that have to be right, against closed forms and differences: for bench_promises.py."""

from __future__ import annotations

import numpy as np
from bench_units import largest
from scipy.special import ndtr

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import lower, scaled_inputs
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import MARGINALS, Normal, Parzen
from xcopula.process import Predictive, Process, Sample
from xcopula.solvers import Exact


def eigenvalue(draws: int) -> float:
    """Return the smallest eigenvalue of covariances of random parameters, without nugget."""
    rng, worst = np.random.default_rng(0), np.inf
    for draw in range(draws):
        tasks, dimension = int(rng.integers(2, 6)), (1, 2, 3, 7)[draw % 4]
        kernels = tuple(KERNELS[k] for k in rng.choice(list(KERNELS), tasks))
        covariance = Covariance(kernels, (InputGroup(dimension),), structures=1 + draw % 2)
        theta = np.zeros(covariance.size)
        for name in ("length", "correlation"):
            theta[covariance.layout[name][0]] = rng.normal(
                -1.5 if name == "length" else 0.0, 1.2, theta[covariance.layout[name][0]].size
            )
        covariance.part(theta, "logit")[:] = 40.0
        points = rng.uniform(size=(dimension, 40 * tasks))
        state = covariance.state(theta)
        sites, offsets = np.arange(40 * tasks), np.arange(0, 40 * tasks + 1, 40)
        matrix = np.tril(lower(state, scaled_inputs(points, state), sites, offsets))
        worst = min(worst, float(np.linalg.eigvalsh(matrix + np.tril(matrix, -1).T).min()))
    return worst


def gradient(model: xcopula.CopulaModel) -> float:
    """Compare the gradient with differences, as a share of its largest entry."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(3):
        theta = model.theta + 0.1 * rng.normal(size=model.theta.size)
        exact = model.objective(theta)[1]
        steps = 1e-4 * np.eye(theta.size)

        def slope(step: np.ndarray, at: np.ndarray = theta) -> float:
            one, two = (
                (model.objective(at + k * step)[0] - model.objective(at - k * step)[0]) / k
                for k in (1.0, 2.0)
            )
            return float((4.0 * one - two) / 3.0 / 2e-4)

        found = np.array([slope(step) for step in steps])
        worst = max(worst, float(np.abs(found - exact).max() / np.abs(exact).max()))
    return worst


def crps() -> float:
    """Compare with the closed form of the normal law, up to five deviations out."""
    y = np.linspace(-5.0, 5.0, 1001)
    closed = (
        y * (2.0 * ndtr(y) - 1.0)
        + 2.0 * np.exp(-0.5 * y**2) / np.sqrt(2.0 * np.pi)
        - 1.0 / np.sqrt(np.pi)
    )
    found = Predictive(np.zeros(y.size), np.ones(y.size), Normal(0.0, 1.0)).crps(y)
    return float(np.abs(found / closed - 1.0).max())


def inverse(count: int) -> float:
    """Take quantiles of all laws back to their levels; a crossing is infinite."""
    rng, worst = np.random.default_rng(0), 0.0
    levels = np.linspace(0.001, 0.999, count)
    for law in MARGINALS.values():
        fitted = law.fit(rng.lognormal(size=200))
        for mean, std in ((0.0, 1.0), (-2.0, 0.3), (2.0, 1.5)):
            predicted = Predictive(np.full(1, mean), np.full(1, std), fitted)
            found = np.array([predicted.quantile(level)[0] for level in levels])
            back = np.array([predicted.cdf(value)[0] for value in found])
            worst = max(worst, largest(back, levels), np.inf if np.diff(found).min() < 0 else 0.0)
    return worst


def noise_free() -> float:
    """Let the signal pass through noise-free data: distances in deviations of the least nugget."""
    covariance, rng = Covariance((KERNELS["matern32"],), (InputGroup(2),)), np.random.default_rng(0)
    process = Process(covariance, (Normal(0.0, 1.0),))
    theta = process.join(np.zeros(covariance.size))
    covariance.part(theta[: covariance.size], "length")[:] = np.log(0.3)
    points, nugget = rng.uniform(size=(200, 2)), 1.0 / (1.0 + np.exp(13.0))
    covariance.part(theta[: covariance.size], "logit")[:] = 13.0
    factor = Exact().condition(process, Sample.of([points], [np.ones(200)]), None, theta).factor
    sample = Sample.of([points], [np.tril(factor) @ rng.normal(size=200)])
    conditioned = Exact().condition(process, sample, None, theta)
    mean = conditioned.moments(sample.targets(np.arange(200)), nugget=False).mean
    return largest(mean, sample.values) / float(np.sqrt(nugget))


def outliers() -> float:
    """Return how far outliers of 1e2 to 1e8 deviations move the Parzen law's bandwidth."""
    rng, worst = np.random.default_rng(0), 0.0
    for size in (30, 100, 1000):
        clean = rng.normal(size=size)
        plain = Parzen.fit(clean).bandwidth
        for far in (1e2, 1e4, 1e6, 1e8):
            for count in (1, size // 10):
                law = Parzen.fit(np.append(clean, far * rng.uniform(1.0, 2.0, count)))
                y = law.from_normal(np.linspace(-6.0, 6.0, 5001))
                rising = np.diff(y).min() > 0.0
                worst = max(worst, abs(law.bandwidth / plain - 1.0) if rising else np.inf)
    return worst
