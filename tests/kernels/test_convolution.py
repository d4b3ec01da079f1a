"""Convolution cross-kernels against closed forms, spectra and their own identities."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
import reference
from scipy.special import ellipk, erfcx

from xcopula.kernels import KERNELS
from xcopula.kernels.convolution import cross_profile

PAIRS = list(product(KERNELS, repeat=2))
R = np.r_[0.0, 1e-4, np.linspace(0.02, 3.0, 60)]

pairs = pytest.mark.parametrize(("first", "second"), PAIRS, ids=map("-".join, PAIRS))
dimensions = pytest.mark.parametrize("dimension", [1, 2, 3, 7])


def cross(first, second, length1, length2, dimension, r=R):
    return cross_profile(KERNELS[first], KERNELS[second], length1, length2, dimension, r)


@pytest.mark.parametrize(
    "lengths", [(0.4, 0.9), (0.9, 0.4), (0.05, 1.5), (0.5, 0.500001), (0.7, 0.7)]
)
def test_matern32_pair_in_one_dimension(lengths):
    """The published closed form of two Matern 3/2 kernels in D = 1, with its limit, to 1e-12."""
    a1, a2 = (math.sqrt(3.0) / length for length in lengths)
    # a1 e^(-a2 r) - a2 e^(-a1 r) over a1 - a2, through expm1: no cancellation near a1 = a2
    gap = a1 - a2
    quotient = -np.expm1(-gap * R) / gap if gap else R
    expected = 2 * math.sqrt(a1 * a2) / (a1 + a2) * np.exp(-a2 * R) * (1.0 + a2 * quotient)
    np.testing.assert_allclose(
        cross("matern32", "matern32", *lengths, 1).value, expected, rtol=0, atol=1e-12
    )
    if abs(gap) > 0.1:
        published = a1 * np.exp(-a2 * R) - a2 * np.exp(-a1 * R)
        published *= 2 * math.sqrt(a1 * a2) / (a1**2 - a2**2)
        np.testing.assert_allclose(published, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("ratio", [50.0, 1000.0, 20_000.0])
def test_lengths_as_different_as_bounds_allow(ratio):
    """The closed form of two Matern 3/2 kernels in D = 1, to 1e-10."""
    a1, a2 = math.sqrt(3.0), math.sqrt(3.0) / ratio
    expected = a1 * np.exp(-a2 * R) - a2 * np.exp(-a1 * R)
    expected *= 2 * math.sqrt(a1 * a2) / (a1**2 - a2**2)
    for lengths in ((1.0, ratio), (ratio, 1.0)):
        found = cross("matern32", "matern32", *lengths, 1).value
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("lengths", [(0.4, 0.9), (0.9, 0.4), (0.3, 0.01), (0.02, 1.0)])
def test_se_matern32_in_one_dimension(lengths):
    """The published closed form of SE and Matern 3/2 in D = 1, through erfcx, to 1e-12."""
    length, length_m = lengths
    lam = math.sqrt(3.0) / 2 * length / length_m
    u = R / length
    a = math.sqrt(3.0) / length_m
    # erfcx overflows far on the left, where erfc is 2
    left = np.where(
        lam - u > -20.0,
        np.exp(-(u**2)) * erfcx(np.maximum(lam - u, -20.0)),
        2.0 * np.exp(lam**2 - a * R),
    )
    expected = math.sqrt(lam) * (math.pi / 2) ** 0.25 * (np.exp(-(u**2)) * erfcx(lam + u) + left)
    np.testing.assert_allclose(
        cross("se", "matern32", length, length_m, 1).value, expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("ratio", [1.0, 1.001, 2.0, 50.0])
def test_matern12_pair_in_one_dimension_at_zero(ratio):
    """At r = 0 two exponential kernels in D = 1 give a complete elliptic integral, to 1e-12.

    The integral of dk / sqrt((a1^2 + k^2) (a2^2 + k^2)) over k > 0 is K(1 - a2^2 / a1^2) / a1.
    """
    a1, a2 = 1.0, 1.0 / ratio
    expected = 2 / math.pi * math.sqrt(a2 / a1) * ellipk(1.0 - (a2 / a1) ** 2)
    value = cross("matern12", "matern12", 1.0, ratio, 1, np.zeros(1)).value
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", [(0.4, 0.9), (1.5, 0.1), (0.03, 1.2)])
def test_matern12_pair_in_three_dimensions(lengths):
    """Two exponential kernels in D = 3 are a difference of Yukawa potentials, to 1e-12."""
    a1, a2 = (1.0 / length for length in lengths)
    r = R[1:]
    expected = -np.exp(-a1 * r) * np.expm1((a1 - a2) * r) / (r * (a2**2 - a1**2))
    expected *= 2.0 * math.sqrt(a1 * a2)
    profile = cross("matern12", "matern12", *lengths, 3)
    np.testing.assert_allclose(profile.value[1:], expected, rtol=0, atol=1e-12)
    assert profile.value[0] == pytest.approx(2 * math.sqrt(a1 * a2) / (a1 + a2), abs=1e-12)


@dimensions
def test_se_pair_in_any_dimension(dimension):
    """Two SE kernels give a Gaussian of the summed squares, to 1e-14."""
    l1, l2 = 0.3, 1.1
    total = l1**2 + l2**2
    expected = (2 * l1 * l2 / total) ** (dimension / 2) * np.exp(-(R**2) / total)
    np.testing.assert_allclose(cross("se", "se", l1, l2, dimension).value, expected, atol=1e-14)


@dimensions
@pytest.mark.parametrize(
    ("first", "second"),
    list(combinations_with_replacement(KERNELS, 2)),
    ids=map("-".join, combinations_with_replacement(KERNELS, 2)),
)
def test_is_the_transform_of_the_geometric_mean_spectrum(first, second, dimension):
    """Every pair of families equals the Hankel integral of sqrt(S1 S2), to 1e-11."""
    r = np.array([0.0, 0.07, 0.4, 1.3])
    nu1, nu2 = KERNELS[first].smoothness, KERNELS[second].smoothness
    for lengths in [(0.3, 0.8), (0.9, 0.25)]:
        expected = [
            reference.cross_kernel(nu1, lengths[0], nu2, lengths[1], dimension, x) for x in r
        ]
        value = cross(first, second, *lengths, dimension, r).value
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-11)


@dimensions
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_with_itself_is_itself(name, dimension):
    """Same kernel and same length scale: the cross-kernel is the kernel, to 1e-12."""
    value, slope, curvature = KERNELS[name].profile(R / 0.6)
    profile = cross(name, name, 0.6, 0.6, dimension)
    np.testing.assert_allclose(profile.value, value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(profile.slope, slope / 0.6, rtol=0, atol=1e-11)
    np.testing.assert_allclose(profile.curvature[2:], curvature[2:] / 0.36, rtol=0, atol=1e-8)


@dimensions
@pairs
def test_symmetric_in_the_tasks(first, second, dimension):
    """Swapping the tasks changes nothing, and the two log-length derivatives change places."""
    here = cross(first, second, 0.3, 0.8, dimension)
    there = cross(second, first, 0.8, 0.3, dimension)
    np.testing.assert_allclose(here.value, there.value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(here.slope, there.slope, rtol=0, atol=1e-11)
    np.testing.assert_allclose(here.by_first + there.by_first, -R * here.slope, rtol=0, atol=1e-11)


@dimensions
@pairs
def test_scale_invariant(first, second, dimension):
    """Stretching both lengths and the distance leaves the value as it is, to 1e-12."""
    here = cross(first, second, 0.3, 0.8, dimension).value
    stretched = cross(first, second, 0.3 * 7, 0.8 * 7, dimension, 7 * R).value
    np.testing.assert_allclose(here, stretched, rtol=0, atol=1e-12)


@dimensions
@pairs
def test_correlation_at_most_one(first, second, dimension):
    """By Cauchy-Schwarz no cross-correlation passes one, up to a length ratio of 50."""
    for ratio in (1.0, 3.0, 50.0):
        assert np.abs(cross(first, second, 0.02, 0.02 * ratio, dimension).value).max() <= 1 + 1e-12


@dimensions
@pairs
def test_derivatives_match_differences(first, second, dimension):
    """Slope, curvature and log-length derivatives equal central differences, to 1e-7."""
    r = np.linspace(0.1, 2.0, 12)
    h = 1e-3

    def at(shift_r=0.0, shift_l=0.0):
        return cross(first, second, 0.4 * math.exp(shift_l), 0.9, dimension, r + shift_r)

    def difference(field, axis):
        def f(s):
            return getattr(at(**{axis: s}), field)

        return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)

    profile = at()
    for field, source, axis in [
        ("slope", "value", "shift_r"),
        ("curvature", "slope", "shift_r"),
        ("by_first", "value", "shift_l"),
        ("by_first_slope", "by_first", "shift_r"),
    ]:
        np.testing.assert_allclose(
            getattr(profile, field), difference(source, axis), rtol=0, atol=1e-7, err_msg=field
        )


@dimensions
@pairs
def test_finite_at_the_origin_and_far_out(first, second, dimension):
    """No field is NaN or infinite at r = 0 or where the correlation has vanished."""
    for lengths in [(1.0, 1.0), (0.02, 1.0), (1.0, 0.02)]:
        for field in cross(first, second, *lengths, dimension, np.array([0.0, 40.0, 1e3])):
            assert np.isfinite(field).all()
