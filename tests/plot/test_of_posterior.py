"""``posterior.plot``: maps, points and lines of the posterior's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

from looks import check_looks
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

import xcopula


def panels(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


@pytest.fixture(scope="module")
def posterior(model, grid):
    return model.posterior(grid)


@pytest.fixture(scope="module")
def dated():
    """A model of two dates, and its posterior on a line at these dates."""
    rng = np.random.default_rng(0)
    x, time = np.linspace(0.0, 5.0, 12), np.array(["2020-01-01", "2020-01-03"], "M8[ns]")
    data = xr.Dataset(
        {"v": (("s", "time"), rng.normal(size=(12, 2)), {"units": "K"})},
        coords={
            "x": ("s", x, {"units": "km", "axis": "X"}),
            "y": ("s", x % 2, {"units": "km", "axis": "Y"}),
            "time": time,
        },
    )
    model = xcopula.fit(data, "v", marginals="normal", kernels="se", restarts=0, method="full")
    grid = xr.Dataset(coords={"y": [0.0, 0.5, 1.0], "x": x[::3], "time": time})
    for name in ("x", "y"):
        grid[name].attrs.update(data[name].attrs)
    return data, model.posterior(grid)


def test_it_lists_its_pictures(posterior):
    assert repr(posterior.plot) == "posterior.plot: .exceedance(), .information(), .map()"


class TestMap:
    def test_median_and_width(self, posterior, sites):
        figure = posterior.plot.map(0.8, sites=sites)
        left, right = panels(figure)
        np.testing.assert_allclose(
            left.collections[0].get_array().reshape(6, 7), posterior.median()
        )
        lower, upper = posterior.interval(0.8)
        np.testing.assert_allclose(right.collections[0].get_array().reshape(6, 7), upper - lower)
        assert right.get_title("left") == "Width of the 80 % band"
        assert left.collections[1].get_offsets().shape == (40, 2)
        check_looks(figure)

    def test_lazy_posteriors(self, model, grid, posterior):
        left, _ = panels(model.posterior(grid, chunks=3).plot.map())
        np.testing.assert_allclose(
            left.collections[0].get_array().reshape(6, 7), posterior.median()
        )

    def test_points(self, model, sites):
        target = sites[["x", "y"]].isel(site=slice(40, None))
        figure = model.posterior(target).plot.map()
        left, _ = panels(figure)
        np.testing.assert_array_equal(
            left.collections[0].get_offsets(), np.column_stack([target["x"], target["y"]])
        )
        check_looks(figure)

    def test_a_slice_has_its_date_and_its_sites(self, dated):
        data, posterior = dated
        figure = posterior.plot.map(sel={"time": "2020-01-03"}, sites=data)
        left, _ = panels(figure)
        assert left.get_title("left") == "v: median, 2020-01-03"
        np.testing.assert_array_equal(left.collections[1].get_array(), data["v"].isel(time=1))
        with pytest.raises(ValueError, match="Select one entry along 'time'"):
            posterior.plot.map()

    def test_lines(self):
        toy = xcopula.datasets.toy()
        model = xcopula.fit(toy, "primary", marginals="normal", kernels="se", restarts=0)
        x = np.linspace(0, 1, 11)
        figure = model.posterior(xcopula.datasets.toy_truth(x)).plot.map(sites=toy)
        (ax,) = figure.axes
        median, observed = ax.lines
        np.testing.assert_allclose(median.get_xdata(), x)
        assert observed.get_xdata().size == 14
        check_looks(figure)

    @pytest.mark.parametrize("level", [0.0, 1.0, 90, "x", True])
    def test_a_level_is_a_fraction(self, posterior, level):
        with pytest.raises(ValueError, match="`level` must be a number between 0 and 1, found"):
            posterior.plot.map(level)


class TestShapes:
    def test_wide_maps_stand_one_below_the_other(self, model):
        """Each has the width of the figure, and a colour bar with labels that can be read."""
        section = {"y": np.linspace(1.0, 1.3, 45), "x": np.linspace(0.0, 4.0, 370)}
        posterior = model.posterior(xr.Dataset(coords=section))
        for figure in (posterior.plot.map(), posterior.plot.exceedance([1.0, 2.0])):
            first, second = panels(figure)
            check_looks(figure)
            one, two = (ax.get_window_extent() for ax in (first, second))
            assert one.y0 > two.y1
            assert one.height > 0.1 * one.width
            for bar in bars(figure):
                assert bar.get_window_extent().height > 40.0

    def test_a_skewed_variable_has_logarithmic_colours(self, sites, model):
        """A few large widths would leave one colour to the rest."""
        law = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0, "method": "full"}
        skewed = sites[["metal"]].assign(metal=sites["metal"] ** 12.0)
        grid = xr.Dataset(coords={"y": np.linspace(0, 4, 20), "x": np.linspace(0, 4, 20)})
        posterior = xcopula.fit(skewed, "metal", **law).posterior(grid)
        left, right = panels(posterior.plot.map(sites=skewed))
        mesh, dots = left.collections
        assert isinstance(right.collections[0].norm, LogNorm)
        assert isinstance(mesh.norm, LogNorm)
        assert dots.norm is mesh.norm
        plain = panels(model.posterior(grid).plot.map())[1]
        assert not isinstance(plain.collections[0].norm, LogNorm)

    def test_a_date_of_one_entry_needs_no_selection(self, posterior, model, grid):
        """Nor a mask; several entries do, and the message says how."""
        whole = posterior.quantile([0.05, 0.5, 0.95]).to_dataset(name="metal")
        dated = whole.expand_dims(time=np.array(["2024-05-31"], "M8[ns]"))
        mask = (dated["metal"].isel(quantile=0, drop=True) > -1.0).rename("inside")
        left, _ = panels(xcopula.plot.prediction_map(dated, mask=mask))
        assert left.get_title("left").endswith(": median, 2024-05-31")
        several = xr.concat([dated, dated], "time")
        with pytest.raises(ValueError, match=r"`sel=\{'time': \.\.\.\}` for a posterior"):
            xcopula.plot.prediction_map(several)


class TestExceedance:
    def test_it_is_pale_where_low_and_has_the_whole_scale(self, posterior, sites):
        figure = posterior.plot.exceedance(1.4, sites=sites)
        (ax,) = panels(figure)
        mesh, dots = ax.collections
        np.testing.assert_allclose(mesh.get_array().reshape(6, 7), posterior.exceedance(1.4).values)
        assert mesh.get_clim() == (0.0, 1.0)
        low, high = (np.mean(mesh.get_cmap()(end)[:3]) for end in (0.0, 1.0))
        assert low > 0.8 > 0.4 > high
        known = sites["metal"].values[:40]
        np.testing.assert_array_equal(dots.get_array(), known > 1.4)
        assert ax.get_title("left") == "Metal in topsoil above 1.4\u00a0mg\u00a0kg$^{-1}$"
        assert [bar.get_ylabel() for bar in bars(figure)] == ["probability"]
        check_looks(figure)

    def test_several_thresholds_have_a_panel_each(self, posterior):
        figure = posterior.plot.exceedance([1.0, 2.0])
        titles = [ax.get_title("left").replace("\n", " ") for ax in panels(figure)]
        assert [t.rpartition(" ")[2] for t in titles] == [
            f"{n}\u00a0mg\u00a0kg$^{{-1}}$" for n in (1, 2)
        ]
        assert len(bars(figure)) == 1
        check_looks(figure)

    def test_given_axes_along_a_line(self, dated):
        _, posterior = dated
        ax = Figure().add_subplot()
        posterior.plot.exceedance(0.0, sel={"time": "2020-01-01", "y": 0.5}, axes=ax)
        p = posterior.exceedance(0.0).sel(time="2020-01-01", y=0.5)
        np.testing.assert_allclose(ax.lines[0].get_ydata(), p)
        assert ax.get_ylabel() == "probability"


class TestInformation:
    def test_secondaries_share_their_colours(self, triple, grid):
        posterior = triple.posterior(grid)
        figure = posterior.plot.information()
        first, second = panels(figure)
        found = posterior.information()
        for ax, each in zip((first, second), found, strict=True):
            np.testing.assert_allclose(ax.collections[0].get_array().reshape(6, 7), each)
        assert first.collections[0].get_clim() == second.collections[0].get_clim()
        assert first.collections[0].get_clim()[0] == min(0.0, float(found.quantile(0.005)))
        assert second.get_title("left") == "What other adds to metal"
        check_looks(figure)

    def test_only_methods_that_know(self, posterior):
        with pytest.raises(ValueError, match="cannot tell what each secondary adds"):
            posterior.plot.information()
