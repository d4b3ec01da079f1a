"""What laws that are made of others share, and those that vary from observation to observation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import Array

__all__ = ["Composed", "Varying", "innermost"]


class Composed(Marginal):
    """A law that is made of another one, or of several of one family."""

    @property
    @abstractmethod
    def inner(self) -> Marginal:
        """One of the laws that it is made of, which has the properties of the family."""

    # Class variables of a family; here they follow from what the law is made of.
    @property
    @abstractmethod
    def name(self) -> str:  # type: ignore[override]
        """The family and what is made of it, such as "gamma ~ elevation"."""

    @property
    def link(self) -> str:  # type: ignore[override]
        """Link of the family."""
        return self.inner.link

    @property
    def needs(self) -> str:  # type: ignore[override]
        """What the family needs."""
        return self.inner.needs

    @property
    def includes_lower_end(self) -> bool:  # type: ignore[override]
        """Whether the lower end of the support belongs to it."""
        return self.inner.includes_lower_end

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """What to do about values that the family does not admit."""
        return self.inner.remedy

    @property
    def atom(self) -> float | None:
        """The value that has a probability of its own, if it has one in the family."""
        return self.inner.atom

    @property
    def parts(self) -> list[slice]:
        """The parts of what it is made of; parameters of its own affect all values."""
        parts = self.inner.parts
        return parts if len(parts) > 1 else [slice(0, self.theta.size)]


def innermost(law: Marginal) -> Marginal:
    """Return what a law is made of in the end: of some family, and the same for all rows."""
    while isinstance(law, Composed):
        law = law.inner
    return law


class Varying(Composed):
    """A law that depends on the covariates of each row.

    Its parameters need no rows, but values and scores do: see :meth:`Marginal.at`.
    """

    @classmethod
    def fit(cls, values: npt.ArrayLike) -> Self:
        """Raise: covariates are needed too."""
        raise NotImplementedError(
            f"{cls.__name__} cannot be fitted to values alone. Use xcopula.marginals.regress(...) "
            "or by(...), and fit what they return."
        )

    def _rows(self, covariates: npt.ArrayLike) -> Array:
        """Return the covariates as an array (n, c) after a check of its shape."""
        rows = np.asarray(covariates, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.fields):
            names = ", ".join(self.fields)
            raise ValueError(
                f"{self.name} needs covariates of shape (n, {len(self.fields)}), with the columns "
                f"{names}; found shape {rows.shape}."
            )
        return rows

    def _unbound(self) -> ValueError:
        names = ", ".join(self.fields)
        return ValueError(
            f"{self.name} varies with {names} and needs rows of them. Call .at(covariates) first, "
            f"with the columns {names}."
        )
