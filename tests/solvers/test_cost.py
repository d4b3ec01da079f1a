"""Costs: memory and operations in numbers and in words."""

from __future__ import annotations

import pytest

from xcopula.solvers import Cost, Exact


def test_time_is_proportional_to_operations():
    """A core does 2e10 operations a second, and a fit takes 150 evaluations."""
    cost = Cost(bytes=3e9, flops=4e10)
    assert cost.seconds == pytest.approx(2.0)
    assert cost.hours == pytest.approx(150 * 2.0 / 3600.0)


def test_the_exact_solver_grows_with_the_cube():
    """Ten times the observations take a thousand times the operations, a hundred the memory."""
    small, large = Exact().cost([50, 50]), Exact().cost([1000])
    assert large.flops == pytest.approx(1000 * small.flops)
    assert large.bytes == pytest.approx(100 * small.bytes)
