"""Prediction on labelled targets: cells, blocks of them, and the posterior they make up."""

from __future__ import annotations

from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Predicting, predict

__all__ = ["Posterior", "Predicting", "predict"]
