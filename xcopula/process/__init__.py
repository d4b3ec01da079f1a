"""The copula process on arrays: what is modelled, what was observed, and what follows at a site."""

from __future__ import annotations

from xcopula.process.copula import Process
from xcopula.process.evidence import Evidence
from xcopula.process.sample import Moments, Sample, Targets, keep_data, keep_scores
from xcopula.process.scores import Scores, scores
from xcopula.process.sites import NO_SITE, Sites, number_sites

__all__ = [
    "NO_SITE",
    "Evidence",
    "Moments",
    "Process",
    "Sample",
    "Scores",
    "Sites",
    "Targets",
    "keep_data",
    "keep_scores",
    "number_sites",
    "scores",
]
