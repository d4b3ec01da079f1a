"""The small scripts of the gallery run in their quick mode, and make what the pages show."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("script", "folder", "pictures", "prints"),
    [
        ("stations", "stations", {"map.png", "elevation.png"}, "skill against climatology"),
        ("monitors", "gallery", {"monitors.png"}, "Monitors and satellite: mean error"),
        ("directions", "coordinates", {"directions.png"}, "anisotropic: mean error"),
        ("limits", "limits", {"map.png", "scores.md"}, "below the limit"),
        ("panel", "gallery", {"panel.png"}, "mean error at the withheld stations"),
        ("ensembles", "ensembles", {"draws.png", "areas.png"}, "median at the centre"),
        ("planning", "planning", {"map.png", "scores.md"}, "| early | Co |"),
    ],
)
def test_quick(script, folder, pictures, prints, tmp_path, monkeypatch, capsys):
    """A script leaves its pictures, and nothing else, and prints the scores that a page quotes."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    main = runpy.run_path(str(ROOT / "examples" / f"{script}.py"))["main"]
    main(["--quick", "--output", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == pictures
    assert pictures <= {path.name for path in (ROOT / "docs" / folder).iterdir()}
    assert prints in capsys.readouterr().out


def test_each_section_of_the_gallery_has_a_picture_and_a_script():
    """What the gallery promises is there."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(sections) >= 5
    for section in sections:
        assert len(re.findall(r"^!\[", section, re.MULTILINE)) == 1, section
        scripts = re.findall(r"examples/[\w/]+\.py", section)
        assert scripts
        assert all((ROOT / script).exists() for script in scripts)


def test_pictures_are_small():
    """Pages still load quickly."""
    for folder in ("coordinates", "ensembles", "gallery", "stations"):
        for path in (ROOT / "docs" / folder).glob("*.png"):
            assert path.stat().st_size < 200_000, path.name
