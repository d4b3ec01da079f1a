"""Options of a fit in a file."""

from __future__ import annotations

import inspect

import pytest

import xcopula
from xcopula.cli.config import named_coordinates, parse_hours, parse_law, read_config
from xcopula.methods import Transductive
from xcopula.solvers import Neighbours

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
    """Names and tables become the objects that Python would be given."""
    found = read_config(config(WHOLE))
    assert found == {
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
    parameters = inspect.signature(xcopula.fit).parameters.values()
    own = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    for name in own - {"compute", "callback", "progress"}:
        assert name in read_config(config(f"{name} = 1"))
    for name in own & {"compute", "callback", "progress"}:
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


def test_laws_in_a_word():
    """Covariates after a tilde, as summaries print them."""
    assert parse_law("gamma") == "gamma"
    assert parse_law("gamma ~ elevation + x") == xcopula.regress("gamma", on=["elevation", "x"])
    assert parse_law("~elevation") == xcopula.regress("auto", on="elevation")
    assert parse_law({"law": "gamma", "by": "time.month"}) == xcopula.by("time.month", "gamma")
    both = parse_law({"law": "normal", "by": "time.month", "on": "x"})
    assert both == xcopula.regress(xcopula.by("time.month", "normal"), on="x")


def test_names_of_coordinates():
    """In every form of ``coords``, each once."""
    assert named_coordinates(None) == []
    assert named_coordinates("x") == ["x"]
    assert named_coordinates(["t", xcopula.cycle("t")]) == ["t"]
    assert named_coordinates({"space": ["x", "y"], "time": "t"}) == ["x", "y", "t"]


def test_hours():
    """TOML has no word for none."""
    assert parse_hours("none") is None
    assert parse_hours(2.5) == 2.5


def test_an_unknown_variable(run, files, quick, config, tmp_path):
    """One line that names it, and no traceback."""
    path = config("[marginals]\nmetall = 'gamma'")
    given = ("--primary", "metal", "--config", path, "-o", tmp_path / "m.nc")
    done = run("fit", files / "data.csv", *given)
    assert done.exit_code == 1
    assert done.output.endswith(
        "Error: `marginals` names ['metall'], but the variables of the model are ['metal'].\n"
    )
    assert not (tmp_path / "m.nc").exists()
