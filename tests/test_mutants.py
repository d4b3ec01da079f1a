"""The list of mutants: every one can still be made, and the tests that should kill it exist.

Whether they do, ``python benchmarks/mutants.py`` says, which takes minutes; one is run here.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "mutants.py"

if not SCRIPT.exists():  # a copy of package and tests alone, as the script itself makes
    pytest.skip("there are no benchmarks", allow_module_level=True)

_spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
mutants = importlib.util.module_from_spec(_spec)
sys.modules["mutants"] = mutants
_spec.loader.exec_module(mutants)

MUTANTS = mutants.MUTANTS


def test_there_are_enough_of_them():
    """At least sixty, each with a name of its own, all over the package."""
    assert len(MUTANTS) >= 60
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
    assert {m.file.split("/")[0] for m in MUTANTS} >= {
        *("process", "solvers", "methods", "kernels", "jit", "marginals", "labels"),
        *("fitting", "prediction", "model", "storage", "state.py"),
    }
    assert set(mutants.QUICK) <= {m.name for m in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_it_can_be_made(mutant):
    """What it replaces stands once in its file, and what it leaves is another program."""
    text = (ROOT / "xcopula" / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    changed = text.replace(mutant.old, mutant.new)
    assert changed != text
    compile(changed, mutant.file, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_its_tests_exist(mutant):
    """Files, classes and functions are where the mutant says."""
    assert mutant.nodes
    for node in mutant.nodes:
        file, *names = node.split("::")
        text = (ROOT / file).read_text()
        for name in names:
            assert f"def {name}(" in text or f"class {name}:" in text


def test_one_is_killed(capsys):
    """A year of another length is noticed, by the copy and not by this package."""
    assert mutants.main(["--only", "times-julian"]) == 0
    printed = capsys.readouterr().out
    assert "killed 1 of 1" in printed
    assert str(ROOT) not in printed


def test_an_unknown_name(capsys):
    """The script says so, and attacks nothing."""
    with pytest.raises(SystemExit):
        mutants.main(["--only", "nothing"])
    assert "unknown mutants ['nothing']" in capsys.readouterr().err


def test_a_list(capsys):
    """Listing attacks nothing."""
    assert mutants.main(["--list", "--quick"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
