"""A kernel for each nested structure of a task: smooth at short range and rough at long, say."""

from __future__ import annotations

from dataclasses import dataclass

from xcopula.kernels.base import Kernel

__all__ = ["Nested", "TaskKernel", "check_count", "family", "simplest"]


@dataclass(frozen=True)
class Nested:
    """The kernels of a task whose nested structures have one each.

    Attributes
    ----------
    families : tuple of Kernel
        In the order of the structures. A fit starts with the shortest range in the first.
    """

    families: tuple[Kernel, ...]

    @property
    def name(self) -> str:
        """The names of the kernels, as tables and plots show them."""
        return " + ".join(kernel.name for kernel in self.families)


# What a task has: one kernel for all of its structures, or one for each.
TaskKernel = Kernel | Nested


def family(kernel: TaskKernel, structure: int) -> Kernel:
    """Return the kernel of a structure of a task."""
    return kernel.families[structure] if isinstance(kernel, Nested) else kernel


def check_count(kernel: TaskKernel, structures: int) -> None:
    """Refuse kernels for another number of structures.

    Raises
    ------
    ValueError
        With both numbers.
    """
    if isinstance(kernel, Nested) and len(kernel.families) != structures:
        count = len(kernel.families)
        raise ValueError(
            f"`structures` must be the number of kernels in a list, found structures={structures} "
            f"and {count} kernels ({kernel.name}). Give structures={count}, or a kernel for each "
            "structure."
        )


def simplest(kernel: TaskKernel) -> TaskKernel:
    """Return the one kernel that all structures have, where they have one."""
    if isinstance(kernel, Nested) and len(set(kernel.families)) == 1:
        return kernel.families[0]
    return kernel
