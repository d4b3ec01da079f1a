"""Kernel families, the couplings that join them across tasks, and the covariance they make."""

from __future__ import annotations

from xcopula.kernels.base import ConvolvedKernel, CrossProfile, Kernel
from xcopula.kernels.checks import check_kernel
from xcopula.kernels.matern import Matern
from xcopula.kernels.se import SquaredExponential

__all__ = ["KERNELS", "ConvolvedKernel", "CrossProfile", "Kernel", "resolve_kernel"]

# A new family is a file beside these and a line here.
KERNELS: dict[str, Kernel] = {
    "se": SquaredExponential(),
    "matern12": Matern("matern12", 0.5),
    "matern32": Matern("matern32", 1.5),
    "matern52": Matern("matern52", 2.5),
}


def resolve_kernel(spec: object) -> Kernel:
    """Return the kernel that a name or an object stands for.

    Parameters
    ----------
    spec : str or Kernel
        A name is looked up in :data:`KERNELS`. A kernel of one's own is checked and returned.

    Raises
    ------
    ValueError
        If the name is unknown, or the kernel is not a correlation function with its derivatives.
    TypeError
        If a class is given for an instance, or the object lacks a member of a kernel.
    """
    if isinstance(spec, str) and spec in KERNELS:
        return KERNELS[spec]
    if not hasattr(spec, "profile"):
        names = ", ".join(map(repr, KERNELS))
        raise ValueError(
            f"Unknown kernel {spec!r}. Choose one of {names}, or give an object with the members "
            "of xcopula.kernels.Kernel."
        )
    kernel = check_kernel(spec)
    if kernel.name in KERNELS and kernel != KERNELS[kernel.name]:
        raise ValueError(
            f"{spec!r} has the name of another kernel, {kernel.name!r}. Give it another name."
        )
    return kernel
