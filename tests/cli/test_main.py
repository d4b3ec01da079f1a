"""All commands together: help, a path from a table to a map, and errors in one line."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import warnings

import click
import pytest
from click.testing import CliRunner

import xcopula
from xcopula.cli import main
from xcopula.cli.main import Commands, message_of


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


def group(body):
    """Return a group with one command that runs ``body``."""

    @click.group(cls=Commands)
    @click.option("--traceback", is_flag=True)
    def commands(traceback):
        pass

    commands.add_command(click.Command("do", callback=body))
    return commands


def noted(error: BaseException, note: str) -> BaseException:
    error.add_note(note)
    return error


def throw(error):
    def body():
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("`q` must be\n  positive."), "`q` must be positive."),
        (KeyError("No variable 'Cq'."), "No variable 'Cq'."),
        (
            FileExistsError("a.nc exists. Choose another, or pass overwrite."),
            "or pass --overwrite.",
        ),
        (OSError(errno.ENOSPC, "The disk is full"), "The disk is full."),
        (OSError(errno.EACCES, "Permission denied", "a.nc"), "a.nc: Permission denied."),
        (MemoryError(), "There is not enough memory."),
        (noted(OSError("Lost."), "Go on with resume."), "Lost. Go on with --resume."),
        (ValueError(), "ValueError."),
    ],
)
def test_one_line_and_exit_code_1(error, message):
    """What the library raises becomes one line, with options as the command line calls them."""
    assert message_of(error).endswith(message)
    done = CliRunner().invoke(group(throw(error)), ["do"])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert done.output.endswith(f"{message}\n")
    assert done.output.count("\n") == 1


def test_a_traceback_on_request():
    """With --traceback the error itself comes through."""
    error = ValueError("bad")
    done = CliRunner().invoke(group(throw(error)), ["--traceback", "do"])
    assert done.exception is error


def test_a_mistake_in_the_code_is_not_hidden():
    """An unexpected error has a traceback."""
    error = ZeroDivisionError("no")
    assert CliRunner().invoke(group(throw(error)), ["do"]).exception is error


def test_wrong_usage_keeps_its_code():
    """Click's own errors stay what they are."""
    done = CliRunner().invoke(group(throw(click.UsageError("Not so."))), ["do"])
    assert done.exit_code == 2
    assert "Not so." in done.output


def test_control_c():
    """An interruption has the code that shells expect, and says what is kept."""
    error = noted(KeyboardInterrupt(), "3 blocks of a.zarr are written. Go on with resume.")
    done = CliRunner().invoke(group(throw(error)), ["do"])
    assert done.exit_code == 130
    assert done.output == ("Interrupted. 3 blocks of a.zarr are written. Go on with --resume.\n")


def test_a_warning_is_one_line():
    """Warnings show no code, and filters are as they were afterwards."""
    before = warnings.showwarning

    def body():
        warnings.warn("Take\ncare.", UserWarning, stacklevel=1)

    done = CliRunner().invoke(group(body), ["do"])
    assert done.output == "Warning: Take care.\n"
    assert warnings.showwarning is before
