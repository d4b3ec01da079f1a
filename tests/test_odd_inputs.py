"""Whatever a user could type: it works, or ends at once with what is wrong and what to do.

One table, a row for each odd call: what it is, the call, the error or "works", and what the message
must say. A call that is refused never evaluates a likelihood.
"""

# ruff: noqa: E501

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import xcopula
from xcopula import by, compare, cycle, predict, regress
from xcopula.cli import main
from xcopula.errors import CoordinateError, CostError, FieldError, SupportError
from xcopula.marginals import (
    GEV,
    Exponential,
    Gamma,
    Grouped,
    LogNormal,
    Marginal,
    Normal,
    Parzen,
    StudentT,
    resolve,
)
from xcopula.methods import Committee, Full, Sparse, Transductive
from xcopula.plot import marginal_qq, pit_histogram, prediction_map
from xcopula.solvers import Exact, Neighbours
from xcopula.storage import write_netcdf

WORKS = "works"
NAN = float("nan")
INF = float("inf")
KM = {"units": "km"}
FAST = {"method": "full", "marginals": "normal", "kernels": "se", "restarts": 0}

Call = Callable[[Any], object]
ROWS: dict[str, tuple[Call, Any, str]] = {}


def row(name: str, call: Call, expected: Any, says: str = "") -> None:
    """Add a row to the table."""
    assert name not in ROWS, name
    ROWS[name] = (call, expected, says)


def each(pattern: str, values: list[Any], call: Callable[..., object], *rest: Any) -> None:
    """Add a row for each of some values; ``{}`` stands for the value."""
    for value in values:
        text = f"class {value.__name__}" if isinstance(value, type) else repr(value)
        if isinstance(value, set):  # its order differs between processes
            text = f"set {sorted(value)}"
        name = pattern.replace("{}", text if len(text) < 40 else type(value).__name__)
        number = sum(known.partition(" #")[0] == name for known in ROWS)
        row(f"{name} #{number + 1}" if number else name, lambda w, v=value: call(w, v), *rest)


def line(size: int = 12) -> xr.Dataset:
    """Two variables along a line."""
    x = np.linspace(0.0, 5.0, size)
    return xr.Dataset(
        {
            "a": ("site", 10.0 + np.sin(x) + 0.1 * np.cos(7.0 * x), {"units": "mm"}),
            "b": ("site", 3.0 + np.cos(x) + 0.1 * np.sin(9.0 * x)),
        },
        coords={"x": ("site", x, {**KM, "axis": "X"})},
    )


def days(size: int = 48) -> xr.Dataset:
    """A variable every fifteen days."""
    time = np.datetime64("2000-01-01", "ns") + np.arange(size) * np.timedelta64(15, "D")
    k = np.arange(size)
    return xr.Dataset({"a": ("time", 5.0 + np.sin(k / 2.0) + 0.1 * np.cos(3 * k))}, {"time": time})


def plane() -> xr.Dataset:
    """A variable on a grid."""
    y, x = np.linspace(0.0, 3.0, 4), np.linspace(0.0, 4.0, 5)
    values = np.sin(y)[:, None] + np.cos(x) + 0.1 * np.sin(np.arange(20.0).reshape(4, 5) ** 2)
    return xr.Dataset({"a": (("y", "x"), values)}, {"y": ("y", y, KM), "x": ("x", x, KM)})


def with_a(values: Any) -> xr.Dataset:
    """Return the line with other values of ``a``."""
    return line().assign(a=values if isinstance(values, xr.DataArray) else ("site", values))


def with_x(values: Any, **attrs: Any) -> xr.Dataset:
    """Return the line with another coordinate."""
    return line().assign_coords(x=("site", np.asarray(values), {**KM, **attrs}))


def at(
    *places: Any, name: str = "x", dim: str = "x", dtype: Any = float, **attrs: Any
) -> xr.Dataset:
    """Return a target of points along the line."""
    return xr.Dataset(coords={name: (dim, np.array(places).astype(dtype), {**KM, **attrs})})


def fit(data: Any = None, primary: Any = "a", secondary: Any = (), **options: Any) -> Any:
    """Fit in no time."""
    return xcopula.fit(line() if data is None else data, primary, secondary, **{**FAST, **options})


def by_days(law: Any) -> Any:
    """Fit a law that varies to the days."""
    return fit(days(), marginals=law)


def twice() -> xr.Dataset:
    """Return a variable with a dim twice, of which xarray warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.Dataset(
            {"a": (("x", "x"), np.random.default_rng(0).random((5, 5)))}, {"x": TEN[:5]}
        )


TEN = np.arange(10.0)
X = line()["x"].values
A = line()["a"].values
JUST = np.ones((3, 4), bool)


class Decreasing(Normal):
    """A law that is none."""

    def to_normal(self, y):
        return -super().to_normal(y)

    def from_normal(self, z):
        return super().from_normal(-np.asarray(z))


class OneNumber(Normal):
    """A law of the wrong shape."""

    def from_normal(self, z):
        return super().from_normal(z).sum()


class Unfitted(Decreasing):
    """A class that cannot be fitted."""

    fit = Marginal.fit


@pytest.fixture(scope="module")
def w() -> SimpleNamespace:
    """Models and targets that calls need, fitted once."""
    heights = line().assign_coords(h=("site", X**2, {"units": "m"}))
    grid = xr.Dataset(
        coords={"y": ("y", [0.0, 1.0, 2.0], KM), "x": ("x", [0.0, 1.0, 2.0, 3.0], KM)}
    )
    flat = fit(plane())
    both = fit(None, "a", "b")
    target = at(0.1, 1.2, 2.3, 3.4, 4.9)
    return SimpleNamespace(
        alone=fit(),
        both=both,
        pairs=fit(None, "a", "b", method="transductive"),
        lazy=fit(None, "a", "b", compute=False),
        flat=flat,
        timed=fit(days()),
        seasons=by_days(by("time.season", "normal")),
        sloped=fit(heights, marginals=regress("normal", on="h")),
        grid=grid,
        cells=grid["x"] * grid["y"],
        map=flat.predict(grid),
        target=target,
        posterior=both.posterior(target),
        compared=compare(line(), "a", kernels=["se"], marginals=["normal"]),
    )


# One row a line.
# fmt: off
# Names of variables. ---------------------------------------------------------------------------
TAKEN = ["quantile", "threshold", "bound", "secondary", "realization", "observation"]
each("primary {}", TAKEN, lambda w, n: fit(line().rename(a=n), n), ValueError, "called '.*Rename it")
each(
    "secondary {}", TAKEN, lambda w, n: fit(line().rename(b=n), "a", n), ValueError, "`ds.rename"
)
each("primary {}", ["mean", "task", "score"], lambda w, n: fit(line().rename(a=n), n), WORKS)
each(
    "primary {}",
    [5, None, ["a"], ("a", "b"), b"a", {}, NAN, line()["a"]],
    lambda w, n: fit(None, n),
    TypeError,
    "`primary`: names must be strings, found",
)
row("primary zz", lambda w: fit(None, "zz"), KeyError, "No variable .*have .'a', 'b'")
row("primary without a name", lambda w: fit(None, ""), ValueError, "called ''.*Rename it")
row("primary that is a coordinate", lambda w: fit(None, "x"), KeyError, r"reset_coords\('x'\)")
each(
    "secondary {}",
    [None, {"b"}, np.array(["b"]), np.array([]), pd.Index(["b"]), ["b"], ("b",), {"b": 1}],
    lambda w, n: fit(None, "a", n),
    WORKS,
)
row("secondary generator", lambda w: fit(None, "a", (n for n in "b")), WORKS)
row("secondary of a Dataset", lambda w: fit(None, "a", line()[["b"]]), WORKS)
each(
    "secondary {}",
    [5, True, [5], [None], [["b"]], b"b", np.array(5), line()["b"]],
    lambda w, n: fit(None, "a", n),
    TypeError,
    "`secondary`: names must be strings, found",
)
row("secondary is the primary", lambda w: fit(None, "a", "a"), ValueError, "'a' is also .*Name it")
row("secondary twice", lambda w: fit(None, "a", ["b", "b"]), ValueError, "twice.*Name it once")
row("secondary unknown", lambda w: fit(None, "a", "zz"), KeyError, "No variable 'zz'")

row("data None", lambda w: xcopula.fit(None, "a"), TypeError, "`data` must be a Dataset")

# Data. -----------------------------------------------------------------------------------------
each(
    "data {}",
    [5, line()["a"], np.zeros(3), [1, 2], xr.Dataset],
    lambda w, d: fit(d),
    TypeError,
    "`data` must be a Dataset, a DataFrame or a mapping",
)
row("data frame", lambda w: fit(line().to_dataframe()), CoordinateError, r"'site' only counts rows.*\['x'\] look like")
row("data frame with coords", lambda w: fit(line().to_dataframe(), coords="x"), WORKS)
each("data {}", ["a.nc", Path("a.nc")], lambda w, d: fit(d), TypeError, "Open the file with")
each("data {}", [xr.Dataset(), {}], lambda w, d: fit(d), KeyError, r"No variable 'a'.*have \[\]")
each(
    "mapping of {}",
    [np.arange(9.0), None, line(), pd.Series([1.0]), line()["a"].variable],
    lambda w, d: fit({"a": d}),
    TypeError,
    "Variable 'a' is a .*a mapping holds DataArrays.*Convert it",
)
row("mapping of other names", lambda w: fit({"q": line()["a"]}, "q"), WORKS)
row("data tree", lambda w: fit(xr.DataTree(line())), WORKS)
DTYPES = {
    "bool": (A > 10.0, "`.astype"),
    "text": (A.astype(str), "`.astype"),
    "bytes": (A.astype("S"), "`.astype"),
    "objects": (A.astype(object), "`.astype"),
    "complex": (A + 1j, "`.real`"),
    "dates": (np.arange(12).astype("M8[D]"), "Subtract a date"),
    "durations": (np.arange(12).astype("m8[D]"), "Divide it by"),
    "records": (np.zeros(12, [("u", "f8")]), "`.astype"),
}
for kind, (odd, remedy) in DTYPES.items():
    said = f"Variable 'a' has dtype .*a task needs numbers. .*{remedy}"
    row(f"values of {kind}", lambda w, v=odd: fit(with_a(v)), TypeError, said)
    if kind != "records":
        lazily = lambda w, v=odd: fit(with_a(v).chunk(), compute=False)  # noqa: E731
        row(f"lazy values of {kind}", lazily, TypeError, said)
row("secondary of text", lambda w: fit(line().assign(b=line()["b"].astype(str)), "a", "b"), TypeError, "Variable 'b' has dtype")
each("values of {}", ["f2", "f4", "g"], lambda w, d: fit(with_a(A.astype(d))), WORKS)
row("values of int8", lambda w: fit(with_a(np.arange(12, dtype="i1") ** 2 % 11)), WORKS)
row("all NaN", lambda w: fit(with_a(A * NAN)), ValueError, "'a' has 0 finite values of 12.*Leave it")
row("secondary all NaN", lambda w: fit(line().assign(b=line()["b"] * NAN), "a", "b"), ValueError, "'b' has 0 finite")
each("{} sites", [0, 1, 4], lambda w, n: fit(line().isel(site=slice(n))), ValueError, "'a' has . finite.*give more")
row("five sites", lambda w: fit(line().isel(site=slice(5))), WORKS)
row("one number", lambda w: fit(line().isel(site=0)), ValueError, "1 finite values of 1; a task needs at least 5")
row("constant", lambda w: fit(with_a(A * 0.0 + 3.0)), ValueError, "'a' is constant.*Leave it out")
each("a value of {}", [INF, -INF], lambda w, v: fit(with_a(np.where(X > 1.0, A, v))), ValueError, "'a' has 3 infinite values.*to NaN")
each("values times {}", [1e150, 1e200, 1e300], lambda w, s: fit(with_a(A * s)), ValueError, r"'a' has values up to 1.11e\+.*Rescale its units")
each("values times {}", [1e-151, 1e-200, 1e-300, 1e-310], lambda w, s: fit(with_a(A * s)), ValueError, "'a' has values that spread by .*too little.*Rescale its units")
each("values times {}", [1e148, 1e-149, 1e9, 1e-9], lambda w, s: fit(with_a(A * s)), WORKS)
each("{} of values times 1e300", ["normal", "t", "gev", "gamma", "parzen", "auto"], lambda w, m: fit(with_a(A * 1e300), marginals=m), ValueError, "Rescale its units")
GIVEN = [Normal, LogNormal, Exponential, GEV, Gamma, StudentT, Parzen]
for size in (1e151, 1e200, 1e300):
    each(f"{{}} of values times {size:g}, alone", GIVEN, lambda w, law, s=size: law.fit((A + 2.0) * s), ValueError, r"values up to .*e\+\d+ are too large.*Rescale their units")
for size in (1e-152, 1e-200, 1e-300, 1e-310):
    each(f"{{}} of values times {size:g}, alone", GIVEN, lambda w, law, s=size: law.fit((A + 2.0) * s), ValueError, "spread by .* too close.*Rescale their units")
each("{} of values that differ by rounding", GIVEN, lambda w, law: law.fit(1e5 * (1.0 + 2.3e-16 * np.arange(12))), ValueError, "differ by little more than rounding")
each("{} of large values, alone", GIVEN, lambda w, law: law.fit((A + 2.0) * 1e148), WORKS)
each("{} of small values, alone", GIVEN, lambda w, law: law.fit((A + 2.0) * 1e-149), WORKS)
row("one value of 1e200", lambda w: fit(with_a(np.where(X > 0.1, A, 1e200))), ValueError, r"up to 1e\+200")
row("dim twice", lambda w: fit(twice()), ValueError, r"'a' has a dim twice: \['x', 'x'\].*different names")
row("two values at a site", lambda w: fit(xr.concat([line(), line()], "site")), ValueError, "'a' has several values at 12 of its sites")
row("dim without a coordinate", lambda w: fit(line().expand_dims(run=3)), CoordinateError, r"'a' varies along \['run'\].*Select one")
row("masked array", lambda w: fit(xr.Dataset({"a": ("site", np.ma.masked_less(A, 9.0))}, line().coords)), WORKS)

# Coordinates. ----------------------------------------------------------------------------------
each("coordinate {}", [INF, NAN], lambda w, v: fit(with_x(np.where(X > 0.1, X, v))), CoordinateError, "1 of the 12 values of 'a' .*not finite. Drop them")
row("coordinate all NaN", lambda w: fit(with_x(X * NAN)), CoordinateError, "12 of the 12 values of 'a'")
row("coordinate constant", lambda w: fit(with_x(X * 0.0)), CoordinateError, r"\['x'\] have one value at all 12")
each("coordinate of {}", ["U9", "c16", "?", "O"], lambda w, d: fit(with_x(X.astype(d)), coords="x"), CoordinateError, "'x' has dtype .*inputs must be numbers or dates. Convert")
each("coordinate times {}", [1e300, 3e307, 1e-300, 1e-320], lambda w, s: fit(with_x(X * s)), CoordinateError, "Coordinate 'x' has values .*Rescale its units")
each("coordinate times {}", [1e100, 1e-100], lambda w, s: fit(with_x(X * s)), WORKS)
each("field times {}", [1e300, 1e-300], lambda w, s: fit(line().assign_coords(h=("site", X * s)), marginals=regress("normal", on="h")), FieldError, "The field 'h' of 'a' has values .*Rescale its units")
each("field of all {}", [NAN, None, INF], lambda w, v: fit(line().assign_coords(h=("site", np.array([v] * 12, float))), marginals=regress("normal", on="h")), FieldError, "'h' is missing at 12 sites where 'a' is known.*Fill it in")
NATS = {"one": [np.datetime64("NaT", "ns"), *days()["time"].values[1:]], "all": np.full(48, np.datetime64("NaT", "ns"))}
for kind, dates in NATS.items():
    row(f"NaT at {kind}", lambda w, d=dates: fit(days().assign_coords(time=d)), CoordinateError, r"'time' has no date \(NaT\) at .* of 48 places. Drop")
row("no date at all", lambda w: fit(days(0), coords="time"), ValueError, "'a' has 0 finite values of 0")
row("dates of text", lambda w: fit(days().assign_coords(time=days()["time"].astype(str)), coords="time"), WORKS)
row("dates not decoded", lambda w: fit(with_x(X, units="days since 2000-01-01")), CoordinateError, "was not decoded. Use")
row("no coordinate", lambda w: fit(line().drop_vars("x")), CoordinateError, "have no coords. Pass")
row("names for coordinates", lambda w: fit(line().drop_vars("x").assign_coords(site=list("abcdefghijkl"))), CoordinateError, r"\['site'\]. Pass")
row("longitude alone", lambda w: fit(with_x(X, units="degrees_east", axis="")), CoordinateError, "'x' is a longitude.*no latitude.*Add")
each("units {}", [None, 5, np.array([1, 2]), b"km"], lambda w, u: fit(with_x(X, units=u)), WORKS)
each("axis {}", [np.array(["X", "Y"]), 5], lambda w, u: fit(with_x(X, axis=u)), WORKS)
MAPPINGS = [np.array([1, 2]), np.array(["crs", "b"]), 5, ["crs", 5], {"a": 1}]
each("grid_mapping {}", MAPPINGS, lambda w, g: fit(with_a(line()["a"].assign_attrs(grid_mapping=g))), CoordinateError, "'a' has the attribute `grid_mapping` .*name of one variable. Set it")
each("grid_mapping {} of a target", MAPPINGS, lambda w, g: w.both.predict(w.target.assign_attrs(grid_mapping=g)), CoordinateError, "The Dataset has the attribute `grid_mapping`")
each("coords {}", [{5: "x"}, {None: "x"}, {"": "x"}, {(): "x"}], lambda w, c: fit(coords=c), TypeError, "`coords` must name its groups by strings, found .*Use")
each("coords {}", [5, True, {"x"}, np.array(["x"]), b"x", {"space": 5}, {"space": None}, line()["x"]], lambda w, c: fit(coords=c), TypeError, "`coords` must be a name, a sequence of names, or a mapping")
each("coords {}", [[5], [None], [["x"]]], lambda w, c: fit(coords=c), TypeError, "`coords` must name coordinates by strings")
each("coords {}", [[], {}, {"space": []}, ()], lambda w, c: fit(coords=c), CoordinateError, "`coords` names no coordinate")
each("coords {}", ["", "zz", ["x", "zz"], "site", "a"], lambda w, c: fit(coords=c), CoordinateError, "No coordinate .*Correct `coords`")
row("coords twice", lambda w: fit(coords=["x", "x"]), CoordinateError, "twice.*Name it once")
row("coords half a globe", lambda w: fit(coords={"longitude": "x"}), CoordinateError, "'latitude' is None")
row("coords of a variable", lambda w: fit(coords="b"), WORKS)
each("input called {}", ["quantile", "threshold", "pit", "mean", "observed"], lambda w, n: fit(line().rename(x=n), coords=n), CoordinateError, "input is called .*Rename the coordinate")
row("input called observation", lambda w: fit(line().rename(x="observation"), coords="observation").loo(), WORKS)
each("ard {}", [5, None, NAN, 1], lambda w, v: fit(ard=v), TypeError, "`ard` is True, False or the names of groups")
each("ard {}", ["nonsense", ["zz"], [5], "x"], lambda w, v: fit(ard=v), CoordinateError, r"`ard` names groups .* are \['space'\]")
each("anisotropy {}", [5, None, NAN, 1, {"x": True}, {"space": 5}, {"space": True}, b"space"], lambda w, v: fit(anisotropy=v), TypeError, "`anisotropy` is True, False or the names of groups")
each("anisotropy {}", ["nonsense", ["zz"], [5], "x", "auto", "", [None]], lambda w, v: fit(anisotropy=v), CoordinateError, r"`anisotropy` names groups .* are \['space'\]")
each("anisotropy {}", ["space", {"space"}, ("space",)], lambda w, v: fit(anisotropy=v), ValueError, "`anisotropy` needs at least two coordinates in a group; 'space' has only one")
each("anisotropy {}", [True, [], np.False_, ()], lambda w, v: fit(anisotropy=v), WORKS)
each("ard {}", ["space", [], np.True_, {"space"}], lambda w, v: fit(ard=v), WORKS)
each("cycle {}", [5, None, ""], lambda w, v: cycle(v), TypeError, "name of a coordinate as a string")
each("cycle of {}", [None, True, [1], 1j], lambda w, v: cycle("x", v), TypeError, "period must be a number")
each("cycle of {}", [0, -1, NAN, INF], lambda w, v: cycle("x", v), ValueError, "positive and finite")
row("cycle of a week", lambda w: cycle("x", "week"), ValueError, "'year' or 'day', found 'week'")
row("cycle without dates", lambda w: fit(coords=[cycle("x")]), CoordinateError, "'x' holds no dates. Give")

# Options of a fit. -----------------------------------------------------------------------------
REFUSED: dict[str, list[tuple[list[Any], Any, str]]] = {
    "method": [
        (["zz", "", "FULL", " full"], ValueError, "Unknown method .*Choose one of"),
        ([5, None, ["full"], True], TypeError, "`method` must be .*found"),
        ([Full], TypeError, r"`method` is a class. Give an object instead: Full\(\)"),
    ],
    "solver": [
        (["zz", ""], ValueError, "Unknown solver .*Choose one of"),
        ([5, None, [], True], TypeError, "`solver` must be .*found"),
        ([Exact], TypeError, r"Give an object instead: Exact\(\)"),
        ([Neighbours], TypeError, r"Give an object instead: Neighbours\(\)"),
    ],
    "marginals": [
        (["zz", "", "Normal", {"a": "zz"}], ValueError, "`marginals` of 'a': Unknown marginal .*Choose"),
        ([5, None, True, int, b"normal", {"a": None}, [None], ["normal", 5]], TypeError, "`marginals` of 'a': A marginal is one of"),
        ([[], (), set(), {"a": []}], ValueError, "`marginals` of 'a': There must be at least one name to select from"),
        ([["normal", "zz"], {"zz"}, ["select"]], ValueError, "`marginals` of 'a': Unknown marginal .*Choose"),
        ([["normal", regress("normal", on="x")]], TypeError, "'a': A list of marginals is selected from, and these vary"),
        ([{"zz": "normal"}, {5: "normal"}], KeyError, r"`marginals` names .*are \['a'\]"),
        ([Marginal, regress(Marginal, on="x"), by("x", Marginal)], TypeError, "of 'a': Marginal is no law: it lacks .*Choose"),
        ([Grouped], TypeError, "of 'a': Grouped is fitted by a recipe. Give"),
        ([Unfitted], TypeError, "of 'a': Unfitted has no fit. Pass an instance"),
        ([Decreasing()], ValueError, "of 'a': Decreasing is no law: .*It must increase"),
        ([Decreasing], ValueError, "'a': Decreasing is no law: .*It must increase"),
        ([OneNumber()], ValueError, r"of 'a': OneNumber is no law: from_normal returns shape \(\)"),
    ],
    "kernels": [
        (["zz", "", 5, None, True, {"a": "zz"}, {"a": 5}, int], ValueError, "`kernels` of 'a': Unknown kernel .*Choose one of"),
        ([set(), frozenset()], ValueError, "`kernels` of 'a': There must be at least one name to select from"),
        ([{"se", "zz"}, {"auto", "se"}], ValueError, "`kernels` of 'a': Unknown kernel .*Choose one of"),
        ([{"zz": "se"}, {5: "se"}], KeyError, r"`kernels` names .*are \['a'\]"),
    ],
    "coupling": [
        (["zz", ""], ValueError, "Unknown coupling .*Choose one of convolution, icm, lmc"),
        ([5, None, ["icm"], np.array(["icm", "lmc"])], TypeError, "`coupling` must be one of convolution, icm, lmc"),
    ],
    "noise": [
        (["zz", ""], ValueError, "Unknown noise .*Choose one of correlated"),
        ([5, None, {}, np.array(["a", "b"])], TypeError, "`noise` must be one of correlated"),
    ],
    "structures": [
        ([0, -1], ValueError, "`structures` must be at least 1, found"),
        ([1.5, None, True, [], NAN], TypeError, "`structures` must be an integer, found"),
        (["two", "2", "", "Auto"], ValueError, "Unknown structures .*Choose 'auto', or"),
        ([7, 200, 10**30], ValueError, "variable 'a' has .* parameters, but there are only 12 values. Use at most 6 str"),
    ],
    "restarts": [
        ([-1], ValueError, "`restarts` must be at least 0, found -1"),
        ([1.5, None, "2", True], TypeError, "`restarts` must be an integer, found"),
    ],
    "seed": [
        ([-1], ValueError, "`seed` must be at least 0, found -1"),
        ([1.5, None, "2", True, NAN], TypeError, "`seed` must be an integer, found"),
    ],
    "max_hours": [
        ([0, -1, NAN], ValueError, "`max_hours` must be positive, found .*None sets no limit"),
        (["4", True, [], 1j, np.array([1, 2])], TypeError, "`max_hours` must be a number of hours or None"),
        ([1e-12], CostError, "needs about .*data.thin"),
    ],
    "compute": [(["x", None, 5, []], TypeError, "`compute` must be True or False, found")],
}
for option, cases in REFUSED.items():
    for values, error, says in cases:
        each(f"{option}={{}}", values, lambda w, v, o=option: fit(**{o: v}), error, says)
each("marginals={}", [["normal"], ("normal", "t"), {"gev", "t"}, "select", {"a": ["normal"]}], lambda w, v: fit(marginals=v), WORKS)
each("kernels={}", [{"se"}, frozenset({"se"}), "select", {"a": {"se"}}], lambda w, v: fit(kernels=v), WORKS)
each("max_hours={}", [None, INF, np.float32(2.0)], lambda w, v: fit(max_hours=v), WORKS)
each("seed={}", [2**70, np.uint8(3)], lambda w, v: fit(seed=v), WORKS)
each("compute={}", [np.False_], lambda w, v: fit(compute=v), WORKS)
each("structures={}", ["auto", np.int8(2)], lambda w, v: fit(structures=v), WORKS)
for option in ("neighbours", "predict"):
    each(f"{option}={{}} of Neighbours", [0, -1], lambda w, v, o=option: fit(solver=Neighbours(**{o: v})), ValueError, f"`{option}` must be at least 1, found")
    each(f"{option}={{}} of Neighbours", [2.5, True, "5", [5], NAN, b"5", 1j, np.array([3, 4])], lambda w, v, o=option: fit(solver=Neighbours(**{o: v})), TypeError, f"`{option}` must be an integer, found")
    each(f"{option}={{}} of Neighbours", [1, 3, np.uint8(4), 10**6, 10**30, None], lambda w, v, o=option: fit(solver=Neighbours(**{o: v})).predict(w.target), WORKS)
each("tiles={} of Neighbours", [0, 1, None, "yes", []], lambda w, v: fit(solver=Neighbours(tiles=v)), TypeError, "`tiles` must be True or False, found")
each("tiles={} of Neighbours", [False, np.True_], lambda w, v: fit(None, "a", "b", solver=Neighbours(tiles=v)).predict(w.target), WORKS)
each("neighbours by method {}", ["full", "transductive", Committee(blocks=2)], lambda w, v: fit(None, "a", "b", method=v, solver="neighbours").predict(w.target), WORKS)
row("neighbours on a plane of 20 cells", lambda w: fit(plane(), solver="neighbours").predict(w.grid), WORKS)
row("anchors by neighbours", lambda w: fit(None, "a", "b", method=Transductive(anchors=at(0.5)), solver="neighbours"), ValueError, "anchors .*solver='neighbours' does not have. Use anchors='auto'")
row("block by neighbours", lambda w: fit(None, "a", "b", method=Transductive(anchors="block"), solver="neighbours"), ValueError, "solver='neighbours' does not have. Use anchors='auto'")
row("200 structures on 8 sites", lambda w: fit(line(8), structures=200), ValueError, "structures=200 .*'a' has 400 parameters, but there are only 8 values.*at most 4")
row("structures of a secondary", lambda w: fit(line().assign(b=line()["b"].where(line()["x"] < 2.0)), "a", "b", structures=4), ValueError, "variable 'b' has 8 parameters, but there are only 5")
row("unknown keyword", lambda w: fit(weights="auto"), TypeError, "`fit` has no option 'weights'")
row("two kernels for one", lambda w: fit(None, "a", "b", coupling="icm", kernels={"a": "se", "b": "matern12"}), ValueError, "needs one kernel for all.*Give one")
row("law of cokriging", lambda w: fit(method="cokriging", marginals="gamma"), ValueError, "takes normal marginals only, found .*Leave")
row("law of other data", lambda w: fit(marginals=w.sloped.marginals[0]), TypeError, "`regress.*it is fitted to these")
row("values outside a support", lambda w: fit(with_a(A - 50.0), marginals="gamma"), SupportError, "'a': gamma needs positive values: 12 of 12")
def anchored(w, points):
    """A fit with anchors."""
    return fit(None, "a", "b", method=Transductive(anchors=points))


row("anchors of no point", lambda w: anchored(w, w.target.isel(x=[])), CoordinateError, r"`anchors` has no point: its sizes are .'x': 0.*Give at least one")
row("anchors without coordinates", lambda w: anchored(w, xr.Dataset()), CoordinateError, "`anchors` lacks the coordinate 'x'")
row("anchors in seconds", lambda w: anchored(w, at(1.0, units="s")), CoordinateError, "`anchors`: Coordinate 'x' is in 's'")
row("anchors that are NaN", lambda w: anchored(w, at(1.0, NAN)), CoordinateError, "1 of 2 .* not finite. Drop them")
row("anchors of a class", lambda w: anchored(w, xr.Dataset), TypeError, "`anchors` must be a Dataset of points")
row("anchors of a tree", lambda w: anchored(w, xr.DataTree(w.target)), TypeError, "`anchors` must be a Dataset of points")
row("inducing of another variable", lambda w: fit(method=Sparse(inducing={"zz": 3})), KeyError, r"`inducing` names \['zz'\], but the variables are \['a'\]")
each("inducing={}", [0, -1], lambda w, v: Sparse(inducing=v), ValueError, "`inducing` must be at least 1")
each("inducing={}", [1.5, None, True, "20", [3]], lambda w, v: Sparse(inducing=v), TypeError, "`inducing` must be an integer")
row("inducing points with labels", lambda w: fit(method=Sparse(inducing=w.target)), KeyError, r"`inducing` names \[\], but the variables")
each("sparse {}", ["zz", 5, []], lambda w, v: Sparse(v), ValueError, "Unknown sparse method")
each("weights={}", ["zz", 5, None, []], lambda w, v: Transductive(weights=v), ValueError, "Unknown weights .*Choose")
each("anchors={}", ["zz", 5, [1.0], {}], lambda w, v: Transductive(anchors=v), ValueError, "Unknown anchors .*Choose")
each("polish={}", [5, None], lambda w, v: Transductive(polish=v), TypeError, "`polish` must be True or False")
each("blocks={}", [0, -1], lambda w, v: Committee(v), ValueError, "`blocks` must be at least 1")
each("blocks={}", [1.5, None, "x", True], lambda w, v: Committee(v), TypeError, "`blocks` must be an integer")

# Laws. -----------------------------------------------------------------------------------------
SCALES = {Normal: (0.0,), LogNormal: (0.0,), Exponential: (), Gamma: (2.0,), GEV: (0.0,), StudentT: (0.0,)}
for law, before in SCALES.items():
    each(f"{law.__name__} of scale {{}}", [-1, 0, NAN, INF], lambda w, s, f=law, b=before: f(*b, s), ValueError, f"{law.__name__}: the scale must be positive and finite, found .*fit")
    each(f"{law.__name__} of scale {{}}", ["a", None, True, [1.0]], lambda w, s, f=law, b=before: f(*b, s), TypeError, f"{law.__name__}: the scale must be a number")
each("gamma of shape {}", [-1, 0, NAN], lambda w, s: Gamma(s, 1.0), ValueError, "Gamma: the shape must be positive")
each("t of df {}", [-1, 0, NAN], lambda w, s: StudentT(0.0, 1.0, s), ValueError, "StudentT: the df must be positive")
each("gev of shape {}", [NAN, INF], lambda w, s: GEV(0.0, 1.0, s), ValueError, "GEV: the shape must be finite")
each("normal of location {}", [NAN, INF], lambda w, s: Normal(s), ValueError, "Normal: the location must be finite")
row("gev of a negative shape", lambda w: GEV(0.0, 1.0, -0.2), WORKS)
each("resolve {}", [None, 5, []], lambda w, v: resolve(v), TypeError, "A marginal is one of")
each("by {}", [5, "", None, ["k"]], lambda w, v: by(v), TypeError, "name")
each("by of {}", [None, 5, Normal()], lambda w, v: by("k", v), TypeError, "by ")
row("by of a by", lambda w: by("k", by("l")), ValueError, "by .*Make a coordinate that names the combinations")
PARTS = ["time._obj", "time.", "time.zz", "time.dt", "time.__class__", "time.values", "time.Month", "time.month.x", "time.strftime"]
each("by {}", PARTS, lambda w, k: by_days(by(k, "normal")), FieldError, "'a': A date has no part .*Use 'month'")
each("regress on {}", PARTS, lambda w, k: by_days(regress("normal", on=k)), FieldError, "'a': A date has no part .*Use 'month'")
each("by {}", ["zz", "zz.month", ".month", " time.month"], lambda w, k: by_days(by(k, "normal")), FieldError, "The law of 'a' varies with .*neither")
row("by the variable itself", lambda w: by_days(by("a", "normal")), FieldError, "'a' itself. Leave it out")
row("by x.month", lambda w: fit(marginals=by("x.month", "normal")), FieldError, "'x.month' is a part of a date, but 'x'")
row("by too small groups", lambda w: by_days(by("time.month", "normal")), ValueError, r"'a': .*at least 5 values in each group.*Choose|'a': .*group")
row("regress on names", lambda w: by_days(regress("normal", on="time.season")), FieldError, "'time.season' has dtype .*For groups use `by")
each("regress on {}", ["", [5], []], lambda w, v: regress("normal", on=v), ValueError, "on=")
each("regress of degree {}", [0, 5, 1.5, "1", True], lambda w, v: regress("normal", on="x", degree=v), ValueError, "degree")
each("regress of link {}", ["zz", 5, []], lambda w, v: regress("normal", on="x", link=v), ValueError, "Unknown link")
SAMPLES = {"none": [], "one": [1.0], "equal": [1.0, 1.0], "NaN": [1.0, NAN], "2-D": [[1.0, 2.0]]}
for kind, sample in SAMPLES.items():
    each(f"fit {{}} to {kind}", [Normal, Gamma, Parzen, GEV], lambda w, f, s=sample: f.fit(s), ValueError, "two different values|are NaN|1-D")

# Targets. --------------------------------------------------------------------------------------
each("target {}", [None, [1.0], {}, np.zeros(3), "x", (1, 2), 5, xr.Dataset], lambda w, t: w.both.predict(t), TypeError, r"The target must be a Dataset, DataArray or DataFrame, found .*coordinates \['x'\]")
row("target frame", lambda w: w.both.predict(w.target.to_dataframe()), WORKS)
each("posterior on {}", [None, [1.0], "x"], lambda w, t: w.both.posterior(t), TypeError, "The target must be a Dataset")
each("target without coordinates: {}", [xr.Dataset(), xr.DataArray([1.0], dims="x")], lambda w, t: w.both.predict(t), CoordinateError, "The target lacks the coordinate 'x' .*Add it")
each("target in {}", ["s", "hPa", np.array([1, 2])], lambda w, u: w.both.predict(at(1.0, units=u)), CoordinateError, "'x' is in .*the training data had 'x' in 'km'. Convert it")
each("target in {}", ["mm", b"km", "Kilometres"], lambda w, u: w.both.predict(at(1.0, units=u)), WORKS)
each("target of {}", ["U9", "c16", "?", "O", "M8[ns]"], lambda w, d: w.both.predict(at(*range(3), dtype=d)), CoordinateError, "The target: Coordinate 'x' has dtype")
each("target at {}", [INF, NAN, 1e300, -1e308, 5], lambda w, v: w.both.predict(at(v, 1.0)), WORKS)
row("target of no cell", lambda w: w.both.predict(w.target.isel(x=[])), WORKS)
row("target of one number", lambda w: w.both.predict(xr.Dataset(coords={"x": ((), 1.0, KM)})), WORKS)
row("target of two x", lambda w: w.both.predict(at(1.0, name="u", dim="p", axis="X").assign_coords(v=("p", [1.0], {**KM, "axis": "X"}))), CoordinateError, "all claim to be the coordinate 'x'.*Drop all but one")
row("target with a dim twice", lambda w: w.both.predict(twice()), WORKS)
row("target on the globe", lambda w: w.both.predict(xr.Dataset(coords={"lon": ("lon", [1.0], {"units": "degrees_east"}), "lat": ("lat", [1.0], {"units": "degrees_north"})})), CoordinateError, "Project its longitude")
each("target with dim {}", ["quantile", "threshold", "bound", "secondary", "realization"], lambda w, d: w.both.posterior(at(1.0, 2.0, dim=d)), ValueError, "The target has dims .*reserved for results. Rename")
row("target with dim observation", lambda w: w.both.predict(w.both.loo()), WORKS)
each("target with a coordinate {}", ["quantile", "threshold", "bound", "a", "mean"], lambda w, c: w.both.posterior(w.target.assign_coords({c: 3.0})).interval(), WORKS)
row("latent beside a mean", lambda w: w.both.posterior(w.target.assign_coords(mean=3.0)).latent, WORKS)
row("dates as numbers", lambda w: w.timed.predict(at(1.0, name="time")), CoordinateError, "'time' has dtype float64, but the model has dates")
row("dates with NaT", lambda w: w.timed.predict(xr.Dataset(coords={"time": np.array(["2000-02-01", "NaT"], "M8[ns]")})), CoordinateError, "'time' has no date .*1 of 2 places. Drop")
row("dates of another calendar", lambda w: w.timed.predict(xr.Dataset(coords={"time": xr.date_range("2000-01-01", periods=2, calendar="360_day", use_cftime=True)})), CoordinateError, "'360_day' calendar.*Convert it")
H = {"nothing": (None, "'h'.*lacks.*Add them"), "text": (list("abcde"), "'h' has dtype .*needs numbers"), "complex": ([1j] * 5, "'h' has dtype complex128"), "dates": (np.arange(5).astype("M8[D]"), "'h' has dtype datetime64")}
for kind, (heights, says) in H.items():
    row(f"field of {kind}", lambda w, h=heights: w.sloped.predict(w.target if h is None else w.target.assign_coords(h=("x", h))), FieldError, says)
row("field in seconds", lambda w: w.sloped.predict(w.target.assign_coords(h=("x", TEN[:5], {"units": "s"}))), FieldError, "'h' is in 's'.*Convert it")
row("field of another dim", lambda w: w.sloped.predict(w.target.assign_coords(h=("q", TEN[:5]))), FieldError, r"has dims \['q'\].*Select one")
each("field of {}", [NAN, INF], lambda w, v: w.sloped.predict(w.target.assign_coords(h=v)), WORKS)
each("model {}", [None, "a", line(), xcopula.CopulaModel], lambda w, m: predict(m, w.target), TypeError, "`model` must be a model of `xcopula.fit`, found")
row("model and target swapped", lambda w: predict(w.target, w.both), TypeError, "`model` must be a model of `xcopula.fit`")
row("model None of the accessor", lambda w: w.target.mtcopula.predict(None), TypeError, "found None")

# Quantiles, thresholds, variables. -------------------------------------------------------------
LEVELS = ["a", "", "0.5", b"0.5", None, 0, 1, -0.1, 1.5, 95, NAN, INF, True, 1j, [], [NAN], [[0.5]], [0.1, "a"], [[0.1], [0.2, 0.3]], {}, {0.5}, np.datetime64("2000")]
each("quantiles {}", [q for q in LEVELS if not isinstance(q, str)], lambda w, q: w.both.predict(w.target, q), ValueError, "Quantile levels must lie strictly between 0 and 1, found .*Give fractions")
each("quantiles {}", [q for q in LEVELS if isinstance(q, str)], lambda w, q: w.both.predict(w.target, q), TypeError, "`quantiles` must be numbers .*found .*pass `variable=")
row("quantiles of a generator", lambda w: w.both.predict(w.target, (q for q in [0.5])), ValueError, "strictly between")
each("quantiles {}", [[0.9, 0.1], [0.5, 0.5], np.array([0.1]), xr.DataArray([0.1, 0.2]), 1e-320], lambda w, q: w.both.predict(w.target, q), WORKS)
each("interval {}", ["a", None, 0, 1, 90, NAN, []], lambda w, q: w.posterior.interval(q), ValueError, "strictly between 0 and 1")
row("interval of two levels", lambda w: w.posterior.interval([0.5, 0.9]), ValueError, "`level` must be one number, found .*for each level")
THRESHOLDS = ["a", "3", None, NAN, [NAN], [], [[1.0]], [1, "a"], True, 1j, {}, {1.0}, np.datetime64("2000")]
each("threshold {}", THRESHOLDS, lambda w, v: w.posterior.exceedance(v), ValueError, "A threshold must be a number or a sequence of numbers, .*found .*units of 'a'")
each("cdf of {}", THRESHOLDS[:5], lambda w, v: w.posterior.cdf(v), ValueError, "A threshold must be a number")
each("threshold {}", [INF, [-INF, 3], range(3), np.float32(2)], lambda w, v: w.posterior.exceedance(v), WORKS)
NO_NAMES = ["zz", "", 5, [], ["a"], True, NAN, b"a", np.array(["a", "b"]), line()["a"]]
each("variable={}", NO_NAMES, lambda w, v: w.both.predict(w.target, variable=v), KeyError, r"no variable .*it has \['a', 'b'\].*Choose one of these")
each("loo {}", NO_NAMES, lambda w, v: w.both.loo(v), KeyError, r"The model has no variable .*Choose one of these")
each("loo(buffer={})", [-1, -0.1, NAN, INF, np.float64("nan")], lambda w, v: w.both.loo(buffer=v), ValueError, "`buffer` is zero or more, found .* for 'space'")
each("loo(buffer={})", [True, "5 km", [1.0], (1.0,), 1j, b"5", np.array([1.0, 2.0]), {"space": None}, {"space": "5"}, line()["x"]], lambda w, v: w.both.loo(buffer=v), TypeError, "`buffer` is a distance, found .* for 'space'")
each("loo(buffer={})", [{}, {"zz": 1.0}, {5: 1.0}, {"space": 1.0, "zz": 2.0}], lambda w, v: w.both.loo(buffer=v), ValueError, r"`buffer` names groups of coordinates, found .*the model has \['space'\]")
each("loo(buffer={})", [0, 1, 0.5, np.float32(1.0), {"space": 2}, 1e300, None], lambda w, v: w.both.loo(buffer=v), WORKS)
each("loo(buffer={}) of pairs", [0, 1.0, 1e300], lambda w, v: w.pairs.loo("b", buffer=v), WORKS)
each("loo(most={})", [0, -1], lambda w, v: w.both.loo(most=v), ValueError, "`most` must be at least 1, found")
each("loo(most={})", [1.5, "2", True, [], NAN], lambda w, v: w.both.loo(most=v), TypeError, "`most` must be an integer, found")
each("loo(most={})", [1, np.int64(3), 10**30, None], lambda w, v: w.both.loo(most=v), WORKS)
each("of={}", ["x", "", None, 5, ["signal"], b"signal", np.array(["a", "b"])], lambda w, v: w.both.predict(w.target, of=v), ValueError, r"`of` must be one of \('observation', 'signal'\), found")
row("information of a full model", lambda w: w.posterior.information(), ValueError, "Fit with method='transductive'")
row("information without secondaries", lambda w: w.alone.posterior(w.target).information(), ValueError, "no secondaries")
row("information of a secondary", lambda w: w.pairs.posterior(w.target, variable="b").information(), ValueError, "Leave `variable` out")
each("objective {}", [[], None, "x", 5, [1.0], [[1.0]], {}, ["a"] * 10, [1j] * 10], lambda w, v: w.both.objective(v), ValueError, "The model has 10 parameters, found .*`model.theta`")
each("objective at {}", [NAN, INF], lambda w, v: w.both.objective(w.both.theta + v), ValueError, "Parameters must be finite, found .*position 0")
each("lazy {}", ["loo", "summary", "theta", "objective"], lambda w, n: getattr(w.lazy, n), AttributeError, r"has no '.*Run the fit first, `model = model.compute\(\)`")

# Chunks and masks. -----------------------------------------------------------------------------
SIZES = [0, -2, -5, {"x": 0}, {"x": -2}, {"x": (0, 5)}, {"x": (-1, 6)}]
each("chunks {}", SIZES, lambda w, c: w.both.predict(w.target, chunks=c), ValueError, "`chunks` must be a number of cells .*found")
KINDS = [1.5, NAN, True, False, "zz", "", "0B", "10 parsecs", [], (2, 3), {"x": 1.5}, {"x": "zz"}, {"x": []}, {"x": {}}, b"auto", 1j, np.array([2, 3])]
each("chunks {}", KINDS, lambda w, c: w.both.predict(w.target, chunks=c), TypeError, "`chunks` must be a number of cells .*found")
each("chunks {}", [{"zz": 1}, {5: 1}], lambda w, c: w.both.predict(w.target, chunks=c), ValueError, r"`chunks` names .*dims \['x'\]")
row("chunks that do not add up", lambda w: w.both.predict(w.target, chunks={"x": (2, 2)}), ValueError, "'x' add up to 4 cells, but there are 5")
row("chunks of one number", lambda w: w.both.predict(xr.Dataset(coords={"x": ((), 1.0, KM)}), chunks={"x": 2}), ValueError, r"dims \[\]")
each("chunks {}", [-1, 2, 10**30, "auto", "10 MB", {}, {"x": None}, {"x": (2, 3)}, np.int64(2)], lambda w, c: w.both.predict(w.target, chunks=c), WORKS)
MASKS: dict[str, tuple[Any, Any, str]] = {
    "an unknown name": ("zz", ValueError, r"no variable 'zz' to use as a mask; it has \['y', 'x'\]"),
    "no name": ("", ValueError, "to use as a mask"),
    "5": (5, TypeError, "A mask must be a DataArray or the name of a variable, found int"),
    "an array": (JUST, TypeError, "A mask must be a DataArray or the name .*ndarray"),
    "a list": ([True], TypeError, "A mask must be a DataArray or the name"),
    "a Dataset": (xr.Dataset(), TypeError, "A mask must be a DataArray or the name"),
    "floats": (xr.DataArray(JUST.astype(float), dims=("y", "x")), ValueError, "A mask must be boolean, found dtype float64. Use"),
    "text": (xr.DataArray(JUST.astype(str), dims=("y", "x")), ValueError, "A mask must be boolean, found dtype"),
    "another dim": (xr.DataArray(JUST[0], dims="q"), ValueError, r"The mask has dims \['q'\].*Select one entry"),
    "another shape": (xr.DataArray(JUST[:2], dims=("y", "x")), ValueError, "The mask is not on .*'y' it has 2 entries, the target has 3. Select"),
    "other labels": (xr.DataArray(JUST, dims=("y", "x"), coords={"y": [7.0, 8.0, 9.0]}), ValueError, "The mask is not on .*'y' it has other labels.*`reindex_like`"),
    "more labels": (xr.DataArray(np.ones((5, 4), bool), dims=("y", "x"), coords={"y": TEN[:5]}), ValueError, "The mask .*'y' it has 5 entries"),
}
for kind, (mask, error, says) in MASKS.items():
    row(f"mask of {kind}", lambda w, m=mask: w.flat.predict(w.grid, mask=m), error, says)
    row(f"lazy mask of {kind}", lambda w, m=mask: w.flat.predict(w.grid, mask=m, chunks=2), error, says)
    row(f"map with a mask of {kind}", lambda w, m=mask: prediction_map(w.map, mask=m), (TypeError, ValueError), "[mM]ask")
row("mask by a coordinate", lambda w: w.flat.predict(w.grid, mask="x"), ValueError, "A mask must be boolean, found dtype float64")
row("mask of one dim", lambda w: w.flat.predict(w.grid, mask=w.grid["x"] > 1.0), WORKS)
row("mask transposed", lambda w: w.flat.predict(w.grid, mask=(w.cells > 1.0).transpose("x", "y")), WORKS)
row("mask of nothing", lambda w: w.flat.predict(w.grid, mask=w.cells < -1.0), WORKS)
row("map masked of one dim", lambda w: prediction_map(w.map, mask=w.grid["x"] > 1.0), WORKS)

# Comparisons. ----------------------------------------------------------------------------------
ONE = {"kernels": ["se"], "marginals": ["normal"]}
each("compare {}", [[], (), None, ["a", "a"]], lambda w, v: compare(line(), v, **ONE), ValueError, "`variables` must name at least one variable, and each only once, found")
each("compare {}", [5, [5], [["a"]], True], lambda w, v: compare(line(), v, **ONE), TypeError, "`variables`: names must be strings")
each("compare {}", ["zz", ""], lambda w, v: compare(line(), v, **ONE), KeyError, "No variable")
each("compare {}", [{"a"}, np.array(["a"]), ("a",)], lambda w, v: compare(line(), v, **ONE), WORKS)
row("compare no data", lambda w: compare(None, "a"), TypeError, "`data` must be a Dataset")
for option in ONE:
    each(f"compare {option}={{}}", [[], None, 5, {"a": "normal"}], lambda w, v, o=option: compare(line(), "a", **{**ONE, o: v}), TypeError, f"`{option}` must be a list of at least one")
    each(f"compare {option}={{}}", [["zz"], "zz", ["select"]], lambda w, v, o=option: compare(line(), "a", **{**ONE, o: v}), ValueError, "Unknown .*Choose .*one of")
row("compare one kernel", lambda w: compare(line(), "a", kernels="se", marginals="normal"), WORKS)
row("compare a recipe", lambda w: compare(line(), "a", kernels=["se"], marginals=[regress("normal", on="x")]), TypeError, "varies with fields.*Name a family")
row("compare the base class", lambda w: compare(line(), "a", kernels=["se"], marginals=[Marginal]), TypeError, "Marginal is no law")
each("compare structures={}", [0, -1], lambda w, v: compare(line(), "a", structures=v, **ONE), ValueError, "`structures` must be at least 1")
each("compare structures={}", ["x", 1.5, None], lambda w, v: compare(line(), "a", structures=v, **ONE), TypeError, "`structures` must be an integer")
row("compare structures=200", lambda w: compare(line(), "a", structures=200, **ONE), ValueError, "'a' has 400 parameters, but there are only 12 values")
each("compare solver={}", ["zz"], lambda w, v: compare(line(), "a", solver=v, **ONE), ValueError, "Unknown solver")
each("lay out {}", [None, 5, "x", [], xr.Dataset(), line()], lambda w, v: xcopula.format_comparison(v), TypeError, "Pass the Dataset that `compare` returned, found")
each("lay out most={}", [0, -1], lambda w, v: xcopula.format_comparison(w.compared, most=v), ValueError, "`most` must be at least 1")
row("lay out most='x'", lambda w: xcopula.format_comparison(w.compared, most="x"), TypeError, "`most` must be an integer")

# Figures. --------------------------------------------------------------------------------------
each("map of {}", [None, 5, "x", [], {}, line()["a"]], lambda w, v: prediction_map(v), TypeError, "Pass the Dataset that `predict` returned, found")
row("map of a model", lambda w: prediction_map(w.both), TypeError, "found a CopulaModel")
each("map of {}", [xr.Dataset(), line()], lambda w, v: prediction_map(v), ValueError, "No variable has a dim 'quantile'. Predict several")
each("map of variable {}", ["zz", 5, []], lambda w, v: prediction_map(w.map, v), ValueError, r"No variable .*Choose from \['a'\]")
row("map of one quantile", lambda w: prediction_map(w.flat.predict(w.grid, 0.5)), ValueError, "Predict several quantiles")
row("map without a median", lambda w: prediction_map(w.flat.predict(w.grid, [0.1, 0.9])), ValueError, "needs the quantile 0.5")
row("map of a line", lambda w: prediction_map(w.both.predict(w.target)), WORKS)
row("map of three dims", lambda w: prediction_map(w.map.expand_dims(time=2)), ValueError, "Select one entry along 'time'")
each("map with coastlines={}", [5, "x", []], lambda w, v: prediction_map(w.map, coastlines=v), TypeError, "`coastlines` must be True, False or None, found")
each("correlations of {}", [[], 5], lambda w, v: w.both.plot.correlations(v), ValueError, "`variables` must name at least one")
each("correlations of {}", ["zz", ["zz"], [5]], lambda w, v: w.both.plot.correlations(v), KeyError, "The model has no variable")
each("correlations on {}", [5, [5, 6]], lambda w, v: w.both.plot.correlations(axes=v), (TypeError, ValueError), "axes|Axes")
each("maps at level {}", [None, 2, "x", [0.5]], lambda w, v: w.flat.posterior(w.grid).plot.map(v), ValueError, "`level` must be a number between 0 and 1")
row("marginal of a strange variable", lambda w: w.both.marginals["zz"], KeyError, "The model has no variable 'zz'; it has")
row("map of text", lambda w: prediction_map(w.map.astype(str)), ValueError, "'a' has .* a map needs numbers")
row("map along names", lambda w: prediction_map(w.map.assign_coords(x=list("abcd"))), ValueError, "'x' has 4 entries of dtype .* needs numbers")
row("map of no cell", lambda w: prediction_map(w.map.isel(x=[])), ValueError, "0 entries")
row("map of NaN", lambda w: prediction_map(w.map * NAN), ValueError, "Nothing to draw")
each("map with sites {}", [5, [1], plane()["a"]], lambda w, v: prediction_map(w.map, sites=v), TypeError, "`sites` must be a Dataset with 'a'")
row("map with sites elsewhere", lambda w: prediction_map(w.map, sites=line()), ValueError, r"`sites` lacks \['y'\]")
row("map with sites of text", lambda w: prediction_map(w.map, sites=plane().astype(str)), ValueError, "needs numbers")
each("map on {}", [5, [], [None]], lambda w, v: prediction_map(w.map, ax=v), ValueError, "needs two axes, found .*Pass")
row("map on [1, 2]", lambda w: prediction_map(w.map, ax=[1, 2]), TypeError, "`ax` must be Axes of matplotlib, found 1")
each("PIT {}", ["x", None, {}, ["a"], [1j], line()], lambda w, v: pit_histogram(v), TypeError, "probability integral transforms to draw must be numbers, found")
each("PIT {}", [[], [NAN], INF], lambda w, v: pit_histogram(v), ValueError, "Nothing to draw")
each("PIT {}", [[2.0], [-1.0], 5], lambda w, v: pit_histogram(v), ValueError, "must lie between 0 and 1")
each("PIT in {} bars", [0, -1, 1.5, "x", None, True, [0.0, 1.0]], lambda w, v: pit_histogram([0.1, 0.5], bins=v), ValueError, "`bins` must be a number of bars, at least 1, found")
row("PIT on 5", lambda w: pit_histogram([0.5], ax=5), TypeError, "`ax` must be Axes")
each("QQ of {}", ["normal", "zz", None, 5, Normal, Marginal, regress("normal", on="x")], lambda w, v: marginal_qq(v, A), TypeError, r"`marginal` must be a fitted law, found .*Normal.fit\(values\)")
row("QQ of a model", lambda w: marginal_qq(w.both, A), TypeError, "take one of `model.marginals`")
each("QQ of a model and {}", [5, ["a"]], lambda w, v: marginal_qq(w.both, v), TypeError, "the name of a variable, found")
row("QQ of a model and another variable", lambda w: marginal_qq(w.both, "zz"), KeyError, "The model has no variable 'zz'")
row("QQ of a varying model", lambda w: marginal_qq(w.sloped), WORKS)
row("QQ of a law that varies", lambda w: marginal_qq(w.sloped.marginals[0], A), ValueError, r"at\(covariates\)")
each("QQ of values {}", ["a", None, ["a"], [1j], line(), Normal()], lambda w, v: marginal_qq(Normal(), v), TypeError, "The values to draw must be numbers, found")
each("QQ of values {}", [[], [NAN]], lambda w, v: marginal_qq(Normal(), v), ValueError, "Nothing to draw")
row("QQ outside a support", lambda w: marginal_qq(Gamma(), [-1.0, -2.0]), ValueError, "no value lies within the support")

# Files. ----------------------------------------------------------------------------------------
each("write {}", [None, "a.nc", line()["a"]], lambda w, d: write_netcdf(d, w.folder / "x.nc"), TypeError, "`dataset` must be a Dataset, found")
row("write a model", lambda w: write_netcdf(w.both, w.folder / "x.nc"), TypeError, "found CopulaModel")
each("write to {}", [None, 5, b"x.nc", line()], lambda w, p: write_netcdf(line(), p), TypeError, "`path` must be a string or a path, found")
row("write to a folder", lambda w: write_netcdf(line(), w.folder), IsADirectoryError, "is a folder. Give the name of a file")
row("write over a folder", lambda w: write_netcdf(line(), w.folder, overwrite=True), IsADirectoryError, "is a folder")
row("write to no name", lambda w: write_netcdf(line(), ""), IsADirectoryError, "is a folder")
row("write to no folder", lambda w: write_netcdf(line(), w.folder / "no" / "x.nc"), FileNotFoundError, "does not exist. Create it")
row("write into a file", lambda w: write_netcdf(line(), w.file / "x.nc"), NotADirectoryError, "is a file, not a folder. Choose")
row("write over a file", lambda w: write_netcdf(line(), w.file), FileExistsError, "exists. Choose another name")
slump = xcopula.datasets.slump
HEADING = b"No,Cement,Slag,Fly ash,Water,SP,Coarse,Fine,SLUMP,FLOW,Compressive\n"
CONTENTS = {
    "bytes": (bytes(range(256)) * 4, "not the concrete slump table: it is not a text file .*UCI"),
    "UTF-16": ("No,cement".encode("utf-16"), "it is not a text file with comma-separated columns"),
    "a long quote": (b'"' + b"a" * 200_000, "it is not a text file with comma-separated columns"),
    "nothing": (b"", r"not the concrete slump table: found columns \[\]"),
    "a page": (b"<html></html>", "not the concrete slump table"),
    "a heading": (HEADING, "has no rows"),
    "short rows": (HEADING + b"1" + b",1" * 9 + b"\n", "has rows that are not 10 numbers"),
    "long rows": (HEADING + b"1" + b",1" * 11 + b"\n", "has rows that are not 10 numbers"),
    "ragged rows": (HEADING + b"1" + b",1" * 10 + b"\n1,1\n", "a row that is not 10 numbers"),
    "text": (HEADING + b"1,a" + b",1" * 9 + b"\n", "a row that is not 10 numbers"),
    "NaN": (HEADING + b"1,nan" + b",1" * 9 + b"\n", "has missing values"),
}
for kind, (content, says) in CONTENTS.items():
    row(f"slump of {kind}", lambda w, c=content: slump(w.write(c)), ValueError, says)
each("slump {}", [5, [], line()], lambda w, p: slump(p), TypeError, "`path` must be the path of the slump data, found .*UCI")
each("slump {}", ["", "/no/such/file"], lambda w, p: slump(p), FileNotFoundError, "UCI")
row("slump of a folder", lambda w: slump(w.folder), FileNotFoundError, "No concrete slump data at")
each("jura {}", ["zz", "", "landuse", [5], [["Cd"]]], lambda w, v: xcopula.datasets.jura(v), KeyError, "Cannot hide .*Choose from")
each("jura {}", [5, True], lambda w, v: xcopula.datasets.jura(v), TypeError, "`hide` must be the name of a metal")
each("toy seed {}", [1.5, None, "a", True], lambda w, v: xcopula.datasets.toy(v), TypeError, "seed must be an integer")
row("toy seed -1", lambda w: xcopula.datasets.toy(-1), ValueError, "must not be negative")
each("toy kind {}", ["zz", 5, [], None], lambda w, v: xcopula.datasets.toy(kind=v), ValueError, "Unknown kind of toy data .*Choose")
each("toy truth at {}", [None, "a", [[1.0]], [1j], xr.DataArray(["a"], dims="x")], lambda w, v: xcopula.datasets.toy_truth(v), ValueError, "`x` must be a number or a sequence of numbers")

# fmt: on


def demo(*arguments: str) -> str:
    """Run the demo until it says something."""
    done = CliRunner().invoke(main, ["demo", *arguments])
    assert done.exit_code, done.output
    if not isinstance(done.exception, SystemExit):
        raise done.exception
    raise RuntimeError(done.output)


row("demo into a file", lambda w: demo("-o", str(w.file)), RuntimeError, "is a file")
row(
    "demo beside a file",
    lambda w: demo("-o", str(w.file / "x")),
    RuntimeError,
    "Error: .*cannot be created: Not a directory. Choose another with --output",
)
row(
    "demo deep in a file",
    lambda w: demo("-o", str(w.file / "x" / "y")),
    RuntimeError,
    "cannot be created",
)
row(
    "demo over a folder",
    lambda w: demo("-o", str(w.taken)),
    RuntimeError,
    "is a folder.*Choose another folder with --output",
)
row("demo --zz", lambda w: demo("--zz"), RuntimeError, "No such option")


@pytest.fixture
def evaluations(monkeypatch) -> list[int]:
    """Count the likelihoods that are evaluated."""
    seen: list[int] = []
    for solver in (Exact, Neighbours):
        for name in ("objective", "information"):
            real = getattr(solver, name)

            def counted(self, process, sample, structure, theta, real=real):
                seen.append(sample.size)
                return real(self, process, sample, structure, theta)

            monkeypatch.setattr(solver, name, counted)
    return seen


@pytest.fixture
def files(w, tmp_path) -> None:
    """Give calls a folder, a file, and a folder in which the demo finds no place."""
    w.folder, w.file, w.taken = tmp_path, tmp_path / "file", tmp_path / "taken"
    w.file.write_text("taken")
    (w.taken / "cadmium.nc").mkdir(parents=True)

    def write(content: bytes) -> Path:
        (tmp_path / "slump.data").write_bytes(content)
        return tmp_path / "slump.data"

    w.write = write


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", ROWS)
def test_row(w, name, evaluations, monkeypatch):
    """A call works, or is refused by name and with a remedy, before any work."""
    monkeypatch.delenv("XCOPULA_SLUMP", raising=False)
    call, expected, says = ROWS[name]
    if expected is WORKS:
        assert call(w) is not None
        return
    with pytest.raises(expected, match=says):
        call(w)
    assert not evaluations


def test_the_table_is_long():
    """As many rows as were promised."""
    assert len(ROWS) >= 200


def test_the_count_counts(evaluations):
    """A fit that works evaluates likelihoods, and they are seen."""
    fit()
    assert len(evaluations) > 5
    evaluations.clear()
    fit(solver="neighbours")
    assert len(evaluations) > 5
