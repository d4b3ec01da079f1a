"""Fit a multi-task copula process to labelled data: check what is asked, then chain the steps.

The report has two. Step one fits each task alone and chooses its kernel and marginal law. Step two
starts there and maximises the likelihood over all parameters together. Where the primary's law was
left to choose, the runners-up get the same chance and leave-one-out decides: a law's likelihood
says how well it describes the values, its score how well it predicts them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.labels.coordinates import CoordinateSystem, Coords
from xcopula.methods import resolve_method
from xcopula.methods.combination import WEIGHTS
from xcopula.kernels import Kernel, resolve_kernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.model.lazy import LazyModel
from xcopula.marginals import Law, Marginal, Recipe
from xcopula.marginals import resolve as resolve_marginal
from xcopula.model.record import CopulaModel, warn_of_extreme_scores
from xcopula.labels.observations import Observations, gather, primary_fields, read
from xcopula.fitting.optimiser import OPTIMIZERS
from xcopula.fitting.steps import (
    Callback,
    Plan,
    begin,
    choose,
    fit_alone,
    fit_pair,
    fit_together,
)
from xcopula.labels.variables import Data, Thin, is_lazy, thinned

__all__ = ["fit"]

FloatArray = npt.NDArray[np.float64]
MarginalSpec = str | Law

_ANCHORS = ("auto", "block")
_LARGE = 800


def fit(
    data: Data,
    primary: str,
    secondary: str | Sequence[str] = (),
    *,
    coords: Coords = None,
    method: str = "transductive",
    marginals: MarginalSpec | Mapping[str, MarginalSpec] = "auto",
    kernels: str | Mapping[str, str] = "auto",
    coupling: str = "convolution",
    structures: int = 1,
    noise: str = "correlated",
    weights: str = "auto",
    anchors: str | xr.Dataset | None = "auto",
    inducing: int | xr.Dataset | Mapping[str, int | xr.Dataset] = 200,
    blocks: int = 4,
    polish: bool = True,
    optimizer: str = "l-bfgs",
    ard: bool | Sequence[str] = False,
    thin: Thin = None,
    max_hours: float | None = 4.0,
    restarts: int = 2,
    seed: int = 0,
    compute: bool = True,
    callback: Callback | None = None,
) -> CopulaModel | LazyModel:
    """Fit a multi-task Gaussian copula process by maximum likelihood.

    Parameters
    ----------
    data : Dataset or mapping of str to DataArray
        Variables with their coordinates; NaN marks what was not observed, and each variable may
        have its own gaps. Dask-backed variables are computed once.
    primary : str
        The variable to predict.
    secondary : str or sequence of str
        Variables that inform it; none for a single-task process.
    coords : str, sequence or mapping, optional
        The coordinates that are the inputs, where they are not to be found by CF role and name:
        names, or a mapping of group names to names (a product over groups). Longitude and latitude
        become points on the globe; times and heights are groups of their own. The keys
        "longitude" and "latitude" of a mapping say which these are; :func:`xcopula.cycle` marks a
        periodic coordinate.
    method : {"transductive", "full", "dtc", "fitc", "pitc", "bcm", "cokriging"}
        Inference method. "full" is the exact likelihood of all variables together; "transductive"
        fits the primary with each secondary apart and combines them at prediction, at a cost that
        is linear in the number of variables. "dtc", "fitc" and "pitc" are sparse, with inducing
        points; "bcm" is a committee of blocks of data; "cokriging" has normal laws, an LMC and
        unknown means.
    marginals : str, Marginal or mapping
        Marginal law of every variable, or of each by name: "auto", "normal", "lognormal",
        "exponential", "gev", "gamma", "t", "parzen", or a law of one's own. One that varies is
        made by :func:`xcopula.by` (a law for each month, say) or :func:`xcopula.regress` (with
        elevation, say), and fitted inside the likelihood.
    kernels : str or mapping
        Kernel of every variable, or of each by name: "auto", "se", "matern12", "matern32",
        "matern52".
    coupling : {"convolution", "icm", "lmc"}
        How kernels of different variables combine.
    structures : int
        Number of nested structures (short and long range).
    noise : {"correlated", "independent"}
        Whether the nuggets of variables sampled at one site are correlated.
    weights : {"auto", "calibrated", "stacked", "report"}
        How transductive sub-models are combined. "report" adds up the information of each
        secondary as if they had nothing in common; "calibrated" weights and "stacked" predictions
        correct for what they have, learnt by leave-one-out; "auto" takes the better of these two.
    anchors : "auto", Dataset, None or "block"
        Query points that every cell shares in a transductive prediction: sites of secondaries
        without the primary, given points, or none. "block" takes each chunk of the target as its
        own query set, as in the report, and so depends on the chunks.
    inducing : int, Dataset, or mapping of variable to either
        Inducing points of the sparse methods: how many over all variables (found by k-means among
        each variable's sites), points that all share, or those of each variable.
    blocks : int
        Number of blocks of the committee.
    polish : bool
        Whether a transductive fit ends with all parameters together.
    optimizer : {"l-bfgs", "cg", "annealing"}
        How all parameters together are sought: quasi-Newton, conjugate gradients, or simulated
        annealing followed by quasi-Newton.
    ard : bool or sequence of str
        Groups in which every coordinate has a scale of its own.
    thin : int or mapping of dim to int, optional
        Use every so many entries of the data only, along all dims or along some.
    max_hours : float, optional
        A fit that would take longer by estimate, or more memory than the machine has, is refused
        before it starts; None never refuses.
    restarts : int
        Starting points of the optimiser beside the one that step one suggests.
    seed : int
        Seeds the restarts; the same seed gives the same model.
    compute : bool
        False gives a :class:`LazyModel`: a graph of the fit that nothing has run yet.
    callback : callable, optional
        Called as ``callback(iteration, log_likelihood, theta)``; the value includes weak priors.

    Returns
    -------
    CopulaModel, or LazyModel

    Raises
    ------
    KeyError, TypeError, ValueError
        On bad input, before any work is done. The message says what was found and what to do.

    Examples
    --------
    >>> import xcopula
    >>> ds = xcopula.datasets.toy(seed=0)
    >>> model = xcopula.fit(ds, "primary", "cotask", marginals="normal", kernels="matern52")
    >>> model.tasks
    ('primary', 'cotask')
    """
    names = _check_names(primary, secondary)
    plan = Plan(
        method=method,
        laws=_laws(method, _by_variable("marginals", marginals, names, resolve_marginal)),
        kernels=_shared(
            resolve_method(method).coupling or coupling,
            _by_variable("kernels", kernels, names, resolve_kernel),
        ),
        coupling=resolve_method(method).coupling or coupling,
        structures=_check_integer("structures", structures),
        noise=noise,
        weights=weights,
        anchors=anchors,
        inducing=inducing,
        blocks=_check_integer("blocks", blocks, least=1),
        polish=bool(polish),
        optimizer=optimizer,
        restarts=_check_integer("restarts", restarts),
        seed=_check_integer("seed", seed),
        max_hours=max_hours,
        callback=None if callback is None else _Counted(callback),
    )
    _check_plan(plan)
    data = thinned(data, _check_thin(thin))
    arrays, system = gather(data, names, coords, ard=ard, laws=plan.laws, load=compute)
    fields = primary_fields(arrays, plan.laws, system)
    if isinstance(anchors, xr.Dataset):
        system.find_in(anchors, "`anchors`")
    _check_inducing(inducing, names, system)
    fitting = _Fitting(arrays, system, plan)
    if not compute:
        _check_picklable(callback)
        attrs = dict(arrays[primary].attrs)
        return LazyModel(tuple(names), system, attrs, fields, fitting.graph())
    if len(names) > 1 and resolve_method(method).pairwise:
        # Sub-models run side by side: one BLAS thread each, or they would fight for the cores.
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            # A callback belongs to this process; a cluster would call a copy of it.
            options = {"scheduler": "threads"} if callback else {}
            model: CopulaModel = fitting.graph().compute(**options)
    else:
        model = fitting.run()
    warn_of_extreme_scores(model)
    return model


class _Counted:
    """A callback that counts iterations over all starts and steps of a fit."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.count = callback, 0

    def __call__(self, iteration: int, log_likelihood: float, theta: FloatArray) -> object:
        self.count += 1
        return self.callback(self.count, log_likelihood, theta)


@dataclass(frozen=True)
class _Fitting:
    """The steps of one fit, to be run or recorded."""

    arrays: dict[str, xr.DataArray]
    system: CoordinateSystem
    plan: Plan

    def run(self) -> CopulaModel:
        """Run the steps one after the other."""
        from threadpoolctl import threadpool_limits

        start = _start(self.arrays, self.system, self.plan)
        # Threads of BLAS pay for large matrices only; on small ones they wait for each other.
        threads = 1 if start[0].sample.size < _LARGE else None
        with threadpool_limits(threads, user_api="blas"):
            model: CopulaModel = self._chain(*start, lambda step, *given: step(*given))
        return model

    def graph(self) -> Any:
        """Record the steps as a delayed object; each is a task of its own."""
        import dask

        if any(is_lazy(array) for array in self.arrays.values()):
            start = dask.delayed(_start, nout=2)(self.arrays, self.system, self.plan)
        else:
            # In memory: whatever is wrong with the data is said at once.
            ready = _start(self.arrays, self.system, self.plan)
            start = [dask.delayed(part, traverse=False) for part in ready]
        observations, plan = start
        return self._chain(observations, plan, lambda step, *given: dask.delayed(step)(*given))

    def _chain(self, observations: Any, plan: Any, call: Callable[..., Any]) -> Any:
        tasks = range(len(self.arrays))
        tables = call(choose, [call(fit_alone, observations, plan, i) for i in tasks], plan)
        pairs = []
        if resolve_method(self.plan.method).pairwise:
            pairs = [call(fit_pair, observations, plan, tables, i) for i in tasks[1:]]
        return call(fit_together, observations, plan, tables, pairs)


def _start(
    arrays: dict[str, xr.DataArray], system: CoordinateSystem, plan: Plan
) -> tuple[Observations, Plan]:
    observations = read(arrays, system, plan.laws)
    return observations, begin(observations, plan)


def _check_plan(plan: Plan) -> None:
    """Refuse a combination of options before any work."""
    resolve_method(plan.method)
    if plan.weights not in WEIGHTS:
        raise ValueError(f"Unknown weights {plan.weights!r}. Choose one of {WEIGHTS}.")
    named = isinstance(plan.anchors, str) and plan.anchors in _ANCHORS
    if not (named or plan.anchors is None or isinstance(plan.anchors, xr.Dataset)):
        raise ValueError(
            f"Unknown anchors {plan.anchors!r}. Choose 'auto', 'block', None, or give a Dataset "
            "of points with the model's coordinates."
        )
    if plan.optimizer not in OPTIMIZERS:
        raise ValueError(
            f"Unknown optimizer {plan.optimizer!r}. Choose one of {', '.join(OPTIMIZERS)}."
        )
    given = tuple(k for k in plan.kernels if k) or (resolve_kernel("matern32"),)
    Covariance(given, (InputGroup(1),), plan.coupling, plan.structures, plan.noise)


def _laws(method: str, laws: list[Law | None]) -> tuple[Law | None, ...]:
    """Give the law that a method asks for to the variables that have none."""
    for law in laws:
        if isinstance(law, Marginal) and law.fields:
            raise TypeError(
                f"The law {law.name!r} is fitted to the fields of other data. Give its recipe, "
                "`regress(...)` or `by(...)`, to fit it anew."
            )
    only = resolve_method(method).law
    if only is None:
        return tuple(laws)
    allowed = [_of_family(law, only) for law in laws]
    other = {law.name for law, own in zip(laws, allowed, strict=True) if law and own is None}
    if other:
        raise ValueError(
            f"method={method!r} has {only} marginals, found {sorted(other)}. "
            "Leave `marginals` out, or choose another method."
        )
    return tuple(allowed)


def _of_family(law: Law | None, only: str) -> Law | None:
    """Return a law of the only family that a method knows, or None if it is of another."""
    if law is None:
        return resolve_marginal(only)
    if isinstance(law, Recipe):
        own = [r for r in law.candidates() if r.family is not None and r.family.name == only]
        return own[0] if own else None
    return law if law.name == only else None


def _check_inducing(inducing: Any, names: list[str], system: CoordinateSystem) -> None:
    each = [inducing]
    if isinstance(inducing, Mapping) and not isinstance(inducing, xr.Dataset):
        if set(inducing) != set(names):
            raise KeyError(f"`inducing` names {list(inducing)}; the variables are {names}.")
        each = list(inducing.values())
    for given in each:
        if isinstance(given, xr.Dataset):
            system.find_in(given, "`inducing`")
        else:
            _check_integer("inducing", given, least=1)


def _shared(coupling: str, kernels: list[Kernel | None]) -> tuple[Kernel | None, ...]:
    """Give all variables the kernel that one was given, where the coupling shares it."""
    given = {k for k in kernels if k is not None}
    if coupling == "convolution" or len(given) != 1:
        return tuple(kernels)
    return tuple(given) * len(kernels)


def _check_thin(thin: Thin) -> Thin:
    for step in thin.values() if isinstance(thin, Mapping) else [thin]:
        if step is not None:
            _check_integer("thin", step, least=1)
    return thin


def _check_picklable(callback: Callback | None) -> None:
    if callback is None:
        return
    import cloudpickle

    try:
        cloudpickle.dumps(callback)
    except Exception as error:
        raise TypeError(
            f"With compute=False the callback travels with the graph, but it cannot be pickled "
            f"({error}). Give a function without open files or locks, or none."
        ) from error


def _check_names(primary: str, secondary: str | Sequence[str]) -> list[str]:
    others = [secondary] if isinstance(secondary, str) else list(secondary or ())
    names = [primary, *others]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Variables are named by strings, found {name!r}.")
    if primary in others:
        raise ValueError(
            f"The primary {primary!r} is also listed among the secondaries {others}. "
            "Name it once, as the primary."
        )
    if len(set(others)) < len(others):
        raise ValueError(f"A secondary is listed twice: {others}.")
    return names


def _check_integer(name: str, value: object, *, least: int = 0) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` is an integer, found {value!r}.") from None
    if number < least:
        raise ValueError(f"`{name}` is at least {least}, found {number}.")
    return number


def _by_variable(
    what: str, spec: object, names: list[str], resolve: Callable[[Any], Any]
) -> list[Any]:
    """Give each variable its own specification; None stands for "auto"."""
    if isinstance(spec, Mapping):
        unknown = [n for n in spec if n not in names]
        if unknown:
            raise KeyError(f"`{what}` names {unknown}; the variables of the model are {names}.")
        each = [spec.get(n, "auto") for n in names]
    else:
        each = [spec] * len(names)
    return [None if isinstance(s, str) and s == "auto" else resolve(s) for s in each]
