"""What a solver is: how one Gaussian sample is evaluated and conditioned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from xcopula.arrays import FloatArray, IntArray
from xcopula.process import Moments, Process, Sample, Targets
from xcopula.solvers.cost import Cost

__all__ = [
    "Conditioned",
    "Gaussian",
    "Informed",
    "Joint",
    "LeavesOut",
    "Sequential",
    "Solver",
]


class Informed(NamedTuple):
    """An objective with second derivatives.

    Attributes
    ----------
    value : float
        The negative log-likelihood.
    gradient : ndarray (p,)
    information : ndarray (p, p), optional
        The average or expected information; None where the value is infinite.
    """

    value: float
    gradient: FloatArray
    information: FloatArray | None


class Conditioned(Protocol):
    """A process conditioned on a sample: what every method and every solver gives.

    Any task can be asked for; the first is the primary. With ``nugget`` the process is that of an
    observation, which at a site where the task was observed is the datum itself; without, it is
    the smooth signal.
    """

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets (m)."""

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean (m,) alone, at less cost than both where that is possible."""

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) that other scores (k, n) in place of the data's would give.

        The mean is linear in the scores. Draws and new data are conditioned by it.
        """

    def leave_one_out(self) -> Moments:
        """Return the moments (n,) of each observation's score given all others."""

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""


@runtime_checkable
class LeavesOut(Protocol):
    """A conditioned process that can leave out more than one observation at a time."""

    def left_out(self, rows: IntArray, without: Iterable[IntArray]) -> Moments:
        """Return the moments (r,) of some observations' scores, each given all but some others.

        Parameters
        ----------
        rows : ndarray (r,)
            Numbers of observations.
        without : iterable of ndarray
            For each, the numbers of those that are left out beside itself. It is gone through in
            order, by each sub-model anew, and few of them are held at a time.
        """


@runtime_checkable
class Gaussian(Conditioned, LeavesOut, Protocol):
    """One Gaussian sample, conditioned by a solver: the means of other methods build on it."""

    @property
    def sample(self) -> Sample:
        """The observations."""

    @property
    def scores(self) -> FloatArray:
        """Their normal scores (n,)."""

    @property
    def extra(self) -> FloatArray | None:
        """Variances (n,) of what stands in for intervals, zero for numbers; None if all are."""

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of the covariance, zero as a rule."""

    def means_of(self, scores: FloatArray) -> Callable[[Targets, int, bool], FloatArray]:
        """Return :meth:`means` of scores (k, n) as a function of targets, task and nugget."""

    def with_scores(self, scores: FloatArray) -> Gaussian:
        """Return the same process, conditioned on other scores (n,) at the same sites."""

    def prior_variance(self, *, task: int = 0, nugget: bool = True) -> float:
        """Return the variance of a task before any data."""

    def solve(self, rows: FloatArray) -> FloatArray:
        """Return rows (k, n) times the inverse of the covariance of the data."""


@runtime_checkable
class Joint(Gaussian, Protocol):
    """A Gaussian sample that knows the joint law of several targets."""

    def whiten(
        self, targets: Targets, *, task: int = 0, nugget: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean (m,), and rows (m, r) whose products are the covariance explained."""

    def prior(
        self, targets: Targets, others: Targets, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the prior covariance (m, k) of a task at targets and at other points."""

    def correlation(
        self, targets: Targets, tasks: tuple[int, int], *, nugget: bool = True
    ) -> FloatArray:
        """Return the correlation (m,) of two tasks at targets given the data; 0 where known."""


class Solver(Protocol):
    """How one Gaussian sample is evaluated and conditioned: a frozen object with its own options.

    A *structure* is what a solver makes of a sample once, such as lists of neighbours, and again
    when length scales are known; it does not depend on the marginal laws.

    Attributes
    ----------
    name : str
        As users ask for it.
    mean_is_cheaper : bool
        Whether the mean alone costs much less than mean and variance.
    """

    name: ClassVar[str]
    mean_is_cheaper: ClassVar[bool]

    def prepare(self, process: Process, theta: FloatArray, sample: Sample) -> Any:
        """Return the structure of a sample, made for parameters near theta."""

    def objective(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient.

        Infinite, with a zero gradient, where a value has no density under its law.
        """

    def information(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> Informed:
        """Return the objective with its information matrix, from one pass."""

    def condition(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> Gaussian:
        """Condition the process at theta on a sample."""

    def cost(self, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Estimate an evaluation from the number of observations of each task.

        An entry of the covariance is made of so many correlations: groups times structures.
        """


@runtime_checkable
class Sequential(Solver, Protocol):
    """A solver whose likelihood is a product of terms, one for each observation.

    Those of the first task are those of that task alone. So a likelihood of a task given the first
    is a part of the terms, and some of the terms can stand for all.
    """

    def prepare(self, process: Process, theta: FloatArray, sample: Sample, given: int = 0) -> Any:
        """Return the structure of a sample; terms of tasks that are ``given`` do not count."""

    def adapts(self, process: Process) -> bool:
        """Tell whether the structure depends on the length scales."""

    def subset(
        self, process: Process, theta: FloatArray, sample: Sample, terms: int, given: int = 0
    ) -> tuple[Sample, Any]:
        """Return a smaller sample with the structure of about so many terms that stand for all."""
