"""Trees that are not what was written: nothing is made but what is listed, and all is checked."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from test_state import OWN, Logistic, RationalQuadratic

import xcopula
from xcopula.errors import ModelFormatError
from xcopula.methods import Full
from xcopula.model.reading import CLASSES, from_tree
from xcopula.model.tree import seal, to_tree
from xcopula.solvers import Exact

QUICK = {"method": "full", "marginals": "normal", "kernels": "matern32", "restarts": 0}


def tampered(model, change: Callable[[Any], Any]) -> xr.DataTree:
    """Return the tree of a model with its text changed, and its checksum as if it were right."""
    tree = to_tree(model)
    state = json.loads(tree.attrs["state"])
    changed = change(state)
    text = json.dumps(state if changed is None else changed)
    tree.attrs |= seal(text, tree.attrs)
    return tree


def refused(model, change, match: str | None = None) -> None:
    """Check that the model is not read."""
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, IndexError), match=match):
        from_tree(tampered(model, change), {})


def test_nothing_changed(model):
    """What the tests below start from is read."""
    again = from_tree(tampered(model, lambda state: None), {})
    np.testing.assert_array_equal(again.theta, model.theta)


class TestClasses:
    def test_the_names_of_schema_1(self):
        """A name that was written once stays, whatever becomes of the class."""
        assert sorted(CLASSES) == [
            *("Alternative", "Axis", "Censored", "CoKriging", "Committee", "CoordinateGroup"),
            *("CoordinateSystem", "Covariance", "Cycle", "Design", "Exact", "Exponential"),
            *("Field", "Full", "GEV", "Gamma", "Globe", "Grouped", "InputGroup", "Label"),
            *("LogNormal", "Matern", "Neighbours", "Nested", "Normal", "Origin", "ParetoTail"),
            *("Parzen", "Process", "Projection", "Regression", "Rule", "ScoreTable", "Since"),
            *("SinhArcsinh", "Sparse", "SquaredExponential", "StudentT", "Targets"),
            *("Transductive", "Truncated", "Uncertainty", "Variable"),
        ]

    @pytest.mark.parametrize(
        "name",
        ["os.system", "builtins.eval", "xcopula.cli.main", "Path", "law:os.system", "", "law:"],
    )
    def test_others_are_not_made(self, model, name, monkeypatch):
        """However they are spelt, and wherever they stand."""
        monkeypatch.setattr(os, "system", lambda _: pytest.fail("run"))
        message = "names a class .* which xcopula does not know"
        evil = {"class": name, "command": "true"}
        refused(model, lambda state: state.update(solver=evil), message)
        refused(model, lambda state: state.update(message=evil), message)
        refused(model, lambda state: state["process"].update({"class": name}), message)
        kind = {"class": "type", "name": name}
        refused(model, lambda state: state.update(method=kind), message)

    @pytest.mark.parametrize("kind", ["law", "kernel"])
    def test_of_one_s_own(self, sites, kind):
        """Are given, or the message says how to."""
        given = {"marginals": Logistic(1.5, -1.0)} if kind == "law" else {}
        given |= {"kernels": RationalQuadratic()} if kind == "kernel" else {}
        model = xcopula.fit(sites, "metal", **QUICK | given)
        name = "Logistic" if kind == "law" else "RationalQuadratic"
        hint = rf"a {kind} of the class '{name}'.*load\(path, {kind}s=\{{'{name}': {name}\}}\)"
        with pytest.raises(ModelFormatError, match=hint):
            from_tree(to_tree(model), {})
        own = {f"{kind}:{k.__name__}": k for k in OWN.values()}
        again = from_tree(to_tree(model), own)
        np.testing.assert_array_equal(again.theta, model.theta)


@dataclasses.dataclass(frozen=True)
class Whole(Full):
    """A method of one's own."""


@dataclasses.dataclass(frozen=True)
class Slow(Exact):
    """A solver of one's own, which holds something."""

    inside: Any = None


@dataclasses.dataclass(frozen=True)
class Inside:
    """A part of it, with an array."""

    x: Any


def test_methods_and_solvers_of_one_s_own(sites):
    """And what they hold, in arrays that are nobody's table."""
    inside = Inside(np.arange(40.0))
    options = QUICK | {"method": Whole(), "solver": Slow(inside)}
    model = xcopula.fit(sites, "metal", **options)
    tree = to_tree(model)
    assert tree["structure/solver_inside_x"].dims == ("solver_inside_x_0",)
    own = {"method:Whole": Whole, "solver:Slow": Slow, "law:Inside": Inside}
    for name in own:
        kind, _, known = name.partition(":")
        others = {k: v for k, v in own.items() if k != name}
        with pytest.raises(ModelFormatError, match=rf"a {kind} of the class '{known}'"):
            from_tree(tree, others)
    again = from_tree(tree, own)
    assert again.method == Whole()
    np.testing.assert_array_equal(again.solver.inside.x, inside.x)


class TestText:
    @pytest.mark.parametrize("text", ["", "[]", "3", "null", '"CopulaModel"', "{", "[" * 10_000])
    def test_another_text(self, model, text):
        """Is no model."""
        tree = to_tree(model)
        tree.attrs |= seal(text, tree.attrs)
        with pytest.raises((ValueError, RecursionError)):
            from_tree(tree, {})

    @pytest.mark.parametrize("state", [None, 3, np.zeros(2)], ids=["none", "3", "array"])
    def test_no_text(self, model, state):
        """The attribute is named."""
        tree = to_tree(model)
        tree.attrs["state"] = state
        with pytest.raises(ModelFormatError, match="'state' must be a text"):
            from_tree(tree, {})

    @pytest.mark.parametrize("name", ["state", "message", "log_likelihood", "evaluations"])
    def test_damage(self, model, name):
        """One letter or digit is enough."""
        tree = to_tree(model)
        value = tree.attrs[name]
        tree.attrs[name] = f"{value} " if isinstance(value, str) else value + 1
        with pytest.raises(ModelFormatError, match="attributes of the file are not what was writ"):
            from_tree(tree, {})

    @pytest.mark.parametrize("name", ["theta", "observations", "process", "method", "solver"])
    def test_a_part_is_missing(self, model, name):
        """Or is there as something else."""
        refused(model, lambda state: state.pop(name) and None)
        for other in (None, 3, "x", [], {"class": "dict", "items": []}, {"class": "Exact"}):
            if (name, other) != ("solver", {"class": "Exact"}):
                refused(model, lambda state, other=other: state.update({name: other}))

    def test_a_field_that_is_not_known(self, model):
        """A file that knows more than this version."""
        refused(model, lambda state: state.update(colour="red"), "colour")


def within(*path: Any) -> Callable[[Any, Any], None]:
    """Return a function that puts a value at a place of the text."""

    def put(state: Any, value: Any) -> None:
        for step in path[:-1]:
            state = state[step]
        state[path[-1]] = value

    return put


COVARIANCE = ("process", "covariance")
LAW = ("process", "marginals", "items", 0)
SYSTEM = ("observations", "coordinates")
# Within the origins: the first piece of the first variable.
PIECE = (0, "items", 0)
SHORT = {"class": "array", "dtype": "i8", "shape": [2], "values": [0, 1]}


@pytest.fixture(scope="module")
def spread():
    """A model of a small raster: x and y are kept on their dims, the code at each value."""
    values = np.random.default_rng(0).normal(size=(4, 6))
    places = {"x": ("col", np.arange(6.0)), "y": ("row", np.arange(4.0))}
    codes = {"code": (("row", "col"), np.arange(24).reshape(4, 6))}
    data = xr.Dataset({"metal": (("row", "col"), values)}, places | codes)
    model = xcopula.fit(data, "metal", coords=["x", "y"], **QUICK)
    ((origin,),) = model.observations.origins
    assert [(k.name, k.each) for k in origin.labels] == [("x", False), ("y", False), ("code", True)]
    assert from_tree(to_tree(model), {}).loo().sizes == {"observation": 24}
    return model


class TestTypes:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ((*COVARIANCE, "structures"), 10**12),
            ((*COVARIANCE, "structures"), "1"),
            ((*COVARIANCE, "structures"), True),
            ((*COVARIANCE, "coupling"), "none"),
            ((*COVARIANCE, "groups", "items", 0, "size"), 10**12),
            ((*COVARIANCE, "kernels", "items", 0), {"class": "Exact"}),
            ((*COVARIANCE, "kernels", "items", 0), "matern32"),
            ((*COVARIANCE, "kernels", "items"), []),
            (LAW, {"class": "Exact"}),
            ((*LAW, "location"), "0"),
            ((*LAW, "location"), [0.0]),
            (("process", "marginals", "items"), []),
            ((*SYSTEM, "groups", "items"), []),
            ((*SYSTEM, "centre", "items"), [0.0]),
            ((*SYSTEM, "scale", "items"), ["1", "1"]),
            ((*SYSTEM, "groups", "items", 0, "axes", "items"), []),
            (("observations", "variables", "items"), []),
            (("observations", "variables", "items", 0, "name"), 3),
            (("observations", "variables", "items", 0, "attrs"), None),
            (("observations", "tolerance"), None),
            (("observations", "rows"), []),
            (("observations", "rows", 0, "covariates"), "x"),
            (("observations", "rows", 0, "positions"), []),
            (("alternatives", "items"), [1]),
            (("alternatives", "items"), [{"class": "tuple", "items": [1]}]),
            (("solver",), {"class": "Full"}),
            (("method",), {"class": "Exact"}),
            (("theta", "shape"), [3]),
            (("theta", "dtype"), "O"),
            (("theta", "at"), "/structure/../structure/theta"),
            (("theta", "at"), "/../../etc/passwd"),
            (("theta", "at"), "structure/theta"),
            (("theta", "at"), "/structure/nothing"),
            (("theta", "at"), "/nowhere/theta"),
            (("theta", "at"), "/structure"),
            (("theta", "at"), ["/structure/theta"]),
        ],
        ids=lambda x: "-".join(map(str, x)) if isinstance(x, tuple) else str(x),
    )
    def test_values_that_do_not_belong(self, model, path, value):
        """End in an error, and soon."""
        refused(model, lambda state: within(*path)(state, value))

    def test_an_array_of_another_kind(self, model):
        """Its dtype and its shape are those that were noted, and its numbers finite."""
        for values in ([np.nan], ["a"], [1]):
            tree = to_tree(model)
            data = tree["structure"].to_dataset()
            theta = np.resize(np.array(values), data["theta"].shape)
            tree["structure"] = xr.DataTree(data.assign(theta=("parameter", theta)))
            with pytest.raises(ModelFormatError, match="/structure/theta"):
                from_tree(tree, {})

    @pytest.mark.parametrize("name", ["theta", "prepared"])
    def test_parameters_that_are_not_finite(self, model, name):
        """Fit no model."""
        short = {"class": "array", "dtype": "f8", "shape": [model.theta.size]}
        short["values"] = ["nan"] * model.theta.size
        refused(model, lambda state: state.update({name: short}), "do not fit each other")

    def test_data_that_are_not_finite(self, model):
        """Or of several lengths."""
        short = {"class": "array", "dtype": "f8", "shape": [40], "values": ["inf"] * 40}
        refused(model, lambda s: within("observations", "rows", 0, "values")(s, short), "finite")
        short = {"class": "array", "dtype": "f8", "shape": [4], "values": [1.0] * 4}
        refused(
            model, lambda s: within("observations", "rows", 0, "values")(s, short), "one length"
        )

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ((), [{"class": "tuple", "items": []}] * 2),
            ((), [{"class": "tuple", "items": []}]),
            ((0, "items"), []),
            ((*PIECE, "dims", "items"), []),
            ((*PIECE, "dims", "items"), ["row", "row"]),
            ((*PIECE, "shape", "items"), [4, 6, 1]),
            ((*PIECE, "shape", "items"), [4, 5]),
            ((*PIECE, "shape", "items"), [-4, -6]),
            ((*PIECE, "shape", "items"), [4, 2**64]),
            ((*PIECE, "places"), SHORT),
            ((*PIECE, "places"), SHORT | {"shape": [24], "values": [24] * 24}),
            ((*PIECE, "places"), SHORT | {"shape": [24], "values": [-1] * 24}),
            ((*PIECE, "places"), SHORT | {"shape": [4, 6], "values": [0] * 24}),
            ((*PIECE, "labels", "items", 0, "dims", "items"), ["nowhere"]),
            ((*PIECE, "labels", "items", 0, "dims", "items"), []),
            ((*PIECE, "labels", "items", 0, "values"), SHORT),
            ((*PIECE, "labels", "items", 2, "values"), SHORT),
        ],
        ids=str,
    )
    def test_origins_that_are_not_those_of_the_values(self, spread, path, value):
        """They would fail when results are labelled."""
        whole = ("observations", "origins", "items", *path)
        refused(spread, lambda s: within(*whole)(s, value), "do not fit each other")

    def test_a_design_without_end(self, sloped):
        """A polynomial of a huge degree is not written out."""
        laws = xcopula.by("side", xcopula.regress("normal", on="height"))
        data = sloped.assign_coords(side=("site", np.where(sloped["x"] > 2.0, "e", "w")))
        model = xcopula.fit(data, "metal", **QUICK | {"marginals": laws})
        degree = (*LAW, "laws", "items", 0, "design", "degree")
        refused(model, lambda s: within(*degree)(s, 10**12), "do not fit each other")
        refused(model, lambda s: within(*LAW, "labels", "items")(s, ["e"]), "do not fit each other")

    @pytest.mark.parametrize("group", ["data", "structure", "data/metal"])
    def test_a_group_is_missing(self, model, group):
        """The arrays of the text must be there."""
        tree = to_tree(model)
        parent, _, name = f"/{group}".rpartition("/")
        node = tree[parent] if parent else tree
        node.children = {k: v for k, v in node.children.items() if k != name}
        with pytest.raises(KeyError):
            from_tree(tree, {})


class TestSchema:
    def test_a_newer_one(self, model):
        """Says which version wrote it."""
        tree = to_tree(model)
        tree.attrs |= {"schema": 2, "xcopula_version": "9.9"}
        with pytest.raises(
            ModelFormatError, match=r"schema 2, .* up to 1.* written by xcopula 9\.9"
        ):
            from_tree(tree, {})

    @pytest.mark.parametrize("schema", [None, "1", 0, -1, 1.0])
    def test_none(self, model, schema):
        """A number is needed."""
        tree = to_tree(model)
        tree.attrs["schema"] = schema
        with pytest.raises(ModelFormatError, match="'schema' must be a number"):
            from_tree(tree, {})

    def test_no_model(self):
        """A file of something else."""
        with pytest.raises(ModelFormatError, match=r"not a model of xcopula.*`model\.save`"):
            from_tree(xr.DataTree(), {})


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "laplace"},
        {"values": (40.0,)},
        {"parameters": (6.0, 6.0, 6.0)},
        {"values": (40.0, float("nan"))},
        {"parameters": (6.0, -1.0)},
    ],
)
def test_uncertainty_that_does_not_fit(model, change):
    """Kinds are known, and every variable has its numbers."""
    damaged = dataclasses.replace(model.uncertainty, **change)
    with pytest.raises(ModelFormatError, match="do not fit each other"):
        from_tree(to_tree(dataclasses.replace(model, uncertainty=damaged)), {})


@pytest.fixture(scope="module")
def limited(sites):
    """A model with limits and numbers of specimens."""
    options = QUICK | {"marginals": "lognormal", "censored": {"metal": 1.0}}
    return xcopula.fit(sites, "metal", replicates=True, **options)


class TestLimits:
    def test_they_are_read(self, limited):
        """What the tests below change is there."""
        again = from_tree(tampered(limited, lambda state: None), {})
        np.testing.assert_array_equal(
            again.observations.sample.limits, limited.observations.sample.limits
        )
        np.testing.assert_array_equal(again.observations.specimens, limited.observations.specimens)

    def test_values_outside_them(self, limited):
        """Lower and upper limits are not swapped."""
        refused(
            limited,
            lambda state: state["observations"]["rows"][0]["limits"].reverse(),
            "values of a variable must lie between their limits",
        )

    def test_specimens_are_whole_numbers(self, limited):
        """One for each value."""

        def change(state):
            rows = state["observations"]["rows"][0]
            rows["specimens"] = rows["values"]

        refused(limited, change, "Specimens must be whole numbers")
