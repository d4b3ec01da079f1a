"""Concrete mixes whose slump, flow and strength were measured: a file that the user provides."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from xcopula.warn import shown

__all__ = ["slump"]

VARIABLE = "XCOPULA_SLUMP"

# In the order of the file's columns, after the number of the mix: how the heading begins, the name
# here, the units, and what it is.
_COLUMNS = [
    ("cement", "cement", "kg m-3", "cement"),
    ("slag", "slag", "kg m-3", "blast furnace slag"),
    ("fly", "fly_ash", "kg m-3", "fly ash"),
    ("water", "water", "kg m-3", "water"),
    ("sp", "superplasticizer", "kg m-3", "superplasticizer"),
    ("coarse", "coarse_aggregate", "kg m-3", "coarse aggregate"),
    ("fine", "fine_aggregate", "kg m-3", "fine aggregate"),
    ("slump", "slump", "cm", "slump of the fresh concrete"),
    ("flow", "flow", "cm", "flow of the fresh concrete"),
    ("compressive", "strength", "MPa", "compressive strength after 28 days"),
]
_INPUTS = 7

_WHERE = (
    'Get "Concrete Slump Test" from the UCI Machine Learning Repository (its file slump_test.data) '
    f"and pass its path, `slump(path)`, or set the environment variable {VARIABLE} to it."
)


def slump(path: str | os.PathLike[str] | None = None) -> xr.Dataset:
    """Load the UCI concrete slump test: 103 mixes of seven ingredients.

    The file does not come with the package.

    Parameters
    ----------
    path : path, optional
        The file, comma-separated with a heading; by default what the environment variable
        ``XCOPULA_SLUMP`` names.

    Returns
    -------
    Dataset
        Dim ``mix``. Coords ``cement``, ``slag``, ``fly_ash``, ``water``, ``superplasticizer``,
        ``coarse_aggregate`` and ``fine_aggregate`` in kg per cubic metre of concrete; variables
        ``slump`` and ``flow`` in cm and ``strength`` in MPa.

    Raises
    ------
    FileNotFoundError
        If there is no file; the message says where to get it.
    ValueError
        If the file is not that table.

    Notes
    -----
    Data of I-C. Yeh, UCI Machine Learning Repository, CC BY 4.0. The slump is 0 cm in 11 mixes, too
    stiff to sink, and the flow is 20 cm in 17, the width of the cone. Both mean "at most", which a
    continuous marginal law cannot represent.
    """
    table = _read(_find(path))
    columns = {
        name: ("mix", table[:, k], {"units": units, "long_name": text})
        for k, (_, name, units, text) in enumerate(_COLUMNS)
    }
    names = list(columns)
    return xr.Dataset(
        {name: columns[name] for name in names[_INPUTS:]},
        coords={name: columns[name] for name in names[:_INPUTS]},
        attrs={
            "title": "Concrete slump test",
            "source": "UCI Machine Learning Repository, Concrete Slump Test",
            "references": "I-C. Yeh (2007), Cement and Concrete Composites 29, 474-480",
            "license": "CC BY 4.0",
        },
    )


def _find(path: str | os.PathLike[str] | None) -> Path:
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be the path of the slump data, found {shown(path)}. {_WHERE}")
    given = os.environ.get(VARIABLE) if path is None else path
    if not given:
        raise FileNotFoundError(f"The concrete slump data do not come with xcopula. {_WHERE}")
    file = Path(given)
    if not file.is_file():
        raise FileNotFoundError(f"No concrete slump data at {str(file)!r}. {_WHERE}")
    return file


def _read(path: Path) -> NDArray[np.float64]:
    """Read the table without its first column, the number of the mix."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            rows = [row for row in csv.reader(lines, skipinitialspace=True) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{str(path)!r} is not the concrete slump table: it is not a text file with "
            f"comma-separated columns ({error}). {_WHERE}"
        ) from None
    heading = [cell.strip().lower() for cell in rows[0][1:]] if rows else []
    expected = [column[0] for column in _COLUMNS]
    if len(heading) != len(expected) or not all(map(str.startswith, heading, expected)):
        raise ValueError(
            f"{str(path)!r} is not the concrete slump table: found columns {heading} after the "
            f"first, expected ones that begin with {expected}. {_WHERE}"
        )
    try:
        table = np.array([row[1:] for row in rows[1:]], np.float64)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} has a row that is not {len(expected)} numbers.") from error
    if table.ndim == 2 and table.shape[1] != len(expected):
        raise ValueError(f"{str(path)!r} has rows that are not {len(expected)} numbers.")
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(f"{str(path)!r} has no rows, or has missing values.")
    return table
