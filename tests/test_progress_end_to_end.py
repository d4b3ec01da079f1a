"""Fits and predictions tell what they do, to whom it was asked, and to nobody else."""

from __future__ import annotations

import io
import logging
import threading
from dataclasses import dataclass

import numba
import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.prediction import blocks
from xcopula.progress import Event, to_logger, to_terminal
from xcopula.solvers import Exact

FIXED = {"marginals": "normal", "kernels": "matern32", "restarts": 0, "coupling": "icm"}
FIXED |= {"anisotropy": False, "uncertainty": "plugin"}


def steps(events: list[Event]) -> list[tuple]:
    """Return what began, without iterations and compilations."""
    return [
        (e.what, e.names, e.label) for e in events if e.state == "begin" and e.what != "compile"
    ]


class TestFit:
    def test_a_single_variable(self, sites):
        """Alone, which is where all parameters start, whatever is compared there."""
        for options, kernels in ((FIXED, 1), (FIXED | {"kernels": {"se", "matern12"}}, 2)):
            heard = []
            model = xcopula.fit(sites, "metal", progress=heard.append, **options)
            assert steps(heard) == [
                ("fit", ("metal",), ""),
                ("alone", ("metal",), ""),
                ("together", ("metal",), ""),
            ]
            assert len(model.alternatives) == (0 if kernels == 1 else kernels)
            assert (heard[-1].what, heard[-1].state) == ("fit", "end")
            assert heard[-1].done == heard[-1].total == 2

    def test_the_full_model(self, trio):
        """Variables one after the other, then together; starts and iterations are numbered."""
        heard = []
        options = FIXED | {"method": "full", "restarts": 2}
        model = xcopula.fit(trio, "metal", ["proxy", "other"], progress=heard.append, **options)
        names = ("metal", "proxy", "other")
        assert steps(heard) == [
            ("fit", names, ""),
            *(("alone", (name,), "") for name in names),
            ("together", names, ""),
        ]
        going = [e for e in heard if (e.what, e.state) == ("together", "go")]
        assert {(e.start, e.starts) for e in going} == {(1, 3), (2, 3), (3, 3)}
        assert {e.done for e in going} == {3}
        assert {e.total for e in going} == {4}
        weak = model.process.log_prior(model.theta)[0]
        assert max(event.log_posterior for event in going) == pytest.approx(
            model.log_likelihood + weak, abs=1e-6
        )
        final = [e.iteration for e in going if e.start == going[-1].start]
        assert final[0] == 1
        assert final[-1] > 1

    def test_a_transductive_model(self, trio):
        """Steps run side by side; each begins before it ends, pairs after all variables."""
        heard = []
        names = ("metal", "proxy", "other")
        xcopula.fit(trio, "metal", names[1:], progress=heard.append, **FIXED)
        found = steps(heard)
        assert found[0] == ("fit", names, "")
        assert sorted(found[1:4]) == sorted(("alone", (n,), "") for n in names)
        assert sorted(found[4:6]) == [("pair", ("metal", n), "") for n in ("other", "proxy")]
        assert found[6:] == [("together", names, "")]
        assert [e.done for e in heard] == sorted(e.done for e in heard)
        assert heard[-1].done == heard[-1].total == 6
        for what, names, label in found[1:]:
            mine = [e.state for e in heard if (e.what, e.names, e.label) == (what, names, label)]
            assert mine[0] == "begin"
            assert mine[-1] == "end"
            assert set(mine[1:-1]) == {"go"}

    def test_progress_changes_nothing(self, trio):
        """The model is the same to the last bit."""
        silent, heard = (
            xcopula.fit(trio, "metal", "proxy", method="full", progress=progress, **FIXED)
            for progress in (False, lambda event: None)
        )
        np.testing.assert_array_equal(heard.theta, silent.theta)
        assert heard.evaluations == silent.evaluations

    def test_no_listener_no_events(self, trio, monkeypatch):
        """Without a listener there are no events: what is left is a call for each iteration."""
        made = []
        monkeypatch.setattr(
            "xcopula.progress.run.Event", lambda *a, **o: made.append(Event(*a, **o))
        )
        model = xcopula.fit(trio, "metal", ["proxy", "other"], progress=False, **FIXED)
        model.predict(trio, progress=False)
        assert not made
        xcopula.fit(trio, "metal", progress=lambda event: None, **FIXED)
        assert made

    def test_events_are_few(self, trio):
        """One for each iteration, two for each step: no more than evaluations of likelihoods."""
        heard = []
        options = FIXED | {"method": "full"}
        model = xcopula.fit(trio, "metal", "proxy", progress=heard.append, **options)
        together = [e for e in heard if e.what == "together"]
        going = [e.iteration for e in together if e.state == "go"]
        assert going == list(range(1, len(going) + 1))
        assert len(together) == len(going) + 2
        assert len(going) < model.evaluations

    def test_a_listener_that_fails_ends_the_fit(self, trio):
        """Its error is not swallowed, in whichever thread it happens."""

        def fail(event):
            if event.what == "pair":
                raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError, match="mine"):
            xcopula.fit(trio, "metal", ["proxy", "other"], progress=fail, **FIXED)

    def test_it_is_checked_before_any_work(self, sites):
        """As every option is."""
        with pytest.raises(TypeError, match=r"`progress` must be True, False, None or a function"):
            xcopula.fit(sites, "metal", progress="yes")


class TestShown:
    @pytest.mark.parametrize("progress", [None, False])
    def test_a_script_is_silent(self, trio, capfd, progress):
        """By default, and when it is told so."""
        model = xcopula.fit(trio, "metal", ["proxy"], progress=progress, **FIXED)
        model.predict(trio, progress=progress)
        assert capfd.readouterr() == ("", "")

    def test_a_script_that_asks_gets_lines(self, trio, capsys):
        """On standard error."""
        xcopula.fit(trio, "metal", ["proxy"], progress=True, **FIXED)
        out, err = capsys.readouterr()
        assert out == ""
        lines = [line for line in err.splitlines() if not line.startswith("compiling")]
        assert len(lines) == 5  # two variables, a pair, all together, the end
        assert lines[-1].startswith("fit done, 4 of 4 steps")

    def test_a_terminal_is_left_clean(self, trio, monkeypatch):
        """Steps that run in threads share one line."""
        monkeypatch.setattr("xcopula.progress.displays._PATIENCE", 0.0)

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        out = Terminal()
        show = to_terminal(out)
        threads = set()

        def listen(event):
            threads.add(threading.current_thread().name)
            show(event)

        xcopula.fit(trio, "metal", ["proxy", "other"], progress=listen, **FIXED)
        text = out.getvalue()
        assert len(threads) > 1
        assert "steps done: " in text
        assert "\n" not in text
        assert text.rpartition("\r")[0].rpartition("\r")[2].strip() == ""

    def test_a_logger(self, trio, caplog):
        """One message for each step."""
        with caplog.at_level(logging.INFO, "mine"):
            xcopula.fit(trio, "metal", ["proxy"], progress=to_logger("mine"), **FIXED)
        said = [r.getMessage() for r in caplog.records if r.name == "mine"]
        assert any("metal with proxy" in line for line in said)
        assert said[-1].startswith("fit done, 4 of 4 steps")


class TestLazyFit:
    def test_is_refused_until_it_runs(self, trio):
        """With what to do; None and False are fine."""
        with pytest.raises(ValueError, match=r"compute=False.*model\.compute\(progress=True\)"):
            xcopula.fit(trio, "metal", ["proxy"], compute=False, progress=True, **FIXED)
        xcopula.fit(trio, "metal", ["proxy"], compute=False, progress=False, **FIXED)

    @pytest.mark.parametrize("scheduler", ["threads", "sync"])
    def test_compute_tells(self, trio, scheduler):
        """The same steps; how many there are is not known."""
        heard = []
        lazy = xcopula.fit(trio, "metal", ["proxy"], compute=False, **FIXED)
        lazy.compute(progress=heard.append, scheduler=scheduler)
        assert {what for what, _, _ in steps(heard)} == {"fit", "alone", "pair", "together"}
        assert (heard[-1].state, heard[-1].done, heard[-1].total) == ("end", 4, 0)
        silent = len(heard)
        lazy.compute(scheduler=scheduler)
        assert len(heard) == silent

    def test_the_graph_does_not_know_of_it(self, trio):
        """A cluster that has the model finds it, whoever listened."""
        first, second = (
            xcopula.fit(trio, "metal", ["proxy"], compute=False, progress=p, **FIXED).node.key
            for p in (None, False)
        )
        assert first == second


class TestPredict:
    def test_cells_are_told(self, model, grid, monkeypatch):
        """Of the latent moments, then of the quantiles; masked cells do not count."""
        monkeypatch.setattr(blocks, "_CELLS", 10)
        heard = []
        mask = xr.ones_like(grid["x"] * grid["y"], dtype=bool)
        mask[0, 0] = False
        expected = model.predict(grid, mask=mask)
        found = model.predict(grid, mask=mask, progress=heard.append)
        xr.testing.assert_identical(found, expected)
        told = [(e.what, e.state, e.label, e.done) for e in heard if e.what != "compile"]
        cells = [10, 20, 30, 40, 41]
        assert told == [
            ("predict", "begin", "", 0),
            ("condition", "begin", "", 0),
            ("condition", "end", "", 0),
            *(("cells", "go", "latent mean and deviation", k) for k in cells),
            *(("cells", "go", "quantile", k) for k in cells),
            ("predict", "end", "", 0),
        ]
        assert {e.total for e in heard if e.what == "cells"} == {41}
        assert {e.names for e in heard} == {("metal",)}

    def test_a_posterior_tells_when_it_computes(self, model, grid):
        """And only what it computes: moments are kept."""
        heard = []
        found = model.posterior(grid, progress=heard.append)
        assert [e.what for e in heard if e.what == "cells"] == []
        found.exceedance(2.0)
        assert [e.label for e in heard if e.what == "cells"] == [
            "latent mean and deviation",
            "exceedance",
        ]
        heard.clear()
        found.mean()
        assert [e.label for e in heard if e.what == "cells"] == ["mean"]

    def test_information_and_the_median(self, triple, grid):
        """Whatever is evaluated has a name."""
        heard = []
        found = triple.posterior(grid, progress=heard.append)
        found.information()
        assert [e.label for e in heard if e.what == "cells"] == ["information"]

    def test_a_lazy_result_tells_nothing(self, model, grid):
        """Of its cells: they are computed later, and then dask's own bar shows them."""
        heard = []
        model.predict(grid, chunks=3, progress=heard.append).compute()
        assert {e.what for e in heard} == {"predict"}

    def test_the_accessor_and_bad_values(self, model, grid):
        """The option is handed on and checked."""
        heard = []
        grid.mtcopula.predict(model, progress=heard.append)
        assert heard
        for call in (model.predict, model.posterior):
            with pytest.raises(TypeError, match=r"`progress` must be True, False, None"):
                call(grid, progress="yes")


@dataclass(frozen=True)
class Fresh(Exact):
    """The exact solver, with something that was never compiled."""

    def prepare(self, *arguments, **options):
        """Compile a function of its own."""

        def fresh(x):
            return x + 1.0

        fresh.__module__ = "xcopula.somewhere"
        numba.njit(fresh)(1.0)
        return super().prepare(*arguments, **options)


@pytest.mark.parametrize("method", ["full", "transductive"])
def test_a_fit_says_that_it_compiles(trio, method):
    """When it does, in whichever thread."""
    heard = []
    options = FIXED | {"method": method, "solver": Fresh()}
    xcopula.fit(trio, "metal", "proxy", progress=heard.append, **options)
    assert "compiling fresh for its first use, 0:0" in str(
        next(e for e in heard if e.label == "fresh")
    )
