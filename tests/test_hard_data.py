"""Values that break fits elsewhere: a fit without NaN and a storm of warnings, or one sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import xcopula

N = 40
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.0, 10.0, size=(2, N))
GAMMA, NORMAL = RNG.gamma(2.0, 1.0, size=N), RNG.normal(size=N)
KM = {"units": "km"}


def data(values, **attrs) -> xr.Dataset:
    size = len(values)
    places = {"x": ("site", X[:size], KM), "y": ("site", Y[:size], KM)}
    return xr.Dataset({"v": ("site", np.asarray(values, float), attrs)}, places)


FITS = {
    "two distinct values": (np.where(np.arange(N) % 2, 3.0, 5.0), {}),
    "zeros and ones": (np.arange(N) % 2, {}),
    "zeros and one positive value": (np.r_[np.zeros(N - 1), 2.0], {}),
    "all equal but one": (np.r_[np.full(N - 1, 2.0), 7.0], {}),
    "five values": (NORMAL[:5], {}),
    "integers with ties": (np.floor(3.0 * GAMMA), {}),
    "90 % ties": (np.r_[np.full(36, 4.0), GAMMA[:4]], {}),
    "90 % zeros": (np.r_[np.zeros(36), GAMMA[:4]], {}),
    "twelve orders of magnitude": (10.0 ** (6.0 * NORMAL), {"marginals": "lognormal"}),
    "at the lower end of a support": (np.maximum(NORMAL, -1.0), {"support": (-1.0, None)}),
    "negative ones among zeros": (np.r_[np.zeros(10), GAMMA[:29], -0.1], {}),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_stands(name):
    values, options = FITS[name]
    sites = data(values)
    grid = xr.Dataset(coords={c: (c, np.linspace(0.0, 10.0, 5), KM) for c in "xy"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = xcopula.fit(sites, "v", **options)
        found = model.predict(grid, [0.05, 0.5, 0.95])["v"]
        score = model.loo()["crps"]
    assert model.converged
    assert np.isfinite(found).all()
    assert (found.diff("quantile") >= 0.0).all()
    assert np.isfinite(score).all()
    assert len(caught) <= 2, [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.full(N, 3.0), {}, "'v' is constant: all 40 values are 3"),
        (np.zeros(N), {}, "'v' is constant: all 40 values are 0"),
        (10.0 ** (60.0 * NORMAL), {}, "many orders of magnitude have marginals='lognormal'"),
        (1e300 * (1.0 + GAMMA), {}, "too large to compute with"),
        (1e-300 * GAMMA, {}, "too little to compute with"),
        (np.r_[np.zeros(10), GAMMA[:29], -0.1], {"support": (0, None)}, "1 of 40 values lie outs"),
        (np.clip(NORMAL, -1, 1), {"support": (-1, 1)}, "a `support` that is open above"),
        (GAMMA, {"marginals": "gauss"}, "Unknown marginal 'gauss'. Choose 'auto' or one of"),
        (GAMMA, {"kernels": "cubic"}, "Unknown kernel 'cubic'. Choose one of"),
        (GAMMA, {"uncertainty": "t"}, "Unknown uncertainty 't'. Choose 'inflated' or 'plugin'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*are exactly 1, the largest")
def test_one_sentence(values, options, message):
    with pytest.raises(ValueError, match=message):
        xcopula.fit(data(values), "v", **options)


def test_the_ends_of_a_support():
    """The advice of the message leads to a fit."""
    values = np.clip(NORMAL, -1.0, 1.0)
    top = xr.DataArray(np.where(values >= 1.0, 1.0, np.nan), dims="site")
    options = {"support": (-1, None), "censored": {"v": (top, None)}}
    model = xcopula.fit(data(values), "v", **options)
    assert model.converged
