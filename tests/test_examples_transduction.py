"""The scripts on transduction run and leave the tables and pictures that the docs show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[1] / "examples" / "transduction"
PNG = b"\x89PNG\r\n\x1a\n"


def load(name: str, monkeypatch):
    """Import a script by its path; dataclasses need its module to be registered."""
    spec = importlib.util.spec_from_file_location(f"transduction_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def run_quickly(name: str, monkeypatch, tmp_path: Path):
    module = load(name, monkeypatch)
    module.main(["--quick", "--output", str(tmp_path)])
    return module, pd.read_csv(tmp_path / f"{name}.csv")


def is_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == PNG and path.stat().st_size < 200_000


def test_resplits_scores_every_system_and_resumes(monkeypatch, tmp_path, capsys):
    module, table = run_quickly("resplits", monkeypatch, tmp_path)
    assert set(table["system"]) == set(module.SYSTEMS)
    assert len(table) == 2 * 2 * len(module.SYSTEMS)
    assert (table["crps"] < table["mae"]).all()
    assert table["coverage"].between(0, 100).all()
    assert "Paired differences from *full*" in (tmp_path / "resplits.md").read_text()

    before = (tmp_path / "resplits.csv").read_text()
    module.main(["--quick", "--output", str(tmp_path)])
    assert " 0 fits to run" in capsys.readouterr().out
    assert (tmp_path / "resplits.csv").read_text() == before


def test_resplits_are_the_stated_permutations(monkeypatch):
    module = load("resplits", monkeypatch)
    samples = module.xcopula.datasets.jura()
    known = module.draw_training(samples, "3")
    expected = np.random.default_rng(3).permutation(359)[:259]
    np.testing.assert_array_equal(np.flatnonzero(known), np.sort(expected))
    assert module.draw_training(samples, "published").sum() == 259


def test_growth_times_both_methods_and_resumes(monkeypatch, tmp_path, capsys):
    module, table = run_quickly("growth", monkeypatch, tmp_path)
    assert is_picture(tmp_path / "growth.png")
    assert set(table["method"]) == {"full", "transductive"}
    assert set(table["sites"]) == set(module.PLACES)
    assert (table["evaluation_seconds"] > 0).all()

    capsys.readouterr()
    module.main(["--quick", "--output", str(tmp_path)])
    assert "sites: full fit" not in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "growth.csv")) == len(table)


def test_growth_leaves_out_full_fits_that_take_too_long(monkeypatch):
    module = load("growth", monkeypatch)
    table = pd.DataFrame({"method": "full", "tasks": [2, 4], "fit_seconds": [1.0, 8.0]})
    assert module.expected_seconds(table, 8) == pytest.approx(64.0)
    table.loc[1, "fit_seconds"] = np.nan
    assert module.expected_seconds(table, 8) == np.inf


def test_query_points_vary_the_anchors_only(monkeypatch, tmp_path):
    module, table = run_quickly("query_points", monkeypatch, tmp_path)
    assert is_picture(tmp_path / "query_points.png")
    own = table[table["model"] == "anchors"]
    assert tuple(own["anchors"]) == module.ANCHORS
    assert own["change"].iloc[0] == 0.0
    single = table.loc[table["model"] == "single", "rmse"].item()
    assert (own["rmse"] < single).all()


def test_redundancy_breaks_the_report_but_not_the_remedies(monkeypatch, tmp_path):
    _, table = run_quickly("redundancy", monkeypatch, tmp_path)
    assert is_picture(tmp_path / "redundancy.png")
    rows = table.set_index(["scene", "tasks", "rule"])
    copies = rows.loc["near-copies"].loc[3]
    assert copies.loc["report", "coverage"] < copies.loc["full", "coverage"] - 5
    assert copies.loc["report", "claimed_rmse"] < copies.loc["calibrated", "claimed_rmse"]
    own = rows.loc["errors of their own"].loc[3]
    assert own.loc["report", "rmse"] == pytest.approx(own.loc["full", "rmse"], abs=1e-4)
