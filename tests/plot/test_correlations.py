"""Panels of correlograms: where they stand, what they say, what they show."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from looks import check_looks
from matplotlib.figure import Figure

import xcopula
from xcopula.model.correlations import Correlogram, correlograms
from xcopula.plot.correlations import _distance_label, correlation_panels


def test_panels_show_the_correlograms(triple):
    figure = correlation_panels(triple, bins=5)
    found = correlograms(triple, [0, 1, 2], bins=5)
    titles = [ax.get_title("left") for ax in figure.axes]
    assert titles == ["metal", "proxy", "other", "metal and proxy", "metal and other"]
    for ax, each in zip(figure.axes, found, strict=True):
        lines = {line.get_label(): line for line in ax.lines}
        np.testing.assert_array_equal(lines["fitted"].get_xydata().T, each.curve)
        np.testing.assert_array_equal(lines["empirical"].get_ydata(), each.empirical)
        assert ax.get_xlabel() == "distance, km"
        assert ax.get_ylim() == figure.axes[0].get_ylim()
    check_looks(figure)


def test_a_pair_stands_below_its_secondary(triple):
    figure = correlation_panels(triple, bins=5)
    where = {ax.get_title("left"): ax.get_subplotspec() for ax in figure.axes}
    assert where["metal and other"].colspan == where["other"].colspan
    assert where["metal and other"].rowspan.start == 1


def test_marks_at_zero_are_for_common_sites(triple):
    alone, *_, pair = correlation_panels(triple, bins=5).axes
    (*_, last) = correlograms(triple, [0, 1, 2], bins=5)
    marks = [line.get_ydata()[0] for line in pair.lines if list(line.get_xdata()) == [0.0]]
    assert marks == [last.at_site[1], last.at_site[0]]
    assert not [line for line in alone.lines if list(line.get_xdata()) == [0.0]]


def test_given_axes_and_one_variable(triple):
    axes = Figure().subplots(1, 2)
    with pytest.raises(ValueError, match="`axes` must be 5 axes, one for each panel, found 2"):
        correlation_panels(triple, axes=axes)
    figure = correlation_panels(triple, "other", axes=axes[0])
    assert figure is axes[0].figure
    assert axes[0].get_title("left") == "other"
    assert axes[0].get_legend() is not None


@pytest.mark.parametrize(
    ("group", "units", "ard", "label"),
    [
        ("time", "days", {}, "lag in time, days"),
        ("height", "m", {}, "difference in height, m"),
        ("season", "days", {}, "distance in season, days"),
        ("space", "", {"x": 2.0, "y": 0.5}, "distance (1 is 2 of x, 0.5 of y)"),
    ],
)
def test_distances_are_said_with_their_units(group, units, ard, label):
    none = np.empty(0)
    count = none.astype(np.int64)
    found = Correlogram("a", "a", group, units, ard, "", none, none, none, none, count, none)
    assert _distance_label(found).replace("\u00a0", " ") == label


def test_distances_in_a_metric_say_what_one_is():
    none = np.empty(0)
    one = "2 km along N 52 E, 0.5 km across"
    found = Correlogram(
        "a", "a", "space", "km", {}, one, none, none, none, none, none.astype(np.int64), none
    )
    label = _distance_label(found)
    assert label.replace("\u00a0", " ") == f"distance (1 is {one})"
    assert label.count(" ") == 1  # where a line may end


def test_long_labels_are_written_in_lines():
    """A narrow panel has no room for the lengths of two directions."""
    options = {"method": "full", "restarts": 0, "uncertainty": "plugin", "marginals": "normal"}
    data = xcopula.datasets.jura().isel(site=slice(80))
    for special in ({"anisotropy": True}, {"ard": True}):
        model = xcopula.fit(data, "Cd", "Ni", kernels="matern32", **options, **special)
        figure = correlation_panels(model, bins=5)
        assert "(1" in figure.axes[0].get_xlabel()
        check_looks(figure)
