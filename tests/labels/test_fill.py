"""Numbers that stand for missing values."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.labels.fill import find_fill, warn_of_fill, without_fill

FIXED = {"method": "full", "marginals": "normal", "kernels": "matern32"}


@pytest.fixture
def data() -> xr.Dataset:
    """Sites, four of which have no value of ``v``."""
    x, y = np.random.default_rng(0).uniform(0.0, 10.0, (2, 30))
    v = np.where(np.arange(30) < 4, np.nan, np.sin(x))
    return xr.Dataset({"v": ("site", v)}, coords={"x": ("site", x), "y": ("site", y)})


@pytest.mark.parametrize(
    ("attrs", "lazy"),
    [({"_FillValue": -9999.0}, False), ({"missing_value": np.float32([-999, 1e20])}, True)],
)
def test_attributes_are_honoured(data, attrs, lazy, tmp_path):
    """Their numbers are gaps, in a fit and in new data, and a file does not hold them."""
    fill = np.ravel(next(iter(attrs.values())))[-1]
    stored = data.fillna({"v": fill}).assign(v=lambda d: d.v.assign_attrs(attrs))
    stored["v"] = stored.v.astype(np.float32)
    data["v"] = data.v.astype(np.float32)
    model = xcopula.fit(stored.chunk() if lazy else stored, "v", **FIXED)
    assert model.log_likelihood == xcopula.fit(data, "v", **FIXED).log_likelihood
    moved = stored.assign_coords(x=stored.x + 20.0)
    assert model.condition(moved).size == 2 * 26
    model.save(tmp_path / "m.nc")


@pytest.mark.parametrize("fill", [-999.0, -9999.0, 1e20, 9.96921e36])
@pytest.mark.parametrize("marginal", ["normal", "flexible"])
def test_usual_ones_are_asked_about(data, fill, marginal):
    """Under every law, and they are no limit of detection."""
    with pytest.warns(UserWarning, match="A fill value") as caught:
        xcopula.fit(data.fillna({"v": fill}), "v", **FIXED | {"marginals": marginal})
    said = [str(w.message) for w in caught]
    assert any(f"4 of 30 values are {fill:g}, far from the others" in text for text in said)
    assert not any("censored" in text for text in said)


def test_what_is_near_the_others_is_a_value():
    """So is what no fill value is, and integers have gaps too."""
    for values in ([-999.0, -990.0, -1100.0], [99.0, 98.0], [3.0, 5000.0], [999.0], []):
        warn_of_fill("v", np.array(values))
    assert find_fill(np.array([1.0, 2.0, 9999.0])) == 9999.0
    counts = xr.DataArray(np.array([1, -1, 3], np.int16), attrs={"_FillValue": -1})
    np.testing.assert_array_equal(without_fill(counts), [1.0, np.nan, 3.0])
