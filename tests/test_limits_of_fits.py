"""Values that are limits, from the labels to the scores: one small fit, asked in many ways."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import xcopula

GIVEN = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0, "anisotropy": False}
LIMIT = 0.7


@pytest.fixture(scope="module")
def truth() -> xr.Dataset:
    """A smooth log-normal field at 70 sites."""
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0.0, 100.0, size=(2, 70))
    apart = np.hypot(x[:, None] - x, y[:, None] - y) / 15.0
    z = np.linalg.cholesky((1.0 + apart) * np.exp(-apart) + 0.05 * np.eye(70)) @ rng.normal(size=70)
    km = {"units": "km"}
    coords = {"x": ("site", x, km), "y": ("site", y, km)}
    return xr.Dataset({"v": ("site", np.exp(0.6 * z))}, coords)


@pytest.fixture(scope="module")
def stored(truth) -> xr.Dataset:
    """The field as a laboratory reports it, with all ways to tell the limits."""
    below = truth["v"] < LIMIT
    return truth.assign(
        v=truth["v"].where(~below, LIMIT),
        below=below,
        lower=truth["v"].where(~below),
        upper=truth["v"].where(~below, LIMIT),
    )


@pytest.fixture(scope="module")
def model(stored):
    """The fit that knows which values are limits."""
    return xcopula.fit(stored, "v", censored={"v": "below"}, **GIVEN)


class TestTelling:
    @pytest.mark.parametrize("told", [LIMIT, ("lower", "upper")], ids=["number", "pair"])
    def test_in_other_ways_is_the_same_fit(self, stored, model, told):
        """A flag, a number and a pair of limits say the same."""
        other = xcopula.fit(stored, "v", censored={"v": told}, **GIVEN)
        np.testing.assert_allclose(other.theta, model.theta, rtol=0.0, atol=1e-10)
        assert other.log_likelihood == pytest.approx(model.log_likelihood, abs=1e-10)

    def test_equal_limits_are_values(self, truth):
        """A pair that is the value itself is no interval."""
        both = truth.assign(same=truth["v"])
        plain = xcopula.fit(truth, "v", **GIVEN)
        told = xcopula.fit(both, "v", censored={"v": ("same", "same")}, **GIVEN)
        np.testing.assert_array_equal(told.theta, plain.theta)

    def test_nothing_takes_limits_for_values(self, stored):
        """With None the stored numbers are the values."""
        plain = xcopula.fit(stored[["v"]], "v", **GIVEN)
        off = xcopula.fit(stored, "v", censored=None, **GIVEN)
        np.testing.assert_array_equal(off.theta, plain.theta)


class TestPredicting:
    def test_is_better_than_half_the_limit_and_than_dropping(self, truth, stored, model):
        """The law found with limits is nearer to the one of the true values."""
        known = xcopula.fit(truth, "v", **GIVEN)
        halved = stored.assign(v=stored["v"].where(~stored["below"], 0.5 * LIMIT))
        dropped = stored.assign(v=stored["v"].where(~stored["below"]))
        wrong = [xcopula.fit(data[["v"]], "v", **GIVEN) for data in (halved, dropped)]
        at = truth[["x", "y"]].assign_coords(x=truth["x"] + 3.0)
        best = known.posterior(at).median()
        errors = [float(abs(m.posterior(at).median() - best).mean()) for m in (model, *wrong)]
        assert errors[0] < min(errors[1:])

    def test_an_observation_stays_below_its_limit(self, stored, model):
        """At its site it has the law below the limit; where it was measured it is the value."""
        found = model.predict(stored[["x", "y"]], [0.05, 0.5, 0.95])["v"].transpose("quantile", ...)
        below = stored["below"].values
        assert (found.values[:, below] < LIMIT).all()
        assert (found.values[0, below] < found.values[2, below]).all()
        np.testing.assert_allclose(found.values[:, ~below], [stored["v"].values[~below]] * 3)
        above = model.posterior(stored[["x", "y"]]).exceedance(LIMIT).values
        np.testing.assert_array_equal(above[below], 0.0)

    def test_lazily_is_the_same(self, stored, model):
        """A lazy fit, and a lazy prediction in chunks."""
        lazy = xcopula.fit(stored, "v", censored={"v": "below"}, compute=False, **GIVEN)
        at = stored[["x", "y"]]
        eager = model.predict(at)["v"]
        np.testing.assert_allclose(lazy.predict(at)["v"].values, eager.values, rtol=1e-12)
        chunked = model.predict(at, chunks={"site": 7})["v"]
        np.testing.assert_allclose(chunked.values, eager.values, rtol=1e-12)

    def test_by_neighbours_is_close(self, stored, model):
        """The other solver finds about the same law and the same map."""
        options = {**GIVEN, "solver": "neighbours", "censored": {"v": "below"}}
        near = xcopula.fit(stored, "v", **options)
        at = stored[["x", "y"]].assign_coords(x=stored["x"] + 3.0)
        pairs = (m.posterior(at).median() for m in (near, model))
        np.testing.assert_allclose(*(p.values for p in pairs), rtol=0.1)


class TestScoring:
    def test_a_limit_is_scored_by_what_is_known(self, stored, model):
        """Its log score is the log of its probability, so never positive; its PIT lies below it."""
        found = model.loo()
        below = stored["below"].values
        assert (found["log_score"].values[below] <= 0.0).all()
        probability = np.exp(found["log_score"].values[below])
        assert (found["pit"].values[below] <= probability + 1e-9).all()
        assert (found["crps"].values >= 0.0).all()

    def test_folds_keep_limits(self, stored):
        """Withheld limits are scored as limits."""
        result = xcopula.cross_validate(stored, "v", folds=3, censored={"v": "below"}, **GIVEN)
        assert np.isfinite(result["crps"]).all()


class TestKeeping:
    def test_files_and_new_data(self, stored, model, tmp_path):
        """A model comes back to the bit, and takes new data with limits."""
        model.save(tmp_path / "model.nc")
        again = xcopula.load(tmp_path / "model.nc")
        at = stored[["x", "y"]].assign_coords(x=stored["x"] + 3.0)
        np.testing.assert_array_equal(again.predict(at)["v"].values, model.predict(at)["v"].values)
        new = stored.isel(site=slice(5)).assign_coords(x=stored["x"][:5] + 40.0)
        more = again.condition(new)
        assert (
            more.observations.sample.is_interval.sum()
            > model.observations.sample.is_interval.sum() - 1
        )
        assert more.observations.sample.size == 75

    def test_of_replicates_one_may_be_a_limit(self, stored):
        """Two measurements at each of ten sites, one of them below the limit."""
        again = stored.isel(site=slice(10))
        twice = xr.concat([stored, again.assign(below=xr.ones_like(again["below"]))], "site")
        found = xcopula.fit(twice, "v", censored={"v": "below"}, replicates=True, **GIVEN)
        assert found.observations.sample.size == 80
        assert np.isfinite(found.log_likelihood)
