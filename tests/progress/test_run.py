"""Steps tell one listener, one at a time, from any thread."""

from __future__ import annotations

import threading

import pytest

from xcopula.progress.run import UNHEARD, Run, told


def test_steps_are_counted_and_told():
    """Those that count raise the number that is done; a failed one is not done."""
    heard = []
    with told("fit", heard.append, ("Cd", "Ni"), 3) as run:
        with run.step("alone", ("Cd",), "gamma") as step:
            step.begun_at(2, 3).tell("go", iteration=4, log_posterior=-1.5)
        with run.step("rival", ("Cd",), "gev", counts=False):
            pass
        with pytest.raises(KeyError), run.step("kernel", ("Cd",), "se"):
            raise KeyError
        run.compiles("fill")
    assert [(e.what, e.state, e.done) for e in heard] == [
        ("fit", "begin", 0),
        ("alone", "begin", 0),
        ("alone", "go", 0),
        ("alone", "end", 1),
        ("rival", "begin", 1),
        ("rival", "end", 1),
        ("kernel", "begin", 1),
        ("compile", "begin", 1),
        ("fit", "end", 1),
    ]
    going = heard[2]
    assert (going.names, going.label, going.start, going.starts) == (("Cd",), "gamma", 2, 3)
    assert (going.iteration, going.log_posterior, going.total) == (4, -1.5, 3)
    assert [e.seconds for e in heard] == sorted(e.seconds for e in heard)
    assert heard[-1].names == ("Cd", "Ni")


def test_an_exception_is_told_and_goes_on():
    """The last event says that it stopped; nothing is told afterwards."""
    heard = []
    with pytest.raises(KeyboardInterrupt), told("fit", heard.append) as run:
        raise KeyboardInterrupt
    assert [e.state for e in heard] == ["begin", "stop"]
    run.tell("alone", "go", names=("Cd",))
    run.end("end")
    assert len(heard) == 2


def test_without_a_listener_steps_are_counted_only():
    """An interrupted fit says how many were done."""
    with told("fit", None) as run, run.step("alone", ("Cd",)):
        pass
    assert run.done == 1
    UNHEARD.tell("go")


def test_a_listener_hears_one_event_at_a_time():
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
            with run.step("alone", ("Cd",), "gamma") as step:
                step.tell("go", iteration=k)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert len(heard) == 8 * 50 * 3
    assert run.done == 400


def test_a_listener_may_cause_an_event():
    """It is not locked out by itself."""
    heard = []

    def listener(event):
        heard.append(event.what)
        if event.what == "alone":
            run.compiles("fill")

    run = Run("fit", listener)
    run.tell("alone", "go", names=("Cd",))
    assert heard == ["alone", "compile"]


def test_a_compilation_does_not_wait_for_a_listener():
    """It holds the compiler's lock, for which the listener may be waiting."""
    heard, entered, leave = [], threading.Event(), threading.Event()

    def listener(event):
        heard.append(event.what)
        entered.set()
        leave.wait(10.0)

    run = Run("fit", listener)
    other = threading.Thread(target=run.tell, args=("alone", "go"))
    other.start()
    assert entered.wait(10.0)
    run.compiles("fill")
    leave.set()
    other.join()
    assert heard == ["alone"]


def test_cells_have_an_expected_time(monkeypatch):
    """It is that of the cells that are left, at the pace since they were begun."""
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


def test_what_is_left_of_an_estimate(monkeypatch):
    """Steps tell it while there is something left; what has ended tells nothing of it."""
    clock = iter([0.0, 1.0, 4.0, 5.0, 11.0, 12.0])
    monkeypatch.setattr("xcopula.progress.run.time.monotonic", lambda: next(clock))
    heard = []
    run = Run("fit", heard.append)
    run.tell("fit", "begin")
    run.expect(10.0)
    run.tell("alone", "begin", names=("Cd",), label="gamma")
    run.tell("alone", "end", names=("Cd",), label="gamma")
    run.tell("pair", "go", names=("Cd", "Ni"))
    assert [e.expected for e in heard] == [None, 6.0, None, None]
    assert "about 0:06 to go" in str(heard[1])
