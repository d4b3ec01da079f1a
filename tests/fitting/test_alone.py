"""One variable on its own: where it starts, where it ends, comparisons on the same terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.fitting import alone as module
from xcopula.fitting.alone import (
    Alone,
    largest_score,
    starting_point,
    starting_points,
    with_all_values,
)
from xcopula.fitting.maximise import length_parameters, penalised, subsample_size
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import GEV, Gamma, LogNormal, Normal, Parzen, by, regress
from xcopula.process import Process, Sample
from xcopula.solvers import Exact, Neighbours

PLANE = (InputGroup(2),)
LAW = LogNormal(0.5, 0.8)
M32, SE = KERNELS["matern32"], KERNELS["se"]
SOLVERS = {"exact": Exact(), "neighbours": Neighbours(12)}


def draw(n=150, structures=2, seed=0):
    """Simulate one task with a short and a long range."""
    covariance = Covariance((M32,), PLANE, structures=structures)
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:, 0, 0] = np.log([0.03, 0.3][-structures:])
    covariance.part(theta, "logit")[:] = 1.0
    process = Process(covariance, (LAW,))
    sites = np.random.default_rng(seed).uniform(size=(n, 2))
    return reference.simulate(process, process.join(theta), [sites], seed)


@pytest.fixture(scope="module", params=SOLVERS.values(), ids=SOLVERS.keys())
def fitted(request):
    """Return a variable on its own, and it fitted with one structure."""
    alone = Alone(draw(), PLANE, 1, request.param)
    return alone, alone.fit(M32, LAW)


class TestFit:
    def test_is_at_the_maximum(self, fitted):
        """Its likelihood is that of its parameters, and no slope is left."""
        alone, single = fitted
        process = single.process
        assert process.covariance == alone.process(M32, single.marginal).covariance
        part = alone.part(process, single.theta)
        value, gradient, _ = alone.objective(process, part)(single.theta)
        nll, _ = part.objective(process, single.theta)
        assert value == pytest.approx(nll - process.log_prior(single.theta)[0])
        assert np.abs(gradient).max() < 5.0
        assert -single.log_likelihood == pytest.approx(nll, abs=0.1)
        parameters = process.covariance.size + single.marginal.dof
        assert single.aic == pytest.approx(2.0 * (parameters - single.log_likelihood))
        matrices = single.covariance.matrices(single.theta[: single.covariance.size])
        assert single.nugget == matrices[-1, 0, 0]
        assert matrices.sum() == pytest.approx(1.0)

    def test_all_neighbours_fit_as_exact_does(self):
        """The same likelihood at the same place."""
        sample = draw(60)
        found, expected = (
            Alone(sample, PLANE, 1, solver, rough=False).fit(M32, LAW)
            for solver in (Neighbours(1000), Exact())
        )
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-3)
        np.testing.assert_allclose(found.theta, expected.theta, atol=0.02)

    def test_scores_are_those_of_left_out_values(self, fitted):
        """The probability integral transforms are about uniform, and the CRPS beats the law's."""
        alone, single = fitted
        found = alone.scores(single)
        assert found.pit.size == alone.sample.size
        assert 0.4 < found.pit.mean() < 0.6
        values = alone.sample.values
        spread = np.abs(values[:, None] - values).mean() / 2.0
        assert found.crps.mean() < spread

    def test_penalised(self):
        """The negative log-likelihood less the log prior, with its gradient."""
        process, sample, theta, _ = reference.example("single")
        objective = penalised(process, lambda t: Exact().objective(process, sample, None, t))
        expected = reference.differences(lambda t: objective(t)[0], theta, step=5e-4)
        np.testing.assert_allclose(objective(theta)[1], expected, atol=1e-5)
        nll, _ = Exact().objective(process, sample, None, theta)
        assert objective(theta)[0] == pytest.approx(nll - process.log_prior(theta)[0])


class TestCommonTerms:
    """What is compared has the terms and neighbours of one fit, where terms are a part."""

    @pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
    def test_of_another_fit(self, solver):
        """At its end the likelihood is that on the terms of the other, whatever the kernel."""
        alone = Alone(draw(120), PLANE, 1, solver)
        first = alone.fit(M32, LAW)
        second = alone.fit(SE, LAW, terms_of=first)
        part = alone.part(first.process, first.theta)
        nll, _ = part.objective(second.process, second.theta)
        assert second.log_likelihood == pytest.approx(-nll)

    def test_a_part_says_about_what_all_say(self, monkeypatch):
        """Two kernels have about the difference on a part of the terms that they have on all."""
        alone, gains = Alone(draw(500), PLANE, 1, Neighbours(8)), []
        for terms in (200, 10**6):
            monkeypatch.setattr(module, "TERMS_ALONE", terms)
            assert alone.terms == (200 if terms == 200 else None)
            first = alone.fit(M32, LAW)
            gains.append(first.aic - alone.fit(SE, LAW, terms_of=first).aic)
        assert gains[0] < 0.0
        assert gains[1] < 0.0
        # one term in 2.5 is seen: a third more or less
        assert gains[0] == pytest.approx(gains[1], rel=0.35)


class TestWithAllValues:
    """A fit to a part of the values, and values that were not in it."""

    def test_a_law_that_admits_all_stays(self, fitted):
        alone, single = fitted
        assert with_all_values(single, alone.sample, LAW) is single

    def test_else_the_first_law_comes_back(self):
        """With the covariance of the fit."""
        sample = draw(60)
        start = GEV(2.0, 2.0, 0.0)
        single = Alone(sample, PLANE, 1, Exact()).fit(M32, start)
        short = GEV(2.0, 1.0, -0.5)  # ends at 4
        theta = np.concatenate([single.theta[:-3], short.theta])
        found = with_all_values(replace(single, theta=theta), sample, start)
        assert found.marginal == start
        np.testing.assert_array_equal(found.theta[:-3], single.theta[:-3])
        np.testing.assert_array_equal(found.theta[-3:], start.theta)


class TestLargestScore:
    @pytest.mark.parametrize("law", [Normal(1.0, 2.0), LAW, Gamma(2.0, 1.0), "parzen"])
    def test_of_a_law_for_all(self, law):
        """The ends of the sample have it."""
        sample = draw(80)
        law = Parzen.fit(sample.values) if law == "parzen" else law
        expected = np.abs(law.to_normal(sample.values)).max()
        assert largest_score(law, sample) == pytest.approx(expected)

    @pytest.mark.parametrize(
        "recipe",
        [regress("normal", on="x"), by("k", "lognormal"), regress(by("k", "normal"), on="x")],
        ids=["regress", "by", "both"],
    )
    def test_of_a_law_that_varies(self, recipe):
        """Then any value may have it: each is asked under the law of its own row."""
        rng = np.random.default_rng(0)
        columns = {"x": rng.normal(size=60), "k": np.arange(60) % 3.0}
        table = np.column_stack([columns[name] for name in recipe.fields])
        values = np.exp(0.5 * columns["x"] + columns["k"] + 0.2 * rng.normal(size=60))
        # The outlier of its group is neither the smallest nor the largest of all.
        values[0] = np.median(values) * 2.0
        law = recipe.fit(values, table)
        sample = Sample.of([rng.uniform(size=(60, 2))], [values], [table])
        each = [
            abs(float(law.at(row[None]).to_normal(np.array([y]))[0]))
            for row, y in zip(table, values, strict=True)
        ]
        assert largest_score(law, sample) == pytest.approx(max(each), rel=1e-10)

    def test_out_of_support(self):
        """It is infinite."""
        sample = Sample.of([np.zeros((3, 2))], [np.array([-1.0, 1.0, 2.0])], sites=np.arange(3))
        with np.errstate(all="ignore"):
            assert not np.isfinite(largest_score(Gamma(2.0, 1.0), sample))


class TestStarts:
    def test_lengths_are_nested_and_most_variance_is_signal(self):
        """One structure at a share of the extent, several around it."""
        for structures in (1, 2, 3):
            covariance = Covariance((M32, SE), PLANE, structures=structures)
            theta = starting_point(covariance)
            lengths = np.exp(covariance.part(theta, "length"))
            assert np.exp(np.log(lengths).mean()) == pytest.approx(0.15)
            assert (np.diff(lengths[:, 0, 0]) > 0.0).all()
            assert (np.diag(covariance.matrices(theta)[-1]) < 0.3).all()

    def test_several_groups_are_also_crossed(self):
        """Short in the first and long in the others: the second of two starts."""
        groups = (InputGroup(2), InputGroup(1), InputGroup(1))
        covariance = Covariance((M32,), groups, structures=2)
        paired, crossed = (
            covariance.part(t, "length")[..., 0] for t in starting_points(covariance)
        )
        np.testing.assert_array_equal(paired[0], paired[0, 0])
        np.testing.assert_array_equal(crossed[:, 0], paired[:, 0])
        np.testing.assert_array_equal(crossed[:, 1:], paired[::-1, 1:])
        assert len(starting_points(Covariance((M32,), groups))) == 1
        assert len(starting_points(Covariance((M32,), PLANE, structures=2))) == 1

    def test_a_world_that_is_crossed(self, monkeypatch):
        """Weather of a region for a day, and local climate that stays: found from either start."""
        groups = (InputGroup(1), InputGroup(1))
        covariance = Covariance((M32,), groups, structures=2, noise="independent")
        theta = np.zeros(covariance.size)
        covariance.part(theta, "length")[..., 0] = np.log([[0.5, 0.02], [0.04, 1.0]])
        covariance.part(theta, "logit")[:] = 2.0
        process = Process(covariance, (LAW,))
        places, times = np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 16))
        sites = np.column_stack([places.ravel(), times.ravel()])
        sample = reference.simulate(process, process.join(theta), [sites], 3)
        alone = Alone(sample, groups, 2, Exact(), rough=False)
        found = alone.fit(M32, LAW)
        each = []
        for start in starting_points(covariance):
            monkeypatch.setattr(module, "starting_points", lambda _, start=start: [start])
            each.append(alone.fit(M32, LAW).log_likelihood)
        assert found.log_likelihood >= max(each) - 0.1
        lengths = covariance.part(found.theta[: covariance.size], "length")[..., 0]
        regional, local = lengths[np.argsort(-lengths[:, 0])]
        assert regional[0] > local[0] + 1.0
        assert regional[1] < local[1] - 1.0

    def test_where_lengths_stand(self):
        """Length scales and the scales of columns, and nothing else."""
        covariance = Covariance((M32, SE), (InputGroup(2, ard=True), InputGroup(1)), structures=2)
        process = Process(covariance, (LAW, LAW))
        where = length_parameters(process)
        theta = np.zeros(process.size)
        theta[where] = 1.0
        own = theta[: covariance.size]
        assert (covariance.part(own, "length") == 1.0).all()
        assert (covariance.part(own, "scaling") == 1.0).all()
        assert theta.sum() == covariance.part(own, "length").size + 2

    def test_subsample_size(self):
        """Terms stand for all where there are more than twice as many, and the solver can."""
        sample = draw(50)
        assert subsample_size(Neighbours(), sample, 24) == 24
        assert subsample_size(Neighbours(), sample, 25) is None
        assert subsample_size(Exact(), sample, 5) is None
