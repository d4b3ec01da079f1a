"""The posterior of several variables together: what is asked of all of them at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from xcopula.arguments import check_integer, check_methods
from xcopula.arrays import FloatArray
from xcopula.prediction.ensembles import Ensemble
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.sampling import check_draws, drawn_together
from xcopula.prediction.thresholds import Limit, Threshold
from xcopula.process import Predictive
from xcopula.process.bivariate import both_above
from xcopula.solvers import Exact, settle
from xcopula.warn import shown

__all__ = ["Posteriors"]

_HOW = ("all", "any")
_DRAWS = 1000


@check_methods
@dataclass(frozen=True, repr=False, eq=False)
class Posteriors(Mapping[str, Posterior]):
    """What a model knows about several variables on a target.

    It is a mapping: ``both["Zn"]`` is the posterior of one of them. Every other result is a Dataset
    of all.

    Attributes
    ----------
    each : tuple of Posterior
    """

    each: tuple[Posterior, ...]

    def __getitem__(self, name: str) -> Posterior:
        for posterior in self.each:
            if posterior.name == name:
                return posterior
        raise KeyError(f"There is no posterior of {shown(name)}; there are {list(self)}.")

    def __iter__(self) -> Iterator[str]:
        return (posterior.name for posterior in self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        inner = repr(self.each[0]).split(" on ", 1)[1]
        return f"<xcopula.Posteriors of {list(self)} on {inner}"

    @property
    def sizes(self) -> dict[Hashable, int]:
        """Number of cells along each dim of the target."""
        return self.each[0].sizes

    @property
    def data(self) -> int:
        """Number of observations of the model."""
        return self.each[0].data

    @property
    def lazy(self) -> bool:
        """Whether results are dask-backed."""
        return self.each[0].lazy

    def sample(self, n: int = 1, seed: int = 0, *, start: int = 0) -> xr.Dataset:
        """Draw realizations of all variables together; see :meth:`Posterior.sample`.

        A transductive model has fitted pairs with the primary. Given the primary, its secondaries
        are independent of each other in draws, but for what the data say.
        """
        return xr.merge([p.sample(n, seed, start=start) for p in self.each])

    def quantile(self, q: float | Sequence[float] | FloatArray) -> xr.Dataset:
        """Return quantiles of each variable; see :meth:`Posterior.quantile`."""
        return xr.merge([p.quantile(q) for p in self.each])

    def median(self) -> xr.Dataset:
        """Return the median of each variable."""
        return xr.merge([p.median() for p in self.each])

    def interval(self, level: float = 0.9) -> xr.Dataset:
        """Return the central interval of each variable; see :meth:`Posterior.interval`."""
        return xr.merge([p.interval(level) for p in self.each])

    def mean(self) -> xr.Dataset:
        """Return the mean of each variable; see :meth:`Posterior.mean`."""
        return xr.merge([p.mean() for p in self.each])

    def std(self) -> xr.Dataset:
        """Return the standard deviation of each variable; see :meth:`Posterior.std`."""
        return xr.merge([p.std() for p in self.each])

    def cdf(self, values: Mapping[str, Threshold]) -> xr.Dataset:
        """Return P(Y <= value) of each variable, by its name; see :meth:`Posterior.cdf`."""
        self._check_thresholds(values, "values")
        return xr.merge([_own_threshold(self[v].cdf(t), v) for v, t in values.items()])

    def exceedance(self, thresholds: Mapping[str, Threshold]) -> xr.Dataset:
        """Return P(Y > threshold) of each variable, by its name; see :meth:`Posterior.exceedance`.

        Of all at once see :meth:`joint_exceedance`.
        """
        self._check_thresholds(thresholds)
        return xr.merge([_own_threshold(self[v].exceedance(t), v) for v, t in thresholds.items()])

    def reduce(
        self,
        function: Callable[[xr.Dataset, tuple[Hashable, ...]], xr.DataArray],
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        n: int = 200,
        seed: int = 0,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
    ) -> xr.Dataset:
        """Return the law of what a function makes of each draw of all variables.

        Parameters
        ----------
        function : callable
            ``function(draws, dims)`` takes a Dataset of draws, with a dim ``realization``, and
            reduces it over ``dims`` only, to a DataArray. The share of cells with too much of both:
            ``lambda d, dims: ((d["Cd"] > 0.8) & (d["Zn"] > 60)).mean(dims)``.
        dims, n, seed, quantiles
            See :meth:`Posterior.reduce`, which also says what is returned.
        """
        if not callable(function):
            raise TypeError(
                f"`function` must be a function of draws and dims, found {shown(function)}. "
                "Reductions by name are those of one variable."
            )
        ensemble, over = Ensemble.of(n, seed, quantiles), self.each[0].check_dims(dims)
        return ensemble.law(self, lambda draws: function(draws, over), over)

    def max(self, dims: Hashable | Iterable[Hashable] | None = None, **options: Any) -> xr.Dataset:
        """Return the law of the largest value of each, on a dim ``variable``.

        Parameters and options are those of :meth:`Posterior.max`.
        """
        return self._along(p.max(dims, **options) for p in self.each)

    def area_mean(
        self,
        weights: xr.DataArray | None = None,
        regions: xr.DataArray | None = None,
        **options: Any,
    ) -> xr.Dataset:
        """Return the law of the mean of each over space, on a dim ``variable``.

        Parameters and options are those of :meth:`Posterior.area_mean`.
        """
        return self._along(p.area_mean(weights, regions, **options) for p in self.each)

    def time_quantile(self, q: float, dim: str = "time", **options: Any) -> xr.Dataset:
        """Return the law of a quantile along time of each, on a dim ``variable``.

        Parameters and options are those of :meth:`Posterior.time_quantile`.
        """
        return self._along(p.time_quantile(q, dim, **options) for p in self.each)

    def area_above(self, thresholds: Mapping[str, Threshold], **options: Any) -> xr.Dataset:
        """Return the law of the area where each exceeds its threshold, on a dim ``variable``.

        Options are those of :meth:`Posterior.area_above`.
        """
        return self._above("area_above", thresholds, options)

    def fraction_above(self, thresholds: Mapping[str, Threshold], **options: Any) -> xr.Dataset:
        """Return the law of the share of space where each exceeds its threshold.

        On a dim ``variable``; options are those of :meth:`Posterior.fraction_above`.
        """
        return self._above("fraction_above", thresholds, options)

    def exceedance_days(self, thresholds: Mapping[str, Threshold], **options: Any) -> xr.Dataset:
        """Return the law of how often each exceeds its threshold, on a dim ``variable``.

        Options are those of :meth:`Posterior.exceedance_days`.
        """
        return self._above("exceedance_days", thresholds, options)

    def _above(
        self, name: str, thresholds: Mapping[str, Threshold], options: dict[str, Any]
    ) -> xr.Dataset:
        self._check_thresholds(thresholds)
        pair = Posteriors(tuple(self[v] for v in thresholds))
        found = (getattr(p, name)(thresholds[p.name], **options) for p in pair.each)
        return pair._along(found)

    def _along(self, results: Iterable[xr.Dataset]) -> xr.Dataset:
        """Return results of the variables, one after another."""
        names = xr.Variable("variable", list(self))
        together = xr.concat(list(results), "variable", combine_attrs="drop_conflicts")
        return together.assign_coords(variable=names)

    def correlation(self) -> xr.DataArray:
        """Return the latent correlation of two variables in each cell, given the data.

        It says how what is not known of one goes with what is not known of the other: 0 where
        either is observed.

        Raises
        ------
        ValueError
            If there are not two variables, or the solver does not know their joint law; draws do.
        """
        if len(self.each) != 2:
            raise ValueError(
                f"A correlation is of two variables, found {list(self)}. Ask for the posterior of "
                "two."
            )
        if not self._has_correlations:
            raise ValueError(
                "The correlation of two variables in a cell is known to the exact solver only. "
                "Take it of draws: `xr.corr` of `sample(500)` along 'realization'."
            )
        first, second = self
        return xr.DataArray(
            self._correlation()[0],
            dims=self.each[0].dims,
            coords=self.each[0].coords,
            name="correlation",
            attrs={"long_name": f"latent correlation of {first} and {second}", "units": "1"},
        )

    def joint_exceedance(
        self,
        thresholds: Mapping[str, Threshold],
        how: str = "all",
        *,
        n: int = _DRAWS,
        seed: int = 0,
    ) -> xr.DataArray:
        """Return the probability that all, or any, of the variables exceed their thresholds.

        Of one variable that is :meth:`Posterior.exceedance`. Two have a closed form with the exact
        solver. Else it is the share of ``n`` draws, whose error is at most ``0.5 / sqrt(n)``: the
        attribute ``draws`` is there then. Draws take much longer, above all in small chunks. They
        are also taken of two variables where values are known as intervals, and of a fit that is
        not computed yet. For two secondaries of a transductive model see :meth:`sample`.

        Parameters
        ----------
        thresholds : mapping of str to float or DataArray
            In the units of each variable, as in :meth:`Posterior.exceedance`; NaN gives NaN.
        how : {"all", "any"}
        n, seed : int
            Of the draws, where they are needed.

        Raises
        ------
        KeyError
            If a variable is not among those of the posterior.
        ValueError, TypeError
            If ``how``, ``n``, ``seed`` or a threshold is not valid.
        """
        self._check_thresholds(thresholds)
        if how not in _HOW:
            raise ValueError(f"`how` must be one of {_HOW}, found {shown(how)}.")
        n, seed = check_integer("n", n, least=1), check_integer("seed", seed)
        limits = {v: _limit(self[v], t) for v, t in thresholds.items()}
        pair, drawn = Posteriors(tuple(self[v] for v in limits)), {}
        found: Any
        if len(limits) == 1:
            found = pair.each[0].exceedance(*thresholds.values()).data
        elif len(limits) == 2 and pair._has_correlations:
            found = pair._in_closed_form(thresholds, how)
        else:
            found, drawn = self._by_draws(limits, how, n, seed), {"draws": n, "seed": seed}
        names = {"all": " and ", "any": " or "}[how].join(limits)
        attrs = {"long_name": f"probability of more than the thresholds of {names}", "units": "1"}
        return xr.DataArray(
            found,
            dims=self.each[0].dims,
            coords=self.each[0].coords,
            name="joint_exceedance",
            attrs=attrs | drawn,
        )

    def _check_thresholds(self, thresholds: Any, name: str = "thresholds") -> None:
        if not isinstance(thresholds, Mapping) or not thresholds:
            raise TypeError(
                f"`{name}` must be a mapping of variables to numbers, as in "
                f"{{{next(iter(self))!r}: 1.0}}, found {shown(thresholds)}."
            )
        for variable in thresholds:
            self[variable]

    @functools.cached_property
    def _has_correlations(self) -> bool:
        """Whether the joint law of two is in closed form: exact, and no values are intervals."""
        first = self.each[0]
        if any(p.bounded is not False for p in self.each):
            return False
        if not self.lazy:
            return bool(first.predictor.has_correlations)
        # Nothing is conditioned yet: the joint process will be exact where its solver is.
        whole = first.solver if first.method.name == "full" else settle(None, [[first.data]])
        return isinstance(first.solver, Exact) and isinstance(whole, Exact)

    def _correlation(self) -> Any:
        first, second = (p.query.task for p in self.each)
        query, predictor = self.each[0].query, self.each[0].predictor
        return query.evaluate(predictor, "correlation", 1, tasks=(first, second))

    def _in_closed_form(self, thresholds: Mapping[str, Threshold], how: str) -> Any:
        distances = [_distance(self[v], t).variable for v, t in thresholds.items()]
        found = xr.apply_ufunc(
            _joint_probability,
            *distances,
            xr.Variable(self.each[0].dims, self._correlation()[0]),
            kwargs={"how": how},
            dask="parallelized",
            output_dtypes=[np.float64],
        )
        return found.data

    def _by_draws(self, limits: Mapping[str, Limit], how: str, n: int, seed: int) -> Any:
        join: Any = np.minimum if how == "all" else np.maximum
        first = self[next(iter(limits))]
        cells = math.prod(first.query.shape)
        check_draws(n, cells, kept=1, lazy=self.lazy)
        step = n if self.lazy else drawn_together(cells, first.data)
        total: Any = 0.0
        for start in range(0, n, step):
            count = min(step, n - start)
            above = [
                limit.above(self[variable].sample(count, seed, start=start))
                for variable, limit in limits.items()
            ]
            total = total + functools.reduce(join, above).sum("realization", skipna=False)
        return (total / n).transpose(*first.dims).data


def _limit(posterior: Posterior, threshold: Any) -> Limit:
    units = str(posterior.attrs.get("units", ""))
    return Limit.of(threshold, posterior.name, units, posterior.sizes, posterior.coords)


def _distance(posterior: Posterior, threshold: Threshold) -> xr.DataArray:
    """Return how many latent deviations a threshold is above the latent mean."""
    return posterior._probability(Predictive.distance, threshold, "distance", "deviations to")


def _joint_probability(
    first: FloatArray, second: FloatArray, correlation: FloatArray, how: str
) -> FloatArray:
    """Return the probability that both, or either, of two normal variables exceed thresholds."""
    found = both_above(first, second, correlation)
    if how == "any":
        found = ndtr(-first) + ndtr(-second) - found
    return np.clip(found, 0.0, 1.0)


def _own_threshold(result: xr.DataArray, variable: str) -> xr.DataArray:
    """Give the threshold of a result a name of its own: each variable has another."""
    return result.rename(threshold=f"{variable}_threshold")
