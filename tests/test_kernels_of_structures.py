"""A kernel for each nested structure, from the call of a fit to the file of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from test_state import RationalQuadratic

import xcopula
from xcopula.errors import ModelFormatError
from xcopula.fitting.alone import Alone
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.process import Process
from xcopula.solvers import Exact, Neighbours

SMOOTH, ROUGH = KERNELS["matern52"], KERNELS["matern12"]
LISTS = {"metal": ["matern52", "matern12"]}
LAWS = {"metal": "lognormal", "proxy": "normal"}
QUICK = {
    "marginals": LAWS,
    "restarts": 0,
    "anisotropy": False,
    "uncertainty": "plugin",
}


@pytest.fixture(scope="module")
def model(sites) -> xcopula.CopulaModel:
    """The metal with a kernel for each structure, the proxy with one for both."""
    kernels = LISTS | {"proxy": "matern32"}
    return xcopula.fit(sites, "metal", "proxy", kernels=kernels, **QUICK)


class TestModel:
    def test_what_was_asked_for_is_what_there_is(self, model):
        """In the process, the table of parameters, the summary and the repr."""
        covariance = model.process.covariance
        assert covariance.kernels == (Nested((SMOOTH, ROUGH)), KERNELS["matern32"])
        assert covariance.structures == 2
        assert model.parameters["kernel"].values.tolist() == ["matern52 + matern12", "matern32"]
        assert "matern52 + matern12" in model.summary()
        assert "matern52 + matern12" in repr(model)

    def test_its_gradient(self, model):
        """Against central differences, of the composite likelihood of pairs."""
        theta = model.theta + 0.05
        expected = reference.differences(lambda x: model.objective(x)[0], theta)
        found = model.objective(theta)[1]
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())

    def test_saved_and_loaded(self, model, sites, tmp_path):
        """Predictions are the same to the last bit."""
        loaded = xcopula.load(model.save(tmp_path / "model.nc"))
        assert loaded.process == model.process
        target = sites.isel(site=slice(40, 50))
        xr.testing.assert_identical(loaded.predict(target), model.predict(target))

    def test_a_kernel_of_your_own_in_a_list(self, sites, tmp_path):
        """It is saved by its name, and given to load."""
        own = RationalQuadratic()
        options = QUICK | {"marginals": "lognormal"}
        fitted = xcopula.fit(sites, "metal", kernels=[own, "matern12"], **options)
        path = fitted.save(tmp_path / "model.nc")
        with pytest.raises(ModelFormatError, match="kernel of the class 'RationalQuadrat"):
            xcopula.load(path)
        loaded = xcopula.load(path, kernels={"RationalQuadratic": RationalQuadratic})
        assert loaded.process.covariance.kernels[0] == Nested((own, ROUGH))

    def test_a_set_is_selected_from(self, sites):
        """It has no order: each of its kernels serves all structures."""
        options = QUICK | {"marginals": "lognormal"}
        fitted = xcopula.fit(sites, "metal", kernels={"se", "matern12"}, structures=2, **options)
        assert set(fitted.selection["kernel"].values) == {"se", "matern12"}
        assert fitted.process.covariance.structures == 2

    @pytest.mark.parametrize("name", METHODS)
    def test_every_method(self, sites, name):
        """Fits and predicts; the likelihood is that of the list, not of its first kernel."""
        method = METHODS[name]
        options = QUICK | {"marginals": "normal"} if name == "cokriging" else QUICK
        fitted = xcopula.fit(
            sites, "metal", "proxy", method=method, kernels=["matern52", "matern12"], **options
        )
        assert {k.name for k in fitted.process.covariance.kernels} == {"matern52 + matern12"}
        found = fitted.predict(sites.isel(site=slice(40, 45)))["metal"]
        assert np.isfinite(found).all()

    def test_a_list_of_one_kernel_is_that_kernel(self, sites):
        """The same model to the last bit."""
        listed, plain = (
            xcopula.fit(sites, "metal", "proxy", kernels=k, structures=2, **QUICK)
            for k in (["matern32", "matern32"], "matern32")
        )
        assert listed.process == plain.process
        np.testing.assert_array_equal(listed.theta, plain.theta)

    @pytest.mark.parametrize("coupling", ["convolution", "lmc"])
    def test_both_solvers(self, sites, coupling):
        """With all neighbours, the neighbours' likelihood at the exact optimum is the exact one."""
        kernels = ["matern52", "matern12"]
        options = QUICK | {"method": "full", "coupling": coupling}
        model = xcopula.fit(sites, "metal", "proxy", kernels=kernels, **options)
        sample = model.observations.sample
        value, gradient = (
            np.concatenate([np.atleast_1d(p) for p in parts])
            for parts in zip(
                *(
                    reference.objective(s, model.process, sample, model.theta + 0.1)
                    for s in (Exact(), Neighbours(neighbours=sample.size - 1))
                ),
                strict=True,
            )
        )
        assert value[0] == pytest.approx(value[1], abs=1e-8)
        half = gradient.size // 2
        np.testing.assert_allclose(gradient[:half], gradient[half:], atol=1e-8)


SHORT, LONG, SITES = 0.03, 0.4, 250


class TestRecovery:
    """In a world with one kernel at short range and another at long, the likelihood knows which."""

    def world(self, truth, seed):
        """Draw values on a line, densely; return them with the process and its parameters."""
        kernel = Nested(truth)
        covariance = Covariance((kernel,), (InputGroup(1),), structures=2, noise="independent")
        process = Process(covariance, (Normal(0.0, 1.0),))
        theta = process.join(np.zeros(covariance.size))
        covariance.part(theta, "length")[:] = np.log([SHORT, LONG]).reshape(2, 1, 1)
        covariance.part(theta, "logit")[:] = 6.0
        places = np.linspace(0.0, 1.0, SITES)[:, None]
        return reference.simulate(process, theta, [places], seed), process, theta

    @pytest.mark.parametrize("truth", [(SMOOTH, ROUGH), (ROUGH, SMOOTH)], ids=["smooth", "rough"])
    def test_at_the_true_ranges(self, truth):
        """The right kernels beat the reverse by far, and one for both in all worlds together.

        What is rough at short range hides whether the rest is: this takes several worlds.
        """
        gains = []
        for seed in range(8):
            sample, process, theta = self.world(truth, seed)
            value = [
                -reference.objective(Exact(), replace(process, covariance=other), sample, theta)[0]
                for other in (
                    replace(process.covariance, kernels=(kernel,))
                    for kernel in (Nested(truth), Nested(truth[::-1]), *truth)
                )
            ]
            gains.append(value[0] - np.array(value[1:]))
        assert np.min(gains, axis=0)[0] > 10.0
        assert (np.sum(gains, axis=0)[1:] > 3.0).all(), gains

    def test_the_order_is_where_a_fit_starts(self):
        """What is smooth at short range is found from the right order, to its true range."""
        sample, process, _ = self.world((SMOOTH, ROUGH), 0)
        alone = Alone(sample, (InputGroup(1),), 2, Exact())
        law = Normal(0.0, 1.0)
        right, reverse = (alone.fit(Nested(k), law) for k in ((SMOOTH, ROUGH), (ROUGH, SMOOTH)))
        assert right.log_likelihood > reverse.log_likelihood + 10.0
        lengths = np.exp(process.covariance.part(right.theta, "length").ravel())
        assert lengths[0] == pytest.approx(SHORT, rel=0.2)
        assert lengths[1] > 3.0 * SHORT
