"""The benchmarks run in their quick mode, and print what docs quote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "stage", "expected"),
    [
        ("bench_promises.py", [], "any chunks of a grid"),
        ("bench_units.py", [], "a secondary alone rescaled"),
        ("bench_calibration.py", [], "laws and kernels chosen"),
        ("bench_million.py", ["reading"], "stations x days"),
    ],
    ids=["promises", "units", "calibration", "million"],
)
def test_quick(script, stage, expected):
    """It ends well, and its table is there."""
    command = [sys.executable, str(FOLDER / script), "--quick", *stage]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
