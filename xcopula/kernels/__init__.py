"""Kernel families, the couplings that join them across tasks, and the covariance they make."""

from __future__ import annotations

from collections.abc import Sequence

from xcopula.kernels.base import ConvolvedKernel, CrossProfile, Kernel, SpectralKernel
from xcopula.kernels.checks import check_kernel
from xcopula.kernels.matern import Matern
from xcopula.kernels.nested import Nested, TaskKernel
from xcopula.kernels.se import SquaredExponential

__all__ = [
    "KERNELS",
    "ConvolvedKernel",
    "CrossProfile",
    "Kernel",
    "KernelSpec",
    "Nested",
    "SpectralKernel",
    "TaskKernel",
    "resolve_kernel",
    "resolve_kernels",
]

# What a user may give for a task: a list has a kernel for each structure.
KernelSpec = str | Kernel | Nested | Sequence[str | Kernel]

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


def resolve_kernels(spec: object) -> TaskKernel:
    """Return the kernel of a task, or the kernels of its structures that a list stands for.

    Parameters
    ----------
    spec : str, Kernel or sequence of these
        As in :func:`resolve_kernel`; a list has a kernel for each nested structure.
    """
    if not isinstance(spec, list | tuple):
        return spec if isinstance(spec, Nested) else resolve_kernel(spec)
    if not spec or "auto" in [each for each in spec if isinstance(each, str)]:
        raise ValueError(
            f"A list has the kernel of each nested structure, by name, found {list(spec)!r}. To "
            "have them chosen give 'auto' in place of the list."
        )
    return Nested(tuple(map(resolve_kernel, spec)))
