"""Fit a multi-task copula process to labelled data: the report's two steps.

Step one fits each task alone and chooses its kernel and marginal law (:mod:`xcopula.selection`).
Step two starts there and maximises the likelihood over all parameters together. Where the primary's
law was left to choose, the runners-up get the same chance and leave-one-out decides: a law's
likelihood says how well it describes the values, its score how well it predicts them.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.coordinates import Coords
from xcopula.errors import SupportError
from xcopula.inference import resolve_method
from xcopula.kernels import resolve_kernel
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Marginal
from xcopula.marginals import resolve as resolve_marginal
from xcopula.model import CopulaModel, LawTrial, warn_of_extreme_scores
from xcopula.observations import Data, Observations, observe
from xcopula.optimisation import minimise_from
from xcopula.process import Process, Sample
from xcopula.selection import (
    Candidate,
    penalised,
    select,
    select_shared,
    shortlist,
    starting_point,
)

__all__ = ["fit"]

FloatArray = npt.NDArray[np.float64]
Callback = Callable[[int, float, FloatArray], object]
MarginalSpec = str | Marginal | type[Marginal]

_log = logging.getLogger("xcopula")


def fit(
    data: Data,
    primary: str,
    secondary: str | Sequence[str] = (),
    *,
    coords: Coords = None,
    method: str = "full",
    marginals: MarginalSpec | Mapping[str, MarginalSpec] = "auto",
    kernels: str | Mapping[str, str] = "auto",
    coupling: str = "convolution",
    structures: int = 1,
    noise: str = "correlated",
    ard: bool | Sequence[str] = False,
    restarts: int = 2,
    seed: int = 0,
    callback: Callback | None = None,
) -> CopulaModel:
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
        The coordinates that are the inputs: names (one group), or a mapping of group names to
        names (a product over groups). Found by CF axis or by name where not given.
    method : {"full"}
        Inference method: "full" is the exact likelihood of all variables together.
    marginals : str, Marginal or mapping
        Marginal law of every variable, or of each by name: "auto", "normal", "lognormal",
        "exponential", "gev", "gamma", "t", "parzen", or a law of one's own.
    kernels : str or mapping
        Kernel of every variable, or of each by name: "auto", "se", "matern12", "matern32",
        "matern52".
    coupling : {"convolution", "icm", "lmc"}
        How kernels of different variables combine.
    structures : int
        Number of nested structures (short and long range).
    noise : {"correlated", "independent"}
        Whether the nuggets of variables sampled at one site are correlated.
    ard : bool or sequence of str
        Groups in which every coordinate has a scale of its own.
    restarts : int
        Starting points of the optimiser beside the one that step one suggests.
    seed : int
        Seeds the restarts; the same seed gives the same model.
    callback : callable, optional
        Called as ``callback(iteration, log_likelihood, theta)``; the value includes weak priors.

    Returns
    -------
    CopulaModel

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
    restarts, seed, structures = (
        _check_integer(n, v)
        for n, v in (("restarts", restarts), ("seed", seed), ("structures", structures))
    )
    algorithm = resolve_method(method)
    specified = _by_variable("marginals", marginals, names, resolve_marginal)
    families = _by_variable("kernels", kernels, names, resolve_kernel)
    observations = observe(data, names, coords, ard=ard)
    laws = _fitted_laws(observations, specified)
    groups = tuple(InputGroup(len(g.axes), g.ard) for g in observations.coordinates.groups)
    # Whatever is wrong with the combination shows before the work of step one.
    given = tuple(k for k in families if k) or (resolve_kernel("matern32"),)
    Covariance(given, groups, coupling, structures, noise)

    sample = observations.sample
    tables = [
        select(
            sample.select([i]),
            groups,
            structures,
            None if k is None else [k],
            None if m is None else [m],
        )
        for i, (k, m) in enumerate(zip(families, laws, strict=True))
    ]
    if coupling != "convolution":
        tables = select_shared(tables)
    chosen = [table[0] for table in tables]
    _log.info(
        "Chosen: %s",
        [(n, c.kernel.name, c.marginal.name) for n, c in zip(names, chosen, strict=True)],
    )

    covariance = Covariance(tuple(c.kernel for c in chosen), groups, coupling, structures, noise)
    process = Process(covariance, tuple(c.marginal for c in chosen))

    def finish(process: Process, starts: list[FloatArray]) -> CopulaModel:
        optimum = minimise_from(
            penalised(process, sample, algorithm.objective),
            starts,
            process.bounds(),
            progress=callback and (lambda k, value, theta: callback(k, -value, theta)),
        )
        nll, _ = algorithm.objective(process, sample, optimum.theta)
        return CopulaModel(
            observations=observations,
            process=process,
            theta=optimum.theta,
            method=method,
            log_likelihood=-nll,
            converged=optimum.converged,
            message=optimum.message,
            evaluations=optimum.evaluations,
            candidates=tuple(tuple(table) for table in tables),
        )

    model = finish(process, _starts(process, sample, chosen, restarts, seed))
    model = _choose_primary_law(model, shortlist(tables[0]), finish)
    warn_of_extreme_scores(model)
    return model


def _choose_primary_law(
    first: CopulaModel,
    laws: list[Marginal],
    finish: Callable[[Process, list[FloatArray]], CopulaModel],
) -> CopulaModel:
    """Refit with other laws of the primary, from where the first fit ended; return the best.

    The best has the lowest leave-one-out CRPS, a proper score in the units of the variable.
    """
    models = [first]
    covariance_theta, marginals = first.process.split(first.theta)
    for law in laws:
        if law.name != marginals[0].name:
            process = Process(first.process.covariance, (law, *marginals[1:]))
            models.append(finish(process, [process.join(covariance_theta)]))
    if len(models) == 1:
        return first
    trials = [LawTrial(m.marginals[0].name, m.log_likelihood, m.loo_crps()) for m in models]
    best = models[int(np.argmin([t.crps for t in trials]))]
    _log.info("Primary's law: %s", trials)
    return replace(best, law_trials=tuple(sorted(trials, key=lambda t: t.crps)))


def _check_names(primary: str, secondary: str | Sequence[str]) -> list[str]:
    others = [secondary] if isinstance(secondary, str) else list(secondary)
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


def _check_integer(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` is an integer, found {value!r}.") from None
    if number < 0:
        raise ValueError(f"`{name}` is not negative, found {number}.")
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


def _fitted_laws(
    observations: Observations, laws: Sequence[Marginal | type[Marginal] | None]
) -> list[Marginal | None]:
    """Fit the laws that were asked for, so that values outside a support end the fit here."""
    fitted: list[Marginal | None] = []
    for i, (name, law) in enumerate(zip(observations.names, laws, strict=True)):
        values = observations.sample.values[observations.sample.task(i)]
        if isinstance(law, Marginal):
            law.check_support(values, name)
            _check_scores(name, law, values)
            fitted.append(law)
        elif law is None:
            fitted.append(None)
        else:
            try:
                own = law.fit(values)
            except SupportError as error:
                raise SupportError(f"Variable {name!r}: {error}") from None
            _check_scores(name, own, values)
            fitted.append(own)
    return fitted


def _check_scores(name: str, law: Marginal, values: FloatArray) -> None:
    """Refuse values at the very end of a support, such as zeros under an exponential law."""
    bad = values[~np.isfinite(law.to_normal(values))]
    if bad.size:
        first = ", ".join(str(float(v)) for v in bad[:3])
        raise SupportError(
            f"Variable {name!r}: {bad.size} of {values.size} values stand where the {law.name} law "
            f"has an infinite normal score (first: {first}). Choose a marginal with wider support "
            "('normal', 'gev', 't', 'parzen') or mask them."
        )


def _starts(
    process: Process, sample: Sample, chosen: list[Candidate], restarts: int, seed: int
) -> list[FloatArray]:
    """Return the point that the single-task fits suggest, and random ones around it."""
    covariance = process.covariance
    theta = starting_point(covariance)
    alone = [
        Covariance(
            (c.kernel,), covariance.groups, "convolution", covariance.structures, "independent"
        )
        for c in chosen
    ]
    lengths = np.concatenate(
        [a.part(c.theta, "length") for a, c in zip(alone, chosen, strict=True)], axis=2
    )
    covariance.part(theta, "length")[:] = (
        lengths.mean(axis=2, keepdims=True) if covariance.shared else lengths
    )
    covariance.part(theta, "logit")[:] = np.concatenate(
        [a.part(c.theta, "logit") for a, c in zip(alone, chosen, strict=True)], axis=1
    )
    covariance.part(theta, "scaling")[:] = np.mean(
        [a.part(c.theta, "scaling") for a, c in zip(alone, chosen, strict=True)], axis=0
    )
    if covariance.tasks > 1:
        a = parameters_of(_score_correlation(process, sample))
        covariance.part(theta, "correlation")[:] = a
        if covariance.noise == "correlated":
            covariance.part(theta, "noise_correlation")[:] = a
    elif restarts == 0 or covariance.structures == 1:
        return [process.join(theta)]
    rng = np.random.default_rng(seed)
    return [process.join(theta)] + [
        process.join(theta + rng.normal(scale=0.7, size=theta.size)) for _ in range(restarts)
    ]


def _score_correlation(process: Process, sample: Sample) -> FloatArray:
    """Estimate the correlation between tasks from each site's nearest neighbour in the other."""
    from scipy.spatial import cKDTree

    tasks = process.covariance.tasks
    w = [m.to_normal(sample.values[sample.task(i)]) for i, m in enumerate(process.marginals)]
    trees = [cKDTree(sample.inputs[:, sample.task(i)].T) for i in range(tasks)]
    matrix = np.eye(tasks)
    for i in range(tasks):
        for j in range(i):
            distance, nearest = trees[j].query(trees[i].data)
            close = distance <= np.quantile(distance, 0.5)
            r = np.corrcoef(w[i][close], w[j][nearest[close]])[0, 1]
            matrix[i, j] = matrix[j, i] = 0.0 if np.isnan(r) else np.clip(r, -0.95, 0.95)
    # Estimated pair by pair, the matrix may be indefinite: shrink it until it is not.
    while np.linalg.eigvalsh(matrix)[0] < 0.02:
        matrix = 0.9 * matrix + 0.1 * np.eye(tasks)
    return matrix
