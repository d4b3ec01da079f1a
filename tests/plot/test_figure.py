"""Figures in a notebook: shown as pictures, whether pyplot was imported or not."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

# What a notebook asks of the last value of a cell.
CELL = """
import sys
import xcopula
figure = xcopula.plot.pit_histogram([0.2, 0.7])
assert figure._repr_png_().startswith(b"\\x89PNG")
assert "matplotlib.pyplot" not in sys.modules
"""


def test_a_figure_is_a_picture_without_pyplot():
    """No magic command is needed, and no global state of pyplot."""
    done = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_notebook_shows_pictures(tmp_path):
    """With a real kernel, where one is installed."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = "import xcopula\nxcopula.plot.pit_histogram([0.2, 0.7])"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client.NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (output,) = book.cells[0].outputs
    assert "image/png" in output.data
