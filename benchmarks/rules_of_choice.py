"""Worlds of one variable in the plane, what competes there, and rules that give it weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.alone import Alone
from xcopula.fitting.selection import Choice, kernels_to_try, laws_to_try, shortlist
from xcopula.fitting.stacking import akaike_weights, stack
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import InputGroup
from xcopula.model.candidates import Candidate
from xcopula.process import NORMAL, Predictive, Sample, Scores, Targets, scores
from xcopula.solvers import Exact
from xcopula.solvers.search import gaps_around

FloatArray = np.ndarray

HIDDEN = 200
# One kernel each; of the others it is drawn.
ROUGHNESS = {"rough": "matern12", "middle": "matern32", "smooth": "matern52", "smoothest": "se"}
KINDS = (*ROUGHNESS, "two ranges", "two ranges, rough and smooth", "directional", "log-normal")
KINDS += ("gap", "clustered")
BEFORE, CHOSEN = "pick by AIC", "stacking towards Akaike"
# As in the library: a candidate with less weight has no share.
LEAST = 0.05


@dataclass(frozen=True)
class World:
    """Values at sites (n, 2) in the unit square, and values that are hidden."""

    sites: FloatArray
    values: FloatArray
    hidden_sites: FloatArray
    hidden: FloatArray


def correlations(kind: str, drawn: str, distance: FloatArray, length: float) -> FloatArray:
    """Return the correlations of a kind of world at distances (n, n)."""

    def of(kernel: str, scale: float) -> FloatArray:
        return KERNELS[kernel].profile((distance / scale).ravel())[0].reshape(distance.shape)

    if kind == "two ranges":
        return 0.5 * of("matern32", 0.4 * length) + 0.5 * of("matern32", 4.0 * length)
    if kind == "two ranges, rough and smooth":
        return 0.5 * of("matern12", 0.5 * length) + 0.5 * of("matern52", 4.0 * length)
    return of(ROUGHNESS.get(kind, drawn), length)


def world(kind: str, size: int, seed: int) -> World:
    """Simulate a world of a kind."""
    rng = np.random.default_rng([seed, size, KINDS.index(kind)])
    sites, hidden = rng.random((size, 2)), rng.random((HIDDEN, 2))
    if kind == "gap":  # a disc without sites, where all that is hidden lies
        many = rng.random((4 * size, 2))
        sites = many[np.hypot(*(many - 0.5).T) > 0.3][:size]
        angle, radius = 2.0 * np.pi * rng.random(HIDDEN), 0.3 * np.sqrt(rng.random(HIDDEN))
        hidden = 0.5 + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    if kind == "clustered":
        centres = rng.random((max(4, size // 12), 2))
        around = centres[rng.integers(len(centres), size=size)]
        sites = np.clip(around + 0.03 * rng.normal(size=(size, 2)), 0.0, 1.0)
    places = np.vstack([sites, hidden])
    length, nugget = 0.08 * 4.0 ** rng.random(), 0.02 * 10.0 ** rng.random()
    if kind == "directional":
        angle = np.pi * rng.random()
        turned = places @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        places = turned * [1.0, 3.0]
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    kernel = ("matern12", "matern32", "matern52")[rng.integers(3)]
    signal = correlations(kind, kernel, distance, length)
    covariance = (1.0 - nugget) * signal + (nugget + 1e-9) * np.eye(len(places))
    z = np.linalg.cholesky(covariance) @ rng.normal(size=len(places))
    values = np.exp(0.7 * z) if kind == "log-normal" else 10.0 + 2.0 * z
    return World(sites, values[: len(sites)], hidden, values[len(sites) :])


def candidates(alone: Alone) -> list[Candidate]:
    """Fit what competes; what AIC picks of one structure is first."""
    choice = Choice(alone, kernels_to_try(None), laws_to_try(None))
    first = choice.try_law(0)
    laws = [first, *(choice.try_law(i, first) for i in range(1, len(choice.laws)))]
    kernels = [choice.try_kernel(i, laws) for i in range(1, len(choice.kernels))]
    table = choice.ranked([*laws, *kernels])
    close = {law.name for law in shortlist(table)}
    found = [c for c in table if c.marginal.name in close]
    for candidate in [c for c in found if c.marginal.name == table[0].marginal.name]:
        try:
            found.append(alone.with_structures(candidate, 2))
        except NotPositiveDefiniteError:
            continue  # no candidate: there are others
    return found


@dataclass(frozen=True)
class Tried:
    """Candidates of a world: what is known of each when weights are given, and its predictions.

    Attributes
    ----------
    aic : ndarray (k,)
    alone, gaps : list of Scores
        Of values that were left out one by one, and with all that is near.
    means, stds : ndarray (k, m)
        Latent moments of what is hidden.
    laws : tuple of Marginal
    hidden : ndarray (m,)
    """

    aic: FloatArray
    alone: list[Scores]
    gaps: list[Scores]
    means: FloatArray
    stds: FloatArray
    laws: tuple
    hidden: FloatArray

    def mixture(self, weights: FloatArray) -> Predictive:
        """Return what candidates with enough weight predict together."""
        kept = np.flatnonzero(weights >= LEAST)
        shares = weights[kept] / weights[kept].sum()
        laws = tuple(self.laws[i] for i in kept)
        return Predictive(self.means[kept], self.stds[kept], laws, shares, (NORMAL,) * len(kept))

    def left_out(self) -> FloatArray:
        """Return log densities (2 n, k) of left-out values."""
        return np.stack(
            [
                np.concatenate([near.log_score, far.log_score])
                for near, far in zip(self.alone, self.gaps, strict=True)
            ],
            axis=1,
        )


def tried(where: World) -> Tried:
    """Fit candidates to a world, and let each predict what is left out and what is hidden."""
    extent = np.ptp(where.sites, axis=0).max()
    sample = Sample.of([where.sites / extent], [where.values])
    alone = Alone(sample, (InputGroup(2),), 1, Exact())
    fitted = candidates(alone)
    rows = np.arange(sample.size)
    targets = Targets.nowhere(np.ascontiguousarray(where.hidden_sites.T / extent))
    best = fitted[0]
    gaps = gaps_around(alone.process(best.kernel, best.marginal), best.theta, sample, rows)
    near, far, moments = [], [], []
    for candidate in fitted:
        own = replace(alone, structures=candidate.structures)
        process = own.process(candidate.kernel, candidate.marginal)
        conditioned = own.part(process, candidate.theta, None).condition(process, candidate.theta)
        law = candidate.marginal
        near.append(scores(conditioned.leave_one_out(), law, where.values))
        far.append(scores(conditioned.left_out(rows, gaps), law, where.values))
        moments.append(conditioned.moments(targets))
    return Tried(
        np.array([c.aic for c in fitted]),
        near,
        far,
        np.stack([m.mean for m in moments]),
        np.sqrt(np.stack([m.variance for m in moments])),
        tuple(c.marginal for c in fitted),
        where.hidden,
    )


def plain_stack(log_densities: FloatArray, steps: int = 1000) -> FloatArray:
    """Return the weights of the mixture with the largest likelihood of left-out values."""
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(steps):
        shares = densities * weights
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


def least(each: Iterable[float]) -> FloatArray:
    """Give all weight to the candidate with the least of these."""
    values = np.array(list(each))
    return np.eye(values.size)[int(np.argmin(values))]


def equal(found: Tried) -> FloatArray:
    """Give each candidate the same weight."""
    return np.full(found.aic.size, 1.0 / found.aic.size)


def in_hindsight(found: Tried) -> FloatArray:
    """Pick what predicts best what is hidden: no rule can know it."""
    one = np.eye(found.aic.size)
    return least(found.mixture(w).crps(found.hidden).mean() for w in one)


RULES: dict[str, Callable[[Tried], FloatArray]] = {
    BEFORE: lambda t: np.eye(t.aic.size)[0],
    "pick by AIC, two structures too": lambda t: least(t.aic),
    "pick by leave-one-out": lambda t: least(s.crps.mean() for s in t.alone),
    "pick by gaps": lambda t: least(s.crps.mean() for s in t.gaps),
    "equal weights": equal,
    "Akaike weights": lambda t: akaike_weights(t.aic),
    "stacking alone": lambda t: plain_stack(t.left_out()),
    "stacking towards equal weights": lambda t: stack(t.left_out(), equal(t)),
    CHOSEN: lambda t: stack(t.left_out(), akaike_weights(t.aic)),
    "best in hindsight": in_hindsight,
}
