"""Predictions of other libraries and of plain kriging, scored as those of the package are.

All are probabilistic: a peer gives quantiles of each hidden value, of which the CRPS is twice the
mean quantile score. Gaussian peers work with logs where all values are above zero and skewed, and
else with values as they are; or with normal scores, by a transform through the data. They and
kriging see the primary alone. The forest also takes the secondaries as inputs, where all of them
are known at all places of the primary, hidden ones included.

Imports are inside of functions: a library that is not installed is `Missing`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from real_data import Cut
from scipy.optimize import least_squares
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

FloatArray = np.ndarray
LEVELS = (np.arange(199) + 0.5) / 199
LOG_2PI = np.log(2.0 * np.pi)


class Missing(Exception):
    """A peer that cannot be run here: why, and what to do."""


@dataclass(frozen=True)
class Prediction:
    """Quantiles (levels, m) of hidden values, and the log density of the true ones if there is."""

    quantiles: FloatArray
    log_density: FloatArray | None = None


# --- scores -------------------------------------------------------------------------------------


def crps_of_quantiles(quantiles: FloatArray, truth: FloatArray) -> FloatArray:
    """Return twice the mean quantile score, of quantiles (k, m) at levels (j - 1/2) / k."""
    levels = ((np.arange(len(quantiles)) + 0.5) / len(quantiles))[:, None]
    gaps = quantiles - truth
    return 2.0 * np.where(gaps > 0.0, (1.0 - levels) * gaps, -levels * gaps).mean(axis=0)


def crps_of_normal(mean: FloatArray, std: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the CRPS of normal predictions in closed form."""
    z = (truth - mean) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))


def quantile_of(prediction: Prediction, level: float) -> FloatArray:
    """Return the quantiles of one level, by interpolation."""
    return np.apply_along_axis(lambda q: np.interp(level, LEVELS, q), 0, prediction.quantiles)


# --- transforms ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transform:
    """Values to a scale on which they are more nearly normal, and back."""

    forward: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]
    log_slope: Callable[[FloatArray], FloatArray] | None = None


def identity(values: FloatArray) -> Transform:
    """Leave values as they are."""
    return Transform(np.asarray, np.asarray, np.zeros_like)


def logs(values: FloatArray) -> Transform:
    """Take logs of values that are above zero and skewed, and leave others as they are."""
    if values.min() <= 0.0 or pd.Series(values).skew() < 0.5:
        return identity(values)
    return Transform(np.log, np.exp, lambda y: -np.log(y))


def normal_scores(values: FloatArray) -> Transform:
    """Map ranks to normal quantiles, with straight lines between values.

    Beyond the data lines go on as steep as the chord of the outer tenth of the values; values that
    are never below zero stay so.
    """
    ends, counts = np.unique(values, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * counts
    z = ndtri(ranks / values.size)
    tenth = max(len(ends) // 10, 1)
    slopes = [
        (ends[tenth] - ends[0]) / (z[tenth] - z[0]),
        (ends[-1] - ends[-1 - tenth]) / (z[-1] - z[-1 - tenth]),
    ]
    least = 0.0 if ends[0] >= 0.0 else -np.inf
    z_ends = np.array([z[0] - 10.0, *z, z[-1] + 10.0])
    y_ends = np.array([ends[0] - 10.0 * slopes[0], *ends, ends[-1] + 10.0 * slopes[1]])
    return Transform(
        lambda y: np.interp(y, y_ends, z_ends),
        lambda s: np.maximum(np.interp(s, z_ends, y_ends), least),
    )


def of_normal(
    transform: Transform, mean: FloatArray, std: FloatArray, truth: FloatArray
) -> Prediction:
    """Return the prediction whose transform is normal."""
    quantiles = transform.back(mean + std * ndtri(LEVELS)[:, None])
    if transform.log_slope is None:
        return Prediction(quantiles)
    density = -0.5 * ((transform.forward(truth) - mean) / std) ** 2 - np.log(std) - 0.5 * LOG_2PI
    return Prediction(quantiles, density + transform.log_slope(truth))


# --- inputs -------------------------------------------------------------------------------------

SPACE = ("x", "y", "lon", "lat", "Linha", "Coluna")


def places(frame: pd.DataFrame, names: list[str]) -> FloatArray:
    """Return coordinates as numbers: degrees in 100 km, times in days."""
    columns = []
    for name in names:
        if name == "time":
            days = (frame[name] - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
            columns.append(days.to_numpy(float))
        else:
            narrow = np.cos(np.deg2rad(frame["lat"].mean())) if name == "lon" else 1.0
            columns.append(frame[name].to_numpy(float) * narrow)
    return np.column_stack(columns)


def coordinates(cut: Cut) -> list[str]:
    """Return the names of the coordinates of a task."""
    return [str(name) for name in cut.targets.coords]


def inputs(cut: Cut, names: list[str]) -> tuple[FloatArray, FloatArray]:
    """Return inputs of known and hidden values, scaled by those that are known."""
    known, hidden = places(cut.known, names), places(cut.hidden, names)
    centre = known.mean(axis=0)
    plane = [k for k, name in enumerate(names) if name in SPACE]
    scale = known.std(axis=0)
    scale[plane] = np.sqrt((scale[plane] ** 2).mean())
    return (known - centre) / scale, (hidden - centre) / scale


def values(cut: Cut) -> tuple[FloatArray, FloatArray]:
    """Return known and hidden values of the primary."""
    name = cut.task.primary
    return cut.known[name].to_numpy(float), cut.hidden[name].to_numpy(float)


def require(module: str, package: str) -> Any:
    """Import a module, or say that its package is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Missing(f"{package} is not installed: pip install {package}") from error


def at_most(cut: Cut, count: int) -> None:
    """Refuse tasks that are too large for a peer."""
    if len(cut.known) > count:
        raise Missing(
            f"at most {count:,} values are given to this peer, the task has {len(cut.known):,}"
        )


# --- peers --------------------------------------------------------------------------------------


def gaussian_process(cut: Cut, choose: Callable[[FloatArray], Transform]) -> Callable:
    """Fit scikit-learn's process: Matern 1/2 or 3/2, whichever is more likely."""
    require("sklearn", "scikit-learn")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    at_most(cut, 1000)
    names = coordinates(cut)
    known, hidden = inputs(cut, names)
    y, truth = values(cut)
    transform = choose(y)
    lengths = 0.5 if set(names) <= set(SPACE) else np.full(len(names), 0.5)

    def fitted(nu: float) -> Any:
        kernel = ConstantKernel(0.5) * Matern(lengths, (0.01, 100.0), nu=nu)
        noise = WhiteKernel(0.3, (1e-4, 10.0))
        process = GaussianProcessRegressor(kernel + noise, normalize_y=True, random_state=0)
        return process.fit(known, transform.forward(y))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = max(map(fitted, (0.5, 1.5)), key=lambda p: p.log_marginal_likelihood_value_)

    def predict() -> Prediction:
        mean, std = best.predict(hidden, return_std=True)
        return of_normal(transform, mean, std, truth)

    return predict


def forest_inputs(cut: Cut) -> list[str]:
    """Return coordinates, and secondaries that are known at all places."""
    beside = list(cut.task.secondaries)
    both = pd.concat([cut.known[beside], cut.hidden[beside]])
    complete = not both.isna().to_numpy().any()
    return coordinates(cut) + (beside if complete else [])


def forest(cut: Cut) -> Callable:
    """Fit a quantile regression forest: the law of a value is that of its leaves."""
    require("sklearn", "scikit-learn")
    from sklearn.ensemble import RandomForestRegressor

    at_most(cut, 10_000)
    names = forest_inputs(cut)
    known, hidden = places(cut.known, names), places(cut.hidden, names)
    y, _ = values(cut)
    model = RandomForestRegressor(300, min_samples_leaf=5, random_state=0).fit(known, y)

    def predict() -> Prediction:
        leaves, asked_leaves = model.apply(known), model.apply(hidden)
        weights = np.zeros((len(hidden), len(known)))
        for tree in range(leaves.shape[1]):
            same = asked_leaves[:, tree, None] == leaves[:, tree]
            weights += same / same.sum(axis=1, keepdims=True)
        order = np.argsort(y)
        levels = np.cumsum(weights[:, order], axis=1)
        levels /= levels[:, -1:]
        where = np.stack([np.searchsorted(row, LEVELS) for row in levels], axis=1)
        return Prediction(y[order][np.minimum(where, y.size - 1)])

    return predict


def pykrige(cut: Cut) -> Callable:
    """Krige normal scores by PyKrige, with an exponential variogram."""
    require("pykrige", "pykrige")
    from pykrige.ok import OrdinaryKriging

    at_most(cut, 1500)
    if cut.panel:
        raise Missing("PyKrige has no variograms of space and time")
    names = [name for name in coordinates(cut) if name in SPACE]
    known, hidden = inputs(cut, names)
    y, truth = values(cut)
    transform = normal_scores(y)
    model = OrdinaryKriging(*known.T, transform.forward(y), "exponential", nlags=12)

    def predict() -> Prediction:
        mean, variance = model.execute("points", *hidden.T)
        std = np.sqrt(np.maximum(np.asarray(variance), 1e-9))
        return of_normal(transform, np.asarray(mean), std, truth)

    return predict


def gpboost(cut: Cut) -> Callable:
    """Fit GPBoost's process with a Matern kernel of each length, by neighbours if it is large."""
    package = require("gpboost", "gpboost")
    names = coordinates(cut)
    known, hidden = inputs(cut, names)
    y, truth = values(cut)
    transform = logs(y)
    flat = set(names) <= set(SPACE)
    model = package.GPModel(
        gp_coords=known,
        cov_function="matern" if flat else "matern_ard",
        cov_fct_shape=0.5,
        gp_approx="vecchia" if len(y) > 1500 else "none",
        num_neighbors=20,
        likelihood="gaussian",
        num_parallel_threads=1,
    )
    z = transform.forward(y)
    model.fit(y=z, X=np.ones((len(y), 1)))

    def predict() -> Prediction:
        done = model.predict(
            gp_coords_pred=hidden, X_pred=np.ones((len(truth), 1)), predict_var=True
        )
        std = np.sqrt(np.maximum(done["var"], 1e-12))
        return of_normal(transform, done["mu"], std, truth)

    return predict


# --- kriging, time by time ----------------------------------------------------------------------


def exponential(parameters: FloatArray, distance: FloatArray) -> FloatArray:
    """Return the variogram of log nugget, log sill and log range."""
    nugget, sill, length = np.exp(parameters)
    return nugget + sill * (1.0 - np.exp(-distance / length))


def variogram(groups: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Fit an exponential variogram to pairs of all times together."""
    apart, halves = [], []
    for at, z in groups:
        i, j = np.triu_indices(len(z), 1)
        apart.append(np.linalg.norm(at[i] - at[j], axis=1))
        halves.append(0.5 * (z[i] - z[j]) ** 2)
    distance, half = np.concatenate(apart), np.concatenate(halves)
    edges = np.quantile(distance, np.linspace(0.0, 0.7, 13))
    number = np.digitize(distance, edges)
    bins = [number == k for k in range(1, 13)]
    bins = [b for b in bins if b.any()]
    lags = np.array([distance[b].mean() for b in bins])
    gammas = np.array([half[b].mean() for b in bins])
    weights = np.sqrt([b.sum() for b in bins]) / np.maximum(gammas, 1e-12)
    begin = np.log([0.1 * half.mean() + 1e-9, half.mean() + 1e-9, np.median(distance)])
    limits = (begin - 8.0, begin + 4.0)
    return least_squares(
        lambda p: weights * (exponential(p, lags) - gammas), begin, bounds=limits
    ).x


def krige(
    parameters: FloatArray, at: FloatArray, z: FloatArray, to: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of ordinary kriging of new values, nugget included."""
    size = len(z)
    matrix = np.ones((size + 1, size + 1))
    matrix[:-1, :-1] = exponential(parameters, cdist(at, at))
    np.fill_diagonal(matrix, 0.0)
    right = np.ones((size + 1, len(to)))
    right[:-1] = exponential(parameters, cdist(at, to))
    weights = np.linalg.solve(matrix, right)
    return weights[:-1].T @ z, np.sqrt(np.maximum((weights * right).sum(axis=0), 1e-12))


def kriging_by_time(cut: Cut) -> Callable:
    """Krige normal scores time by time, with one variogram of all times."""
    if not cut.panel:
        raise Missing("kriging time by time is for panels")
    names = [name for name in coordinates(cut) if name in SPACE]
    known, hidden = inputs(cut, names)
    y, truth = values(cut)
    transform = normal_scores(y)
    z = transform.forward(y)
    times, asked_times = cut.known["time"].to_numpy(), cut.hidden["time"].to_numpy()
    groups = [(known[times == t], z[times == t]) for t in np.unique(times)]
    parameters = variogram(groups)

    def predict() -> Prediction:
        mean, std = np.full(len(truth), z.mean()), np.full(len(truth), z.std())
        for t in np.unique(asked_times):
            at, to = times == t, asked_times == t
            if at.sum() > 1:
                mean[to], std[to] = krige(parameters, known[at], z[at], hidden[to])
        return of_normal(transform, mean, std, truth)

    return predict


# A function that fits and returns another that predicts, and the package whose version counts.
PEERS: dict[str, tuple[Callable[[Cut], Callable[[], Prediction]], str]] = {
    "GPR of logs": (lambda cut: gaussian_process(cut, logs), "scikit-learn"),
    "GPR of normal scores": (lambda cut: gaussian_process(cut, normal_scores), "scikit-learn"),
    "forest": (forest, "scikit-learn"),
    "PyKrige": (pykrige, "pykrige"),
    "GPBoost": (gpboost, "gpboost"),
    "kriging by time": (kriging_by_time, "scipy"),
}
PANELS_ONLY, PLANES_ONLY = {"kriging by time"}, {"PyKrige"}


MODULES = {
    "scikit-learn": ("sklearn.gaussian_process", "sklearn.ensemble"),
    "pykrige": ("pykrige.ok",),
    "gpboost": ("gpboost",),
    "scipy": (),
}


def warm(peer: str) -> None:
    """Import what a peer needs, before time is taken."""
    package = PEERS[peer][1]
    for module in MODULES[package]:
        require(module, package)


def stamp(peer: str) -> str:
    """Return the version of a peer's package."""
    package = PEERS[peer][1]
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"
