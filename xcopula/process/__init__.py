"""The copula process on arrays: what is modelled, what was observed, and what follows at a site."""

from __future__ import annotations

from xcopula.process.copula import Process
from xcopula.process.evidence import Evidence
from xcopula.process.information import information_content
from xcopula.process.predictive import Predictive
from xcopula.process.sample import (
    Moments,
    Sample,
    Targets,
    keep_data,
    keep_scores,
    known_data,
)
from xcopula.process.scores import Scores, drawn_scores, scores, scores_of
from xcopula.process.sites import NO_SITE, Sites, number_sites

__all__ = [
    "NO_SITE",
    "Evidence",
    "Moments",
    "Predictive",
    "Process",
    "Sample",
    "Scores",
    "Sites",
    "Targets",
    "drawn_scores",
    "information_content",
    "keep_data",
    "keep_scores",
    "known_data",
    "number_sites",
    "scores",
    "scores_of",
]
