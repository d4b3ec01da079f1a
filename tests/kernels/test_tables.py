"""Tabulated correlations: interpolation error, range and derivatives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from xcopula.jit.pairs import interpolate
from xcopula.kernels import KERNELS
from xcopula.kernels.convolution import cross_profile
from xcopula.kernels.hermite import cubic, quintic
from xcopula.kernels.tables import CELLS, cross_tables, same_table

PAIRS = list(product(KERNELS, repeat=2))
every = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
pairs = pytest.mark.parametrize(("first", "second"), PAIRS, ids=map("-".join, PAIRS))


def look_up(table, span, r):
    """Read a table, of quintics or cubics, at distances r."""
    wide = np.zeros((len(table), 6))
    wide[:, : table.shape[1]] = table
    out = np.empty(r.size)
    interpolate(r**2, 1.0 / span, wide, out)
    return out


def distances(span, seed=0):
    """Draw distances over the range, uniform and over eight decades."""
    rng = np.random.default_rng(seed)
    return span * np.r_[rng.uniform(size=400), 10 ** rng.uniform(-8.0, 0.0, size=1600)]


@every
def test_same_task_table(kernel):
    """A same-task table gives the closed form of its kernel, to 1e-12."""
    r = distances(kernel.reach)
    np.testing.assert_allclose(
        look_up(same_table(kernel), kernel.reach, r), kernel.profile(r)[0], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_cross_table(first, second, dimension):
    """A cross table is within 1e-10 of the exact value for length ratios up to 50."""
    first, second = KERNELS[first], KERNELS[second]
    for ratio in (1.0, 1.3, 4.0, 15.0, 50.0):
        l1, l2 = 0.02, 0.02 * ratio
        span = max(first.reach * l1, second.reach * l2)
        r = distances(span)
        table, _ = cross_tables(first, second, l1, l2, dimension, span)
        exact = cross_profile(first, second, l1, l2, dimension, r).value
        np.testing.assert_allclose(
            look_up(table, span, r), exact, rtol=0, atol=1e-10, err_msg=f"ratio {ratio}"
        )


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pairs
def test_sensitivity_table(first, second, dimension):
    """The derivative by the first log length is tabulated to 1e-6 for length ratios up to 10."""
    first, second = KERNELS[first], KERNELS[second]
    for l1, l2 in [(0.2, 0.2), (0.2, 0.5), (0.1, 1.0), (1.0, 0.1)]:
        span = max(first.reach * l1, second.reach * l2)
        r = distances(span)
        _, table = cross_tables(first, second, l1, l2, dimension, span)
        exact = cross_profile(first, second, l1, l2, dimension, r).by_first
        np.testing.assert_allclose(look_up(table, span, r), exact, rtol=0, atol=1e-6)


@every
def test_zero_beyond_the_range(kernel):
    """Past its range a table is exactly zero, and it ends without a step."""
    r = kernel.reach * np.array([1.0 - 1e-12, 1.0 + 1e-12, 1.5, 1e6])
    value = look_up(same_table(kernel), kernel.reach, r)
    assert (value[1:] == 0.0).all()
    assert 0.0 <= value[0] < 1e-16


@pairs
def test_exact_at_zero_distance(first, second):
    """At r = 0 a table returns the cross-correlation itself, to the last bit."""
    first, second = KERNELS[first], KERNELS[second]
    table, _ = cross_tables(first, second, 0.3, 0.5, 2, 30.0)
    exact = cross_profile(first, second, 0.3, 0.5, 2, np.zeros(1)).value
    assert look_up(table, 30.0, np.zeros(1)) == pytest.approx(exact, rel=1e-15)


def test_tables_are_made_once_for_each_kernel():
    """Same-task tables depend on the family alone and are kept."""
    assert same_table(KERNELS["se"]) is same_table(KERNELS["se"])
    assert same_table(KERNELS["se"]).shape == (CELLS + 1, 6)


@pytest.mark.parametrize(("rule", "order"), [(quintic, 5), (cubic, 3)])
def test_hermite_reproduces_polynomials(rule, order):
    """Quintic pieces reproduce a quintic, cubic ones a cubic, to 1e-13."""
    p = np.polynomial.Polynomial([0.3, -1.0, 2.0, 0.7, -0.4, 0.9][: order + 1])
    s = np.linspace(0.0, 1.0, 9)
    derivatives = [p.deriv(k)(s) if k else p(s) for k in range((order + 1) // 2)]
    table = rule(*derivatives)
    x = np.linspace(0.0, 0.999, 50)
    cell, u = np.divmod(8.0 * x, 1.0)
    value = [
        np.polynomial.Polynomial(c)(v) for c, v in zip(table[cell.astype(int)], u, strict=True)
    ]
    np.testing.assert_allclose(value, p(x), rtol=0, atol=1e-13)
    assert (table[-1] == 0.0).all()
