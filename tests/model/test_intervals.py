"""What a method and its laws can take of intervals, asked before any work."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from conftest import METHODS

import xcopula
from xcopula.errors import SupportError
from xcopula.labels.censoring import rules_of
from xcopula.labels.observations import observe
from xcopula.marginals import GEV, Gamma, Normal
from xcopula.model.intervals import check_intervals


@pytest.fixture
def seen():
    """Give tests observations of one variable, of which the first lies between two limits."""

    def read(lower, upper):
        values = np.linspace(1.0, 3.0, 8)
        ends = [np.where(np.arange(8) == 0, end, np.nan) for end in (lower, upper)]
        data = xr.Dataset(
            {"a": ("x", np.where(np.arange(8) == 0, np.nan, values))}, {"x": np.arange(8.0)}
        )
        pair = tuple(xr.DataArray(end, dims="x") for end in ends)
        return observe(data, ["a"], censored=rules_of({"a": pair}, ["a"]))

    return read


@pytest.mark.parametrize("name", list(METHODS))
def test_methods_that_take_numbers_only(seen, name):
    """They refuse intervals by name, and take a sample without them."""
    method = METHODS[name]
    found = seen(-np.inf, 0.5)
    if method.intervals:
        check_intervals(found, method, [None])
        return
    with pytest.raises(ValueError, match=rf"method='{name}' takes numbers only, but 1 values of"):
        check_intervals(found, method, [None])
    check_intervals(seen(1.0, 1.0), method, [None])


def test_which_methods_take_numbers_only():
    """The sparse ones, and co-kriging."""
    names = {name for name, method in METHODS.items() if not method.intervals}
    assert names == {"dtc", "fitc", "pitc", "cokriging"}


@pytest.mark.parametrize("law", [Gamma, Gamma(2.0, 1.0), xcopula.marginals.LogNormal])
def test_limits_outside_the_support(seen, law):
    """A law of positive values has no value below zero; from below zero to above it has."""
    full = METHODS["full"]
    with pytest.raises(SupportError, match=r"'a': 1 of its limits lie outside .* and -0\.1\)"):
        check_intervals(seen(-np.inf, -0.1), full, [law])
    with pytest.raises(SupportError, match=r"from 0 to inf \(first: between -1 and 0\)"):
        check_intervals(seen(-1.0, 0.0), full, [law])
    check_intervals(seen(-0.5, 0.5), full, [law])
    check_intervals(seen(-np.inf, -0.1), full, [Normal(0.0, 1.0)])
    check_intervals(seen(-np.inf, -0.1), full, [None])


def test_limits_above_the_support(seen):
    """As those below it."""
    bounded = GEV(location=0.0, scale=1.0, shape=-0.5)
    end = bounded.support[1]
    with pytest.raises(SupportError, match="of its limits lie outside the support of the gev law"):
        check_intervals(seen(end + 1.0, np.inf), METHODS["full"], [bounded])
    check_intervals(seen(end - 1.0, np.inf), METHODS["full"], [bounded])
