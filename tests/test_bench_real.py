"""The benchmark of real data: it runs quickly, goes on where it ended, and its scores are right."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import ndtri

pytest.importorskip("sklearn")
matplotlib = pytest.importorskip("matplotlib")
FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Make the modules of the folder importable, as they are for a script there."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def bench(modules):
    return importlib.import_module("bench_real")


@pytest.fixture(scope="module")
def real(modules):
    return importlib.import_module("real_data")


@pytest.fixture(scope="module")
def report(modules):
    return importlib.import_module("real_report")


@pytest.fixture(scope="module")
def peers(modules):
    return importlib.import_module("peers")


@pytest.fixture(scope="module")
def done(bench, tmp_path_factory):
    """Return the file of a quick run, and its page."""
    folder = tmp_path_factory.mktemp("real")
    out, page = folder / "rows.csv", folder / "real.md"
    assert bench.main(["--quick", "--out", str(out), "--page", str(page)]) == 0
    return out, page


def test_rows(bench, done):
    """A row for each task and setting, with scores that can be true."""
    rows = bench.read_rows(done[0])
    assert tuple(rows.columns) == bench.COLUMNS
    assert len(rows) == 9
    assert (rows["message"] == "").all()
    assert (rows["crps"] > 0.0).all()
    assert rows["coverage"].between(0.3, 1.0).all()
    assert rows.loc[rows["group"] == "zeros", "log_score"].isna().all()
    ours = rows[rows["setting"] == "default"]
    assert (ours["crps"] < ours["mae"]).all()  # a distribution does better than its median


def test_it_goes_on(bench, done, capsys):
    """A second run adds nothing, and says the same; with another version it runs anew."""
    before = done[0].read_text()
    capsys.readouterr()
    bench.main(["--quick", "--out", str(done[0])])
    assert done[0].read_text() == before
    assert "jura: Cu, split 1" not in capsys.readouterr().out


def test_page(bench, done, tmp_path):
    """The page has the tables between marks, its text stays, and the picture is beside it."""
    page = tmp_path / "real.md"
    text = done[1].read_text()
    assert "| plugin | uncertainty | 2 |" in text
    assert done[1].with_suffix(".png").stat().st_size > 10_000
    page.write_text(text.replace("# Judged by real data", "# Another title"))
    for _ in range(2):
        bench.main(["--quick", "--report", "--out", str(done[0]), "--page", str(page)])
    assert page.read_text() == text.replace("# Judged by real data", "# Another title")
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="must have the lines"):
        bench.main(["--quick", "--report", "--out", str(done[0]), "--page", str(page)])


def test_unknown_options_are_rows(bench, real, monkeypatch):
    """What a version does not know is a message, not the end of the run."""
    work = real.cut(Path("nowhere"), real.quick_tasks()[0])
    monkeypatch.setitem(bench.SETTINGS, "odd", bench.setting("", uncertainty="never heard of"))
    row, scores = bench.attempt("odd", work)
    assert scores is None
    assert "never heard of" in row["message"]
    monkeypatch.setitem(bench.SETTINGS, "odd", bench.setting("", nonsense=1))
    assert "nonsense" in bench.attempt("odd", work)[0]["message"]


def test_missing_data_are_skipped(bench, tmp_path, capsys):
    """A folder that is absent is reported with a reason, and what is shipped runs on."""
    out = tmp_path / "rows.csv"
    arguments = ["--only", "camg", "--data", str(tmp_path / "none"), "--out", str(out)]
    assert bench.main(arguments) == 0
    said = capsys.readouterr().out
    assert "skipped camg: camg.csv.gz is not in the folder" in said
    assert "| camg |" in said
    assert not out.exists()
    with pytest.raises(SystemExit, match="must name groups or sets"):
        bench.main(["--only", "nothing", "--out", str(out)])


def test_soils_that_are_not_installed(real, monkeypatch):
    """LimeSoDa is a package of its own."""
    monkeypatch.setitem(sys.modules, "LimeSoDa", None)
    with pytest.raises(real.Absent, match="pip install LimeSoDa"):
        real.cut(Path("nowhere"), real.soil_tasks()[0])


def test_elevation_is_an_input(real):
    """Where stations have it, of the package and of other libraries alike."""
    work = real.cut(Path("nowhere"), real.quick_tasks()[-1])
    assert work.options["coords"]["elevation"] == "elevation"
    assert {"lon", "lat", "elevation"} == set(work.targets.coords)


def test_hidden_parts_of_panels(real):
    """Runs and holes hide about what they should; stations are hidden as a whole."""
    rng = np.random.default_rng(3)
    hidden = real.runs(rng, (4, 365), 30, 0.25)
    assert ((hidden.mean(axis=1) >= 0.25) & (hidden.mean(axis=1) < 0.35)).all()
    work = real.cut(Path("nowhere"), real.Task("large", "colorado panel", "ppt", part="stations"))
    known = work.train["ppt"].notnull().any("time")
    away = {tuple(x) for x in work.hidden[["lon", "lat"]].to_numpy()}
    seen = work.train["ppt"].where(known, drop=True)
    assert not away & set(zip(seen["lon"].values, seen["lat"].values, strict=True))
    assert 60 <= len(away) <= 80
    grid = real.cut(Path("nowhere"), real.Task("large", "colorado grid", "elevation", part="holes"))
    assert 0.25 < grid.truth.size / grid.train["elevation"].size < 0.45


def test_other_peers_that_are_missing(bench, real, peers, monkeypatch):
    """A library that is not installed is a message."""
    work = real.cut(Path("nowhere"), real.quick_tasks()[0])
    monkeypatch.setitem(sys.modules, "pykrige", None)
    monkeypatch.setitem(sys.modules, "pykrige.ok", None)
    assert "pip install pykrige" in bench.attempt("PyKrige", work)[0]["message"]


def test_tasks(real):
    """The small tasks are about eighty, half of them alone, with names of their own."""
    tasks = real.small_tasks()
    kinds = {(t.set, t.name): bool(t.secondaries) for t in tasks}
    assert len(kinds) == 80
    assert sum(kinds.values()) == 41
    keys = [(t.set, t.name, t.split) for group in real.GROUPS.values() for t in group()]
    assert len(keys) == len(set(keys))


def test_cut(real):
    """A third is hidden, the same alone and with secondaries; these stay known."""
    alone, beside = (
        real.cut(Path("nowhere"), real.Task("small", "jura", "Cd", s)) for s in ((), ("Ni",))
    )
    assert beside.train["Cd"].isnull().sum() == 119 == beside.truth.size
    assert beside.train["Ni"].notnull().all()
    xr.testing.assert_identical(alone.train["Cd"], beside.train["Cd"])
    assert len(alone.known) == 240
    published = real.cut(Path("nowhere"), real.Task("small", "jura", "Cd", (), 0))
    assert published.truth.size == 100


def test_quantile_crps(peers):
    """The CRPS by quantiles is that of the normal in closed form."""
    rng = np.random.default_rng(0)
    mean, std, truth = rng.normal(size=300), np.exp(rng.normal(size=300)), rng.normal(size=300)
    quantiles = mean + std * ndtri(peers.LEVELS)[:, None]
    close = peers.crps_of_normal(mean, std, truth)
    np.testing.assert_allclose(peers.crps_of_quantiles(quantiles, truth), close, rtol=0.02)
    assert peers.crps_of_quantiles(quantiles, truth).mean() == pytest.approx(close.mean(), rel=2e-3)


def test_transforms(peers):
    """Normal scores go there and back, with tails beyond the data, never below zero."""
    values = np.exp(np.random.default_rng(1).normal(size=200))
    scores = peers.normal_scores(values)
    np.testing.assert_allclose(scores.back(scores.forward(values)), values, rtol=1e-9)
    assert scores.back(np.array([4.0]))[0] > values.max()
    assert scores.back(np.array([-9.0]))[0] == 0.0
    assert abs(scores.forward(values).std() - 1.0) < 0.02
    logs = peers.logs(values)
    step = 1e-6
    slope = (logs.forward(2.0 + step) - logs.forward(2.0 - step)) / (2.0 * step)
    assert logs.log_slope(2.0) == pytest.approx(np.log(slope))


def test_kriging(peers):
    """At a known place kriging gives the value, far away the mean with the whole variance."""
    at = np.random.default_rng(2).random((20, 2))
    z = np.sin(5.0 * at[:, 0])
    mean, std = peers.krige(np.log([1e-9, 1.0, 0.3]), at, z, np.vstack([at[:1], [[50.0, 50.0]]]))
    assert mean[0] == pytest.approx(z[0], abs=1e-6)
    assert std[0] < 1e-3
    assert std[1] >= 1.0


def frame(rows: list[tuple]) -> pd.DataFrame:
    names = ["set", "task", "split", "setting", "crps"]
    table = pd.DataFrame(rows, columns=names)
    return table.assign(
        version="v", group="small", n=9, log_score=0.0, coverage=0.9, cpu_seconds=1.0, message=""
    )


ROWS = [
    *(("s", "a", 1, "default", 1.0), ("s", "a", 1, "other", 1.1)),
    *(("s", "a", 2, "default", 1.0), ("s", "a", 2, "other", 1.3)),
    *(("s", "b", 1, "default", 2.0), ("s", "b", 1, "other", 1.8)),
]


def test_paired_difference(report):
    """Splits are averaged first; the mean and its error are those of tasks, by hand."""
    changes = report.summary(report.paired(frame(ROWS))).set_index("setting")
    a, b = 0.5 * (np.log(1.1) + np.log(1.3)), np.log(0.9)
    mean = 0.5 * (a + b)
    assert changes["change"]["other"] == pytest.approx(100.0 * (np.exp(mean) - 1.0))
    error = 100.0 * np.exp(mean) * abs(a - b) / 2.0
    assert changes["error"]["other"] == pytest.approx(error)
    assert changes["worst"]["other"] == pytest.approx(100.0 * np.expm1(a))
    assert changes["change"]["default"] == 0.0


def test_best_peer(report):
    """The check counts tasks that are worse than the best peer, and those that surely are."""
    rows = frame([(*r[:3], "GPR" if r[3] == "other" else r[3], r[4]) for r in ROWS])
    rows.loc[rows["setting"] == "GPR", "version"] = "p"
    wide = np.linspace(-1.0, 1.0, 9)
    values = {
        ("v", "s", "b", "1", "default"): 2.0 + 0.1 * wide,
        ("p", "s", "b", "1", "GPR"): 1.8 + 0.1 * wide,
    }
    about = report.Report(rows, values, "v", {"default": ""}, {"GPR": "p"})
    table = report.against_peers(about, report.current(about)).set_index("task")
    assert table["change"]["b"] == pytest.approx(np.log(2.0 / 1.8))
    assert table["error"]["b"] == pytest.approx(0.0, abs=1e-9)
    text = report.check(table.reset_index())
    assert "worse than the best peer in 1, and in 1 of these" in text
    assert "b (+11 %, GPR)" in text


def test_other_versions_are_shown(report):
    """Rows of another version are not mixed with those of this one, but its default is shown."""
    new = frame(ROWS)
    old = frame([r for r in ROWS if r[3] == "default"]).assign(version="old")
    about = report.Report(pd.concat([new, old]), {}, "v", {"default": "", "other": "x"}, {})
    rows = report.current(about)
    assert (rows["setting"] == "default of old").sum() == 3
    assert len(rows) == 9
