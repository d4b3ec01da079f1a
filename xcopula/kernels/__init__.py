"""Kernel families, the couplings that join them across tasks, and the covariance they make."""

from __future__ import annotations

from xcopula.kernels.base import Kernel
from xcopula.kernels.matern import Matern
from xcopula.kernels.se import SquaredExponential

__all__ = ["KERNELS", "Kernel", "resolve_kernel"]

# A new family is a file beside these and a line here.
KERNELS: dict[str, Kernel] = {
    "se": SquaredExponential(),
    "matern12": Matern("matern12", 0.5),
    "matern32": Matern("matern32", 1.5),
    "matern52": Matern("matern52", 2.5),
}


def resolve_kernel(name: object) -> Kernel:
    """Return the kernel of that name."""
    if isinstance(name, str) and name in KERNELS:
        return KERNELS[name]
    raise ValueError(f"Unknown kernel {name!r}. Choose one of {', '.join(map(repr, KERNELS))}.")
