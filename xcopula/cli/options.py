"""Options of a fit, from the command line and from a file of TOML."""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcopula.cli.files import InputPath, read_data, split

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FitOptions", "fit_options", "numbers_by_name", "read_config"]

# Options of `fit` that neither a file nor the command line has.
_PYTHON_ONLY = ("compute", "progress")


def _hours(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    if text is None or text == "none":
        return text
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"must be a number or none, found {text!r}.") from None


def _whole(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    return int(text) if text is not None and text.isdigit() else text


_OPTIONS = (
    click.option("--primary", metavar="NAME", help="The variable to predict."),
    click.option(
        "--secondary", metavar="NAME", multiple=True, help="A variable that informs it; repeatable."
    ),
    click.option(
        "--coords",
        metavar="NAME",
        multiple=True,
        help="A coordinate that is an input, such as lon; repeatable. Found by role or name if "
        "none is given.",
    ),
    click.option("--crs", metavar="CRS", help="Where x and y lie, such as EPSG:2056."),
    click.option("--method", metavar="NAME", help="transductive (default), full, fitc, bcm, ..."),
    click.option("--solver", metavar="NAME", help="auto (default), exact or neighbours."),
    click.option(
        "--marginal",
        "marginals",
        metavar="[NAME=]LAW",
        multiple=True,
        help="The law of a variable, or of all: normal, lognormal, gamma, parzen, ...; "
        "lognormal~elevation moves with a column. Repeatable.",
    ),
    click.option(
        "--kernel",
        "kernels",
        metavar="[NAME=]KERNEL",
        multiple=True,
        help="The kernel of a variable, or of all: se, matern12, matern32, matern52; "
        "matern32+matern12 has one for each nested structure. Repeatable.",
    ),
    click.option("--coupling", metavar="NAME", help="convolution (default), icm or lmc."),
    click.option(
        "--structures", metavar="N", callback=_whole, help="Nested structures; auto by default."
    ),
    click.option("--noise", metavar="NAME", help="correlated (default) or independent nuggets."),
    click.option(
        "--ard",
        metavar="GROUP",
        multiple=True,
        help="A group of coordinates, such as space, with a length scale each; repeatable.",
    ),
    click.option(
        "--uncertainty",
        metavar="NAME",
        help="How parameter uncertainty enters intervals: inflated (default) or plugin.",
    ),
    click.option(
        "--anisotropy",
        metavar="GROUP",
        multiple=True,
        help="Whether ranges may differ by direction: yes (default), no, or a group of "
        "coordinates, such as space, in which they may; repeatable.",
    ),
    click.option(
        "--censored",
        metavar="NAME=WHAT",
        multiple=True,
        help="Which values of a variable are limits: a number (values at or below it are below "
        "it), a column that flags upper limits, LOWER:UPPER of columns or numbers (an empty side "
        "is open), auto, or none. Repeatable; none alone is for all variables.",
    ),
    click.option(
        "--support",
        metavar="[NAME=]LOW:HIGH",
        multiple=True,
        help="The least and the largest value that a variable can have, such as 0: for no end "
        "above. Repeatable; without a name it is for all variables.",
    ),
    click.option(
        "--replicates",
        is_flag=True,
        default=None,
        help="A site may have several values of a variable: they differ by the nugget.",
    ),
    click.option(
        "--max-hours", metavar="HOURS", callback=_hours, help="Refuse longer fits; 4, or none."
    ),
    click.option("--restarts", type=int, metavar="N", help="Further starts; 0 by default."),
    click.option("--seed", type=int, metavar="N", help="Of restarts and random folds; 0."),
    click.option(
        "--config",
        type=InputPath,
        metavar="FILE",
        help="Options of a fit in TOML. Those of the command line come before them.",
    ),
)


def fit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a fit to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class FitOptions:
    """Variables and options of a fit.

    Attributes
    ----------
    primary : str
    secondary : list of str
    options : dict
        Of :func:`xcopula.fit`, without defaults.
    """

    primary: str
    secondary: list[str]
    options: dict[str, Any]

    @classmethod
    def of(cls, config: Path | None, words: Mapping[str, Any]) -> FitOptions:
        """Combine the options of a file and of the command line, which come first."""
        options = {} if config is None else read_config(config)
        stated = {name: value for name, value in words.items() if value not in (None, ())}
        options |= _read({name: _plain(name, value) for name, value in stated.items()})
        if "primary" not in options:
            raise click.UsageError("Missing option '--primary', the variable to predict.")
        primary, secondary = options.pop("primary"), options.pop("secondary", [])
        return cls(primary, [secondary] if isinstance(secondary, str) else secondary, options)

    def read(self, path: Path) -> xr.Dataset:
        """Read the data of the fit."""
        limits = self.options.get("censored")
        limits = limits if isinstance(limits, dict) else {}
        flags = [limit for limit in limits.values() if isinstance(limit, str) and limit != "auto"]
        coords = _coordinate_names(self.options.get("coords"))
        data = read_data(path, coords, [self.primary, *self.secondary], flags=flags)
        for name, limit in limits.items():
            flag = data[name].attrs.get("ancillary_variables", "") if name in data else ""
            if flag.startswith(f"{name}_qualifier") and limit not in ("auto", None, flag):
                raise click.UsageError(
                    f"Column {name!r} has cells such as <0.2, which tell limits themselves. Leave "
                    f"--censored {name}=... out, or write numbers in all of its cells."
                )
        return data


def _plain(name: str, value: Any) -> Any:
    """Return the words of an option as a file would have its value."""
    if name in _BY_VARIABLE:
        return _by_name(value, *_BY_VARIABLE[name])
    if name == "anisotropy" and len(value) == 1:
        words: dict[str, Any] = {"yes": True, "no": False}
        return words.get(value[0], list(value))
    return list(value) if isinstance(value, tuple) else value


def _by_name(texts: Sequence[str], option: str, read: Callable[[str], Any]) -> Any:
    """Return a value for all, or a mapping of names to values."""
    if len(texts) == 1 and "=" not in texts[0]:
        return read(texts[0])
    return {name: read(value) for name, value in (split(text, option) for text in texts)}


def numbers_by_name(texts: Sequence[str], option: str, kind: type[int] | type[float]) -> Any:
    """Return a number for all, or a mapping of names to numbers; None for no text."""

    def read(text: str) -> int | float:
        try:
            return kind(text)
        except ValueError:
            hint = "a whole number" if kind is int else "a number"
            raise click.BadParameter(
                f"must be {hint}, found {text!r}.", param_hint=f"'{option}'"
            ) from None

    return _by_name(texts, option, read) if texts else None


def _structures(text: str) -> Any:
    """Return a kernel, or a kernel for each nested structure."""
    return [name.strip() for name in text.split("+")] if "+" in text else text


def _sides(text: str) -> Any:
    """Return LOWER:UPPER as a list, and a single limit as it is; numbers as numbers."""
    sides = [_number(side.strip()) for side in text.split(":")]
    return sides[0] if len(sides) == 1 else sides


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_BY_VARIABLE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "marginals": ("--marginal", str),
    "kernels": ("--kernel", _structures),
    "censored": ("--censored", _sides),
    "support": ("--support", _sides),
}


def read_config(path: Path) -> dict[str, Any]:
    """Return the variables and the options of a fit from a file of TOML."""
    from xcopula.fitting import fit

    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    try:
        options = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:  # of TOML, or of UTF-8
        raise ValueError(f"{path} is no TOML: {error}.") from None
    parameters = inspect.signature(fit).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    known = ["primary", "secondary", *(name for name in keywords if name not in _PYTHON_ONLY)]
    _check_keys(options, known, str(path))
    return _read(options)


def _read(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the objects of Python for plain values."""
    return {
        name: _READERS[name](value) if name in _READERS else value
        for name, value in options.items()
    }


def _check_keys(table: Collection[str], known: Collection[str], what: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise KeyError(f"{what} has no option {unknown[0]!r}. Choose from: {', '.join(known)}.")


def _each(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a reader of one value, or of a table with a value for each name."""

    def read_all(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: read(entry) for name, entry in value.items()}
        return read(value)

    return read_all


def _optional(value: Any) -> Any:
    """Return None for "none": TOML has no word for it."""
    return None if value == "none" else value


def _limits(value: Any) -> Any:
    """Return the limits of a variable; an empty side of a pair is open."""
    if isinstance(value, list):
        return tuple(None if side in ("", "none") else side for side in value)
    return _optional(value)


def _marginal(value: Any) -> Any:
    """Return a marginal from its name, from ``law~covariate+covariate``, or from a table.

    A table has ``law``, and ``on``, ``degree`` and ``link`` of :func:`xcopula.regress`, or ``by``,
    the key of :func:`xcopula.by`.
    """
    from xcopula.marginals import by, regress

    if isinstance(value, str) and "~" in value:
        name, _, on = value.partition("~")
        return regress(name.strip() or "auto", [part.strip() for part in on.split("+")])
    if not isinstance(value, Mapping):
        return value
    _check_keys(value, ("law", "on", "degree", "link", "by"), "A law")
    law: Any = value.get("law", "auto")
    rest = {k: v for k, v in value.items() if k not in ("law", "by")}
    if "by" in value:
        law = by(value["by"], law)
    return regress(law, **rest) if rest else law


def _coordinates(value: Any) -> Any:
    """Return coordinates; a table makes a cycle."""
    from xcopula.labels.coordinates import cycle

    if isinstance(value, list):
        return [_coordinates(member) for member in value]
    if not isinstance(value, Mapping):
        return value
    _check_keys(value, ("cycle", "period"), "A coordinate")
    return cycle(value.get("cycle"), value.get("period", "year"))  # type: ignore[arg-type]


def _coordinate_names(coords: Any) -> list[str]:
    """Return the names of all coordinates of ``coords=``."""
    if coords is None:
        return []
    if isinstance(coords, Mapping):
        return [name for members in coords.values() for name in _coordinate_names(members)]
    members = coords if isinstance(coords, list) else [coords]
    return list(dict.fromkeys(str(getattr(member, "name", member)) for member in members))


def _method(value: Any) -> Any:
    from xcopula.methods import resolve_method

    return _with_options(value, resolve_method, "method")


def _solver(value: Any) -> Any:
    from xcopula.solvers import resolve_solver

    return _with_options(value, resolve_solver, "solver")


def _with_options(table: Any, resolve: Callable[[Any], Any], what: str) -> Any:
    """Return an object from a table with its name and its options."""
    if not isinstance(table, Mapping):
        return table
    if "name" not in table:
        raise KeyError(f"The {what} has no name: give one, as in {what} = {{name = ...}}.")
    default = resolve(table["name"])
    options = {key: value for key, value in table.items() if key != "name"}
    fields = dataclasses.fields(default) if dataclasses.is_dataclass(default) else ()
    _check_keys(options, [field.name for field in fields], f"{what} {table['name']!r}")
    return dataclasses.replace(default, **options) if options else table["name"]


_READERS: dict[str, Callable[[Any], Any]] = {
    "coords": _each(_coordinates),
    "marginals": _each(_marginal),
    "censored": _each(_limits),
    "support": _each(_limits),
    "method": _method,
    "solver": _solver,
    "max_hours": _optional,
}
