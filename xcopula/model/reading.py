"""A fitted model from a DataTree: only classes that are listed here, or given, are made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import ModelFormatError
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.censoring import Rule
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.groups import CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.projection import Projection
from xcopula.labels.fields import Field
from xcopula.labels.observations import Observations, Variable
from xcopula.labels.origin import Label, Origin
from xcopula.labels.rows import Rows
from xcopula.labels.sites import sites_within
from xcopula.marginals import MARGINALS, Grouped, Marginal, Regression
from xcopula.marginals.censored import Censored
from xcopula.marginals.design import Design
from xcopula.marginals.smoother import ParetoTail, ScoreTable
from xcopula.marginals.truncation import Truncated
from xcopula.methods import METHODS, Method
from xcopula.model.conditioning import Since
from xcopula.model.notation import is_safe, recall
from xcopula.model.record import CopulaModel
from xcopula.model.selection import Alternative
from xcopula.model.tree import FIGURES, FORMAT, SCHEMA, seal
from xcopula.model.uncertainty import UNCERTAINTIES, Uncertainty
from xcopula.process import Process
from xcopula.process.sample import Targets
from xcopula.solvers import SOLVERS
from xcopula.state import check_types, put_together

__all__ = ["CLASSES", "from_tree"]

# What a file may hold, by name. A name that was written once stays.
CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Alternative, Axis, Censored, CoordinateGroup, CoordinateSystem, Covariance, Cycle),
        *(Design, Field, Globe, Grouped, InputGroup, Label, Nested, Origin, ParetoTail, Process),
        *(Projection, Regression, Rule, ScoreTable, Since, Targets),
        *(Truncated, Uncertainty, Variable),
        *map(type, (*KERNELS.values(), *METHODS.values(), *SOLVERS.values())),
        *MARGINALS.values(),
    )
}
_PLAIN = ("tuple", "dict", "type")
_KEYWORDS = {"law": "laws", "kernel": "kernels", "method": "methods", "solver": "solvers"}


def from_tree(tree: xr.DataTree, own: Mapping[str, type]) -> CopulaModel:
    """Return the model that :func:`~xcopula.model.tree.to_tree` took apart.

    Parameters
    ----------
    tree : DataTree
        As the file has it, nothing decoded. Nothing in it is trusted.
    own : mapping of str to type
        Classes of the user's own, by kind and name, such as "law:Logistic".

    Raises
    ------
    ModelFormatError
        If the tree is not that of a model, or of one that this version does not know.
    Exception
        Of any other kind, if it is damaged.
    """
    attrs = {str(name): value for name, value in tree.attrs.items()}
    _check_schema(attrs)
    state = attrs.get("state")
    if not isinstance(state, str):
        raise ModelFormatError("The attribute 'state' must be a text.")
    sealed = seal(state, attrs)
    if sealed["checksum"] != attrs.get("checksum"):
        raise ModelFormatError("The attributes of the file are not what was written.")

    def fetch(path: str) -> npt.NDArray[Any]:
        start, *groups, name = path.split("/")
        if start or not all(map(is_safe, (*groups, name))):
            raise ModelFormatError(f"{path!r} is not the path of an array.")
        node = tree
        for group in groups:
            node = node.children[group]
        return np.asarray(node.to_dataset(inherit=False).variables[name].values)

    plain = recall(json.loads(state), fetch)
    if not isinstance(plain, dict) or plain.pop("class", None) != "CopulaModel":
        raise ModelFormatError("The attribute 'state' does not describe a model.")
    classes = {**CLASSES, **own}
    _check_names(plain, classes)
    observations = _observations(plain.pop("observations"), classes)
    fields = {name: put_together(part, classes) for name, part in plain.items()}
    kinds = (float, bool, int, str)
    figures = {name: kind(sealed[name]) for name, kind in zip(FIGURES, kinds, strict=True)}
    model = CopulaModel(observations=observations, **fields, **figures)
    _check(model)
    return model


def _check_schema(attrs: Mapping[str, Any]) -> None:
    if attrs.get("format") != FORMAT:
        raise ModelFormatError(
            "It is not a model of xcopula. Give a file that `model.save` has written."
        )
    schema = attrs.get("schema")
    if not isinstance(schema, int | np.integer) or schema < 1:
        raise ModelFormatError(f"The attribute 'schema' must be a number, found {schema!r}.")
    if schema > SCHEMA:
        raise ModelFormatError(
            f"It has schema {schema}, and this version of xcopula reads up to {SCHEMA}. It was "
            f"written by xcopula {attrs.get('xcopula_version', '(unknown)')}: install that version."
        )


def _names(plain: Any) -> Iterator[str]:
    """Yield the names of the classes that plain state refers to."""
    if isinstance(plain, list):
        for part in plain:
            yield from _names(part)
    elif isinstance(plain, dict):
        if "class" in plain:
            yield str(plain["name"] if plain["class"] == "type" else plain["class"])
        for part in plain.values():
            yield from _names(part)


def _check_names(plain: Any, classes: Mapping[str, type]) -> None:
    """Refuse classes that are neither listed nor given, and say how to give them."""
    for full in sorted(set(_names(plain)) - {*classes, *_PLAIN}):
        kind, _, name = full.partition(":")
        if kind in _KEYWORDS and name.isidentifier():
            raise ModelFormatError(
                f"It holds a {kind} of the class {name!r}, which is not one of xcopula's. Import "
                f"the class and give it: `xcopula.load(path, {_KEYWORDS[kind]}={{{name!r}: "
                f"{name}}})`."
            )
        raise ModelFormatError(f"It names a class {full!r}, which xcopula does not know.")


def _observations(plain: dict[str, Any], classes: Mapping[str, type]) -> Observations:
    """Make the data: sites and inputs follow from the positions."""
    noted, tolerance = plain.pop("rows"), plain.pop("tolerance")
    fields = {name: put_together(part, classes) for name, part in plain.items()}
    check_types(list(fields.values()))
    rows = []
    for own in noted:
        values = own["values"]
        columns = [*own["positions"], *own["covariates"]]
        if any(c.shape != values.shape or c.dtype != np.float64 for c in (values, *columns)):
            raise ModelFormatError("The columns of a variable must be numbers of one length.")
        covariates = np.column_stack(own["covariates"]) if own["covariates"] else None
        empty = np.empty((values.size, 0))
        positions = np.column_stack(own["positions"])
        rows.append(
            Rows(
                positions,
                values,
                empty if covariates is None else covariates,
                limits=_limits(own),
                specimens=_specimens(own),
            )
        )
    columns = [c for r in rows for c in (r.positions, r.values, r.covariates)]
    if not all(np.isfinite(column).all() for column in columns):
        raise ModelFormatError("The data must be finite.")
    variables, system = fields.pop("variables"), fields.pop("coordinates")
    sites, numbers = sites_within(system, [r.positions for r in rows], tolerance)
    return replace(Observations.of(variables, system, rows, sites, numbers), **fields)


def _limits(noted: dict[str, Any]) -> npt.NDArray[np.float64] | None:
    """Return the limits of a variable's values, if it has any."""
    if "limits" not in noted:
        return None
    values, limits = noted["values"], np.stack(noted["limits"])
    whole = limits.shape == (2, values.size) and limits.dtype == np.float64
    if not whole or not ((limits[0] <= values) & (values <= limits[1])).all():
        raise ModelFormatError("The values of a variable must lie between their limits.")
    return limits


def _specimens(noted: dict[str, Any]) -> npt.NDArray[np.int64] | None:
    """Return what was measured together, where replicates are told apart by it."""
    if "specimens" not in noted:
        return None
    specimens: npt.NDArray[np.int64] = noted["specimens"]
    if specimens.shape != noted["values"].shape or specimens.dtype != np.int64:
        raise ModelFormatError("Specimens must be whole numbers, one for each value.")
    return specimens


def _check(model: CopulaModel) -> None:
    """Check that the parts of a model have their types, and fit each other."""
    check_types(model)
    covariance, system = model.process.covariance, model.coordinates
    names = [tuple(field.name for field in v.fields) for v in model.variables]
    tasks = len(model.variables)
    counts = (model.observations.sample.tasks, covariance.tasks, len(model.process.marginals))
    columns = [g.columns for g in system.groups]
    whole = (
        counts == (tasks,) * 3
        and [g.size for g in covariance.groups] == columns
        and len(system.centre) == len(system.scale) == sum(columns)
        and model.theta.shape == model.prepared.shape == (model.process.size,)
        and bool(np.isfinite(model.theta).all() and np.isfinite(model.prepared).all())
        and [tuple(law.fields) for law in model.process.marginals] == names
        and all(map(_is_whole, model.process.marginals))
        and _has_kernels(covariance)
        and hasattr(model.solver, "condition")
        and not isinstance(model.solver, Method)
        and _is_placed(model.observations)
        and _counts_all(model)
    )
    if not whole:
        raise ModelFormatError("The parts of the model do not fit each other.")
    _ = model.parameters  # the covariance and the laws can be evaluated


def _has_kernels(covariance: Covariance) -> bool:
    return all(hasattr(kernel, "profile") for each in covariance.families for kernel in each)


def _is_whole(law: Marginal) -> bool:
    """Tell whether a law has a coefficient for each column of its design, and a law a label."""
    if isinstance(law, Grouped):
        return len(law.laws) == len(law.labels) and all(map(_is_whole, law.laws))
    if not isinstance(law, Regression):
        return True
    count, degree = len(law.design.fields), law.design.degree
    columns = math.comb(count + degree, count) - 1  # a list of them could be endless
    return law.coefficients.shape == (columns,) and _is_whole(law.base)


def _counts_all(model: CopulaModel) -> bool:
    """Tell whether the values and parameters of each variable are counted."""
    uncertainty, tasks = model.uncertainty, len(model.variables)
    counts = (*uncertainty.values, *uncertainty.parameters)
    return (
        uncertainty.kind in UNCERTAINTIES
        and len(uncertainty.values) == len(uncertainty.parameters) == tasks
        and all(math.isfinite(count) and count >= 0.0 for count in counts)
    )


def _is_placed(observations: Observations) -> bool:
    """Tell whether the origins, if there are any, say of each value where it stood."""
    origins = observations.origins
    counts = [sum(piece.places.size for piece in own) for own in origins]
    known = not origins or counts == list(observations.sample.sizes)
    return known and all(_has_room(piece) for own in origins for piece in own)


def _has_room(origin: Origin) -> bool:
    """Tell whether places and labels lie within the dims of the data."""
    places, size = origin.places, math.prod(origin.shape)
    sizes = dict(zip(origin.dims, origin.shape, strict=False))
    return (
        len(sizes) == len(origin.dims) == len(origin.shape)
        and all(n >= 0 for n in origin.shape)
        and size <= np.iinfo(np.int64).max  # more cannot be counted
        and places.ndim == 1
        and places.dtype == np.int64
        and bool(((places >= 0) & (places < size)).all())
        and all(
            label.values.shape == places.shape
            if label.each
            else label.values.shape == tuple(sizes.get(d, -1) for d in label.dims)
            for label in origin.labels
        )
    )
