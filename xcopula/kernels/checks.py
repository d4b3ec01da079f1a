"""Check the kernels that users define, once, before a fit."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn, cast

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.kernels.base import Kernel, half_distance
from xcopula.kernels.convolution import CrossProfile, cross_profile, known_spectra
from xcopula.kernels.tables import CELLS, cross_tables, same_table

__all__ = ["check_convolution", "check_kernel", "check_positive_definite"]

_MEMBERS = ("name", "smoothness", "reach", "profile")
_PARTS = ("correlation", "first derivative", "second derivative")

# What may be left of the correlation at the reach, and what the table may miss. On ten thousand
# sites that moves eigenvalues by a millionth, less than the smallest nugget.
_NEGLIGIBLE = 1e-8
# The middles of the cells of a table, as shares of the reach.
_MIDDLES = ((np.arange(CELLS) + 0.5) / CELLS) ** 4
_LENGTHS = (0.7, 1.3)


def check_kernel(spec: object) -> Kernel:
    """Return a kernel of one's own that keeps the contract.

    Raises
    ------
    TypeError
        If it is a class, lacks a member, or has no hash.
    ValueError
        If its numbers cannot be those of a correlation function.
    """
    if isinstance(spec, type):
        raise TypeError(
            f"A kernel must be an object, found the class {spec.__name__}. "
            f"Give an instance of it: {spec.__name__}(...)."
        )
    missing = [name for name in _MEMBERS if not hasattr(spec, name)]
    if missing:
        raise TypeError(
            f"A kernel must have {', '.join(_MEMBERS)}; "
            f"{type(spec).__name__} lacks {', '.join(missing)}."
        )
    try:
        hash(spec)
    except TypeError:
        raise TypeError(
            f"A kernel must be hashable, and {type(spec).__name__} is not. Make it a frozen "
            "dataclass, or define __hash__ and __eq__ from all its parameters."
        ) from None
    kernel = cast(Kernel, spec)
    if not isinstance(kernel.name, str) or not kernel.name:
        _refuse(kernel, f"its name is {kernel.name!r}", "Give it a name")
    for name, most in (("reach", np.finfo(np.float64).max), ("smoothness", math.inf)):
        number = getattr(kernel, name)
        if not isinstance(number, Real) or not 0.0 < float(number) <= most:
            _refuse(kernel, f"its {name} is {number!r}", "Give it a positive number")
    _check_profile(kernel)
    return kernel


def _refuse(kernel: object, found: str, remedy: str) -> NoReturn:
    raise ValueError(f"{kernel!r} is not a valid kernel: {found}. {remedy}.")


def _check_arrays(
    kernel: object, method: str, parts: Any, names: tuple[str, ...], x: FloatArray
) -> None:
    """Refuse anything but arrays of finite numbers in the shape of x, one for each name."""
    if not isinstance(parts, tuple | list) or len(parts) != len(names):
        found = f"{method} returns {type(parts).__name__}"
        found += f" of {len(parts)}" if isinstance(parts, tuple | list) else ""
        _refuse(kernel, found, f"Return a tuple of {len(names)} arrays: {', '.join(names)}")
    for name, part in zip(names, parts, strict=True):
        if np.shape(part) != x.shape:
            found = f"{method} returns a {name} of shape {np.shape(part)} for {x.shape}"
            _refuse(kernel, found, "Return arrays of the shape of the argument")
        bad = ~np.isfinite(np.asarray(part, np.float64))
        if bad.any():
            found = (
                f"the {name} that {method} returns at {x[bad][0]:g} is {np.asarray(part)[bad][0]}"
            )
            _refuse(kernel, found, "Return finite numbers from 0 to the reach")


def _check_profile(kernel: Kernel) -> None:
    x = np.concatenate([[0.0], kernel.reach * _MIDDLES, [float(np.nextafter(kernel.reach, 0.0))]])
    parts = kernel.profile(x)
    _check_arrays(kernel, "profile(x)", parts, _PARTS, x)
    value = parts[0]
    if abs(value[0] - 1.0) > 1e-12:
        _refuse(kernel, f"its correlation at 0 is {value[0]:.15g}", "It must be 1")
    if abs(value[-1]) > _NEGLIGIBLE:
        found = f"its correlation is still {value[-1]:.2g} at its reach of {kernel.reach:g}"
        _refuse(kernel, found, f"Set the reach where it is below {_NEGLIGIBLE:g}")
    _check_table(kernel, "it", same_table(kernel), x[1:-1], value[1:-1])


def _check_table(
    kernel: object, what: str, table: FloatArray, x: FloatArray, expected: FloatArray
) -> None:
    """Compare the table that compiled loops read, in the middle of its cells, with the function.

    Pieces of the table are made of derivatives: wrong ones show here.
    """
    missed = np.abs(table[:-1] @ 0.5 ** np.arange(6) - expected)
    worst = int(np.argmax(missed))
    if missed[worst] > _NEGLIGIBLE:
        _refuse(
            kernel,
            f"interpolation by its derivatives misses {what} by {missed[worst]:.2g} at a distance "
            f"of {x[worst]:.4g}",
            "Correct the derivatives, make the reach no longer than needed, and the function twice "
            "differentiable inside it",
        )


def _lattice(dimension: int) -> FloatArray:
    """Return the distances of about two hundred points on a lattice, in units of its step."""
    dimension = min(dimension, 5)  # what fails here fails in more dimensions too
    side = max(3, round(216 ** (1.0 / dimension)))
    points = np.array(list(itertools.product(range(side), repeat=dimension)), float)
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def _steps(kernel: Kernel) -> FloatArray:
    """Return lattice steps from half to three times the distance at which half is left."""
    return np.asarray(half_distance(kernel) * np.array([0.5, 1.0, 1.5, 2.0, 3.0]))


def _on_lattice(
    function: Callable[[FloatArray], FloatArray], end: float, r: FloatArray
) -> FloatArray:
    """Evaluate a correlation at distances r, zero from its end on."""
    different, where = np.unique(r, return_inverse=True)
    values = np.zeros(different.size)
    values[different < end] = function(different[different < end])
    return np.asarray(values[where.reshape(r.shape)])


def _same_on_lattice(kernel: Kernel, length: float, r: FloatArray) -> FloatArray:
    return _on_lattice(lambda x: kernel.profile(x)[0], kernel.reach, r / length)


def _check_eigenvalues(kernel: object, matrix: FloatArray, what: str, remedy: str) -> None:
    try:
        np.linalg.cholesky(matrix + 1e-6 * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        found = f"{what} is not positive definite (an eigenvalue of {smallest:.2g} on a lattice)"
        _refuse(kernel, found, remedy)


@functools.lru_cache(maxsize=64)
def check_positive_definite(kernel: Kernel, dimension: int) -> None:
    """Refuse a kernel that is not positive definite on lattices in D dimensions.

    Some functions are valid in low dimensions only. Lattices find those that fail by far; a kernel
    that passes may still fail elsewhere.
    """
    if known_spectra(kernel):
        return
    for step in _steps(kernel):
        matrix = _same_on_lattice(kernel, 1.0, step * _lattice(dimension))
        what = f"its covariance in {dimension} dimensions"
        _check_eigenvalues(kernel, matrix, what, "Choose a kernel that is valid there")


@functools.lru_cache(maxsize=64)
def check_convolution(first: Kernel, second: Kernel, dimension: int) -> None:
    """Refuse two kernels without a cross-correlation, or with one that cannot be right."""
    if known_spectra(first, second):
        return
    l1, l2 = _LENGTHS
    span = max(first.reach * l1, second.reach * l2)
    owner = first if hasattr(first, "cross") else second

    def at(r: FloatArray) -> CrossProfile:
        return cross_profile(first, second, l1, l2, dimension, r)

    r = np.concatenate([[0.0], span * _MIDDLES, [float(np.nextafter(span, 0.0))]])
    p = at(r)
    _check_arrays(owner, "cross", p, CrossProfile._fields, r)
    if abs(p.value[-1]) > _NEGLIGIBLE:
        found = f"its cross-correlation with {second.name!r} is {p.value[-1]:.2g} at {span:g}"
        _refuse(owner, found, "Set the reach where it is negligible")
    table, _ = cross_tables(first, second, l1, l2, dimension, span)
    what = f"its cross-correlation with {second.name!r}"
    _check_table(owner, what, table, r[1:-1], p.value[1:-1])
    for step in _steps(owner):
        lattice = step * _lattice(dimension)
        mixed = _on_lattice(lambda x: at(x).value, span, lattice)
        one, two = _same_on_lattice(first, l1, lattice), _same_on_lattice(second, l2, lattice)
        what = f"the covariance of {first.name!r} and {second.name!r} in {dimension} dimensions"
        remedy = "Take the root of the product of both spectra in that dimension"
        _check_eigenvalues(owner, np.block([[one, mixed], [mixed, two]]), what, remedy)
