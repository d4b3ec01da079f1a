"""From labelled data to the sample of a model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from strategies import count_computes

from xcopula.errors import CoordinateError
from xcopula.labels.observations import Observations, describe, gather, observe
from xcopula.labels.sites import sites_within
from xcopula.marginals import by, regress


def assert_same(left, right) -> None:
    """Compare two observations in all that a fit reads."""
    assert left.names == right.names
    assert left.coordinates == right.coordinates
    np.testing.assert_array_equal(left.positions, right.positions)
    np.testing.assert_array_equal(left.sample.sites, right.sample.sites)
    np.testing.assert_array_equal(left.sample.inputs, right.sample.inputs)
    np.testing.assert_array_equal(left.sample.values, right.sample.values)
    np.testing.assert_array_equal(left.sample.offsets, right.sample.offsets)


@pytest.fixture
def gridded() -> xr.Dataset:
    """Two variables on a grid (y, x), each with gaps of its own."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(2, 5, 6))
    values[0, 1, 2] = values[1, 3, 3] = values[1, 0, 0] = np.nan
    return xr.Dataset(
        {"a": (("y", "x"), values[0]), "b": (("x", "y"), values[1].T)},
        coords={"y": np.arange(5.0), "x": 10.0 * np.arange(6)},
    )


class TestRows:
    def test_observations_are_made_again_of_their_rows(self, gridded, sloped):
        """Sites and inputs follow, bit by bit."""
        for data, names, laws in (
            (gridded, ["a", "b"], [None, None]),
            (sloped, ["metal", "proxy"], [None, regress("normal", on="height")]),
        ):
            seen = observe(data, names, laws=laws)
            rows = seen.rows()
            assert [len(r.values) for r in rows] == seen.sample.sizes
            positions = [r.positions for r in rows]
            found = sites_within(seen.coordinates, positions, seen.sites.tolerance)
            again = Observations.of(seen.variables, seen.coordinates, rows, *found)
            assert_same(again, seen)
            np.testing.assert_array_equal(again.sites.places, seen.sites.places)
            np.testing.assert_array_equal(again.sites.numbers, seen.sites.numbers)
            for left, right in zip(again.sample.covariates, seen.sample.covariates, strict=True):
                np.testing.assert_array_equal(left, right)


class TestSample:
    def test_each_variable_drops_its_own_gaps(self, sites):
        """A NaN in one variable costs the others nothing."""
        seen = observe(sites, ["metal", "proxy"])
        assert np.diff(seen.sample.offsets).tolist() == [40, 60]
        np.testing.assert_array_equal(seen.sample.values[:40], sites["metal"].values[:40])
        np.testing.assert_array_equal(seen.positions[40:, 0], sites["x"].values)
        assert np.isfinite(seen.sample.inputs).all()
        assert np.ptp(seen.sample.inputs, axis=1).max() == pytest.approx(1.0)

    def test_attributes_are_copies(self, sites):
        """The model keeps the attributes of its variables, not a view of them."""
        seen = observe(sites, ["metal"])
        (variable,) = seen.variables
        assert variable.attrs == sites["metal"].attrs
        assert variable.attrs is not sites["metal"].attrs
        assert variable.name == "metal"
        assert variable.dims == ("site",)

    def test_a_grid_gives_the_sample_of_its_stacked_points(self, gridded):
        """Gridded variables, in any order of dims, equal the same points stacked."""
        stacked = gridded.stack(cell=("y", "x"))
        names = ["a", "b"]
        direct = observe(gridded.transpose("y", "x"), names)
        assert_same(direct, observe(stacked, names, ["x", "y"]))
        assert_same(direct, observe(stacked.reset_index("cell"), names, ["x", "y"]))
        assert direct.sample.size == 57
        mixed = observe(gridded, names)
        assert set(map(tuple, np.column_stack([mixed.positions, mixed.sample.values]))) == set(
            map(tuple, np.column_stack([direct.positions, direct.sample.values]))
        )

    @pytest.mark.filterwarnings("ignore:The sites of 'b' do not overlap:UserWarning")
    def test_scalar_and_curvilinear_coordinates(self, gridded):
        """A scalar coordinate holds for all of a variable; a 2-D one is read cell by cell."""
        a = gridded["a"].assign_coords(height=2.0)
        b = gridded["b"].assign_coords(height=10.0)
        seen = observe({"a": a, "b": b}, ["a", "b"], {"plane": ["x", "y"], "up": "height"})
        assert set(seen.positions[: seen.sample.offsets[1], 2]) == {2.0}
        assert set(seen.positions[seen.sample.offsets[1] :, 2]) == {10.0}
        turned = gridded.assign_coords(u=gridded["x"] + gridded["y"], w=gridded["x"] - gridded["y"])
        seen = observe(turned, ["a"], ["u", "w"])
        raw = observe(gridded, ["a"])
        np.testing.assert_allclose(seen.positions[:, 0], raw.positions.sum(axis=1))

    def test_a_mapping_of_dataarrays_equals_the_dataset(self, sites):
        """Variables may live apart, on dims of the same name and other sizes."""
        names = ["metal", "proxy"]
        apart = {n: sites[n].dropna("site") for n in names}
        assert apart["metal"].sizes != apart["proxy"].sizes
        assert_same(observe(apart, names), observe(sites, names))

    def test_stations_and_a_grid_together(self, sites, gridded):
        """A mapping may join station data and gridded data on other dims."""
        seen = observe({"metal": sites["metal"], "a": gridded["a"]}, ["metal", "a"])
        assert np.diff(seen.sample.offsets).tolist() == [40, 29]

    def test_integers_and_foreign_byte_order(self, sites):
        """Any numeric dtype becomes native float64."""
        data = sites.assign(
            count=("site", np.arange(60, dtype=">i4")), other=sites["proxy"].astype(">f4")
        )
        values = observe(data, ["count", "other"]).sample.values
        assert values.dtype == np.dtype("=f8")

    def test_data_are_not_changed(self, sites):
        """Reading leaves the data as they were."""
        before = sites.copy(deep=True)
        observe(sites, ["metal", "proxy"])
        xr.testing.assert_identical(sites, before)


class TestSites:
    def test_variables_meet_where_they_share_a_site(self, sites):
        """The number of a site is the same for all variables; there are as many as places."""
        seen = observe(sites, ["metal", "proxy"])
        sample = seen.sample
        np.testing.assert_array_equal(sample.sites[:40], sample.sites[40:80])
        assert len(set(sample.sites)) == 60

    def test_targets_know_the_sites_they_stand_at(self, sites):
        """Numbers of the data where there are data, none elsewhere and where a place is unknown."""
        seen = observe(sites, ["metal", "proxy"])
        x, y = sites["x"].values, sites["y"].values
        targets = seen.targets([np.r_[x[[7, 50]], 1.5, np.nan], np.r_[y[[7, 50]], 1.5, 1.0]])
        np.testing.assert_array_equal(targets.sites[:2], seen.sample.sites[[7, 40 + 50]])
        np.testing.assert_array_equal(targets.sites[2:], -1)
        np.testing.assert_allclose(targets.inputs[:, 0], seen.sample.inputs[:, 7], rtol=1e-12)

    def test_two_values_at_one_site_are_refused(self, sites):
        """By name and place, also where the places differ by rounding alone."""
        again = sites.isel(site=[3])
        for factor in (1.0, 1.0 + 1e-15):
            moved = again.assign_coords(x=(again["x"] * factor).assign_attrs(again["x"].attrs))
            twice = xr.concat([sites, moved], "site")
            for name in ("metal", "proxy"):
                with pytest.raises(
                    ValueError, match=rf"'{name}' has several values at 1 of its sites \(first: x="
                ):
                    observe(twice, [name])

    def test_one_of_several_variables_may_have_two(self, sites):
        """The variable that has them is named, not the one that has not."""
        twice = xr.concat([sites["proxy"], sites["proxy"].isel(site=[3])], "site")
        with pytest.raises(ValueError, match="'proxy' has several values at 1 of its sites"):
            observe({"metal": sites["metal"], "proxy": twice}, ["metal", "proxy"])


class TestVariables:
    def test_describe_what_was_read(self, sloped):
        """Names, attributes, dims and the fields of laws, with the groups that were seen."""
        data = sloped.assign_coords(side=("site", np.where(sloped["x"] > 2.0, "east", "west")))
        laws = [by("side", "normal"), regress("normal", on="height")]
        seen = observe(data, ["metal", "proxy"], laws=laws)
        metal, proxy = seen.variables
        assert seen.names == ("metal", "proxy")
        assert [f.name for f in metal.fields] == ["side"]
        assert metal.labels == {"side": ("east", "west")}
        assert [f.name for f in proxy.fields] == ["height"]
        assert proxy.labels == {}
        np.testing.assert_array_equal(seen.sample.covariates_of(1)[:, 0], data["height"])

    def test_can_be_described_before_they_are_read(self, sloped):
        """From labels alone: groups are learnt later."""
        laws = [by("height", "normal"), None]
        arrays, system = gather(sloped.chunk(), ["metal", "proxy"], laws=laws, load=False)
        metal, proxy = describe(arrays, laws, system)
        assert (metal.name, metal.dims) == ("metal", ("site",))
        assert metal.attrs == sloped["metal"].attrs
        assert metal.fields[0].groups == ()
        assert proxy.fields == ()

    def test_arrays_among_the_attributes_are_copies(self, sites):
        """A model closes its arrays; those of the user stay open."""
        valid = np.array([0.0, 9.0])
        data = sites.assign(metal=sites["metal"].assign_attrs(valid_range=valid))
        kept = observe(data, ["metal"]).variables[0].attrs["valid_range"]
        np.testing.assert_array_equal(kept, valid)
        assert not np.shares_memory(kept, valid)


class TestDask:
    def test_computed_exactly_once(self, sites):
        """Lazy variables, with lazy coordinates, are computed in one go."""
        with count_computes() as scheduler:
            seen = observe(sites.chunk(site=7), ["metal", "proxy"])
        assert scheduler.computes == 1
        assert_same(seen, observe(sites, ["metal", "proxy"]))

    def test_only_the_chosen_variables_are_computed(self, sites):
        """Variables that the model does not use stay lazy."""
        import dask.array as da

        def fail(block):
            raise AssertionError("computed a variable that nobody asked for")

        poisoned = da.map_blocks(fail, da.zeros(60, chunks=10), meta=np.empty(0))
        data = sites.chunk(site=7).assign(other=("site", poisoned))
        assert observe(data, ["metal"]).sample.size == 40


class TestErrors:
    @pytest.mark.parametrize("data", [None, [1, 2], np.arange(3.0), "ds"])
    def test_data_of_a_wrong_type(self, data):
        """Anything but a Dataset or a mapping is refused by type."""
        with pytest.raises(TypeError, match="`data` must be a Dataset, a DataFrame or a mapping"):
            observe(data, ["a"])

    def test_a_dataarray_is_told_how_to_become_a_dataset(self, sites):
        """The commonest mistake gets the call that mends it."""
        with pytest.raises(TypeError, match=r"found DataArray. Use `array.to_dataset\(name=...\)`"):
            observe(sites["metal"], ["metal"])

    def test_a_mapping_holds_dataarrays(self, sites):
        """Bare arrays carry no coordinates."""
        with pytest.raises(TypeError, match="'metal' is a ndarray; a mapping holds DataArrays"):
            observe({"metal": sites["metal"].values}, ["metal"])

    @pytest.mark.parametrize("name", ["lead", "x"])
    def test_unknown_variable(self, sites, name):
        """A name that is no variable, such as a coordinate, is a KeyError that lists what is."""
        with pytest.raises(KeyError, match=rf"No variable '{name}'.*\['metal', 'proxy'\]"):
            observe(sites, [name])

    def test_too_few_values(self, sites):
        """Fewer than five finite values are no task."""
        few = sites.assign(metal=sites["metal"].where(sites["metal"].notnull().cumsum() < 5))
        with pytest.raises(ValueError, match=r"'metal' has 4 finite values of 60.*at least 5"):
            observe(few, ["metal"])

    def test_constant(self, sites):
        """A constant has no law."""
        with pytest.raises(ValueError, match="'metal' is constant: all 60 values are 3"):
            observe(sites.assign(metal=("site", np.full(60, 3.0))), ["metal"])

    def test_infinite(self, sites):
        """Infinities are counted and located."""
        values = sites["proxy"].values.copy()
        values[[4, 9]] = np.inf, -np.inf
        with pytest.raises(
            ValueError, match=r"'proxy' has 2 infinite values \(first at position 4"
        ):
            observe(sites.assign(proxy=("site", values)), ["proxy"])

    @pytest.mark.parametrize("dtype", ["U3", "bool", "M8[ns]", "complex128"])
    def test_not_numbers(self, sites, dtype):
        """Strings, booleans, dates and complex numbers are refused by dtype."""
        data = sites.assign(metal=("site", np.arange(60).astype(dtype)))
        with pytest.raises(TypeError, match=r"'metal' has dtype .*; a task needs numbers"):
            observe(data, ["metal"])

    def test_duplicate_sites(self, sites):
        """Two values of one variable at one site are refused, with the site."""
        twice = xr.concat([sites, sites.isel(site=[3, 5])], "site")
        first = f"x={float(sites['x'][3]):g}"
        with pytest.raises(
            ValueError, match="'metal' has several values at 2 of its sites"
        ) as info:
            observe(twice, ["metal", "proxy"])
        assert first in str(info.value) or f"x={float(sites['x'][5]):g}" in str(info.value)

    def test_duplicates_that_are_gaps_do_not_count(self, sites):
        """A repeated site where the variable is NaN is no duplicate."""
        twice = xr.concat([sites, sites.isel(site=[50])], "site")
        assert observe(twice, ["metal"]).sample.size == 40

    def test_a_value_without_a_place(self, sites):
        """A NaN coordinate under a finite value is an error, under a gap it is not."""
        x = sites["x"].values.copy()
        x[[0, 59]] = np.nan
        lost = sites.assign_coords(x=("site", x, sites["x"].attrs))
        with pytest.raises(CoordinateError, match=r"1 of the 40 values of 'metal'.*not finite"):
            observe(lost, ["metal"])

    def test_a_variable_without_a_coordinate(self, sites):
        """Every variable needs all coordinates."""
        apart = {"metal": sites["metal"], "proxy": sites["proxy"].drop_vars("y")}
        with pytest.raises(CoordinateError, match=r"Variable 'proxy' lacks the coordinate 'y'"):
            observe(apart, ["metal", "proxy"])

    def test_variables_in_different_units_of_length(self, sites):
        """Metres beside kilometres are converted; what is no length is refused."""
        names, attrs = ["metal", "proxy"], {"units": "m", "axis": "X"}
        metres = sites["proxy"].assign_coords(x=("site", 1000.0 * sites["x"].values, attrs))
        seen = observe({"metal": sites["metal"], "proxy": metres}, names)
        np.testing.assert_allclose(seen.positions, observe(sites, names).positions, rtol=1e-15)
        strange = sites["proxy"].assign_coords(x=metres["x"].assign_attrs(units="s"))
        with pytest.raises(
            CoordinateError, match=r"Variable 'proxy': Coordinate 'x' is in 's', .*'x' in 'km'"
        ):
            observe({"metal": sites["metal"], "proxy": strange}, names)

    def test_a_dimension_that_no_coordinate_describes(self, gridded):
        """A variable that varies along something else cannot be placed."""
        data = xr.concat([gridded, gridded + 1.0], "member")
        with pytest.raises(CoordinateError, match=r"'a' varies along \['member'\]"):
            observe(data, ["a"])
        assert observe(data.isel(member=[0]), ["a"]).sample.size == 29
