"""Descriptions and pictures of files."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.cli.inspect import describe


def test_a_model(run, files, model):
    """Its summary."""
    assert run("info", files / "model.nc").output == f"{model.summary()}\n"


@pytest.mark.parametrize("name", ["data.nc", "data.csv"])
def test_data(run, files, name):
    """Variables with their gaps, coordinates with their roles, sizes."""
    lines = [line.split() for line in run("info", files / name).output.splitlines()]
    dim = "site" if name.endswith("nc") else "row"
    assert lines[0] == ["Sizes:", f"{dim}:", "60"]
    (x,) = [line for line in lines if line[:1] == ["x"]]
    assert x[:3] == ["x", "x", dim]
    (metal,) = [line for line in lines if line[:1] == ["metal"]]
    assert metal[:5] == ["metal", "40", "0", "20", dim]


def test_limits_and_empty_cells_of_a_table(run, tmp_path):
    """Cells such as <5 are numbers, and counted as limits; an empty cell of a text is a gap."""
    (tmp_path / "t.csv").write_text("x,v,name\n1,<5,a\n2,7.5,\n3,>90,b\n4,,b\n")
    lines = [line.split() for line in run("info", tmp_path / "t.csv").output.splitlines()]
    result = {line[0]: line[1:] for line in lines if line}
    assert result["v"] == ["3", "2", "1", "row", "-", "5", "90"]
    assert result["name"] == ["3", "0", "1", "row", "-", "-", "-"]


def test_named_coordinates(run, tmp_path):
    """Options name the coordinates of a table."""
    (tmp_path / "t.csv").write_text("e,n,v\n1,2,\n3,4,5\n")
    lines = run("info", tmp_path / "t.csv", "--coords", "e", "--coords", "n").output
    assert "No variables" not in lines
    assert "No coordinates." in run("info", tmp_path / "t.csv").output


def test_a_flag_that_cannot_be_read():
    """Its attributes contradict each other, which a fit refuses: the rest is shown."""
    flag = {"flag_meanings": "good below_detection_limit", "flag_values": [0]}
    data = xr.Dataset(
        {
            "v": ("t", [1.0, 2.0], {"ancillary_variables": "q"}),
            "q": ("t", np.array([0, 1], np.int8), flag),
        }
    )
    (line,) = [line.split() for line in describe(data).splitlines() if line.startswith("  v ")]
    assert line[:4] == ["v", "2", "?", "0"]


def test_dates_under_any_name(run, tmp_path):
    """They are the time, as a fit takes them."""
    (tmp_path / "t.csv").write_text("x,y,sampled,v\n1,2,2024-05-01,3\n3,4,2024-05-02,5\n")
    lines = run("info", tmp_path / "t.csv").output.splitlines()
    assert any(line.split()[:2] == ["sampled", "time"] for line in lines)


def test_dates_texts_and_nothing():
    """Each is shown as it is."""
    data = xr.Dataset(
        {"name": ("t", ["a", "b"]), "none": ("t", [np.nan, np.nan])},
        coords={"t": np.array(["2024-05-01", "2024-05-02T06"], "datetime64[ns]")},
    )
    text = describe(data)
    assert "2024-05-01 " in text
    assert "2024-05-02T06:00:00" in text
    assert [line.split()[:4] for line in text.splitlines()[-2:]] == [
        ["name", "2", "0", "0"],
        ["none", "0", "0", "2"],
    ]
    assert describe(xr.Dataset()) == "Sizes: none\n\nNo coordinates.\n\nNo variables."


@pytest.fixture(scope="module")
def out(model, grid, tmp_path_factory):
    """A prediction on two levels, with an exceedance."""
    pytest.importorskip("matplotlib")
    posterior = model.posterior(grid)
    result = xr.merge([posterior.quantile([0.05, 0.5, 0.95]), posterior.exceedance([1.0, 2.0])])
    path = tmp_path_factory.mktemp("plot") / "out.nc"
    result.expand_dims(level=[1.0, 2.0]).to_netcdf(path)
    return path


@pytest.mark.parametrize("kind", [None, "correlations", "laws", "loo", "pit"])
def test_kinds_of_a_model(run, files, tmp_path, kind):
    """Each is a picture."""
    pytest.importorskip("matplotlib")
    words = [] if kind is None else ["--kind", kind]
    done = run("plot", files / "model.nc", *words, "--dpi", "40", "-o", tmp_path / "p.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_reliability_needs_a_threshold(run, files, tmp_path):
    """And no other kind takes one."""
    pytest.importorskip("matplotlib")
    arguments = ("plot", files / "model.nc", "-o", tmp_path / "p.svg")
    assert run(*arguments, "--kind", "reliability").exit_code == 2
    assert run(*arguments, "--kind", "laws", "--threshold", "1").exit_code == 2
    done = run(*arguments, "--kind", "reliability", "--threshold", "1.5")
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
    pytest.importorskip("matplotlib")
    result = model.predict(grid).expand_dims(
        time=np.array(["2024-05-30T12", "2024-05-31T12"], "M8[ns]")
    )
    result.to_netcdf(tmp_path / "out.nc")
    for day, code in (("2024-05-31", 0), ("2023-01-01", 1)):
        output = tmp_path / f"{day}.png"
        done = run(
            "plot", tmp_path / "out.nc", "--select", f"time={day}", "--dpi", "40", "-o", output
        )
        assert done.exit_code == code, done.output
