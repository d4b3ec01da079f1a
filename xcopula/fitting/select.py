"""The report's first step, on request: the marginal and the kernel of each variable alone, by AIC.

The marginals are compared under one kernel, then the kernels under the best marginal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from xcopula.errors import NotPositiveDefiniteError, SupportError
from xcopula.fitting.alone import Alone
from xcopula.fitting.defaults import ROUGH
from xcopula.fitting.maximise import Fit
from xcopula.kernels import KERNELS, TaskKernel, resolve_kernel, resolve_kernels
from xcopula.marginals import MARGINALS, Law, Marginal, Recipe
from xcopula.marginals import resolve as resolve_marginal
from xcopula.model.selection import Alternative

__all__ = [
    "Options",
    "agree",
    "kernel_options",
    "marginal_options",
    "select",
    "tabulate",
]

T = TypeVar("T")

_SELECT = "select"
# The marginals of the report.
_REPORT = ("normal", "lognormal", "exponential", "gev", "gamma", "t", "parzen")


@dataclass(frozen=True)
class Options(Generic[T]):
    """What a variable's marginal or kernel is selected from.

    Attributes
    ----------
    several : tuple
    """

    several: tuple[T, ...]

    @property
    def name(self) -> str:
        """The name of the procedure."""
        return _SELECT


def marginal_options(spec: Any) -> Options[Law] | None:
    """Return the marginals that a specification selects from, None if it names one."""
    if isinstance(spec, str) and spec == _SELECT:
        return Options(tuple(MARGINALS[name] for name in _REPORT))
    if isinstance(spec, list | tuple | set | frozenset):
        laws = _resolved(spec, resolve_marginal)
        varying = [law.name for law in laws if isinstance(law, Recipe)]
        if varying:
            raise TypeError(
                f"A list of marginals is selected from, and these vary with fields: {varying}. "
                "Give one of them alone, or compare by `cross_validate`."
            )
        return Options(laws)
    return None


def kernel_options(spec: Any) -> TaskKernel | Options[TaskKernel] | None:
    """Return a kernel, those that a specification selects from, or None for "auto".

    A list has a kernel for each structure; a set has no order, and is selected from.
    """
    if isinstance(spec, str) and spec == "auto":
        return None
    if isinstance(spec, str) and spec == _SELECT:
        # Marginals are compared under the first.
        others = [kernel for kernel in KERNELS.values() if kernel != ROUGH]
        return Options((ROUGH, *others))
    if isinstance(spec, set | frozenset):
        return Options(_resolved(spec, resolve_kernel))
    return resolve_kernels(spec)


def _resolved(names: Any, resolve: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return what names stand for, in a fixed order."""
    ordered = sorted(names, key=str) if isinstance(names, set | frozenset) else list(names)
    if not ordered:
        raise ValueError("There must be at least one name to select from, found none.")
    return tuple(map(resolve, ordered))


def select(
    alone: Alone,
    kernels: Sequence[TaskKernel],
    laws: Sequence[Law],
    start: Callable[[Law], Marginal],
) -> tuple[Fit, ...]:
    """Fit a variable alone with each marginal, then with each kernel, and return the best first.

    Parameters
    ----------
    alone : Alone
        The variable.
    kernels, laws : sequence
        What is compared.
    start : callable
        Fits a law to the values, as if independent.

    Raises
    ------
    SupportError
        If no marginal admits the values.
    NotPositiveDefiniteError
        If no covariance could be factorised.
    """
    singles: list[Fit] = []
    failures: list[Exception] = []
    for law in laws:
        try:
            marginal = start(law)
        except SupportError as error:
            failures.append(error)
            continue
        _try(alone, kernels[0], marginal, singles, failures)
    if not singles:
        raise failures[0]
    best = min(singles, key=lambda s: s.aic).marginal
    for kernel in kernels[1:]:
        _try(alone, kernel, best, singles, failures)
    return tuple(sorted(singles, key=lambda s: s.aic))


def _try(
    alone: Alone,
    kernel: TaskKernel,
    marginal: Marginal,
    singles: list[Fit],
    failures: list[Exception],
) -> None:
    """Fit one alternative; all are compared on the terms of the first, where terms are a part."""
    try:
        singles.append(alone.fit(kernel, marginal, terms_of=singles[0] if singles else None))
    except NotPositiveDefiniteError as error:  # too smooth for its sites
        failures.append(error)


def agree(tables: Sequence[Sequence[Fit]], *, shared: bool) -> tuple[Fit, ...]:
    """Return one fit of each variable: its best, or with shared kernels the best for all of them.

    Parameters
    ----------
    tables : sequence of sequence of Fit
        Of each variable, the best first.
    shared : bool
        Whether the coupling needs one kernel for all variables.
    """
    if not shared:
        return tuple(table[0] for table in tables)
    common = [k for k in _kernels(tables[0]) if all(k in _kernels(t) for t in tables)]

    def best(table: Sequence[Fit], kernel: TaskKernel) -> Fit:
        return min((s for s in table if s.kernel == kernel), key=lambda s: s.aic)

    kernel = min(common, key=lambda k: sum(best(table, k).aic for table in tables))
    return tuple(best(table, kernel) for table in tables)


def _kernels(table: Sequence[Fit]) -> list[TaskKernel]:
    return list(dict.fromkeys(single.kernel for single in table))


def tabulate(
    names: Sequence[str], tables: Sequence[Sequence[Fit]], chosen: Sequence[Fit]
) -> tuple[Alternative, ...]:
    """Return the table of what was compared, variable by variable, the best first."""
    return tuple(
        Alternative(
            variable=name,
            kernel=single.kernel.name,
            marginal=single.marginal.name,
            log_likelihood=single.log_likelihood,
            aic=single.aic,
            selected=single is best,
        )
        for name, table, best in zip(names, tables, chosen, strict=True)
        for single in table
    )
