"""Imports point down, each heavy dependency has its place, and every module has its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import xcopula

ROOT = Path(xcopula.__file__).parent
REPOSITORY = Path(__file__).parents[1]

# The doors of the package: what they import inside functions is not counted.
DOORS = {"accessor", "cli"}
# Handles on things below them: properties that import what is above when they are asked for it.
HANDLES = {"model/record.py": {"plot"}, "prediction/posterior.py": {"plot"}}

# Where a dependency may be imported, at any level.
PLACES: dict[str, set[str]] = {
    "numba": {"jit"},
    # model and fitting: to be a node of a graph, and to build one with compute=False;
    # storage: to write block by block; cli: a bar for blocks
    "dask": {"prediction", "labels", "model", "fitting", "validation", "storage", "cli"},
    "distributed": {"cli"},  # if a cluster is asked for
    "xarray": {"accessor", "cli", "plot", "datasets", "fitting", "model", "prediction"}
    | {"labels", "storage", "validation"},
    "cf_xarray": {"labels"},
    "matplotlib": {"plot"},
    "click": {"cli"},
    "scipy.stats": set(),
}

FILES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")

# `xcopula/foo.py` is tested by `tests/test_foo.py`. Where one test serves several modules, a
# contract that all of them keep, it is named here.
TESTED_BY = {
    "arrays.py": "test_architecture.py",
    "datasets/_jura.py": "datasets/test_datasets.py",
    "datasets/_toy.py": "datasets/test_datasets.py",
    "fitting/together.py": "fitting/test_steps.py",
    "kernels/__init__.py": "kernels/test_families.py",
    "kernels/base.py": "kernels/test_checks.py",
    "kernels/matern.py": "kernels/test_families.py",
    "kernels/se.py": "kernels/test_families.py",
    "solvers/strata.py": "solvers/test_graph.py",
    "solvers/terms.py": "solvers/test_neighbours.py",
    "model/extremes.py": "model/test_record.py",
    "model/planning.py": "model/test_design.py",
    "model/running.py": "fitting/test_interruption.py",
    "model/weighing.py": "model/test_design.py",
    "marginals/__init__.py": "marginals/test_marginal_contract.py",
    "marginals/base.py": "marginals/test_marginal_contract.py",
    "marginals/exponential.py": "marginals/test_marginal_contract.py",
    "marginals/families.py": "marginals/test_marginal_contract.py",
    "marginals/gamma.py": "marginals/test_marginal_contract.py",
    "marginals/grouping.py": "marginals/test_varying.py",
    "marginals/lognormal.py": "marginals/test_marginal_contract.py",
    "marginals/normal.py": "marginals/test_marginal_contract.py",
    "marginals/regress.py": "marginals/test_varying.py",
    "marginals/regression.py": "marginals/test_varying.py",
    "marginals/student.py": "marginals/test_marginal_contract.py",
    "labels/additions.py": "model/test_conditioning.py",
    "labels/rows.py": "labels/test_observations.py",
    "methods/__init__.py": "methods/test_contract.py",
    "prediction/telling.py": "test_progress_end_to_end.py",
    "plot/diagnostics.py": "test_plot.py",
    "plot/maps.py": "test_plot.py",
    "plot/panels.py": "test_plot.py",
    "solvers/__init__.py": "solvers/test_contract.py",
    "validation/results.py": "validation/test_crossing.py",
}


def layers() -> dict[str, list[str]]:
    """Return the rooms of each layer, as the table of CONTRIBUTING.md has them."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    table = text[text.index("| layer | rooms |") :]
    rows = [row.split("|") for row in table[: table.index("\n\n")].splitlines()[2:]]
    return {row[1].strip(): re.findall(r"`(\w+)`", row[2]) for row in rows}


ORDER = [room for rooms in layers().values() for room in rooms]


def unit(path: Path) -> str:
    """Return the module, or the folder, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(
    node: ast.AST, *, inside: bool = True, but: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    """Yield dotted names that are imported under a node, but for type checking.

    Those inside functions only with ``inside``, and not in functions of the names of ``but``.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and (
            not inside or child.name in but
        ):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative import"
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        else:
            yield from imports(child, inside=inside, but=but)


def counted(path: Path) -> Iterator[str]:
    """Yield the imports of a file that must point down: all but those of doors and handles."""
    but = HANDLES.get(path.relative_to(ROOT).as_posix(), set())
    return imports(ast.parse(path.read_text()), inside=unit(path) not in DOORS, but=but)


def dotted(path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_table_names_every_room_once_and_no_other():
    """`ls xcopula/` is the table of CONTRIBUTING.md."""
    assert len(ORDER) == len(set(ORDER))
    assert set(ORDER) == {unit(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
class TestEveryFile:
    def test_imports_point_down(self, path):
        """A module imports from lower layers, from rooms to its right, or from its own room."""
        here = unit(path)
        for target in counted(path):
            package, _, rest = target.partition(".")
            if package != "xcopula" or not rest:
                continue
            other = rest.split(".")[0]
            assert other == here or ORDER.index(other) > ORDER.index(here), (
                f"{here} imports {other}, which is not below it"
            )

    def test_dependencies_are_in_their_place(self, path):
        """Each heavy dependency is imported where the table says, and nowhere else."""
        for target in imports(ast.parse(path.read_text())):
            for dependency, places in PLACES.items():
                if target == dependency or target.startswith(f"{dependency}."):
                    assert unit(path) in places, f"{unit(path)} imports {dependency}"


def defines_nothing(path: Path) -> bool:
    """Tell whether a package's own file only gathers what its modules define."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    own = any(isinstance(node, kinds) for node in ast.parse(path.read_text()).body)
    return path.name == "__init__.py" and not own


def mirror(path: Path) -> str:
    """Return where the tests of a module are: at the same place, or where the table says."""
    inside = path.relative_to(ROOT)
    here = inside.with_name(f"test_{inside.stem.lstrip('_')}.py")
    return TESTED_BY.get(inside.as_posix(), here.as_posix())


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if not defines_nothing(p)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_module_has_its_tests(path):
    """They are at the same place in tests/, or where the table says."""
    tests = REPOSITORY / "tests" / mirror(path)
    assert tests.is_file(), f"{path.relative_to(ROOT)} has no {tests.relative_to(REPOSITORY)}"
    assert "def test_" in tests.read_text()


def test_the_table_of_tests_is_not_stale():
    """It names modules that exist and have no tests at the same place."""
    for module, tests in TESTED_BY.items():
        assert ROOT / module in FILES
        assert (REPOSITORY / "tests" / tests).is_file()
        inside = Path(module)
        if inside.name != "__init__.py":
            here = inside.with_name(f"test_{inside.stem.lstrip('_')}.py")
            assert not (REPOSITORY / "tests" / here).exists(), module


@pytest.mark.parametrize("layer", ["labels", "inference", "arrays", "ground"])
def test_parts_of_scipy_are_those_of_the_table(layer):
    """The table says which parts of scipy the lower layers know, and no part that they do not."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith(f"| {layer} |"))
    found = set()
    for path in FILES:
        if unit(path) in layers()[layer]:
            source = path.read_text()
            names = " ".join(imports(ast.parse(source)))
            names += " " + " ".join(re.findall(r'import_module\(f?"([\w.]+)', source))
            found |= set(re.findall(r"\bscipy\.[a-z]+", names))
    assert set(re.findall(r"`(scipy\.[a-z]+)`", row)) == found


def test_no_module_imports_itself_by_a_detour():
    """Within a room, too, imports have a direction."""
    names = {dotted(path): path for path in FILES}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        found = set()
        for target in counted(path):
            module = target if target in names else target.rpartition(".")[0]
            # A package's own file gathers what its modules define: it is not one of them.
            if module in names and names[module].name != "__init__.py" and module != name:
                found.add(module)
        if path.name != "__init__.py":
            graph[name] = found
    assert list(TopologicalSorter(graph).static_order())


def test_handles_are_properties_that_do_nothing_but_hand_over():
    """They import one thing, and return it with what they are a handle on."""
    for name, handles in HANDLES.items():
        tree = ast.parse((ROOT / name).read_text())
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in handles]
        assert {n.name for n in found} == handles
        for function in found:
            assert [ast.unparse(d) for d in function.decorator_list] == ["property"]
            _, imported, returned = function.body  # after the docstring
            assert isinstance(imported, ast.ImportFrom)
            assert ast.unparse(returned) == f"return {imported.names[0].name}(self)"


def test_the_package_itself_imports_only_its_doors():
    """The package's own file imports the accessor, errors and forks, and the rest on demand."""
    found = set(imports(ast.parse((ROOT / "__init__.py").read_text()), inside=False))
    doors = {"xcopula.accessor", "xcopula.errors", "xcopula.forks.survive_forks"}
    assert {t for t in found if t.startswith("xcopula")} == doors


def test_types_of_arrays_are_defined_once():
    """Other modules import them."""
    pattern = re.compile(r"^(Float|Int|Bool)Array\b.*=", re.M)
    assert [unit(p) for p in FILES if pattern.search(p.read_text())] == ["arrays"]


def test_no_room_calls_the_exact_solver_by_name():
    """Methods and fits call the solver that they are given."""
    for path in FILES:
        if unit(path) in ("methods", "fitting", "model", "prediction"):
            found = re.search(r"solvers\.exact|\bExact\(|Factorised", path.read_text())
            assert not found, path


def test_the_primary_is_not_hard_coded_in_the_labels_of_a_result():
    """Any variable can be asked for: `tasks[0]` is a default, said where it is one."""
    allowed = {
        "model/summary.py",  # its title names the primary
        "model/lazy.py",  # so does its repr
        "prediction/posterior.py",  # secondaries inform the primary
    }
    for path in FILES:
        found = re.search(r"tasks\[0\]|names\[0\]|variables\[0\]", path.read_text())
        if found and unit(path) in ("prediction", "model"):
            assert str(path.relative_to(ROOT)) in allowed, path
