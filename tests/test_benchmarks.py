"""The benchmarks run in their quick mode, and print what docs quote."""

from __future__ import annotations

import csv
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
        ("bench_calibration.py", [], "defaults"),
        ("bench_precision.py", [], "| z of correlation |"),
        ("bench_million.py", ["reading"], "stations x days"),
        ("bench_neighbours.py", ["effects"], "nats lost"),
        ("bench_scale.py", ["cells"], "variables: 3"),
        ("bench_intervals.py", [], "| neighbours | 200 | 30 % below a limit |"),
        ("bench_limits.py", [], "| half the limit | 1 |"),
        ("bench_draws.py", ["moments"], "| matern12 | lmc | 1 |"),
        ("bench_draws.py", ["peers"], "| 100 | 1,600 |"),
        ("bench_draws.py", ["stream"], "two workers against one"),
    ],
    ids=[
        *("promises", "units", "calibration", "precision"),
        *("million", "effects", "cells", "intervals", "limits"),
        *("draws", "draws of peers", "draws on workers"),
    ],
)
def test_quick(script, stage, expected):
    """It ends well, and its table is there."""
    command = [sys.executable, str(FOLDER / script), "--quick", *stage]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_memory_of_grids_is_measured():
    """Peaks of two grids, of which the larger has four times the cells, are about the same."""
    command = [sys.executable, str(FOLDER / "bench_neighbours.py"), "--quick", "grids"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    *_, small, large = (line.split() for line in done.stdout.splitlines())
    assert (int(small[0]), int(large[0])) == (120**2, 240**2)
    assert float(large[4]) < 1.1 * float(small[4])


def test_growth(tmp_path):
    """It writes a figure and two tables, with a row for each method and size."""
    command = [sys.executable, str(FOLDER / "bench_neighbours.py"), "--quick", "growth"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    with (tmp_path / "growth.csv").open() as file:
        rows = list(csv.DictReader(file))
    own = {(row["method"], row["values"]) for row in rows if row["method"] != "GPBoost"}
    assert own == {(m, n) for m in ("neighbours", "exact", "FITC") for n in ("400", "800")}
    assert all(float(row["fit"]) > float(row["likelihood"]) > 0.0 for row in rows)
    table = (tmp_path / "growth.md").read_text()
    assert table.startswith("| values | neighbours | exact | FITC |")
    assert "grows with the power" in table
