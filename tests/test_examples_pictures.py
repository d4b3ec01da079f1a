"""The script of the pictures runs in its quick mode, and makes what the page shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "pictures.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder of the quick pictures."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "examples" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("pictures")
    module.main(["--quick", "--output", str(folder)])
    return folder


def test_every_picture_of_the_page_is_made_and_no_other(made):
    """The page, the folder of the docs and the script have the same pictures."""
    shown = set(re.findall(r"\(pictures/(\w+\.png)\)", PAGE.read_text()))
    assert {path.name for path in made.glob("*.png")} == shown
    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == shown
    assert len(shown) >= 12


def test_pictures_are_small():
    """A page of many pictures still loads quickly."""
    for path in (ROOT / "docs" / "pictures").iterdir():
        assert path.stat().st_size < 150_000, path.name


def test_every_method_is_on_the_page():
    """Each method of the two handles is shown."""
    from xcopula.plot.of_model import ModelPlots
    from xcopula.plot.of_posterior import PosteriorPlots

    text = PAGE.read_text()
    for kind, handle in ((ModelPlots, "model"), (PosteriorPlots, "posterior")):
        for name in vars(kind):
            if not name.startswith("_"):
                assert f"{handle}.plot.{name}(" in text, name
