"""Where several tasks start: at what each alone ended with, and at how their scores correlate."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.fitting import suggestion
from xcopula.fitting.maximise import Fit
from xcopula.fitting.newton import Optimum
from xcopula.fitting.suggestion import score_correlation, suggest
from xcopula.kernels import KERNELS
from xcopula.kernels.correlation import correlation
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.process import Process, Sample

PLANE = (InputGroup(2),)


def world(size, correlations, seed=0):
    """Return a log-normal task and normal ones at common sites, with these correlations."""
    rng = np.random.default_rng(seed)
    sites = rng.random((size, 2))
    first = rng.normal(size=size)
    others = [r * first + np.sqrt(1.0 - r * r) * rng.normal(size=size) for r in correlations]
    values = [np.exp(first), *others]
    laws = (LogNormal(0.0, 1.0), *(Normal(0.0, 1.0) for _ in others))
    covariance = Covariance((KERNELS["matern32"],) * len(values), PLANE)
    return Process(covariance, laws), Sample.of([sites] * len(values), values)


def test_correlations_are_those_of_the_scores():
    """At common sites they are the sample correlations of the half that is looked at, or all."""
    process, sample = world(400, [0.8, -0.5])
    found = score_correlation(process, sample)
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert found[0, 1] == pytest.approx(0.8, abs=0.06)
    assert found[0, 2] == pytest.approx(-0.5, abs=0.1)
    assert found[1, 2] == pytest.approx(-0.4, abs=0.1)


def test_some_sites_tell_as_much(monkeypatch):
    """Of many sites some are looked at, at even steps."""
    process, sample = world(3000, [0.7])
    every = score_correlation(process, sample)
    monkeypatch.setattr(suggestion, "_MOST", 600)
    some = score_correlation(process, sample)
    assert some[0, 1] == pytest.approx(every[0, 1], abs=0.06)
    assert some[0, 1] != every[0, 1]


def test_constant_scores_have_no_correlation():
    """A task that says nothing is taken for independent."""
    process, sample = world(50, [0.7])
    values = sample.values.copy()
    values[sample.task(1)] = 1.0
    found = score_correlation(process, Sample(sample.inputs, sample.offsets, values, sample.sites))
    np.testing.assert_array_equal(found, np.eye(2))


def test_the_matrix_is_positive_definite():
    """Correlations near one of many tasks are shrunk until a factor exists."""
    process, sample = world(60, [0.9999] * 4)
    found = score_correlation(process, sample)
    assert np.linalg.eigvalsh(found)[0] >= 0.02


def test_parameters_of_single_tasks_are_kept():
    """Lengths and shares are those of each alone; correlations those of the scores."""
    process, sample = world(40, [0.6])
    kernel, singles = KERNELS["matern32"], []
    for i, length in enumerate((0.1, 0.3)):
        law = process.marginals[i]
        theta = np.array([np.log(length), 0.5 + i, *law.theta])
        alone = Process(Covariance((kernel,), PLANE, noise="independent"), (law,))
        singles.append(Fit(alone, theta, 0.0, Optimum(theta, 0.0, True, "", 1), theta))
    joint, theta = suggest(process.covariance, singles, sample)
    own = theta[: joint.covariance.size]
    np.testing.assert_allclose(joint.covariance.part(own, "length")[0, 0], np.log([0.1, 0.3]))
    np.testing.assert_allclose(joint.covariance.part(own, "logit")[0], [0.5, 1.5])
    expected = score_correlation(process, sample)
    for name in ("correlation", "noise_correlation"):
        found = correlation(joint.covariance.part(own, name).ravel(), 2)
        np.testing.assert_allclose(found, expected, atol=1e-6)
