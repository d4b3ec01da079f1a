"""Threads over sub-models: only where BLAS has none of its own, and results in order."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_limits

from xcopula.methods import parallel
from xcopula.methods.parallel import in_parallel


def where(number):
    """Return the argument and the thread that it was handled in."""
    return number, threading.get_ident()


@pytest.mark.parametrize("single", [True, False])
def test_results_come_in_order(monkeypatch, single):
    """Whether in threads or not, results stand where their arguments stood."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: single)
    assert in_parallel(lambda a, b: a - b, [(k, 2 * k) for k in range(20)]) == [
        -k for k in range(20)
    ]
    assert in_parallel(where, []) == []


def test_threads_of_blas_are_left_alone(monkeypatch):
    """Where BLAS threads itself all is done here, one after the other."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: False)
    assert {thread for _, thread in in_parallel(where, [(k,) for k in range(5)])} == {
        threading.get_ident()
    }


def test_one_task_needs_no_thread(monkeypatch):
    """A single call is made here, and BLAS is not even asked."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: pytest.fail("asked"))
    assert in_parallel(where, [(3,)]) == [(3, threading.get_ident())]


def test_several_tasks_run_at_once(monkeypatch):
    """With two processors two calls wait for each other, and both return."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: True)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    barrier = threading.Barrier(2, timeout=20.0)
    assert sorted(in_parallel(lambda k: (barrier.wait(), k)[1], [(0,), (1,)])) == [0, 1]


def test_the_environment_limits_threads(monkeypatch):
    """``OMP_NUM_THREADS`` is obeyed, whatever the machine has."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: True)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = in_parallel(where, [(k,) for k in range(5)])
    assert {thread for _, thread in found} == {threading.get_ident()}


@pytest.mark.parametrize("single", [True, False])
def test_an_error_is_raised(monkeypatch, single):
    """What goes wrong in a sub-model is not swallowed."""
    monkeypatch.setattr(parallel, "_blas_is_single", lambda: single)

    def fail(number):
        raise ValueError(f"sub-model {number}")

    with pytest.raises(ValueError, match="sub-model 0"):
        in_parallel(fail, [(0,), (1,)])


def test_limits_are_seen():
    """The question is about the limit that holds now."""
    with threadpool_limits(1, user_api="blas"):
        assert parallel._blas_is_single()
