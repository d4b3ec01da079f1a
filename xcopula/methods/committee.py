r"""The Bayesian committee machine: blocks of data learn alone and vote.

Each block of neighbouring sites has an exact model; all share the parameters. With
:math:`s_b^2` the variance that block b gives a cell and :math:`s_0^2` the one before any data,

.. math:: 1 / s^2 = \sum_b 1 / s_b^2 - (B - 1) / s_0^2

The likelihood is the product of the blocks'. With one block the method is the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.methods import exact
from xcopula.methods.parallel import in_parallel
from xcopula.methods.partition import by_cluster, site_numbers
from xcopula.methods.settings import Settings
from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Committee", "condition", "objective", "prepare"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FEWEST_SITES = 5


def prepare(sample: Sample, settings: Settings) -> Settings:
    """Choose the blocks once.

    Raises
    ------
    ValueError
        If a block would have fewer than five sites.
    """
    if not isinstance(settings.blocks, int):
        return settings
    blocks = tuple(index[0] for index in by_cluster(sample, settings.blocks))
    numbers = site_numbers(sample)
    smallest = min(np.unique(numbers[index]).size for index in blocks)
    if smallest < _FEWEST_SITES:
        raise ValueError(
            f"blocks={settings.blocks} leaves a block of {smallest} sites; a member of the "
            f"committee needs at least {_FEWEST_SITES}. Use fewer blocks."
        )
    return replace(settings, blocks=blocks)


def _parts(sample: Sample, settings: Settings) -> list[Sample]:
    assert isinstance(settings.blocks, tuple)
    return [sample.take(index) for index in settings.blocks]


def objective(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings
) -> tuple[float, FloatArray]:
    """Return the negative log-likelihood of independent blocks and its gradient."""
    terms = [(process, part, theta) for part in _parts(sample, settings)]
    results = in_parallel(exact.objective, terms)
    return sum(value for value, _ in results), np.sum([g for _, g in results], axis=0)


@dataclass(frozen=True)
class Committee:
    """Blocks conditioned on their data."""

    members: tuple[exact.Conditioned, ...]
    loo: Moments

    def moments(self, targets: FloatArray, *, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of the primary at targets (d, m)."""
        each = [m.moments(targets, nugget=nugget) for m in self.members]
        prior = self.members[0].prior_variance(nugget=nugget)
        return _vote([e.mean for e in each], [e.variance for e in each], prior)

    def leave_one_out(self) -> Moments:
        """Return the moments of each score of the primary given all others."""
        return self.loo

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Raise ValueError: members are blocks of data, not secondaries."""
        raise ValueError(
            "method='bcm' cannot tell what each secondary adds. Fit with method='transductive'."
        )

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        sizes = ", ".join(str(m.sample.size) for m in self.members)
        return [f"committee of {len(self.members)} blocks with {sizes} observations"]


def _vote(means: list[FloatArray], variances: list[FloatArray], prior: float) -> Moments:
    precision = np.full_like(means[0], -(len(means) - 1) / prior)
    pull = np.zeros_like(means[0])
    for mean, variance in zip(means, variances, strict=True):
        weight = 1.0 / np.maximum(variance, 1e-12)
        precision += weight
        pull += weight * mean
    return Moments(pull / precision, 1.0 / precision)


def condition(process: Process, sample: Sample, theta: FloatArray, settings: Settings) -> Committee:
    """Condition every block on its data."""
    assert isinstance(settings.blocks, tuple)
    parts = _parts(sample, settings)
    members = tuple(in_parallel(exact.condition, [(process, part, theta) for part in parts]))
    loo = Moments(np.full(sample.size, np.nan), np.full(sample.size, np.nan))
    primary = sample.task(0).stop
    for k, (index, member) in enumerate(zip(settings.blocks, members, strict=True)):
        own = index[index < primary]
        if own.size == 0:
            continue
        alone = member.leave_one_out()
        others = [m.moments(sample.inputs[:, own]) for j, m in enumerate(members) if j != k]
        voted = _vote(
            [alone.mean[: own.size], *(o.mean for o in others)],
            [alone.variance[: own.size], *(o.variance for o in others)],
            member.prior_variance(),
        )
        loo.mean[own], loo.variance[own] = voted
    return Committee(members, loo)
