"""Standard errors and effective numbers of parameters, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.model.precision import effective_parameters, estimate_covariance, standard_errors
from xcopula.process import Process, Sample
from xcopula.solvers import Exact

N = 400


@pytest.fixture(scope="module")
def noise():
    """Independent values: the nugget is next to everything."""
    rng = np.random.default_rng(0)
    values = rng.normal(3.0, 2.0, size=N)
    process = Process(
        Covariance((KERNELS["matern12"],), (InputGroup(2),)), (Normal(values.mean(), values.std()),)
    )
    covariance = np.zeros(process.covariance.size)
    process.covariance.part(covariance, "length")[:] = np.log(1e-3)
    theta = process.join(covariance)
    sample = Sample.of([rng.uniform(size=(N, 2))], [values])
    information = Exact().information(process, sample, None, theta).information
    return process, theta, information + process.prior_information(theta)


def test_errors_of_independent_values(noise):
    """The mean has scale / sqrt(n), the log scale 1 / sqrt(2 n)."""
    process, theta, information = noise
    covariance = estimate_covariance(process, theta, information)
    found = standard_errors(
        process, theta, covariance, lambda t: {"location": t[-2], "scale": np.exp(t[-1])}
    )
    scale = process.marginals[0].scale
    assert found["location"] == pytest.approx(scale / np.sqrt(N), rel=0.05)
    assert found["scale"] == pytest.approx(scale / np.sqrt(2 * N), rel=0.05)


def test_parameters_that_data_determine(noise):
    """Those of the marginal count as one each, what the prior alone determines as less."""
    process, theta, information = noise
    share = effective_parameters(process, theta, information)
    np.testing.assert_allclose(share[-2:], 1.0, atol=0.02)
    prior = process.prior_information(theta)
    prior[-2:, -2:] = information[-2:, -2:]
    np.testing.assert_allclose(effective_parameters(process, theta, prior)[:-2], 0.0, atol=1e-9)
    np.testing.assert_array_equal(effective_parameters(process, theta, None), 1.0)


def test_an_end_of_the_box(noise):
    """A parameter there has no error, nor has what depends on it; others have theirs."""
    process, theta, information = noise
    theta = theta.copy()
    theta[-1] = process.bounds()[-1, 1]
    covariance = estimate_covariance(process, theta, information)
    found = standard_errors(
        process, theta, covariance, lambda t: {"location": t[-2], "scale": np.exp(t[-1])}
    )
    assert np.isnan(found["scale"])
    assert np.isfinite(found["location"])
    assert effective_parameters(process, theta, information)[-1] == 0.0


def test_no_information(noise):
    """Without a positive definite matrix there are no errors."""
    process, theta, information = noise
    assert estimate_covariance(process, theta, None) is None
    assert estimate_covariance(process, theta, -information) is None
    found = standard_errors(process, theta, None, lambda t: {"all": t})
    assert np.isnan(found["all"]).all()
