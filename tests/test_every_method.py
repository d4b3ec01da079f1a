"""Every inference method, through the public fit."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from conftest import METHODS

import xcopula
from xcopula.methods import Committee, Sparse

FIXED = {"kernels": "matern32", "marginals": "normal", "restarts": 0}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_and_predicts(sites, method):
    """A method converges, says what it is, predicts with intervals, lazily as eagerly."""
    model = xcopula.fit(sites, "metal", "proxy", method=METHODS[method], **FIXED)
    assert model.converged
    assert f"method {method!r}" in model.summary()
    target = sites.isel(site=slice(40, None))
    eager = model.predict(target)
    assert np.isfinite(eager["metal"]).all()
    assert (eager["metal"].diff("quantile") >= 0).all()
    xr.testing.assert_allclose(model.predict(target, chunks=7).compute(), eager, rtol=1e-9)
    loo = model.loo()
    assert np.isfinite(loo["crps"]).all()


def test_baselines_agree_with_the_full_model(sites):
    """With an inducing point at every site, and one block, baselines predict as the full model."""
    full = xcopula.fit(sites, "metal", "proxy", method="full", **FIXED)
    reference = full.predict(sites)["metal"]
    for method in (Sparse("fitc", inducing={"metal": 40, "proxy": 60}), Committee(blocks=1)):
        ours = xcopula.fit(sites, "metal", "proxy", method=method, **FIXED)
        # One search has the information matrix, the other does not: same optimum, another point.
        assert ours.log_likelihood == pytest.approx(full.log_likelihood, abs=0.02)
        np.testing.assert_allclose(ours.predict(sites)["metal"], reference, atol=0.05)


@pytest.mark.parametrize(
    ("method", "error", "match"),
    [
        (lambda: Sparse("fitc", inducing=0), ValueError, "`inducing` must be at least 1"),
        (lambda: Sparse("fitc", inducing=2.5), TypeError, "`inducing` must be an integer"),
        (lambda: Sparse("fitc", inducing={"metal": 5}), KeyError, "the variables are"),
        (lambda: Sparse("magic"), ValueError, "Unknown sparse method 'magic'"),
        (lambda: Committee(blocks=0), ValueError, "`blocks` must be at least 1"),
        (lambda: Committee(blocks=30), ValueError, "one block has only"),
    ],
)
def test_bad_options(sites, method, error, match):
    """Options that cannot work are refused with what to do."""
    with pytest.raises(error, match=match):
        xcopula.fit(sites, "metal", "proxy", method=method(), **FIXED)


@pytest.mark.parametrize("kind", ["dtc", "fitc", "pitc"])
def test_numbers_of_any_integer_type(sites, kind):
    """A number of inducing points or blocks may be numpy's."""
    mine, numpys = (
        xcopula.fit(sites, "metal", "proxy", method=Sparse(kind, inducing=n), **FIXED)
        for n in (20, np.int64(20))
    )
    np.testing.assert_array_equal(mine.theta, numpys.theta)
    assert f"{kind.upper()} with 20 inducing points" in numpys.summary()
    assert mine.method == numpys.method
    each = {"metal": np.int32(8), "proxy": np.uint8(12)}
    model = xcopula.fit(sites, "metal", "proxy", method=Sparse(kind, inducing=each), **FIXED)
    assert f"{kind.upper()} with 20 inducing points" in model.summary()
    blocks = xcopula.fit(sites, "metal", method=Committee(blocks=np.int16(2)), **FIXED)
    assert "committee of 2 blocks" in blocks.summary()
