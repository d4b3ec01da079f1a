"""The fitted model: an immutable record of the data, the parameters, and how the fit went."""

from __future__ import annotations

import functools
import html
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arguments import check_methods
from xcopula.arrays import FloatArray
from xcopula.labels.buffer import Buffer
from xcopula.labels.censoring import Censored
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Observations, Variable
from xcopula.labels.variables import Data
from xcopula.methods import Method
from xcopula.methods.joint import Origin
from xcopula.model.conditioning import Since, condition, with_only
from xcopula.model.laws import NamedLaws
from xcopula.model.leave_one_out import leave_out
from xcopula.model.parameters import describe_parameters
from xcopula.model.planning import Planning
from xcopula.model.saving import save
from xcopula.model.selection import Alternative, selection_table
from xcopula.model.summary import summarise
from xcopula.model.tree import decode, to_tree
from xcopula.model.uncertainty import Uncertainty, check_uncertainty
from xcopula.prediction import Predicting
from xcopula.prediction.predictor import ConditionedProcess, Predictor
from xcopula.process import Process
from xcopula.process.intervals import known_as_intervals
from xcopula.solvers import Conditioned, Solver
from xcopula.state import freeze

if TYPE_CHECKING:
    from xcopula.plot.of_model import ModelPlots

__all__ = ["CopulaModel", "to_node"]


@check_methods
@dataclass(frozen=True, repr=False, eq=False)
class CopulaModel(Predicting, Planning):
    """A fitted multi-task Gaussian copula process; see :func:`xcopula.fit`.

    Its arrays are read-only, also those that it computes on first use. With other data
    (:meth:`condition`, :meth:`with_only`) all that says how the fit went stays: the likelihood of
    the data that the model holds is ``-model.objective(model.theta)[0]``. A copy at other
    parameters is ``dataclasses.replace(model, theta=theta)``.

    Attributes
    ----------
    observations : Observations
        The data, as arrays with their coordinate system.
    process : Process
        Kernels, coupling and marginal laws.
    theta : ndarray
        The parameters, on unconstrained scales.
    prepared : ndarray
        Parameters near them, for which what the method makes of the data was made.
    method : Method
        Which likelihood was maximised, and how a prediction is made.
    solver : Solver
        How a Gaussian sample is evaluated and conditioned.
    log_likelihood : float
        What the method maximised in the fit, without weak priors: ``method.likelihood`` names it.
    converged : bool
        Whether the optimiser says so; ``message`` says why not.
    message : str
    evaluations : int
        Likelihood evaluations of step two.
    uncertainty : Uncertainty
        How parameter uncertainty enters predictions; with other data it is that of the fit.
    information : ndarray or None
        Second derivatives (p, p) of minus the log posterior at the end of the fit, by average
        or expected information; None where the method has none. Its inverse is the covariance of
        the estimates: :attr:`parameters` has their standard errors.
    alternatives : tuple of Alternative
        Marginals and kernels that were compared for each variable alone, if any were.
    since : Since, optional
        What has happened to the data since the fit; None if nothing has.
    """

    observations: Observations
    process: Process
    theta: FloatArray
    prepared: FloatArray
    method: Method
    solver: Solver
    log_likelihood: float
    converged: bool
    message: str
    evaluations: int
    uncertainty: Uncertainty
    information: FloatArray | None = None
    alternatives: tuple[Alternative, ...] = ()
    since: Since | None = None

    def __post_init__(self) -> None:
        freeze([getattr(self, f.name) for f in fields(self)])

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, the primary first."""
        return self.observations.variables

    @property
    def marginals(self) -> NamedLaws:
        """Marginal laws at their fitted parameters, in the order of the tasks and by their names.

        ``model.marginals["pm10"]`` is the law of that variable.
        """
        return NamedLaws(self.process.split(self.theta)[1], self.tasks)

    @property
    def coordinates(self) -> CoordinateSystem:
        """The inputs of the model."""
        return self.observations.coordinates

    @functools.cached_property
    def structure(self) -> Any:
        """What the method makes of the data, as at the end of the fit."""
        sample = self.observations.sample
        return freeze(self.method.prepare(self.solver, self.process, self.prepared, sample))

    @functools.cached_property
    def conditioned(self) -> Conditioned:
        """The process at theta conditioned on the observations, computed on first use."""
        sample = self.observations.sample
        return freeze(self.method.condition(self.process, sample, self.structure, self.theta))

    @property
    def size(self) -> int:
        """Number of observations."""
        return self.observations.sample.size

    def bounded(self, task: int) -> bool:
        """Tell whether values of a task are known as intervals."""
        sample = self.observations.sample
        return bool(known_as_intervals(self.marginals, sample)[sample.task(task)].any())

    @functools.cached_property
    def predictor(self) -> Predictor:
        """What prediction needs, conditioned on the observations on first use."""
        origin = Origin(self.process, self.theta, self.observations.sample, self.solver)
        process = ConditionedProcess.of(self.conditioned, origin, self.uncertainty.factors)
        return Predictor(self.coordinates, self.observations.sites, self.variables, process)

    def predictor_node(self) -> Any:
        """Return :attr:`predictor` as a delayed object, for a graph."""
        return to_node(self)

    def __getstate__(self) -> dict[str, Any]:
        # The factorisation is large and quickly made again: it does not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freeze(list(state.values()))  # copies of arrays are open again

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        # Dask takes the str() of what this returns, which rounds and abridges arrays.
        from dask.base import normalize_token

        fitted = (self.method, self.solver, self.process, self.theta, self.prepared)
        token: tuple[Any, ...] = normalize_token((*fitted, self.uncertainty, self.observations))
        return token

    def objective(self, theta: npt.ArrayLike, *, prior: bool = False) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood at other parameters, and its gradient.

        Parameters
        ----------
        theta : array-like
            On the scales of :attr:`theta`.
        prior : bool
            Whether to add the weak priors that the fit had: it then is what the fit minimised.

        Returns
        -------
        float, ndarray
            Infinite, with a zero gradient, where a value has no density under its law.
        """
        point = np.array(theta)
        if point.shape != self.theta.shape or point.dtype.kind not in "iuf":
            raise ValueError(
                f"The model has {self.theta.size} parameters, found an array of shape "
                f"{point.shape} and dtype {point.dtype}. `model.theta` shows their order."
            )
        point = point.astype(np.float64)
        if not np.isfinite(point).all():
            raise ValueError(
                f"Parameters must be finite, found {point[~np.isfinite(point)][0]} at position "
                f"{int(np.argmin(np.isfinite(point)))}. `model.theta` shows their order."
            )
        value, gradient = self.method.objective(
            self.process, self.observations.sample, self.structure, point
        )
        if prior:
            weak, weak_gradient = self.process.log_prior(point)
            return value - weak, gradient - weak_gradient
        return value, gradient

    def with_uncertainty(self, kind: str) -> CopulaModel:
        """Return the model with other intervals, at the same parameters.

        Parameters
        ----------
        kind : {"inflated", "plugin"}
            How parameter uncertainty enters predictions, as in :func:`xcopula.fit`.

        Raises
        ------
        ValueError
            If the name is not known.
        """
        return replace(self, uncertainty=replace(self.uncertainty, kind=check_uncertainty(kind)))

    def condition(
        self, new: Data, *, replace: bool = False, censored: Censored = "auto"
    ) -> CopulaModel:
        """Return the model with more observations, at the same parameters.

        Yesterday's model with today's hour: nothing is fitted, and coordinates are not scaled
        anew. It equals a model of all data together at these parameters.

        Parameters
        ----------
        new : Dataset, mapping of str to DataArray, or DataFrame
            Values of any of the model's variables, with their coordinates, found by CF role or
            name, and the fields that their laws vary with. NaN marks what was not observed.
        replace : bool
            Whether new values take the place of old ones of the same variable at the same site.
            Else these are refused; a model of replicates keeps both.
        censored : "auto", mapping or None
            Which of the new values are known as intervals, as in :func:`xcopula.fit`. "auto", also
            for variables that are not named, is what was said in the fit.

        Returns
        -------
        CopulaModel

        Raises
        ------
        KeyError, TypeError, ValueError
            On data that a fit would refuse too: other units, a coordinate or a field that is
            missing, a group that the training data lack, values outside the support of a law. If
            the model has a value at the site already.
        """
        return condition(self, new, replacing=replace, censored=censored)

    def with_only(self, data: Data, *, censored: Censored = "auto") -> CopulaModel:
        """Return the model with other observations in place of its own, at the same parameters.

        Every variable of the model needs one value at least. All else is as in :meth:`condition`.
        """
        return with_only(self, data, censored=censored)

    def loo(
        self,
        variable: str | None = None,
        *,
        buffer: Buffer | None = None,
        most: int | None = None,
    ) -> xr.Dataset:
        """Predict each observation of a variable from all others, without refitting.

        Parameters
        ----------
        variable : str, optional
            The primary by default. A transductive model predicts a secondary from its pair with
            the primary.
        buffer : float or mapping, optional
            Also leave out everything within this distance of the observation, of all variables: so
            it is predicted as in a gap. In the units of the length scales (km on the globe); of
            the first group of coordinates, or of each by name, ``{"space": 50, "time": 30}``.
        most : int, optional
            Predict no more observations than this, at even steps through the data.

        Returns
        -------
        Dataset
            On the dim of the data where the variable has one, else on dim ``observation``, with the
            coordinates of the data, names of stations too: ``observed``, ``median``, ``lower``
            and ``upper`` (90 %), the ``pit``, the ``crps`` in the variable's units, the
            ``log_score`` (log predictive density), and the latent ``score``, ``mean`` and
            ``std``. Its attribute ``note`` says where these numbers flatter: the parameters were
            fitted to the values that are left out, which tells with few sites, and other times of
            a station are kept.

        Notes
        -----
        A value that is known as an interval, or that has a probability of its own such as a zero,
        is scored by what is known of it: the ``log_score`` is the log of the probability of the
        interval, the ``crps`` is the integral over what lies outside, and the ``pit`` lies evenly
        between the probabilities of both limits, by a fixed rule. Where there are intervals,
        ``observed_lower`` and ``observed_upper`` are their limits, equal for a number.

        What is held while a value is left out also flatters the scores. Other intervals keep what
        expectation propagation found with that value. Combination weights of a transductive model
        were learnt from these very leave-one-out errors. A Parzen marginal is made of all values,
        the one that is left out among them. `cross_validate` with ``refit=True`` holds nothing.
        """
        return leave_out(self, variable, buffer, most)

    @property
    def parameters(self) -> xr.Dataset:
        """Fitted parameters by their natural names, length scales in units of the coordinates.

        Those with the suffix ``_error`` are standard errors: NaN where a parameter is at an end of
        its box, or where the method has no information matrix.
        """
        return describe_parameters(
            self.process, self.theta, self.information, self.tasks, self.coordinates
        )

    @property
    def plot(self) -> ModelPlots:
        """Pictures of the model: ``model.plot.correlations()``, ``laws``, ``loo``, ``pit`` ..."""
        from xcopula.plot.of_model import ModelPlots

        return ModelPlots(self)

    def summary(self) -> str:
        """Describe the model in a few lines of text."""
        return summarise(self)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the model to a file, which :func:`xcopula.load` reads.

        It appears under its name when it is complete, and holds all but what is computed anew.

        Parameters
        ----------
        path : path-like
            Its ending says the format: ``.nc`` for NetCDF, ``.zarr`` for Zarr.
        overwrite : bool
            Whether to replace a file of that name.

        Raises
        ------
        FileExistsError
            If there is a file of that name, unless ``overwrite`` is set.
        TypeError
            If a law, kernel, method or solver of your own is no dataclass of plain values.
        ImportError
            If the name ends in ``.zarr`` and zarr is not installed.
        """
        return save(self, path, overwrite=overwrite)

    def to_datatree(self) -> xr.DataTree:
        """Return what :meth:`save` writes, as ``xr.open_datatree`` shows it.

        The groups are ``data``, with the observations of each variable, ``parameters``, ``laws``
        with the tables that laws have, and ``structure`` with theta.
        """
        return decode(to_tree(self))

    @property
    def selection(self) -> xr.Dataset | None:
        """What was compared for each variable alone; None if nothing was to be selected.

        On dim ``alternative``: ``variable``, ``kernel``, ``marginal``, ``log_likelihood``, ``aic``
        and ``selected``.
        """
        return selection_table(self.alternatives) if self.alternatives else None

    def __repr__(self) -> str:
        return f"<xcopula.CopulaModel>\n{summarise(self, scores=False)}"

    def _repr_html_(self) -> str:
        text = html.escape(summarise(self, scores=False))
        return f"<pre>{text}</pre>{self.parameters._repr_html_()}"


def to_node(model: Any) -> Any:
    """Return the predictor of a model, fitted or delayed, as a delayed object."""
    import dask

    node = dask.delayed(model, pure=True, traverse=False)
    # With one dependency the task would be fused with the model's, under a name of its own: a
    # cluster that has the model would not find it there, and fit again.
    apart = dask.delayed(None, name="xcopula-keep-apart", traverse=False)
    return dask.delayed(_predictor, pure=True)(node, apart)


def _predictor(model: CopulaModel, apart: None) -> Predictor:
    return model.predictor
