"""A fitted model as a DataTree, as its file has it.

Groups hold the data, the parameters by their natural names, the tables of the laws, and theta. All
that is no array is one text of JSON, the attribute ``state`` of the root.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import xarray as xr

from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.fields import Field
from xcopula.labels.observations import Variable
from xcopula.labels.origin import Origin
from xcopula.labels.rows import Rows
from xcopula.marginals import Marginal
from xcopula.methods import Method
from xcopula.model.notation import Arrays, Place, checksum, dumps, note, safe_names
from xcopula.model.summary import likelihood_of
from xcopula.state import take_apart
from xcopula.warn import warn_user

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["FIGURES", "FORMAT", "SCHEMA", "decode", "seal", "to_tree"]

FORMAT = "xcopula model"
# Raised when files are written that earlier versions would misread.
SCHEMA = 1
# Fields of the record that are attributes of the root: how the fit went.
FIGURES = ("log_likelihood", "converged", "evaluations", "message")

# Of a variable's attributes these stand beside its values; the text has all of them.
_SHOWN = ("units", "long_name", "standard_name")
_AXES = {"x": "X", "y": "Y", "z": "Z", "time": "T"}
_GLOBE = {"longitude": "degrees_east", "latitude": "degrees_north"}
_THETAS = {
    "theta": "fitted parameters, on unconstrained scales",
    "prepared": "parameters for which the method prepared the data",
}
# Arrays of laws by the field that holds them: their dim, and what they are.
_TABLES = {
    "sample": ("value", "the values that the law smooths, sorted"),
    "x": ("knot", "knots of the table, of log values where the law is of logarithms"),
    "z": ("knot", "normal scores at the knots"),
    "slope": ("knot", "slopes of the normal score at the knots"),
}


def to_tree(model: CopulaModel) -> xr.DataTree:
    """Return all that the model is. Times are days since a date, as in the file.

    Raises
    ------
    TypeError
        If a law, kernel, method or solver of the user's own holds what a file cannot.
    """
    groups = safe_names(model.tasks, "variable")
    arrays, name_class = Arrays(), _ClassNames()
    noted: dict[str, Any] = {"class": "CopulaModel"}
    for name in (f.name for f in fields(model) if f.name not in FIGURES):
        part = getattr(model, name)
        if name == "observations":
            noted[name] = _note_observations(model, groups, arrays, name_class)
        elif name in _THETAS:
            place = Place("/structure", name, ("parameter",), {"long_name": _THETAS[name]})
            noted[name] = arrays.put(part, place, once=False)
        else:
            find = functools.partial(_place, groups)
            noted[name] = note(take_apart(part, name_class), arrays, find, (name,))
    arrays.groups["/structure"]["parameter"] = xr.Variable("parameter", _theta_names(model))
    axes = set(_axis_names(model))
    datasets = {path: xr.Dataset(variables) for path, variables in arrays.groups.items()}
    for group, name in zip(groups, model.tasks, strict=True):
        data = datasets[f"/data/{group}"]
        datasets[f"/data/{group}"] = data.set_coords(axes).assign_attrs(name=name)
    root = xr.Dataset(attrs=_about(model))
    tree = xr.DataTree.from_dict({"/": root, **datasets, "/parameters": model.parameters})
    tree.attrs |= seal(dumps(noted), {name: getattr(model, name) for name in FIGURES})
    return tree


def decode(tree: xr.DataTree) -> xr.DataTree:
    """Return a tree with dates for days since one, as ``xr.open_datatree`` shows the file."""
    return xr.DataTree.from_dict(
        {
            node.path: xr.decode_cf(node.to_dataset(inherit=False), decode_timedelta=False)
            for node in tree.subtree
        }
    )


def seal(state: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a model is read from, with a checksum of them.

    Parameters
    ----------
    state : str
        All but the arrays and the figures, as JSON.
    figures : mapping
        How the fit went, by the names :data:`FIGURES`.
    """
    kinds = (float, int, int, str)
    plain = {name: kind(figures[name]) for name, kind in zip(FIGURES, kinds, strict=True)}
    return {**plain, "state": state, "checksum": checksum(f"{state}{list(plain.values())!r}")}


def _about(model: CopulaModel) -> dict[str, Any]:
    """Return what a person wants to know first."""
    covariance = model.process.covariance
    primary, *secondary = model.tasks
    others = f" with {', '.join(secondary)}" if secondary else ""
    return {
        "title": f"Copula process of {primary}{others}",
        "format": FORMAT,
        "schema": SCHEMA,
        "method": model.method.name,
        "solver": model.solver.name,
        "coupling": covariance.coupling,
        "noise": covariance.noise,
        "likelihood": likelihood_of(model),
    }


class _ClassNames:
    """What classes are called: those of the package by their own names, others with their kind."""

    def __init__(self) -> None:
        self._known: dict[str, type] = {}

    def __call__(self, kind: type) -> str:
        name = kind.__name__
        if not kind.__module__.startswith("xcopula."):
            name = f"{_kind(kind)}:{name}"
        if self._known.setdefault(name, kind) is not kind:
            raise TypeError(
                f"The model holds two classes that are called {kind.__name__!r}. Rename one of "
                "them: a file knows a class by its name."
            )
        return name


def _kind(kind: type) -> str:
    """Return what a class of the user's own is, or is a part of."""
    if issubclass(kind, Method):
        return "method"
    if not issubclass(kind, Marginal):
        for member, found in (("profile", "kernel"), ("condition", "solver")):
            if hasattr(kind, member):
                return found
    return "law"


def _place(groups: Sequence[str], path: tuple[str, ...], ndim: int) -> Place:
    """Return where an array is kept: those of laws with their variable, others together."""
    group, rest = "/structure", path
    if path[:2] == ("observations", "origins"):
        # Beside the data: coordinates that are inputs of the model are there already.
        group, rest = f"/data/{groups[int(path[2])]}", ("origin", *path[3:])
    elif path[:2] == ("process", "marginals"):
        group, rest = f"/laws/{groups[int(path[2])]}", path[3:]
    (name,) = safe_names(["_".join(rest)], "array")
    dim, about = _TABLES.get(rest[-1], ("", ""))
    if dim and ndim == 1 and group != "/structure":
        (dim,) = safe_names(["_".join((*rest[:-1], dim))], "array")
        return Place(group, name, (dim,), {"long_name": about})
    return Place(group, name, tuple(f"{name}_{k}" for k in range(ndim)), {})


def _note_observations(
    model: CopulaModel, groups: Sequence[str], arrays: Arrays, name_class: _ClassNames
) -> dict[str, Any]:
    """Note the data: the values and where they stand. What follows from these is made again."""
    observations = model.observations
    made_again = ("positions", "sites", "sample", "specimens")
    state = {f.name: getattr(observations, f.name) for f in fields(observations)}
    state["variables"] = tuple(
        replace(v, attrs=_plain_attrs(v.name, v.attrs)) for v in observations.variables
    )
    state["origins"] = tuple(tuple(map(_with_plain_labels, own)) for own in observations.origins)
    state["tolerance"] = observations.sites.tolerance
    find = functools.partial(_place, groups)
    rows = [
        _note_rows(model, variable, rows, arrays, f"/data/{group}")
        for variable, rows, group in zip(
            observations.variables, observations.rows(), groups, strict=True
        )
    ]
    noted: dict[str, Any] = {
        name: note(take_apart(part, name_class), arrays, find, ("observations", name))
        for name, part in state.items()
        if name not in made_again
    }
    noted["rows"] = rows
    return noted


def _axis_names(model: CopulaModel) -> list[str]:
    return safe_names(model.coordinates.names, "axis")


def _note_rows(
    model: CopulaModel, variable: Variable, rows: Rows, arrays: Arrays, group: str
) -> dict[str, Any]:
    """Note the values of a variable, its coordinates and the fields of its law."""

    def put(values: Any, name: str, attrs: Mapping[str, Any], once: bool = False) -> dict[str, Any]:
        return arrays.put(values, Place(group, name, ("observation",), attrs), once=once)

    axes = zip(model.coordinates.axes, _axis_names(model), rows.positions.T, strict=True)
    positions = [put(column, name, _describe_axis(axis)) for axis, name, column in axes]
    (name,) = safe_names([variable.name], "value")
    shown = {k: v for k, v in variable.attrs.items() if k in _SHOWN and isinstance(v, str)}
    values = put(rows.values, name, shown)
    names = safe_names([f.name for f in variable.fields], "field")
    covariates = [
        put(column, name, _describe_field(field), once=True)
        for field, name, column in zip(variable.fields, names, rows.covariates.T, strict=True)
    ]
    noted: dict[str, Any] = {"positions": positions, "values": values, "covariates": covariates}
    if rows.limits is not None:
        names = safe_names([f"{variable.name}_{end}" for end in ("lower", "upper")], "limit")
        about = ("lower limit of the value", "upper limit of the value")
        units = {k: v for k, v in shown.items() if k == "units"}
        noted["limits"] = [
            put(column, name, {"long_name": text, **units}, once=True)
            for column, name, text in zip(rows.limits, names, about, strict=True)
        ]
    if rows.specimens is not None:
        text = "number of what was measured together: replicates differ in it"
        noted["specimens"] = put(rows.specimens, "specimen", {"long_name": text}, once=True)
    return noted


def _describe_axis(axis: Axis) -> dict[str, str]:
    """Return CF attributes of a coordinate."""
    if axis.epoch:
        calendar = axis.calendar
        return {"units": f"days since {axis.epoch}", "calendar": calendar, "axis": "T"}
    found = {"units": _GLOBE.get(axis.role, axis.units), "positive": axis.positive}
    found["standard_name"] = axis.role if axis.role in _GLOBE else ""
    found["axis"] = _AXES.get(axis.role, "")
    return {name: text for name, text in found.items() if text}


def _describe_field(field: Field) -> dict[str, Any]:
    """Return the units of a field, or what the numbers of its groups mean."""
    if not field.key:
        return {"units": field.units} if field.units else {}
    meanings = " ".join("_".join(label.split()) for label in field.labels)
    flags = [float(k) for k in range(len(field.labels))]
    return {"long_name": "number of the group", "flag_values": flags, "flag_meanings": meanings}


def _with_plain_labels(origin: Origin) -> Origin:
    """Return where observations stood, with attributes of coordinates that a file can hold."""
    labels = (replace(k, attrs=_plain_attrs(k.name, k.attrs)) for k in origin.labels)
    return replace(origin, labels=tuple(labels))


def _plain_attrs(name: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a variable that a file can hold; warn of the others."""
    kept = {}
    for key, value in attrs.items():
        try:
            note(take_apart({key: value}), Arrays(), functools.partial(_place, ()))
        except TypeError:
            warn_user(
                f"The attribute {key!r} of {name!r} is a {type(value).__name__}, which a model "
                "file cannot hold. It was left out of the file."
            )
        else:
            kept[key] = value
    return kept


def _theta_names(model: CopulaModel) -> list[str]:
    """Name the entries of theta: those of the covariance, then of each law."""
    covariance, tasks = model.process.covariance, model.tasks
    pairs = [f"{b}, {a}" for k, a in enumerate(tasks) for b in tasks[:k]]
    structures = [f"structure {k}" for k in range(covariance.structures)]
    own = ["all"] if covariance.shared else list(tasks)
    spans: dict[str, list[Sequence[str]]] = {
        "length": [structures, [g.name for g in model.coordinates.groups], own],
        "logit": [structures, tasks],
        "correlation": [structures, pairs],
        "noise_correlation": [pairs],
    }
    names = []
    for block, (where, _) in covariance.layout.items():
        size = where.stop - where.start
        each = spans.get(block, [[str(k) for k in range(size)]])
        names += [f"{block}[{', '.join(at)}]" for at in itertools.product(*each)][:size]
    for task, law in zip(tasks, model.process.marginals, strict=True):
        names += [f"law[{task}, {k}]" for k in range(law.theta.size)]
    return names
