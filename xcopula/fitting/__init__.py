"""Fit a model: what is asked, the steps, the choices, the optimiser and the cost."""

from __future__ import annotations

from xcopula.fitting.comparison import compare, format_comparison
from xcopula.fitting.fit import fit
from xcopula.fitting.score import score_tests

__all__ = ["compare", "fit", "format_comparison", "score_tests"]
