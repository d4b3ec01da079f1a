"""Importing is cheap and has two side effects: the accessor, and care for forked processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xcopula

HEAVY = (
    "numba",
    "dask",
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "matplotlib",
    "cf_xarray",
    "netCDF4",
    "pyproj",
    "shapely",
    "geopandas",
)


def run(code: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_import_loads_nothing_heavy():
    """Beyond what xarray itself loads, none of the heavy packages is imported."""
    code = (
        "import sys, json, xarray; before = set(sys.modules); import xcopula;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    added = json.loads(run(code))
    assert "xcopula.accessor" in added
    assert [m for m in added for h in HEAVY if m == h or m.startswith(f"{h}.")] == []
    assert len([m for m in added if not m.startswith("xcopula")]) < 20


def test_import_registers_the_accessor_and_nothing_else():
    """The accessor is there; options, warning filters and loggers are as they were."""
    code = """
import logging, warnings, xarray as xr
options, filters = dict(xr.core.options.OPTIONS), list(warnings.filters)
import xcopula
assert hasattr(xr.Dataset(), "mtcopula")
assert dict(xr.core.options.OPTIONS) == options
assert list(warnings.filters) == filters
assert not logging.getLogger("xcopula").handlers
"""
    assert run(code) == ""


def test_dir_lists_the_public_names():
    """Completion shows the public names and only them."""
    assert dir(xcopula) == sorted(xcopula.__all__)
    assert {"fit", "predict", "CopulaModel", "datasets", "kernels", "marginals"} <= set(
        dir(xcopula)
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_public_name_resolves():
    """Each name loads on first use, in a package where nothing was loaded before."""
    code = """
import os, sys, xcopula
before = set(sys.modules)
for name in xcopula.__all__:
    child = os.fork()
    if child == 0:  # as fresh as the parent, which loads nothing
        try:
            assert getattr(xcopula, name) is not None
        except BaseException as error:
            print(name, repr(error), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
assert set(sys.modules) == before
"""
    assert run(code) == ""


def test_kernels_are_found_like_laws():
    """Both are public rooms that load on first use."""
    assert run("import xcopula; print(sorted(xcopula.kernels.KERNELS))") == (
        "['matern12', 'matern32', 'matern52', 'se']\n"
    )


def test_public_names_mean_the_same_before_and_after_loading():
    """A submodule that gets imported on the way does not take the place of a function."""
    code = """
import xcopula
kinds = {n: type(getattr(xcopula, n)) for n in xcopula.__all__}
import xcopula.fitting.fit, xcopula.model.record, xcopula.plot
import xcopula.prediction.target, xcopula.prediction.posterior
for name, kind in kinds.items():
    assert type(getattr(xcopula, name)) is kind, name
from xcopula import *
assert callable(fit) and callable(predict)
"""
    assert run(code) == ""


def test_unknown_names_are_attribute_errors():
    """A misspelt name is reported as such."""
    with pytest.raises(AttributeError, match="module 'xcopula' has no attribute 'fitt'"):
        _ = xcopula.fitt


def test_version_is_that_of_the_distribution():
    """The version in the package and in its metadata agree."""
    from importlib.metadata import version

    assert xcopula.__version__ == version("xcopula")


def test_the_version_is_written_once():
    """Of all that builds the package and its pages, only the package spells its version."""
    spelt = re.compile(rf"(?<![\w.]){re.escape(xcopula.__version__)}(?![\w.])")
    root = Path(__file__).parent.parent
    files = [root / "pyproject.toml", root / "Makefile", root / "docs" / "conf.py"]
    files += [p for folder in (root / "xcopula", root / ".ci") for p in folder.rglob("*.py")]
    assert len(files) > 50
    found = [p for p in files if spelt.search(p.read_text(encoding="utf-8"))]
    assert found == [root / "xcopula" / "__init__.py"]
