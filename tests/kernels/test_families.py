"""Contracts that every kernel family keeps, over the registry of all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference
from scipy.special import gamma, kv

from xcopula.kernels import KERNELS, resolve_kernel
from xcopula.kernels.base import half_distance
from xcopula.kernels.matern import matern_function

every = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())

X = np.r_[0.003, np.linspace(0.05, 6.0, 40)]


@every
def test_one_at_zero(kernel):
    """A correlation is one at distance zero, to the last bit."""
    value, _, _ = kernel.profile(np.zeros(1))
    assert value[0] == 1.0


@every
def test_value_matches_the_general_formula(kernel):
    """The closed forms equal the Matern formula with Bessel's K, to 1e-13."""
    expected = [reference.kernel(kernel.smoothness, x) for x in X]
    np.testing.assert_allclose(kernel.profile(X)[0], expected, rtol=1e-13)


@every
def test_derivatives_match_differences(kernel):
    """First and second derivatives equal central differences of the value and slope, to 1e-9."""
    h = 1e-3

    def difference(order):
        def f(x):
            return kernel.profile(x)[order]

        return (8 * (f(X + h) - f(X - h)) - (f(X + 2 * h) - f(X - 2 * h))) / (12 * h)

    _, slope, curvature = kernel.profile(X)
    np.testing.assert_allclose(slope, difference(0), atol=1e-9)
    np.testing.assert_allclose(curvature, difference(1), atol=1e-9)


@every
def test_curvature_at_zero_is_the_limit(kernel):
    """The curvature at zero, which a table starts from, is the limit from the right, to 1e-5."""
    at_zero, near = kernel.profile(np.array([0.0, 1e-6]))[2]
    assert at_zero == pytest.approx(near, rel=1e-5)


@every
def test_negligible_beyond_reach(kernel):
    """The correlation at its reach is below 1e-16, and it is not at a third of it."""
    value, _, _ = kernel.profile(np.array([kernel.reach, kernel.reach / 3]))
    assert 0.0 < value[0] < 1e-16
    assert value[1] > 1e-8


@every
def test_decreasing(kernel):
    """Correlation falls with distance."""
    value, slope, _ = kernel.profile(np.linspace(0.0, kernel.reach, 500))
    assert (np.diff(value) < 0.0).all()
    assert (slope[1:] < 0.0).all()


@every
def test_resolved_by_its_own_name(kernel):
    """A kernel is found by the name it carries."""
    assert resolve_kernel(kernel.name) is kernel


@pytest.mark.parametrize("nu", [0.5, 1.0, 1.5, 2.0, 2.5])
def test_matern_function_matches_bessel(nu):
    """The Matern function, looked up in a table for whole nu, is right to 1e-12 from 1e-6 to 40."""
    x = np.geomspace(1e-6, 40.0, 400)
    value, slope = matern_function(nu, x)
    scale = math.sqrt(2.0 * nu)
    np.testing.assert_allclose(
        value, [reference.kernel(nu, v / scale) for v in x], rtol=0, atol=1e-12
    )
    # d/dx (x^nu K_nu) = -x^nu K_{nu-1}
    expected = -(2.0 ** (1.0 - nu)) / gamma(nu) * x**nu * kv(nu - 1.0, x)
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-10)


def test_matern_function_keeps_the_shape_of_its_argument():
    """A matrix of distances gives a matrix, whether computed or looked up."""
    x = np.linspace(0.0, 3.0, 12).reshape(3, 4)
    for nu in (1.0, 1.5):
        value, slope = matern_function(nu, x)
        assert value.shape == slope.shape == (3, 4)
        np.testing.assert_array_equal(value[1], matern_function(nu, x[1])[0])


def test_matern_function_names_what_it_knows():
    """A smoothness without a closed form is refused with the list of those there are."""
    with pytest.raises(ValueError, match=r"smoothness 0\.7\. Choose 1/2, 1, 3/2, 2 or 5/2"):
        matern_function(0.7, X)


@pytest.mark.parametrize("name", ["matern72", None, 3])
def test_unknown_kernel_names_the_choices(name):
    """An unknown kernel is refused with the list of known ones."""
    with pytest.raises(ValueError, match=r"Unknown kernel .* Choose one of 'se', 'matern12'"):
        resolve_kernel(name)


@pytest.mark.parametrize("name", KERNELS)
def test_half_is_left_at_the_half_distance(name):
    """To a percent of the correlation."""
    kernel = KERNELS[name]
    value = kernel.profile(np.array([half_distance(kernel)]))[0][0]
    assert value == pytest.approx(0.5, abs=0.005)


class TestSpectra:
    """Frequencies are drawn from the spectrum, whose cosines are the correlation."""

    @pytest.mark.parametrize("dimension", [1, 2, 3])
    @pytest.mark.parametrize("name", [*KERNELS])
    def test_the_mean_of_cosines_is_the_correlation(self, name, dimension):
        kernel, rng = KERNELS[name], np.random.default_rng(0)
        frequencies = kernel.frequencies(rng.random((dimension + 1, 200_000)))
        assert frequencies.shape == (dimension, 200_000)
        lags = np.array([0.1, 0.5, 1.0, 2.0])
        for direction in np.eye(dimension):
            found = np.cos(np.outer(lags, direction @ frequencies)).mean(axis=1)
            np.testing.assert_allclose(found, kernel.profile(lags)[0], atol=4.0 / np.sqrt(200_000))

    @pytest.mark.parametrize("dimension", [1, 2, 3])
    @pytest.mark.parametrize("name", [*KERNELS])
    def test_the_density_is_the_spectrum(self, name, dimension):
        kernel, k = KERNELS[name], np.array([0.0, 0.3, 2.0, 40.0])
        want = reference.spectrum(kernel.smoothness, 1.0, dimension, k) / (2 * np.pi) ** dimension
        found = np.exp(kernel.log_spectrum(k**2, dimension))
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-300)
