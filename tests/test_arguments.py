"""Single arguments: whole numbers of any kind, and flags."""

from __future__ import annotations

import numpy as np
import pytest

import xcopula
from xcopula.arguments import check_flag, check_integer


@pytest.mark.parametrize("given", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_whole_numbers_of_any_kind(given):
    """A whole number of any integer type becomes a plain one."""
    found = check_integer("m", given)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize(
    "odd", [True, False, np.True_, 2.5, 3.0, "3", None, [3], np.array([3, 4]), 1j, float("nan")]
)
def test_what_is_no_whole_number(odd):
    """The message names the argument and what was found."""
    with pytest.raises(TypeError, match="`m` must be an integer, found"):
        check_integer("m", odd)


@pytest.mark.parametrize(("given", "least"), [(0, 1), (-1, 0), (4, 5), (-(10**30), 0)])
def test_too_small(given, least):
    """The message says the least that may be."""
    with pytest.raises(ValueError, match=f"`m` must be at least {least}, found {given}"):
        check_integer("m", given, least=least)


def test_the_least_itself_is_enough():
    """Zero is by default, and any number that is named."""
    assert check_integer("m", 0) == 0
    assert check_integer("m", -2, least=-2) == -2
    assert check_integer("m", 10**30) == 10**30


@pytest.mark.parametrize("given", [True, False, np.True_, np.False_])
def test_flags(given):
    """True and False, also numpy's, become plain ones."""
    found = check_flag("tiles", given)
    assert type(found) is bool
    assert found == bool(given)


@pytest.mark.parametrize("odd", [1, 0, None, "yes", [], [True], np.array([True]), 1.0])
def test_what_is_no_flag(odd):
    """What is only taken for true elsewhere is refused by name."""
    with pytest.raises(TypeError, match="`tiles` must be True or False, found"):
        check_flag("tiles", odd)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, m: xcopula.fit(d, "metal", kernel="se"), "`fit` .* mean `kernels`"),
        (lambda d, m: d.mtcopula.fit("metal", kernel="se"), "`fit` .* mean `kernels`"),
        (lambda d, m: xcopula.compare(d, "metal", kernel="se"), "`compare` .* mean `kernels`"),
        (lambda d, m: xcopula.cross_validate(d, "metal", kernel="se"), "mean `kernels`"),
        (lambda d, m: xcopula.predict(m, d, quantile=0.5), "`predict` .* mean `quantiles`"),
        (lambda d, m: m.predict(d, quantile=0.5), "`predict` .* mean `quantiles`"),
        (lambda d, m: m.posterior(d).area_mean(weigths=d), "mean `weights`"),
        (lambda d, m: m.condition(d, replaces=True), "mean `replace`"),
        (lambda d, m: m.design(d, 2, masks=d), "mean `mask`"),
        (lambda d, m: m.plot.correlations(axis=3), "has no option 'axis'"),
        (lambda d, m: xcopula.load("m.nc", law={}), "mean `laws`"),
        (lambda d, m: m.loo(zzz=1), r"no option 'zzz'\. It takes variable, buffer, most\."),
    ],
)
def test_an_option_that_is_misspelt(sites, model, call, message):
    """Every public function that takes options suggests the name that was meant."""
    with pytest.raises(TypeError, match=message):
        call(sites, model)
