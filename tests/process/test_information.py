"""Information content of exact values, intervals and atoms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.marginals import LogNormal, Normal
from xcopula.marginals.censored import Censored
from xcopula.process import Sample, information_content

INF = np.inf


def sample(values, limits=None) -> Sample:
    """Values of one task on a line, with limits (2, n) if there are any."""
    values = np.asarray(values, float)
    return Sample.of(
        [np.arange(values.size, dtype=float)[:, None]],
        [values],
        limits=None if limits is None else [np.asarray(limits, float)],
    )


def test_limit_cases():
    """A number and a narrow interval count as one, one that is open as nothing."""
    law = Normal(2.0, 3.0)
    low = [1.0, 1.0 - 1e-5, -INF, 2.0, -1.0]
    high = [1.0, 1.0 + 1e-5, INF, INF, 5.0]
    found = information_content([law], sample(np.full(5, 1.0), [low, high]))
    between = 1.0 - stats.truncnorm.var(-1.0, 1.0)
    np.testing.assert_allclose(found, [1.0, 1.0, 0.0, 2.0 / np.pi, between], atol=1e-9)


@pytest.mark.parametrize(("low", "high"), [(-INF, -0.7), (0.3, 1.1), (-2.0, INF), (3.0, INF)])
def test_it_is_the_information_about_the_mean(low, high):
    """Minus the second derivative of the log probability, by differences."""
    step = 1e-3

    def log_mass(mean):
        return np.log(stats.norm.cdf(high - mean) - stats.norm.cdf(low - mean))

    second = (log_mass(step) - 2.0 * log_mass(0.0) + log_mass(-step)) / step**2
    found = information_content([Normal(0.0, 1.0)], sample([0.5, 0.5], [[low, 0.5], [high, 0.5]]))
    assert found[0] == pytest.approx(-second, abs=1e-5)
    assert found[1] == 1.0


def test_atoms_and_numbers():
    """A zero is an interval under a law that has zeros, and there only; other laws need none."""
    law = Censored(Normal(0.0, 3.0))
    np.testing.assert_allclose(information_content([law], sample([0.0, 4.0])), [2.0 / np.pi, 1.0])
    np.testing.assert_array_equal(
        information_content([LogNormal(0.0, 1.0)], sample([1.0, 4.0])), 1.0
    )
