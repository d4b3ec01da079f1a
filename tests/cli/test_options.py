"""The options of a fit on the command line and in a file."""

from __future__ import annotations

import inspect

import click
import pytest
from click.testing import CliRunner

import xcopula
from xcopula.cli.options import FitOptions, fit_options, numbers_by_name, read_config
from xcopula.methods import Transductive
from xcopula.solvers import Neighbours

KEYWORDS = {
    p.name for p in inspect.signature(xcopula.fit).parameters.values() if p.kind is p.KEYWORD_ONLY
}
PYTHON_ONLY = {"compute", "progress"}


def parsed(*words: str) -> FitOptions:
    """Return what a command line asks for."""
    result = []

    @click.command()
    @fit_options
    def command(config, **arguments):
        result.append(FitOptions.of(config, arguments))

    done = CliRunner().invoke(command, words, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return result[0]


def test_every_option():
    """Words become what `fit` takes, and all of its options have one."""
    result = parsed(
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
    assert (result.primary, result.secondary) == ("Cd", ["Ni", "Zn"])
    assert result.options == {
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
    assert set(result.options) == KEYWORDS - PYTHON_ONLY
    assert parsed("--primary", "Cd", "--structures", "auto").options == {"structures": "auto"}
    for word, meaning in (("yes", True), ("no", False), ("space", ["space"])):
        assert parsed("--primary", "Cd", "--anisotropy", word).options == {"anisotropy": meaning}
    for arguments, kernels in (
        (["se+matern12"], ["se", "matern12"]),
        (["Cd=se + matern12", "Ni=se"], {"Cd": ["se", "matern12"], "Ni": "se"}),
    ):
        words = [word for entry in arguments for word in ("--kernel", entry)]
        assert parsed("--primary", "Cd", *words).options == {"kernels": kernels}
    assert parsed("--primary", "Cd", "--support", "0:").options == {"support": (0.0, None)}
    for word, meaning in (("none", None), ("auto", "auto"), ("Cd=none", {"Cd": None})):
        assert parsed("--primary", "Cd", "--censored", word).options == {"censored": meaning}
    assert parsed("--primary", "Cd", "--max-hours", "2.5").options == {"max_hours": 2.5}


def test_the_command_line_comes_before_the_file(tmp_path):
    """What both say is as the command line says."""
    path = tmp_path / "options.toml"
    path.write_text("primary = 'Cd'\nsecondary = 'Ni'\nseed = 1\nrestarts = 4\nmax_hours = 'none'")
    result = parsed("--config", str(path), "--seed", "7")
    assert result == FitOptions("Cd", ["Ni"], {"seed": 7, "restarts": 4, "max_hours": None})


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
        parsed(*words)


def test_numbers():
    """One for all, some by name, or none."""
    assert numbers_by_name((), "--buffer", float) is None
    assert numbers_by_name(("2.5",), "--buffer", float) == 2.5
    with pytest.raises(click.UsageError, match="must be a whole number, found 'often'"):
        numbers_by_name(("x=often",), "--chunks", int)
    assert numbers_by_name(("space=2", "time=1"), "--buffer", float) == {"space": 2, "time": 1}


WHOLE = """
primary = "rain"
secondary = ["warmth"]
coords = ["lon", "lat", "time", {cycle = "time", period = "day"}]
method = {name = "transductive", weights = "report"}
solver = {name = "neighbours", neighbours = 12}
max_hours = "none"
seed = 3

[marginals]
rain = {law = "gamma", on = ["elevation"], degree = 2}
warmth = {by = "time.month"}

[kernels]
rain = "matern32"

[censored]
rain = ["", "most"]
warmth = "none"
"""


@pytest.fixture
def config(tmp_path):
    """Give tests a way to write a file."""

    def write(text: str):
        (tmp_path / "options.toml").write_text(text)
        return tmp_path / "options.toml"

    return write


def test_every_kind_of_option(config):
    """Names and tables become objects of Python."""
    result = read_config(config(WHOLE))
    assert result == {
        "primary": "rain",
        "secondary": ["warmth"],
        "coords": ["lon", "lat", "time", xcopula.cycle("time", "day")],
        "method": Transductive(weights="report"),
        "solver": Neighbours(neighbours=12),
        "max_hours": None,
        "seed": 3,
        "marginals": {
            "rain": xcopula.regress("gamma", on=["elevation"], degree=2),
            "warmth": xcopula.by("time.month"),
        },
        "kernels": {"rain": "matern32"},
        "censored": {"rain": (None, "most"), "warmth": None},
    }
    assert read_config(config("censored = 'none'")) == {"censored": None}


def test_one_for_all(config):
    """A law, a method and a solver may be names, and coordinates groups."""
    text = "marginals = 'gamma'\nmethod = {name = 'full'}\nsolver = 'auto'\n[coords]\nspace = ['x']"
    assert read_config(config(text)) == {
        "marginals": "gamma",
        "method": "full",
        "solver": "auto",
        "coords": {"space": ["x"]},
    }


def test_every_option_of_a_fit_is_known(config):
    """But those that only a program can use."""
    for name in KEYWORDS - PYTHON_ONLY:
        assert name in read_config(config(f"{name} = 1"))
    for name in PYTHON_ONLY:
        with pytest.raises(KeyError, match=f"no option '{name}'"):
            read_config(config(f"{name} = 1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "kernel = 'se'",
            r"options.toml has no option 'kernel'. Choose from: primary, secondary, ",
        ),
        ("[method]\nname = 'full'\nwights = 1", "method 'full' has no option 'wights'"),
        ("[method]\nweights = 1", "The method has no name"),
        ("solver = {name = 'auto', neighbours = 3}", "solver 'auto' has no option 'neighbours'"),
        ("[marginals]\na = {family = 'gamma'}", "A law has no option 'family'"),
        ("coords = [{name = 'x'}]", "A coordinate has no option 'name'"),
    ],
)
def test_unknown_keys(config, text, message):
    """They are refused by name."""
    with pytest.raises(KeyError, match=message):
        read_config(config(text))


def test_what_is_no_configuration(config, tmp_path):
    """A missing file, and one of another kind."""
    with pytest.raises(ValueError, match=r"options.toml is no TOML: "):
        read_config(config("primary: Cd"))
    with pytest.raises(FileNotFoundError, match=r"none.toml does not exist"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("'gamma'", "gamma"),
        ("'gamma ~ elevation + x'", xcopula.regress("gamma", on=["elevation", "x"])),
        ("'~elevation'", xcopula.regress("auto", on="elevation")),
        ("{law = 'gamma', by = 'time.month'}", xcopula.by("time.month", "gamma")),
        (
            "{law = 'normal', by = 'time.month', on = 'x'}",
            xcopula.regress(xcopula.by("time.month", "normal"), on="x"),
        ),
    ],
)
def test_marginals(config, text, law):
    """Covariates after a tilde, as summaries print them, and tables."""
    assert read_config(config(f"marginals.v = {text}")) == {"marginals": {"v": law}}


@pytest.mark.parametrize(
    ("coords", "names"),
    [
        (None, {"x", "y", "t"}),
        ("y", {"y"}),
        (["y", xcopula.cycle("t")], {"y", "t"}),
        ({"space": ["x", "u"], "time": "t"}, {"x", "u", "t"}),
    ],
)
def test_names_of_coordinates(tmp_path, coords, names):
    """A table has the coordinates of every form of ``coords``."""
    (tmp_path / "t.csv").write_text("x,y,u,t,v\n1,2,3,2024-05-01,5\n")
    options = {} if coords is None else {"coords": coords}
    assert set(FitOptions("v", [], options).read(tmp_path / "t.csv").coords) == names


def test_an_unknown_variable(run, files, quick, config, tmp_path):
    """One line that names it, and no traceback."""
    path = config("[marginals]\nmetall = 'gamma'")
    arguments = ("--primary", "metal", "--config", path, "-o", tmp_path / "m.nc")
    done = run("fit", files / "data.csv", *arguments)
    assert done.exit_code == 1
    assert done.output.endswith(
        "Error: `marginals` names ['metall'], but the variables of the model are ['metal'].\n"
    )
    assert not (tmp_path / "m.nc").exists()
