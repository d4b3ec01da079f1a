"""Multi-task Gaussian copula processes for xarray.

Importing registers the ``.mtcopula`` accessor on Datasets, and what keeps dask alive in a forked
process. Everything else is loaded on first use, so that the import stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xcopula import accessor as _accessor  # noqa: F401 - registers .mtcopula
from xcopula import errors
from xcopula.forks import survive_forks as _survive_forks

if TYPE_CHECKING:
    from xcopula import datasets, kernels, marginals, methods, plot, progress, solvers, storage
    from xcopula.fitting import compare, format_comparison
    from xcopula.fitting.fit import fit
    from xcopula.fitting.score import score_tests
    from xcopula.labels.coordinates import cycle
    from xcopula.marginals import by, regress
    from xcopula.model import CopulaModel, LazyModel, load
    from xcopula.prediction import Posterior, Posteriors, predict
    from xcopula.validation import cross_validate, format_validation

_survive_forks()

__version__ = "0.1.0"

__all__ = [
    "CopulaModel",
    "LazyModel",
    "Posterior",
    "Posteriors",
    "__version__",
    "by",
    "compare",
    "cross_validate",
    "cycle",
    "datasets",
    "errors",
    "fit",
    "format_comparison",
    "format_validation",
    "kernels",
    "load",
    "marginals",
    "methods",
    "plot",
    "predict",
    "progress",
    "regress",
    "score_tests",
    "solvers",
    "storage",
]

_HOMES = {
    "CopulaModel": "xcopula.model",
    "by": "xcopula.marginals",
    "compare": "xcopula.fitting",
    "cross_validate": "xcopula.validation",
    "cycle": "xcopula.labels.coordinates",
    "format_comparison": "xcopula.fitting",
    "format_validation": "xcopula.validation",
    "LazyModel": "xcopula.model",
    "Posterior": "xcopula.prediction",
    "Posteriors": "xcopula.prediction",
    "fit": "xcopula.fitting",
    "load": "xcopula.model",
    "predict": "xcopula.prediction",
    "regress": "xcopula.marginals",
    "score_tests": "xcopula.fitting",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"xcopula.{name}")
    raise AttributeError(f"module 'xcopula' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
