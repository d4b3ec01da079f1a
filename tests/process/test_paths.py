"""Draws of the prior: each is one function, and together they have the model's covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import reference
from scipy import stats

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import COUPLINGS, Covariance, InputGroup
from xcopula.process import Sample, paths

POINTS = 5


def covariance_of(names: str, dimension: int, coupling: str) -> Covariance:
    kernels = reference.kernels_of(names)
    groups = (InputGroup(2), InputGroup(1)) if dimension == 3 else (InputGroup(dimension),)
    return Covariance(kernels, groups, coupling)


def given_frequencies(covariance: Covariance, theta: np.ndarray, count: int, x: np.ndarray):
    """Return the covariance of the signal, the mean over coefficients, of all tasks at inputs."""
    prior, total = paths.Prior.of(covariance, theta), 0.0
    for structure, amplitude in zip(prior.structures, covariance.matrices(theta), strict=False):
        found = prior._frequencies(structure, np.random.default_rng(0), count)
        frequencies, shares = found
        shares = np.broadcast_to(shares, (covariance.tasks, count))
        phases = np.einsum("dw,dn->nw", frequencies, x)
        both = [np.cos(phases), np.sin(phases)]
        for i in range(covariance.tasks):
            for j in range(covariance.tasks):
                own = sum((b * shares[i] * shares[j]) @ b.T for b in both) / count
                place = np.zeros((covariance.tasks,) * 2)
                place[i, j] = amplitude[i, j]
                total = total + np.kron(place, own)
    return total


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("name", [*KERNELS, "mixed"])
def test_the_covariance_of_every_prior(name, tasks, dimension, coupling):
    names = ["matern12", "se", "matern52"][:tasks] if name == "mixed" else [name] * tasks
    if name == "mixed" and coupling != "convolution":
        pytest.skip("one kernel is shared")
    covariance = covariance_of(" ".join(names), dimension, coupling)
    rng = np.random.default_rng(dimension)
    theta = reference.random_theta(covariance, rng)
    x = rng.uniform(size=(dimension, POINTS))
    found = given_frequencies(covariance, theta, 2**14, x)
    state = covariance.state(theta)
    same = np.tile(np.arange(POINTS), tasks)
    want = reference.covariance_matrix(covariance, theta, [x.T] * tasks, same)
    want -= np.kron(state.nugget, np.eye(POINTS))
    # By chance the largest of so many would be 0.03.
    np.testing.assert_allclose(found, want, rtol=0.0, atol=0.02)


@pytest.fixture
def few_waves(monkeypatch):
    """The covariance over draws is exact whatever the number of waves."""
    monkeypatch.setattr(paths, "WAVES", 32)


@pytest.mark.parametrize("name", ["mixed", "directions", "a kernel each", "lmc"])
def test_the_covariance_over_draws(name, few_waves):
    process, _, theta, rng = reference.example(name)
    covariance, draws = process.covariance, 4000
    theta = theta[: covariance.size]
    x = rng.uniform(size=(covariance.columns, POINTS))
    keys, prior = paths.site_keys(np.arange(POINTS)), paths.Prior.of(covariance, theta)
    rows = []
    for r in range(draws):
        waves = prior.draw(3, r)
        tasks = range(covariance.tasks)
        rows.append([waves.at(x, i) + prior.nuggets(i, keys, 3, r) for i in tasks])
    drawn = np.array(rows).reshape(draws, -1)
    same = np.tile(np.arange(POINTS), covariance.tasks)
    want = reference.covariance_matrix(covariance, theta, [x.T] * covariance.tasks, same)
    error = (drawn.T @ drawn / draws - want) / np.sqrt((1.0 + want**2) / draws)
    assert abs(drawn.mean(axis=0)).max() * np.sqrt(draws) < 4.5
    assert abs(error).max() < 4.5
    assert 0.7 < error.std() < 1.3
    kurtosis = (drawn**4).mean(axis=0) / (drawn**2).mean(axis=0) ** 2
    np.testing.assert_allclose(kurtosis.mean(), 3.0, atol=0.15)


class TestWaves:
    def test_a_realization_is_one_function(self):
        process, _, theta, rng = reference.example("mixed")
        theta = theta[: process.covariance.size]
        waves = paths.Prior.of(process.covariance, theta).draw(0, 7)
        again = paths.Prior.of(process.covariance, theta).draw(0, 7)
        x = rng.uniform(size=(2, 40))
        assert (waves.at(x, 1) == again.at(x, 1)).all()
        assert (waves.at(x[:, 5:9].copy(), 1) == waves.at(x, 1)[5:9]).all()
        for other in (
            paths.Prior.of(process.covariance, theta).draw(0, 8),
            paths.Prior.of(process.covariance, theta).draw(1, 7),
        ):
            assert (other.at(x, 1) != waves.at(x, 1)).all()

    def test_at_a_sample(self):
        process, sample, theta, _ = reference.example("groups")
        waves = paths.Prior.of(process.covariance, theta[: process.covariance.size]).draw(0, 0)
        found = waves.on(sample)
        for task in range(sample.tasks):
            own = sample.task(task)
            assert (found[own] == waves.at(sample.inputs[:, own], task)).all()

    def test_correlated_tasks_go_together(self):
        covariance = covariance_of("matern32 matern32", 2, "icm")
        theta = np.zeros(covariance.size)
        covariance.part(theta, "correlation")[:] = 4.0
        waves = paths.Prior.of(covariance, theta).draw(0, 0)
        x = np.random.default_rng(0).uniform(size=(2, 300))
        assert np.corrcoef(waves.at(x, 0), waves.at(x, 1))[0, 1] > 0.99


class TestEvenNumbers:
    def test_each_is_uniform_over_draws(self):
        found = [paths._even_numbers(3, 5, np.random.default_rng(s)) for s in range(2000)]
        for row in np.array(found).reshape(2000, -1).T:
            assert stats.kstest(row, "uniform").pvalue > 1e-4

    def test_they_leave_few_gaps(self):
        even = paths._even_numbers(2, 1024, np.random.default_rng(0))
        counts = np.histogram2d(*even, bins=16, range=[[0, 1], [0, 1]])[0]
        assert counts.std() < 1.0  # 2 by chance


class TestKeys:
    def test_streams_differ(self):
        asked = [(0,), (1,), (0, 0), (0, 1), (1, 0), (2**64,), (2**64 + 1,), (0, 0, 0)]
        assert len({int(paths.stream(*numbers)) for numbers in asked}) == len(asked)

    def test_a_place_is_known_to_a_tolerance(self):
        places = np.array([[0.3, 0.1 + 0.2, 0.31, -0.0, 0.0]])
        keys = paths.place_keys(places, np.array([1e-9]))
        assert keys[0] == keys[1] != keys[2]
        assert keys[3] == keys[4]

    def test_sites_and_places_differ(self):
        numbers = np.arange(5)
        assert not set(paths.site_keys(numbers)) & set(
            paths.place_keys(numbers[None].astype(float), np.ones(1))
        )

    def test_coordinates_are_told_apart(self):
        places = np.array([[1.0, 2.0], [2.0, 1.0]])
        first, second = paths.place_keys(places, np.ones(2))
        assert first != second


@dataclass(frozen=True)
class Cosine:
    """A kernel without a spectrum."""

    name: str = "mine"
    smoothness: float = 1.5
    reach: float = 30.0

    def profile(self, x):
        """Return the exponential correlation."""
        return np.exp(-x), -np.exp(-x), np.exp(-x)


def test_a_kernel_without_a_spectrum_is_refused():
    covariance = Covariance((Cosine(),), (InputGroup(2),), "icm")
    with pytest.raises(ValueError, match=r"kernel, which 'mine' does not tell\. Give"):
        paths.Prior.of(covariance, np.zeros(covariance.size))


def test_a_sample_is_drawn_with_its_tasks():
    sample = Sample.of([np.zeros((2, 1)), np.ones((1, 1))], [np.zeros(2), np.zeros(1)])
    covariance = covariance_of("se se", 1, "convolution")
    waves = paths.Prior.of(covariance, np.zeros(covariance.size)).draw(0, 0)
    assert waves.on(sample).shape == (3,)
