"""The fitted model: an immutable record of the data, the parameters, and how the fit went."""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import ndtr

from xcopula.prediction import target as prediction
from xcopula.process import outcome as predictive
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.errors import MarginalWarning, warn_user
from xcopula.labels.fields import Field
from xcopula.methods import Conditioned, Settings, resolve_method
from xcopula.marginals import Marginal
from xcopula.labels.observations import Observations
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.target import Chunks, Target
from xcopula.prediction.predictor import Predictor
from xcopula.process.copula import Process
from xcopula.fitting.selection import EXTREME_SCORE, Candidate
from xcopula.model.summary import summarise

__all__ = ["CopulaModel", "LawTrial", "to_node", "warn_of_extreme_scores"]

FloatArray = npt.NDArray[np.float64]

# Standard deviation of a variable's normal scores, which is one if its law is that of its values.
_NARROWEST = 0.2


class LawTrial(NamedTuple):
    """A marginal law of the primary, tried in the whole model."""

    marginal: str
    log_likelihood: float
    crps: float


@dataclass(frozen=True, repr=False, eq=False)
class CopulaModel:
    """A fitted multi-task Gaussian copula process; see :func:`xcopula.fit`.

    Attributes
    ----------
    observations : Observations
        The data, as arrays with their coordinate system.
    process : Process
        Kernels, coupling and marginal laws.
    theta : ndarray
        The parameters, on unconstrained scales.
    method : str
        Inference method.
    settings : Settings
        Its options.
    log_likelihood : float
    converged : bool
        Whether the optimiser says so; ``message`` says why not.
    message : str
    evaluations : int
        Likelihood evaluations of step two.
    candidates : tuple
        For each task, the kernels and laws that step one compared, the best first.
    law_trials : tuple of LawTrial
        The primary's laws that were compared by leave-one-out in the whole model, the best first.
    """

    observations: Observations
    process: Process
    theta: FloatArray
    method: str
    settings: Settings
    log_likelihood: float
    converged: bool
    message: str
    evaluations: int
    candidates: tuple[tuple[Candidate, ...], ...]
    law_trials: tuple[LawTrial, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the variables, the primary first."""
        return self.observations.names

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """Marginal laws at their fitted parameters, in the order of the tasks."""
        return self.process.split(self.theta)[1]

    @property
    def coordinates(self) -> CoordinateSystem:
        """The inputs of the model."""
        return self.observations.coordinates

    @property
    def primary_attrs(self) -> dict[str, Any]:
        """Attributes of the primary variable."""
        return self.observations.attrs[0]

    @property
    def primary_fields(self) -> tuple[Field, ...]:
        """What the law of the primary variable varies with."""
        return self.observations.fields[0]

    @property
    def conditioned(self) -> Conditioned:
        """The process conditioned on the observations."""
        return self.predictor.conditioned

    @functools.cached_property
    def predictor(self) -> Predictor:
        """What prediction needs, computed on first use."""
        method = resolve_method(self.method)
        conditioned = method.condition(
            self.process, self.observations.sample, self.theta, self.settings
        )
        return Predictor(self.coordinates, conditioned, self.marginals[0], self.primary_fields)

    def predictor_node(self) -> Any:
        """Return :attr:`predictor` as a delayed object, for a graph."""
        return to_node(self)

    def __getstate__(self) -> dict[str, Any]:
        # The factorisation is large and quickly made again: it does not travel.
        return {k: v for k, v in self.__dict__.items() if k != "predictor"}

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        # Dask takes the str() of what this returns, which rounds and abridges arrays.
        from dask.base import normalize_token

        sample = self.observations.sample
        fields = self.observations.fields
        parts = (self.method, self.settings, self.process, self.theta, self.coordinates, fields)
        arrays = (sample.inputs, sample.offsets, sample.values, sample.covariates)
        token: tuple[Any, ...] = normalize_token((*parts, *arrays))
        return token

    def predict(
        self,
        target: Target,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
        *,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Predict quantiles of the primary variable; see :func:`xcopula.predict`."""
        return prediction.predict(self, target, quantiles, chunks=chunks, of=of, mask=mask)

    def posterior(
        self,
        target: Target,
        *,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> Posterior:
        """Return the full posterior of the primary variable; see :func:`xcopula.predict`."""
        return prediction.posterior(self, target, chunks=chunks, of=of, mask=mask)

    def loo(self) -> xr.Dataset:
        """Predict each observation of the primary from all others, without refitting.

        Returns
        -------
        Dataset
            On dim ``observation``: ``observed``, ``median``, ``lower`` and ``upper`` (90 %), the
            ``pit``, the ``crps`` in the variable's units, the ``log_score`` (log predictive
            density), and the latent ``score``, ``mean`` and ``std``.
        """
        sample = self.observations.sample
        task = sample.task(0)
        moments = self.conditioned.leave_one_out()
        mean, std = moments.mean[task], np.sqrt(moments.variance[task])
        marginal = self.process.laws(self.theta, sample)[0]
        observed = sample.values[task]
        score = marginal.to_normal(observed)
        error = (score - mean) / std
        log_score = marginal.log_density(observed) + 0.5 * (score**2 - error**2) - np.log(std)
        band = 1.6448536269514722
        variables = {
            "observed": observed,
            "median": marginal.from_normal(mean),
            "lower": marginal.from_normal(mean - band * std),
            "upper": marginal.from_normal(mean + band * std),
            "pit": ndtr(error),
            "crps": predictive.crps(mean, std, marginal, observed),
            "log_score": log_score,
            "score": score,
            "mean": mean,
            "std": std,
        }
        sites = self.observations.sites[task]
        return xr.Dataset(
            {name: ("observation", values) for name, values in variables.items()},
            coords={
                axis.name: ("observation", axis.decode(column))
                for axis, column in zip(self.coordinates.axes, sites.T, strict=True)
            },
        )

    def loo_crps(self) -> float:
        """Return the mean leave-one-out CRPS of the primary."""
        return float(self.loo()["crps"].mean())

    @property
    def parameters(self) -> xr.Dataset:
        """Fitted parameters by their natural names, length scales in units of the coordinates."""
        covariance = self.process.covariance
        theta, marginals = self.process.split(self.theta)
        system = self.observations.coordinates
        groups = [g.name for g in system.groups]
        # With a scale for each column the length is in units of the extent; see `scaling`.
        unit = [
            1.0 if g.ard else system.scale[s]
            for g, s in zip(system.groups, system.starts, strict=True)
        ]
        lengths = np.exp(covariance.part(theta, "length")) * np.reshape(unit, (1, -1, 1))
        matrices = covariance.matrices(theta)
        shares = np.diagonal(matrices, axis1=1, axis2=2)
        root = np.sqrt(shares)
        correlations = matrices / root[:, :, None] / root[:, None, :]
        names = sorted({k for m in marginals for k in m.parameters})
        table = [[m.parameters.get(k, np.nan) for k in names] for m in marginals]
        state = covariance.state(theta)
        # Every axis of a plane is a column; a globe or a cycle has one scale for all of its own.
        columns = [
            start + (k if g.columns == len(g.axes) else 0)
            for g, start in zip(system.groups, system.starts, strict=True)
            for k in range(len(g.axes))
        ]
        return xr.Dataset(
            {
                "kernel": ("task", [k.name for k in covariance.kernels]),
                "marginal": ("task", [m.name for m in marginals]),
                "length_scale": (
                    ("structure", "group", "task"),
                    np.broadcast_to(lengths, (*lengths.shape[:2], covariance.tasks)).copy(),
                    {"units": ", ".join(g.units for g in system.groups)},
                ),
                "scaling": ("axis", state.scaling[columns] * np.array(system.scale)[columns]),
                "variance": (("structure", "task"), shares[:-1]),
                "nugget": ("task", shares[-1]),
                "correlation": (("structure", "task", "other"), correlations[:-1]),
                "nugget_correlation": (("task", "other"), correlations[-1]),
                "marginal_parameter": (("task", "parameter"), np.reshape(table, (-1, len(names)))),
            },
            coords={
                "task": list(self.tasks),
                "other": list(self.tasks),
                "group": groups,
                "length_units": ("group", [g.units for g in system.groups]),
                "structure": np.arange(covariance.structures),
                "axis": list(system.names),
                "parameter": names,
            },
        )

    def summary(self) -> str:
        """Describe the model in a few lines of text."""
        return summarise(self)

    @property
    def selection(self) -> xr.Dataset:
        """What step one compared, on dim ``candidate``: the best of each task has rank 0."""
        flat = [
            (t, k, c)
            for t, table in zip(self.tasks, self.candidates, strict=True)
            for k, c in enumerate(table)
        ]
        columns = {
            "task": [t for t, _, _ in flat],
            "rank": [k for _, k, _ in flat],
            "kernel": [c.kernel.name for _, _, c in flat],
            "marginal": [c.marginal.name for _, _, c in flat],
            "log_likelihood": [c.log_likelihood for _, _, c in flat],
            "aic": [c.aic for _, _, c in flat],
            "largest_score": [c.largest_score for _, _, c in flat],
        }
        return xr.Dataset({name: ("candidate", values) for name, values in columns.items()})

    def __repr__(self) -> str:
        return f"<xcopula.CopulaModel>\n{self.summary()}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>{self.parameters._repr_html_()}"


def to_node(model: Any) -> Any:
    """Return the predictor of a model, fitted or delayed, as a delayed object."""
    import dask

    node = dask.delayed(model, pure=True, traverse=False)
    return dask.delayed(_predictor, pure=True)(node)


def _predictor(model: CopulaModel) -> Predictor:
    return model.predictor


def warn_of_extreme_scores(model: CopulaModel) -> None:
    """Warn of laws that take a value for next to impossible, or all values for nearly the same."""
    sample = model.observations.sample
    laws = model.process.laws(model.theta, sample)
    for i, (name, marginal) in enumerate(zip(model.tasks, laws, strict=True)):
        values = sample.values[sample.task(i)]
        scores = marginal.to_normal(values)
        spread = float(scores.std())
        if spread < _NARROWEST:
            warn_user(
                f"The fitted law of {name!r} is {1.0 / spread:.0f} times wider than its values: "
                "the model takes them for a small piece of a process of far longer range. Between "
                "the data that does little harm; outside their extent predictions are not to be "
                "trusted. Describe the course of the values by `regress`, `by` or `cycle`, or use "
                "`structures=2`.",
                MarginalWarning,
            )
        worst = int(np.argmax(np.abs(scores)))
        if abs(scores[worst]) > EXTREME_SCORE:
            warn_user(
                f"The {marginal.name} law of {name!r} takes its value {values[worst]:g} for "
                f"{scores[worst]:+.1f} standard deviations, which distorts predictions near it. "
                "Use a law with heavier tails ('gev', 't', 'parzen' or 'auto'), or mask the value.",
                MarginalWarning,
            )
