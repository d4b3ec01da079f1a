"""Methods of inference: which likelihood is maximised, and how sub-models become one prediction.

A new method is a file beside these with a frozen subclass of
:class:`~xcopula.methods.contract.Method`, and a line here.
"""

from __future__ import annotations

from xcopula.methods.cokriging import CoKriging
from xcopula.methods.committee import Committee
from xcopula.methods.contract import Method
from xcopula.methods.full import Full
from xcopula.methods.sparse import Sparse
from xcopula.methods.transductive import Transductive

__all__ = [
    "METHODS",
    "CoKriging",
    "Committee",
    "Full",
    "Method",
    "Sparse",
    "Transductive",
    "resolve_method",
]

METHODS: dict[str, Method] = {
    "transductive": Transductive(),
    "full": Full(),
    "dtc": Sparse("dtc"),
    "fitc": Sparse("fitc"),
    "pitc": Sparse("pitc"),
    "bcm": Committee(),
    "cokriging": CoKriging(),
}


def resolve_method(spec: object) -> Method:
    """Return the method that a name, or an object of this package, stands for.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither a name nor a method.
    """
    if isinstance(spec, Method):
        return spec
    names = ", ".join(map(repr, METHODS))
    if isinstance(spec, str):
        if spec in METHODS:
            return METHODS[spec]
        raise ValueError(f"Unknown method {spec!r}. Choose one of {names}.")
    if isinstance(spec, type) and issubclass(spec, Method):
        raise TypeError(f"`method` is a class. Give an object instead: {spec.__name__}().")
    raise TypeError(
        f"`method` must be {names} or an object of xcopula.methods; found {type(spec).__name__}."
    )
