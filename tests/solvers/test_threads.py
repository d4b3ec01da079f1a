"""Threads: how many there are, and what becomes of their results and errors."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from xcopula.solvers.threads import in_threads, thread_count


class TestCount:
    @pytest.mark.parametrize("asked", [1, 3, 17])
    def test_the_environment_says_it(self, monkeypatch, asked):
        """``OMP_NUM_THREADS`` is obeyed, as BLAS obeys it."""
        monkeypatch.setenv("OMP_NUM_THREADS", str(asked))
        assert thread_count() == asked

    @pytest.mark.parametrize("odd", ["", "0", "-2", "many", "2.5", "4,2"])
    def test_what_is_no_number_is_passed_over(self, monkeypatch, odd):
        """It is then as if nothing had been said."""
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        expected = thread_count()
        monkeypatch.setenv("OMP_NUM_THREADS", odd)
        assert thread_count() == expected

    def test_else_the_cores_that_the_process_may_use(self, monkeypatch):
        """Fewer than the machine has, where some are taken from the process."""
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4, 5}, raising=False)
        assert thread_count() == 3

    def test_else_all_cores(self, monkeypatch):
        """Where the system does not tell which cores are free; one at least."""
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: 6)
        assert thread_count() == 6
        monkeypatch.setattr(os, "cpu_count", lambda: None)
        assert thread_count() == 1


class TestInThreads:
    def test_results_keep_the_order_of_the_pieces(self):
        """Also where the first piece is the last to end."""

        def slow(k):
            time.sleep(0.02 * (4 - k))
            return 10 * k

        assert in_threads(slow, range(5)) == [0, 10, 20, 30, 40]

    def test_pieces_run_at_once(self, monkeypatch):
        """Each waits for all the others: one after the other they would never end."""
        monkeypatch.setenv("OMP_NUM_THREADS", "4")
        barrier = threading.Barrier(4, timeout=10.0)
        in_threads(lambda _: barrier.wait(), range(4))

    def test_one_piece_needs_no_thread(self):
        """It runs where it is called."""
        assert in_threads(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]

    def test_one_budget_for_all(self, monkeypatch):
        """Nested calls, and calls from threads of others, never use more threads than there are."""
        monkeypatch.setenv("OMP_NUM_THREADS", "4")
        working, most, lock = 0, 0, threading.Lock()

        def work(_):
            nonlocal working, most
            with lock:
                working += 1
                most = max(most, working)
            time.sleep(0.005)
            with lock:
                working -= 1

        def nested(_):
            in_threads(work, range(4))

        in_threads(nested, range(4))
        assert most == 4
        most = 0
        in_threads(nested, range(2))
        assert 2 < most <= 4
        most = 0
        with ThreadPoolExecutor(3) as dask:
            list(dask.map(nested, range(9)))
        # The first caller takes the whole budget, the two others their own thread.
        assert most <= 4 + 2
        assert len(set(in_threads(lambda _: threading.get_ident(), range(8)))) <= 4

    @pytest.mark.parametrize("pieces", [[3], [0, 1, 2, 3], [3, 3]])
    def test_an_error_is_raised(self, pieces):
        """An error of any piece comes to the caller, whatever the others do."""

        def fails(k):
            if k == 3:
                raise KeyError("piece three")
            return k

        with pytest.raises(KeyError, match="piece three"):
            in_threads(fails, pieces)
