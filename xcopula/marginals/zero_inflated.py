"""The recipe for a law with zeros, before it is fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal
from xcopula.marginals.families import MARGINALS
from xcopula.marginals.inflation import NEGATIVE, ZeroInflated, inflated_name
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.recipe import Labels, Recipe, ingredient
from xcopula.marginals.regress import Regress
from xcopula.marginals.tails import Array

__all__ = ["Inflate", "with_zeros", "zero_inflated"]


@dataclass(frozen=True)
class Inflate(Recipe):
    """A recipe for a :class:`~xcopula.marginals.inflation.ZeroInflated`; see `zero_inflated`.

    Attributes
    ----------
    follows : bool
        Whether the probability of zero follows the covariates of a regression.
    """

    follows: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """The covariates of the values above zero."""
        return self.law.fields if isinstance(self.law, Recipe) else ()

    @property
    def name(self) -> str:
        """The law of the values above zero, and that zero has a probability."""
        return inflated_name(self.law.name)

    @property
    def includes_lower_end(self) -> bool:
        """Zero has a probability of its own."""
        return True

    @property
    def zeros_follow(self) -> bool:
        """Whether the probability of zero follows the covariates of a regression."""
        return self.follows

    @property
    def remedy(self) -> str:
        """What to do about negative values."""
        return NEGATIVE

    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        wet = y > 0.0
        different = np.unique(y[wet]).size
        if different < 2:
            raise ValueError(
                f"{self.name} needs at least two different values above zero, found {different} "
                f"in a sample of {y.size}. No law can be fitted to a variable that is always "
                "zero: leave it out."
            )
        if self.keys:  # a group that is always zero has a number too
            known = tuple(str(g) for g in range(int(table[:, 0].max()) + 1))
            labels = {self.keys[0]: known, **labels}
        base = self._fit_inner(y[wet], table[wet], labels, residuals=False)
        if not base.support[0] >= 0.0:
            raise SupportError(
                f"{self.name}: the law of the values above zero gives negative values a "
                f"probability. {_CHOOSE}"
            )
        # the maximum of the likelihood with the weak prior
        return ZeroInflated(base, float((y.size - wet.sum() + 0.5) / (y.size + 1.0)))


def _is_positive(family: type[Marginal] | None) -> bool:
    """Tell whether a family is one of positive values, if it is fitted to such."""
    return family is not None and (family.link == "log" or issubclass(family, Parzen))


_POSITIVE = ", ".join(repr(name) for name, family in MARGINALS.items() if _is_positive(family))
_CHOOSE = f"Choose one of {_POSITIVE}, or 'auto'."


def zero_inflated(
    law: str | type[Marginal] | Recipe | Marginal = "lognormal",
    *,
    p0: float | None = None,
    follows: bool = True,
) -> Recipe | ZeroInflated:
    """Describe a law with a probability of its own for zero, such as that of daily rain.

    Parameters
    ----------
    law : str, Marginal, type of Marginal or recipe
        The law of the values above zero: one of positive values. "auto" chooses a family.
        ``regress(...)`` lets them follow covariates, and the probability of zero too; it is the
        same as ``regress(zero_inflated(...))``. ``by(...)`` gives them a law for each group, and
        all groups the same probability of zero, whatever they follow. The other way round,
        ``by(key, zero_inflated(...))``, each group has its own.
    p0 : float, optional
        The probability of zero to start from, where the law is an instance; 0.5 by default. It is
        fitted to the values in any other case.
    follows : bool
        Whether the log odds of zero follow the covariates of ``regress(...)``. False keeps the
        probability one number.

    Returns
    -------
    Inflate, Regress of it, or ZeroInflated if the law is an instance

    Raises
    ------
    ValueError
        If a name is unknown, or the law is not one of positive values.
    TypeError
        If the law is anything else.

    Examples
    --------
    >>> zero_inflated("gamma").name
    'zero-inflated gamma'
    """
    if isinstance(law, Marginal):
        return ZeroInflated(law, 0.5 if p0 is None else p0)
    if p0 is not None:
        raise ValueError(
            f"`p0` is fitted to the values, found {p0!r}. Leave it out, or give an instance of a "
            "law with parameters to start from, such as Gamma(2.0, 3.0)."
        )
    inner = ingredient(law, "zero_inflated")
    if isinstance(inner, Recipe) and inner.includes_lower_end:
        raise ValueError(f"zero_inflated cannot contain another, found {inner.name!r}. Use one.")
    if isinstance(inner, Regress) and inner.own_link == "identity":
        raise ValueError(
            "zero_inflated needs positive values, and a trend that is added does not keep them "
            "so. Give `regress` no `link`, or 'log'."
        )
    # what follows covariates is one law, whichever way it is written
    trend = inner if isinstance(inner, Regress) else None
    own = Inflate(inner if trend is None else trend.law, follows)
    recipe: Recipe = own if trend is None else replace(trend, law=own, own_link="log")
    family = recipe.family
    if family is not None and family in MARGINALS.values() and not _is_positive(family):
        raise ValueError(
            f"zero_inflated needs a law of positive values, found {family.name!r}. {_CHOOSE}"
        )
    return recipe


def with_zeros(law: type[Marginal] | Recipe) -> Recipe | None:
    """Return a law of some family with a probability of zero; None if there is no such law.

    Groups have a probability each.
    """
    if not isinstance(law, Recipe):
        return Inflate(law) if _is_positive(law) else None
    if law.includes_lower_end:
        return law
    assert law.law is not None
    inner = with_zeros(law.law)
    if inner is None:
        return None
    if isinstance(law, Regress):
        return None if law.own_link == "identity" else replace(law, law=inner, own_link="log")
    return replace(law, law=inner)
