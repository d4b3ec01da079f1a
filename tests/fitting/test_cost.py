"""What methods cost, from sizes alone."""

from __future__ import annotations

import inspect
import re
import time
import tracemalloc

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.errors import CostError
from xcopula.fitting.cost import Estimate, _count_alone, check_cost
from xcopula.fitting.request import Request
from xcopula.labels.observations import observe
from xcopula.methods import METHODS, Committee, Full, Sparse, Transductive
from xcopula.solvers import Exact, Neighbours
from xcopula.solvers.cost import machine_memory

SOLVER = Exact()


def asked(names=("v",), **options) -> Request:
    """Return the request of a fit with these options."""
    taken = inspect.signature(Request.of).parameters
    usual = inspect.signature(xcopula.fit).parameters.values()
    return Request.of(names, **{p.name: p.default for p in usual if p.name in taken} | options)


class TestEstimates:
    def test_exact(self):
        """Memory grows with the square and work with the cube of all values."""
        one, two = (Full().cost(SOLVER, sizes) for sizes in ([1000], [1000, 1000]))
        assert two.bytes == 4 * one.bytes
        assert two.flops == 8 * one.flops
        assert one.bytes >= 8 * 1000**2

    def test_pairwise_is_linear_in_secondaries(self):
        """Each secondary adds the same."""
        costs = [Transductive().cost(SOLVER, [1000] * t).flops for t in (2, 3, 4)]
        assert costs[2] - costs[1] == costs[1] - costs[0]
        assert Transductive().cost(SOLVER, [1000]) == Full().cost(SOLVER, [1000])

    def test_sparse_is_linear_in_values(self):
        """Twice the values take about twice the work, whether points are counted or given."""
        counted = Sparse("fitc", inducing=100)
        one, two = (counted.cost(SOLVER, [n]) for n in (10_000, 20_000))
        assert two.flops == 2 * one.flops
        given = Sparse("fitc", inducing=(np.zeros((2, 60)), np.zeros((2, 40))))
        assert given.cost(SOLVER, [10_000]) == one
        each = Sparse("fitc", inducing={"a": 60, "b": 40})
        assert each.cost(SOLVER, [10_000]) == one

    def test_committee(self):
        """Blocks cost what they cost alone."""
        four = Committee(blocks=4).cost(SOLVER, [4000])
        assert four.flops == 4 * Full().cost(SOLVER, [1000]).flops

    def test_every_method_has_one(self):
        """Each method can tell its cost before it runs."""
        for method in METHODS.values():
            cost = method.cost(SOLVER, [100, 200])
            assert cost.bytes > 0
            assert cost.hours > 0

    def test_memory_of_the_machine(self):
        """It is at least a hundred megabytes."""
        assert machine_memory() > 1e8


class TestEstimate:
    @pytest.mark.parametrize(
        ("options", "counts"),
        [
            ({}, [1, 1]),
            ({"marginals": "select"}, [7, 7]),
            ({"marginals": {"a": ["gamma", "gev"]}, "kernels": "select"}, [2 + 4 - 1, 4]),
            ({"kernels": {"a": {"se", "matern32"}, "b": "se"}}, [2, 1]),
            ({"marginals": xcopula.regress("auto", on="h")}, [1, 1]),
        ],
    )
    def test_fits_of_each_variable_alone(self, options, counts):
        """One, unless laws are selected under one kernel, then kernels under one law."""
        assert _count_alone(asked(["a", "b"], **options)) == counts

    def test_step_one_counts(self):
        """Ten fits of a small variable take most of the time; none takes none."""
        one = Estimate.of(Full(), SOLVER, [500], [1])
        ten = Estimate.of(Full(), SOLVER, [500], [10])
        assert ten.alone == pytest.approx(10 * one.alone)
        assert ten.together == one.together
        assert ten.hours == pytest.approx((ten.alone + ten.together) / 3600.0)
        assert ten.alone > ten.together
        assert Estimate.of(Full(), SOLVER, [500], [0]).alone == 0.0

    def test_step_one_sees_a_part_of_many_values(self):
        """Beyond that it costs no more, whatever the solver."""
        for solver, size in ((SOLVER, 2000), (Neighbours(), 2000)):
            some, all_ = (Estimate.of(Full(), solver, [n], [10]) for n in (size, 10 * size))
            assert some.alone == all_.alone
            assert Estimate.of(Full(), solver, [size // 2], [10]).alone < some.alone

    @pytest.mark.parametrize(
        ("estimate", "words"),
        [
            (Estimate(1.5e9, 3600.0, 3600.0), "about 1.5 GB and 2 hours"),
            (Estimate(3.21e8, 60.0, 120.0), "about 320 MB and 3 minutes"),
            (Estimate(0.0, 1.5, 2.5), "about 0 MB and 4 seconds"),
        ],
    )
    def test_words(self, estimate, words):
        """In units that keep the numbers small."""
        assert estimate.describe() == words

    def test_is_told(self, year, caplog):
        """At INFO if it takes long, both steps apart, before the fit starts."""
        few = observe(year.isel(time=slice(0, 3)), ["v"])
        many = observe(year.isel(time=slice(0, 60)), ["v"])
        with caplog.at_level("DEBUG", logger="xcopula"):
            check_cost(few, Full(), SOLVER, asked(max_hours=None))
            check_cost(many, Full(), SOLVER, asked(max_hours=None))
        said = [r for r in caplog.records if "values:" in r.getMessage()]
        assert [r.levelname for r in said] == ["DEBUG", "INFO"]
        line = said[0].getMessage()
        assert re.search(
            r"'full' on \[180\] values: about .* MB and .* seconds on one core \(each variable "
            r"alone .* seconds, all together .* seconds\)",
            line,
        )


@pytest.fixture(scope="module")
def year() -> xr.Dataset:
    """A year of daily values at 60 sites."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2001-01-01", "ns") + np.arange(365) * np.timedelta64(1, "D")
    lon, lat = rng.uniform([-5.0, 40.0], [5.0, 50.0], (60, 2)).T
    values = np.sin(lon)[:, None] + np.cos(np.arange(365) / 58.0) + rng.normal(size=(60, 365))
    return xr.Dataset(
        {"v": (("site", "time"), values)},
        coords={"lon": ("site", lon), "lat": ("site", lat), "time": days},
    )


class TestCheck:
    @pytest.mark.parametrize("method", ["full", "transductive"])
    def test_a_year_of_days_is_refused_before_it_is_allocated(self, year, method):
        """21,900 values are refused at once, with memory, time and what to do instead."""
        tracemalloc.start()
        began = time.perf_counter()
        try:
            with pytest.raises(
                CostError,
                match=rf"method='{method}' with solver='exact' on 21,900 values .* GB and .* hours."
                r" The limits are.*Use solver='neighbours', .*\(about .* seconds\); or .*"
                r"method='fitc' \(about .*\), .*inducing.*"
                r"data\.isel\(time=slice\(None, None, 7\)\).*max_hours=None",
            ):
                xcopula.fit(year, "v", method=method, solver="exact")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 200e6
        assert time.perf_counter() - began < 10.0

    def test_fewer_days_fit(self, year):
        """Every thirtieth day is a model of 13 days that is soon fitted."""
        fitted = xcopula.fit(
            year.thin(time=30),
            "v",
            marginals="normal",
            kernels="matern12",
            method="full",
            restarts=0,
        )
        assert fitted.observations.sample.size == 60 * 13
        assert fitted.converged

    def test_no_limit_passes(self, year):
        """Without a limit nothing is refused, and nothing is fitted here."""
        check_cost(observe(year, ["v"]), Full(), SOLVER, asked(max_hours=None))

    def test_the_limit_is_in_hours(self, year):
        """A small limit refuses what a large one lets pass."""
        few = observe(year.isel(time=slice(0, 30)), ["v"])
        check_cost(few, Full(), SOLVER, asked(max_hours=1000.0))
        with pytest.raises(CostError, match=r"on 1,800 values .*1e-06 hours \(`max_hours`\)"):
            check_cost(few, Full(), SOLVER, asked(max_hours=1e-6))

    def test_memory_counts_too(self, year, monkeypatch):
        """What does not fit into memory is refused, however fast it would be."""
        few = observe(year.isel(time=slice(0, 30)), ["v"])
        needed = Full().cost(SOLVER, few.sample.sizes).bytes
        # A fit may take four fifths of the memory.
        for ratio, refused in ((2.0, False), (1.26, False), (1.24, True), (1.0, True)):
            memory = ratio * needed
            monkeypatch.setattr("xcopula.fitting.cost.machine_memory", lambda memory=memory: memory)
            if refused:
                with pytest.raises(CostError, match="The limits are"):
                    check_cost(few, Full(), SOLVER, asked(max_hours=1000.0))
            else:
                check_cost(few, Full(), SOLVER, asked(max_hours=1000.0))

    @pytest.mark.parametrize(
        ("hours", "error"),
        [("1", TypeError), (True, TypeError), (0, ValueError), (-1.0, ValueError)],
    )
    def test_a_limit_that_is_none(self, year, hours, error):
        """A limit is a positive number."""
        with pytest.raises(error, match=r"`max_hours` must be .*found"):
            xcopula.fit(year, "v", max_hours=hours)

    def test_transduction_is_offered_for_several_secondaries(self, year):
        """With several secondaries the advice begins with pairs."""
        few = year.isel(time=slice(0, 60))
        data = few.assign(a=few["v"] + 1.0, b=few["v"] + 2.0)
        with pytest.raises(
            CostError, match=r"Use solver='neighbours', .*; or method='transductive', .*fitc"
        ):
            xcopula.fit(data, "v", ["a", "b"], method="full", solver="exact", max_hours=0.01)
