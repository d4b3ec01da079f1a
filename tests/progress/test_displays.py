"""Displays of progress and their choice."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
import threading
import types

import pytest

from xcopula.progress import Event, displays, to_logger, to_notebook, to_terminal
from xcopula.progress.displays import choose_listener


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True

    @property
    def screen(self) -> str:
        """What is seen of the line."""
        line = [" "] * 500
        for part in self.getvalue().split("\r"):
            line[: len(part)] = part
        return "".join(line).rstrip()


@pytest.fixture
def clock(monkeypatch):
    """Stop the clock of the displays."""
    stopped = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(displays, "monotonic", lambda: stopped.now)
    return stopped


def going(iteration: int, seconds: float = 1.0, what: str = "alone", name: str = "Cd") -> Event:
    """Return an event of a step."""
    return Event(what, "go", (name,), iteration=iteration, total=9, seconds=seconds)


@pytest.fixture
def wide(monkeypatch):
    """Have a terminal of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("wide")
class TestTerminal:
    def test_one_line_is_rewritten_and_cleared(self, clock):
        """A shorter line leaves nothing of a longer one, and the end leaves nothing at all."""
        out = Terminal()
        listen = to_terminal(out)
        listen(Event("fit", "begin", ("Cd",)))
        assert out.getvalue() == ""
        long = going(1000)
        listen(long)
        assert out.screen == str(long)
        clock.now = 1.0
        listen(going(1))
        assert out.screen == str(going(1))
        listen(Event("fit", "end", ("Cd",)))
        assert out.screen == ""
        assert "\n" not in out.getvalue()
        assert out.getvalue().endswith("\r")

    def test_an_interruption_clears_it_too(self):
        """The prompt has its line."""
        out = Terminal()
        listen = to_terminal(out)
        listen(going(1))
        listen(Event("fit", "stop", ("Cd",)))
        assert out.screen == ""

    def test_some_times_a_second_at_most(self, clock):
        """A thousand events in a second are ten lines."""
        out = Terminal()
        listen = to_terminal(out)
        for k in range(1000):
            clock.now = k / 1000.0
            listen(going(k, seconds=1.0 + clock.now))
        assert 8 <= out.getvalue().count("\r") <= 11

    def test_what_is_short_shows_nothing(self):
        """Neither while it runs nor at its end."""
        out = Terminal()
        listen = to_terminal(out)
        listen(going(1, seconds=0.3))
        listen(Event("fit", "end", ("Cd",)))
        assert out.getvalue() == ""

    def test_a_compilation_shows_at_once(self):
        """There is no other event while it lasts."""
        out = Terminal()
        to_terminal(out)(Event("compile", "begin", label="fill"))
        assert out.screen.startswith("compiling fill")

    def test_it_stays_on_its_line(self, monkeypatch):
        """A narrow terminal shows the beginning; names cannot move the cursor."""
        monkeypatch.setenv("COLUMNS", "60")
        out = Terminal()
        to_terminal(out)(going(1, name="a\n\x1b[2Jb" + "c" * 99))
        assert len(out.screen) == 59
        assert "a??[2Jb" in out.screen

    def test_a_closed_terminal_ends_no_fit(self):
        """Writing stops."""
        out = Terminal()
        listen = to_terminal(out)
        listen(going(1))
        out.close()
        listen(Event("fit", "end", ("Cd",)))
        plain = io.StringIO()
        plain.close()
        to_terminal(plain)(Event("fit", "end", ("Cd",)))


def test_a_file_gets_lines_that_stay(clock):
    """One for each step that ends, one for the first compilation, few iterations."""
    out = io.StringIO()
    listen = to_terminal(out)
    ended = Event("alone", "end", ("Cd",), done=1, total=9, seconds=11.0)
    listen(Event("fit", "begin", ("Cd",)))
    for name in ("fill", "contract"):
        listen(Event("compile", "begin", label=name))
    for k in range(12):
        clock.now = float(k)
        listen(going(k, seconds=clock.now))
    listen(ended)
    listen(Event("fit", "end", ("Cd",), done=9, total=9, seconds=12.0))
    assert out.getvalue().splitlines() == [
        "compiling fill for its first use, 0:00",
        str(going(10, seconds=10.0)),
        str(ended),
        "fit done, 9 of 9 steps, 0:12",
    ]


def test_nowhere_to_write(monkeypatch):
    """A program without a console has no standard error."""
    monkeypatch.setattr(sys, "stderr", None)
    to_terminal()(Event("fit", "end", ("Cd",)))
    assert only_logs(choose_listener(None))


@pytest.mark.parametrize("logger", ["mine", logging.getLogger("mine")])
def test_a_logger_gets_the_same_lines(caplog, logger):
    """At the level requested."""
    listen = to_logger(logger, logging.WARNING)
    event = Event("alone", "end", ("Cd%s",), done=1, total=9)
    with caplog.at_level(logging.INFO):
        listen(going(1))
        listen(event)
    assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
        ("mine", "WARNING", str(event))
    ]


@pytest.fixture
def notebook(monkeypatch):
    """Stand in for a Jupyter kernel: what was displayed, and what it was replaced by."""
    pages = []

    class Handle:
        def update(self, page, raw):
            pages.append(("update", page))

    def display(page, raw, display_id):
        pages.append(("display", page))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    inner = types.ModuleType("IPython.display")
    inner.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return types.SimpleNamespace(pages=pages, shell=shell)


class TestNotebook:
    def test_a_fit_has_one_output(self, notebook, clock):
        """From the begin to the end."""
        listen = to_notebook()
        for event in (
            Event("fit", "begin", ("Cd",), total=9),
            going(1, name="<b>"),
            going(2),
            Event("fit", "end", ("Cd",), done=9, total=9, seconds=2.0),
        ):
            clock.now += 0.06
            listen(event)
        kinds = [kind for kind, _ in notebook.pages]
        assert kinds == ["display", "update", "update"]  # one came too soon after another
        first, middle, last = (page for _, page in notebook.pages)
        assert first["text/html"].startswith('<div><progress value="0" max="9"></progress> fit')
        assert middle["text/plain"] == str(going(2))
        assert last["text/html"] == "<div>fit done, 9 of 9 steps, 0:02</div>"

    def test_names_are_no_html(self, notebook):
        """They are escaped."""
        to_notebook()(going(1, name="<b>"))
        assert "&lt;b&gt; alone, iteration" in notebook.pages[0][1]["text/html"]

    def test_a_short_prediction_has_none(self, notebook):
        """Nothing is left of it."""
        listen = to_notebook()
        listen(Event("predict", "begin", ("Cd",)))
        listen(Event("cells", "go", ("Cd",), done=1, total=1, seconds=0.1))
        listen(Event("predict", "end", ("Cd",)))
        assert notebook.pages == []
        listen(Event("compile", "begin", label="fill"))
        assert '<progress value="0"></progress>' in notebook.pages[0][1]["text/html"]

    def test_is_the_default_there(self, notebook):
        """And with True; IPython at a terminal is no notebook."""
        for progress in (None, True):
            choose_listener(progress)(Event("fit", "begin"))
        assert len(notebook.pages) == 2
        notebook.shell.kernel = None
        assert only_logs(choose_listener(None))


def only_logs(listener) -> bool:
    """Tell whether a listener only writes to the log, once a minute."""
    return isinstance(listener, displays._Lines) and not listener._steps


class TestChoice:
    def test_a_script_logs_a_line_a_minute(self, clock, caplog):
        """At INFO; without the steps that end within it."""
        listen = choose_listener(None)
        with caplog.at_level(logging.INFO, "xcopula"):
            for second in range(150):
                clock.now = float(second)
                listen(going(second, seconds=second))
            listen(Event("alone", "end", ("Cd",), done=1, total=9, seconds=150.0))
        said = [record.getMessage() for record in caplog.records]
        assert [int(re.search(r"iteration (\d+)", line)[1]) for line in said] == [60, 120]

    def test_a_script_displays_only_on_request(self):
        """By default it logs."""
        heard = []
        assert only_logs(choose_listener(None))
        assert choose_listener(False) is None
        assert choose_listener(heard.append) == heard.append
        assert choose_listener(True) is not None

    @pytest.mark.parametrize(
        ("prompt", "terminal", "shown"),
        [(True, True, True), (False, True, False), (True, False, False)],
    )
    def test_a_prompt_and_a_terminal_are_needed(self, monkeypatch, prompt, terminal, shown):
        """A script in a terminal is silent, and so is a prompt whose errors go to a file."""
        if prompt:
            monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        else:
            monkeypatch.delattr(sys, "ps1", raising=False)
        monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
        assert only_logs(choose_listener(None)) != shown
        others = []
        thread = threading.Thread(target=lambda: others.append(choose_listener(None)))
        thread.start()
        thread.join()
        assert only_logs(others[0])  # threads would write over each other

    @pytest.mark.parametrize("progress", ["yes", 1, [], 0.5])
    def test_anything_else_is_refused(self, progress):
        """With what was found."""
        with pytest.raises(TypeError, match=r"`progress` must be True, False, None or a function"):
            choose_listener(progress)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals")
@pytest.mark.parametrize(("flags", "shown"), [(["-i"], True), ([], False)])
def test_a_real_terminal(flags, shown):
    """An interpreter with a prompt shows what it does; a script in the same terminal does not."""
    code = (
        "from xcopula.progress.displays import choose_listener as c; print(type(c(None)).__name__)"
    )
    reader, writer = os.openpty()
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        check=True,
    )
    os.close(writer)
    os.close(reader)
    assert (done.stdout.split()[0] != "_Lines") == shown
