"""The fitted model: a record, a graph that will become one, and how it is shown."""

from __future__ import annotations

from xcopula.model.lazy import LazyModel
from xcopula.model.loading import load
from xcopula.model.record import CopulaModel

__all__ = ["CopulaModel", "LazyModel", "load"]
