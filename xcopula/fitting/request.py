"""What is asked of a fit: checked before any work, then carried through its steps."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.arguments import check_flag, check_integer
from xcopula.fitting.optimiser import OPTIMIZERS
from xcopula.fitting.suitability import Support
from xcopula.kernels import KERNELS, Nested, TaskKernel, resolve_kernels
from xcopula.kernels.covariance import COUPLINGS, NOISES, Covariance, InputGroup
from xcopula.kernels.nested import check_count, simplest
from xcopula.labels.censoring import AUTO, Rule, rules_of
from xcopula.labels.names import check_variables
from xcopula.labels.observations import Observations
from xcopula.marginals import Law, Marginal, Recipe
from xcopula.marginals import resolve as resolve_marginal
from xcopula.methods import Method, resolve_method
from xcopula.model.uncertainty import check_uncertainty
from xcopula.solvers import resolve_solver
from xcopula.warn import shown

__all__ = [
    "Callback",
    "Request",
    "as_names",
    "check_names",
    "check_structures",
    "check_supports",
    "check_thin",
]

FloatArray = npt.NDArray[np.float64]
Callback = Callable[[int, float, FloatArray], object]

# What is left to choose.
_OPEN = "auto"


@dataclass(frozen=True)
class Request:
    """What was asked of a fit.

    Attributes
    ----------
    method : Method
    solver : Solver or None
        None to choose one by the sizes of the sub-models.
    laws : tuple
        Marginal law of each variable; None to choose one.
    kernels : tuple
        Kernel of each variable, or of each of its structures; None to choose one.
    coupling, noise : str
        Of the covariance.
    structures : int or None
        Number of nested structures; None to choose it.
    optimizer : str
    restarts, seed : int
    max_hours : float or None
    callback : callable, optional
    uncertainty : str
        How parameter uncertainty enters predictions.
    other_coupling : bool
        Whether another coupling may compete for a share of the predictions.
    ticket : int
        Of a fit that is under way; 0 for one that is recorded.
    anisotropy : tuple
        Whether ranges differ by direction in each group of coordinates; None to find out.
    censored : tuple of Rule
        How it is told of each variable which values are known as intervals.
    replicates : bool
        Whether a site may have several values of a variable.
    support : tuple
        The ends of the values that each variable can have; None where nothing was stated.
    """

    method: Method
    solver: Any
    laws: tuple[Law | None, ...]
    kernels: tuple[TaskKernel | None, ...]
    coupling: str
    structures: int | None
    noise: str
    optimizer: str
    restarts: int
    seed: int
    max_hours: float | None
    callback: Callback | None
    uncertainty: str = "plugin"
    other_coupling: bool = False
    ticket: int = 0
    anisotropy: tuple[bool | None, ...] = ()
    censored: tuple[Rule, ...] = ()
    replicates: bool = False
    support: tuple[Support, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        method: object,
        solver: object,
        marginals: object,
        kernels: object,
        coupling: str,
        structures: int | str,
        noise: str,
        optimizer: str,
        uncertainty: str,
        restarts: int,
        seed: int,
        max_hours: float | None,
        callback: Callback | None,
        censored: object = AUTO,
        replicates: bool = False,
        support: object = None,
    ) -> Request:
        """Check the options of a fit of some variables, and resolve their names."""
        _check_choice("coupling", coupling, (_OPEN, *COUPLINGS))
        _check_choice("noise", noise, NOISES)
        _check_choice("optimizer", optimizer, tuple(OPTIMIZERS))
        chosen = resolve_method(method)
        free = coupling == _OPEN and chosen.coupling is None
        shared = chosen.coupling or (COUPLINGS[0] if free else coupling)
        named = _by_variable("kernels", kernels, names, resolve_kernels)
        number = _structures(structures, named)
        return cls(
            method=chosen,
            solver=resolve_solver(solver),
            # A copy of a law that was given: a model closes its arrays.
            laws=_laws(
                chosen, copy.deepcopy(_by_variable("marginals", marginals, names, resolve_marginal))
            ),
            kernels=_shared(shared, [k and simplest(k) for k in named]),
            coupling=shared,
            other_coupling=free,
            structures=number,
            noise=noise,
            optimizer=optimizer,
            uncertainty=check_uncertainty(uncertainty),
            restarts=check_integer("restarts", restarts),
            seed=check_integer("seed", seed),
            max_hours=max_hours,
            callback=callback,
            censored=rules_of(censored, names),
            replicates=check_flag("replicates", replicates),
            support=check_supports(support, names),
        )

    def __post_init__(self) -> None:
        hours = self.max_hours
        if isinstance(hours, bool) or not isinstance(hours, int | float | np.number | None):
            raise TypeError(f"`max_hours` must be a number of hours or None, found {hours!r}.")
        if hours is not None and not hours > 0.0:
            raise ValueError(f"`max_hours` must be positive, found {hours!r}. None sets no limit.")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"`callback` must be a function or None, found {shown(self.callback)}.")
        if self.method.law is not None and any(self.support):
            raise ValueError(
                f"`support` cuts laws off, but method={self.method.name!r} takes "
                f"{self.method.law} marginals only. Leave it out, or choose another method."
            )
        given = tuple(k for k in self.kernels if k)
        for some in self._possible(given):
            Covariance(some, (InputGroup(1),), self.coupling, self.structures or 1, self.noise)

    def _possible(self, given: tuple[TaskKernel, ...]) -> list[tuple[TaskKernel, ...]]:
        """Return kernels that may stand together once those that are left open are chosen."""
        if given and (self.coupling != "convolution" or None not in self.kernels):
            return [given]
        return [(*given, chosen) for chosen in KERNELS.values()]

    def covariance(
        self, kernels: Sequence[TaskKernel], groups: Sequence[InputGroup], structures: int
    ) -> Covariance:
        """Return the covariance of some tasks with these kernels, on these columns."""
        return Covariance(tuple(kernels), tuple(groups), self.coupling, structures, self.noise)

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Whether values of each variable are surely numbers: its law is known to have no atom."""
        plain = Marginal.__dict__["atom"]
        return tuple(
            law.atom is None
            if isinstance(law, Marginal)
            else isinstance(law, type) and inspect.getattr_static(law, "atom") is plain
            for law in self.laws
        )

    @property
    def has_candidates(self) -> bool:
        """Whether candidates may share the predictions, as something is left to choose."""
        law = self.laws[0]
        chosen = isinstance(law, Recipe) and law.family is None
        return law is None or chosen or None in self.kernels or self.other_coupling

    def progress(self) -> Callback | None:
        """Return the callback as the optimiser calls it: with what it minimises."""
        callback = self.callback
        return callback and (lambda k, value, theta: callback(k, -value, theta))


def check_names(primary: str, secondary: str | Sequence[str]) -> list[str]:
    """Return the names of all variables, the primary first."""
    others = as_names("secondary", secondary)
    (primary,) = as_names("primary", [primary])
    if primary in others:
        raise ValueError(
            f"The primary {primary!r} is also listed among the secondaries {others}. "
            "Name it once, as the primary."
        )
    if len(set(others)) < len(others):
        raise ValueError(f"A secondary is listed twice: {others}. Name it once.")
    check_variables([primary, *others])
    return [primary, *others]


def as_names(option: str, given: object) -> list[str]:
    """Return names of variables as a list: of one name, of several in any collection, of None.

    The names of a set, which has no order, are sorted.

    Raises
    ------
    TypeError
        If anything in it is no string.
    """
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    names: list[Any]
    try:
        names = [given] if isinstance(given, bytes) else list(given)  # type: ignore[call-overload]
    except TypeError:  # a number, or an array of no dimension
        names = [given]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`{option}`: names must be strings, found {shown(name)}.")
    return sorted(names) if isinstance(given, Set) else names


def check_thin(thin: Any) -> Any:
    """Return how the data are to be thinned, if all steps are whole numbers."""
    if isinstance(thin, Mapping):
        return {dim: check_integer("thin", step, least=1) for dim, step in thin.items()}
    return None if thin is None else check_integer("thin", thin, least=1)


def check_supports(given: object, names: Sequence[str]) -> tuple[Support, ...]:
    """Return the ends of the values that each variable can have, None where none are stated.

    Raises
    ------
    KeyError, TypeError, ValueError
        If a variable is unknown, or something is no pair of ends.
    """
    if isinstance(given, Mapping):
        unknown = [n for n in given if n not in names]
        if unknown:
            raise KeyError(
                f"`support` names {unknown}, but the variables of the model are {list(names)}."
            )
        return tuple(_pair(given.get(name)) for name in names)
    return (_pair(given),) * len(names)


def _pair(given: Any) -> Support:
    """Return two ends as numbers, infinite where one is None."""
    if given is None:
        return None
    ends = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    numbers = [e for e in ends if isinstance(e, int | float | np.number | None)]
    if len(ends) != 2 or len(numbers) != 2 or any(isinstance(e, bool) for e in ends):
        raise TypeError(
            f"`support` must be two numbers, of which one may be None, such as (0, None); found "
            f"{shown(given)}."
        )
    lower = -np.inf if ends[0] is None else float(ends[0])
    upper = np.inf if ends[1] is None else float(ends[1])
    if not lower < upper:
        raise ValueError(
            f"`support` must have a lower end below the upper one, found {shown(given)}."
        )
    return lower, upper


def _structures(given: object, kernels: Sequence[TaskKernel | None]) -> int | None:
    """Return a number of structures, or None where it is left open.

    Lists of kernels have one for each structure: they say how many there are, or must agree.
    """
    lists = [kernel for kernel in kernels if isinstance(kernel, Nested)]
    if isinstance(given, str):
        if given != _OPEN:
            raise ValueError(
                f"Unknown structures {given!r}. Choose 'auto', or give a whole number such as 2."
            )
        if not lists:
            return None
        if len({len(kernel.families) for kernel in lists}) > 1:
            raise ValueError(
                "`kernels`: lists must have a kernel for each structure, as many for every "
                f"variable, found {' and '.join(repr(kernel.name) for kernel in lists)}. Give "
                "lists of one length; a name stands for all structures."
            )
        number = len(lists[0].families)
    else:
        number = check_integer("structures", given, least=1)
    for kernel in lists:
        check_count(kernel, number)
    return number


def check_structures(observations: Observations, structures: int) -> None:
    """Refuse nested structures that have more parameters than a variable has values.

    Raises
    ------
    ValueError
        With both numbers.
    """
    if structures == 1:  # few values are enough for it, with the weak priors
        return
    each = 1 + len(observations.coordinates.groups)  # a share of variance, and length scales
    for name, values in zip(observations.names, observations.sample.sizes, strict=True):
        if structures * each > values:
            raise ValueError(
                f"With structures={structures} the covariance of variable {name!r} has "
                f"{structures * each} parameters, but there are only {values} values. Use at most "
                f"{max(1, values // each)} structures, or more data."
            )


def _check_choice(option: str, found: object, names: Sequence[str]) -> None:
    if not isinstance(found, str):
        raise TypeError(f"`{option}` must be one of {', '.join(names)}; found {shown(found)}.")
    if found not in names:
        raise ValueError(f"Unknown {option} {found!r}. Choose one of {', '.join(names)}.")


def _by_variable(
    what: str, spec: object, names: Sequence[str], resolve: Callable[[Any], Any]
) -> list[Any]:
    """Give each variable its own specification; None stands for "auto"."""
    if isinstance(spec, Mapping):
        unknown = [n for n in spec if n not in names]
        if unknown:
            raise KeyError(
                f"`{what}` names {unknown}, but the variables of the model are {list(names)}."
            )
        each = [spec.get(n, "auto") for n in names]
    else:
        each = [spec] * len(names)
    found = []
    for name, own in zip(names, each, strict=True):
        try:
            found.append(None if isinstance(own, str) and own == "auto" else resolve(own))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"`{what}` of {name!r}: {error}") from None
    return found


def _shared(coupling: str, kernels: list[TaskKernel | None]) -> tuple[TaskKernel | None, ...]:
    """Give all variables the kernel that one was given, where the coupling shares it."""
    given = {k for k in kernels if k is not None}
    if coupling == "convolution" or len(given) != 1:
        return tuple(kernels)
    return tuple(given) * len(kernels)


def _laws(method: Method, laws: list[Law | None]) -> tuple[Law | None, ...]:
    """Give the law that a method asks for to the variables that have none."""
    for law in laws:
        if isinstance(law, Marginal) and law.fields:
            raise TypeError(
                f"The law {law.name!r} was fitted to the fields of other data. Give the recipe "
                "`regress(...)` or `by(...)` instead, and it is fitted to these."
            )
    only = method.law
    if only is None:
        return tuple(laws)
    allowed = [_of_family(law, only) for law in laws]
    other = {law.name for law, own in zip(laws, allowed, strict=True) if law and own is None}
    if other:
        raise ValueError(
            f"method={method.name!r} takes {only} marginals only, found {sorted(other)}. "
            "Leave `marginals` out, or choose another method."
        )
    return tuple(allowed)


def _of_family(law: Law | None, only: str) -> Law | None:
    """Return a law of the only family that a method knows, or None if it is of another."""
    if law is None:
        return resolve_marginal(only)
    if isinstance(law, Recipe):
        own = [r for r in law.candidates() if r.family is not None and r.family.name == only]
        return own[0] if own else None
    return law if law.name == only else None
