"""A model that is still a graph: nothing has been computed, everything can be built on it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from xcopula.arguments import check_methods
from xcopula.jit.compiler import compilations
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Variable
from xcopula.methods import Method
from xcopula.model.extremes import warn_of_laws
from xcopula.model.record import CopulaModel, to_node
from xcopula.model.running import stop_together
from xcopula.prediction import Predicting
from xcopula.progress import Progress
from xcopula.progress.displays import choose_listener
from xcopula.progress.run import track
from xcopula.solvers import Solver

__all__ = ["LazyModel"]

_FIELDS = frozenset(field.name for field in fields(CopulaModel))


@check_methods
@dataclass(frozen=True, repr=False, eq=False)
class LazyModel(Predicting):
    """The graph of a fit; see ``compute=False`` of :func:`xcopula.fit`.

    Attributes
    ----------
    variables : tuple of Variable
        The primary first; groups of their laws are not yet known.
    coordinates : CoordinateSystem
        The inputs, not yet scaled to the data.
    method : Method
    solver : Solver, optional
        None if the size of the data will decide.
    node : dask Delayed
        The model to be.
    numbers : tuple of bool
        Whether values of each variable are surely numbers, none of them an interval or an atom.
    """

    variables: tuple[Variable, ...]
    coordinates: CoordinateSystem
    method: Method
    solver: Solver | None
    node: Any
    numbers: tuple[bool, ...] = ()

    @property
    def size(self) -> int:
        """Number of observations: not known yet."""
        return 0

    def bounded(self, task: int) -> bool | None:
        """Return False where values are surely numbers; else None: the fit will tell."""
        return False if self.numbers and self.numbers[task] else None

    def compute(self, *, progress: Progress = None, **options: Any) -> CopulaModel:
        """Run the fit, BLAS limited to one thread for each task, and return the model.

        Other options go to dask. A run that is interrupted stops what it has started. Progress is
        shown as in :func:`xcopula.fit`, of steps that run in this process.
        """
        from threadpoolctl import threadpool_limits

        with (
            track("fit", choose_listener(progress), self.tasks) as run,
            compilations(run.compiles),
            stop_together(run, recorded=True),
            threadpool_limits(1, user_api="blas"),
        ):
            model: CopulaModel = self.node.compute(**options)
        warn_of_laws(model)
        return model

    def persist(self, **options: Any) -> LazyModel:
        """Run the fit and keep the model where it was computed."""
        with stop_together():
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

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (name in _FIELDS or hasattr(CopulaModel, name)):
            raise AttributeError(
                f"A LazyModel has no {name!r}: nothing has been fitted. Run the fit first, "
                f"`model = model.compute()`."
            )
        raise AttributeError(f"'LazyModel' object has no attribute {name!r}")

    def __repr__(self) -> str:
        others = f" with {list(self.tasks[1:])}" if len(self.tasks) > 1 else ""
        count = len(dict(self.node.dask))
        return f"<xcopula.LazyModel of {self.tasks[0]!r}{others}: {count} tasks, not computed>"
