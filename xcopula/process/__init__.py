"""The copula process on arrays: what is modelled, what was observed, and what follows at a site."""

from __future__ import annotations

from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Moments", "Process", "Sample"]
