"""Tables of text as Datasets: a row is a measurement, columns are variables and coordinates."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ENDINGS", "read_table"]

ENDINGS = (".csv", ".tsv", ".txt")

_ROW = "row"
# Signs of limits, and the CF flags that they become.
_SIGNED = re.compile(r"^\s*([<>]=?|[≤≥])\s*(?=[-+.\d])")
_SIGNS = {"<": 1, "≤": 1, ">": 2, "≥": 2}
_QUALIFIER = {
    "flag_values": np.array([0, 1, 2], np.int8),
    "flag_meanings": "measured below_detection_limit above_range",
}
_YES, _NO = ("1", "1.0", "true", "yes", "y", "t", "<"), ("0", "0.0", "false", "no", "n", "f", "")
# Roles of coordinates that are guessed from names; a height must be named.
_ROLES = ("longitude", "latitude", "x", "y", "time")
# Names of axes of a grid, which a table does not have: Ni is nickel.
_NO_COORDINATES = ("i", "j", "ni", "nj", "nlon", "nlat")


def read_table(
    path: Path,
    coords: Collection[str] = (),
    numbers: Collection[str] | None = (),
    known: Collection[str] = (),
    flags: Collection[str] = (),
) -> xr.Dataset:
    """Read a table of text into a Dataset on the dim ``row``.

    The first line shows whether commas, semicolons (then with decimal commas) or tabs separate
    cells. Lines that begin with ``#`` before it are skipped. Empty cells, "NA" and "NaN" are
    gaps. A coordinate of text holds dates. In columns of numbers "<0.2" is a value below 0.2 and
    ">50" one above 50: a variable beside them flags these, as the CF conventions have it.

    Parameters
    ----------
    path : Path
    coords : collection of str
        Columns of coordinates. By default those of dates, and others by name.
    numbers : collection of str, optional
        Columns that must hold numbers. None takes columns of numbers of which some have a sign.
    known : collection of str
        Further columns of coordinates, beside those by name.
    flags : collection of str
        Columns that hold yes or no.

    Raises
    ------
    KeyError
        If a coordinate is no column.
    ValueError
        If the file is no table, or a cell is neither a number nor a date where it must be one. The
        message names the line.
    """
    import xarray as xr

    from xcopula.labels.dates import with_dates

    frame = _read(path)
    if numbers is None:
        numbers = [name for name in frame if _has_limits(frame[name])]
    missing = [name for name in coords if name not in frame]
    if missing:
        raise KeyError(f"{path} has no column {missing[0]!r}; it has {list(frame)}.")
    coordinates = list(coords) or [*known, *_guessed([n for n in frame if n not in numbers])]
    columns: dict[str, Any] = {}
    for name in frame:
        if name in flags:
            columns[name] = (_ROW, _flag(path, frame[name]))
            continue
        cells, signs = _without_signs(frame[name]) if name in numbers else (frame[name], None)
        values = _column(path, cells, coordinate=name in coordinates, number=name in numbers)
        columns[name] = (_ROW, values)
        if signs is not None:
            flag = _free(f"{name}_qualifier", frame)
            columns[name] = (_ROW, values, {"ancillary_variables": flag})
            columns[flag] = (_ROW, signs, _QUALIFIER)
    table = with_dates(xr.Dataset(columns))
    dates = [] if coords else [name for name in columns if table[name].dtype.kind == "M"]
    return table.set_coords([name for name in columns if name in (*coordinates, *dates)])


def _read(path: Path) -> pd.DataFrame:
    """Return all cells as text, by the number of their line."""
    import pandas as pd

    with open(path, encoding="utf-8-sig") as file:
        lines = ((n, line) for n, line in enumerate(file) if not line.startswith("#"))
        try:
            skipped, header = next(lines, (0, ""))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8: {error}.") from None
    if not header:
        raise ValueError(f"{path} has no line with the names of columns.")
    separator = next((s for s in ("\t", ";") if s in header), ",")
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            skiprows=skipped,
            skip_blank_lines=False,
            skipinitialspace=True,
            index_col=False,
            encoding="utf-8-sig",
        )
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}.") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    cells = next(csv.reader([header], delimiter=separator, skipinitialspace=True))
    names = [cell.strip() for cell in cells]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"{path} has several columns {repeated[0]!r}. Each needs a name of its own."
        )
    frame.index = frame.index + skipped + 2
    frame = frame.dropna(how="all")
    if frame.empty:
        raise ValueError(f"{path} has no rows.")
    if separator == ";":
        frame = frame.apply(lambda cells: cells.str.replace(",", "."))
    return frame


def _without_signs(cells: pd.Series[Any]) -> tuple[pd.Series[Any], Any]:
    """Return cells without leading signs, and codes of the signs; None without any sign."""
    sign = cells.str.extract(_SIGNED)[0].str[0]
    if sign.isna().all():
        return cells, None
    codes = sign.map(_SIGNS).fillna(0).to_numpy(np.int8)
    return cells.str.replace(_SIGNED, "", regex=True).str.strip(), codes


def _has_limits(cells: pd.Series[Any]) -> bool:
    """Tell whether all cells are numbers, and some have a sign."""
    import pandas as pd

    bare, signs = _without_signs(cells)
    return signs is not None and not (bare.notna() & pd.to_numeric(bare, "coerce").isna()).any()


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that no column has."""
    while name in taken:
        name += "_"
    return name


def _flag(path: Path, cells: pd.Series[Any]) -> Any:
    """Return cells of yes and no as booleans; an empty one is no."""
    words = cells.fillna("").str.strip().str.lower()
    strange = ~words.isin((*_YES, *_NO))
    if strange.any():
        line = strange.idxmax()
        raise ValueError(
            f"{path}, line {line}: column {cells.name!r} must say which values are limits, by 1 or "
            f"0, true or false, yes or no; found {cells[line]!r}."
        )
    return words.isin(_YES).to_numpy(bool)


def _guessed(names: Sequence[str]) -> list[str]:
    """Return the names of coordinates."""
    import xarray as xr

    from xcopula.labels.coordinates.roles import guessed_roles, is_time_name

    candidates = [name for name in names if name.lower() not in _NO_COORDINATES]
    roles = guessed_roles(xr.Dataset(coords={name: (_ROW, np.zeros(1)) for name in candidates}))
    claimed = {name for role in _ROLES for name in roles[role]}
    return [name for name in candidates if name in claimed or is_time_name(name)]


def _column(path: Path, cells: pd.Series[Any], *, coordinate: bool, number: bool) -> Any:
    """Return numbers, dates, or texts if they need be neither."""
    import pandas as pd

    values = pd.to_numeric(cells, errors="coerce")
    odd, what = values.isna() & cells.notna(), "numbers"
    if not odd.any():
        return values.to_numpy(np.float64)
    if coordinate and not number:
        dates = pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
        strange = dates.isna() & cells.notna()
        if not strange.any():
            return dates.dt.tz_localize(None).to_numpy("datetime64[ns]")
        # The majority of the cells decides whether dates or numbers are meant.
        if strange.sum() <= odd.sum():
            odd, what = strange, "dates such as 2024-05-31 or 2024-05-31T12:00"
    elif not number:
        return cells.fillna("").to_numpy(object)
    line = odd.idxmax()
    raise ValueError(
        f"{path}, line {line}: column {cells.name!r} must hold {what}, found {cells[line]!r}. "
        f"Leave a cell empty where there is no value{', and write <0.2 below a limit' * number}."
    )
