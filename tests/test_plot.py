"""Figures, looked at through their artists; nothing is shown on a screen."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula import plot
from xcopula.plot.panels import name_of, shown_units

matplotlib = pytest.importorskip("matplotlib")

matplotlib.use("Agg")

QUANTILES = [0.05, 0.5, 0.95]


def make_prediction(quantiles=QUANTILES, dims=("quantile", "y", "x")) -> xr.Dataset:
    y = xr.Variable("y", np.linspace(0.0, 3.0, 7), {"units": "km", "long_name": "northing"})
    x = xr.Variable(
        "x", np.linspace(1.0, 3.0, 5), {"units": "km", "long_name": "easting", "axis": "X"}
    )
    level = xr.DataArray(quantiles, dims="quantile")
    values = (1 + xr.DataArray(y) + xr.DataArray(x)) * (1 + level)
    attrs = {"units": "mg kg-1", "long_name": "cadmium concentration in topsoil"}
    cadmium = values.transpose(*dims).variable
    return xr.Dataset(
        {"Cd": (dims, cadmium.values, attrs)}, coords={"quantile": quantiles, "y": y, "x": x}
    )


def make_sites() -> xr.Dataset:
    return xr.Dataset(
        {"Cd": ("site", [1.0, np.nan, 4.0])},
        coords={"x": ("site", [1.2, 2.0, 2.5]), "y": ("site", [0.5, 1.0, 2.0])},
    )


def panels(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


class TestPredictionMap:
    def test_left_is_the_median_and_right_the_width_of_the_band(self):
        prediction = make_prediction()
        left, right = panels(plot.prediction_map(prediction))
        median = prediction["Cd"].sel(quantile=0.5).values
        width = (prediction["Cd"].sel(quantile=0.95) - prediction["Cd"].sel(quantile=0.05)).values
        np.testing.assert_allclose(left.collections[0].get_array().reshape(7, 5), median)
        np.testing.assert_allclose(right.collections[0].get_array().reshape(7, 5), width)

    def test_labels_carry_long_names_and_units(self):
        figure = plot.prediction_map(make_prediction())
        left, right = panels(figure)
        assert left.get_title("left") == "Cadmium concentration in topsoil: median"
        assert right.get_title("left") == "Width of the 90 % band"
        assert (left.get_xlabel(), left.get_ylabel()) == ("easting, km", "northing, km")
        assert [bar.get_ylabel() for bar in bars(figure)] == [
            "mg kg$^{-1}$",
            "width, mg kg$^{-1}$",
        ]
        assert left.get_aspect() == 1.0

    def test_sites_share_the_colours_of_the_median(self):
        left, right = panels(plot.prediction_map(make_prediction(), sites=make_sites()))
        mesh, dots = left.collections
        np.testing.assert_array_equal(dots.get_array(), [1.0, 4.0])
        np.testing.assert_array_equal(dots.get_offsets(), [[1.2, 0.5], [2.5, 2.0]])
        assert dots.get_clim() == mesh.get_clim()
        assert dots.get_cmap() == mesh.get_cmap()
        assert len(right.collections) == 1

    def test_mask_hides_cells(self):
        prediction = make_prediction()
        mask = prediction["x"] + 0 * prediction["y"] < 2.0
        left, right = panels(plot.prediction_map(prediction, mask=mask))
        for ax in (left, right):
            assert np.ma.count(np.ma.masked_invalid(ax.collections[0].get_array())) == 14

    def test_order_of_dims_does_not_matter(self):
        first = panels(plot.prediction_map(make_prediction()))[0]
        other = panels(plot.prediction_map(make_prediction(dims=("x", "quantile", "y"))))[0]
        np.testing.assert_array_equal(
            first.collections[0].get_array(), other.collections[0].get_array()
        )
        assert other.get_xlabel() == "easting, km"

    def test_degrees_are_stretched_at_their_latitude(self):
        prediction = make_prediction()
        prediction["y"] = xr.Variable("y", np.linspace(59, 61, 7), {"units": "degrees_north"})
        left, _ = panels(plot.prediction_map(prediction))
        assert left.get_aspect() == pytest.approx(2.0)
        assert left.get_ylabel() == "y, °"

    def test_lazy_predictions_and_constant_fields_are_drawn(self):
        prediction = make_prediction().chunk({"x": 2}) * 0 + 1
        assert len(panels(plot.prediction_map(prediction))) == 2

    def test_a_slice_says_its_date_and_shows_its_sites(self):
        times = np.array(["1985-05-01", "1985-06-01"], "M8[ns]")
        prediction = make_prediction().assign_coords(time=times[1])
        sites = xr.concat([make_sites(), make_sites() * 2], "time").assign_coords(time=times)
        left, _ = panels(plot.prediction_map(prediction, sites=sites))
        title = left.get_title("left").replace("\n", " ")
        assert title == "Cadmium concentration in topsoil: median, 1985-06-01"
        np.testing.assert_array_equal(left.collections[1].get_array(), [2.0, 8.0])

    def test_long_titles_do_not_run_into_each_other(self):
        from looks import check_looks

        prediction = make_prediction().assign_coords(time=np.datetime64("1985-05-01", "ns"))
        prediction["Cd"].attrs["long_name"] = "monthly mean of the daily maximum temperature"
        check_looks(plot.prediction_map(prediction))

    def test_points_are_drawn_as_dots(self):
        x, y = (xr.DataArray(v, dims="site") for v in ([1.0, 2.0], [0.0, 1.0]))
        at = make_prediction().sel(x=x, y=y)
        left, right = panels(plot.prediction_map(at))
        np.testing.assert_array_equal(left.collections[0].get_offsets(), [[1.0, 0.0], [2.0, 1.0]])
        np.testing.assert_allclose(
            right.collections[0].get_array(), at["Cd"].isel(quantile=2) - at["Cd"].isel(quantile=0)
        )

    def test_a_line_is_drawn_with_its_band(self):
        from matplotlib.figure import Figure

        line = make_prediction().isel(y=2)
        ax = Figure().add_subplot()
        plot.prediction_map(line, ax=ax)
        np.testing.assert_allclose(ax.lines[0].get_ydata(), line["Cd"].sel(quantile=0.5))
        assert ax.get_ylabel() == "mg kg$^{-1}$"

    def test_draws_on_given_axes_and_saves(self, tmp_path):
        from matplotlib.figure import Figure

        figure = Figure()
        axes = figure.subplots(1, 2)
        assert plot.prediction_map(make_prediction(), "Cd", ax=axes) is figure
        figure.savefig(tmp_path / "map.png")
        assert (tmp_path / "map.png").stat().st_size > 5000

    def test_does_not_change_the_prediction(self):
        prediction = make_prediction()
        plot.prediction_map(prediction, sites=make_sites())
        xr.testing.assert_identical(prediction, make_prediction())

    @pytest.mark.parametrize(
        ("prediction", "options", "match"),
        [
            (make_prediction(), {"variable": "Hg"}, r"No variable 'Hg'.*\['Cd'\]"),
            (make_prediction().assign(Zn=make_prediction()["Cd"]), {}, "several variables to draw"),
            (make_prediction().expand_dims(time=2), {}, "Select one entry along 'time'"),
            (make_prediction([0.05, 0.4, 0.95]), {}, "needs the quantile 0.5"),
            (make_prediction([0.05, 0.5]), {}, "one on each side"),
            (make_prediction(), {"sites": make_sites().drop_vars("x")}, r"lacks \['x'\]"),
            (make_prediction(), {"ax": [None]}, "two axes, found 1"),
            (make_prediction() * np.nan, {}, "Nothing to draw"),
        ],
    )
    def test_errors_say_what_to_do(self, prediction, options, match):
        with pytest.raises(ValueError, match=match):
            plot.prediction_map(prediction, **options)


class TestPitHistogram:
    def test_bars_are_relative_frequencies(self):
        pit = xr.DataArray([*np.linspace(0.01, 0.99, 100), np.nan])
        (ax,) = plot.pit_histogram(pit, bins=5).axes
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], 1.0)

    def test_dashed_lines_hold_most_bars_of_uniform_values(self):
        pit = np.random.default_rng(0).random((200, 400))
        inside = []
        for row in pit[:20]:
            (ax,) = plot.pit_histogram(row).axes
            low, high = (line.get_ydata()[0] for line in ax.lines[1:])
            inside += [low <= bar.get_height() <= high for bar in ax.patches]
        assert np.mean(inside) == pytest.approx(0.95, abs=0.04)

    @pytest.mark.parametrize(
        ("pit", "match"), [([0.5, 1.2], "0.5 to 1.2"), ([np.nan], "no finite")]
    )
    def test_errors(self, pit, match):
        with pytest.raises(ValueError, match=match):
            plot.pit_histogram(pit)


class TestMarginalQq:
    class Shifted:
        def to_normal(self, y):
            return y - 3.0

    def test_normal_data_follow_the_diagonal(self):
        values = xr.DataArray(
            [*np.random.default_rng(1).normal(3.0, 1.0, 500), np.nan],
            dims="site",
            attrs={"long_name": "cadmium"},
        )
        (ax,) = plot.marginal_qq(self.Shifted(), values).axes
        theory, scores = ax.lines[-1].get_data()
        assert len(scores) == 500
        assert np.abs(scores - theory)[25:-25].max() < 0.3
        assert ax.get_title("left") == "Cadmium"

    def test_draws_on_given_axes(self):
        from matplotlib.figure import Figure

        figure = Figure()
        assert plot.marginal_qq(self.Shifted(), [1.0, 2.0], figure.add_subplot()) is figure

    def test_a_model_knows_its_values(self, model):
        (ax,) = plot.marginal_qq(model, "proxy").axes
        sample = model.observations.sample
        scores = model.marginals["proxy"].to_normal(sample.values[sample.task(1)])
        np.testing.assert_allclose(ax.lines[-1].get_ydata(), np.sort(scores))
        assert ax.get_title("left") == "proxy"
        assert "fitted with the correlations" in ax.texts[0].get_text()

    def test_a_law_that_varies_is_drawn_at_its_rows(self, fit_by):
        model = fit_by("full")
        (ax,) = plot.marginal_qq(model, "proxy").axes
        sample = model.observations.sample
        z = model.process.scores(model.theta, sample)[sample.task(1)]
        np.testing.assert_allclose(ax.lines[-1].get_ydata(), np.sort(z))

    def test_a_law_without_parameters_has_another_note(self, sites):
        model = xcopula.fit(sites, "proxy", marginals="parzen", kernels="se", restarts=0)
        (ax,) = plot.marginal_qq(model).axes
        assert "the values are correlated" in ax.texts[0].get_text()

    def test_nothing_to_draw(self):
        with pytest.raises(ValueError, match="no finite values"):
            plot.marginal_qq(self.Shifted(), [np.nan])


def test_import_does_not_load_matplotlib():
    code = "import sys, xcopula.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_pyplot_state_is_untouched():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plot.prediction_map(make_prediction())
    plot.pit_histogram([0.2, 0.7])
    assert plt.get_fignums() == before


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "xcopula.plot.figure", raising=False)
    with pytest.raises(ImportError, match=r"xcopula\[plot\]"):
        plot.prediction_map(make_prediction())


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ("m s**-1", "m s$^{-1}$"),
        ("m s^-1", "m s$^{-1}$"),
        ("kg m-3 s**0.5", "kg m$^{-3}$ s$^{0.5}$"),
        ("degC", "°C"),
        ("1", ""),
    ],
)
def test_units_for_the_eye(units, shown):
    """Powers are raised, however they are written."""
    assert shown_units(units) == shown


def test_a_name_is_written_as_it_is():
    """A long name begins with a capital; the name of a variable, such as tce or pH, does not."""
    array = xr.DataArray(0.0, name="pH")
    assert name_of(array) == "pH"
    assert name_of(array.assign_attrs(long_name="acidity")) == "Acidity"
