"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import CoordinateError
from xcopula.labels.censoring import Rule
from xcopula.labels.coordinates import Axis, CoordinateSystem, Coords, find_coordinates
from xcopula.labels.dates import common_dates
from xcopula.labels.entries import Entries, Source, Unread, find_entries, with_known
from xcopula.labels.fields import Field, fields_of, source_of
from xcopula.labels.georeference import georeferenced
from xcopula.labels.limits import told_by, with_limits
from xcopula.labels.origin import OBSERVATION, Columns, Origin, labels_of, take_origins
from xcopula.labels.rows import (
    Rows,
    check_count,
    check_range,
    count_specimens,
    find_beside,
    read_rows,
    refuse_duplicates,
    warn_of_copies,
)
from xcopula.labels.sites import find_sites, tell_apart
from xcopula.labels.variables import (
    Data,
    Laws,
    columns_beside,
    pick,
    wanted,
    with_fields,
    without_idle,
)
from xcopula.process import Sample, Sites, Targets
from xcopula.warn import warn_user

__all__ = [
    "Observations",
    "Variable",
    "check_positions",
    "describe",
    "gather",
    "number",
    "observe",
    "read",
    "to_targets",
]

# Extents this far from each other, in units of the whole, do not overlap.
_APART = 1e-3


@dataclass(frozen=True)
class Variable:
    """A variable of a model, as its labels describe it.

    Attributes
    ----------
    name : str
    attrs : dict
    dims : tuple of str
    fields : tuple of Field
        What its law varies with; groups are known once the data have been read.
    dates : tuple of Axis
        Dates that all its observations have in common, and that the model therefore does not use.
        The epoch of each is the date.
    censored : Rule
        How it was told which of its values are known as intervals.
    """

    name: str
    attrs: dict[str, Any]
    dims: tuple[str, ...]
    fields: tuple[Field, ...] = ()
    dates: tuple[Axis, ...] = ()
    censored: Rule = field(default_factory=Rule)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Names of the groups of each key of its law."""
        return {field.name: field.labels for field in self.fields if field.key}


@dataclass(frozen=True)
class Observations:
    """What a model was fitted on.

    Attributes
    ----------
    variables : tuple of Variable
        The primary first.
    coordinates : CoordinateSystem
    positions : ndarray (n, axes)
        Coordinates of the observations as numbers, in the order of the sample.
    sites : Sites
        The numbered sites; the sample holds the number of each observation.
    sample : Sample
    origins : tuple of tuple of Origin
        For each variable, where its observations stood in the data: one piece of data after the
        other. Empty if that is not known, as in a file that does not say it.
    specimens : ndarray (n,), int64, optional
        What was measured together, where a site may have several values of a variable; None if a
        site has one.
    """

    variables: tuple[Variable, ...]
    coordinates: CoordinateSystem
    positions: FloatArray
    sites: Sites
    sample: Sample
    origins: tuple[tuple[Origin, ...], ...] = ()
    specimens: IntArray | None = None

    @classmethod
    def of(
        cls,
        variables: tuple[Variable, ...],
        coordinates: CoordinateSystem,
        rows: Sequence[Rows],
        sites: Sites,
        numbers: Sequence[IntArray],
    ) -> Observations:
        """Join the rows of some variables, whose sites are numbered. Inputs follow from these."""
        specimens = [r.specimens for r in rows if r.specimens is not None]
        if specimens:
            numbers = tell_apart(numbers, specimens)
        exact = all(r.limits is None for r in rows)
        inputs = [coordinates.to_columns(list(r.positions.T)).T for r in rows]
        return cls(
            variables=variables,
            coordinates=coordinates,
            positions=np.concatenate([r.positions for r in rows]),
            sites=sites,
            sample=Sample.of(
                inputs,
                [r.values for r in rows],
                [r.covariates for r in rows],
                np.concatenate(numbers),
                None if exact else [r.both_limits for r in rows],
            ),
            origins=tuple(r.origins for r in rows) if all(r.origins for r in rows) else (),
            specimens=np.concatenate(specimens) if specimens else None,
        )

    def rows(self) -> list[Rows]:
        """Return the rows of each variable, of which :meth:`of` makes the same observations."""
        return [self.rows_of(i) for i in range(self.sample.tasks)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, the primary first."""
        return tuple(v.name for v in self.variables)

    def targets(self, coordinates: Sequence[FloatArray]) -> Targets:
        """Turn numbers, one (m,) array for each axis, into targets of the process."""
        return to_targets(self.coordinates, self.sites, coordinates)

    def rows_of(self, task: int) -> Rows:
        """Return the observations of one variable."""
        own, limits = self.sample.task(task), self.sample.limits_of(task)
        return Rows(
            self.positions[own],
            self.sample.values[own],
            self.sample.covariates_of(task),
            self.origins[task] if self.origins else (),
            self.variables[task].fields,
            limits if (limits[0] < limits[1]).any() else None,
            None if self.specimens is None else self.specimens[own],
        )

    def places(self) -> IntArray:
        """Return the numbers (n,) of the sites where observations stand; replicates share one."""
        if self.specimens is None:
            return self.sample.sites
        return self.sites.find(self.coordinates.places(list(self.positions.T)))

    def labels(self, rows: IntArray, taken: Collection[str]) -> tuple[str, Columns]:
        """Return the dim and the coordinates of results at some observations of one variable.

        Parameters
        ----------
        rows : ndarray
            Their numbers in the sample, increasing.
        taken : collection of str
            Names of the results: no coordinate gets one of them.

        Returns
        -------
        dim : str
            That of the data where the variable has one, else ``observation``.
        coords : dict
            Those of the data, and the inputs of the model in any case.
        """
        task = int(np.searchsorted(self.sample.offsets, rows[0], side="right")) - 1
        dim, columns = OBSERVATION, Columns()
        if self.origins:
            own = take_origins(self.origins[task], rows - self.sample.offsets[task])
            dim, columns = labels_of(own, taken)
        for axis, numbers in zip(self.coordinates.axes, self.positions[rows].T, strict=True):
            if axis.name not in columns:
                attrs = {"units": axis.units} if axis.units and not axis.epoch else {}
                columns[axis.name] = ((dim,), axis.decode(numbers), attrs)
        return dim, columns


def to_targets(
    system: CoordinateSystem, sites: Sites, coordinates: Sequence[FloatArray]
) -> Targets:
    """Turn numbers, one (m,) array for each axis, into inputs and numbers of sites."""
    return Targets(system.to_columns(coordinates), sites.find(system.places(coordinates)))


def observe(
    data: Data,
    names: Sequence[str],
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
    censored: Sequence[Rule] = (),
    replicates: bool = False,
) -> Observations:
    """Find the inputs of some variables and read them; see :func:`gather` and :func:`read`."""
    sources, system = gather(data, names, coords, ard=ard, laws=laws, censored=censored)
    laws = laws or [None] * len(names)
    return read(sources, system, laws, censored=censored, replicates=replicates)


def read(
    sources: Mapping[str, Source],
    system: CoordinateSystem,
    laws: Laws,
    *,
    censored: Sequence[Rule] = (),
    replicates: bool = False,
) -> Observations:
    """Read the finite values of some variables, where they stand, and what their laws vary with.

    Parameters
    ----------
    sources : mapping
        The variables, with their limits beside them.
    system : CoordinateSystem
    laws : sequence
        The law of each; None for one that does not vary.
    censored : sequence of Rule
        How it is told of each which values are intervals.
    replicates : bool
        Whether a site may have several values of a variable.

    Raises
    ------
    TypeError
        If a variable's dtype cannot be used.
    ValueError
        If a variable has infinities, fewer than five finite values, one value only, none that is
        known better than by one limit, or two values at one site.
    CoordinateError
        If a variable lacks a coordinate, or it is NaN where a value is not.
    FieldError
        If a field of a law cannot be found, or is missing where a value is not.
    """
    entries = list(find_entries(sources).values())
    first: Sequence[int | None] = [None] * len(entries)
    if replicates:
        first = count_specimens(entries)
    rows = [
        read_rows(
            e,
            fields_of(e.labels, *wanted(law), system),
            system,
            own=k == 0,
            learn=True,
            specimens=first[k],
        )
        for k, (e, law) in enumerate(zip(entries, laws, strict=True))
    ]
    positions = np.concatenate([r.positions for r in rows])
    check_positions(system, positions)
    _warn_of_degrees(system, positions)
    rules = censored or [Rule()] * len(entries)
    variables = [
        _variable(e.name, e, r.fields, system, rule)
        for e, r, rule in zip(entries, rows, rules, strict=True)
    ]
    found = number(variables, system.scaled_to(positions), rows)
    _warn_of_strangers(found)
    return found


def check_positions(system: CoordinateSystem, positions: FloatArray) -> None:
    """Refuse coordinates (n, axes) that are too large or too close to compute with."""
    for axis, numbers in zip(system.axes, positions.T, strict=True):
        check_range(f"Coordinate {axis.name!r}", numbers, CoordinateError)


def number(
    variables: Sequence[Variable], system: CoordinateSystem, rows: Sequence[Rows]
) -> Observations:
    """Number the sites of the rows of all variables, and make observations of them.

    Raises
    ------
    ValueError
        If a variable has two values at one site, and rows say nothing of replicates.
    """
    sites, numbers = find_sites(system, [r.positions for r in rows])
    for variable, own, r in zip(variables, numbers, rows, strict=True):
        if r.specimens is None:
            refuse_duplicates(variable.name, own, r.positions, system)
        else:
            warn_of_copies(variable.name, own, r.values)
    return Observations.of(tuple(variables), system, rows, sites, numbers)


def _variable(
    name: str,
    source: xr.DataArray | Entries,
    fields: tuple[Field, ...],
    system: CoordinateSystem,
    rule: Rule,
) -> Variable:
    # A copy: a model closes its arrays, and those of the attributes are the user's.
    attrs = copy.deepcopy(dict(source.attrs))
    used = {*system.names, *(field.source for field in fields)}
    dates = common_dates(_labels_of(source), used)
    told = source.told if isinstance(source, Entries) else told_by(source)
    rule = replace(rule, parts=told) if told else rule.plain
    return Variable(name, attrs, tuple(str(d) for d in source.dims), fields, dates, rule)


def gather(
    data: Data,
    names: Sequence[str],
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
    load: bool = True,
    crs: Any = None,
    censored: Sequence[Rule] = (),
) -> tuple[dict[str, Source], CoordinateSystem]:
    """Return the variables of a model with all they need, and the inputs of the primary.

    Parameters
    ----------
    load : bool
        Whether to find the entries of the variables, computing what is backed by dask; labels and
        attributes alone must do otherwise.
    crs : optional
        The coordinate reference system of the data; see :func:`~xcopula.labels.georeference`.
    censored : sequence of Rule
        How it is told of each variable which values are intervals; none are if it is empty.
    """
    data = georeferenced(data, crs)
    bare = pick(data, names, coords)
    laws = laws or [None] * len(names)
    arrays = with_fields(bare, laws, data)
    for (name, array), law in zip(list(arrays.items()), laws, strict=True):
        arrays[name] = without_idle(array, coords, [source_of(f) for f in wanted(law)[0]])
    primary = arrays[names[0]]
    for name, rule in zip(names, censored, strict=False):
        arrays[name] = with_limits(name, arrays[name], rule, data)
    fields = [c for c in primary.coords if c not in bare[names[0]].coords]
    columns = columns_beside(primary, data, names)
    if not load:
        whole = primary.drop_vars(fields)
        return dict(arrays), find_coordinates(whole, coords, ard=ard, columns=columns)
    found = find_entries(arrays)
    known = found[names[0]]
    check_count(known)
    whole = with_known(primary, known).drop_vars(fields)
    system = find_coordinates(whole, coords, ard=ard, extents=known.extents, columns=columns)
    return dict(found), system


def describe(
    sources: Mapping[str, Source],
    laws: Laws,
    system: CoordinateSystem,
    censored: Sequence[Rule] = (),
) -> tuple[Variable, ...]:
    """Describe the variables of a model from their labels alone."""
    found = []
    rules = censored or [Rule()] * len(sources)
    for (name, source), law, rule in zip(sources.items(), laws, rules, strict=True):
        if isinstance(source, Unread):
            continue
        fields = fields_of(_labels_of(source), *wanted(law), system)
        find_beside(name, fields, _labels_of(source), system)
        found.append(_variable(name, source, fields, system, rule))
    return tuple(found)


def _labels_of(source: xr.DataArray | Entries) -> xr.DataArray | xr.Dataset:
    return source.labels if isinstance(source, Entries) else source


def _warn_of_degrees(system: CoordinateSystem, sites: FloatArray) -> None:
    names = system.looks_like_degrees(sites)
    if names:
        warn_user(
            f"Coordinates {names} have no units and their values could be degrees; they were taken "
            "for distances in a plane. If they are degrees, set `units='degrees_east'` and "
            "'degrees_north' on them, or pass "
            f"`coords={{'longitude': {names[0]!r}, 'latitude': {names[1]!r}}}`; if not, set their "
            "units."
        )


def _warn_of_strangers(found: Observations) -> None:
    """Warn of secondaries whose extent does not meet the primary's: they can say little."""
    names, sample = found.names, found.sample
    low, high = (f(sample.inputs[:, sample.task(0)], axis=1) for f in (np.min, np.max))
    for i, name in enumerate(names[1:], start=1):
        columns = sample.inputs[:, sample.task(i)]
        gap = np.maximum(low - columns.max(axis=1), columns.min(axis=1) - high)
        if (gap > _APART).any():
            warn_user(
                f"The sites of {name!r} do not overlap with those of {names[0]!r} in extent; it "
                "will hardly inform the prediction. Check the coordinates and their units."
            )
