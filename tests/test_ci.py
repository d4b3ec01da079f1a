"""The scripts that decide whether a change passes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "covered.py"

if not SCRIPT.exists():  # a copy of package and tests alone
    pytest.skip("there are no scripts", allow_module_level=True)


@pytest.mark.parametrize(
    ("lines", "branches", "code"), [(950, 90, 0), (949, 90, 1), (950, 89, 1), (1000, 100, 0)]
)
def test_lines_and_branches_have_a_limit_each(tmp_path, capsys, lines, branches, code):
    """One line is printed; a share below its limit is an error."""
    spec = importlib.util.spec_from_file_location("covered", SCRIPT)
    covered = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(covered)
    totals = {
        "covered_lines": lines,
        "num_statements": 1000,
        "covered_branches": branches,
        "num_branches": 100,
    }
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps({"totals": totals}))
    assert covered.main(str(path)) == code
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert f"{lines / 10:.1f} % of 1000 lines (at least 95 %)" in printed
