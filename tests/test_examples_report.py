"""The scripts that reproduce the report run, resume, and agree with what the docs show."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "report"
PNG = b"\x89PNG\r\n\x1a\n"
HEADING = "No,Cement,Slag,Fly ash,Water,SP,Coarse Aggr.,Fine Aggr.,SLUMP,FLOW,Compressive Strength"


@pytest.fixture(scope="module")
def load():
    """Import scripts by name; their folder is on the path, also of processes they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module


@pytest.fixture
def slump_file(tmp_path) -> Path:
    """A table of 40 mixes like the real one, with slumps that end at zero."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(
        [140, 0, 0, 160, 4, 700, 640], [370, 190, 260, 240, 19, 1050, 900], (40, 7)
    )
    level = 0.2 * (inputs[:, 3] - 180.0) + rng.normal(0.0, 2.0, 40)
    slump = np.maximum(level + 8.0, 0.0)
    flow = np.maximum(2.0 * level + 35.0 + rng.normal(0.0, 3.0, 40), 20.0)
    strength = 0.1 * inputs[:, 0] + rng.normal(10.0, 2.0, 40)
    table = np.column_stack([np.arange(1, 41), inputs, slump, flow, strength])
    path = tmp_path / "slump_test.data"
    np.savetxt(path, table, fmt="%.3f", delimiter=",", header=HEADING, comments="")
    return path


def run_quickly(load, name: str, output: Path, *more: str):
    script = load(name)
    script.main(["--quick", "--output", str(output), *more])
    return script


def is_picture(path: Path) -> bool:
    return path.read_bytes()[:8] == PNG and path.stat().st_size < 300_000


def test_figure1_shows_that_a_second_task_helps(load, tmp_path, capsys):
    run_quickly(load, "figure1", tmp_path)
    assert is_picture(tmp_path / "figure1.png")
    trials = pd.read_csv(tmp_path / "figure1_trials.csv").pivot(index="seed", columns="model")
    assert (trials["rmse"]["multi"] < trials["rmse"]["single"]).all()
    curves = pd.read_csv(tmp_path / "figure1.csv")
    for model in ("single", "multi"):
        assert (curves[f"{model}_lower"] < curves[f"{model}_median"]).all()
        assert (curves[f"{model}_median"] < curves[f"{model}_upper"]).all()
    assert "multi - single -" in capsys.readouterr().out


def test_figure2_has_a_prediction_and_its_costs(load, tmp_path):
    run_quickly(load, "figure2", tmp_path)
    assert is_picture(tmp_path / "figure2.png")
    curves = pd.read_csv(tmp_path / "figure2a.csv")
    assert np.sqrt(np.mean((curves["median"] - curves["truth"]) ** 2)) < 0.2
    costs = pd.read_csv(tmp_path / "figure2b.csv")
    assert (costs["milliseconds"] > 0).all()
    assert set(costs["model"]) == {"anchors", "single", "full"}


def test_table1_scores_every_system_and_resumes(load, tmp_path, capsys):
    script = run_quickly(load, "table1", tmp_path)
    path = tmp_path / "table1.csv"
    table = pd.read_csv(path, keep_default_na=False)
    assert len(table) == 2 * len(script.SYSTEMS)
    assert not table.duplicated(list(script.KEYS)).any()
    assert (table["se"] > 0).all()
    assert table["coverage"].between(0, 100).all()
    assert is_picture(tmp_path / "table1.png")
    assert "| MtGCP | select |" in (tmp_path / "table1.md").read_text()

    whole = path.read_text()
    cut_off(path, rows=2)
    capsys.readouterr()
    run_quickly(load, "table1", tmp_path)
    assert "2 to run" in capsys.readouterr().out
    again = pd.read_csv(path, keep_default_na=False)
    assert again["mae"].tolist() == table["mae"].tolist()
    assert len(path.read_text().splitlines()) == len(whole.splitlines())


def test_table1_leaves_the_report_choices_alone(load):
    script = load("table1")
    for system in script.SYSTEMS:
        options = script.fit_options(system, "Cu", quick=False)
        if system.choices == "report":
            assert options["marginals"]["Cu"] == "gev"
            assert options["kernels"]["Cu"] == "matern32"
        elif system.choices == "normal":
            assert options["marginals"] == "normal"
        elif system.choices == "select":
            assert options["marginals"] == options["kernels"] == "select"
        else:
            assert "marginals" not in options


def test_table2_times_both_methods_and_compares_searches(load, tmp_path, capsys):
    run_quickly(load, "table2", tmp_path)
    table = pd.read_csv(tmp_path / "table2.csv")
    assert {"MtGCP", "TransGCP", "DTC-200"} <= set(table["system"])
    assert (table[["fit_cpu_seconds", "evaluation_cpu_seconds"]] > 0.0).all(axis=None)
    trace = pd.read_csv(tmp_path / "optimizers.csv")
    ends = trace.groupby(["search", "start"])["penalised"].last()
    assert len(ends) == 9
    assert np.ptp(ends["the library's"]) < 0.5
    assert ends["the library's"].max() > ends.max() - 0.5
    for name in ("table2", "optimizers"):
        assert is_picture(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.md").exists()

    capsys.readouterr()
    run_quickly(load, "table2", tmp_path)
    out = capsys.readouterr().out
    assert "0 to run" in out
    assert "start 0: " not in out


def test_table3_resumes_without_duplicate_rows(load, tmp_path, slump_file, capsys):
    script = run_quickly(load, "table3", tmp_path, "--data", str(slump_file))
    path = tmp_path / "table3.csv"
    table = pd.read_csv(path, keep_default_na=False)
    assert len(table) == 2 * len(script.SYSTEMS)
    assert is_picture(tmp_path / "table3.png")
    assert "standard deviation over 2 splits" in (tmp_path / "table3.md").read_text()

    cut_off(path, rows=3)
    capsys.readouterr()
    run_quickly(load, "table3", tmp_path, "--data", str(slump_file))
    assert "1 of 2 splits are in table3.csv" in capsys.readouterr().out
    again = pd.read_csv(path, keep_default_na=False)
    assert not again.duplicated(list(script.KEYS)).any()
    assert again["mae"].tolist() == table["mae"].tolist()


def test_table3_splits_and_hides_as_it_says(load, slump_file):
    script = load("table3")
    data = script.load(slump_file, quick=False)
    known = script.divide(data, 5)
    expected = np.random.default_rng(5).permutation(40)[:32]
    np.testing.assert_array_equal(np.flatnonzero(known), np.sort(expected))
    only = script.hide(data, known, "training")
    assert {name: int(only[name].count()) for name in only} == dict.fromkeys(only, 32)
    both = script.hide(data, known, "all")
    assert [int(both[name].count()) for name in ("slump", "flow", "strength")] == [32, 40, 40]


def test_table3_without_the_file_says_where_to_get_it(load, tmp_path, monkeypatch):
    monkeypatch.delenv("XCOPULA_SLUMP", raising=False)
    with pytest.raises(FileNotFoundError, match=r"UCI Machine Learning Repository.*XCOPULA_SLUMP"):
        load("table3").main(["--quick", "--output", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_misprints_are_as_the_docs_say(load, tmp_path):
    script = run_quickly(load, "misprints", tmp_path)
    lines = (tmp_path / "misprints.txt").read_text().splitlines()
    assert len(lines) == len(script.CHECKS)
    shown = (ROOT / "docs" / "report" / "misprints.txt").read_text()
    for name in script.CHECKS:
        assert name in shown


def test_the_page_shows_the_tables_as_they_were_made():
    """The page includes every table of its folder."""
    page, folder = (ROOT / "docs" / "report.md").read_text(), ROOT / "docs" / "report"
    shown = [*folder.glob("*.md"), *folder.glob("*.txt")]
    assert shown
    for path in shown:
        assert f"include}} report/{path.name}" in page


def cut_off(path: Path, rows: int) -> None:
    """Remove the last rows of a table and leave a part of one, as an interruption might."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-rows]) + lines[-rows][:20])


def test_slump_with_limits_stays_above_zero(load, tmp_path, slump_file):
    load("slump_limits").main(["--quick", "--data", str(slump_file), "--output", str(tmp_path)])
    lines = (tmp_path / "slump_limits.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|") for line in lines if "flexible, zeros" in line]
    assert len(cells) == 2
    assert all(row[6].strip().startswith("0.0") for row in cells)
