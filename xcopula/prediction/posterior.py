"""The labelled posterior of a variable on a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_integer, check_methods
from xcopula.arrays import FloatArray
from xcopula.methods import Method
from xcopula.prediction import blocks
from xcopula.prediction.functionals import Functionals
from xcopula.prediction.levels import check_levels
from xcopula.prediction.sampling import check_draws, draw
from xcopula.prediction.telling import telling
from xcopula.prediction.thresholds import (
    Threshold,
    check_field,
    check_observed,
    check_thresholds,
)
from xcopula.process import Predictive
from xcopula.progress import Progress
from xcopula.progress.run import Run
from xcopula.solvers import Solver
from xcopula.warn import shown, warn_user

if TYPE_CHECKING:
    from xcopula.plot.of_posterior import PosteriorPlots

__all__ = ["Posterior"]

_KEPT = ("units", "standard_name", "long_name", "cell_methods", "grid_mapping")
_MOMENTS = {"latent": "latent mean and deviation", "mean": "latent mean", "frame": "latent mean"}


@check_methods
@dataclass(frozen=True, repr=False, eq=False)
class Posterior(Functionals):
    """What a model knows about one variable on a target: a distribution in every cell.

    It is lazy if the target is chunked. Every method then returns dask-backed arrays. In memory,
    the latent moments are evaluated when something first needs them; the median needs the mean
    alone.

    Quantiles have the name of the variable. Every other result has a name that says what it is,
    such as ``Cd_median`` or ``Cd_exceedance``, so that ``xr.merge`` takes them together, if they
    are of one threshold. Those of several are asked for at once, as in ``exceedance([1.0, 2.0])``.

    Attributes
    ----------
    tasks : tuple of str
        The variables of the model, the primary first.
    method : Method
        How the model was fitted.
    solver : Solver, optional
        How its samples are conditioned; None if that is not known yet.
    query : Query
        The cells of the target.
    predictor : Predictor, or delayed
    coords : Coordinates
        Coordinates of the target, with their indexes.
    attrs : dict
        Attributes of the variable.
    progress : bool, callable or Run, optional
        As in :func:`xcopula.predict`, of what is computed in memory.
    bounded : bool, optional
        Whether observations of the variable are known as intervals; None if not known yet.
    data : int
        Number of observations of the model; 0 if not known yet.
    """

    tasks: tuple[str, ...]
    method: Method
    solver: Solver | None
    query: blocks.Query
    predictor: Any
    coords: xr.Coordinates
    attrs: dict[str, Any]
    progress: Progress | Run = None
    bounded: bool | None = False
    data: int = 0

    @cached_property
    def moments(self) -> Any:
        """Latent mean and deviation (2, ...), in memory or lazy.

        Where values are known as intervals, lower and upper limits (4, ...) follow them.
        """
        return self._evaluate("latent", None if self.bounded is None else 4 if self.bounded else 2)

    @cached_property
    def _mean(self) -> Any:
        """Latent mean (1, ...) alone."""
        return self._evaluate("mean", 1)

    @cached_property
    def _frame(self) -> Any:
        """Where draws lie around: see :meth:`Predictor.frame`."""
        return self._evaluate("frame", 2)

    def _evaluate(self, quantity: str, rows: int | None) -> Any:
        """Evaluate a quantity of the latent process on all cells."""
        with self._told(_MOMENTS.get(quantity, quantity)) as tell:
            return self.query.evaluate(self.predictor, quantity, rows, tell)

    @contextmanager
    def _told(self, label: str) -> Iterator[blocks.Tell | None]:
        """Show how many cells are done, of what is in memory."""
        with telling(False if self.lazy else self.progress, self.name) as run:
            yield run.cells((self.name,), label)

    def _rows(self, levels: FloatArray) -> Any:
        """Return what quantiles of some levels need: both moments, or the mean for the median."""
        if (
            self.bounded is not False
            or (levels != 0.5).any()
            or not self.method.mean_is_cheaper(self.solver, len(self.tasks), self.query.task)
        ):
            return self.moments
        # What is known in memory is not computed again. A graph does not depend on what was asked
        # before, and the mean costs little beside both.
        return self.moments if "moments" in self.__dict__ and not self.lazy else self._mean

    @property
    def name(self) -> str:
        """The variable."""
        return self.tasks[self.query.task]

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """Dims of the target."""
        return self.query.dims

    @property
    def sizes(self) -> dict[Hashable, int]:
        """Number of cells along each dim of the target."""
        return dict(zip(self.dims, self.query.shape, strict=True))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{d}: {n}" for d, n in self.sizes.items())
        kind = "lazy" if self.lazy else "in memory"
        return f"<xcopula.Posterior of {self.name!r} on ({sizes}), {kind}>"

    @property
    def lazy(self) -> bool:
        """Whether results are dask-backed."""
        return self.query.chunks is not None

    @property
    def latent(self) -> xr.Dataset:
        """Mean and standard deviation of the latent process."""
        titles = {"mean": "latent mean", "std": "latent standard deviation"}
        moments = self.moments
        if self.bounded is not False:
            whole = (Predictive.latent_mean, Predictive.latent_std)
            moments = [self._apply(function).data for function in whole]
        return xr.Dataset(
            {
                name: (self.dims, part, self._number_attrs(title))
                for (name, title), part in zip(titles.items(), moments, strict=True)
            },
            coords=self._coords_beside(*titles),
        )

    def quantile(self, q: float | Sequence[float] | FloatArray) -> xr.DataArray:
        """Return quantiles: on a first dim ``quantile``, or with a scalar coordinate for a number.

        Raises
        ------
        ValueError
            If a level is not strictly between 0 and 1.
        """
        levels = check_levels(q)
        attrs = {"long_name": "quantile level", "units": "1"}
        rows = self._rows(levels)
        result = self._over(Predictive.quantile, "quantile", levels, attrs, rows)
        return result.assign_attrs(self._value_attrs())

    def median(self) -> xr.DataArray:
        """Return the median, named after the variable with ``_median``."""
        median = self.quantile(0.5).drop_vars("quantile")
        return self._named(median, "median", self._value_attrs("median"))

    def interval(self, level: float = 0.9) -> xr.DataArray:
        """Return the central interval of a level, on a first dim ``bound`` (lower, upper).

        It is named after the variable with ``_interval``.
        """
        levels = check_levels(level)
        if levels.size > 1:
            raise ValueError(
                f"`level` must be one number, found {shown(level)}. Call `interval` for each level."
            )
        (level,) = levels.reshape(-1)
        both = self.quantile([0.5 * (1.0 - level), 0.5 * (1.0 + level)])
        bounds = (
            both.drop_vars("quantile")
            .rename(quantile="bound")
            .assign_coords(bound=["lower", "upper"])
        )
        return self._named(bounds, "interval", self._value_attrs(f"{100 * level:.3g} % interval"))

    def cdf(self, value: Threshold) -> xr.DataArray:
        """Return P(Y <= value), named after the variable with ``_cdf``.

        Parameters
        ----------
        value : float, sequence of float or DataArray
            In the variable's units. A sequence gives a first dim ``threshold``. A DataArray on dims
            of the target is a threshold that differs from cell to cell; NaN gives NaN.
        """
        return self._probability(Predictive.cdf, value, "cdf", "probability of at most")

    def exceedance(self, threshold: Threshold) -> xr.DataArray:
        """Return P(Y > threshold), named after the variable with ``_exceedance``.

        Parameters
        ----------
        threshold : float, sequence of float or DataArray
            In the variable's units. A sequence gives a first dim ``threshold``. A DataArray on dims
            of the target is a threshold that differs from cell to cell; NaN gives NaN.
        """
        phrase = "probability of more than"
        return self._probability(Predictive.exceedance, threshold, "exceedance", phrase)

    def mean(self) -> xr.DataArray:
        """Return the mean, NaN where the tail of the law is too heavy for a mean to exist.

        A warning says so, of a result in memory. It is named after the variable with ``_mean``.
        """
        result = self._moment(Predictive.mean, "mean")
        return self._named(result, "mean", self._value_attrs("mean"))

    def std(self) -> xr.DataArray:
        """Return the standard deviation, NaN where the tail is too heavy for one to exist.

        A warning says so, of a result in memory. It is named after the variable with ``_std``.
        """
        attrs = self._value_attrs("standard deviation")
        if "standard_name" in attrs:  # CF's modifier for the uncertainty of a quantity
            attrs["standard_name"] = f"{attrs['standard_name']} standard_error"
        result = self._moment(Predictive.std, "standard deviation")
        return self._named(result, "std", attrs)

    def _moment(self, function: Callable[..., FloatArray], what: str) -> xr.DataArray:
        """Return a moment of each cell; warn where it does not exist, of what is in memory."""
        result = self._apply(function)
        if not self.lazy:
            lost = int((result.isnull() & np.isfinite(self.moments[0])).sum())
            if lost:
                warn_user(
                    f"The {what} of {self.name!r} does not exist in {lost} of {result.size} cells, "
                    "which are NaN: the tail of the marginal is too heavy for the latent "
                    "deviation there. Quantiles exist: use `interval`, or a marginal with lighter "
                    "tails."
                )
        return result

    def crps(self, observed: xr.DataArray) -> xr.DataArray:
        """Return the continuous ranked probability score of values that were observed.

        It is in the variable's units, smaller is better, and named after it with ``_crps``.

        Parameters
        ----------
        observed : DataArray
            On dims of the target; NaN gives NaN.
        """
        units = str(self.attrs.get("units", ""))
        field = check_observed(observed, self.name, units, self.sizes, self.coords)
        attrs = self._value_attrs("continuous ranked probability score")
        attrs.pop("standard_name", None)  # CF has none for a score
        return self._named(self._apply(Predictive.crps, field=field), "crps", attrs)

    def sample(self, n: int = 1, seed: int = 0, *, start: int = 0) -> xr.DataArray:
        """Draw realizations of the variable, on a first dim ``realization``.

        Each is one function of place and time: on every grid, in any chunks and in any order, the
        same realization has the same value at the same place. It follows the correlations of the
        model and the laws of the variable, and goes through the data. Posteriors of other variables
        of the model draw what belongs to it.

        Parameters
        ----------
        n : int
            How many.
        seed : int
            Other seeds have other realizations.
        start : int
            Number of the first: ``sample(5, start=10)`` are the last of ``sample(15)``.

        Raises
        ------
        TypeError, ValueError
            If a number is no integer, or negative; if a kernel of your own tells no spectrum.
        CostError
            If so many draws cannot be afforded.
        """
        n = check_integer("n", n, least=1)
        seed, start = check_integer("seed", seed), check_integer("start", start)
        cells = math.prod(self.query.shape)
        check_draws(n, cells, kept=cells, lazy=self.lazy)
        with self._told("draws") as tell:
            found = (self.query, self.predictor, self._frame, self.data)
            values = draw(*found, n, seed=seed, start=start, tell=tell)
        numbers = xr.Variable("realization", np.arange(start, start + n), {"seed": seed})
        return xr.DataArray(
            values,
            dims=("realization", *self.dims),
            coords=self.coords,
            name=self.name,
            attrs=self._value_attrs(),
        ).assign_coords(realization=numbers)

    def information(self) -> xr.DataArray:
        """Return what each secondary adds in each cell, on a first dim ``secondary``.

        It is the latent precision of the pair of the primary and that secondary, minus that of
        the primary alone, times the weight of the secondary in the combination.

        Raises
        ------
        ValueError
            If the model has no secondaries, its method is not transductive, or the variable is
            not the primary.
        """
        secondaries = list(self.tasks[1:])
        if not secondaries:
            raise ValueError(f"The model of {self.name!r} has no secondaries.")
        if not self.method.informs:
            raise ValueError(
                f"method={self.method.name!r} cannot tell what each secondary adds. "
                "Fit with method='transductive'."
            )
        if self.query.task:
            raise ValueError(
                f"The secondaries inform only the primary, {self.tasks[0]!r}, found "
                f"{self.name!r}. Leave `variable` out."
            )
        values = self._evaluate("information", len(secondaries))
        return xr.DataArray(
            values,
            dims=("secondary", *self.dims),
            coords=self._coords_beside("information"),
            name="information",
            attrs=self._number_attrs(f"latent precision of {self.name} added by a secondary"),
        ).assign_coords(secondary=secondaries)

    @property
    def plot(self) -> PosteriorPlots:
        """Pictures of the posterior: ``posterior.plot.map()``, ``exceedance``, ``information``."""
        from xcopula.plot.of_posterior import PosteriorPlots

        return PosteriorPlots(self)

    def _value_attrs(self, what: str = "") -> dict[str, Any]:
        """Return the attributes of the variable; ``what`` is said of it by the long name."""
        attrs = {k: self.attrs[k] for k in _KEPT if k in self.attrs}
        if what:
            attrs["long_name"] = f"{what} of {attrs.get('long_name', self.name)}"
        return attrs

    def _number_attrs(self, title: str) -> dict[str, Any]:
        """Return the attributes of something without units on the cells of the target."""
        return {"long_name": title, "units": "1"} | {
            k: v for k, v in self.attrs.items() if k == "grid_mapping"
        }

    def _coords_beside(self, *results: str) -> xr.Coordinates:
        """Return the coordinates without those that are called like a result."""
        taken = [name for name in results if name in self.coords]
        return self.coords.to_dataset().drop_vars(taken).coords if taken else self.coords

    def _named(self, result: xr.DataArray, what: str, attrs: dict[str, Any]) -> xr.DataArray:
        """Return a result under a name that says what it is."""
        name = f"{self.name}_{what}"
        result = result.drop_vars(name, errors="ignore").rename(name)
        result.attrs = attrs
        return result

    def _probability(
        self, function: Callable[..., FloatArray], value: Any, what: str, phrase: str
    ) -> xr.DataArray:
        attrs = self._number_attrs(f"{phrase} the threshold of {self.name}")
        units = str(self.attrs.get("units", ""))
        if isinstance(value, xr.DataArray) and value.dims not in ((), ("threshold",)):
            field = check_field(value, self.name, units, self.sizes, self.coords)
            field.attrs = self._value_attrs("threshold")
            result = self._apply(function, field=field)
            return self._named(result.assign_coords(threshold=field), what, attrs)
        thresholds = check_thresholds(value, self.name, units)
        named = {k: v for k, v in self.attrs.items() if k == "units"}
        return self._named(self._over(function, "threshold", thresholds, named), what, attrs)

    def _over(
        self,
        function: Callable[..., FloatArray],
        dim: str,
        values: FloatArray,
        dim_attrs: dict[str, Any],
        rows: Any = None,
    ) -> xr.DataArray:
        result = self._apply(function, values.reshape(-1), dim, rows)
        result = result.assign_coords({dim: (dim, values.reshape(-1), dim_attrs)})
        return result.isel({dim: 0}) if values.ndim == 0 else result

    def _apply(
        self,
        function: Callable[..., FloatArray],
        leading: FloatArray | None = None,
        dim: str | None = None,
        rows: Any = None,
        field: xr.DataArray | None = None,
    ) -> xr.DataArray:
        moments = self.moments if rows is None else rows
        given = None if field is None else (field.data, field.dims)
        with self._told(function.__name__) as tell:
            values = self.query.transform(moments, function, self.predictor, leading, given, tell)
        dims = self.dims if dim is None else (dim, *self.dims)
        return xr.DataArray(values, dims=dims, coords=self.coords, name=self.name)
