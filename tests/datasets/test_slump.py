"""The concrete slump data, read from a file that the user provides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xcopula import datasets

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "slump.csv"
INPUTS = [
    "cement",
    "slag",
    "fly_ash",
    "water",
    "superplasticizer",
    "coarse_aggregate",
    "fine_aggregate",
]
HEADING = (
    "%No,Cement,Slag,Fly ash,Water,SP,Coarse Aggr.,Fine Aggr.,"
    "SLUMP(cm),FLOW(cm),Compressive Strength (28-day)(Mpa)"
)
ROWS = ["1,273,82,105,210,9,904,680,23,62,34.99", "2,163,149,191,180,12,843,746,0,20,41.14"]


@pytest.fixture
def table(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("XCOPULA_SLUMP", raising=False)
    path = tmp_path / "slump_test.data"
    path.write_text("\n".join([HEADING, *ROWS]) + "\n\n")
    return path


def test_reads_mixes_with_their_ingredients_as_coords(table):
    ds = datasets.slump(table)
    assert dict(ds.sizes) == {"mix": 2}
    assert list(ds.coords) == INPUTS
    assert list(ds.data_vars) == ["slump", "flow", "strength"]
    assert [float(ds[name][0]) for name in INPUTS] == [273, 82, 105, 210, 9, 904, 680]
    np.testing.assert_array_equal(ds["slump"], [23, 0])
    np.testing.assert_array_equal(ds["strength"], [34.99, 41.14])


def test_has_units_and_credit(table):
    ds = datasets.slump(str(table))
    assert {ds[name].attrs["units"] for name in INPUTS} == {"kg m-3"}
    assert [ds[v].attrs["units"] for v in ("slump", "flow", "strength")] == ["cm", "cm", "MPa"]
    assert "Yeh" in ds.attrs["references"]
    assert ds.attrs["license"] == "CC BY 4.0"


def test_the_environment_may_name_the_file(table, monkeypatch):
    monkeypatch.setenv("XCOPULA_SLUMP", str(table))
    assert datasets.slump().identical(datasets.slump(table))


@pytest.mark.parametrize("given", [None, "nowhere.csv"])
def test_a_missing_file_says_where_to_get_it(table, given):
    with pytest.raises(FileNotFoundError, match=r"UCI Machine Learning.*XCOPULA_SLUMP"):
        datasets.slump(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the concrete slump table"),
        ("a,b,c\n1,2,3\n", "not the concrete slump table"),
        (HEADING + "\n", "has no rows"),
        (HEADING + "\n" + ROWS[0].replace("62", "wide"), "not 10 numbers"),
        (HEADING + "\n" + ROWS[0] + "\n2,163", "not 10 numbers"),
        (HEADING + "\n" + ROWS[0].replace("62", "nan"), "missing"),
    ],
)
def test_another_table_is_refused(table, text, message):
    table.write_text(text)
    with pytest.raises(ValueError, match=message):
        datasets.slump(table)


@pytest.mark.skipif(not REAL.exists(), reason="the original file is not there")
def test_the_real_file():
    ds = datasets.slump(REAL)
    assert dict(ds.sizes) == {"mix": 103}
    assert int((ds["slump"] == 0).sum()) == 11
    assert int((ds["flow"] == 20).sum()) == 17
    assert float(ds["strength"].max()) == 58.53
