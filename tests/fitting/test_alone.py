"""One variable on its own: starts, more structures, comparisons on the same terms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.fitting import alone as module
from xcopula.fitting.alone import (
    Alone,
    largest_score,
    length_parameters,
    penalised,
    some_terms,
    starting_law,
    starting_point,
    starting_points,
)
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.base import half_distance
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import (
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Parzen,
    by,
    fit_law,
    regress,
    zero_inflated,
)
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
    def test_a_candidate_is_at_the_maximum(self, fitted):
        """Its likelihood is that of its parameters, and no slope is left."""
        alone, candidate = fitted
        process = alone.process(M32, candidate.marginal)
        part = alone.part(process, candidate.theta, None)
        value, gradient = alone.objective(process, part)(candidate.theta)
        nll, _ = part.objective(process, candidate.theta)
        assert value == pytest.approx(nll - process.log_prior(candidate.theta)[0])
        assert np.abs(gradient).max() < 2.0
        assert -candidate.log_likelihood == pytest.approx(nll, abs=0.1)
        parameters = process.covariance.size + candidate.marginal.dof
        assert candidate.aic == pytest.approx(2.0 * (parameters - candidate.log_likelihood))

    def test_all_neighbours_fit_as_exact_does(self):
        """The same likelihood at the same place."""
        sample = draw(60)
        found, expected = (
            Alone(sample, PLANE, 1, s).fit(M32, LAW) for s in (Neighbours(1000), Exact())
        )
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-3)
        np.testing.assert_allclose(found.theta, expected.theta, atol=0.02)

    def test_judged_at_given_parameters(self, fitted):
        """Where a candidate was fitted the judgement is the same."""
        alone, candidate = fitted
        process = alone.process(M32, candidate.marginal)
        again = alone.judge(M32, process, candidate.theta)
        assert again.log_likelihood == pytest.approx(candidate.log_likelihood, abs=0.1)
        assert again.largest_score == candidate.largest_score

    def test_scores_are_those_of_left_out_values(self, fitted):
        """The probability integral transforms are about uniform, and the CRPS beats the law's."""
        alone, candidate = fitted
        found = alone.scores(candidate)
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


class TestStructures:
    def started(self, alone, candidate, monkeypatch):
        """Return the richer candidate, and the likelihood at the last start of its search."""
        asked, real = [], Alone.fit

        def fit(self, kernel, marginal, starts=()):
            asked.append(starts)
            return real(self, kernel, marginal, starts)

        monkeypatch.setattr(Alone, "fit", fit)
        richer = alone.with_structures(candidate, 2)
        ((*_, start),) = asked
        own = replace(alone, structures=2)
        process = own.process(candidate.kernel, candidate.marginal)
        theta = process.join(start)
        return richer, process, theta, own.judge(M32, process, theta).log_likelihood

    def test_starts_near_the_poorer_and_ends_no_worse(self, fitted, monkeypatch):
        """From where one structure is best two begin about as good, and end better."""
        alone, candidate = fitted
        richer, process, theta, begun = self.started(alone, candidate, monkeypatch)
        assert begun > candidate.log_likelihood - 3.0
        assert richer.log_likelihood > candidate.log_likelihood - 0.05
        assert richer.log_likelihood > begun
        assert richer.structures == 2
        assert richer.theta.size == process.size
        # Together they have the variance of the one, and their lengths have its mean.
        covariance = process.covariance
        poor = alone.process(M32, LAW).covariance
        shares = [np.trace(m) for m in covariance.matrices(theta[: covariance.size])[:-1]]
        single = candidate.theta[: poor.size]
        assert sum(shares) == pytest.approx(float(poor.matrices(single)[0, 0, 0]))
        assert shares[0] == pytest.approx(shares[1])
        lengths = covariance.part(theta, "length")[:, 0, 0]
        assert lengths.mean() == pytest.approx(poor.part(single, "length")[0, 0, 0])
        assert lengths[1] - lengths[0] == pytest.approx(2.0)

    def test_scales_of_columns_are_kept(self, monkeypatch):
        """Also in several groups, with scales of their own."""
        groups = (InputGroup(2, ard=True), InputGroup(1))
        rng = np.random.default_rng(0)
        sample = Sample.of([rng.uniform(size=(40, 3))], [LAW.from_normal(rng.normal(size=40))])
        alone = Alone(sample, groups, 1, Neighbours(8))
        covariance = alone.process(M32, LAW).covariance
        theta = np.concatenate([reference.random_theta(covariance, rng), LAW.theta])
        candidate = alone.judge(M32, alone.process(M32, LAW), theta)
        _, process, start, _ = self.started(alone, candidate, monkeypatch)
        np.testing.assert_array_equal(
            process.covariance.part(start, "scaling"), covariance.part(theta, "scaling")
        )
        middle = process.covariance.part(start, "length").mean(axis=0)
        np.testing.assert_allclose(middle, covariance.part(theta, "length")[0])


class TestKernels:
    def test_starts_where_half_of_the_correlation_is_left_alike(self, fitted, monkeypatch):
        """From there it ends no worse than from afar."""
        alone, candidate = fitted
        two = alone.with_structures(candidate, 2)
        other = Nested((KERNELS["matern52"], M32))
        asked, real = [], Alone.fit

        def fit(self, kernel, marginal, starts=()):
            asked.append((kernel, starts))
            return real(self, kernel, marginal, starts)

        monkeypatch.setattr(Alone, "fit", fit)
        found = alone.with_kernels(two, other)
        ((kernel, (start,)),) = asked
        assert kernel == found.kernel == other
        assert found.structures == 2
        covariance = replace(alone, structures=2).process(other, LAW).covariance
        moved = covariance.part(start, "length") - covariance.part(two.theta, "length")
        ratio = half_distance(M32) / half_distance(KERNELS["matern52"])
        np.testing.assert_allclose(moved.ravel(), [math.log(ratio), 0.0])
        afar = replace(alone, structures=2).fit(other, two.marginal)
        assert found.log_likelihood > afar.log_likelihood - 0.5


class TestCommonTerms:
    def test_exact_candidates_stay_as_they_are(self):
        """All terms are in each of them."""
        alone = Alone(draw(40), PLANE, 1, Exact())
        candidates = [alone.fit(k, LAW) for k in (M32, SE)]
        assert alone.on_common_terms(candidates) == candidates
        assert all(c.error == 0.0 for c in candidates)

    def test_by_the_terms_of_the_best(self):
        """Each is judged with the neighbours that suit the best, and pays for its parameters."""
        alone = Alone(draw(120), PLANE, 1, Neighbours(6))
        candidates = [alone.fit(k, LAW) for k in (M32, SE)]
        candidates.append(alone.with_structures(candidates[0], 2))
        best = min(candidates, key=lambda c: c.rank)
        own = replace(alone, structures=best.structures)
        part = own.part(own.process(best.kernel, best.marginal), best.theta, None)
        found = alone.on_common_terms(candidates)
        each = []
        for before, after in zip(candidates, found, strict=True):
            its = replace(alone, structures=before.structures)
            process = its.process(before.kernel, before.marginal)
            densities = Neighbours(6).log_densities(
                process, part.sample, part.structure, before.theta
            )
            each.append(densities.each)
            assert after.log_likelihood == pytest.approx(densities.each.sum())
            paid = before.aic + 2.0 * before.log_likelihood
            assert after.aic + 2.0 * after.log_likelihood == pytest.approx(paid)
        reference_terms = each[candidates.index(best)]
        for after, own_terms in zip(found, each, strict=True):
            gain = own_terms - reference_terms
            expected = 2.0 * math.sqrt(gain.size * gain.var(ddof=1))
            assert after.error == pytest.approx(expected, abs=1e-9)
        assert sorted(c.error > 0.0 for c in found) == [False, True, True]

    def test_terms_that_stand_for_all(self, monkeypatch):
        """Candidates compared on a part have about the difference that they have on all."""
        monkeypatch.setattr(module, "TERMS_ALONE", 200)
        alone = Alone(draw(500), PLANE, 1, Neighbours(8))
        assert alone.terms == 200
        candidates = [alone.judge(k, (p := alone.process(k, LAW)), p.join(np.array([-2.0, 1.0])))
                      for k in (M32, SE)]  # fmt: skip
        part = alone.on_common_terms(candidates)
        monkeypatch.setattr(module, "TERMS_ALONE", 10**6)
        assert alone.terms is None
        whole = alone.on_common_terms(candidates)
        found, expected = (a.aic - b.aic for a, b in (part, whole))
        error = max(c.error for c in part)
        assert error > 0.0
        assert abs(found - expected) < 3.0 * error


class TestSurvey:
    """Terms that stand for all are chosen once, where every candidate has the same."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(module, "TERMS_ALONE", 100)

    def test_serves_every_candidate(self, monkeypatch):
        """The same fit, to rounding, without a search of its own."""
        alone = Alone(draw(300), PLANE, 1, Neighbours(8))
        some = alone.survey()
        assert some.structure.rows.size < 150
        surveyed = replace(alone, some=some)
        for kernel, law in ((M32, LAW), (SE, Normal(1.0, 1.0))):
            for structures in (1, 2):
                own = replace(surveyed, structures=structures)
                assert own.part(own.process(kernel, law), np.zeros(9), 100) is some
        expected = alone.fit(M32, LAW)
        monkeypatch.setattr(module, "Part", None)  # none is made
        found = surveyed.fit(M32, LAW)
        assert found.aic == pytest.approx(expected.aic, abs=1e-6)
        np.testing.assert_allclose(found.theta, expected.theta, atol=1e-6)

    def test_is_not_for_all_terms(self):
        alone = Alone(draw(300), PLANE, 1, Neighbours(8))
        surveyed = replace(alone, some=alone.survey())
        process = alone.process(M32, LAW)
        theta = process.join(starting_point(process.covariance))
        assert surveyed.part(process, theta, None).sample.size == 300

    def test_is_none_where_candidates_differ(self):
        """Of lengths in several groups, of a direction; by an atom; where all terms are there."""
        sample = draw(300)
        solver = Neighbours(8)
        assert Alone(sample, PLANE, 1, Exact()).survey() is None
        assert Alone(draw(150), PLANE, 1, solver).survey() is None
        assert Alone(sample, (InputGroup(1), InputGroup(1)), 1, solver).survey() is None
        turned = (InputGroup(2, directions=((1.0, 0.0), (0.0, 1.0))),)
        assert Alone(sample, turned, 1, solver).survey() is None
        limits = np.stack([sample.values, sample.values])
        limits[0, :20] = 0.0
        assert Alone(replace(sample, limits=limits), PLANE, 1, solver).survey() is None

    def test_a_law_with_an_atom_has_terms_of_its_own(self):
        """Its zeros are intervals."""
        sample = draw(300)
        values = np.where(np.arange(300) % 9, sample.values, 0.0)
        sample = replace(sample, values=values)
        alone = Alone(sample, PLANE, 1, Neighbours(8))
        surveyed = replace(alone, some=alone.survey())
        law = fit_law(zero_inflated("gamma"), values)
        process = surveyed.process(M32, law)
        theta = process.join(starting_point(process.covariance))
        assert surveyed.part(process, theta, 100) is not surveyed.some


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

    def test_a_world_that_is_crossed(self):
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
        alone = Alone(sample, groups, 2, Exact())
        found = alone.fit(M32, LAW)
        each = [alone.fit(M32, LAW, [start]) for start in starting_points(covariance)]
        assert found.log_likelihood >= max(c.log_likelihood for c in each) - 0.1
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

    def test_laws_that_do_not_admit_the_values(self):
        """They are no candidates; neither is one under which a value has no finite score."""
        values = np.array([-1.0, 2.0, 3.0, 4.0, 5.0])
        assert starting_law(Gamma, values) is None
        assert starting_law(Exponential, np.abs(values) - 1.0) is None  # a zero
        found = starting_law(Normal, values)
        assert found is not None
        assert found.location == pytest.approx(values.mean())

    def test_some_terms(self):
        """Terms stand for all where there are more than twice as many, and the solver can."""
        sample = draw(50)
        assert some_terms(Neighbours(), sample, 24) == 24
        assert some_terms(Neighbours(), sample, 25) is None
        assert some_terms(Exact(), sample, 5) is None
