"""The table of what was compared."""

from __future__ import annotations

import dataclasses

import pytest
import xarray as xr

from xcopula.model.selection import Alternative, selection_table


def test_has_a_column_for_each_field():
    """On one dim, in the order that was given."""
    rows = [
        Alternative("rain", "se", "gamma", -3.0, 14.0, True),
        Alternative("rain", "se", "normal", -5.0, 18.0, False),
    ]
    table = selection_table(rows)
    assert table.sizes == {"alternative": 2}
    assert list(table) == [field.name for field in dataclasses.fields(Alternative)]
    for k, row in enumerate(rows):
        found = {name: table[name].values[k].item() for name in table}
        assert Alternative(**found) == row
    best = table.where(table["selected"], drop=True)
    assert best["marginal"].item() == "gamma"


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_can_be_written(tmp_path, engine):
    """Plain texts, numbers and flags."""
    pytest.importorskip(engine.replace("netcdf4", "netCDF4"))
    table = selection_table([Alternative("rain", "se", "gamma", -3.0, 14.0, True)])
    table.to_netcdf(tmp_path / "table.nc", engine=engine)
    with xr.open_dataset(tmp_path / "table.nc", engine=engine) as again:
        assert again["kernel"].item() == "se"
        assert bool(again["selected"].item())
