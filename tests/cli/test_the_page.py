"""What docs/cli.md shows is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def fences(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)


def commands() -> list[tuple[str, str]]:
    """Return the commands of the page, each with what it prints."""
    text = "".join(fences("console"))
    return re.findall(r"^\$ xcopula (.*)\n((?:(?!\$ ).*\n)*)", text, re.M)


def test_the_page_runs(run, tmp_path, monkeypatch):
    """The tables of the page are written, and its commands run from top to bottom."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    samples, new = [text for text in fences("text") if text.startswith("x,y,")]
    Path("samples.csv").write_text(samples)
    Path("new.csv").write_text(new)
    assert len(commands()) == 7
    for command, shown in commands():
        done = run(*shlex.split(command))
        assert done.exit_code == 0, done.output
        same = doctest.OutputChecker().check_output(shown, done.output, FLAGS)
        assert same, f"{command}\n{done.output}"


def test_the_configuration_of_the_page(tmp_path):
    """It is read as it stands."""
    from xcopula.cli.options import read_config

    (text,) = fences("toml")
    (tmp_path / "options.toml").write_text(text)
    assert read_config(tmp_path / "options.toml")["primary"] == "rain"
