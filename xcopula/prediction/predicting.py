"""Predict any variable of a model, fitted or still a graph, on any labelled target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import xarray as xr

from xcopula.arguments import check_methods, check_options
from xcopula.labels.coordinates import CoordinateSystem, find_projection
from xcopula.labels.georeference import from_table
from xcopula.labels.observations import Variable
from xcopula.methods import Method
from xcopula.prediction.layout import (
    Chunks,
    Layout,
    Target,
    check_layout,
    choose_chunks,
    own_chunks,
)
from xcopula.prediction.levels import check_levels
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predictor import Predictor
from xcopula.prediction.several import Posteriors
from xcopula.prediction.target import Cells, find_cells, warn_of_lost_cells
from xcopula.prediction.telling import telling
from xcopula.progress import Progress
from xcopula.progress.displays import check_progress
from xcopula.progress.run import Run
from xcopula.solvers import Solver
from xcopula.warn import shown

__all__ = ["Asked", "Predicting", "posterior", "predict"]

_OF = ("observation", "signal")


@check_methods
class Predicting:
    """What a fitted model and one that is still a graph have in common: they predict."""

    if TYPE_CHECKING:  # properties here would stand in the way of fields of the same name

        @property
        def variables(self) -> tuple[Variable, ...]:
            """The variables of the model, the primary first."""

        @property
        def coordinates(self) -> CoordinateSystem:
            """The inputs of the model; their scale may still be unknown."""

        @property
        def method(self) -> Method:
            """How the model was, or will be, fitted."""

        @property
        def solver(self) -> Solver | None:
            """How samples are conditioned; None if that is not known yet."""

        @property
        def size(self) -> int:
            """Number of observations; 0 if not known yet."""

        def bounded(self, task: int) -> bool | None:
            """Tell whether values of a variable are known as intervals; None if not known yet."""

    @property
    def predictor(self) -> Predictor | None:
        """What predicts, or None if it is still to be computed."""
        raise NotImplementedError

    def predictor_node(self) -> Any:
        """Return what predicts as a delayed object, for a graph."""
        raise NotImplementedError

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the variables, the primary first."""
        return tuple(v.name for v in self.variables)

    def task(self, variable: str | None) -> int:
        """Return the number of a variable; that of the primary by default.

        Raises
        ------
        KeyError
            If the model has no such variable.
        """
        if variable is None:
            return 0
        if not isinstance(variable, str) or variable not in self.tasks:
            raise KeyError(
                f"The model has no variable {shown(variable)}; it has {list(self.tasks)}. "
                "Choose one of these, or fit a model that has it."
            )
        return self.tasks.index(variable)

    def predict(
        self,
        target: Target,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
        *,
        variable: str | None = None,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
        progress: Progress = None,
    ) -> xr.Dataset:
        """Predict quantiles of a variable; see :func:`xcopula.predict`."""
        options: dict[str, Any] = {"variable": variable, "chunks": chunks, "of": of, "mask": mask}
        return predict(self, target, quantiles, **options, progress=progress)

    @overload
    def posterior(
        self,
        target: Target,
        *,
        variable: str | None = None,
        variables: None = None,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
        progress: Progress = None,
    ) -> Posterior: ...

    @overload
    def posterior(
        self,
        target: Target,
        *,
        variables: Sequence[str],
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
        progress: Progress = None,
    ) -> Posteriors: ...

    def posterior(
        self,
        target: Target,
        *,
        variable: str | None = None,
        variables: Sequence[str] | None = None,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
        progress: Progress = None,
    ) -> Posterior | Posteriors:
        """Return the full posterior of a variable, or of several together.

        Parameters
        ----------
        variables : sequence of str, optional
            Several variables of the model: what is returned then answers questions about all of
            them at once.

        Returns
        -------
        Posterior or Posteriors
            All other parameters are those of :func:`xcopula.predict`.
        """
        options: dict[str, Any] = {"chunks": chunks, "of": of, "mask": mask, "progress": progress}
        return posterior(self, target, variable=variable, variables=variables, **options)


@check_options
def predict(
    model: Predicting,
    target: Target,
    quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
    *,
    variable: str | None = None,
    chunks: Chunks = None,
    of: str = "observation",
    mask: str | xr.DataArray | None = None,
    progress: Progress = None,
) -> xr.Dataset:
    """Predict quantiles of a variable.

    Parameters
    ----------
    model : CopulaModel or LazyModel
    target : Dataset, DataArray or DataFrame
        Has the model's coordinates, found by CF role or by name: dims of a grid, 2-D coordinates
        of a curvilinear grid, coordinates of scattered points, or scalars. If the variable's law
        varies with fields, it has these too. Cells with a NaN coordinate or field become NaN.
    quantiles : float or sequence of float
        Levels strictly between 0 and 1.
    variable : str, optional
        Which variable of the model; the primary by default. A transductive model predicts a
        secondary from its pair with the primary.
    chunks : int, str or mapping, optional
        Chunks of the result, which is then lazy. With None the result is lazy if the target is
        chunked, and in memory if not.
    of : {"observation", "signal"}
        What is predicted: a value as it would be observed, or the signal without the nugget. At a
        site where the variable was observed, "observation" returns the observed value.
    mask : str or DataArray, optional
        Boolean, or the name of a variable of the target: False cells are NaN and cost nothing.
    progress : bool or callable, optional
        Whether to show how many cells are done, as in :func:`xcopula.fit`. This is for results in
        memory: for a lazy one, use ``dask.diagnostics.ProgressBar`` when you compute it.

    Returns
    -------
    Dataset
        The variable with a first dim ``quantile`` (a scalar coordinate for one number), the
        target's dims and coordinates, and the attributes that it had in the training data.

    Raises
    ------
    CoordinateError
        If the target lacks a coordinate, or has other units, another calendar or projection.
    FieldError
        If it lacks a field of the law, or has a group that the training data do not have.
    KeyError
        If the model has no such variable.
    TypeError
        If the quantiles are a text, such as the name of a variable.
    ValueError
        If a level, ``of`` or the mask is not valid.
    """
    if isinstance(quantiles, str):
        raise TypeError(
            f"`quantiles` must be numbers between 0 and 1, found {shown(quantiles)}. To choose "
            f"which variable is predicted, pass `variable={quantiles!r}`."
        )
    levels = check_levels(quantiles)
    check_progress(progress)
    asked = Asked(model, target, variable, of, mask)
    with telling(progress, asked.variable.name) as run:
        return asked.posterior(chunks, levels.size, run).quantile(levels).to_dataset()


def posterior(
    model: Predicting,
    target: Target,
    *,
    variable: str | None = None,
    variables: Sequence[str] | None = None,
    chunks: Chunks = None,
    of: str = "observation",
    mask: str | xr.DataArray | None = None,
    progress: Progress = None,
) -> Posterior | Posteriors:
    """Return the full posterior of a variable, or of several; see :meth:`Predicting.posterior`."""
    check_progress(progress)
    if variables is None:
        return Asked(model, target, variable, of, mask).posterior(chunks, 1, progress)
    if variable is not None:
        raise ValueError(
            f"Give `variable` or `variables`, not both, found {shown(variable)} and "
            f"{shown(variables)}."
        )
    if isinstance(variables, str) or not isinstance(variables, Sequence):
        raise TypeError(
            f"`variables` must be a list of names, found {shown(variables)}. For one variable give "
            "`variable`."
        )
    if not variables or len(set(variables)) < len(variables):
        raise ValueError(
            f"`variables` must be different names, one at least, found {shown(variables)}."
        )
    asked = [Asked(model, target, name, of, mask) for name in variables]
    return Posteriors(tuple(each.posterior(chunks, 1, progress) for each in asked))


class Asked:
    """What was asked of a model: checked, with the cells found."""

    def __init__(
        self,
        model: Predicting,
        target: Target,
        variable: str | None,
        of: str,
        mask: str | xr.DataArray | None,
    ) -> None:
        if not isinstance(model, Predicting):
            raise TypeError(f"`model` must be a model of `xcopula.fit`, found {shown(model)}.")
        task = model.task(variable)
        if not isinstance(of, str) or of not in _OF:
            raise ValueError(f"`of` must be one of {_OF}, found {shown(of)}.")
        target = from_table(target)
        if not isinstance(target, xr.Dataset | xr.DataArray):
            raise TypeError(
                f"The target must be a Dataset, DataArray or DataFrame, found {shown(target)}. "
                f"Give it the coordinates {list(model.coordinates.names)}."
            )
        self.model, self.target, self.task = model, target, task
        self.nugget = of == "observation"
        self.variable = model.variables[task]
        self.projection = find_projection(target)
        model.coordinates.check_projection(self.projection, "The target")
        self.cells: Cells = find_cells(target, self.variable, model.coordinates, mask)

    def posterior(self, chunks: Chunks, results: int, progress: Progress | Run) -> Posterior:
        """Return the posterior, for so many results of each cell; nothing is evaluated yet."""
        cells, model = self.cells, self.model
        used = [*cells.coordinates, cells.mask, *cells.fields]
        bounded = self.nugget and model.bounded(self.task)
        # What a block holds of a cell: coordinates, latent mean and deviation, the results.
        parts = 4 if bounded else 2
        cell_bytes = 8 * (len(cells.coordinates) + parts + len(cells.fields) + results)
        layout = choose_chunks(
            own_chunks(self.target, used), cells.dims, cells.sizes, chunks, cell_bytes
        )
        predictor: Any = None if layout is not None else self._predictor(progress)
        if predictor is not None:
            warn_of_lost_cells(cells.coordinates)
        else:
            # One node for the model and what is conditioned on it: blocks refer to it.
            predictor = model.predictor_node()
            layout = layout or {d: (cells.sizes[d],) for d in cells.dims}
            check_layout(layout, cell_bytes)
        return self._posterior(layout, predictor, bounded, progress)

    def posterior_of(self, predictor: Predictor) -> Posterior:
        """Return the posterior, in memory, of another predictor of the model's variables."""
        return self._posterior(None, predictor, predictor.bounds(self.task, self.nugget))

    def _posterior(
        self,
        layout: Layout | None,
        predictor: Any,
        bounded: bool | None,
        progress: Progress | Run = None,
    ) -> Posterior:
        coords, attrs = self._labels()
        return Posterior(
            tasks=self.model.tasks,
            method=self.model.method,
            solver=self.model.solver,
            query=self.cells.query(layout, self.task, nugget=self.nugget),
            predictor=predictor,
            coords=coords,
            attrs=attrs,
            progress=progress,
            bounded=bounded,
            data=self.model.size,
        )

    def _predictor(self, progress: Progress | Run) -> Predictor | None:
        """Return what predicts, conditioned on the data; None if the model is not fitted yet."""
        name = self.variable.name
        with telling(progress, name) as run, run.step("condition", (name,), counts=False):
            return self.model.predictor

    def _labels(self) -> tuple[xr.Coordinates, dict[str, Any]]:
        """Return the coordinates and the attributes of the result."""
        kept, attrs = self.cells.kept, dict(self.variable.attrs)
        attrs.pop("grid_mapping", None)
        found, own = self.projection, self.model.coordinates.grid_mapping
        # The result is on the target's grid; where that says nothing, on the training data's.
        if found is None and own is not None:
            found = own.without_extent()
        if found is not None:
            attrs["grid_mapping"] = found.name
            coordinate = found.to_coordinate()
            if found.name in kept.xindexes:
                kept[found.name].attrs = coordinate.attrs  # an index with a CRS stays
            else:
                kept = kept.assign_coords({found.name: coordinate})
        return kept.coords, attrs
