"""One-dimensional simulated tasks, after the two toy figures of the source report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from xcopula.arrays import FloatArray
from xcopula.warn import shown

__all__ = ["toy", "toy_truth"]

Kind: TypeAlias = Literal["pair", "triple"]

GAP = (0.4, 0.65)  # the stretch of [0, 1] in which the primary task has no sample


@dataclass(frozen=True)
class _Task:
    """The true function of a task, how many samples it has, and their noise."""

    function: Callable[[FloatArray], FloatArray]
    formula: str
    size: int
    scale: float
    shape: float | None = None  # of a generalised extreme value law; None: Gaussian

    def draw_noise(self, rng: np.random.Generator) -> FloatArray:
        """Draw noise whose median is zero, so that the true function is the conditional median."""
        if self.shape is None:
            return rng.normal(0.0, self.scale, self.size)
        # -log U is a standard exponential E, and (E^-xi - 1) / xi the extreme value law.
        exponential = rng.standard_exponential(self.size)
        median = np.log(2.0) ** -self.shape
        noise: FloatArray = self.scale * (exponential**-self.shape - median) / self.shape
        return noise

    @property
    def noise(self) -> str:
        """The law of the noise in words, for the attributes."""
        if self.shape is None:
            return f"normal, standard deviation {self.scale}"
        return f"generalised extreme value, scale {self.scale}, shape {self.shape}, median 0"


_TASKS: dict[str, dict[str, _Task]] = {
    "pair": {
        "primary": _Task(
            lambda x: -np.sin(16 * x) + np.sin(8 * x) + 2,
            "-sin(16 x) + sin(8 x) + 2",
            size=14,
            scale=0.2,
            shape=0.2,
        ),
        "cotask": _Task(
            lambda x: np.sin(16 * x) - np.sin(8 * x) + 7,
            "sin(16 x) - sin(8 x) + 7",
            size=30,
            scale=0.2,
        ),
    },
    "triple": {
        "primary": _Task(lambda x: -np.sin(5 * np.pi * x), "-sin(5 pi x)", size=14, scale=0.1),
        "upper": _Task(lambda x: np.sin(5 * np.pi * x) + 3, "sin(5 pi x) + 3", size=30, scale=0.1),
        "lower": _Task(lambda x: np.sin(5 * np.pi * x) - 3, "sin(5 pi x) - 3", size=30, scale=0.1),
    },
}


def toy(seed: int = 0, kind: Kind = "pair") -> xr.Dataset:
    """Simulate related tasks on [0, 1], each sampled at its own random sites.

    The primary task is sparse and has a gap, which the denser co-tasks can fill.

    Parameters
    ----------
    seed : int
        Seed of the generator; the same seed gives the same data.
    kind : {"pair", "triple"}
        "pair": ``primary`` with skewed, extreme value noise, and ``cotask`` with Gaussian noise.
        "triple": ``primary``, ``upper`` and ``lower``, all with a small Gaussian noise.

    Returns
    -------
    Dataset
        Dim ``site``, in order of the coord ``x``; each task is NaN where it was not sampled. The
        attributes ``true_function`` and ``noise`` say what was simulated.

    Raises
    ------
    TypeError
        If ``seed`` is not an integer.
    ValueError
        If ``seed`` is negative or ``kind`` unknown.

    Examples
    --------
    >>> ds = toy(seed=1)
    >>> {str(name): int(task.count()) for name, task in ds.items()}
    {'primary': 14, 'cotask': 30}
    """
    tasks = _find_tasks(kind)
    rng = np.random.default_rng(_check_seed(seed))
    sites = {name: _draw_sites(rng, task.size, name == "primary") for name, task in tasks.items()}
    values = {
        name: task.function(sites[name]) + task.draw_noise(rng) for name, task in tasks.items()
    }
    x = np.concatenate(list(sites.values()))
    owner = np.repeat(list(tasks), [task.size for task in tasks.values()])
    columns = {name: np.full(x.size, np.nan) for name in tasks}
    for name, column in columns.items():
        column[owner == name] = values[name]
    order = np.argsort(x)
    return xr.Dataset(
        {
            name: ("site", column[order], _attrs(name, tasks[name]))
            for name, column in columns.items()
        },
        coords={"x": ("site", x[order], _X_ATTRS)},
        attrs={"title": f"Simulated toy tasks, kind '{kind}', seed {seed}"},
    )


def toy_truth(x: ArrayLike | xr.DataArray, kind: Kind = "pair") -> xr.Dataset:
    """Evaluate the noise-free functions behind :func:`toy`.

    Parameters
    ----------
    x : array_like or DataArray
        Where to evaluate; anything but a DataArray becomes a 1-D coordinate ``x``.
    kind : {"pair", "triple"}
        As in :func:`toy`.

    Returns
    -------
    Dataset
        One variable per task of that kind, on the dims of ``x``.

    Raises
    ------
    ValueError
        If ``kind`` is unknown.

    Examples
    --------
    >>> toy_truth([0.0, 0.5], kind="triple")["upper"].values
    array([3., 4.])
    """
    tasks = _find_tasks(kind)
    points = np.atleast_1d(np.asarray(x))
    labelled = isinstance(x, xr.DataArray)
    if points.dtype.kind not in "iuf" or (points.ndim > 1 and not labelled):
        raise ValueError(
            f"`x` must be a number or a sequence of numbers, found {shown(x)}. "
            "Give positions between 0 and 1."
        )
    if not isinstance(x, xr.DataArray):
        points = points.astype(np.float64)
        x = xr.DataArray(points, dims="x", coords={"x": ("x", points, _X_ATTRS)})
    # A Variable of the values, not the DataArray itself, which may be its own index coordinate.
    return xr.Dataset(
        {
            name: (x.dims, task.function(np.asarray(x.values, np.float64)), _attrs(name, task))
            for name, task in tasks.items()
        },
        coords=x.coords,
    )


_X_ATTRS = {"units": "1", "long_name": "position", "axis": "X"}


def _attrs(name: str, task: _Task) -> dict[str, str]:
    return {
        "units": "1",
        "long_name": f"{name} task",
        "true_function": task.formula,
        "noise": task.noise,
    }


def _draw_sites(rng: np.random.Generator, size: int, has_gap: bool) -> FloatArray:
    """Draw sites uniformly on [0, 1], or on what a gap leaves of it."""
    if not has_gap:
        return rng.random(size)
    start, stop = GAP
    x = rng.random(size) * (1.0 - (stop - start))
    return np.where(x < start, x, x + (stop - start))


def _find_tasks(kind: str) -> dict[str, _Task]:
    if not isinstance(kind, str) or kind not in _TASKS:
        raise ValueError(f"Unknown kind of toy data {shown(kind)}. Choose from {list(_TASKS)}.")
    return _TASKS[kind]


def _check_seed(seed: int) -> int:
    """Return the seed; raise if it is not a non-negative integer."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"The seed must be an integer, found {seed!r}. Pass e.g. `seed=0`.")
    if seed < 0:
        raise ValueError(f"The seed must not be negative, found {seed}. Pass e.g. `seed=0`.")
    return int(seed)
