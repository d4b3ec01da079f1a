"""Tables of text: coordinates, dates, gaps, and cells that are not what they should be."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.cli.tables import read_table
from xcopula.labels.flags import read_flags


@pytest.fixture
def table(tmp_path):
    """Give tests a way to write a table."""

    def write(text: str, name: str = "data.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_text(text, encoding=encoding)
        return path

    return write


PLAIN = """lon,lat,time,Cd,Ni,name
7.1,47.2,2024-05-01,1.5,20,Le Locle
7.1,47.2,2024-05-02,,NA,Le Locle
"""


def test_roles_dates_and_gaps(table):
    """Names tell coordinates, text in them is dates, empty cells are gaps, nickel is no index."""
    result = read_table(table(PLAIN))
    assert set(result.coords) == {"lon", "lat", "time"}
    assert result["time"].values.astype(str).tolist() == [
        "2024-05-01T00:00:00.000000000",
        "2024-05-02T00:00:00.000000000",
    ]
    np.testing.assert_array_equal(result["Cd"], [1.5, np.nan])
    np.testing.assert_array_equal(result["Ni"], [20.0, np.nan])
    assert result["name"].values.tolist() == ["Le Locle", "Le Locle"]
    assert result.sizes == {"row": 2}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x;y;Cd\n1,5;2;3,25\n", "data.csv"),
        ("x\ty\tCd\n1.5\t2\t3.25\n", "data.tsv"),
        ("# from the lab\n# in mg/kg\nx, y, Cd\n1.5, 2, 3.25\n\n", "data.txt"),
        ("\ufeffx,y,Cd\r\n1.5,2,3.25\r\n,,\r\n", "data.csv"),
    ],
)
def test_dialects(table, text, name):
    """Semicolons with decimal commas, tabs, comments, byte order marks and empty lines."""
    result = read_table(table(text, name))
    assert set(result.coords) == {"x", "y"}
    assert [float(result[n].values.item()) for n in ("x", "y", "Cd")] == [1.5, 2.0, 3.25]


def test_named_and_known_coordinates(table):
    """Named coordinates replace the guess; known ones stand beside it if they are there."""
    path = table("east,north,depth,lon,Cd\n1,2,3,4,5\n")
    assert set(read_table(path, ["east", "north"]).coords) == {"east", "north"}
    assert set(read_table(path, known=["depth", "other"]).coords) == {
        "depth",
        "east",
        "lon",
        "north",
    }


def test_a_variable_is_no_coordinate(table):
    """What is to be predicted is a variable, whatever it is called."""
    assert set(read_table(table("u,v,x\n1,2,3\n"), ["u", "v"], ["x"]).data_vars) == {"x"}
    assert "y" in read_table(table("lon,lat,y\n1,2,3\n"), numbers=["y"]).data_vars


def test_time_zones_are_universal_time(table):
    """An offset is taken into account."""
    result = read_table(table("x,time,v\n1,2024-05-01T12:00+02:00,1\n2,2024-05-01T12:00Z,2\n"))
    hours = result["time"].values.astype("datetime64[h]").astype(str)
    assert hours.tolist() == ["2024-05-01T10", "2024-05-01T12"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# lab\nx,y,Cd\n1,2,3\n\n3,4,<LOD\n",
            r"line 5: column 'Cd' must hold numbers, found '<LOD'",
        ),
        (
            "x,y,Cd\n1,2,3\n3,north,4\n",
            r"line 3: column 'y' must hold numbers, found 'north'",
        ),
        ("x,time,Cd\n1,31.05.2024,3\n", r"line 2: column 'time' .*2024-05-31.* found '31.05.2024'"),
        (
            "x,time,Cd\n1,2024-05-01,3\n2,May,3\n3,2024-05-01,3\n",
            r"line 3: column 'time' must hold dates such as .* found 'May'",
        ),
        ("x,x,Cd\n1,2,3\n", "several columns 'x'"),
        ("x,y,Cd\n", "has no rows"),
        ("", "no line with the names"),
        ("x,y,Cd\n1,2,3\n1,2,3,4,5\n", "cannot be read as a table"),
    ],
)
def test_what_is_refused(table, text, message):
    """The message names the line and what was found."""
    with pytest.raises(ValueError, match=message):
        read_table(table(text), numbers=["Cd"])


def test_other_encodings_and_unknown_columns(table):
    """UTF-8 is required; a coordinate must be a column."""
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        read_table(table("größe,y\n1,2\n", encoding="latin-1"))
    with pytest.raises(KeyError, match="no column 'lon'; it has \\['x', 'y'\\]"):
        read_table(table("x,y\n1,2\n"), ["lon"])


class TestLimits:
    def test_signs_are_flags(self, table):
        """What is below or above a number is that number, flagged by the CF conventions."""
        text = "x,y,Cd,Cd_qualifier\n1,2,<0.2,a\n2,3,0.7,b\n3,4,> 50,c\n4,5,,d\n5,6,<= .5,e\n"
        result = read_table(table(text), numbers=["Cd"])
        np.testing.assert_array_equal(result["Cd"], [0.2, 0.7, 50.0, np.nan, 0.5])
        beside = result["Cd"].attrs["ancillary_variables"]
        assert beside == "Cd_qualifier_"  # the table has the first name
        np.testing.assert_array_equal(result[beside], [1, 0, 2, 0, 1])
        below, above = read_flags(result[beside], "")
        np.testing.assert_array_equal(below.values, [True, False, False, False, True])
        np.testing.assert_array_equal(above.values, [False, False, True, False, False])

    def test_decimal_commas(self, table):
        """As in the rest of such a table."""
        result = read_table(table("x;y;Cd\n1;2;<0,2\n2;3;1,5\n"), numbers=["Cd"])
        np.testing.assert_array_equal(result["Cd"], [0.2, 1.5])

    def test_a_table_without_signs_has_no_flags(self, table):
        """Nothing stands beside its numbers."""
        result = read_table(table(PLAIN), numbers=["Cd"])
        assert result["Cd"].attrs == {}
        assert "Cd_qualifier" not in result

    def test_yes_and_no(self, table):
        """Columns that flag limits are boolean; empty is no."""
        text = "x,y,Cd,low\n1,2,1,yes\n2,3,2,\n3,4,3,0\n4,5,4,True\n"
        result = read_table(table(text), numbers=["Cd"], flags=["low"])
        np.testing.assert_array_equal(result["low"], [True, False, False, True])
        with pytest.raises(ValueError, match=r"line 3: column 'low' must say which.*'perhaps'"):
            read_table(table(text.replace("2,3,2,", "2,3,2,perhaps")), flags=["low"])
