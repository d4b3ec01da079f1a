"""Several values of one variable at one site, against a covariance that is written out."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import xcopula
from xcopula.solvers import Neighbours

OPTIONS = {
    **{"marginals": "normal", "kernels": "matern32", "coupling": "icm", "coords": ["x"]},
    **{"restarts": 0, "uncertainty": "plugin", "replicates": True},
}
SOLVERS = {"exact": "exact", "neighbours": Neighbours(neighbours=60, predict=60)}
SITES, TWICE = 14, 5


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """Two variables at 14 sites; rows 14 to 18 are second measurements at the first five."""
    rng = np.random.default_rng(3)
    x = np.arange(float(SITES))
    signal = np.r_[np.sin(x / 2.0), np.sin(x[:TWICE] / 2.0)]
    a, b = (signal + 0.3 * rng.normal(size=signal.size) for _ in range(2))
    b[[2, SITES + 3]] = np.nan
    return xr.Dataset(
        {"a": ("row", a), "b": ("row", 2.0 + b)}, coords={"x": ("row", np.r_[x, x[:TWICE]])}
    )


@pytest.fixture(scope="module", params=list(SOLVERS))
def model(request, data) -> xcopula.CopulaModel:
    """A model of both, by each solver."""
    return xcopula.fit(data, "a", "b", method="full", solver=SOLVERS[request.param], **OPTIONS)


class Written:
    """The covariance of a model, entry by entry; rows of the data that differ share no nugget."""

    def __init__(self, model: xcopula.CopulaModel, data: xr.Dataset) -> None:
        covariance = model.process.covariance
        self.signal, self.nugget = covariance.matrices(model.theta[: covariance.size])
        self.length = float(model.parameters["length_scale"].values[0, 0, 0])
        there = [np.flatnonzero(data[n].notnull()) for n in ("a", "b")]
        self.rows = np.concatenate(there)
        self.tasks = np.repeat([0, 1], [t.size for t in there])
        self.x = data["x"].values[self.rows]
        self.w = np.concatenate(
            [
                (data[n].values[t] - law.location) / law.scale
                for n, t, law in zip(("a", "b"), there, model.marginals, strict=True)
            ]
        )
        self.scales = np.array([law.scale for law in model.marginals])[self.tasks]
        same = self.rows[:, None] == self.rows
        self.matrix = self.cross(self.tasks, self.x) + same * self.of(self.nugget, self.tasks)

    def of(self, matrix, tasks):
        """Return entries of a matrix of tasks for pairs."""
        return matrix[np.ix_(tasks, self.tasks)]

    def cross(self, tasks, x):
        """Return the covariance of the signal with the data."""
        r = np.sqrt(3.0) * np.abs(np.asarray(x)[:, None] - self.x) / self.length
        return self.of(self.signal, tasks) * (1.0 + r) * np.exp(-r)


def test_the_likelihood_is_that_of_the_covariance(model, data):
    """Replicates share the signal, and those of one row their nuggets."""
    written = Written(model, data)
    zero = np.zeros(written.w.size)
    expected = stats.multivariate_normal(zero, written.matrix).logpdf(written.w)
    expected -= np.log(written.scales).sum()
    np.testing.assert_allclose(model.log_likelihood, expected, rtol=1e-6)


def test_the_gradient(model):
    """Against central differences: pairs of one variable at distance zero are among them."""
    _, gradient = model.objective(model.theta + 0.01)
    for k, step in enumerate(1e-5 * np.eye(model.theta.size)):
        up, down = (model.objective(model.theta + 0.01 + s)[0] for s in (step, -step))
        np.testing.assert_allclose(gradient[k], (up - down) / 2e-5, rtol=2e-3, atol=2e-4)


def test_an_observation_there_is_a_new_one(model, data):
    """Mean and variance in closed form; at a site with one value it is the datum."""
    written = Written(model, data)
    target = data[["x"]].isel(row=slice(0, SITES))
    k = written.cross(np.zeros(TWICE, int), written.x[:TWICE])
    mean = k @ np.linalg.solve(written.matrix, written.w)
    left = 1.0 - np.einsum("ij,ji->i", k, np.linalg.solve(written.matrix, k.T))
    latent = model.posterior(target).latent
    np.testing.assert_allclose(latent["mean"][:TWICE], mean, atol=1e-6)
    np.testing.assert_allclose(latent["std"][:TWICE] ** 2, left, atol=1e-6)
    np.testing.assert_allclose(latent["std"][TWICE:], 0.0, atol=1e-12)
    signal = model.posterior(target, of="signal").latent["std"][:TWICE] ** 2
    np.testing.assert_allclose(signal, left - written.nugget[0, 0], atol=1e-6)


def test_leave_one_out_keeps_the_other(model, data):
    """A replicate is predicted from its twin, and from what was measured with it."""
    written = Written(model, data)
    precision = np.linalg.inv(written.matrix)
    found = model.loo()
    spread = 1.0 / np.sqrt(np.diag(precision)[: found.sizes["row"]])
    np.testing.assert_allclose(found["std"], spread, rtol=1e-5)
    mean = written.w - precision @ written.w / np.diag(precision)
    np.testing.assert_allclose(found["mean"], mean[: found.sizes["row"]], atol=1e-5)


@pytest.mark.parametrize("method", ["transductive", "fitc"])
def test_other_methods(data, method):
    """Their predictions there are new measurements too."""
    method = xcopula.methods.Sparse("fitc", inducing=20) if method == "fitc" else method
    found = xcopula.fit(data, "a", "b", method=method, **OPTIONS)
    std = found.posterior(data[["x"]].isel(row=[0, 4, 5, 13])).latent["std"].values
    nugget = float(found.parameters["nugget"].values[0])
    assert (std[:2] ** 2 > nugget).all()
    np.testing.assert_allclose(std[2:], 0.0, atol=1e-9)


def test_order_of_rows():
    """A fit anew with rows in another order finds the same likelihood, to 1e-5 nats."""
    rng = np.random.default_rng(0)
    x = np.r_[places := rng.uniform(0.0, 10.0, (30, 2)), places[:20]]
    signal = np.sin(x[:, 0]) + 0.5 * np.cos(x[:, 1])
    a, b = (signal + 0.4 * rng.normal(size=50) for _ in range(2))
    data = xr.Dataset(
        {"a": ("row", a), "b": ("row", np.where(rng.uniform(size=50) < 0.2, np.nan, b))},
        coords={"x": ("row", x[:, 0]), "y": ("row", x[:, 1])},
    )
    options = OPTIONS | {"coords": ["x", "y"], "method": "full", "anisotropy": False}
    one, other = (
        xcopula.fit(rows, "a", "b", **options)
        for rows in (data, data.isel(row=rng.permutation(50)))
    )
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-5)


def test_a_value_of_another_table_keeps_the_site(data):
    """What was not measured with a replicate shares the nugget of the site, as ever."""
    apart = {"a": data["a"], "b": data["b"].isel(row=slice(0, SITES)).rename(row="other")}
    found = xcopula.fit(apart, "a", "b", method="full", **OPTIONS)
    sample, places = found.observations.sample, found.observations.places()
    own, other = sample.task(0), sample.task(1)
    np.testing.assert_array_equal(sample.sites[other], places[other])
    np.testing.assert_array_equal(sample.sites[own][TWICE:SITES], places[own][TWICE:SITES])
    twice = np.r_[0:TWICE, SITES : SITES + TWICE]
    assert np.unique(np.r_[sample.sites[own][twice], places]).size == SITES + 2 * TWICE


def test_they_must_be_asked_for(data):
    """Several values are a mistake as a rule: the message says what to do."""
    for options in ({"replicates": False}, {"replicates": 1}):
        error = ValueError if options["replicates"] is False else TypeError
        match = r"several values at 5 .*`replicates=True`|`replicates` must be True or False"
        with pytest.raises(error, match=match):
            xcopula.fit(data, "a", "b", **(OPTIONS | options))


def test_copies_are_warned_of(data):
    """Rows that were given twice leave no nugget."""
    once = data[["a"]].isel(row=slice(0, SITES))
    with pytest.warns(UserWarning, match=r"'a' has several values at 14 .* are the same"):
        xcopula.fit(xr.concat([once, once], "row"), "a", **OPTIONS)


def test_files_and_conditioning(data, tmp_path):
    """A file predicts the same to the last bit; new values stand beside old ones."""
    model = xcopula.fit(data, "a", "b", method="full", **OPTIONS)
    again = xcopula.load(model.save(tmp_path / "m.nc"))
    target = data[["x"]].isel(row=slice(0, 8))
    np.testing.assert_array_equal(again.predict(target)["a"], model.predict(target)["a"])
    np.testing.assert_array_equal(again.observations.sample.sites, model.observations.sample.sites)
    assert "a: several values at 5 of 14 sites" in again.summary()
    new = xr.Dataset({"a": ("row", [0.5, 0.1])}, coords={"x": ("row", [0.0, 9.0])})
    more = again.condition(new)
    assert more.observations.sample.sizes == [21, 17]
    assert "several values at 6 of 14 sites" in more.summary()
    assert float(more.posterior(target.isel(row=[0])).latent["std"][0]) > 0.0
    fewer = more.condition(new, replace=True)
    assert fewer.observations.sample.sizes == [21 - 3 - 2 + 2, 17]


def test_folds_keep_them_together(data):
    """A fold that had one of two would be told the other."""
    found = xcopula.cross_validate(data, "a", "b", folds=4, refit=False, method="full", **OPTIONS)
    np.testing.assert_array_equal(found["fold"][:TWICE], found["fold"][SITES:])
    labels = xr.DataArray(np.arange(SITES + TWICE) % 3, dims="row")
    with pytest.raises(ValueError, match=r"several labels at a site where 'a' has several values"):
        xcopula.cross_validate(data, "a", folds=labels, **OPTIONS)
