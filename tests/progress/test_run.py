"""Events as text, and runs that report to one listener, one event at a time, from any thread."""

from __future__ import annotations

import threading

import pytest

from xcopula.progress.run import SILENT_STEP, Event, Run, clock_time, track

STEPS = {"done": 2, "total": 9, "seconds": 5.0}

LINES = [
    (Event("fit", "begin", ("Cd",), total=9), "fit, 0 of 9 steps, 0:00"),
    (Event("fit", "end", ("Cd",), done=9, total=9, seconds=65.0), "fit done, 9 of 9 steps, 1:05"),
    (Event("fit", "stop", ("Cd",), **STEPS), "fit stopped, 2 of 9 steps, 0:05"),
    (Event("predict", "end", ("Cd",), seconds=1.0), "predict Cd done, 0:01"),
    (
        Event("alone", "begin", ("Cd",), **STEPS),
        "fit, 2 of 9 steps done: Cd alone, 0:05",
    ),
    (
        Event("alone", "go", ("Cd",), iteration=12, log_posterior=-1.234, **STEPS),
        "fit, 2 of 9 steps done: Cd alone, iteration 12, log posterior -1.23, 0:05",
    ),
    (
        Event("pair", "go", ("Cd", "Ni"), start=2, starts=3, iteration=4, done=2, seconds=5.0),
        "fit, 2 steps done: Cd with Ni, start 2 of 3, iteration 4, 0:05",
    ),
    (
        Event("together", "go", ("Cd", "Ni", "Zn"), **STEPS),
        "fit, 2 of 9 steps done: Cd, Ni, Zn together, 0:05",
    ),
    (Event("together", "go", ("Cd",), **STEPS), "fit, 2 of 9 steps done: Cd, 0:05"),
    (Event("condition", "begin", ("Cd",)), "predict Cd: condition on the data, 0:00"),
    (
        Event(
            "cells", "go", ("Cd",), "quantile", done=1000, total=4000, seconds=20.0, expected=60.0
        ),
        "predict Cd: quantile, 1,000 of 4,000 cells, 0:20, about 1:00 to go",
    ),
    (
        Event("cells", "go", ("Cd",), "quantile", done=4000, total=4000, seconds=20.0),
        "predict Cd: quantile, 4,000 of 4,000 cells, 0:20",
    ),
    (Event("compile", "begin", label="fill"), "compiling fill for its first use, 0:00"),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=[line for _, line in LINES])
def test_lines(event, line):
    """Unknown numbers are omitted."""
    assert str(event) == line


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (600.0, "10:00"), (36610.0, "10:10:10")]
)
def test_times_are_rounded_to_seconds(seconds, text):
    """And have hours where there are any."""
    assert clock_time(seconds) == text


def test_steps_are_counted_and_track():
    """Completed ones that count."""
    heard = []
    with track("fit", heard.append, ("Cd", "Ni"), 3) as run:
        with run.step("alone", ("Cd",)) as step:
            step.begun_at(2, 3).report("go", iteration=4, log_posterior=-1.5)
        with run.step("condition", ("Cd",), counts=False):
            pass
        with pytest.raises(KeyError), run.step("pair", ("Cd", "Ni")):
            raise KeyError
        run.compiles("fill")
    assert [(e.what, e.state, e.done) for e in heard] == [
        ("fit", "begin", 0),
        ("alone", "begin", 0),
        ("alone", "go", 0),
        ("alone", "end", 1),
        ("condition", "begin", 1),
        ("condition", "end", 1),
        ("pair", "begin", 1),
        ("compile", "begin", 1),
        ("fit", "end", 1),
    ]
    going = heard[2]
    assert (going.names, going.start, going.starts) == (("Cd",), 2, 3)
    assert (going.iteration, going.log_posterior, going.total) == (4, -1.5, 3)
    assert [e.seconds for e in heard] == sorted(e.seconds for e in heard)
    assert heard[-1].names == ("Cd", "Ni")


def test_an_exception_is_reported_and_goes_on():
    """The last event says that it stopped; no event follows."""
    heard = []
    with pytest.raises(KeyboardInterrupt), track("fit", heard.append) as run:
        raise KeyboardInterrupt
    assert [e.state for e in heard] == ["begin", "stop"]
    run.report("alone", "go", names=("Cd",))
    run.end("end")
    assert len(heard) == 2


def test_without_a_listener_steps_are_counted_only():
    """An interrupted fit says how many were done."""
    with track("fit", None) as run, run.step("alone", ("Cd",)):
        pass
    assert run.done == 1
    SILENT_STEP.report("go")


def test_events_come_one_at_a_time():
    """Whichever thread it comes from; none is lost."""
    inside, most, heard = 0, 0, []
    ready = threading.Barrier(8)

    def listener(event):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        heard.append(event)
        inside -= 1

    run = Run("fit", listener)

    def work():
        ready.wait()
        for k in range(50):
            with run.step("alone", ("Cd",)) as step:
                step.report("go", iteration=k)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert len(heard) == 8 * 50 * 3
    assert run.done == 400


def test_a_listener_may_cause_an_event():
    """The lock is reentrant."""
    heard = []

    def listener(event):
        heard.append(event.what)
        if event.what == "alone":
            run.compiles("fill")

    run = Run("fit", listener)
    run.report("alone", "go", names=("Cd",))
    assert heard == ["alone", "compile"]


def test_a_compilation_does_not_wait_for_a_listener():
    """It holds the compiler's lock, for which the listener may be waiting."""
    heard, entered, leave = [], threading.Event(), threading.Event()

    def listener(event):
        heard.append(event.what)
        entered.set()
        leave.wait(10.0)

    run = Run("fit", listener)
    other = threading.Thread(target=run.report, args=("alone", "go"))
    other.start()
    assert entered.wait(10.0)
    run.compiles("fill")
    leave.set()
    other.join()
    assert heard == ["alone"]


def test_cells_have_an_expected_time(monkeypatch):
    """From the pace since the first cell."""
    now = [100.0]
    monkeypatch.setattr("xcopula.progress.run.time.monotonic", lambda: now[0])
    heard = []
    run = Run("predict", heard.append, ("Cd",))
    now[0] += 7.0  # conditioning
    tell = run.cells(("Cd",), "quantile")
    now[0] += 2.0
    tell(10, 40)
    now[0] += 6.0
    tell(40, 40)
    assert [(e.seconds, e.done, e.total, e.expected) for e in heard] == [
        (9.0, 10, 40, 6.0),
        (15.0, 40, 40, 0.0),
    ]


def test_the_rest_of_an_estimate(monkeypatch):
    """Begins and iterations have it until it is used up."""
    clock = iter([0.0, 1.0, 4.0, 5.0, 11.0, 12.0])
    monkeypatch.setattr("xcopula.progress.run.time.monotonic", lambda: next(clock))
    heard = []
    run = Run("fit", heard.append)
    run.report("fit", "begin")
    run.expect(10.0)
    run.report("alone", "begin", names=("Cd",))
    run.report("alone", "end", names=("Cd",))
    run.report("pair", "go", names=("Cd", "Ni"))
    assert [e.expected for e in heard] == [None, 6.0, None, None]
    assert "about 0:06 to go" in str(heard[1])
