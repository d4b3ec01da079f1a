"""What data and files cannot do: nothing is unpickled or evaluated, and no one is called."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import xcopula

ROOT = Path(xcopula.__file__).parent

# Modules that turn bytes into objects, run programs, or talk to other machines.
FORBIDDEN = {
    *("pickle", "_pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "jsonpickle"),
    *("socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "aiohttp"),
    *("subprocess", "runpy", "code", "codeop"),
}
CALLS = {"eval", "exec", "compile", "__import__", "literal_eval"}
# Text becomes a pattern here, not code; and these read what a file says they are.
READERS = {"load", "loads", "read_pickle", "to_pickle", "fromfile", "memmap", "system", "popen"}
# JSON and TOML make numbers, texts, lists and tables of them, and nothing else.
PLAIN = {"json", "tomllib"}

files = pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)


@files
def test_no_module_that_could(path):
    """Neither pickles nor sockets are imported, at any level."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top not in FORBIDDEN, f"imports {name}"


@files
def test_no_call_that_could(path):
    """No text is evaluated, and no reader of objects is called."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name):
            assert function.id not in CALLS, f"calls {function.id} in line {node.lineno}"
        if isinstance(function, ast.Attribute):
            of = ast.unparse(function.value)
            # `array.load()` of xarray reads numbers; others are given something to read
            reads = function.attr in READERS and bool(node.args) and of not in PLAIN
            assert not reads, f"calls {of}.{function.attr} in line {node.lineno}"


ALONE = """
import sys

def watch(event, arguments):
    if event.startswith("socket.") and event not in {"socket.gethostname", "socket.__new__"}:
        raise RuntimeError(f"{event} {arguments}")

sys.addaudithook(watch)
import os
from click.testing import CliRunner
import xcopula
from xcopula.cli import main

data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, 359, 9))
grid = xcopula.datasets.jura_grid().isel(x=slice(0, None, 9), y=slice(0, None, 9))
options = dict(marginals="lognormal", kernels="matern32", restarts=0)
model = xcopula.fit(data, "Cd", ["Ni", "Zn"], **options)
lazy = xcopula.fit(data, "Cd", ["Ni"], compute=False, **options).compute()
model.predict(grid, chunks={"y": 4}).compute()
xcopula.compare(data, "Cd", kernels=["matern32"], marginals=["normal"])
for read in (xcopula.datasets.toy, xcopula.datasets.colorado):
    read()
quick = xcopula.fit
import functools, xcopula.fitting
xcopula.fitting.fit = functools.partial(quick, **options)
done = CliRunner().invoke(main, ["demo", "-o", sys.argv[1]])
assert done.exit_code == 0, (done.output, done.exception)

import socket  # the watch is awake
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except RuntimeError:
    sys.exit(0)
sys.exit("nobody watched")
"""


def test_no_one_is_called(tmp_path):
    """A fit, a prediction, data sets and the demo open no connection."""
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-c", ALONE, str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
