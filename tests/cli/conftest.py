"""Files that the commands read, made once, and a way to run a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xcopula.cli import main


@pytest.fixture(scope="session")
def files(sites, grid, model, tmp_path_factory) -> Path:
    """A folder with data as NetCDF and as a table, a grid, and a model of the data."""
    folder = tmp_path_factory.mktemp("files")
    sites.to_netcdf(folder / "data.nc")
    frame = sites.to_dataframe().reset_index(drop=True)
    frame.to_csv(folder / "data.csv", index=False)
    grid.to_netcdf(folder / "grid.nc")
    model.save(folder / "model.nc")
    return folder


@pytest.fixture
def quick() -> tuple[str, ...]:
    """Options of a fit that leave nothing to select."""
    return (
        *("--primary", "metal", "--secondary", "proxy", "--method", "full", "--anisotropy", "no"),
        *("--marginal", "metal=lognormal", "--marginal", "proxy=normal", "--kernel", "matern32"),
        *("--uncertainty", "plugin"),
    )


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run a command in this process."""
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])
