"""Properties that hold for any data: drawn by hypothesis, checked on every exact method."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from reference import EXAMPLES, condition, example, permuted, simulate, some_targets, targets

import xcopula
from xcopula.kernels.covariance import _LOGIT_BOUNDS
from xcopula.labels.observations import observe
from xcopula.marginals import MARGINALS
from xcopula.methods import Full, Transductive
from xcopula.process import Predictive, Sample

FEW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = st.integers(0, 2**16)
# Methods whose posterior is that of a Gaussian model: more data, never less known.
EXACT = [Full(), Transductive(weights="report", anchors=None)]


def shuffled(sample: Sample, rng) -> tuple[Sample, np.ndarray]:
    """Return the sample with the observations of each task in another order, and that order."""
    order = np.concatenate(
        [rng.permutation(np.arange(*sample.offsets[[i, i + 1]])) for i in range(sample.tasks)]
    )
    return (
        Sample(
            np.ascontiguousarray(sample.inputs[:, order]),
            sample.offsets,
            sample.values[order],
            sample.sites[order],
        ),
        order,
    )


@pytest.mark.parametrize("name", list(EXAMPLES))
class TestArrays:
    @FEW
    @given(seed=SEEDS)
    def test_order_of_observations(self, name, seed):
        """The order of sites within a variable changes neither prediction nor leave-one-out."""
        process, sample, theta, rng = example(name, seed=seed)
        other, order = shuffled(sample, rng)
        cells = some_targets(sample, rng)
        for method in EXACT:
            one, two = (condition(method, process, s, theta) for s in (sample, other))
            for a, b in zip(one.moments(cells), two.moments(cells), strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
            for a, b in zip(one.leave_one_out(), two.leave_one_out(), strict=True):
                np.testing.assert_allclose(a[order], b, rtol=0, atol=1e-9)

    @FEW
    @given(seed=SEEDS)
    def test_order_of_tasks(self, name, seed):
        """Numbering the variables in another way predicts each as before."""
        process, sample, theta, rng = example(name, seed=seed)
        order = list(rng.permutation(sample.tasks))
        other, other_theta = permuted(process, theta, order)
        cells = some_targets(sample, rng)
        plain = condition(Full(), process, sample, theta)
        moved = condition(Full(), other, sample.select(order), other_theta)
        for new, old in enumerate(order):
            for a, b in zip(
                plain.moments(cells, task=int(old)), moved.moments(cells, task=new), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)

    @FEW
    @given(seed=SEEDS)
    def test_more_data_never_raise_the_variance(self, name, seed):
        """Leaving observations out leaves every cell at most as well known."""
        process, sample, theta, rng = example(name, seed=seed)
        keep = np.sort(rng.permutation(sample.size)[: sample.size - 5])
        fewer = sample.take(keep)
        if min(fewer.sizes) < 3:
            return
        cells = some_targets(sample, rng)
        for nugget in (True, False):
            much, little = (
                condition(Full(), process, s, theta).moments(cells, nugget=nugget).variance
                for s in (sample, fewer)
            )
            assert (much <= little + 1e-10).all()

    @FEW
    @given(seed=SEEDS)
    def test_a_datum_is_predicted_as_itself(self, name, seed):
        """An observation at a site of the data is the datum, for every task."""
        process, sample, theta, _ = example(name, seed=seed)
        scores = process.scores(theta, sample)
        for method in EXACT:
            conditioned = condition(method, process, sample, theta)
            for i in range(sample.tasks):
                own = sample.task(i)
                mean, variance = conditioned.moments(sample.targets(own), task=i)
                np.testing.assert_allclose(mean, scores[own], rtol=0, atol=1e-7)
                np.testing.assert_allclose(variance, 0.0, atol=1e-9)

    @FEW
    @given(seed=SEEDS)
    def test_noise_free_data_are_their_own_signal(self, name, seed):
        """With the nugget at its least, two millionths, the signal passes through the data."""
        process, sample, theta, _ = example(name, seed=seed)
        covariance = process.covariance
        covariance.part(theta[: covariance.size], "logit")[:] = _LOGIT_BOUNDS[1]
        inputs = [sample.inputs[:, sample.task(i)].T for i in range(sample.tasks)]
        exact = simulate(process, theta, inputs, seed=seed)
        scores = process.scores(theta, exact)
        nugget = np.diagonal(covariance.matrices(theta[: covariance.size])[-1])
        assert nugget.max() < 3e-6
        for method in EXACT:
            conditioned = condition(method, process, exact, theta)
            for i in range(exact.tasks):
                own = exact.task(i)
                mean, variance = conditioned.moments(exact.targets(own), task=i, nugget=False)
                np.testing.assert_allclose(mean, scores[own], rtol=0, atol=5.0 * nugget[i] ** 0.5)
                assert (variance <= 1.01 * nugget[i] + 1e-9).all()

    @FEW
    @given(seed=SEEDS)
    def test_the_signal_is_known_better_than_an_observation(self, name, seed):
        """At a cell without data the two differ by the nugget, and in nothing else."""
        process, sample, theta, rng = example(name, seed=seed)
        cells = targets(sample, rng.uniform(size=(len(sample.inputs), 8)))
        nugget = process.covariance.matrices(theta[: process.covariance.size])[-1][0, 0]
        for method in EXACT:
            conditioned = condition(method, process, sample, theta)
            value, signal = (conditioned.moments(cells, nugget=n) for n in (True, False))
            np.testing.assert_allclose(value.mean, signal.mean, rtol=0, atol=1e-9)
            np.testing.assert_allclose(value.variance, signal.variance + nugget, atol=1e-9)


@pytest.mark.parametrize("law", list(MARGINALS))
class TestOutcomes:
    @FEW
    @given(
        seed=SEEDS,
        mean=st.floats(-3.0, 3.0),
        std=st.floats(0.01, 2.0),
        levels=st.lists(st.floats(0.001, 0.999), min_size=2, max_size=6, unique=True),
    )
    def test_quantiles_and_probabilities(self, law, seed, mean, std, levels):
        """Quantiles rise with their level, and the CDF takes them back to it."""
        values = np.random.default_rng(seed).lognormal(size=60)
        fitted = MARGINALS[law].fit(values)
        predicted = Predictive(np.array([mean]), np.array([std]), fitted)
        found = [predicted.quantile(level)[0] for level in sorted(levels)]
        assert (np.diff(found) >= 0.0).all()
        back = [predicted.cdf(value)[0] for value in found]
        np.testing.assert_allclose(back, sorted(levels), rtol=1e-6, atol=1e-9)
        over = predicted.exceedance(found[0])[0]
        assert over + back[0] == pytest.approx(1.0, abs=1e-12)


def world() -> tuple[xr.Dataset, xr.Dataset]:
    """Return 30 sites of two related positive variables, and points between them."""
    rng = np.random.default_rng(8)
    x, y = rng.uniform(size=(2, 40))
    wave = np.sin(5.0 * x) + np.cos(4.0 * y)
    data = xr.Dataset(
        {
            "a": ("site", np.exp(0.5 * wave + 0.2 * rng.normal(size=40))),
            "b": ("site", np.exp(0.4 * wave + 0.3 * rng.normal(size=40))),
        },
        coords={"x": ("site", x), "y": ("site", y)},
    )
    points = data.drop_vars(["a", "b"])
    return data.isel(site=slice(30)), points.isel(site=slice(30, None))


@functools.cache
def in_units(law: str, factor: float, shift: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Fit and predict in some units: latent moments, quantiles in plain units, log-likelihood."""
    data, points = world()
    model = xcopula.fit(
        factor * (data + shift),
        "a",
        "b",
        marginals=law,
        kernels="matern32",
        method="full",
        restarts=0,
    )
    latent = model.posterior(points).latent
    moments = np.stack([latent["mean"].values, latent["std"].values])
    quantiles = model.predict(points)["a"].values / factor - shift
    return moments, quantiles, model.log_likelihood + 60 * np.log(factor)


@pytest.mark.parametrize("law", list(MARGINALS))
@settings(max_examples=4, deadline=None)
@given(exponent=st.floats(-9.0, 9.0), shift=st.floats(-100.0, 100.0))
def test_affine_units_of_values(law, exponent, shift):
    """A fit and its prediction: any unit, and any origin where the law has none of its own."""
    shift = shift if law in ("normal", "gev", "t") else 0.0
    plain, moved = in_units(law, 1.0, 0.0), in_units(law, 10.0**exponent, shift)
    np.testing.assert_allclose(moved[0], plain[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(moved[1], plain[1], rtol=0, atol=1e-6 * plain[1].std())
    assert moved[2] == pytest.approx(plain[2], abs=1e-5)


class TestLabels:
    @FEW
    @given(seed=SEEDS, factor=st.floats(1e-6, 1e6), shift=st.floats(-1e5, 1e5))
    def test_units_of_coordinates(self, sites, alone, seed, factor, shift):
        """Another unit and origin of x and y give the same inputs, and so the same prediction."""
        rng = np.random.default_rng(seed)
        points = rng.uniform([0.0, 0.0], [4.0, 3.0], (5, 2))
        # Far from the origin, a point next to a site is that site: see docs/coordinates.md.
        known = np.stack([sites["x"].values, sites["y"].values], axis=1)
        apart = np.abs(points[:, None] - known).max(axis=-1).min()
        assume(apart > 2.0**-22 * (abs(shift) + 4.0))

        def moved(values):
            return factor * (np.asarray(values) + shift)

        data = xr.Dataset(
            {"metal": ("site", sites["metal"].values)},
            coords={c: ("site", moved(sites[c].values)) for c in "xy"},
        )
        plain = data.assign_coords({c: ("site", sites[c].values) for c in "xy"})
        found = []
        for frame, change in ((plain, np.asarray), (data, moved)):
            model = dataclasses.replace(alone, observations=observe(frame, ["metal"]))
            target = xr.Dataset(coords={c: ("p", change(points[:, k])) for k, c in enumerate("xy")})
            latent = model.posterior(target).latent
            found.append(np.stack([latent["mean"], latent["std"]]))
        # What the origin takes from the digits of a coordinate, times how steep the process is.
        lost = 1e-9 + 1e-13 * abs(shift)
        np.testing.assert_allclose(found[1], found[0], rtol=0, atol=100.0 * lost)

    @FEW
    @given(seed=SEEDS)
    def test_a_part_of_a_grid(self, model, grid, seed):
        """Any cells of a grid have the values that they have in the whole, in chunks or not."""
        rng = np.random.default_rng(seed)
        whole = model.posterior(grid).latent
        part = {
            str(dim): np.sort(rng.permutation(size)[: rng.integers(1, size + 1)])
            for dim, size in grid.sizes.items()
        }
        chunks = {dim: int(rng.integers(1, len(kept) + 1)) for dim, kept in part.items()}
        for options in ({}, {"chunks": chunks}):
            alone = model.posterior(grid.isel(part), **options).latent
            for name in ("mean", "std"):
                np.testing.assert_allclose(
                    alone[name].values, whole[name].isel(part).values, rtol=0, atol=1e-10
                )

    @FEW
    @given(seed=SEEDS)
    def test_order_of_dims_and_cells(self, model, grid, seed):
        """A target transposed and shuffled has the same value in every cell."""
        rng = np.random.default_rng(seed)
        plain = model.predict(grid, 0.5)["metal"]
        moved = grid.isel(x=rng.permutation(grid.sizes["x"]), y=rng.permutation(grid.sizes["y"]))
        other = model.predict(moved.transpose("x", "y"), 0.5)["metal"]
        xr.testing.assert_allclose(
            other.sortby(["x", "y"]).transpose(*plain.dims), plain.sortby(["x", "y"]), rtol=1e-10
        )
