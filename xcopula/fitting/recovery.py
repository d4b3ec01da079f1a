"""What is left of a fit that was interrupted: a model at the best parameters so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xcopula.errors import FitInterrupted
from xcopula.fitting.maximise import Fit
from xcopula.fitting.newton import Optimum
from xcopula.fitting.request import Request
from xcopula.fitting.together import Together, begin_together
from xcopula.fitting.watch import Best
from xcopula.labels.observations import Observations
from xcopula.model import CopulaModel
from xcopula.model.selection import Alternative
from xcopula.progress.run import Run, clock_time

__all__ = ["interruption"]

Assemble = Callable[[Observations, Request, tuple[Alternative, ...], Fit], CopulaModel]


def interruption(best: Best, run: Run, assemble: Assemble) -> FitInterrupted:
    """Return the exception that ends a fit, with the model that it had reached.

    The model is made when it is asked for, which takes one evaluation of the likelihood: whoever
    interrupts a fit does not want to wait.
    """
    reached = (
        f"The fit was interrupted after {clock_time(run.seconds)}, when {run.done} of {run.total} "
        "steps were done."
    )
    if best.given is None:
        return FitInterrupted(
            f"{reached} No model was reached: there is one as soon as every variable has been "
            "fitted alone."
        )
    given, pairs, whole = best.given, dict(best.pairs), best.whole
    evaluations = best.evaluations

    def make() -> CopulaModel:
        observations, request, singles, alternatives = given
        process, theta = whole or begin_together(
            observations, request, singles, pairs, apart=request.method.pairwise
        )
        optimum = Optimum(theta, np.nan, False, "it was interrupted", evaluations)
        # Solvers that choose neighbours choose those that suit these parameters.
        fitted = Together(observations.sample, request, settled=True).judge(process, optimum)
        return assemble(observations, request, alternatives, fitted)

    if whole is not None:
        at = f"all variables together, log posterior {best.log_posterior:.2f}"
    elif pairs:
        names = given[0].names
        at = "pairs of " + " and ".join([names[0], ", ".join(names[i] for i in sorted(pairs))])
    else:
        at = "as step one suggests them"
    return FitInterrupted(
        f"{reached} The best parameters so far ({at}) can be kept: catch it with `except "
        "KeyboardInterrupt as stop` and take `stop.model`; at a prompt, `sys.last_value.model`.",
        make,
    )
