"""What variables and networks are worth, against models that never had them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from conftest import FIXED, simulate_pair

import xcopula
from xcopula.model.conditioning import with_rows
from xcopula.solvers import Neighbours


@pytest.fixture(scope="module")
def full(trio):
    """A full model of three variables; metal and proxy come from two networks."""
    owner = np.where(np.arange(60) % 3 == 0, "city", "state")
    owner[:2] = ""
    laws = {"metal": "lognormal", "proxy": "normal", "other": "normal"}
    options = {**FIXED, "coupling": "icm", "marginals": laws}
    data = trio.assign_coords(owner=("site", owner))
    return xcopula.fit(data, "metal", ["proxy", "other"], **options)


def means(model, grid, threshold=None):
    """Return what the public posterior of a model says."""
    posterior = model.posterior(grid)
    width = posterior.interval(0.9).diff("bound").isel(bound=0)
    found = {"latent_std": posterior.latent["std"], "width": width}
    if threshold is not None:
        above = posterior.exceedance(threshold)
        found["misclassification"] = np.minimum(above, 1.0 - above)
    return {name: float(values.mean()) for name, values in found.items()}


class TestVariables:
    def test_is_the_map_of_a_model_without_the_values(self, full, grid):
        """The same parameters, the values taken away."""
        found = full.worth(grid, threshold=1.5)
        assert found["variable"].values.tolist() == ["proxy", "other"]
        assert found["values"].values.tolist() == [60, 50]
        for name, value in means(full, grid, 1.5).items():
            assert float(found[name]) == pytest.approx(value)
        sample = full.observations.sample
        decided = full.posterior(grid).exceedance(1.5) > 0.5
        for task, name in ((1, "proxy"), (2, "other")):
            off = np.arange(sample.size)[sample.task(task)]
            without = with_rows(full, np.setdiff1d(np.arange(sample.size), off))
            own = found.sel(variable=name)
            for key, value in means(without, grid, 1.5).items():
                assert float(own[f"{key}_without"]) == pytest.approx(value)
            other = without.posterior(grid).exceedance(1.5) > 0.5
            assert float(own["changed"]) == pytest.approx(float((decided != other).mean()))

    def test_a_pair_without_its_secondary_is_the_primary_alone(self, model, grid):
        """With parameters that a pair and its primary share."""
        found = model.worth(grid)
        process, index = model.process.with_tasks((0,))
        sample = model.observations.sample.select((0,))
        observations = dataclasses.replace(
            model.observations,
            variables=model.variables[:1],
            sample=sample,
            positions=model.observations.positions[:40],
            origins=(),
        )
        alone = dataclasses.replace(
            model,
            observations=observations,
            process=process,
            theta=model.theta[index],
            prepared=model.theta[index],
        )
        want = means(alone, grid)
        assert float(found["latent_std_without"][0]) == pytest.approx(want["latent_std"])
        assert float(found["width_without"][0]) == pytest.approx(want["width"])
        assert "changed" not in found

    def test_of_a_secondary(self, full, grid):
        """The primary is then one of the others."""
        found = full.worth(grid, variable="proxy", of="signal")
        assert found["variable"].values.tolist() == ["metal", "other"]
        assert (found["latent_std_without"] > found["latent_std"]).all()
        assert found.attrs == {"variable": "proxy", "of": "signal"}

    def test_weights_and_a_threshold_with_gaps(self, full, grid):
        """Means are over what counts; decisions over what has a threshold."""
        weights = (grid["x"] < 1.8).astype(float)
        limit = xr.where(grid["x"] > 1.0, 1.5, np.nan)
        found = full.worth(grid, threshold=limit, weights=weights)
        some = grid.sel(x=slice(0.0, 1.8))
        assert float(found["width"]) == pytest.approx(means(full, some)["width"])
        both = grid.sel(x=slice(1.0, 1.8))
        want = means(full, both, 1.5)["misclassification"]
        assert float(found["misclassification"]) == pytest.approx(want)

    def test_by_neighbours(self, full, grid):
        """A variable without values has no neighbours."""
        local = dataclasses.replace(full, solver=Neighbours(predict=300))
        xr.testing.assert_allclose(local.worth(grid), full.worth(grid), rtol=1e-6)

    def test_a_transductive_model(self, triple, grid):
        """By the joint process: no variable makes the map worse."""
        found = triple.worth(grid, threshold=1.5)
        assert (found["latent_std_without"] >= found["latent_std"]).all()

    def test_inflated_errors(self, full, grid):
        """As wide with everything as without."""
        unsure = full.with_uncertainty("inflated")
        found, plain = unsure.worth(grid), full.worth(grid)
        factor = unsure.uncertainty.factor(0)
        for name in ("latent_std", "latent_std_without"):
            np.testing.assert_allclose(found[name], factor * plain[name], rtol=1e-10)

    def test_labels(self, model, grid):
        """Units of the variable, and long names."""
        found = model.worth(grid, threshold=1.5)
        assert found["width"].attrs["units"] == "mg kg-1"
        assert found["changed"].attrs["units"] == "1"
        title = "mean width of the 90 % interval of metal without it"
        assert found["width_without"].attrs["long_name"] == title


class TestNetworks:
    def test_a_network_of_all_variables(self, full, grid):
        """Values of all of them go; those without a name stay."""
        found = full.worth(grid, network="owner")
        assert found["network"].values.tolist() == ["city", "state"]
        every, labels = np.arange(full.observations.sample.size), []
        for task in range(3):
            own = every[full.observations.sample.task(task)]
            labels.append(full.observations.labels(own, ())[1]["owner"][1])
        owner = np.concatenate(labels)
        for name in ("city", "state"):
            without = with_rows(full, np.flatnonzero(owner != name))
            own = found.sel(network=name)
            assert float(own["width_without"]) == pytest.approx(means(without, grid)["width"])
            assert int(own["values"]) == int((owner == name).sum())

    def test_a_network_that_holds_all_values_of_the_primary(self, grid):
        """The map then comes from the secondary."""
        sites, _ = simulate_pair(0)
        data = {
            "metal": sites["metal"].assign_coords(owner=("site", ["city"] * 60)),
            "proxy": sites["proxy"].assign_coords(owner=("site", ["state"] * 60)),
        }
        fitted = xcopula.fit(data, "metal", "proxy", marginals="normal", **FIXED)
        found = fitted.worth(grid, network="owner")
        assert float(found["latent_std"]) < float(found["latent_std_without"].max()) < 1.0


class TestBadInput:
    def test_nothing_to_switch_off(self, alone, grid):
        with pytest.raises(ValueError, match="'metal' has no other variable to switch off"):
            alone.worth(grid)

    @pytest.mark.parametrize("network", ["agency", 3])
    def test_no_such_coordinate(self, full, grid, network):
        with pytest.raises(KeyError, match="`network` must name a coordinate of the observations"):
            full.worth(grid, network=network)

    def test_one_network(self, sites, grid):
        data = sites.assign_coords(owner="city")
        fitted = xcopula.fit(data, "metal", marginals="normal", **FIXED)
        with pytest.raises(ValueError, match="'city' holds all 40 values"):
            fitted.worth(grid, network="owner")

    def test_as_in_design(self, model, grid):
        with pytest.raises(KeyError, match="no variable 'lead'"):
            model.worth(grid, variable="lead")
        with pytest.raises(ValueError, match="`weights` must be positive somewhere, found zeros"):
            model.worth(grid, weights=0.0 * grid["x"])
        with pytest.raises(ValueError, match="`threshold` must be one number"):
            model.worth(grid, threshold=[1.0, 2.0])
