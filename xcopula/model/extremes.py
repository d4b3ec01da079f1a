"""Laws that do not fit their values: warn of what predictions suffer from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from xcopula.arrays import FloatArray
from xcopula.errors import MarginalWarning
from xcopula.marginals import Marginal
from xcopula.marginals.varying import innermost
from xcopula.warn import warn_user

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["EXTREME_SCORE", "extreme_score", "warn_of_extreme", "warn_of_laws"]

# A value further out than this many standard deviations distorts predictions near it. Of very many
# values chance puts some there: then what it does so often at most is not extreme.
EXTREME_SCORE = 5.0
_CHANCE = 0.01
# Standard deviation of a variable's normal scores, which is one if its law is that of its values.
_NARROWEST = 0.2


def extreme_score(size: int) -> float:
    """Return how many standard deviations out the largest of so many values is extreme."""
    return max(EXTREME_SCORE, float(-ndtri(0.5 * _CHANCE / max(size, 1))))


def warn_of_extreme(name: str, law: Marginal, values: FloatArray, z: FloatArray) -> None:
    """Warn of the value with the most extreme normal score, of those of a variable."""
    worst = int(np.argmax(np.abs(z)))
    if abs(z[worst]) > extreme_score(z.size):
        warn_user(
            f"Under the {law.name} law of {name!r} its value {values[worst]:g} lies "
            f"{z[worst]:+.1f} standard deviations out, which distorts predictions near it. "
            f"Use a law with heavier tails ({_heavier(law, values)}), or mask the value.",
            MarginalWarning,
        )


def _heavier(law: Marginal, values: FloatArray) -> str:
    """List marginals with heavy tails, but not the one in use."""
    family = innermost(law).name
    names = ["flexible", "gev", "t", "parzen"]
    if values.min() > 0.0:
        names.insert(1, "lognormal")
    *first, last = [repr(name) for name in names if name != family]
    return f"{', '.join(first)} or {last}"


def warn_of_laws(model: CopulaModel) -> None:
    """Warn of a law that calls a value next to impossible, or all its values nearly the same."""
    sample = model.observations.sample
    laws = model.process.laws(model.theta, sample)
    scores = model.process.scores(model.theta, sample)
    for i, (name, law) in enumerate(zip(model.tasks, laws, strict=True)):
        values, z = sample.values[sample.task(i)], scores[sample.task(i)]
        spread = float(z.std())
        if spread < _NARROWEST:
            warn_user(
                f"The fitted law of {name!r} is {1.0 / spread:.0f} times wider than its values: "
                "the model takes them for a short piece of a process of much longer range. Between "
                "the data this does little harm. Outside their extent, do not trust the "
                "predictions. Describe the trend of the values by `regress`, `by` or `cycle`, or "
                "use `structures=2`.",
                MarginalWarning,
            )
        exact = ~sample.is_interval[sample.task(i)]
        if exact.any():
            warn_of_extreme(name, law, values[exact], z[exact])
