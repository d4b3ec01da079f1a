"""The options of a fit on the command line."""

from __future__ import annotations

import inspect

import click
import pytest
from click.testing import CliRunner

import xcopula
from xcopula.cli.options import Asked, fit_options, numbers_by_name


def asked(*words: str) -> Asked:
    """Return what a command line asks for."""
    found = []

    @click.command()
    @fit_options
    def command(config, **given):
        found.append(Asked.of(config, given))

    done = CliRunner().invoke(command, words, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return found[0]


def test_only_what_is_given_is_passed_on():
    """Defaults are those of `fit`."""
    assert asked("--primary", "Cd") == Asked("Cd", [], {})


def test_every_option():
    """Words become what `fit` takes, and all of its options have one."""
    found = asked(
        *("--primary", "Cd", "--secondary", "Ni", "--secondary", "Zn"),
        *("--coords", "x", "--coords", "y", "--crs", "EPSG:2056"),
        *("--method", "full", "--solver", "exact", "--coupling", "icm", "--structures", "2"),
        *("--marginal", "Cd=lognormal", "--marginal", "Ni=gamma~x", "--kernel", "matern32"),
        *("--noise", "independent", "--ard", "space"),
        *("--uncertainty", "plugin"),
        *("--anisotropy", "space", "--anisotropy", "other"),
        *("--censored", "Cd=0.2", "--censored", "Ni=:upper", "--replicates"),
        *("--support", "Cd=0:", "--support", "Ni=-1:50"),
        *("--max-hours", "none", "--restarts", "0", "--seed", "5"),
    )
    assert found.names == ["Cd", "Ni", "Zn"]
    assert found.coordinates == ["x", "y"]
    assert found.options == {
        "coords": ["x", "y"],
        "crs": "EPSG:2056",
        "method": "full",
        "solver": "exact",
        "marginals": {"Cd": "lognormal", "Ni": xcopula.regress("gamma", on="x")},
        "kernels": "matern32",
        "coupling": "icm",
        "structures": 2,
        "noise": "independent",
        "ard": ["space"],
        "uncertainty": "plugin",
        "anisotropy": ["space", "other"],
        "censored": {"Cd": 0.2, "Ni": (None, "upper")},
        "support": {"Cd": (0.0, None), "Ni": (-1.0, 50.0)},
        "replicates": True,
        "max_hours": None,
        "restarts": 0,
        "seed": 5,
    }
    own = inspect.signature(xcopula.fit).parameters.values()
    names = {p.name for p in own if p.kind is p.KEYWORD_ONLY}
    assert set(found.options) == names - {"compute", "progress"}
    assert asked("--primary", "Cd", "--structures", "auto").options == {"structures": "auto"}
    for word, meaning in (("yes", True), ("no", False), ("space", ["space"])):
        assert asked("--primary", "Cd", "--anisotropy", word).options == {"anisotropy": meaning}
    for given, kernels in (
        (["se+matern12"], ["se", "matern12"]),
        (["Cd=se + matern12", "Ni=se"], {"Cd": ["se", "matern12"], "Ni": "se"}),
    ):
        words = [word for each in given for word in ("--kernel", each)]
        assert asked("--primary", "Cd", *words).options == {"kernels": kernels}
    assert asked("--primary", "Cd", "--support", "0:").options == {"support": (0.0, None)}
    for word, meaning in (("none", None), ("auto", "auto"), ("Cd=none", {"Cd": None})):
        assert asked("--primary", "Cd", "--censored", word).options == {"censored": meaning}
    assert asked("--primary", "Cd", "--censored", "Cd=late").flags == ["late"]
    assert asked("--primary", "Cd", "--max-hours", "2.5").options == {"max_hours": 2.5}


def test_the_command_line_comes_before_the_file(tmp_path):
    """What both say is as the command line says."""
    path = tmp_path / "options.toml"
    path.write_text("primary = 'Cd'\nsecondary = 'Ni'\nseed = 1\nrestarts = 4\nmax_hours = 'none'")
    found = asked("--config", str(path), "--seed", "7")
    assert found == Asked("Cd", ["Ni"], {"seed": 7, "restarts": 4, "max_hours": None})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing option '--primary'"),
        (["--primary", "Cd", "--max-hours", "long"], "must be a number or none, found 'long'"),
        (["--primary", "Cd", "--kernel", "se", "--kernel", "Ni=se"], "must be NAME=VALUE"),
    ],
)
def test_wrong_usage(words, message):
    """It is said as click says it."""
    with pytest.raises(click.UsageError, match=message):
        asked(*words)


def test_numbers():
    """One for all, some by name, or none."""
    assert numbers_by_name((), "--buffer", float) is None
    assert numbers_by_name(("2.5",), "--buffer", float) == 2.5
    assert numbers_by_name(("space=2", "time=1"), "--buffer", float) == {"space": 2, "time": 1}
