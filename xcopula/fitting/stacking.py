"""Weights of candidates by how well each predicts values that it has not seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["akaike_weights", "stack"]

FloatArray = npt.NDArray[np.float64]

# What is known of the candidates beforehand counts as this share of the values: scores of left-out
# values are noisy, and candidates that are alike cannot be told apart by them.
_BEFOREHAND = 0.1
_STEPS, _STILL = 1000, 1e-8


def stack(log_densities: FloatArray, beforehand: FloatArray) -> FloatArray:
    """Return the weights (k,) of the mixture that predicts left-out values best.

    They maximise the sum of its log densities, a concave function, together with what is known
    beforehand.

    Parameters
    ----------
    log_densities : ndarray (n, k)
        Of n values that were left out, by each of k candidates.
    beforehand : ndarray (k,)
        Weights that are expected without having seen them; they add up to one.
    """
    best = log_densities.max(axis=1)
    seen = np.isfinite(best)
    densities = np.exp(log_densities[seen] - best[seen, None])
    extra = _BEFOREHAND * len(log_densities)
    # From equal weights: one that starts at nothing stays there.
    weights = np.full(beforehand.size, 1.0 / beforehand.size)
    # Expectation and maximisation: each step gains, and no weight leaves [0, 1].
    for _ in range(_STEPS):
        shares = densities * weights
        shares /= shares.sum(axis=1, keepdims=True)
        new = (shares.sum(axis=0) + extra * beforehand) / (len(densities) + extra)
        moved = float(np.abs(new - weights).max())
        weights = new
        if moved < _STILL:
            break
    return weights


def akaike_weights(aic: FloatArray) -> FloatArray:
    """Return the weights (k,) that information criteria give."""
    weights = np.exp(-0.5 * (aic - aic.min()))
    return np.asarray(weights / weights.sum())
