"""The options of a fit on the command line; those of a configuration file stand behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from xcopula.cli import config
from xcopula.cli.inputs import InputPath, split

__all__ = ["Asked", "fit_options", "numbers_by_name"]


def _hours(context: click.Context, option: click.Parameter, given: str | None) -> Any:
    if given is None or given == "none":
        return given
    try:
        return float(given)
    except ValueError:
        raise click.BadParameter(f"must be a number or none, found {given!r}.") from None


def _whole(context: click.Context, option: click.Parameter, given: str | None) -> Any:
    return int(given) if given is not None and given.isdigit() else given


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
class Asked:
    """What is asked of a fit.

    Attributes
    ----------
    primary : str
    secondary : list of str
    options : dict
        Of :func:`xcopula.fit`; those that were given.
    """

    primary: str
    secondary: list[str]
    options: dict[str, Any]

    @classmethod
    def of(cls, config_file: Path | None, given: dict[str, Any]) -> Asked:
        """Put the options of the command line before those of a file.

        Raises
        ------
        click.UsageError
            If there is no primary, or an option is not written as it should be.
        """
        found = {} if config_file is None else config.read_config(config_file)
        found |= {
            name: _READERS.get(name, _same)(value)
            for name, value in given.items()
            if value is not None and value != ()
        }
        if "primary" not in found:
            raise click.UsageError("Missing option '--primary', the variable to predict.")
        primary, secondary = found.pop("primary"), found.pop("secondary", [])
        return cls(primary, [secondary] if isinstance(secondary, str) else secondary, found)

    @property
    def coordinates(self) -> list[str]:
        """Names of the coordinates that were asked for."""
        return config.named_coordinates(self.options.get("coords"))

    @property
    def flags(self) -> list[str]:
        """Names of the variables that flag limits."""
        censored = self.options.get("censored")
        given = censored.values() if isinstance(censored, dict) else ()
        return [name for name in given if isinstance(name, str) and name != "auto"]

    def check_signs(self, dataset: Any) -> None:
        """Refuse to tell limits in another way where a table has cells such as "<0.2"."""
        censored = self.options.get("censored")
        for name, way in censored.items() if isinstance(censored, dict) else ():
            told = dataset[name].attrs.get("ancillary_variables", "") if name in dataset else ""
            if told.startswith(f"{name}_qualifier") and way not in ("auto", None, told):
                raise click.UsageError(
                    f"Column {name!r} has cells such as <0.2, which tell limits themselves. Leave "
                    f"--censored {name}=... out, or write numbers in all of its cells."
                )

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return [self.primary, *self.secondary]


def _same(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


def _by_name(given: Sequence[str], option: str, read: Callable[[str], Any] = str) -> Any:
    """Return a value for all, or a mapping of names to values."""
    if len(given) == 1 and "=" not in given[0]:
        return read(given[0])
    return {name: read(value) for name, value in (split(text, option) for text in given)}


def numbers_by_name(given: Sequence[str], option: str, kind: type[int] | type[float]) -> Any:
    """Return a number for all, or a mapping of names to numbers; None if nothing is given."""

    def read(text: str) -> int | float:
        try:
            return kind(text)
        except ValueError:
            hint = "a whole number" if kind is int else "a number"
            raise click.BadParameter(
                f"must be {hint}, found {text!r}.", param_hint=f"'{option}'"
            ) from None

    return _by_name(given, option, read) if given else None


def _kernels(given: str) -> Any:
    """Return a name, or the names of several structures."""
    return [name.strip() for name in given.split("+")] if "+" in given else given


def _anisotropy(given: Sequence[str]) -> Any:
    """Return a word for all groups, or the names of some."""
    words: dict[str, Any] = {"yes": True, "no": False}
    return words[given[0]] if len(given) == 1 and given[0] in words else list(given)


def _censored(given: Sequence[str]) -> Any:
    """Return what tells limits of each variable, or of all if it is one word."""
    if len(given) == 1 and "=" not in given[0]:
        return config.parse_censored(given[0])
    pairs = (split(text, "--censored") for text in given)
    return {name: config.parse_limits(_sides(value)) for name, value in pairs}


def _support(given: Sequence[str]) -> Any:
    """Return the ends of the values of each variable, or of all if there is no name."""
    if len(given) == 1 and "=" not in given[0]:
        return config.parse_limits(_sides(given[0]))
    pairs = (split(text, "--support") for text in given)
    return {name: config.parse_limits(_sides(value)) for name, value in pairs}


def _sides(text: str) -> Any:
    """Return the two sides of LOWER:UPPER, or what stands alone; numbers as numbers."""
    parts = [config.as_number(part.strip()) for part in text.split(":")]
    return parts[0] if len(parts) == 1 else parts


_READERS: dict[str, Callable[[Any], Any]] = {
    "marginals": lambda given: _by_name(given, "--marginal", config.parse_law),
    "kernels": lambda given: _by_name(given, "--kernel", _kernels),
    "anisotropy": _anisotropy,
    "censored": _censored,
    "support": _support,
    "max_hours": config.parse_hours,
}
