"""Prediction on labelled targets: cells, blocks of them, and the posterior they make up."""

from __future__ import annotations

from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Predicting, predict
from xcopula.prediction.several import Posteriors

__all__ = ["Posterior", "Posteriors", "Predicting", "predict"]
