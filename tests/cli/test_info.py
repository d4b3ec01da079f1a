"""What is in a file."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.cli.info import describe


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
    found = {line[0]: line[1:] for line in lines if line}
    assert found["v"] == ["3", "2", "1", "row", "-", "5", "90"]
    assert found["name"] == ["3", "0", "1", "row", "-", "-", "-"]


def test_named_coordinates(run, tmp_path):
    """A table may be told what its coordinates are."""
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
