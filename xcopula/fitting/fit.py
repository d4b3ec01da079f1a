"""Fit a multi-task copula process to labelled data: check what is asked, then chain the steps.

Each variable is fitted alone, which says where the others start: pairs of the primary with each
secondary where the method wants them, then all variables together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xcopula.arguments import check_flag, check_options
from xcopula.fitting.directions import Anisotropy, free_groups
from xcopula.fitting.interruption import stop_together
from xcopula.fitting.maximise import Fit
from xcopula.fitting.recovery import interruption
from xcopula.fitting.request import Request, check_names
from xcopula.fitting.steps import Agreed, begin, bring_together, fit_alone, fit_pair, fit_together
from xcopula.fitting.watch import keep_best
from xcopula.jit.compiler import compilations
from xcopula.labels.censoring import Censored
from xcopula.labels.coordinates import CoordinateSystem, Coords
from xcopula.labels.entries import Source, Unread, to_read
from xcopula.labels.georeference import from_table
from xcopula.labels.names import check_inputs
from xcopula.labels.observations import Observations, describe, gather, read
from xcopula.labels.points import check_anchors
from xcopula.labels.variables import Data
from xcopula.methods import Method
from xcopula.model import CopulaModel, LazyModel
from xcopula.model.extremes import warn_of_laws
from xcopula.model.selection import Alternative
from xcopula.model.uncertainty import Uncertainty
from xcopula.progress import Progress
from xcopula.progress.displays import choose_listener
from xcopula.progress.run import track
from xcopula.solvers import Solver
from xcopula.warn import shown

__all__ = ["fit", "fit_in_steps"]

_LARGE = 800

# Of a support: None leaves an end open.
Ends = tuple[float | None, float | None] | None


@check_options
def fit(
    data: Data,
    primary: str,
    secondary: str | Sequence[str] = (),
    *,
    coords: Coords = None,
    crs: Any = None,
    method: str | Method = "transductive",
    solver: str | Solver = "auto",
    marginals: Any = "auto",
    support: Ends | Mapping[str, Ends] = None,
    kernels: Any = "auto",
    coupling: str = "convolution",
    structures: int | str = "auto",
    noise: str = "correlated",
    ard: bool | Sequence[str] = False,
    anisotropy: Anisotropy = True,
    censored: Censored = "auto",
    replicates: bool = False,
    uncertainty: str = "inflated",
    max_hours: float | None = 4.0,
    restarts: int = 0,
    seed: int = 0,
    compute: bool = True,
    progress: Progress = None,
) -> CopulaModel | LazyModel:
    """Fit a multi-task Gaussian copula process by maximum likelihood.

    Parameters
    ----------
    data : Dataset, mapping of str to DataArray, or DataFrame
        Variables with their coordinates; NaN marks what was not observed, and so do the numbers of
        the attributes ``_FillValue`` and ``missing_value``. Each variable may have its own gaps.
        Columns of a DataFrame are variables, and coordinates if they have a
        usual name, such as ``x`` and ``y``, ``easting``, ``lon`` or ``utm_x``, or hold dates.
        Stations may be a coordinate of shapely points, or a GeoDataFrame. Dask-backed variables
        are read once, chunk by chunk: only what was observed is kept in memory.
    primary : str
        The variable to predict.
    secondary : str or sequence of str
        Variables that inform it; none for a single-task process.
    coords : str, sequence or mapping, optional
        The coordinates to use as inputs. By default they are found by CF role and name. Give
        names, or a mapping of group names to names (the covariance is a product over groups).
        Longitude and latitude become points on the globe; times and heights are groups of their
        own. The keys "longitude" and "latitude" of a mapping say which these are;
        :func:`xcopula.cycle` marks a periodic coordinate.
    crs : CRS, str or int, optional
        The coordinate reference system of the data, such as "EPSG:2056", if they do not tell it
        themselves (by an index, a grid mapping or an attribute). It needs pyproj. If they tell
        another one, the fit is refused.
    method : str or Method
        "transductive" fits the primary with each secondary apart and combines them at prediction,
        at a cost that is linear in the number of variables. "full" is one model of all variables.
        "dtc", "fitc" and "pitc" are sparse, with inducing points; "bcm" is a committee of blocks
        of data; "cokriging" has normal laws, an LMC and unknown means. An object of
        :mod:`xcopula.methods` carries options, such as ``Transductive(weights="report")``.
    solver : {"auto", "exact", "neighbours"} or Solver
        How a Gaussian sample is evaluated and conditioned: "exact" by its whole covariance, for
        some thousand values; "neighbours" each value given a few others, for any number. "auto"
        takes the exact one up to 4,000 values of a sub-model. An object of
        :mod:`xcopula.solvers` carries options, such as ``Neighbours(neighbours=40)``.
    marginals : str, Marginal, list or mapping
        Marginal of every variable, or of each by name: "auto", which is "flexible", "normal",
        "lognormal", "exponential", "gev", "gamma", "t", "parzen", or a law of your own. The
        flexible one (sinh-arcsinh) has a location, a scale, a skewness and a tail weight, shrunk
        to the normal law. A law that varies is made by :func:`xcopula.by` (a law for each month,
        say) or :func:`xcopula.regress` (with elevation, say), and fitted inside the likelihood.
        "select" takes the best of the report's seven for each variable alone by AIC, a list of
        names the best of these; ``model.selection`` shows the table.
    support : pair of numbers or mapping, optional
        The least and the largest value that a variable can have, such as (0, None), of all
        variables or of each by name. Marginals are cut off there; values outside are refused.
        Values at the least one stand for all below it: zeros of rain are a marginal that goes on
        below zero, seen as zero. By default the flexible marginal has the support (0, None) where
        no value is negative, unless the units are degrees Celsius or Fahrenheit. (None, None)
        prevents that.
    kernels : str, Kernel, list, set or mapping
        Kernel of every variable, or of each by name: "auto", "se", "matern12", "matern32",
        "matern52", or a kernel of your own. A list has a kernel for each nested structure, such as
        ``{"pm10": ["matern32", "matern12"]}``; the search starts with short ranges in the first.
        "auto" is "matern12" in space, or "matern32" for a field without noise, such as output of a
        model on a grid; with two structures ``["matern32", "matern12"]``. "select" takes the best
        for each variable alone by AIC, a set of names the best of these.
    coupling : {"convolution", "icm", "lmc"}
        How kernels of different variables combine.
    structures : int or "auto"
        Number of nested structures. "auto" is one in space, and two where there is time or another
        second group of coordinates: what lasts and what passes. A list of kernels says how many
        there are.
    noise : {"correlated", "independent"}
        Whether the nuggets of variables sampled at one site are correlated.
    ard : bool or sequence of str
        Groups in which every coordinate has its own length scale; True for all groups.
    anisotropy : bool or names
        Whether ranges may differ by direction, by an angle and a ratio in a plane or on less than
        half the globe: in all groups of two or three coordinates, in none, or in those that are
        named. A prior shrinks them to equal ranges. All variables and structures share the
        directions.
    censored : "auto", mapping or None
        Which values are known as intervals: below a detection limit, saturated, rounded. For each
        variable the name of a boolean variable, or a boolean DataArray (True: the stored value is
        an upper limit); a number (values at or below it are below it); or a pair ``(lower,
        upper)`` of names, DataArrays or numbers, between which the value lies. None, NaN or
        infinity leaves a side open, equal limits are an exact value, and where both are open the
        stored value is. "auto", also for variables that are not named, takes what the data carry
        by the CF conventions: an ancillary variable whose standard name ends in
        ``detection_minimum``, or flags that mean "below_detection_limit"; ``summary()`` says so.
        None takes all values as they are stored.
    replicates : bool
        Whether a site may have several values of a variable: of two instruments, or laboratory
        duplicates. They share the signal and have nuggets of their own, and an observation that
        is predicted there is a new one. Without it several values are refused, since as a rule a
        coordinate is missing, or rows were given twice.
    uncertainty : {"inflated", "plugin"}
        How parameter uncertainty enters predictions. "inflated" multiplies the latent standard
        deviation by ``sqrt(n / (n - k))``, n the number of values of a variable and k that of its
        parameters. "plugin" takes parameters for certain: with few sites intervals are then too
        narrow. :meth:`CopulaModel.with_uncertainty` changes it later.
    max_hours : float, optional
        A fit is refused before it starts if it is estimated to take longer, or to need more
        memory than the machine has. With None nothing is refused.
    restarts : int
        Further starting points of the optimiser, around the one where the variables alone ended.
    seed : int
        Seeds restarts; the same seed gives the same model.
    compute : bool
        False returns a :class:`LazyModel`: the graph of a fit that has not run yet.
    progress : bool or callable, optional
        True shows what is being done and how far it is, False does not. None shows it at a prompt
        of a terminal and in a notebook only. A function is called with every
        :class:`~xcopula.progress.Event`, such as :func:`xcopula.progress.to_logger` makes one.
        Steps that workers of a cluster run are not shown: their dashboard shows them.

    Returns
    -------
    CopulaModel, or LazyModel

    Raises
    ------
    KeyError, TypeError, ValueError
        On bad input, before any work is done. The message says what was found and what to do.
    FitInterrupted
        On ctrl-C. A `KeyboardInterrupt` whose ``model`` has the best parameters so far.

    Examples
    --------
    >>> import xcopula
    >>> ds = xcopula.datasets.toy(seed=0)
    >>> model = xcopula.fit(ds, "primary", "cotask", marginals="normal", kernels="matern52")
    >>> model.tasks
    ('primary', 'cotask')
    """
    names = check_names(primary, secondary)
    request = Request.of(
        names,
        method=method,
        solver=solver,
        marginals=marginals,
        kernels=kernels,
        coupling=coupling,
        structures=structures,
        noise=noise,
        uncertainty=uncertainty,
        restarts=restarts,
        seed=seed,
        max_hours=max_hours,
        censored=censored,
        replicates=replicates,
        support=support,
    )
    compute = check_flag("compute", compute)
    listener = choose_listener(progress)
    data, rules = from_table(data), request.censored
    sources, system = gather(
        data, names, coords, ard=ard, laws=request.named_laws, load=compute, crs=crs, censored=rules
    )
    check_inputs(system.names)
    request = replace(
        request,
        anisotropy=free_groups(anisotropy, system),
        censored=tuple(rule.plain for rule in rules),
    )
    variables = describe(sources, request.named_laws, system, rules)
    check_anchors(request.method, system)
    if not compute:
        if listener is not None:
            _check_lazy(progress)
        graph = _Fitting(sources, system, request).graph()
        return LazyModel(
            variables,
            system,
            request.method,
            request.solver,
            graph,
            tuple(
                sure and not variable.censored.tells
                for sure, variable in zip(request.numbers, variables, strict=True)
            ),
        )
    fitting = _Fitting(sources, system, request)
    with (
        track("fit", listener, tuple(names), fitting.count_steps()) as run,
        compilations(run.compiles),
        stop_together(run) as ticket,
        keep_best(ticket) as best,
    ):
        try:
            model = fitting.compute(ticket)
        except KeyboardInterrupt:
            raise interruption(best, run, _record) from None
    warn_of_laws(model)
    return model


@dataclass(frozen=True)
class _Fitting:
    """The steps of one fit, to be run or recorded."""

    sources: Mapping[str, Source]
    system: CoordinateSystem
    request: Request

    def count_steps(self) -> int:
        """Return the number of steps: each variable alone, pairs, all together."""
        count = len(self.sources)
        pairs = count - 1 if self.request.method.pairwise else 0
        return count + pairs + 1

    def compute(self, ticket: int) -> CopulaModel:
        """Run the steps: side by side where the method has pairs, else one after the other."""
        return replace(self, request=replace(self.request, ticket=ticket))._compute()

    def _compute(self) -> CopulaModel:
        from threadpoolctl import threadpool_limits

        if len(self.sources) > 1 and self.request.method.pairwise:
            # Sub-models run side by side: one BLAS thread each, or they would fight for the cores.
            with threadpool_limits(1, user_api="blas"):
                together: CopulaModel = self.graph().compute()
            return together
        start = _start(self.sources, self.system, self.request)
        # Threads of BLAS pay for large matrices only; on small ones they wait for each other.
        threads = 1 if start[0].sample.size < _LARGE else None
        with threadpool_limits(threads, user_api="blas"):
            return fit_in_steps(*start)

    def graph(self) -> Any:
        """Record the steps as a delayed object; each is a task of its own.

        The same data and options give the same keys: a cluster that has the model keeps it.
        """
        import dask

        sources = to_read(self.sources)
        if any(isinstance(source, Unread) for source in sources.values()):
            begun = dask.delayed(_start, pure=True, nout=2)
            start = begun(sources, self.system, self.request)
        else:
            # In memory: whatever is wrong with the data is said at once.
            ready = _start(sources, self.system, self.request)
            start = [dask.delayed(part, pure=True, traverse=False) for part in ready]
        observations, request = start
        return _chain(
            observations,
            request,
            self.request,
            lambda step, *given: dask.delayed(step, pure=True)(*given),
        )


def fit_in_steps(observations: Observations, request: Request) -> CopulaModel:
    """Run the steps of a fit that has begun one after the other, in this thread."""
    model: CopulaModel = _chain(observations, request, request, lambda step, *given: step(*given))
    return model


def _chain(observations: Any, request: Any, options: Request, call: Callable[..., Any]) -> Any:
    """Run or record the steps. Observations and request may be nodes of a graph."""
    tasks = range(len(options.laws))
    tables = [call(fit_alone, observations, request, i) for i in tasks]
    agreed = call(bring_together, observations, request, tables)
    pairs = []
    if options.method.pairwise:
        pairs = [call(fit_pair, observations, request, agreed, i) for i in tasks[1:]]
    fitted = call(fit_together, observations, request, agreed, pairs)
    return call(_assemble, observations, request, agreed, fitted)


def _start(
    sources: Mapping[str, Source], system: CoordinateSystem, request: Request
) -> tuple[Observations, Request]:
    observations = read(
        sources,
        system,
        request.named_laws,
        censored=request.censored,
        replicates=request.replicates,
    )
    return observations, begin(observations, request)


def _assemble(
    observations: Observations, request: Request, agreed: Agreed, fitted: Fit
) -> CopulaModel:
    """Make the record of what was fitted."""
    return _record(observations, request, agreed[1], fitted)


def _record(
    observations: Observations,
    request: Request,
    alternatives: tuple[Alternative, ...],
    fitted: Fit,
) -> CopulaModel:
    """Make the record of what was fitted."""
    return CopulaModel(
        observations=observations,
        process=fitted.process,
        theta=fitted.theta,
        prepared=fitted.prepared,
        method=request.method,
        solver=request.solver,
        log_likelihood=fitted.log_likelihood,
        converged=fitted.optimum.converged,
        message=fitted.optimum.message,
        evaluations=fitted.optimum.evaluations,
        uncertainty=Uncertainty.of(
            request.uncertainty,
            fitted.process,
            fitted.theta,
            observations.sample,
            request.method,
            fitted.optimum.information,
        ),
        information=fitted.optimum.information,
        alternatives=alternatives,
    )


def _check_lazy(progress: Progress) -> None:
    """Refuse to show the progress of what does not run yet."""
    if progress is not None:
        raise ValueError(
            f"`progress` must be None with compute=False, found {shown(progress)}: nothing runs "
            "yet. Give it to the model, `model.compute(progress=True)`."
        )
