"""Fit a model: what is asked, the steps, the choices, the optimiser and the cost."""

from __future__ import annotations

from xcopula.fitting.comparison import compare, format_comparison
from xcopula.fitting.fit import fit

__all__ = ["compare", "fit", "format_comparison"]
