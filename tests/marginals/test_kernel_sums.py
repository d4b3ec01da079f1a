"""Sums of kernels over a large sample, against all pairs, and how they grow."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from xcopula.marginals import Parzen, kernel_sums

RNG = np.random.default_rng(17)
# Sample and bandwidth.
CASES = {
    "one value": (np.array([3.0]), 0.5),
    "pair": (np.array([-1.0, 1.0]), 0.3),
    "five": (np.array([1.0, 2.0, 3.0, 5.0, 8.0]), 0.7),
    "one cluster": (RNG.normal(size=3000), 0.1),
    "wide kernel": (RNG.normal(size=3000), 5.0),
    "narrow kernel": (RNG.normal(size=3000), 1e-4),
    "two clusters": (np.r_[RNG.normal(size=1500), 1e3 + RNG.normal(size=1500)], 0.2),
    "ties": (np.round(RNG.gamma(1.0, 2.0, size=3000)), 0.2),
    "mostly one value": (np.r_[np.zeros(2500), RNG.normal(size=500)], 0.05),
    "outliers": (RNG.standard_cauchy(size=3000), 0.1),
    "far from zero": (280.0 + RNG.normal(size=3000), 0.1),
    "edges of cells": (np.arange(-1500, 1500) / 16.0, 0.125),
    "decreasing": (np.sort(RNG.normal(size=3000))[::-1], 0.1),
}
each = pytest.mark.parametrize(("sample", "bandwidth"), CASES.values(), ids=CASES.keys())


def all_pairs(x, sample, bandwidth):
    """Sum kernel by kernel, in lines that share nothing with the package."""
    u = (x[:, None] - sample) / bandwidth
    return ndtr(u).sum(axis=1), (np.exp(-u * u / 2.0) / np.sqrt(2.0 * np.pi)).sum(axis=1)


def points_around(sample, bandwidth):
    """Return points at the values, between them, past them, and far away."""
    low, high = sample.min(), sample.max()
    return np.r_[
        sample[:: max(1, sample.size // 200)],
        np.linspace(low - 12.0 * bandwidth, high + 12.0 * bandwidth, 300),
        np.quantile(sample, np.linspace(0.0, 1.0, 101)),
        low - 1e6 * bandwidth,
        high + 1e6 * bandwidth,
    ]


@each
def test_cells_equal_all_pairs(sample, bandwidth):
    """Both sums are right to the documented 1e-12 of n, and to 1e-10 of themselves in the body."""
    x = points_around(sample, bandwidth)
    for got, expected in zip(
        kernel_sums.sums_by_cells(x, sample, bandwidth),
        all_pairs(x, sample, bandwidth),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-12 * sample.size)
        body = expected > 0.1
        np.testing.assert_allclose(got[body], expected[body], rtol=1e-10)


@each
def test_terms_equal_all_pairs(sample, bandwidth):
    """Small samples are summed term by term."""
    x = points_around(sample, bandwidth)
    for got, expected in zip(
        kernel_sums.sums_by_terms(x, sample, bandwidth),
        all_pairs(x, sample, bandwidth),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_small_samples_take_every_term():
    """Up to 500 values the sums are those of all pairs, bit by bit."""
    x = np.linspace(-1.0, 1.0, 50)
    for size, route in [(500, kernel_sums.sums_by_terms), (501, kernel_sums.sums_by_cells)]:
        sample = RNG.normal(size=size)
        for got, expected in zip(
            kernel_sums.kernel_sums(x, sample, 0.1), route(x, sample, 0.1), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


def test_no_points():
    """No points give no sums."""
    cdf, density = kernel_sums.sums_by_cells(np.empty(0), RNG.normal(size=10), 0.1)
    assert cdf.shape == density.shape == (0,)


@pytest.mark.parametrize("size", [500, 3000])
def test_dof_equals_all_pairs(size):
    """The degrees of freedom equal their formula on both sides of the change of route."""
    sample = np.random.default_rng(size).standard_t(4.0, size=size)
    law = Parzen.fit(sample)
    h, n = law.bandwidth, sample.size
    inside = sample[(sample >= law.table.x[0]) & (sample <= law.table.x[-1])]
    total = stats.norm.pdf((inside[:, None] - sample) / h).sum(axis=1) / h
    total += stats.norm.pdf(inside, sample.mean(), 1.5 * sample.std())
    expected = (stats.norm.pdf(0.0) / h / (n * total / (n + 1))).sum() + 2.0
    assert law.dof == pytest.approx(expected, rel=1e-11)


def test_table_equals_all_pairs():
    """Knots of a large sample's table hold the scores and slopes of the sum of all kernels."""
    sample = np.random.default_rng(3).gumbel(size=5000)
    law = Parzen.fit(sample)
    cdf, density = all_pairs(law.table.x, sample, law.bandwidth)
    wide = stats.norm(sample.mean(), 1.5 * sample.std())
    cdf = (cdf + wide.cdf(law.table.x)) / 5001
    density = (density / law.bandwidth + wide.pdf(law.table.x)) / 5001
    np.testing.assert_allclose(law.table.z, stats.norm.ppf(cdf), rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(law.table.slope, density / stats.norm.pdf(law.table.z), rtol=1e-9)


def test_kernels_are_evaluated_as_often_for_any_sample(monkeypatch):
    """A sample ten times as large needs no more kernels: one for each distance of two cells."""
    counts = []

    def counted(function):
        def inner(u):
            counts[-1] += np.size(u)
            return function(u)

        return inner

    for name in ("ndtr", "log_phi"):
        monkeypatch.setattr(kernel_sums, name, counted(getattr(kernel_sums, name)))
    for size in (5000, 50_000):
        counts.append(0)
        sample = np.random.default_rng(0).uniform(size=size)
        kernel_sums.kernel_sums(sample, sample, 0.02)
    assert counts[0] == counts[1] < 200


def test_memory_grows_with_the_sample():
    """No array pairs values with values or with knots: less than 200 bytes for each value."""
    for size in (20_000, 200_000):
        sample = np.random.default_rng(1).normal(size=size)
        tracemalloc.start()
        law = Parzen.fit(sample)
        assert law.dof > 3.0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * size + 5e6
