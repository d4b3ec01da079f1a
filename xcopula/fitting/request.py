"""The options of a fit: checked before any work, then carried through its steps."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcopula.arguments import check_flag, check_integer
from xcopula.fitting.defaults import Support, default_kernel, is_flexible
from xcopula.fitting.select import Options, kernel_options, marginal_options
from xcopula.kernels import Nested, TaskKernel
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
    "Request",
    "as_names",
    "check_names",
    "check_structures",
    "check_supports",
]

_AUTO = "auto"
# Ends beyond this are too large to compute with.
_FARTHEST = 1e150


@dataclass(frozen=True)
class Request:
    """The options of a fit.

    Attributes
    ----------
    method : Method
    solver : Solver or None
        None to choose one by the sizes of the sub-models.
    laws : tuple of Law or Options
        Marginal law of each variable, or those to select from.
    kernels : tuple of Kernel, Nested, Options or None
        Kernel of each variable, or of each of its structures, or those to select from; None for
        the default of the coordinates.
    coupling, noise : str
        Of the covariance.
    structures : int or None
        Number of nested structures; None for the default of the coordinates, until the data are
        known.
    restarts, seed : int
    max_hours : float or None
    uncertainty : str
        How parameter uncertainty enters predictions.
    ticket : int
        Of a fit that is under way; 0 for one that is recorded.
    anisotropy : tuple of bool
        Whether ranges differ by direction in each group of coordinates.
    censored : tuple of Rule
        Which values of each variable are intervals.
    replicates : bool
        Whether a site may have several values of a variable.
    support : tuple
        The ends of the values that each variable can have; None where there are none.
    """

    method: Method
    solver: Any
    laws: tuple[Law | Options[Law], ...]
    kernels: tuple[TaskKernel | Options[TaskKernel] | None, ...]
    coupling: str
    structures: int | None
    noise: str
    restarts: int
    seed: int
    max_hours: float | None
    uncertainty: str = "plugin"
    ticket: int = 0
    anisotropy: tuple[bool, ...] = ()
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
        uncertainty: str,
        restarts: int,
        seed: int,
        max_hours: float | None,
        censored: object = AUTO,
        replicates: bool = False,
        support: object = None,
    ) -> Request:
        """Check the options of a fit of some variables, and resolve their names."""
        _check_choice("coupling", coupling, COUPLINGS)
        _check_choice("noise", noise, NOISES)
        resolved = resolve_method(method)
        coupling = resolved.coupling or coupling
        task_kernels = _by_variable("kernels", kernels, names, kernel_options)
        return cls(
            method=resolved,
            solver=resolve_solver(solver),
            # A copy of a law that was given: a model closes its arrays.
            laws=_laws(
                resolved, copy.deepcopy(_by_variable("marginals", marginals, names, _marginal))
            ),
            kernels=_shared(coupling, [simplest(k) for k in task_kernels]),
            coupling=coupling,
            structures=_structures(structures, task_kernels),
            noise=noise,
            uncertainty=check_uncertainty(uncertainty),
            restarts=check_integer("restarts", restarts),
            seed=check_integer("seed", seed),
            max_hours=max_hours,
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
        if self.method.law is not None and any(self.support):
            raise ValueError(
                f"`support` cuts laws off, but method={self.method.name!r} takes "
                f"{self.method.law} marginals only. Leave it out, or choose another method."
            )
        # Kernels that cannot stand together end a fit here.
        options = [self.kernel_options(i) for i in range(len(self.kernels))]
        common = [k for k in options[0] if all(k in several for several in options)]
        if self.coupling != "convolution" and common:
            options = [tuple(common)] * len(options)
        for k in range(max(map(len, options))):
            kernels = [several[k % len(several)] for several in options]
            self.covariance(kernels, (InputGroup(1),), self.structures or _count(kernels))

    def kernel_options(self, task: int) -> tuple[TaskKernel, ...]:
        """Return the kernels that a variable may have: one, unless they are to be selected."""
        kernel = self.kernels[task]
        if kernel is None:
            return (default_kernel(self.structures or 1),)
        return kernel.several if isinstance(kernel, Options) else (kernel,)

    def law_options(self, task: int) -> tuple[Law, ...]:
        """Return the laws that a variable may have: one, unless they are to be selected."""
        law = self.laws[task]
        return law.several if isinstance(law, Options) else (law,)

    @property
    def named_laws(self) -> tuple[Law | None, ...]:
        """The law of each variable, None where it is to be selected: these vary with no fields."""
        return tuple(None if isinstance(law, Options) else law for law in self.laws)

    def selects(self, task: int) -> bool:
        """Tell whether the law or the kernel of a variable is to be selected."""
        return isinstance(self.laws[task], Options) or isinstance(self.kernels[task], Options)

    def covariance(
        self, kernels: Sequence[TaskKernel], groups: Sequence[InputGroup], structures: int
    ) -> Covariance:
        """Return the covariance of some tasks with these kernels, on these columns."""
        return Covariance(tuple(kernels), tuple(groups), self.coupling, structures, self.noise)

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Whether values of each variable are surely numbers: its law is known to have no atom."""
        plain = Marginal.__dict__["atom"]
        supports = self.support or (None,) * len(self.laws)
        return tuple(
            law.atom is None
            if isinstance(law, Marginal)
            else isinstance(law, type)
            and inspect.getattr_static(law, "atom") is plain
            and stated is None
            and not is_flexible(law)
            for law, stated in zip(self.laws, supports, strict=True)
        )


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
    if any(_FARTHEST < abs(end) < np.inf for end in (lower, upper)):
        raise ValueError(
            f"`support` must have ends below {_FARTHEST:g}, or None for an open end, found "
            f"{shown(given)}."
        )
    return lower, upper


def _structures(given: object, kernels: Sequence[object]) -> int | None:
    """Return a number of structures, or None for the default of the coordinates.

    Lists of kernels have one for each structure: they say how many there are, or must agree.
    """
    lists = [kernel for kernel in kernels if isinstance(kernel, Nested)]
    if isinstance(given, str):
        if given != _AUTO:
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
    resolved = []
    for name, value in zip(names, each, strict=True):
        try:
            resolved.append(resolve(value))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"`{what}` of {name!r}: {error}") from None
    return resolved


def _marginal(spec: Any) -> Any:
    """Return the law that a specification stands for, or those to select from."""
    options = marginal_options(spec)
    return resolve_marginal(spec) if options is None else options


def _shared(coupling: str, kernels: list[Any]) -> tuple[Any, ...]:
    """Give all variables the kernel that one was given, where the coupling shares it."""
    named = {k for k in kernels if k is not None}
    if coupling == "convolution" or len(named) != 1:
        return tuple(kernels)
    return tuple(named) * len(kernels)


def _count(kernels: Sequence[TaskKernel]) -> int:
    """Return the number of structures that kernels have."""
    return max(len(k.families) if isinstance(k, Nested) else 1 for k in kernels)


def _laws(method: Method, laws: list[Any]) -> tuple[Any, ...]:
    """Give the law that a method asks for to the variables of the default one."""
    for law in laws:
        if isinstance(law, Marginal) and law.fields:
            raise TypeError(
                f"The law {law.name!r} was fitted to the fields of other data. Give the recipe "
                "`regress(...)` or `by(...)` instead, and it is fitted to these."
            )
    only = method.law
    if only is None:
        return tuple(laws)
    family = resolve_marginal(only)
    other = {_name(law) for law in laws if not is_flexible(law) and _name(law) != only}
    if other:
        raise ValueError(
            f"method={method.name!r} takes {only} marginals only, found {sorted(other)}. "
            "Leave `marginals` out, or choose another method."
        )
    return tuple(_of_family(family, law) if is_flexible(law) else law for law in laws)


def _of_family(family: Any, law: Any) -> Law:
    """Return a law of the default family as one of another family."""
    replaced: Law = law.with_family(family) if isinstance(law, Recipe) else family
    return replaced


def _name(law: Any) -> str:
    """Return the name of the family of a law, or of what it is selected from."""
    return str(law.family.name if isinstance(law, Recipe) else law.name)
