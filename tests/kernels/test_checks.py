"""Kernels of one's own: those that are right work everywhere, those that are wrong are refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import reference

from xcopula.jit.pairs import interpolate
from xcopula.kernels import KERNELS, resolve_kernel
from xcopula.kernels.assembly import contract_lower, lower, scaled_inputs
from xcopula.kernels.convolution import CrossProfile, cross_profile
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.kernels.matern import Matern
from xcopula.kernels.tables import same_table

PLANE = (InputGroup(2),)


@dataclass(frozen=True)
class Spherical:
    """The spherical model of geostatistics: valid in three dimensions, zero beyond one."""

    name: str = "spherical"
    smoothness: float = 0.5
    reach: float = 1.0

    def profile(self, x):
        inside = x < 1.0
        value = np.where(inside, 1.0 - 1.5 * x + 0.5 * x**3, 0.0)
        slope = np.where(inside, -1.5 + 1.5 * x**2, 0.0)
        return value, slope, np.where(inside, 3.0 * x, 0.0)


@dataclass(frozen=True)
class Wendland:
    """Wendland's function of two continuous derivatives: valid in three dimensions."""

    name: str = "wendland"
    smoothness: float = 1.5
    reach: float = 1.0

    def profile(self, x):
        left = np.maximum(1.0 - x, 0.0)
        return left**4 * (4.0 * x + 1.0), -20.0 * x * left**3, 20.0 * left**2 * (4.0 * x - 1.0)


@dataclass(frozen=True)
class RationalQuadratic:
    """A mixture of squared exponentials, cut off where 5e-9 is left."""

    alpha: float
    smoothness: float = math.inf

    @property
    def name(self):
        return f"rq{self.alpha:g}"

    @property
    def reach(self):
        return math.sqrt(2.0 * self.alpha * (5e-9 ** (-1.0 / self.alpha)))

    def profile(self, x):
        a = self.alpha
        base = 1.0 + x**2 / (2.0 * a)
        curvature = ((1.0 + 1.0 / a) * x**2 / base - 1.0) * base ** (-a - 1.0)
        return base**-a, -x * base ** (-a - 1.0), curvature


@dataclass(frozen=True)
class Gaussian:
    """The squared exponential again, with a cross-correlation of its own for every such kernel."""

    name: str = "gaussian"
    smoothness: float = math.inf
    reach: float = 8.9

    def profile(self, x):
        value = np.exp(-0.5 * x**2)
        return value, -x * value, (x**2 - 1.0) * value

    def cross(self, other, length1, length2, dimension, r):
        if not math.isinf(other.smoothness):
            return NotImplemented
        total = length1**2 + length2**2
        value = (2.0 * length1 * length2 / total) ** (dimension / 2) * np.exp(-(r**2) / total)
        rate = 2.0 * length1**2 / total
        factor = dimension / 2 * (1.0 - rate) + rate * r**2 / total
        slope = -2.0 * r / total * value
        return CrossProfile(
            value,
            slope,
            (4.0 * r**2 / total - 2.0) / total * value,
            factor * value,
            factor * slope + rate * 2.0 * r / total * value,
        )


OWN = [Spherical(), Wendland(), RationalQuadratic(1.0), RationalQuadratic(2.5), Gaussian()]
every = pytest.mark.parametrize("kernel", OWN, ids=[k.name for k in OWN])


def draw(covariance, seed=0, sizes=(12, 9, 10)):
    rng = np.random.default_rng(seed)
    theta = reference.random_theta(covariance, rng)
    blocks = reference.random_inputs(covariance, rng, sizes[: covariance.tasks], together=4)
    return theta, reference.stacked(blocks)


def dense(covariance, theta, data):
    state = covariance.state(theta)
    matrix = lower(state, scaled_inputs(data[0], state), *data[1:])
    return np.tril(matrix) + np.tril(matrix, -1).T


def assert_gradient(covariance):
    """Compare the gradient of a weighted sum of the covariance with differences, to 1e-6."""
    theta, data = draw(covariance)
    n = data[1].size
    weights = np.random.default_rng(1).normal(size=(n, n))

    def weighted(theta):
        return float((np.tril(weights, -1) * dense(covariance, theta, data)).sum())

    state = covariance.state(theta)
    inputs = scaled_inputs(data[0], state)
    by = contract_lower(state, weights, np.zeros(n), inputs, *data[1:])
    expected = reference.differences(weighted, theta, step=1e-4)
    np.testing.assert_allclose(
        covariance.pullback(theta, by), expected, rtol=0, atol=1e-6 * np.abs(expected).max()
    )


@every
def test_is_taken_as_it_is(kernel):
    """A kernel that keeps the contract is returned, the same object."""
    assert resolve_kernel(kernel) is kernel


@every
def test_is_tabulated(kernel):
    """Its table gives its correlation to 1e-8 over the whole reach, and zero beyond."""
    x = kernel.reach * np.random.default_rng(0).uniform(size=2000) ** 4
    out = np.empty(x.size)
    interpolate(x**2, 1.0 / kernel.reach, same_table(kernel), out)
    np.testing.assert_allclose(out, kernel.profile(x)[0], rtol=0, atol=1e-8)


@every
@pytest.mark.parametrize(("coupling", "structures"), [("icm", 1), ("lmc", 2)])
def test_is_shared_between_tasks(kernel, coupling, structures):
    """Three tasks in the plane have a positive definite covariance, and its gradient is right."""
    groups = (InputGroup(2, ard=True), InputGroup(1))
    covariance = Covariance((kernel,) * 3, groups, coupling, structures)
    theta, data = draw(covariance, sizes=(40, 30, 35))
    assert np.linalg.eigvalsh(dense(covariance, theta, data)).min() > 0.0
    assert_gradient(covariance)


@every
def test_stands_alone(kernel):
    """One task in the plane has the covariance of the definition, to 1e-8, and its gradient."""
    covariance = Covariance((kernel,), PLANE)
    theta, data = draw(covariance)
    r = np.linalg.norm(data[0][:, :, None] - data[0][:, None], axis=0)
    length = float(np.exp(theta[0]))
    inside = np.minimum(r / length, np.nextafter(kernel.reach, 0.0))
    expected = covariance.matrices(theta)[0, 0, 0] * kernel.profile(inside.ravel())[0]
    expected = expected.reshape(r.shape)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(dense(covariance, theta, data), expected, rtol=0, atol=1e-8)
    assert_gradient(covariance)


@pytest.mark.parametrize("pair", ["gaussian gaussian", "gaussian se", "se gaussian"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_is_convolved_by_its_own_method(pair, dimension):
    """The squared exponential by its own method equals the built-in one, to 1e-14."""
    first, second = (Gaussian() if name == "gaussian" else KERNELS["se"] for name in pair.split())
    groups = (InputGroup(dimension),)
    own, known = (
        Covariance(kernels, groups) for kernels in ((first, second), (KERNELS["se"],) * 2)
    )
    theta, data = draw(own)
    np.testing.assert_allclose(
        dense(own, theta, data), dense(known, theta, data), rtol=0, atol=1e-14
    )
    r = np.linspace(0.0, 3.0, 20)
    for a, b in zip(
        cross_profile(first, second, 0.4, 0.9, dimension, r),
        cross_profile(*known.kernels, 0.4, 0.9, dimension, r),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    assert_gradient(own)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Wendland(), Wendland()),
        (Wendland(), KERNELS["se"]),
        (KERNELS["matern32"], Spherical()),
        (Gaussian(), KERNELS["matern32"]),
        (Spherical(), Gaussian()),
    ],
)
def test_convolution_without_a_cross_correlation_is_refused(first, second):
    """Where neither kernel knows the other the message names both, and the two ways out."""
    message = f"kernels {first.name!r} and {second.name!r}.*'icm' or 'lmc'.*method cross"
    with pytest.raises(ValueError, match=message):
        Covariance((first, second), PLANE)


def test_one_task_needs_no_cross_correlation():
    """The default coupling does not matter to a single task."""
    assert Covariance((Wendland(),), PLANE).coupling == "convolution"


def test_other_parameters_are_another_kernel():
    """Tables are kept by equality: equal kernels share one, others do not."""
    assert same_table(RationalQuadratic(2.0)) is same_table(RationalQuadratic(2.0))
    assert same_table(RationalQuadratic(2.0)) is not same_table(RationalQuadratic(3.0))


def changed(**profile):
    """Return a Wendland kernel whose profile has other parts: functions of x and of the part."""

    class Changed(Wendland):
        def profile(self, x):
            parts = dict(zip(("value", "slope", "curvature"), super().profile(x), strict=True))
            for name, change in profile.items():
                parts[name] = change(x, parts[name])
            return tuple(parts.values())

    return Changed()


class Unhashable(Wendland):
    __hash__ = None


class WithoutReach:
    name, smoothness = "mine", 0.5

    def profile(self, x):
        raise NotImplementedError


class Single(Wendland):
    def profile(self, x):
        return super().profile(x)[0]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (Wendland, TypeError, r"found the class Wendland. Give an instance of it: Wendland\("),
        (WithoutReach(), TypeError, "name, smoothness, reach, profile; WithoutReach lacks reach"),
        (Unhashable(), TypeError, "Unhashable is not. Make it a frozen dataclass"),
        (Wendland(name=""), ValueError, "its name is ''. Give it a name"),
        (Wendland(name="se"), ValueError, "name of another kernel, 'se'. Give it another"),
        (Wendland(reach=-1.0), ValueError, "its reach is -1.0. Give it a positive number"),
        (Wendland(reach=math.inf), ValueError, "its reach is inf"),
        (Wendland(reach="far"), ValueError, "its reach is 'far'"),
        (Wendland(smoothness=0.0), ValueError, "its smoothness is 0.0"),
        (Wendland(reach=0.5), ValueError, "still 0.19 at its reach of 0.5. Set the reach"),
        (Single(), ValueError, r"profile\(x\) returns ndarray. Return a tuple of 3 arrays: corr"),
        (changed(value=lambda x, v: v[:-1]), ValueError, r"a correlation of shape \(513,\) for"),
        (changed(slope=lambda x, v: v / x), ValueError, "first derivative .* at 0 is nan"),
        (changed(value=lambda x, v: 0.5 * v), ValueError, "correlation at 0 is 0.5. It must be 1"),
        (changed(value=lambda x, v: v * (1 + 20 * x)), ValueError, "derivatives misses it by"),
        (changed(slope=lambda x, v: 0.5 * v), ValueError, "misses it by .*Correct the derivatives"),
        (changed(curvature=lambda x, v: -v), ValueError, "misses it by .*Correct the derivatives"),
        (RationalQuadratic(0.5), ValueError, "misses it by .*no longer"),
    ],
)
def test_what_is_no_kernel_is_refused(spec, error, message):
    """The message says what was found and what to do."""
    with np.errstate(invalid="ignore"), pytest.raises(error, match=message):
        resolve_kernel(spec)


@dataclass(frozen=True)
class Triangle(Wendland):
    """A correlation on the line, and none in the plane."""

    def profile(self, x):
        inside = x < 1.0
        return np.where(inside, 1.0 - x, 0.0), np.where(inside, -1.0, 0.0), 0.0 * x


def test_dimension_in_which_a_kernel_is_not_valid():
    """The triangle is accepted on a line and refused in the plane."""
    triangle = resolve_kernel(Triangle())
    Covariance((triangle,), (InputGroup(1), InputGroup(1)))
    with pytest.raises(ValueError, match=r"in 2 dimensions is not positive definite .*valid there"):
        Covariance((triangle,), PLANE)


def crossed(**parts):
    """Return a Gaussian whose cross-correlation has other parts: functions of the part."""

    class Crossed(Gaussian):
        def cross(self, *arguments):
            p = super().cross(*arguments)
            return p._replace(**{name: f(getattr(p, name)) for name, f in parts.items()})

    return Crossed()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"value": lambda v: v[1:]}, "cross returns a value of shape"),
        ({"by_first": lambda v: v + np.nan}, "the by_first that cross returns at 0 is nan"),
        ({"slope": lambda v: 2.0 * v}, "misses its cross-correlation with 'gaussian' by"),
        ({"value": lambda v: v + 0.1}, "its cross-correlation with 'gaussian' is 0.1 at"),
        (
            dict.fromkeys(CrossProfile._fields, lambda v: 1.5 * v),
            "'gaussian' and 'gaussian' in 2 dimensions is not positive definite",
        ),
    ],
)
def test_cross_correlations_that_cannot_be_right_are_refused(parts, message):
    """An own cross-correlation is checked as the kernel is, when the covariance is made."""
    kernel = crossed(**parts)
    with pytest.raises(ValueError, match=message):
        Covariance((kernel, kernel), PLANE)


def test_matern_of_another_smoothness():
    """The Matern family here is that of three half-integers."""
    with pytest.raises(ValueError, match=r"0.5, 1.5 or 2.5, found 3.5"):
        Matern("matern72", 3.5)
