r"""Score tests: what an extension of a model promises, without a fit of it.

The model is a special case of a wider one. With g the gradient of minus the log-likelihood at the
fitted parameters and H the expected information there, both of the wider model, n its new
parameters and o the old ones,

.. math:: u = g_n - H_{no} H_{oo}^{-1} g_o, \qquad
    S = H_{nn} - H_{no} H_{oo}^{-1} H_{on}, \qquad \text{statistic} = u' S^{-1} u

is chi-squared if the extension is not needed, and half of it is what a Newton step gains. The term
with :math:`g_o` takes off what the search has left over. Weak priors of the old parameters count,
since the fit has them; those of new ones do not: the likelihood is tested, and its gain promised.

All extensions stand in one wider model, whose likelihood is evaluated for the data and for some
draws, of which the information is the mean; each extension is tested apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import chdtrc

from xcopula.arrays import FloatArray
from xcopula.fitting.directions import free_groups, input_groups
from xcopula.kernels import Nested, SpectralKernel
from xcopula.kernels.covariance import Covariance
from xcopula.kernels.nested import TaskKernel, family
from xcopula.labels.covariates import covariates_at
from xcopula.labels.variables import Data
from xcopula.marginals import Marginal
from xcopula.marginals.censored import Censored
from xcopula.marginals.design import Design, standardise
from xcopula.marginals.regression import Regression
from xcopula.marginals.truncation import Truncated
from xcopula.model import CopulaModel, LazyModel
from xcopula.model.precision import free_parameters
from xcopula.process import Process, Sample
from xcopula.process.paths import Prior, site_keys
from xcopula.warn import shown

__all__ = ["score_tests"]

# Share of the variance at which a further structure is differentiated: at zero it has no
# logarithm. What is quadratic in it vanishes.
_SHARE = 1e-8
# Lengths of a further structure: so many times the shortest, or the longest, of the model.
_LENGTHS = {"short": 0.25, "long": 4.0}
# Draws of the data whose information is averaged.
_DRAWS, _SEED = 4, 0
# An extension of which the model explains all but this share cannot be told apart from it.
_EXPLAINED = 1e-6


@dataclass(frozen=True)
class _Extension:
    """An extension: derivatives of the wider model's theta by its parameters, (p, k)."""

    name: str
    slopes: FloatArray
    one_sided: bool = False


def score_tests(model: CopulaModel, covariates: Data | None = None) -> xr.Dataset:
    """Test what extensions of a fitted model promise, without fitting any of them.

    Extensions are free directions of each plane where ranges are alike in all of them; one more
    nested structure; and for each covariate and each variable a marginal that moves with it, as
    :func:`xcopula.regress` makes one. All of them cost five evaluations of the likelihood together.

    Parameters
    ----------
    model : CopulaModel
        Its method and its solver need an information matrix: methods "full", "transductive",
        "bcm" and "cokriging" have one, the sparse ones have none.
    covariates : Dataset, mapping of str to DataArray, or GeoDataFrame, optional
        The data of the fit with covariates among them, or covariates alone, with the coordinates
        of the model. Each variable that is not one of the model's is tested.

    Returns
    -------
    Dataset
        On dim ``extension``: the ``statistic``; the number of new ``parameters``; the ``gain`` in
        nats that it promises, half of the statistic; and the ``p_value``. NaN where the model
        explains the extension, such as a covariate that is constant within each group of a law.

    Raises
    ------
    TypeError
        If the model is none, or not fitted yet.
    ValueError, KeyError, FieldError
        If there is no information matrix, or it is not positive definite; if a covariate is
        constant, missing where a variable was observed, or no number.

    Notes
    -----
    The statistic is that of Rao, at the fitted parameters: chi-squared with as many degrees of
    freedom as there are new parameters, if the extension is not needed. Parameters at an end of
    their box are held there. Many extensions are many tests: the least p-value of twenty is below
    0.05 more often than not.

    A further structure has no share of the variance in the fitted model, and then no length. So
    its length is given: a quarter of the shortest fitted one, or four times the longest. It takes
    the same share of each variable, has the kernel and correlations of the largest structure, and
    can only be positive: the law of the statistic is half a chi-squared of one degree and half a
    zero. A fit may gain more, since it chooses lengths and shares.

    The information is the mean over four draws from the fitted model, always the same ones; that of
    the data where values are known as intervals. The gain is a promise of second order, good for
    extensions that change little. The likelihood of "bcm", and that of "transductive" with several
    secondaries, is composite: p-values are then approximate.

    Examples
    --------
    >>> import xcopula
    >>> ds = xcopula.datasets.toy(seed=0)
    >>> model = xcopula.fit(ds, "primary", marginals="normal", kernels="matern52")
    >>> print(*xcopula.score_tests(model)["extension"].values, sep="; ")
    another structure, short range; another structure, long range
    """
    _check_model(model)
    columns: tuple[Mapping[str, FloatArray], ...] = ({},) * len(model.tasks)
    if covariates is not None:
        columns = covariates_at(covariates, model.observations)
    designs = [_design(own) for own in columns]
    covariance = _wider(model)
    marginals = [
        law if design is None else _with_trend(law, design, model, i)
        for i, (law, design) in enumerate(zip(model.process.marginals, designs, strict=True))
    ]
    process = Process(covariance, tuple(marginals))
    theta, new = _carried(model, process, designs)
    gradient, information = _evaluate(model, process, theta, columns)
    old = np.flatnonzero(~new)
    fitted = model.process
    gradient[old] -= fitted.log_prior(model.theta)[1]
    information[np.ix_(old, old)] += fitted.prior_information(model.theta)
    held = old[free_parameters(fitted, model.theta)]
    solved = _solved(information, held, model)
    extensions = _extensions(model, process, theta, designs)
    rows = [_test(each, gradient, information, held, solved) for each in extensions]
    statistic, p_value = np.array(rows).T.reshape(2, -1)
    return xr.Dataset(
        {
            "statistic": ("extension", statistic, {"long_name": "score statistic"}),
            "parameters": ("extension", [each.slopes.shape[1] for each in extensions]),
            "gain": ("extension", 0.5 * statistic, {"long_name": "promised gain", "units": "nats"}),
            "p_value": ("extension", p_value),
        },
        coords={"extension": [each.name for each in extensions]},
    )


def _check_model(model: Any) -> None:
    """Refuse what is no fitted model, and models without an information matrix."""
    if isinstance(model, LazyModel):
        raise TypeError(
            "`model` must be fitted, found a LazyModel. Run the fit first, `model.compute()`."
        )
    if not isinstance(model, CopulaModel):
        raise TypeError(
            f"`model` must be a CopulaModel, found {shown(model)}. Pass what `xcopula.fit` returns."
        )
    if not (model.method.has_information and hasattr(model.solver, "information")):
        raise ValueError(
            f"Score tests need an information matrix, which method={model.method.name!r} with "
            f"solver={model.solver.name!r} does not have. Use method='full', 'transductive' or "
            "'bcm', or fit the extension and compare `log_likelihood`."
        )


def _design(columns: Mapping[str, FloatArray]) -> Design | None:
    """Return the design of all covariates of a variable; None if it has none."""
    if not columns:
        return None
    return standardise(np.column_stack(list(columns.values())), tuple(columns), 1)


def _with_trend(law: Marginal, design: Design, model: CopulaModel, task: int) -> Marginal:
    """Return a marginal that moves with covariates, at coefficients of zero."""
    if isinstance(law, Truncated | Censored):  # the ends of a support stay
        return replace(law, base=_with_trend(law.base, design, model, task))
    values = model.observations.sample.values[model.observations.sample.task(task)]
    zeros = np.zeros(len(design.fields))
    return Regression(law, design, zeros, law.link == "log", float(values.std()))


def _wider(model: CopulaModel) -> Covariance:
    """Return the covariance with two more structures, and free directions of each plane."""
    covariance = model.process.covariance
    planes = free_groups(True, model.coordinates)
    groups = [
        before if before.freedom else free
        for before, free in zip(
            covariance.groups, input_groups(model.observations, planes), strict=True
        )
    ]
    main = _largest(model)

    def extended(kernel: TaskKernel) -> TaskKernel:
        more = (family(kernel, main),) * len(_LENGTHS)
        return Nested((*kernel.families, *more)) if isinstance(kernel, Nested) else kernel

    return replace(
        covariance,
        kernels=tuple(extended(kernel) for kernel in covariance.kernels),
        groups=tuple(groups),
        coupling="lmc" if covariance.coupling == "icm" else covariance.coupling,
        structures=covariance.structures + len(_LENGTHS),
    )


def _largest(model: CopulaModel) -> int:
    """Return which structure has the largest share of the variance."""
    covariance = model.process.covariance
    matrices = covariance.matrices(model.theta[: covariance.size])
    return int(np.trace(matrices[:-1], axis1=1, axis2=2).argmax())


def _carried(
    model: CopulaModel, process: Process, designs: Sequence[Design | None]
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the parameters of the wider model at the fitted ones, and which of them are new."""
    before, covariance = model.process.covariance, process.covariance
    q, own = before.structures, model.theta[: before.size]
    theta = covariance.carry_over(before, own)
    lengths, fitted = covariance.part(theta, "length"), before.part(own, "length")
    low, high = covariance.bounds()[covariance.layout["length"][0]][0]
    for k, (kind, factor) in enumerate(_LENGTHS.items(), start=q):
        nearest = fitted.min(axis=0) if kind == "short" else fitted.max(axis=0)
        lengths[k] = np.clip(nearest + np.log(factor), low, high)
    correlations = covariance.part(theta, "correlation")
    correlations[q:] = correlations[_largest(model)]
    whole = 1.0 + np.exp(before.part(own, "logit")).sum(axis=0)
    covariance.part(theta, "logit")[q:] = np.log(_SHARE * whole)
    new = np.zeros(process.size)
    for name in ("length", "logit", "correlation"):
        covariance.part(new, name)[q:] = 1.0
    for metric, group in zip(covariance.metrics(new), before.groups, strict=True):
        metric[:] = group.freedom == 0
    parts = [theta]
    for where, before_at, design in zip(process.slices, model.process.slices, designs, strict=True):
        count = 0 if design is None else len(design.fields)
        new[where.stop - count : where.stop] = 1.0
        parts += [model.theta[before_at], np.zeros(count)]
    return np.concatenate(parts), new > 0.0


def _evaluate(
    model: CopulaModel,
    process: Process,
    theta: FloatArray,
    columns: Sequence[Mapping[str, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of the wider model, and its information."""
    sample = model.observations.sample
    if any(columns):
        tables = [
            np.column_stack([sample.covariates_of(i), *own.values()])
            for i, own in enumerate(columns)
        ]
        sample = replace(sample, covariates=tuple(tables))

    def informed(sample: Sample) -> tuple[FloatArray, FloatArray]:
        # Neighbours are those of the fitted model: the extensions have no part in it yet.
        structure = model.method.prepare(model.solver, model.process, model.prepared, sample)
        value, gradient, matrix = model.method.information(process, sample, structure, theta)
        if matrix is None or not np.isfinite(matrix).all():
            raise ValueError(
                f"Score tests need a finite likelihood with second derivatives, found {value:g} at "
                "the fitted parameters. Fit anew on the data that the model holds now."
            )
        return gradient, matrix

    gradient, matrix = informed(sample)
    draws = [informed(drawn)[1] for drawn in _drawn(model, sample)]
    return gradient.copy(), np.mean(draws or [matrix], axis=0)


def _drawn(model: CopulaModel, sample: Sample) -> list[Sample]:
    """Draw samples at the fitted parameters; none where values are known as intervals.

    Their information is the expected one. That of the data has, where it mixes old and new
    parameters, what the extension would explain: it promises several times what a fit gains.
    """
    process, own = model.process, model.theta[: model.process.covariance.size]
    spectral = all(
        isinstance(kernel, SpectralKernel)
        for kernels in process.covariance.families
        for kernel in kernels
    )
    if sample.limits is not None or not spectral:
        return []
    prior, laws = (
        Prior.of(process.covariance, own),
        process.laws(model.theta, model.observations.sample),
    )
    draws = []
    for k in range(_DRAWS):
        scores = prior.draw(_SEED, k).on(sample)
        for i, law in enumerate(laws):
            task = sample.task(i)
            scores[task] += prior.nuggets(i, site_keys(sample.sites[task]), _SEED, k)
            scores[task] = law.from_normal(scores[task])
        draws.append(replace(sample, values=scores))
    return draws


def _solved(information: FloatArray, held: npt.NDArray[np.int64], model: CopulaModel) -> FloatArray:
    """Return the inverse of the information of the fitted parameters.

    Raises
    ------
    ValueError
        If the matrix is not positive definite.
    """
    inner = information[np.ix_(held, held)]
    diagonal = np.diagonal(inner)
    root = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = inner / np.outer(root, root)
    least = float(np.linalg.eigvalsh(scaled)[0])
    if not least > 0.0:
        why = "" if model.converged else f", and the fit has not converged ({model.message})"
        again = "Fit anew to these data" if model.since else "Fit anew with `restarts=3`"
        raise ValueError(
            f"The information matrix of the fitted parameters must be positive definite, found the "
            f"eigenvalue {least:.2g} with a unit diagonal{why}: score tests have no scale there. "
            f"{again}, or a model with fewer parameters."
        )
    return np.asarray(np.linalg.inv(scaled) / np.outer(root, root))


def _extensions(
    model: CopulaModel, process: Process, theta: FloatArray, designs: Sequence[Design | None]
) -> list[_Extension]:
    """List the extensions with their directions in the wider model."""
    covariance, found, unit = process.covariance, [], np.eye(process.size)
    index = np.arange(covariance.size, dtype=np.float64)
    groups = zip(model.coordinates.groups, model.process.covariance.groups, strict=True)
    for (group, before), metric in zip(groups, covariance.metrics(index), strict=True):
        if metric.size and not before.freedom:
            slopes = unit[:, metric.astype(np.int64)]
            found.append(_Extension(f"anisotropy of {group.name}", slopes))
    logits = covariance.part(index, "logit").astype(np.int64)
    for kind, row in zip(_LENGTHS, logits[-len(_LENGTHS) :], strict=True):
        # By the share itself: that by its logarithm, over the share.
        slope = unit[:, row].sum(axis=1, keepdims=True) / _SHARE
        found.append(_Extension(f"another structure, {kind} range", slope, one_sided=True))
    for name, where, design in zip(model.tasks, process.slices, designs, strict=True):
        fields = () if design is None else design.fields
        found += [
            _Extension(f"{name} ~ {field}", unit[:, where.stop - len(fields) + k][:, None])
            for k, field in enumerate(fields)
        ]
    return found


def _test(
    extension: _Extension,
    gradient: FloatArray,
    information: FloatArray,
    held: npt.NDArray[np.int64],
    inverse: FloatArray,
) -> tuple[float, float]:
    """Return the statistic of an extension and its p-value; NaN where the model explains it."""
    slopes = extension.slopes
    whole = slopes.T @ information @ slopes
    mixed = slopes.T @ information[:, held]
    left = whole - mixed @ inverse @ mixed.T
    pull = -(slopes.T @ gradient - mixed @ inverse @ gradient[held])
    root = np.sqrt(np.maximum(np.diagonal(whole), np.finfo(float).tiny))
    values, axes = np.linalg.eigh(left / np.outer(root, root))
    if not values[0] > _EXPLAINED:
        return np.nan, np.nan
    statistic = float(((axes.T @ (pull / root)) ** 2 / values).sum())
    if not extension.one_sided:
        return statistic, float(chdtrc(pull.size, statistic))
    if pull[0] <= 0.0:
        return 0.0, 1.0
    return statistic, 0.5 * float(chdtrc(1, statistic))
