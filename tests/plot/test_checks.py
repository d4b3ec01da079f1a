"""Predictions beside observations: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

from looks import check_looks

from xcopula.plot.checks import loo_scatter, reliability_diagram


@pytest.fixture
def loo() -> xr.Dataset:
    """Four observations, one above its band, and a gap."""
    columns = {
        "observed": [1.0, 2.0, 9.0, 4.0, np.nan],
        "median": [1.5, 2.0, 3.0, 3.5, np.nan],
        "lower": [0.5, 1.0, 2.0, 2.5, np.nan],
        "upper": [2.5, 3.0, 4.0, 4.5, np.nan],
        "crps": [0.1, 0.2, 3.0, 0.1, np.nan],
    }
    return xr.Dataset({name: ("observation", values) for name, values in columns.items()})


class TestLoo:
    def test_dots_are_observed_against_predicted(self, loo):
        (ax,) = loo_scatter(loo, "mm").axes
        inside, outside = ax.lines[:2]
        np.testing.assert_array_equal(inside.get_xydata(), [[1.5, 1.0], [2.0, 2.0], [3.5, 4.0]])
        np.testing.assert_array_equal(outside.get_xydata(), [[3.0, 9.0]])
        assert ax.get_ylabel() == "observed, mm"
        check_looks(ax.figure)

    def test_bars_are_the_bands(self, loo):
        (ax,) = loo_scatter(loo, "").axes
        segments = np.array(ax.collections[0].get_segments())
        np.testing.assert_array_equal(segments[2], [[3.0, 2.0], [3.0, 4.0]])
        assert len(segments) == 4
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["90 % band", "within: 75 %", "outside: 25 %"]
        assert ax.texts[0].get_text() == "mean absolute error 1.75\nCRPS 0.85"

    def test_any_dims_are_drawn(self, loo):
        """A panel of stations and dates is the same picture as a list of observations."""
        (flat,) = loo_scatter(loo, "").axes
        stacked = loo.isel(observation=slice(4)).expand_dims(time=1)
        (ax,) = loo_scatter(stacked, "").axes
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), flat.lines[0].get_xydata())

    def test_intervals_are_lines(self, loo):
        """From one limit to the other, counted as their PIT says, and without an error."""
        limited = loo.assign(
            observed_lower=loo["observed"].copy(data=[1.0, -np.inf, 9.0, 4.0, np.nan]),
            observed_upper=loo["observed"].copy(data=[1.0, 0.5, 9.0, np.inf, np.nan]),
            pit=loo["observed"].copy(data=[0.5, 0.01, 0.999, 0.6, np.nan]),
        )
        (ax,) = loo_scatter(limited, "").axes
        inside, outside = ax.lines[:2]
        np.testing.assert_array_equal(inside.get_xydata(), [[1.5, 1.0]])
        np.testing.assert_array_equal(outside.get_xydata(), [[3.0, 9.0]])
        _, good, bad = (np.array(c.get_segments()) for c in ax.collections)
        assert good[0, 0].tolist() == [3.5, 4.0]
        assert good[0, 1, 1] > ax.get_ylim()[1]
        assert bad[0, 1].tolist() == [2.0, 0.5]
        assert bad[0, 0, 1] < ax.get_ylim()[0]
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["90 % band", "within: 50 %", "outside: 50 %", "an interval"]
        assert ax.texts[0].get_text() == "mean absolute error of the 2 numbers 3.25\nCRPS 0.85"
        check_looks(ax.figure)


class TestReliability:
    def test_dots_are_frequencies_of_classes(self):
        probability = np.array([0.05, 0.15, 0.15, 0.95, 1.0])
        happened = np.array([False, True, False, True, True])
        figure = reliability_diagram(probability, happened, 10)
        ax = figure.axes[0]
        dots = next(line for line in ax.lines if line.get_label() == "observed")
        np.testing.assert_allclose(dots.get_xdata(), [0.05, 0.15, 0.975])
        np.testing.assert_allclose(dots.get_ydata(), [0.0, 0.5, 1.0])
        inset = ax.child_axes[0]
        np.testing.assert_array_equal(
            [bar.get_height() for bar in inset.patches], [1, 2, 0, 0, 0, 0, 0, 0, 0, 2]
        )
        check_looks(figure)

    def test_bars_hold_nine_tenths_of_reliable_dots(self):
        rng = np.random.default_rng(0)
        inside = []
        for _ in range(20):
            p = rng.uniform(size=400)
            ax = reliability_diagram(p, rng.uniform(size=400) < p, 10).axes[0]
            dots = next(line for line in ax.lines if line.get_label() == "observed")
            bars = np.array(ax.collections[0].get_segments())[:, :, 1]
            y = dots.get_ydata()
            inside += [(bars[:, 0] - 1e-9 <= y) & (y <= bars[:, 1] + 1e-9)]
        assert np.mean(inside) == pytest.approx(0.9, abs=0.06)
