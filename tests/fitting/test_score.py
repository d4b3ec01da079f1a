"""Score tests: against dense algebra, against refits, and under the hypothesis of no extension."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.linalg import expm

import xcopula
from xcopula.fitting import score
from xcopula.fitting.maximise import penalised
from xcopula.fitting.newton import minimise
from xcopula.methods import Full
from xcopula.solvers.contract import Informed

KM = {"units": "km"}
LENGTH, NUGGET = 25.0, 0.2
fit = functools.partial(
    xcopula.fit, marginals="normal", kernels="matern12", anisotropy=False, method="full"
)
TWO = ["matern32", "matern12"]
NAMES = [
    "anisotropy of space",
    "another structure, short range",
    "another structure, long range",
    "v ~ height",
]


def world(seed, size=120, ratio=1.0, slope=0.0):
    """Draw a normal variable in a square of 100 km, with a covariate of independent values."""
    rng = np.random.default_rng(seed)
    places, height = 100.0 * rng.random((size, 2)), rng.normal(size=size)
    turned = places * [1.0, ratio]
    apart = np.linalg.norm(turned[:, None] - turned, axis=-1) / LENGTH
    factor = np.linalg.cholesky((1.0 - NUGGET) * np.exp(-apart) + NUGGET * np.eye(size))
    v = 10.0 + 2.0 * factor @ rng.normal(size=size) + slope * height
    coords = {c: ("site", places[:, k], KM) for k, c in enumerate("xy")}
    return xr.Dataset({"v": ("site", v), "height": ("site", height)}, coords)


@pytest.fixture(scope="module")
def data():
    return world(0)


@pytest.fixture(scope="module")
def model(data):
    return fit(data, "v")


def row(tests, name):
    return tests.sel(extension=name)


def test_against_dense_algebra(model, data, monkeypatch):
    """Gradients and information by differences of the covariance, and by the normal law."""
    monkeypatch.setattr(score, "_DRAWS", 0)  # the information of the data
    found = xcopula.score_tests(model, data)
    assert list(found["extension"].values) == NAMES
    np.testing.assert_array_equal(found["parameters"], [2, 1, 1, 1])
    inputs = model.observations.sample.inputs.T
    difference = inputs[:, None] - inputs
    log_length, logit, location, log_scale = model.theta

    def matrix(theta):
        """Return the covariance by log length, logit, two of the metric, and two shares."""
        inner = expm(np.array([[theta[2], theta[3]], [theta[3], -theta[2]]]))
        apart = np.sqrt(np.einsum("ijk,kl,ijl->ij", difference, inner, difference))
        signal = np.exp(-apart / np.exp(theta[0]))
        short, long = (np.exp(-apart / (f * np.exp(log_length))) for f in (0.25, 4.0))
        share, extra = 1.0 / (1.0 + np.exp(-theta[1])), theta[4:]
        before = share * signal + (1.0 - share) * np.eye(len(apart))
        return (1.0 - extra.sum()) * before + extra[0] * short + extra[1] * long

    at, step = np.array([log_length, logit, 0.0, 0.0, 0.0, 0.0]), 1e-5
    units = step * np.eye(6)
    slopes = [(matrix(at + u) - matrix(at - u)) / (2.0 * step) for u in units]
    inverse, scale = np.linalg.inv(matrix(at)), np.exp(log_scale)
    z = (data["v"].values - location) / scale
    e = (data["height"].values - data["height"].values.mean()) / data["height"].values.std()
    alpha = inverse @ z
    moves = -np.stack([np.full(z.size, 1.0 / scale), z, e / scale], axis=1)
    q = np.stack([slope @ alpha for slope in slopes], axis=1)
    gradient = np.array(
        [0.5 * np.trace(inverse @ s) - 0.5 * alpha @ s @ alpha for s in slopes]
        + list(moves.T @ alpha + [0.0, z.size, 0.0])
    )
    directions = np.hstack([-q, moves])
    information = directions.T @ inverse @ directions
    information[:6, :6] *= 0.5
    second = np.zeros((3, 3))
    second[1] = second[:, 1] = [alpha.sum() / scale, alpha @ z, alpha @ e / scale]
    information[6:, 6:] += second
    old = [0, 1, 6, 7]
    gradient[old] -= model.process.log_prior(model.theta)[1]
    information[np.ix_(old, old)] += model.process.prior_information(model.theta)
    for name, new in zip(NAMES, ([2, 3], [4], [5], [8]), strict=True):
        mixed = information[np.ix_(new, old)] @ np.linalg.inv(information[np.ix_(old, old)])
        left = information[np.ix_(new, new)] - mixed @ information[np.ix_(old, new)]
        u = gradient[new] - mixed @ gradient[old]
        statistic = u @ np.linalg.solve(left, u)
        p_value = stats.chi2.sf(statistic, len(new))
        if "structure" in name:
            better = u[0] < 0.0
            statistic, p_value = (statistic, 0.5 * p_value) if better else (0.0, 1.0)
        own = row(found, name)
        assert float(own["statistic"]) == pytest.approx(statistic, rel=1e-3, abs=1e-6), name
        assert float(own["gain"]) == pytest.approx(0.5 * statistic, rel=1e-3, abs=1e-6)
        assert float(own["p_value"]) == pytest.approx(p_value, rel=1e-2, abs=1e-6)


def test_gain_of_refits():
    """Directions and a covariate gain what was promised, to a third: a prior shrinks directions."""
    data = world(0, size=250, ratio=1.7, slope=0.3)
    model = fit(data, "v")
    found = xcopula.score_tests(model, data)
    turned = fit(data, "v", anisotropy=True)
    trend = fit(data, "v", marginals=xcopula.regress("normal", on="height"))
    for name, wider in (("anisotropy of space", turned), ("v ~ height", trend)):
        gain = wider.log_likelihood - model.log_likelihood
        own = row(found, name)
        assert gain > 4.0
        assert float(own["gain"]) == pytest.approx(gain, rel=1.0 / 3.0), name
        assert float(own["p_value"]) < 0.01


def test_another_structure_that_is_there():
    """A field of two ranges is told from one of one, and promises less than a fit gains."""
    rng = np.random.default_rng(0)
    places = 100.0 * rng.random((300, 2))
    places[150:] = places[:150] + rng.normal(scale=3.0, size=(150, 2))
    apart = np.sqrt(3.0) * np.linalg.norm(places[:, None] - places, axis=-1)
    long, short = ((1.0 + apart / length) * np.exp(-apart / length) for length in (50.0, 4.0))
    covariance = 0.6 * long + 0.38 * short + 0.02 * np.eye(300)
    v = np.linalg.cholesky(covariance) @ rng.normal(size=300)
    coords = {c: ("site", places[:, k], KM) for k, c in enumerate("xy")}
    data = xr.Dataset({"v": ("site", v)}, coords)
    model = fit(data, "v", kernels="matern32")
    found = xcopula.score_tests(model)
    assert found["p_value"].values[1:].min() < 0.02
    nested = fit(data, "v", kernels="matern32", structures=2)
    gain = nested.log_likelihood - model.log_likelihood
    assert 0.3 * gain < found["gain"].values[1:].max() < 1.3 * gain


def refitted(model, data):
    """Return a model of other data at its own maximum, by a search from where the other is."""
    other = model.with_only(data)
    process, sample = other.process, other.observations.sample
    arguments = process, sample, other.structure
    loss = penalised(
        process,
        functools.partial(other.method.objective, *arguments),
        functools.partial(other.method.information, *arguments),
    )
    return dataclasses.replace(other, theta=minimise(loss, model.theta, process.bounds()).theta)


@pytest.mark.parametrize(("solver", "worlds"), [("exact", 60), ("neighbours", 30)])
def test_p_values_without_an_extension(solver, worlds):
    """They are roughly uniform, and one for half of the structures."""
    model = fit(world(0, size=60), "v", solver=solver)
    found = []
    for seed in range(1, 1 + worlds):
        data = world(seed, size=60)
        found.append(xcopula.score_tests(refitted(model, data), data)["p_value"].values)
    p_values = np.array(found)
    for k in (0, 3):
        # Four standard errors of the mean and of the share.
        assert abs(p_values[:, k].mean() - 0.5) < 4.0 / np.sqrt(12.0 * worlds)
        assert (p_values[:, k] < 0.1).mean() < 0.1 + 1.2 / np.sqrt(worlds)
    assert np.nanmean(p_values[:, 1:3] == 1.0) > 0.4
    assert np.nanmean(p_values[:, 1:3] < 0.1) < 0.2


@pytest.mark.parametrize(
    "options",
    [
        {"method": "transductive"},
        {"method": "bcm"},
        {"method": "cokriging"},
        {"solver": "neighbours", "marginals": "auto"},
        {"coupling": "icm", "marginals": "lognormal"},
        {"kernels": {"v": TWO, "w": TWO}, "noise": "independent"},
    ],
    ids=lambda options: " ".join(map(str, options.values()))[:30],
)
def test_every_method_with_information(options):
    """Each has the same extensions, and numbers for them."""
    first, second = world(0, size=60), world(1, size=60)
    data = first.assign(w=np.exp(0.1 * (first["v"] + second["v"]))).assign(v=np.abs(first["v"]))
    model = xcopula.fit(
        data,
        "v",
        "w",
        **{"kernels": "matern12", "anisotropy": False, "method": "full", **options},
    )
    found = xcopula.score_tests(model, data[["height"]])
    assert list(found["extension"].values) == [*NAMES, "w ~ height"]
    known = found.sel(extension=["anisotropy of space", "v ~ height", "w ~ height"])
    assert ((known["p_value"] > 0.0) & (known["p_value"] <= 1.0)).all()
    assert (found["statistic"].dropna("extension") >= 0.0).all()


def test_a_strong_covariate_promises_what_it_gains():
    """The information is that of the model, not that of data which the covariate explains."""
    data = world(0, size=100, slope=2.0)
    model = fit(data, "v")
    trend = fit(data, "v", marginals=xcopula.regress("normal", on="height"))
    promised = float(row(xcopula.score_tests(model, data), "v ~ height")["gain"])
    gain = trend.log_likelihood - model.log_likelihood
    assert gain > 20.0
    assert 0.5 * gain < promised < 1.1 * gain


def test_intervals(data):
    """Where values are known as intervals the information is that of the data."""
    limit = float(data["v"].quantile(0.2))
    model = fit(data, "v", censored={"v": limit})
    found = xcopula.score_tests(model, data)
    assert np.isfinite(found["statistic"].values[[0, -1]]).all()
    assert score._drawn(model, model.observations.sample) == []


def test_what_the_model_has_is_not_tested(data):
    """Neither directions that are free, nor covariates that a law has; NaN for what it explains."""
    group = (data["x"] > 50.0).astype(int)
    data = data.assign_coords(group=("site", group.values)).assign(side=2.0 * group + 1.0)
    laws = xcopula.regress(xcopula.by("group", "normal"), on="height")
    model = fit(data, "v", anisotropy=True, marginals=laws)
    found = xcopula.score_tests(model, data)
    assert list(found["extension"].values) == [*NAMES[1:3], "v ~ side"]
    assert np.isnan(row(found, "v ~ side")["p_value"])


def test_an_end_of_the_box(model, data):
    """A parameter there is held, and the others are tested; its error is NaN."""
    theta = model.theta.copy()
    theta[1] = model.process.bounds()[1, 1]
    held = dataclasses.replace(model, theta=theta)
    found = xcopula.score_tests(held, data)
    assert np.isfinite(found["statistic"].values[[0, -1]]).all()
    assert np.isnan(held.parameters["nugget_error"]).all()


def test_an_information_matrix_that_is_not_positive_definite(model, monkeypatch):
    """The message says what was found, and what to do."""
    whole = Full.information

    def turned(self, *arguments):
        value, gradient, information = whole(self, *arguments)
        return Informed(value, gradient, -information)

    monkeypatch.setattr(Full, "information", turned)
    with pytest.raises(ValueError, match=r"must be positive definite, found .*restarts=3"):
        xcopula.score_tests(model)
    monkeypatch.setattr(Full, "information", lambda *_: Informed(np.inf, np.zeros(1), None))
    with pytest.raises(ValueError, match=r"finite likelihood .* found inf .*Fit anew"):
        xcopula.score_tests(model)


def test_models_that_cannot_be_tested(data):
    """Sparse methods have no information; a lazy model no parameters; other things are none."""
    with pytest.raises(ValueError, match=r"information matrix, which method='dtc'.*method='full'"):
        xcopula.score_tests(fit(data, "v", method=xcopula.methods.Sparse("dtc", inducing=20)))
    with pytest.raises(TypeError, match=r"found a LazyModel. Run the fit first"):
        xcopula.score_tests(fit(data, "v", compute=False))
    with pytest.raises(TypeError, match=r"must be a CopulaModel, found .*Dataset"):
        xcopula.score_tests(data)


def test_a_constant_covariate(model, data):
    """It has no slope."""
    with pytest.raises(ValueError, match=r"covariate 'height' is constant: 3 .* leave it out"):
        xcopula.score_tests(model, data.assign(height=("site", np.full(120, 3.0))))
