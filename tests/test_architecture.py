"""Imports point down, and each heavy dependency has its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import xcopula

ROOT = Path(xcopula.__file__).parent

# From the bottom up: a module imports from layers below its own. A folder is one unit.
LAYERS: list[set[str]] = [
    {"errors"},
    {"jit", "linalg", "marginals", "kernels"},
    {"process", "predictive"},
    {"inference", "optimisation"},
    {"selection"},
    {"coordinates", "fields", "variables", "observations"},
    {"blocks", "predictor", "posterior", "summary", "points", "budget"},
    {"prediction"},
    {"model"},
    {"lazy", "steps", "comparison"},
    {"fitting"},
    {"storage"},
    {"accessor", "cli", "plot", "datasets"},
]

# Within a layer, only these.
SIBLINGS: dict[str, set[str]] = {
    "kernels": {"jit"},
    "inference": {"optimisation"},
    "fields": {"coordinates"},
    "variables": {"coordinates", "fields"},
    "observations": {"coordinates", "fields", "variables"},
    "posterior": {"blocks"},
}

# The doors of the package: what they import inside functions is not counted.
DOORS = {"accessor", "cli"}

# Where a dependency may be imported, at any level.
PLACES: dict[str, set[str]] = {
    "numba": {"jit"},
    # model and fitting: to be a node of a graph, and to build one with compute=False
    "dask": {"blocks", "prediction", "variables", "model", "fitting"},
    "distributed": set(),
    "cf_xarray": {"coordinates"},
    "matplotlib": {"plot"},
    "click": {"cli"},
    "scipy.stats": set(),
}

FILES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def unit(path: Path) -> str:
    """Return the module, or the folder, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(node: ast.AST, *, inside: bool = True) -> Iterator[str]:
    """Yield dotted names that are imported under a node, but for type checking."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not inside:
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative import"
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        else:
            yield from imports(child, inside=inside)


def level(name: str) -> int:
    """Return the layer of a unit."""
    found = [k for k, layer in enumerate(LAYERS) if name in layer]
    assert found, f"{name} is in no layer: add it to the table of this test"
    return found[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
class TestEveryFile:
    def test_imports_point_down(self, path):
        """A module imports from lower layers, from its own folder, or from a listed sibling."""
        name = unit(path)
        here = level(name)
        for target in imports(ast.parse(path.read_text()), inside=name not in DOORS):
            package, _, rest = target.partition(".")
            if package != "xcopula" or not rest:
                continue
            other = rest.split(".")[0]
            if other == name or other in SIBLINGS.get(name, ()):
                continue
            assert level(other) < here, f"{name} imports {other}, which is not below it"

    def test_dependencies_are_in_their_place(self, path):
        """Each heavy dependency is imported where the table says, and nowhere else."""
        for target in imports(ast.parse(path.read_text())):
            for dependency, places in PLACES.items():
                if target == dependency or target.startswith(f"{dependency}."):
                    assert unit(path) in places, f"{unit(path)} imports {dependency}"


def test_the_table_names_each_unit_once():
    """No unit stands in two layers."""
    names = [name for layer in LAYERS for name in layer]
    assert len(names) == len(set(names))


def test_the_package_itself_imports_only_its_doors():
    """The package's own file imports the accessor and the errors, and the rest on demand."""
    found = set(imports(ast.parse((ROOT / "__init__.py").read_text()), inside=False))
    assert {t for t in found if t.startswith("xcopula")} == {"xcopula.accessor", "xcopula.errors"}
