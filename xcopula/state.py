"""Take state apart into plain values, and put it together again.

State is held by frozen dataclasses and named tuples. Taken apart, each becomes a mapping of its
fields with the name of its class under ``"class"``; what is left are arrays, numbers, texts, None,
and lists and mappings of these. Nothing else is state: what is derived is computed anew.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

__all__ = ["check_types", "freeze", "put_together", "take_apart"]

State = TypeVar("State")

_PLAIN = (str, bool, int, float, type(None))
# Of numpy's scalars; a date would become a number.
_NUMBERS_AND_TEXTS = "biufU"
_CLASS, _TUPLE = "class", "tuple"


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def take_apart(state: Any, name: Callable[[type], str] = _name) -> Any:
    """Return state as plain values.

    Parameters
    ----------
    state : object
    name : callable, optional
        What a class is called; by default by the module that it lives in.

    Raises
    ------
    TypeError
        If something in it is neither plain nor held by a dataclass or a named tuple.
    """
    if isinstance(state, np.generic) and state.dtype.kind in _NUMBERS_AND_TEXTS:
        state = state.item()
    if isinstance(state, _PLAIN) or (isinstance(state, np.ndarray) and not state.dtype.hasobject):
        return state
    if isinstance(state, type):
        return {_CLASS: "type", "name": name(state)}
    if isinstance(state, list):
        return [take_apart(part, name) for part in state]
    if isinstance(state, Mapping) and all(isinstance(key, str) for key in state):
        # Pairs: a key may be any text, "class" too.
        return {_CLASS: "dict", "items": [[str(k), take_apart(v, name)] for k, v in state.items()]}
    if type(state) is tuple:
        return {_CLASS: _TUPLE, "items": [take_apart(part, name) for part in state]}
    fields = dict(_fields(state))
    if not fields and not dataclasses.is_dataclass(state):
        raise TypeError(f"{type(state).__name__} holds state that cannot be taken apart: {state!r}")
    return {_CLASS: name(type(state)), **{k: take_apart(v, name) for k, v in fields.items()}}


def put_together(plain: Any, classes: Mapping[str, type]) -> Any:
    """Return the state that :func:`take_apart` took apart.

    Parameters
    ----------
    plain : object
    classes : mapping of str to type
        The classes that may be made, by the names they were given: nothing else is.

    Raises
    ------
    KeyError
        If a class is not among them.
    """
    if isinstance(plain, list):
        return [put_together(part, classes) for part in plain]
    if not isinstance(plain, dict):
        return plain
    name = plain[_CLASS]
    if name == _TUPLE:
        return tuple(put_together(part, classes) for part in plain["items"])
    if name == "dict":
        return {k: put_together(v, classes) for k, v in plain["items"]}
    if name == "type":
        return _find(plain["name"], classes)
    values = {k: put_together(v, classes) for k, v in plain.items() if k != _CLASS}
    return _find(name, classes)(**values)


def _find(name: str, classes: Mapping[str, type]) -> type:
    if name not in classes:
        raise KeyError(f"Unknown class {name!r}. Known are {sorted(classes)}.")
    return classes[name]


def _fields(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass or a named tuple."""
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        for field in dataclasses.fields(state):
            if field.init:
                yield field.name, getattr(state, field.name)
    elif isinstance(state, tuple):
        yield from getattr(state, "_asdict", dict)().items()


def freeze(state: State) -> State:
    """Make every array in some state read-only, and return the state."""
    if isinstance(state, np.ndarray):
        state.flags.writeable = False
    elif isinstance(state, list | tuple):
        for part in state:
            freeze(part)
    elif isinstance(state, Mapping):
        for part in state.values():
            freeze(part)
    else:
        for _, part in _fields(state):
            freeze(part)
    return state


def check_types(state: Any) -> None:
    """Check that every field of dataclasses and named tuples holds what its annotation says.

    An integer may stand for a number. Of what a protocol describes, only that it is an object with
    state is checked.

    Raises
    ------
    TypeError
        If a field holds something else; the message names it.
    """
    if isinstance(state, Mapping):
        state = list(state.values())
    if isinstance(state, list) or type(state) is tuple:
        for part in state:
            check_types(part)
        return
    kind: type = type(state)
    hints = _hints(kind)
    for name, part in _fields(state):
        if not _fits(part, hints.get(name, Any)):
            raise TypeError(
                f"{name!r} of {kind.__name__} must be {_spelt(hints[name])}, "
                f"found {type(part).__name__}."
            )
        check_types(part)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError:  # a class of the user's own, which was made inside a function
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is what an annotation says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, each) for each in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _tuple_fits(value, arguments)
    if origin is np.ndarray:
        dtype = typing.get_args(arguments[1])
        known = dtype and dtype[0] is not Any
        return isinstance(value, np.ndarray) and (not known or value.dtype == np.dtype(dtype[0]))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if getattr(hint, "_is_protocol", False):
        return dataclasses.is_dataclass(value) and not isinstance(value, type)
    kind = origin if isinstance(origin, type) else hint
    return not isinstance(kind, type) or isinstance(value, kind)


def _tuple_fits(value: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    if arguments[1:] == (...,):
        return all(_fits(part, arguments[0]) for part in value)
    return len(value) == len(arguments) and all(map(_fits, value, arguments))


def _spelt(hint: Any) -> str:
    return str(hint) if typing.get_origin(hint) else getattr(hint, "__name__", str(hint))
