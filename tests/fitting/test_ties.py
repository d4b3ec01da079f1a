"""Zeros under methods that take numbers only, and heaps that are limits: said before any work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.errors import MarginalWarning, SupportError
from xcopula.fitting.alone import Alone
from xcopula.fitting.ties import _is_heap
from xcopula.methods import Sparse

FITC = Sparse("fitc", inducing=12)
QUICK = {"kernels": "matern32", "restarts": 0, "uncertainty": "plugin", "anisotropy": False}


def field(values, **attrs) -> xr.Dataset:
    """Values at random places, with a height."""
    rng = np.random.default_rng(1)
    n = len(values)
    return xr.Dataset(
        {"v": ("site", values, attrs)},
        coords={
            "x": ("site", rng.uniform(0.0, 9.0, n), {"units": "km"}),
            "y": ("site", rng.uniform(0.0, 9.0, n), {"units": "km"}),
            "h": ("site", rng.normal(size=n)),
        },
    )


@pytest.fixture
def no_work(monkeypatch):
    """Let no step of a fit begin."""

    def work(*_, **__):
        raise RuntimeError("work began")

    monkeypatch.setattr(Alone, "fit", work)


RAIN = np.random.default_rng(0).gamma(1.5, 3.0, 60)
DRY = np.where(np.arange(60) % 5 == 0, 0.0, RAIN)


def test_what_stands_for_a_censored_value_is_no_heap():
    """Zeros below a limit are computed with as half of it, a number that is not in the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginalWarning)
        xcopula.fit(field(DRY), "v", censored={"v": 0.1}, **QUICK)


class TestZeros:
    """Of a variable of the default law, by a method that takes numbers only."""

    def test_they_are_values_like_others(self):
        """It is said before, and the law goes on below zero."""
        says = r"'v': 12 of 60 values are 0\. method='fitc' takes numbers only, .*method='full'"
        with pytest.warns(MarginalWarning, match=says):
            model = xcopula.fit(field(DRY), "v", method=FITC, **QUICK)
        assert model.marginals["v"].atom is None
        assert model.marginals["v"].name == "flexible"
        assert model.marginals["v"].support[0] < 0.0

    def test_of_a_recipe(self):
        """Whose family is the default one."""
        law = xcopula.regress("auto", on="h")
        with pytest.warns(MarginalWarning, match="12 of 60 values are 0"):
            model = xcopula.fit(field(DRY), "v", marginals=law, method=FITC, **QUICK)
        assert model.marginals["v"].atom is None

    @pytest.mark.usefixtures("no_work")
    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            (
                {"support": (0, None)},
                SupportError,
                r"12 of 60 values are 0, which this law .*'full'",
            ),
            (
                {"marginals": "gamma"},
                SupportError,
                r"12 of 60 values are 0, which this law .*'bcm'",
            ),
            (
                {"marginals": xcopula.regress("auto", on="h", link="log")},
                SupportError,
                r"'v': 12 of 60 .* without link='log'",
            ),
        ],
    )
    def test_refused_before_any_work(self, options, error, match):
        """Where the law does not hold them."""
        with pytest.raises(error, match=match):
            xcopula.fit(field(DRY), "v", method=FITC, **QUICK | options)

    @pytest.mark.usefixtures("no_work")
    def test_nothing_is_said_where_nothing_changes(self):
        """With laws of all numbers, with no zeros, and by other methods."""
        for values, options in (
            (DRY, {"method": FITC, "marginals": "normal"}),
            (RAIN, {"method": FITC}),
            (DRY, {"method": "full"}),
            (DRY, {"method": FITC, "support": (None, None)}),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(RuntimeError, match="work began"):
                    xcopula.fit(field(values), "v", **QUICK | options)
        # a negative value: other advice
        negative = np.where(np.arange(60) == 1, -1.0, DRY)
        with pytest.raises(SupportError, match="needs positive values: 13 of 60"):
            xcopula.fit(field(negative), "v", marginals="gamma", method=FITC, **QUICK)


@pytest.mark.usefixtures("no_work")
class TestHeaps:
    """At an end of the values of a variable of the default law."""

    def fit(self, values, **options):
        """Begin a fit, which goes no further."""
        with pytest.raises(RuntimeError, match="work began"):
            xcopula.fit(field(values), "v", **QUICK | options)

    def test_a_detection_limit(self):
        """It is named, with what to say."""
        says = (
            r"'v': 9 of 60 values are exactly 1, the smallest\. If they mean '1 or less', say so: "
            r"`censored=\{'v': 1\}`"
        )
        values = np.where(np.argsort(np.argsort(RAIN)) < 9, 1.0, RAIN + 1.0)
        with pytest.warns(MarginalWarning, match=says):
            self.fit(values)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.fit(values, censored={"v": 1.0})
            self.fit(values, marginals="gamma")

    def test_a_saturated_instrument(self):
        """A pair says that values are above it."""
        says = (
            r"exactly 7, the largest\. If they mean '7 or more', .*`censored=\{'v': \(7, None\)\}`"
        )
        values = np.minimum(RAIN, 7.0)
        with pytest.warns(MarginalWarning, match=says):
            self.fit(values)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.fit(values, censored={"v": (7.0, None)})

    def test_zeros_are_none(self):
        """They are values at or below zero; but not where zero is a convention."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.fit(DRY)
        ds = field(DRY, units="degC")
        with (
            pytest.warns(MarginalWarning, match="exactly 0, the smallest"),
            pytest.raises(RuntimeError, match="work began"),
        ):
            xcopula.fit(ds, "v", **QUICK)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: np.round(3.0 * rng.normal(size=n)),
        lambda rng, n: np.round(rng.gamma(2.0, 2.0, n), 1),
        lambda rng, n: np.ceil(rng.exponential(1.5, n)),
        lambda rng, n: rng.poisson(3.0, n) + 1.0,
        lambda rng, n: np.round(rng.uniform(0.0, 10.0, n)),
        lambda rng, n: np.maximum(np.round(rng.lognormal(1.0, 1.0, n)), 1.0),
        lambda rng, n: rng.lognormal(0.0, 1.0, n),
    ],
)
def test_rounded_values_are_no_heap(draw):
    """At most one sample of a hundred is taken for one, small or large."""
    for size in (40, 100, 1000):
        found = 0
        for seed in range(100):
            values = draw(np.random.default_rng(seed), size)
            counts = np.unique(values, return_counts=True)[1]
            found += _is_heap(counts) or _is_heap(counts[::-1])
        assert found <= 1


def test_limits_of_rounded_values_are_a_heap():
    """A limit that 15 % are below, of values with two digits."""
    found = 0
    for seed in range(100):
        values = np.random.default_rng(seed).lognormal(0.0, 1.0, 100)
        values = np.round(np.maximum(values, np.quantile(values, 0.15)), 2)
        found += _is_heap(np.unique(values, return_counts=True)[1])
    assert found >= 98
    assert not _is_heap(np.array([50]))
    assert _is_heap(np.array([6, 1, 1, 1, 1]))
    assert not _is_heap(np.array([6, 2, 1, 1, 1]))
