"""The Colorado scripts run and leave the tables and the picture that the docs show."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[1] / "examples" / "colorado"
DOCS = Path(__file__).parents[1] / "docs" / "colorado"


@pytest.fixture
def load(monkeypatch):
    """Import a script by its path; the scripts import what they share by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("MPLBACKEND", "agg")
    # Another folder's scripts share under the same name.
    monkeypatch.delitem(sys.modules, "common", raising=False)

    def load_script(name: str):
        spec = importlib.util.spec_from_file_location(f"colorado_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    yield load_script
    sys.modules.pop("common", None)


def test_blocks_scores_every_system(load, tmp_path):
    """The quick comparison has a row for each system of each split, and writes both tables."""
    module = load("blocks")
    module.main(["--quick", "--output", str(tmp_path)])
    table = pd.read_csv(tmp_path / "blocks.csv")
    assert len(table) == 2 * len(module.SYSTEMS)
    assert (table["crps"] < table["mae"]).all()
    text = (tmp_path / "blocks.md").read_text(encoding="utf-8")
    assert "Paired differences from *several variables, with elevation*" in text


def test_zeros_are_scored_and_mapped(load, tmp_path, capsys):
    """Both treatments have a row, P(0) a table of reliability, and the map is dry somewhere."""
    load("zeros").main(["--quick", "--output", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"zeros.md", "zeros.png"}
    text = (tmp_path / "zeros.md").read_text(encoding="utf-8")
    assert "| zeros censored (the default) |" in text
    assert "How reliable the probability of a dry month is" in text
    share = re.search(r"exactly zero in (\d+) % of cells", capsys.readouterr().out)
    assert int(share[1]) > 0


def test_blocks_are_squares_that_hold_a_quarter(load):
    """Stations are left out by whole squares, until these hold a quarter of the values."""
    common = load("common")
    spring = common.read_spring(1983)
    left_out = common.draw_blocks(spring, "ppt", seed=3)
    known = spring["ppt"].notnull().values
    share = (left_out & known).sum() / known.sum()
    assert 0.25 <= share < 0.4
    gap = np.hypot(
        spring["lon"].values[left_out][:, None] - spring["lon"].values[~left_out],
        spring["lat"].values[left_out][:, None] - spring["lat"].values[~left_out],
    ).min(axis=1)
    assert np.median(gap) > 0.2  # scattered stations would be a tenth of a degree from the next


def test_the_score_is_the_crps(load):
    """The mean quantile score over levels equals the integral that the library takes."""
    import xcopula
    from xcopula.process import Predictive

    common = load("common")
    data = xcopula.datasets.toy(seed=0)
    options = {"marginals": "normal", "kernels": "matern52", "uncertainty": "plugin"}
    model = data.mtcopula.fit("primary", **options)
    tests = data.dropna(next(iter(data["primary"].dims)), subset=["primary"])
    latent = model.posterior(tests, of="signal").latent
    truth = tests["primary"].values
    moments = latent["mean"].values, latent["std"].values
    exact = Predictive(*moments, model.marginals[0]).crps(truth).mean()

    class Signal:
        """The model, asked for its signal: at its own sites an observation is known."""

        tasks = model.tasks

        def posterior(self, target):
            return model.posterior(target, of="signal")

    assert common.score(Signal(), tests)["crps"] == pytest.approx(exact, rel=0.02)


def test_spacetime_scores_each_kind(load, tmp_path):
    """The quick fits score stations, months and gaps apart."""
    module = load("spacetime")
    module.main(["--quick", "--output", str(tmp_path)])
    table = pd.read_csv(tmp_path / "spacetime.csv")
    assert set(table["kind"]) == {*module.KINDS, "all"}
    assert table["coverage"].between(50, 100).all()
    widths = table.groupby("kind")["width"].mean()
    assert widths["gap"] < widths["station"]
    assert widths["gap"] < widths["month"]


def test_a_decade_is_mapped_and_compared(load, tmp_path, capsys, monkeypatch):
    """Every month is written; each way to fit has its scores, paired with a month alone."""
    monkeypatch.chdir(tmp_path)
    module = load("decade")
    module.main(["--quick", "--output", str(tmp_path)])
    with xr.open_zarr(tmp_path / "build/colorado/decade.zarr", consolidated=False) as maps:
        assert maps["ppt"].sizes["time"] == 4
        assert bool((maps["ppt"] > 0.0).all())
    assert (tmp_path / "decade.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    table = pd.read_csv(tmp_path / "decade.csv")
    assert set(table["model"]) == {module.DECADE, module.ALONE}
    assert set(table["gauges"]) == {module.NEVER, module.FAILED}
    assert (table.groupby(["model", "gauges", "elevation"]).size() == 2).all()
    assert table["crps"].between(0.5, 100).all()
    assert "against a month alone" in capsys.readouterr().out


def test_spring_map_writes_a_file_and_a_picture(load, tmp_path, capsys):
    """The map is a NetCDF file with units and a picture."""
    load("spring_map").main(["--quick", "--output", str(tmp_path)])
    with xr.open_dataset(tmp_path / "spring_map.nc") as result:
        assert result["ppt"].attrs["units"] == "mm"
        assert bool((result["ppt"] > 0).all())
        assert bool(result["ppt_exceedance"].max() <= 1.0)
    assert (tmp_path / "spring_map.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "flexible ~ elevation" in capsys.readouterr().out


def test_the_committed_table_says_what_the_docs_say():
    """Several variables with elevation are better than every other system, most of them by far."""
    table = pd.read_csv(DOCS / "blocks.csv")
    assert table["seed"].nunique() == 5
    wide = table.pivot(index=["year", "seed"], columns="system", values=["crps", "mae"])
    best = "several variables, with elevation"
    close = {"precipitation alone, with elevation", f"{best}, whole stations left out"}
    for score in ("crps", "mae"):
        for system in set(table["system"]) - {best}:
            gap = wide[score][system] - wide[score][best]
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            assert gap.mean() > (1.0 if system in close else 5.0) * error, (score, system)


def test_the_committed_coverage_is_near_nominal():
    """Held-out months and stations of the years that judge are covered by 86 to 94 per cent."""
    table = pd.read_csv(DOCS / "spacetime.csv")
    judged = table[table["year"] >= 1985]
    for kind in ("station", "month", "all"):
        assert 86.0 <= judged.loc[judged["kind"] == kind, "coverage"].mean() <= 94.0, kind
