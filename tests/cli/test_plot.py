"""Pictures of files."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def out(model, grid, tmp_path_factory):
    """A prediction on two levels, with an exceedance."""
    posterior = model.posterior(grid)
    found = xr.merge([posterior.quantile([0.05, 0.5, 0.95]), posterior.exceedance([1.0, 2.0])])
    path = tmp_path_factory.mktemp("plot") / "out.nc"
    found.expand_dims(level=[1.0, 2.0]).to_netcdf(path)
    return path


@pytest.mark.parametrize("kind", [None, "correlations", "laws", "loo", "pit"])
def test_kinds_of_a_model(run, files, tmp_path, kind):
    """Each is a picture."""
    words = [] if kind is None else ["--kind", kind]
    done = run("plot", files / "model.nc", *words, "--dpi", "40", "-o", tmp_path / "p.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_reliability_needs_a_threshold(run, files, tmp_path):
    """And no other kind takes one."""
    given = ("plot", files / "model.nc", "-o", tmp_path / "p.svg")
    assert run(*given, "--kind", "reliability").exit_code == 2
    assert run(*given, "--kind", "laws", "--threshold", "1").exit_code == 2
    done = run(*given, "--kind", "reliability", "--threshold", "1.5")
    assert done.exit_code == 0, done.output
    assert "above 1.5" in done.output or "<svg" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize("kind", ["map", "exceedance"])
def test_kinds_of_a_prediction(run, files, out, tmp_path, kind):
    """A slice is drawn, with sites."""
    words = ("--kind", kind, "--select", "level=2", "--sites", files / "data.csv")
    done = run("plot", out, *words, "--dpi", "40", "-o", tmp_path / "p.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_sites_with_limits(run, out, tmp_path):
    """Cells such as <5 are drawn at their limit, as a fit reads them."""
    (tmp_path / "sites.csv").write_text("x,y,metal\n1,1,<0.5\n2,2,1.5\n3,1,\n")
    words = ("--select", "level=2", "--sites", tmp_path / "sites.csv", "--dpi", "40")
    done = run("plot", out, *words, "-o", tmp_path / "p.png")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--kind", "laws"], 2, "is a prediction, which has the kinds map, exceedance"),
        (["--select", "time=2001-01-01"], 1, "no dim 'time' to select; there are ["),
        (["--select", "level=2", "--variable", "gold"], 1, "No variable 'gold'"),
        (["--select", "level"], 2, "must be NAME=VALUE"),
        (["--select", "level=high"], 1, "no level=high; the labels of 'level' go from 1.0 to 2.0"),
        (["--select", "level=9"], 1, "There is no level=9"),
    ],
)
def test_what_cannot_be_drawn(run, out, tmp_path, words, code, message):
    """It is said in one line."""
    done = run("plot", out, *words, "-o", tmp_path / "p.png")
    assert done.exit_code == code, done.output
    assert message in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_date_selects_an_hour(run, model, grid, tmp_path):
    """Dates are written as people write them."""
    found = model.predict(grid).expand_dims(
        time=np.array(["2024-05-30T12", "2024-05-31T12"], "M8[ns]")
    )
    found.to_netcdf(tmp_path / "out.nc")
    for day, code in (("2024-05-31", 0), ("2023-01-01", 1)):
        output = tmp_path / f"{day}.png"
        done = run(
            "plot", tmp_path / "out.nc", "--select", f"time={day}", "--dpi", "40", "-o", output
        )
        assert done.exit_code == code, done.output
