"""The climb to the maximum: large samples, groups, and samples that a law does not suit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import optimize, stats

from xcopula.marginals import GEV, StudentT, by, estimation, regress

RNG = np.random.default_rng(23)
N = 24_000  # more than are climbed at once
X, CODES = RNG.uniform(0.0, 3.0, N), RNG.integers(0, 4, N).astype(np.float64)
VALUES = np.exp(0.4 * X + 0.2 * CODES) * RNG.gamma(3.0, 2.0, N)
COLUMNS = {"x": X, "k": CODES}

# Samples that a GEV suits badly: a long lower tail above all.
ODD = {
    "heavy tails": RNG.standard_t(3.0, size=1000),
    "two clusters": np.r_[RNG.normal(size=500), 30.0 + RNG.normal(size=500)],
    "outlier below": np.r_[RNG.normal(size=300), -50.0],
    "outlier above": np.r_[RNG.gamma(2.0, size=100), 1e5],
    "mirrored": -RNG.gamma(1.0, size=400),
    "cauchy": RNG.standard_cauchy(size=300),
}


def rows_of(recipe):
    return np.column_stack([COLUMNS[name] for name in recipe.fields])


def fit_at_once(monkeypatch, fit):
    """Fit with Newton steps on all values, as a small sample is."""
    with monkeypatch.context() as context:
        context.setattr(estimation, "_MANY", 10**9)
        return fit()


@pytest.mark.parametrize("law", [GEV, StudentT])
@pytest.mark.parametrize(
    "values",
    [
        RNG.gamma(2.0, 3.0, N),
        np.sort(RNG.normal(size=N)),
        RNG.standard_t(2.0, size=N),
        np.round(RNG.gumbel(size=N), 1),
        -RNG.weibull(3.0, size=N),
        np.r_[RNG.gumbel(size=N), 1e4],
        RNG.beta(0.5, 0.5, size=N),
    ],
    ids=["gamma", "sorted", "heavy", "rounded", "bounded", "outlier", "arcsine"],
)
def test_large_sample_has_the_same_maximum(monkeypatch, law, values):
    """A climb by way of a part of the values ends where one on all of them does."""
    expected = fit_at_once(monkeypatch, lambda: law.fit(values))
    np.testing.assert_allclose(law.fit(values).theta, expected.theta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "recipe",
    [
        regress("gamma", on="x"),
        regress("t", on="x", degree=2),
        regress(by("k", "gamma"), on="x"),
        regress(by("k", "gev"), on="x"),
        regress(by("k", "normal"), on="x"),
    ],
    ids=lambda recipe: recipe.name,
)
def test_large_regression_has_the_same_maximum(monkeypatch, recipe):
    """So does one of a law that varies, whose groups are all in the part."""
    values = np.where(CODES == 3.0, 5.0 * VALUES, VALUES)
    expected = fit_at_once(monkeypatch, lambda: recipe.fit(values, rows_of(recipe)))
    fitted = recipe.fit(values, rows_of(recipe))
    np.testing.assert_allclose(fitted.theta, expected.theta, rtol=1e-5, atol=1e-6)


def test_small_groups_of_a_large_sample(monkeypatch):
    """A group of seven values among thousands keeps a law of its own."""
    codes = np.where(np.arange(N) < 7, 1.0, 0.0)
    recipe = regress(by("k", "gamma"), on="x")
    table = np.column_stack([codes, X])
    expected = fit_at_once(monkeypatch, lambda: recipe.fit(VALUES, table))
    np.testing.assert_allclose(recipe.fit(VALUES, table).theta, expected.theta, rtol=1e-5)


@pytest.mark.parametrize("key", ODD)
def test_no_better_gev(key):
    """A search without derivatives finds no better law: not nearby, and not from the quartiles."""
    values = ODD[key]
    law = GEV.fit(values)

    def loss(theta):
        location, log_scale, shape = theta
        if not -0.5 <= shape <= 0.9:
            return 1e300
        logs = stats.genextreme.logpdf(values, -shape, location, np.exp(log_scale))
        return min(float(-logs.sum() + 0.5 * (shape / 0.3) ** 2), 1e300)

    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    starts = [law.theta, [middle, np.log(high - low), 0.1]]
    # a law of either cluster is a maximum of its own
    for start in starts[: 1 if key == "two clusters" else 2]:
        found = optimize.minimize(loss, start, method="Nelder-Mead", options={"maxiter": 300})
        assert loss(law.theta) <= found.fun + 1e-5


def test_few_looks_at_all_values(monkeypatch):
    """The number of gradients of a value does not grow with the sample, and stays under twelve."""
    looks = []
    plain = GEV.log_density_gradient

    def counted(self, y):
        looks[-1] += np.size(y)
        return plain(self, y)

    monkeypatch.setattr(GEV, "log_density_gradient", counted)
    for size in (100_000, 400_000):
        looks.append(0)
        GEV.fit(np.random.default_rng(0).gamma(2.0, 3.0, size))
        looks[-1] /= size
    assert max(looks) < 12.0
    assert looks[1] < 1.1 * looks[0]


def test_hessian_of_groups_equals_one_parameter_at_a_time():
    """All groups move at once, and the Hessian is that of one parameter after the other."""
    some = slice(0, 400)
    for recipe in (regress(by("k", "gev"), on="x", degree=2), regress("t", on="x")):
        table = rows_of(recipe)[some]
        law = recipe.fit(VALUES[some], table).at(table)
        widths, h = np.ptp(law.bounds, axis=1), 1e-5
        expected = np.empty((law.theta.size, law.theta.size))
        for k, unit in enumerate(np.eye(law.theta.size)):
            above, below = (
                law.with_theta(law.theta + s * h * widths * unit)
                .log_density_gradient(VALUES[some])
                .sum(axis=0)
                + law.with_theta(law.theta + s * h * widths * unit).log_prior()[1]
                for s in (1.0, -1.0)
            )
            expected[k] = widths * (below - above) / (2.0 * h)
        got = estimation._Objective(VALUES[some])._hessian(law, widths, h)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_allclose(got / scale, expected / scale, atol=1e-5)


@pytest.mark.parametrize("name", ["normal", "gamma", "parzen"])
@pytest.mark.parametrize("kind", ["regress", "by", "both"])
def test_memory_does_not_grow_with_the_groups(name, kind):
    """A fit makes no array that has a column for each of forty groups: that alone is 320 bytes."""
    recipe = {
        "regress": regress(name, on="x"),
        "by": by("k", name),
        "both": regress(by("k", name), on="x"),
    }[kind]
    size = 30_000
    rng = np.random.default_rng(5)
    columns = {"x": rng.uniform(size=size), "k": np.arange(size) % 40.0}
    table = np.column_stack([columns[field] for field in recipe.fields])
    values = np.exp(columns["x"]) * rng.gamma(3.0, 2.0, size)
    tracemalloc.start()
    recipe.fit(values, table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250 * size + 2e6
