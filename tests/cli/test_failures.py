"""Errors in one line, with their exit codes."""

from __future__ import annotations

import errno
import warnings

import click
import pytest
from click.testing import CliRunner

from xcopula.cli.failures import Commands, message_of


def group(body):
    """Return a group with one command that runs ``body``."""

    @click.group(cls=Commands)
    @click.option("--traceback", is_flag=True)
    def main(traceback):
        pass

    main.add_command(click.Command("do", callback=body))
    return main


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
    """What nobody expects shows where it came up."""
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
