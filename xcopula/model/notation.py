"""Plain state as a text and a few named arrays, and back: what a model file is made of.

The text is JSON. A short array is written out in it; a longer one is a named variable, which the
text refers to by its path, dtype, shape and checksum.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import ModelFormatError

__all__ = ["Arrays", "Place", "checksum", "dumps", "is_safe", "note", "recall", "safe_names"]


class Place(NamedTuple):
    """Where an array is kept: its group and name, its dims, what it is."""

    group: str
    name: str
    dims: tuple[str, ...]
    attrs: Mapping[str, Any]


FindPlace = Callable[[tuple[str, ...], int], Place]

# Arrays up to this size are written out in the text.
_SHORT = 16
# Kinds of dtype that a file holds exactly: numbers and truth values; short ones also texts, dates.
_NUMBERS, _TEXTS = "biuf", "UmM"
_ARRAY, _NUMBER = "array", "number"
_LONGEST_NAME = 80


class Arrays:
    """Variables by group."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[str, xr.Variable]] = {}
        self._known: dict[tuple[Any, ...], str] = {}

    def put(self, values: npt.NDArray[Any], place: Place, *, once: bool = True) -> dict[str, Any]:
        """Keep an array, under the next free name if its own is taken; return what refers to it.

        A dim that the group has with another size gets the next name as well.
        With ``once``, an array that is in the group already, to the last bit, is not kept again.
        """
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        dtype, mark = _spelt(values.dtype), checksum(values)
        key = (place.group, dtype, values.shape, mark)
        if not (once and key in self._known):
            variables = self.groups.setdefault(place.group, {})
            free = _free(place.name, variables)
            stored = values.astype(np.int8) if values.dtype.kind == "b" else values
            sizes = {d: n for v in variables.values() for d, n in v.sizes.items()}
            dims = [_dim(*each, sizes) for each in zip(place.dims, values.shape, strict=True)]
            variables[free] = xr.Variable(dims, stored, dict(place.attrs))
            self._known[key] = f"{place.group}/{free}"
        shape = list(values.shape)
        at = self._known[key]
        return {"class": _ARRAY, "at": at, "dtype": dtype, "shape": shape, "checksum": mark}


def _spelt(dtype: np.dtype[Any]) -> str:
    """Return a dtype without the order of its bytes."""
    return dtype.str.lstrip("<>|=")


def _free(name: str, taken: Iterable[str]) -> str:
    """Return the name, or with a number where it is taken; case does not tell names apart."""
    used = {other.casefold() for other in taken}
    candidates = (name, *(f"{name}_{k}" for k in range(2, len(used) + 3)))
    return next(each for each in candidates if each.casefold() not in used)


def _dim(name: str, size: int, sizes: Mapping[Hashable, int]) -> str:
    """Return the name of a dim, or with a number where it has another size."""
    candidates = itertools.chain([name], (f"{name}_{k}" for k in itertools.count(2)))
    return next(each for each in candidates if sizes.get(each, size) == size)


def safe_names(names: Iterable[str], otherwise: str) -> list[str]:
    """Return names that every file system and format takes; ``otherwise`` where one is not."""
    found: list[str] = []
    for k, name in enumerate(names):
        found.append(_free(name if is_safe(name) else f"{otherwise}_{k}", found))
    return found


def is_safe(name: str) -> bool:
    """Tell whether a name can be that of a group or a variable, and of a folder."""
    return (
        re.fullmatch(r"[^\W_](?:[\w.+@ -]*[\w+@-])?", name) is not None
        and len(name) <= _LONGEST_NAME
        and unicodedata.is_normalized("NFC", name)
    )


def checksum(values: npt.NDArray[Any] | str) -> str:
    """Return a number, as text, that damage changes. It does not protect from malice."""
    data = values.encode() if isinstance(values, str) else np.ascontiguousarray(values).tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def note(plain: Any, arrays: Arrays, place: FindPlace, path: tuple[str, ...] = ()) -> Any:
    """Return plain state as JSON has it, and keep the longer arrays.

    Parameters
    ----------
    plain : object
        What :func:`xcopula.state.take_apart` returns.
    arrays : Arrays
    place : callable
        Returns the place of an array from the fields that lead to it and its number of dims.

    Raises
    ------
    TypeError
        If an array has a dtype that is not written.
    """
    if isinstance(plain, dict):
        if plain["class"] in ("tuple", "dict"):
            return {**plain, "items": note(plain["items"], arrays, place, path)}
        return {k: note(v, arrays, place, (*path, k)) for k, v in plain.items()}
    if isinstance(plain, list):
        return [note(v, arrays, place, (*path, str(k))) for k, v in enumerate(plain)]
    if isinstance(plain, float) and not math.isfinite(plain):
        return {"class": _NUMBER, "text": str(plain)}
    if not isinstance(plain, np.ndarray):
        return plain
    if not _is_writable(plain.dtype):
        raise TypeError(f"An array of dtype {plain.dtype} is not written to files.")
    if plain.size > _SHORT and plain.dtype.kind in _NUMBERS:
        return arrays.put(plain, place(path, plain.ndim))
    return _written_out(plain)


def _is_writable(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _TEXTS or (dtype.kind in _NUMBERS and dtype.itemsize <= 8)


def _written_out(array: npt.NDArray[Any]) -> dict[str, Any]:
    kind = array.dtype.kind
    plain = array.astype(np.int64) if kind in "mM" else array
    values = plain.ravel().tolist()
    if kind == "f":
        values = [v if math.isfinite(v) else str(v) for v in values]
    shape = list(array.shape)
    return {"class": _ARRAY, "dtype": _spelt(array.dtype), "shape": shape, "values": values}


def recall(noted: Any, fetch: Callable[[str], npt.NDArray[Any]]) -> Any:
    """Return plain state from what :func:`note` returned.

    Parameters
    ----------
    noted : object
        Of JSON: nothing in it is trusted.
    fetch : callable
        Returns the array at a path.

    Raises
    ------
    ModelFormatError
        If an array is not what the text says.
    """
    if isinstance(noted, list):
        return [recall(part, fetch) for part in noted]
    if not isinstance(noted, dict):
        return noted
    kind = noted.get("class")
    if kind == _NUMBER:
        return float(noted["text"])
    if kind == _ARRAY:
        return _fetched(noted, fetch) if "at" in noted else _read(noted)
    return {key: recall(part, fetch) for key, part in noted.items()}


def _read(noted: Mapping[str, Any]) -> npt.NDArray[Any]:
    dtype, shape, values = np.dtype(noted["dtype"]), noted["shape"], noted["values"]
    if not _is_writable(dtype) or math.prod(shape) != len(values):
        raise ModelFormatError(f"An array of {dtype} and shape {shape} is not well-formed.")
    if dtype.kind == "U":
        return np.array(values, f"U{max((len(v) for v in values), default=1)}").reshape(shape)
    if dtype.kind in "mM":
        return np.array(values, np.int64).reshape(shape).astype(dtype)
    return np.array([float(v) if isinstance(v, str) else v for v in values], dtype).reshape(shape)


def _fetched(noted: Mapping[str, Any], fetch: Callable[[str], npt.NDArray[Any]]) -> Any:
    path, dtype = str(noted["at"]), np.dtype(noted["dtype"])
    if dtype.kind not in _NUMBERS:
        raise ModelFormatError(f"The array {path} must hold numbers, found {dtype}.")
    found = fetch(path)
    stored = np.dtype(np.int8) if dtype.kind == "b" else dtype
    if found.dtype != stored or list(found.shape) != noted["shape"]:
        raise ModelFormatError(
            f"The array {path} must be {stored} of shape {noted['shape']}, found {found.dtype} of "
            f"shape {list(found.shape)}."
        )
    values = np.ascontiguousarray(found, dtype)
    if checksum(values) != noted["checksum"]:
        raise ModelFormatError(f"The array {path} is not what was written.")
    return values


def dumps(noted: Any) -> str:
    """Return JSON in ASCII, which any format keeps as it is."""
    return json.dumps(noted, allow_nan=False, separators=(",", ":"))
