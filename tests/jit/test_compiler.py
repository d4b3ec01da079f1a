"""The decorator of the compiled loops: caching is optional."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from xcopula.jit.compiler import compilations, compiled, vectorised


def reciprocal(x):
    return 1.0 / x


@pytest.fixture
def asked(monkeypatch):
    """Make numba refuse its cache, and list what was asked of it."""
    plain, asked = numba.njit, []

    def njit(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(numba, "njit", njit)
    return asked


def test_compiles_without_a_cache_directory(asked):
    """Where numba finds no place for its cache the function is compiled all the same."""
    assert compiled(reciprocal)(4.0) == 0.25
    assert [options.get("cache", False) for options in asked] == [True, False]


def test_options_are_the_same_with_and_without_a_cache(asked):
    """The GIL is released, and nothing runs in parallel, cache or not."""
    compiled(reciprocal)
    for options in asked:
        assert options["nogil"]
        assert not options.get("parallel", False)


def test_divides_by_zero_as_numpy_does(asked):
    """A division by zero gives infinity and no error."""
    assert compiled(reciprocal)(0.0) == np.inf


def test_sums_in_any_order_keep_what_is_no_number(asked):
    """Vector instructions do not lose NaN and infinity."""

    def total(x):
        s = 0.0
        for v in x:
            s += v
        return s

    loop = vectorised(total)
    x = np.arange(100.0)
    assert loop(x) == x.sum()
    for bad in (np.nan, np.inf, -np.inf):
        x[50] = bad
        np.testing.assert_equal(loop(x), bad)
    assert asked[-1]["fastmath"] == {"contract", "reassoc"}


class TestCompilations:
    def test_names_what_is_compiled_meanwhile(self, monkeypatch):
        """Once for each function, and only those of the package."""

        def double(x):
            return 2.0 * x

        def triple(x):
            return 3.0 * x

        monkeypatch.setattr(double, "__module__", "xcopula.somewhere")
        functions = [numba.njit(f) for f in (double, triple)]
        told = []
        with compilations(told.append):
            for function in functions * 2:
                function(1.0)
        assert told == ["double"]

    def test_ends(self, monkeypatch):
        """Afterwards nobody is told, whatever happened meanwhile."""

        def half(x):
            return 0.5 * x

        monkeypatch.setattr(half, "__module__", "xcopula.somewhere")
        told = []
        with pytest.raises(KeyError), compilations(told.append):
            raise KeyError
        numba.njit(half)(1.0)
        assert told == []
