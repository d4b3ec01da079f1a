"""Cross-validate a model: withhold values in folds, predict them from the rest, and score them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arguments import check_flag, check_integer, unknown_option
from xcopula.arrays import FloatArray, IntArray
from xcopula.fitting import fit
from xcopula.fitting.defaults import fit_within, support_of
from xcopula.fitting.directions import free_groups
from xcopula.fitting.fit import fit_in_steps
from xcopula.fitting.request import Request, check_names
from xcopula.fitting.steps import begin
from xcopula.labels.buffer import Buffer, check_buffer
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.entries import Entries, find_entries
from xcopula.labels.georeference import from_table
from xcopula.labels.names import check_inputs
from xcopula.labels.observations import Observations, gather, read
from xcopula.labels.points import check_anchors
from xcopula.labels.variables import Data
from xcopula.marginals import Recipe
from xcopula.methods import resolve_method
from xcopula.model import CopulaModel
from xcopula.model.conditioning import with_rows
from xcopula.model.running import stop_together
from xcopula.prediction.levels import check_levels
from xcopula.process import Sample
from xcopula.validation.folds import Folds, assign, find_labels
from xcopula.validation.results import CLIMATOLOGY, MODEL, NAMES, SINGLE_TASK, to_dataset
from xcopula.validation.scoring import Predicted, Withheld, climatology, predict
from xcopula.validation.splits import Split, split
from xcopula.warn import shown

__all__ = ["cross_validate"]

Options = dict[str, Any]
Begun = tuple[Observations, Request]

_SECONDARIES = ("keep", "drop")
# Options of a fit that have no meaning here.
_NOT_HERE = ("compute", "progress", "seed")


def cross_validate(
    data: Data,
    primary: str,
    secondary: str | Sequence[str] = (),
    *,
    folds: int | str | xr.DataArray = 10,
    count: int | None = None,
    buffer: Buffer | None = None,
    secondaries: Literal["keep", "drop"] = "keep",
    refit: bool = True,
    quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
    seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Withhold values of the primary in folds, predict them from the rest, and score them.

    Parameters
    ----------
    data, primary, secondary
        As in :func:`xcopula.fit`.
    folds : int, {"blocks", "stations", "time"}, str or DataArray
        What is withheld together. A number: so many folds of random sites. "blocks": sites that
        are near each other, by k-means in the first group of coordinates (space, where there is
        one), with all their times. "stations": all times of a place, places dealt to folds at
        random. "time": spans of time that follow each other, at all places. Else a variable, or
        its name, whose values label the folds.
    count : int, optional
        How many blocks, folds of stations, or spans; 10 by default, or fewer stations or times
        if there are no more.
    buffer : float or mapping, optional
        What is withheld is not used within this distance of a withheld value either: in the units
        of the length scales, as in :meth:`CopulaModel.loo`.
    secondaries : {"keep", "drop"}
        Whether secondaries at the withheld places are known. "keep" asks how well the primary is
        told from them, "drop" how well it is predicted where nothing was measured.
    refit : bool
        Whether parameters are fitted anew for each fold. With False they are fitted once, to all
        data, and each fold is conditioned on the rest: much faster, and a little too good.
    quantiles : float or sequence of float
        Levels of the quantiles in the result.
    seed : int
        Of random folds, and of the fits.
    **options
        Of :func:`xcopula.fit`, but for ``compute`` and ``progress``.

    Returns
    -------
    Dataset
        For each value of the primary, on its own dim where it has one and else on dim
        ``observation``, with the coordinates of the data: ``observed``, ``fold``, ``quantiles``
        (dim ``quantile``), ``median``, ``pit``, ``crps``, ``log_score``, and ``covered`` (dim
        ``coverage``), whether the value lies within the central 50, 80, 90 or 95 %. The same scores
        of two references end in ``_climatology`` (the primary's law alone, fitted to the training
        values as if they were independent) and ``_single_task`` (a model of the primary without
        secondaries). Where some values are known as intervals, ``observed_lower`` and
        ``observed_upper`` are their limits, equal for a number.
        :func:`xcopula.format_validation` prints a table of it.

    Raises
    ------
    KeyError, TypeError, ValueError
        On bad input, before any work is done: also if a fold leaves too little to train on.

    Notes
    -----
    Folds are tasks of dask: they run in threads, or on the cluster of the current client, with the
    same result.

    Examples
    --------
    >>> import xcopula
    >>> ds = xcopula.datasets.toy(seed=0)
    >>> found = xcopula.cross_validate(
    ...     ds, "primary", "cotask", folds=5, refit=False, marginals="normal", kernels="matern52"
    ... )
    >>> sorted(found["fold"].values.tolist())[:3]
    [0, 0, 0]
    """
    if secondaries not in _SECONDARIES:
        raise ValueError(f"`secondaries` must be 'keep' or 'drop', found {shown(secondaries)}.")
    levels = np.atleast_1d(check_levels(quantiles))
    refit = check_flag("refit", refit)
    check_integer("seed", seed)
    names = check_names(primary, secondary)
    asked = _Asked.of(data, names, _all_options(options, seed))
    labels = find_labels(folds, asked.data, primary)
    observations = asked.observations
    found = assign(observations, folds, count=count, seed=seed, given=labels)
    limits = None if buffer is None else check_buffer(buffer, observations.coordinates)
    splits = split(observations, found, drop=secondaries == "drop", buffer=limits)
    asked.check_recipe(splits)
    fits = asked.begin(splits) if refit else []
    results = _run(asked, splits, levels, fits)
    attrs = {
        "primary": primary,
        "secondary": ", ".join(names[1:]),
        "folds": found.kind,
        "secondaries": secondaries,
        "parameters": "fitted in each fold" if refit else "fitted once, to all data",
    }
    if limits is not None:
        attrs["buffer"] = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    order = np.concatenate([s.test for s in splits])
    return to_dataset(observations, _labels(found, observations), order, results, levels, attrs)


def _all_options(options: Mapping[str, Any], seed: int) -> Options:
    """Return every option of a fit, those that were not given at their defaults."""
    parameters = inspect.signature(fit).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    unknown = [name for name in options if name not in defaults or name in _NOT_HERE]
    if unknown:
        parameters = inspect.signature(cross_validate).parameters.values()
        names = [*(p.name for p in parameters if p.kind is p.KEYWORD_ONLY), *defaults]
        known = [name for name in names if name not in _NOT_HERE]
        raise unknown_option("cross_validate", unknown[0], known)
    return {**defaults, **options, "seed": seed}


def _request(names: Sequence[str], options: Options) -> Request:
    taken = inspect.signature(Request.of).parameters
    return Request.of(names, **{k: v for k, v in options.items() if k in taken})


def _alone(primary: str, options: Options) -> Options:
    """Return the options of a fit of the primary without secondaries."""

    def own(given: Any) -> Any:
        return (
            {k: v for k, v in given.items() if k == primary}
            if isinstance(given, Mapping)
            else given
        )

    method = resolve_method(options["method"])
    return {
        **options,
        "marginals": own(options["marginals"]),
        "kernels": own(options["kernels"]),
        "censored": own(options["censored"]),
        "support": own(options["support"]),
        # One task has no pairs; what has a law of its own, as kriging, keeps it.
        "method": method if method.law else "full",
    }


@dataclass(frozen=True)
class _Asked:
    """What was asked, and the data, read once."""

    data: Data
    names: list[str]
    options: Options
    request: Request
    alone: Request | None
    sources: dict[str, Entries]
    system: CoordinateSystem
    observations: Observations

    @classmethod
    def of(cls, data: Data, names: list[str], options: Options) -> _Asked:
        request = _request(names, options)
        data = from_table(data)
        sources, system = gather(
            data,
            names,
            options["coords"],
            ard=options["ard"],
            laws=request.named_laws,
            crs=options["crs"],
            censored=request.censored,
        )
        check_inputs(system.names, NAMES)
        check_anchors(request.method, system)
        entries = find_entries(sources)
        directed = free_groups(options["anisotropy"], system)
        plain = tuple(rule.plain for rule in request.censored)
        request = replace(request, anisotropy=directed, censored=plain)
        single = None
        if len(names) > 1:
            single = _request(names[:1], _alone(names[0], options))
            single = replace(single, anisotropy=directed, censored=plain[:1])
        observations = _read(entries, system, request)
        return cls(data, names, options, request, single, entries, system, observations)

    def check_recipe(self, splits: Sequence[Split]) -> None:
        """Refuse folds whose training values do not allow a law with groups or slopes."""
        sample, variable = self.observations.sample, self.observations.variables[0]
        law, stated = self.request.laws[0], self.request.support[0]
        if not isinstance(law, Recipe):
            return
        for fold in splits:
            part = sample.select([0]).take(fold.train[fold.train < sample.offsets[1]])
            with _naming(fold):
                support = support_of(law, part, stated, variable.attrs)
                fit_within(law, part, variable.labels, support)

    def begin(self, splits: Sequence[Split]) -> list[Begun]:
        """Check and start a fit of the training values of each fold."""
        fits = []
        for fold in splits:
            parts = _parts(self.observations.sample, fold.train)
            with _naming(fold), _quiet():
                fits.append(_begin(self.sources, self.system, self.request, parts))
        return fits


@contextmanager
def _naming(fold: Split) -> Iterator[None]:
    """Put the label of a fold before the message of an error."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"Fold {fold.label}: {error}") from None
    except KeyError as error:
        raise KeyError(f"Fold {fold.label}: {error}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Do not say of each fold what was said of all data; filters are global: not in a task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _parts(sample: Sample, rows: IntArray) -> list[IntArray]:
    """Return numbers of observations as numbers within each task."""
    stops = np.searchsorted(rows, sample.offsets)
    pairs = zip(stops[:-1], stops[1:], sample.offsets[:-1], strict=True)
    return [rows[a:b] - start for a, b, start in pairs]


def _begin(
    sources: Mapping[str, Entries],
    system: CoordinateSystem,
    request: Request,
    parts: Sequence[IntArray],
) -> Begun:
    """Read some values of each variable, and check and start a fit of them."""
    some = {
        name: source.take(rows) for (name, source), rows in zip(sources.items(), parts, strict=True)
    }
    observations = _read(some, system, request)
    return observations, begin(observations, request)


def _read(
    sources: Mapping[str, Entries], system: CoordinateSystem, request: Request
) -> Observations:
    return read(
        sources,
        system,
        request.named_laws,
        censored=request.censored,
        replicates=request.replicates,
    )


def _refitted(
    begun: Begun, request: Request, withheld: Withheld, levels: FloatArray, reference: bool
) -> list[Predicted]:
    """Fit a fold; predict it, and where asked also by its climatology."""
    observations, started = begun
    model = fit_in_steps(observations, replace(started, ticket=request.ticket))
    return _both(model, request, withheld, levels, reference)


def _conditioned(
    model: CopulaModel,
    request: Request,
    rows: IntArray,
    withheld: Withheld,
    levels: FloatArray,
    reference: bool,
) -> list[Predicted]:
    """Condition a model on a fold's training values; predict as above."""
    return _both(with_rows(model, rows), request, withheld, levels, reference)


def _both(
    model: CopulaModel, request: Request, withheld: Withheld, levels: FloatArray, reference: bool
) -> list[Predicted]:
    found = [predict(model, withheld, levels)]
    if reference:
        found.append(climatology(request.named_laws[0], model, withheld, levels))
    return found


def _run(
    asked: _Asked, splits: Sequence[Split], levels: FloatArray, fits: Sequence[Begun]
) -> dict[str, list[Predicted]]:
    """Run all folds side by side, and return what each forecaster says of each fold.

    Without fits that have begun, all folds have the parameters of all data.
    """
    import dask
    from threadpoolctl import threadpool_limits

    withheld = [
        dask.delayed(Withheld.of(asked.observations, s.test), traverse=False) for s in splits
    ]
    tasks = {}
    with stop_together() as ticket:
        for name, request in ((MODEL, asked.request), (SINGLE_TASK, asked.alone)):
            if request is not None:
                jobs = _jobs(asked, replace(request, ticket=ticket), name, splits, fits)
                tasks[name] = [
                    run(*given, w, levels, name == MODEL)
                    for (run, given), w in zip(jobs, withheld, strict=True)
                ]
        with threadpool_limits(1, user_api="blas"), _quiet():
            (done,) = dask.compute(tasks)
    results = {name: [folds[0] for folds in found] for name, found in done.items()}
    results[CLIMATOLOGY] = [folds[1] for folds in done[MODEL]]
    return results


def _jobs(
    asked: _Asked, request: Request, name: str, splits: Sequence[Split], fits: Sequence[Begun]
) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return what each fold calls, and its first arguments; what all share is one node."""
    import dask

    def node(shared: Any) -> Any:
        return dask.delayed(shared, traverse=False)

    sample, alone = asked.observations.sample, name == SINGLE_TASK
    parts = [_parts(sample, s.train) for s in splits]
    if fits:
        begun = [node(fit) for fit in fits]
        if alone:
            primary = {n: asked.sources[n] for n in asked.names[:1]}
            given = node(primary), node(asked.system), node(request)
            begun = [dask.delayed(_begin)(*given, p[:1]) for p in parts]
        return [(dask.delayed(_refitted), (fit, node(request))) for fit in begun]
    model = node(_fit_all(asked, alone=alone)), node(request)
    rows = [p[0] for p in parts] if alone else [s.train for s in splits]
    return [(dask.delayed(_conditioned), (*model, r)) for r in rows]


def _fit_all(asked: _Asked, *, alone: bool) -> CopulaModel:
    """Fit all data once, with the secondaries or without."""
    options = asked.options
    primary, secondary = asked.names[0], asked.names[1:]
    if alone:
        options, secondary = _alone(primary, options), []
    model = fit(asked.data, primary, secondary, **options)
    assert isinstance(model, CopulaModel)
    return model


def _labels(folds: Folds, observations: Observations) -> npt.NDArray[Any]:
    """Return the label of the fold of each value of the primary."""
    own = folds.of(observations)[observations.sample.task(0)]
    return folds.labels[own]
