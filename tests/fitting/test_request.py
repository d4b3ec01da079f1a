"""What is asked of a fit: checked before any work, names resolved to objects."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH

import xcopula
from xcopula.errors import CoordinateError
from xcopula.fitting.directions import input_groups
from xcopula.fitting.request import Request, check_names, check_supports
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import InputGroup
from xcopula.labels.observations import observe
from xcopula.marginals import Gamma, Normal, Parzen, SinhArcsinh, by, regress
from xcopula.methods import METHODS, CoKriging, Full, Sparse, Transductive
from xcopula.solvers import Exact


def request(names=("metal", "proxy"), **options) -> Request:
    """Return what a fit with these options asks for."""
    taken = inspect.signature(Request.of).parameters
    usual = inspect.signature(xcopula.fit).parameters.values()
    return Request.of(names, **{p.name: p.default for p in usual if p.name in taken} | options)


class TestSignature:
    """Options of one method are that method's own."""

    parameters = inspect.signature(xcopula.fit).parameters

    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_fit_has_no_option_of_a_single_method(self, method):
        """Whatever a method holds is not a keyword of fit."""
        own = {f.name for f in dataclasses.fields(method)}
        assert own.isdisjoint(self.parameters)

    def test_methods_hold_their_options(self):
        """Those that fit once had are there."""
        held = {f.name for m in METHODS.values() for f in dataclasses.fields(m)}
        gone = {"weights", "anchors", "polish", "inducing", "blocks"}
        assert gone <= held
        assert gone.isdisjoint(self.parameters)

    def test_the_rest_is_passed_to_the_request(self):
        """No option is taken and forgotten."""
        labels = {
            "data",
            "primary",
            "secondary",
            "coords",
            "crs",
            "ard",
            "anisotropy",
            "compute",
            "progress",
        }
        assert set(self.parameters) - labels == set(inspect.signature(Request.of).parameters) - {
            "names"
        }

    @pytest.mark.parametrize("name", ["weights", "anchors", "inducing", "optimizer", "callback"])
    def test_unknown_keywords_are_named(self, sites, name):
        """By the function and by the accessor."""
        with pytest.raises(TypeError, match=f"`fit` has no option '{name}'"):
            xcopula.fit(sites, "metal", **{name: 3})
        with pytest.raises(TypeError, match=f"`fit` has no option '{name}'"):
            sites.mtcopula.fit("metal", **{name: 3})


class TestResolution:
    def test_names_stand_for_objects(self):
        """Methods, solvers, kernels and laws."""
        found = request(method="full", solver="exact", kernels="se", marginals="gamma")
        assert found.method == Full()
        assert found.solver == Exact()
        assert request(solver="auto").solver is None  # the size of the data decides
        assert found.kernels == (KERNELS["se"],) * 2
        assert found.laws == (Gamma, Gamma)

    def test_the_default_method_is_its_object(self):
        """A name and an object of default options are one request."""
        assert request() == request(method="transductive") == request(method=Transductive())

    def test_objects_stay_as_they_are(self):
        """An object is taken with its options."""
        method = Sparse("pitc", inducing=7)
        assert request(method=method).method is method

    def test_auto_for_variables_that_are_not_named(self):
        """Their kernel is that of the coordinates, not known yet; their law the flexible one."""
        found = request(kernels={"proxy": "se"}, marginals={"metal": Normal(1.0, 2.0)})
        assert found.kernels == (None, KERNELS["se"])
        assert found.laws == (Normal(1.0, 2.0), SinhArcsinh)

    @pytest.mark.parametrize("coupling", ["icm", "lmc"])
    def test_a_shared_kernel_need_be_given_once(self, coupling):
        """Where all variables have one kernel, that of one is that of all."""
        found = request(coupling=coupling, kernels={"proxy": "se"})
        assert found.kernels == (KERNELS["se"],) * 2

    def test_a_list_is_a_kernel_for_each_structure(self):
        """It says how many there are; a name stands for all of them."""
        both = Nested((KERNELS["matern32"], KERNELS["matern12"]))
        found = request(kernels={"metal": ["matern32", "matern12"]})
        assert found.kernels == (both, None)
        assert found.structures == 2
        found = request(kernels={"metal": ("matern32", "matern12"), "proxy": "se"}, structures=2)
        assert found.kernels == (both, KERNELS["se"])
        assert request(kernels=["matern32", KERNELS["matern12"]]).kernels == (both, both)
        found = request(kernels={"proxy": ["matern32", "matern12"]}, coupling="lmc")
        assert found.kernels == (both, both)

    def test_a_list_of_the_same_is_that_kernel(self):
        """And still says how many structures there are."""
        for count in (1, 3):
            found = request(kernels=["se"] * count)
            assert found.kernels == (KERNELS["se"],) * 2
            assert found.structures == count

    def test_whole_numbers_of_any_type(self):
        """Numpy's integers count."""
        found = request(seed=np.int64(3), restarts=np.uint8(1), structures=np.int32(2))
        assert (found.seed, found.restarts, found.structures) == (3, 1, 2)
        assert all(type(v) is int for v in (found.seed, found.restarts, found.structures))
        assert request(max_hours=np.float32(2.0)).max_hours == 2.0

    def test_is_frozen(self):
        """A request does not change on its way."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            request().seed = 2

    def test_a_law_that_was_given_is_copied(self):
        """A model closes its arrays; that of the user stays open."""
        law = Parzen.fit(np.arange(20.0))
        found = request(marginals=law).laws
        assert found[0] is not law
        assert found[0] is found[1]
        np.testing.assert_array_equal(found[0].sample, law.sample)


class TestMethodsWithOneLaw:
    def test_cokriging_has_its_law_and_coupling(self):
        """Whatever the coupling was."""
        found = request(method="cokriging", coupling="icm")
        assert found.coupling == CoKriging.coupling == "lmc"
        assert found.laws == (Normal, Normal)

    @pytest.mark.parametrize(
        "law", [regress("normal", on="h"), regress("auto", on="h"), by("k", "normal"), Normal(2.0)]
    )
    def test_it_may_vary(self, law):
        """A recipe of the only family is kept, one of all families becomes it."""
        first, second = request(method="cokriging", marginals={"metal": law}).laws
        assert second is Normal
        if isinstance(law, Normal):
            assert first == law
        else:
            assert first.family is Normal
            assert first.fields == law.fields

    @pytest.mark.parametrize("law", ["gamma", Gamma(), regress("gamma", on="h")])
    def test_another_is_refused(self, law):
        """The law is named, and what to do."""
        with pytest.raises(
            ValueError, match=r"method='cokriging' takes normal marginals only, found \['gamma"
        ):
            request(method="cokriging", marginals={"proxy": law})


class TestCovariance:
    def test_is_that_of_the_options(self, sites):
        """Kernels, groups, coupling, structures and noise are passed on."""
        observations = observe(sites, ["metal", "proxy"], {"east": "x", "north": "y"}, ard=["east"])
        found = request(coupling="lmc", structures=2, noise="independent")
        covariance = found.covariance([KERNELS["se"]] * 2, input_groups(observations), 2)
        assert covariance.kernels == (KERNELS["se"],) * 2
        assert covariance.groups == input_groups(observations)
        assert (covariance.coupling, covariance.structures) == ("lmc", 2)
        assert covariance.noise == "independent"

    def test_structures_may_be_left_open(self):
        """The steps settle "auto"; a number stands as it is."""
        assert request(structures="auto").structures is None
        assert request(structures=np.int64(3)).structures == 3
        with pytest.raises(ValueError, match=r"Unknown structures 'two'\. Choose 'auto', or"):
            request(structures="two")

    def test_groups_have_the_columns_of_their_coordinates(self):
        """A circle has two columns, a globe three."""
        when = np.datetime64("2001-01-01", "ns") + np.arange(12) * np.timedelta64(31, "D")
        lon, lat = np.arange(12.0), 40.0 + np.arange(12.0) % 5
        data = xr.Dataset(
            {"v": ("p", np.sin(lon))},
            coords={"lon": ("p", lon, EAST), "lat": ("p", lat, NORTH), "time": ("p", when)},
        )
        seen = observe(data, ["v"], ["lon", "lat", xcopula.cycle("time")])
        assert input_groups(seen) == (InputGroup(3), InputGroup(2))


class TestNames:
    @pytest.mark.parametrize("secondary", ["b", ["b"], ("b",)])
    def test_primary_first(self, secondary):
        """A lone secondary needs no list."""
        assert check_names("a", secondary) == ["a", "b"]

    @pytest.mark.parametrize("secondary", [(), [], None])
    def test_no_secondary(self, secondary):
        """One variable is a model too."""
        assert check_names("a", secondary) == ["a"]


@pytest.mark.usefixtures("no_search")
class TestRefused:
    @pytest.mark.parametrize(
        ("primary", "secondary", "error", "match"),
        [
            ("lead", (), KeyError, r"No variable 'lead'.*\['metal', 'proxy'\]"),
            ("metal", "lead", KeyError, "No variable 'lead'"),
            (
                "metal",
                ["metal"],
                ValueError,
                "primary 'metal' is also listed among the sec",
            ),
            ("metal", "metal", ValueError, "Name it once, as the primary"),
            ("metal", ["proxy", "proxy"], ValueError, "A secondary is listed twice"),
            (3, (), TypeError, "names must be strings, found 3"),
            ("metal", [None], TypeError, "names must be strings, found None"),
        ],
    )
    def test_variables(self, sites, primary, secondary, error, match):
        """Unknown, repeated and unnamed variables are refused."""
        with pytest.raises(error, match=match):
            xcopula.fit(sites, primary, secondary)

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"coords": ["x", "north"]}, CoordinateError, "No coordinate 'north'"),
            ({"ard": "time"}, CoordinateError, r"`ard` names groups \['time'\]"),
            (
                {"kernels": ["se", "matern12"], "structures": 3},
                ValueError,
                r"`structures` must be the number of kernels in a list, found structures=3 and 2",
            ),
            (
                {"kernels": ["se", "se"], "structures": 1},
                ValueError,
                r"found structures=1 and 2 kernels \(se \+ se\)\. Give structures=2",
            ),
            (
                {"kernels": {"metal": ["se", "matern12"], "proxy": ["se"] * 3}},
                ValueError,
                r"`kernels`: lists must have a kernel for each structure.*'se \+ matern12' and",
            ),
            (
                {"kernels": {"metal": ["se", "auto"]}},
                ValueError,
                r"`kernels` of 'metal': A list has the kernel of each nested structure",
            ),
            (
                {"kernels": ["se", "matern12"], "coupling": "icm"},
                ValueError,
                "coupling='icm' takes only one structure, found structures=2",
            ),
            ({"method": "magic"}, ValueError, r"Unknown method 'magic'. Choose one of .*'full'"),
            ({"method": None}, TypeError, "`method` must be 'transductive'.*; found NoneType"),
            ({"method": Full}, TypeError, r"`method` is a class. Give an object instead: Full\(\)"),
            ({"solver": "magic"}, ValueError, "Unknown solver 'magic'. Choose one of 'auto', 'ex"),
            ({"solver": None}, TypeError, "`solver` must be 'auto'.*; found NoneType"),
            (
                {"solver": Exact},
                TypeError,
                r"`solver` is a class. Give an object instead: Exact\(\)",
            ),
            ({"kernels": "cubic"}, ValueError, "Unknown kernel 'cubic'. Choose one of 'se'"),
            ({"kernels": [["se"]]}, ValueError, r"Unknown kernel \['se'\]"),
            ({"kernels": {"proxy": "cubic"}}, ValueError, "Unknown kernel 'cubic'"),
            ({"kernels": {"lead": "se"}}, KeyError, r"`kernels` names \['lead'\].*'metal'"),
            (
                {"marginals": "beta"},
                ValueError,
                "Unknown marginal 'beta'. Choose 'auto' or one of 'fle",
            ),
            ({"marginals": {"lead": "t"}}, KeyError, r"`marginals` names \['lead'\].*'metal'"),
            ({"marginals": 3}, TypeError, "A marginal is one of .* found int"),
            ({"marginals": {"metal": None}}, TypeError, "A marginal is one of .* found NoneType"),
            ({"coupling": "glue"}, ValueError, "Unknown coupling 'glue'"),
            ({"noise": "loud"}, ValueError, "Unknown noise 'loud'"),
            ({"structures": 0}, ValueError, "`structures` must be at least 1, found 0"),
            ({"structures": 1.5}, TypeError, "`structures` must be an integer, found 1.5"),
            ({"coupling": "icm", "structures": 2}, ValueError, "Use coupling='lmc'"),
            (
                {"coupling": "icm", "kernels": {"metal": "se", "proxy": "matern32"}},
                ValueError,
                "needs one kernel for all tasks",
            ),
            *(
                ({name: value}, error, match)
                for name in ("seed", "restarts")
                for value, error, match in [
                    (1.0, TypeError, f"`{name}` must be an integer, found 1.0"),
                    ("1", TypeError, f"`{name}` must be an integer, found '1'"),
                    (None, TypeError, f"`{name}` must be an integer, found None"),
                    (True, TypeError, f"`{name}` must be an integer, found True"),
                    (np.True_, TypeError, f"`{name}` must be an integer"),
                    (-1, ValueError, f"`{name}` must be at least 0, found -1"),
                ]
            ),
        ],
    )
    def test_options(self, sites, options, error, match):
        """Each option says what it found and what it takes."""
        with pytest.raises(error, match=match):
            xcopula.fit(sites, "metal", "proxy", **options)


def test_a_law_fitted_to_other_fields_is_refused(fit_by):
    """A law that varies is given by its recipe."""
    fitted = fit_by("full").marginals[1]
    with pytest.raises(TypeError, match=r"'normal ~ height' was fitted to the fields of other"):
        request(marginals={"metal": Gamma, "proxy": fitted})


class TestSupport:
    """What `support` may be."""

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, (None, None)),
            ((0, None), ((0.0, np.inf),) * 2),
            ([None, 3.5], ((-np.inf, 3.5),) * 2),
            ({"b": (0, 100)}, (None, (0.0, 100.0))),
            ({"a": None}, (None, None)),
            ((None, None), ((-np.inf, np.inf),) * 2),
        ],
    )
    def test_pairs(self, given, expected):
        """One pair for all, or one for each; None leaves an end open."""
        assert check_supports(given, ["a", "b"]) == expected

    @pytest.mark.parametrize(
        ("given", "error", "match"),
        [
            ({"c": (0, None)}, KeyError, r"`support` names \['c'\].*\['a', 'b'\]"),
            ((0, 1e300), ValueError, r"ends below 1e\+150, or None for an open end, found \(0, "),
            (0, TypeError, r"`support` must be two numbers.*such as \(0, None\); found 0"),
            ("0,", TypeError, "must be two numbers"),
            ((0, 1, 2), TypeError, "must be two numbers"),
            ((0, "1"), TypeError, "must be two numbers"),
            ((False, True), TypeError, "must be two numbers"),
            ((1, 0), ValueError, r"lower end below the upper one, found \(1, 0\)"),
            ((0, np.nan), ValueError, "lower end below the upper one"),
        ],
    )
    def test_refusals(self, given, error, match):
        """What was found is said."""
        with pytest.raises(error, match=match):
            check_supports(given, ["a", "b"])

    def test_a_method_with_one_law(self):
        """It cannot cut it off."""
        with pytest.raises(ValueError, match="`support` cuts laws off, but method='cokriging'"):
            request(method="cokriging", support=(0, None))
