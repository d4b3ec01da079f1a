"""Costs: memory and operations in numbers and in words."""

from __future__ import annotations

import pytest

from xcopula.solvers import Cost, Exact


def test_time_is_proportional_to_operations():
    """A core does 2e10 operations a second, and a fit takes 150 evaluations."""
    cost = Cost(bytes=3e9, flops=4e10)
    assert cost.seconds == pytest.approx(2.0)
    assert cost.hours == pytest.approx(150 * 2.0 / 3600.0)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Cost(1.5e9, 2e10 * 3600 / 150 * 2.0), "about 1.5 GB and 2 hours"),
        (Cost(2.4e7, 2e10 * 60 / 150 * 3.0), "about 0.024 GB and 3 minutes"),
        (Cost(0.0, 0.0), "about 0 GB and 0 minutes"),
    ],
)
def test_words(cost, words):
    """Hours where there are some, minutes below."""
    assert cost.describe() == words


def test_the_exact_solver_grows_with_the_cube():
    """Ten times the observations take a thousand times the operations, a hundred the memory."""
    small, large = Exact().cost([50, 50]), Exact().cost([1000])
    assert large.flops == pytest.approx(1000 * small.flops)
    assert large.bytes == pytest.approx(100 * small.bytes)
