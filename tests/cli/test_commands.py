"""All commands together: help, and a newcomer's path."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import xarray as xr
from click.testing import CliRunner

import xcopula
from xcopula.cli import main


def test_version_and_help(run):
    """The version is the package's; help names the commands."""
    assert xcopula.__version__ in run("--version").output
    for flag in ("-h", "--help"):
        for name in main.commands:
            assert f"  {name} " in run(flag).output


@pytest.mark.parametrize("name", sorted(main.commands))
def test_help_teaches_by_example(run, name):
    """The help of each command has an example that its own options parse."""
    text = run(name, "--help").output
    examples = re.findall(rf"^ +xcopula ({name}(?:.*\\\n)*.*)$", text, re.M)
    assert examples
    for example in examples:
        _, *words = example.replace("\\\n", " ").split()
        context = main.commands[name].make_context(name, words)
        assert context.params


def test_help_is_quick():
    """Help imports no more than the package itself, and click."""
    code = (
        "import sys, xcopula; before = set(sys.modules); import xcopula.cli;"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before if m[0] != '_'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"dask", "distributed", "matplotlib", "numba", "scipy"} & set(done.stdout.split())
    assert "click" in done.stdout


def test_a_newcomers_path(files, tmp_path, monkeypatch, run, quick):
    """An own table, a fit, a prediction and a picture, without a line of Python."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.csv").write_text((files / "data.csv").read_text())
    for command in (
        ("info", "samples.csv"),
        ("fit", "samples.csv", *quick, "-o", "model.nc"),
        ("predict", "model.nc", "--axis", "x=0:4:0.5", "--axis", "y=0:3:0.5", "-o", "out.nc"),
        ("plot", "out.nc", "--sites", "samples.csv", "-o", "map.png"),
    ):
        done = run(*command)
        assert done.exit_code == 0, done.output
    with xr.open_dataset("out.nc") as out:
        assert dict(out["metal"].sizes) == {"quantile": 3, "y": 7, "x": 9} or dict(
            out["metal"].sizes
        ) == {"quantile": 3, "x": 9, "y": 7}
        assert bool((out["metal"].diff("quantile") > 0.0).all())
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_command_is_wrong_usage():
    """Wrong usage has exit code 2."""
    assert CliRunner().invoke(main, ["guess"]).exit_code == 2
