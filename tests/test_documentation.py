"""What the docstrings and the pages show runs, and what the pages link to exists."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OTHERS = "# your own data"  # a block that begins so reads data that we do not have
# A block that begins so needs these packages, and is compiled only where one is missing.
GEO = "# with xcopula[geo]"
NEEDED = ("pyproj", "shapely", "geopandas", "rioxarray")

# Pages whose fits are too long for a test: their blocks are compiled only.
LONG = {
    "docs/index.md": "begins as the README does, which is run",
    "docs/colorado.md": "fits regressions of three variables; test_examples_colorado.py runs it",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run in an empty folder, and draw to no screen."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def run_doctest(test: doctest.DocTest) -> None:
    """Run a doctest; what it reports is the message of the failure."""
    report: list[str] = []
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(
        test, out=report.append, clear_globs=False
    )[0]
    assert not failed, "".join(report)


# --- docstrings


def modules_with_doctests() -> list[str]:
    """Return the modules of the package with a ``>>>`` in their text."""
    paths = sorted((ROOT / "xcopula").rglob("*.py"))
    parts = [p.relative_to(ROOT).with_suffix("").parts for p in paths if ">>>" in p.read_text()]
    return [".".join(p[:-1] if p[-1] == "__init__" else p) for p in parts]


def doctests(module: str) -> list[doctest.DocTest]:
    """Return the docstrings of a module that have examples."""
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", modules_with_doctests())
def test_docstrings(module):
    """Each example of a docstring shows what it says."""
    tests = doctests(module)
    assert tests
    for test in tests:
        run_doctest(test)


def test_the_docstrings_are_found():
    """The test above is not blind."""
    tests = [test for module in modules_with_doctests() for test in doctests(module)]
    assert sum(len(test.examples) for test in tests) >= 30


# --- pages


class Block(NamedTuple):
    """A fenced block of Python: where its first line is, counted from 0, and its text.

    What it prints is shown by the block of text that follows, if there is one.
    """

    line: int
    code: str
    prints: str | None = None


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the Python blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    shown = r"(?:\n\n```text\n(.*?)^```$)?"
    code = rf"^```(?:python|pycon)\n(.*?)^```${shown}"
    fences = re.finditer(code, text, re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, fence.start(1)), fence[1], fence[2]) for fence in fences]


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?")
COUNTS = re.compile(r"after \d+ evaluations")


def assert_alike(printed: str, shown: str) -> None:
    """Compare what was printed with what a page shows.

    Numbers may differ by 2 % or half a unit of their last digit, as they do from one BLAS to
    another, and the evaluations of an optimiser by any number.
    """
    texts = [COUNTS.sub("after some evaluations", each) for each in (printed, shown)]
    words = [NUMBER.sub("#", each).split() for each in texts]
    assert words[0] == words[1]
    for found, expected in zip(*map(NUMBER.findall, texts), strict=True):
        last = 10.0 ** -len(expected.partition(".")[2])
        assert float(found) == pytest.approx(float(expected), rel=0.02, abs=1.01 * last), expected


def run_block(page: Path, block: Block, namespace: dict[str, Any], *, run: bool) -> None:
    """Run a block, or compile it only; failures show the line of the page."""
    if block.code.startswith(">>>"):
        parser = doctest.DocTestParser()
        test = parser.get_doctest(block.code, namespace, page.name, str(page), block.line)
        assert test.examples
        if run:
            run_doctest(test)
            namespace.update(test.globs)
    else:
        code = compile("\n" * block.line + block.code, str(page), "exec", dont_inherit=True)
        if run:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            if block.prints is not None and "..." not in block.prints:
                assert_alike(printed.getvalue(), block.prints)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES_WITH_BLOCKS = {relative(page): page for page in PAGES if blocks(page)}


@pytest.mark.parametrize("name", PAGES_WITH_BLOCKS)
def test_pages(name):
    """The blocks of a page run from top to bottom, and the package does not warn."""
    page = PAGES_WITH_BLOCKS[name]
    # Users are warned at their own line. By this name the page falls under the filter for xcopula.
    namespace: dict[str, Any] = {"__name__": "xcopula_page"}
    for block in blocks(page):
        run = name not in LONG and not block.code.startswith(OTHERS)
        if block.code.startswith(GEO):
            run = run and all(map(importlib.util.find_spec, NEEDED))
        run_block(page, block, namespace, run=run)


def test_the_blocks_are_found():
    """The test above is not blind, and its exceptions are not stale."""
    found = {name: blocks(page) for name, page in PAGES_WITH_BLOCKS.items()}
    assert set(LONG) <= set(found)
    run = [b for name, page in found.items() if name not in LONG for b in page]
    assert sum(not block.code.startswith(OTHERS) for block in run) >= 15
    assert len(found["README.md"]) >= 2
    fences = {page: page.read_text(encoding="utf-8").count("```py") for page in PAGES}
    assert fences == {page: len(blocks(page)) for page in PAGES}


def test_what_is_printed_is_compared():
    """Words, missing numbers and wrong numbers are found; the last digit may differ."""
    assert_alike("CRPS 9.541 mm", "CRPS 9.535 mm")
    assert_alike("converged after 40 evaluations", "converged after 46 evaluations")
    for other in ("CRPS 9.9 mm", "RMSE 9.535 mm", "CRPS 9.535", "CRPS 9.535 mm 1"):
        with pytest.raises(AssertionError):
            assert_alike("CRPS 9.535 mm", other)
    printing = [b for page in PAGES_WITH_BLOCKS.values() for b in blocks(page) if b.prints]
    assert len(printing) >= 5


def test_the_readme_and_the_site_begin_alike():
    """The ten lines and what they print are the same, so that one of them need not be run."""
    readme, index = blocks(ROOT / "README.md")[0], blocks(ROOT / "docs" / "index.md")[0]
    assert (readme.code, readme.prints) == (index.code, index.prints)
    lines = [line for line in readme.code.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert readme.prints


def test_stations_to_a_map_takes_fifteen_lines():
    """The page for newcomers keeps to its title."""
    page = ROOT / "docs" / "stations.md"
    title, path = "## Fifteen lines", blocks(page)[1].code
    assert title in page.read_text(encoding="utf-8")
    assert "read_csv" in path
    assert "to_netcdf" in path
    assert len([line for line in path.splitlines() if line.strip()]) <= 15


# --- messages


def sentences() -> list[str]:
    """Return the texts of the package, with a mark where an f-string puts in something."""
    found: list[str] = []
    for path in sorted((ROOT / "xcopula").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "…" for v in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def says(sentence: str, message: str) -> bool:
    """Tell whether the parts of a message are in a sentence, one after the other."""
    at = 0
    for part in message.split("…"):
        at = sentence.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def messages() -> list[str]:
    """Return the messages that the page of remedies explains."""
    text = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| message \|.*?\n\n", text, re.MULTILINE | re.DOTALL)
    return [m for table in tables for m in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]


@pytest.mark.parametrize("message", messages())
def test_messages_of_the_page(message, package_sentences):
    """A message that is explained is one that the library can utter."""
    assert any(says(sentence, message) for sentence in package_sentences)


@pytest.fixture(scope="module")
def package_sentences() -> list[str]:
    return sentences()


def test_the_messages_are_found():
    """The test above is not blind."""
    assert len(messages()) >= 40
    assert says("Variable … is constant", "Variable … is")
    assert not says("is constant: Variable …", "Variable … is")


# --- names


def names_of_the_walk() -> set[str]:
    """Return the dotted names of the walk that are in backticks, without their arguments."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / "docs" / "walk.md").read_text(), flags=re.M | re.S)
    found = re.findall(r"`((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*)(?:`|\()", text)
    return {name for name in found if name != "CONTRIBUTING.md" and not name.startswith("out.")}


# Objects that the walk calls by what they are in the text, not by where they are defined.
SPOKEN_OF = {
    "Predictor": "xcopula.prediction.predictor.Predictor",
    "CoordinateSystem": "xcopula.labels.coordinates.CoordinateSystem",
    "Covariance": "xcopula.kernels.covariance.Covariance",
    "Evidence": "xcopula.process.Evidence",
    "Part": "xcopula.methods.part.Part",
    "Process": "xcopula.process.Process",
    "Transductive": "xcopula.methods.Transductive",
    "conditioned": "xcopula.solvers.Conditioned",
    "method": "xcopula.methods.Method",
    "solver": "xcopula.solvers.Solver",
}


@pytest.mark.parametrize("name", sorted(names_of_the_walk()))
def test_names_of_the_walk(name):
    """Modules, functions, classes and methods that the walk names are where it says."""
    first, rest = name.split(".", 1)
    assert pkgutil.resolve_name(f"{SPOKEN_OF.get(first, f'xcopula.{first}')}.{rest}") is not None


def test_the_names_are_found():
    """The test above is not blind."""
    assert len(names_of_the_walk()) >= 50


# --- links


def prose(page: Path) -> str:
    """Return the text of a page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "code", text)


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> Iterator[str]:
    """Yield the targets of the inline links and images of a page that are not on the web."""
    for target in re.findall(r"\]\(\s*<?([^)\s>]+)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield target


LINKING = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", [pytest.param(p, id=relative(p)) for p in LINKING if [*links(p)]])
def test_links(page):
    """Linked files exist in the repository, and linked headings in their page."""
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


def test_the_links_are_found():
    """The test above is not blind."""
    assert sum(len([*links(page)]) for page in LINKING) >= 30
