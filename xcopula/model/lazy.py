"""A model that is still a graph: nothing has been computed, everything can be built on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from xcopula.prediction import target as prediction
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.fields import Field
from xcopula.model.record import CopulaModel, to_node, warn_of_extreme_scores
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.target import Chunks, Target

__all__ = ["LazyModel"]


@dataclass(frozen=True, repr=False, eq=False)
class LazyModel:
    """The graph of a fit; see ``compute=False`` of :func:`xcopula.fit`.

    Attributes
    ----------
    tasks : tuple of str
        Names of the variables, the primary first.
    coordinates : CoordinateSystem
        The inputs, not yet scaled to the data.
    primary_attrs : dict
    primary_fields : tuple of Field
        What the primary's law varies with; its groups are not yet known.
    node : dask Delayed
        The model to be.
    """

    tasks: tuple[str, ...]
    coordinates: CoordinateSystem
    primary_attrs: dict[str, Any]
    primary_fields: tuple[Field, ...]
    node: Any

    def compute(self, **options: Any) -> CopulaModel:
        """Run the fit, BLAS limited to one thread for each task, and return the model.

        Options go to dask.
        """
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            model: CopulaModel = self.node.compute(**options)
        warn_of_extreme_scores(model)
        return model

    def persist(self, **options: Any) -> LazyModel:
        """Run the fit and keep the model where it was computed."""
        return replace(self, node=self.node.persist(**options))

    def visualize(self, *arguments: Any, **options: Any) -> Any:
        """Draw the graph; see :func:`dask.visualize`."""
        return self.node.visualize(*arguments, **options)

    @property
    def predictor(self) -> None:
        """Nothing yet: predictions extend the graph."""
        return None

    def predictor_node(self) -> Any:
        """Return what prediction needs as a delayed object."""
        return to_node(self.node)

    def predict(
        self,
        target: Target,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
        *,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Extend the graph by a prediction; see :func:`xcopula.predict`."""
        return prediction.predict(self, target, quantiles, chunks=chunks, of=of, mask=mask)

    def posterior(
        self,
        target: Target,
        *,
        chunks: Chunks = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> Posterior:
        """Extend the graph by the full posterior; see :func:`xcopula.predict`."""
        return prediction.posterior(self, target, chunks=chunks, of=of, mask=mask)

    def __repr__(self) -> str:
        return (
            f"<xcopula.LazyModel of {self.tasks[0]!r} with {list(self.tasks[1:])}: "
            f"{len(dict(self.node.dask))} tasks, not computed>"
        )
