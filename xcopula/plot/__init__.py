"""Figures: maps of a prediction and diagnostics of its calibration and of the marginal laws.

Results are Datasets, so ``.plot()`` works on them as it is; this room adds the few pictures that
take more than a line. It draws with the object-oriented interface of matplotlib: no global state,
no window, and every function returns the Figure, ready for ``savefig``.
"""

from __future__ import annotations

from xcopula.plot.diagnostics import marginal_qq, pit_histogram
from xcopula.plot.maps import prediction_map
from xcopula.plot.probabilities import exceedance_map

__all__ = ["exceedance_map", "marginal_qq", "pit_histogram", "prediction_map"]
