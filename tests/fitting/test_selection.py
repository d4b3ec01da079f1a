"""The choice of kernel and marginal law, task by task."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.errors import SupportError
from xcopula.fitting import selection
from xcopula.fitting.alone import Alone, penalised, starting_law, starting_point
from xcopula.fitting.selection import (
    Choice,
    kernels_to_try,
    laws_to_try,
    select_shared,
    select_structures,
    shortlist,
)
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import (
    GEV,
    MARGINALS,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Parzen,
    StudentT,
    by,
    regress,
)
from xcopula.model.candidates import Candidate
from xcopula.model.extremes import EXTREME_SCORE
from xcopula.process import Process, Sample
from xcopula.solvers import Exact

PLANE = (InputGroup(2),)


def draw(marginal, n=70, kernel="matern32", length=0.15, seed=0):
    """Simulate one task with a nugget of a tenth."""
    rng = np.random.default_rng(seed)
    covariance = Covariance((KERNELS[kernel],), PLANE)
    theta = np.array([math.log(length), math.log(9.0)])
    x = rng.uniform(size=(n, 2))
    matrix = reference.covariance_matrix(covariance, theta, [x])
    return Sample.of([x], [marginal.from_normal(np.linalg.cholesky(matrix) @ rng.normal(size=n))])


def of(sample, structures=1):
    """Return a variable on its own in the plane."""
    return Alone(sample, PLANE, structures, Exact())


def select(alone, kernels, law, labels=None, rows=None, support=(-math.inf, math.inf)):
    """Try all that may be chosen, one after the other; no law is passed over for its support."""
    options = {"labels": labels, "rows": rows, "support": support}
    choice = Choice(alone, kernels or kernels_to_try(None), laws_to_try(law), **options)
    first = choice.try_law(0)
    laws = [first, *(choice.try_law(k, first) for k in range(1, len(choice.laws)))]
    return choice.ranked(
        [*laws, *(choice.try_kernel(k, laws) for k in range(1, len(choice.kernels)))]
    )


def objective_of(process, sample):
    """Return the negative log-likelihood of a process as a function of theta."""
    return functools.partial(Exact().objective, process, sample, None)


@pytest.fixture(scope="module")
def skewed():
    """All candidates for a log-normal sample."""
    sample = draw(LogNormal(1.0, 1.0))
    return sample, select(of(sample), None, None)


def test_candidates_are_ranked(skewed):
    """Candidates come best first: no extreme score before any extreme one, then by AIC."""
    _, candidates = skewed
    ranks = [c.rank for c in candidates]
    assert ranks == sorted(ranks)
    assert len(candidates) == len(MARGINALS) + len(KERNELS) - 1


def test_every_law_and_kernel_is_tried(skewed):
    """All laws are compared, and all kernels under the best law."""
    _, candidates = skewed
    assert {c.marginal.name for c in candidates} == set(MARGINALS)
    assert {c.kernel.name for c in candidates} == set(KERNELS)


class TestMixedKernels:
    """Smooth at short range and rough at long: tried where two structures come close to one."""

    def tables(self, sample, kernels=None, most=2, structures=1):
        """Return what was tried with two structures."""
        alone = of(sample, structures)
        choice = Choice(
            alone, kernels or kernels_to_try(None), laws_to_try(Normal), most_structures=most
        )
        law = choice.try_law(0)
        tried = [law, *(choice.try_kernel(k, [law]) for k in range(1, len(choice.kernels)))]
        return [c for c in choice.ranked(tried) if c.structures == 2]

    def test_beside_one_kernel_for_both(self, monkeypatch):
        """With the law of the others, and as good as a fit from afar."""
        sample = draw(Normal(0.0, 1.0), n=60)
        monkeypatch.setattr(selection, "_CLOSE_STRUCTURES", np.inf)
        found = self.tables(sample)
        names = {c.kernel.name for c in found}
        assert len(found) == 2
        assert "matern52 + matern12" in names
        assert {c.marginal.name for c in found} == {"normal"}
        new = next(c for c in found if c.kernel.name == "matern52 + matern12")
        afar = of(sample, 2).fit(new.kernel, new.marginal)
        assert new.log_likelihood > afar.log_likelihood - 0.5

    def test_not_where_two_are_far_behind(self, monkeypatch):
        """Then another kernel does not bring them back."""
        monkeypatch.setattr(selection, "_CLOSE_STRUCTURES", -np.inf)
        assert len(self.tables(draw(Normal(0.0, 1.0), n=60))) == 1

    def test_not_where_the_kernel_was_given(self, monkeypatch):
        """It is no question."""
        monkeypatch.setattr(selection, "_CLOSE_STRUCTURES", np.inf)
        given = (KERNELS["matern32"],)
        assert len(self.tables(draw(Normal(0.0, 1.0), n=60), given)) == 1

    def test_also_where_two_were_asked_for(self):
        """The kernels are open: one for each is one of them."""
        found = self.tables(draw(Normal(0.0, 1.0), n=60), structures=2)
        assert [c.kernel.name for c in found].count("matern52 + matern12") == 1
        assert len(found) == len(KERNELS) + 1


def test_all_have_a_kernel_for_each_structure_or_none():
    """By the AIC of all together: kernels that differ at one range cap the correlation there."""
    mixed = Nested((KERNELS["matern52"], KERNELS["matern12"]))

    def table(one, plain, each):
        return [
            replace(candidate("matern12", aic, structures=n), kernel=kernel)
            for aic, n, kernel in (
                (one, 1, KERNELS["matern12"]),
                (plain, 2, KERNELS["matern12"]),
                (each, 2, mixed),
            )
            if aic is not None
        ]

    def first(*tables):
        return [(t[0].kernel, t[0].structures) for t in select_structures(list(tables))]

    # The second alone would have one kernel; both together have one for each, or the reverse.
    assert first(table(10, 8, 1), table(10, 8, 9)) == [(mixed, 2)] * 2
    assert first(table(10, 8, 7), table(10, 1, 8)) == [(KERNELS["matern12"], 2)] * 2
    # What was not tried for one is not chosen for the other, and may not tip the structures.
    assert first(table(10, 11, 1), table(10, 11, None)) == [(KERNELS["matern12"], 1)] * 2
    # Where a list was given to one, the other chooses for itself.
    given = [c for c in table(10, 8, 1) if c.kernel == mixed]
    assert first(given, table(None, 8, 9))[1] == (KERNELS["matern12"], 2)
    (alone,) = select_structures([table(10, 8, 1)])
    assert [c.aic for c in alone] == [1, 8, 10]


def test_a_skewed_law_wins_on_skewed_data(skewed):
    """A normal law loses to a skewed one on log-normal data, by ten units of AIC at least."""
    _, candidates = skewed
    normal = min(c.aic for c in candidates if c.marginal.name == "normal")
    assert candidates[0].marginal.name not in ("normal", "t")
    assert candidates[0].aic < normal - 10.0


def test_laws_that_reach_below_zero_are_passed_over(skewed):
    """Where all values are above it; what was asked for is taken."""
    sample, candidates = skewed
    found = select(of(sample), [KERNELS["se"]], None, support=None)
    assert {c.marginal.name for c in found} == {"lognormal", "exponential", "gamma", "parzen"}
    assert candidates[0].marginal.name in {c.marginal.name for c in found}
    (asked,) = select(of(sample), [KERNELS["se"]], Normal, support=None)
    assert asked.marginal.name == "normal"


def test_candidate_reports_its_own_likelihood(skewed):
    """Likelihood, AIC and largest score are those of the fitted process."""
    sample, candidates = skewed
    for c in candidates:
        covariance = Covariance((c.kernel,), PLANE, noise="independent")
        nll, _ = objective_of(Process(covariance, (c.marginal,)), sample)(c.theta)
        assert c.log_likelihood == pytest.approx(-nll, abs=1e-9)
        assert c.aic == pytest.approx(2 * (nll + 2 + c.marginal.dof), abs=1e-9)
        assert c.largest_score == pytest.approx(np.abs(c.marginal.to_normal(sample.values)).max())


def test_outlier_rules_out_light_tails():
    """With a gross outlier a law that sends it past five deviations is not chosen."""
    sample = draw(LogNormal(1.0, 0.3), seed=1)
    values = sample.values.copy()
    values[7] = 40.0 * np.median(values)
    candidates = select(of(replace(sample, values=values)), [KERNELS["matern32"]], None)
    assert any(c.largest_score > EXTREME_SCORE for c in candidates), "no law is extreme: vacuous"
    assert candidates[0].largest_score <= EXTREME_SCORE
    extreme = [c.largest_score > EXTREME_SCORE for c in candidates]
    assert extreme == sorted(extreme)


def candidate(kernel, aic, largest=3.0, marginal=None, structures=1):
    """Make up a candidate."""
    law = marginal or Normal()
    return Candidate(KERNELS[kernel], law, np.zeros(4), -aic / 2, aic, largest, structures)


def test_an_extreme_score_outweighs_the_aic():
    """A better AIC does not redeem an extreme score."""
    assert candidate("se", 100.0).rank < candidate("se", 10.0, largest=5.1).rank
    assert candidate("se", 10.0).rank < candidate("se", 100.0).rank


def test_laws_without_the_support_are_skipped():
    """Negative values rule the positive laws out without an error when all are tried."""
    sample = draw(Normal(0.0, 1.0))
    candidates = select(of(sample), [KERNELS["matern32"]], None)
    names = {c.marginal.name for c in candidates}
    assert names.isdisjoint({"lognormal", "gamma", "exponential"})
    assert {"normal", "gev", "t", "parzen"} <= names


def test_a_law_asked_for_must_support_the_data():
    """The same law asked for by the caller is an error."""
    with pytest.raises(SupportError, match="gamma needs"):
        select(of(draw(Normal(0.0, 1.0))), [KERNELS["matern32"]], Gamma)


def test_given_kernels_and_laws_are_the_only_ones():
    """A fixed kernel and law leave one candidate, at the law given or fitted."""
    sample = draw(LogNormal(0.0, 0.5))
    (only,) = select(of(sample), [KERNELS["matern12"]], LogNormal(0.0, 0.5))
    assert only.kernel.name == "matern12"
    assert isinstance(only.marginal, LogNormal)


def test_shared_kernel_is_the_best_in_total():
    """One kernel serves all tasks: the one whose best candidates add up to the least AIC."""
    tables = [
        [candidate("se", 10.0), candidate("matern12", 12.0), candidate("matern12", 14.0)],
        [candidate("matern12", 20.0), candidate("se", 30.0)],
    ]
    shared = select_shared(tables)
    assert [t[0].kernel.name for t in shared] == ["matern12", "matern12"]
    assert [t[0].aic for t in shared] == [12.0, 20.0]
    assert [sorted(c.aic for c in t) for t in shared] == [[10.0, 12.0, 14.0], [20.0, 30.0]]


def test_shared_kernels_have_the_same_structures():
    """Where two structures were tried with each task's own kernel only, one is all they share."""
    tables = [
        [
            candidate("matern32", 50.0, structures=2),
            candidate("matern32", 100.0),
            candidate("matern12", 140.0),
        ],
        [
            candidate("matern12", 180.0, structures=2),
            candidate("matern12", 200.0),
            candidate("matern32", 205.0),
        ],
    ]
    first = [table[0] for table in select_shared(tables)]
    assert [(c.kernel.name, c.structures) for c in first] == [("matern32", 1)] * 2
    tables[1].append(candidate("matern32", 190.0, structures=2))
    first = [table[0] for table in select_shared(tables)]
    assert [(c.kernel.name, c.structures) for c in first] == [("matern32", 2)] * 2


def test_shortlist_holds_the_close_laws():
    """Laws within 20 of the best AIC and without extreme scores, best first, three at most."""
    best = candidate("se", 95.0, marginal=LogNormal())
    tried = [
        candidate("matern32", 100.0, marginal=LogNormal()),
        candidate("matern32", 110.0, marginal=Gamma()),
        candidate("matern32", 119.0, marginal=GEV()),
        candidate("matern32", 121.0, marginal=Normal()),
        candidate("matern32", 90.0, marginal=StudentT(), largest=6.0),
    ]
    assert [m.name for m in shortlist([best, *tried])] == ["lognormal", "gamma", "gev"]
    closer = candidate("matern32", 101.0, marginal=Parzen.fit(np.arange(20.0)))
    names = [m.name for m in shortlist([best, tried[0], closer, *tried[1:]])]
    assert names == ["lognormal", "parzen", "gamma"]


def test_shortlist_is_never_empty():
    """Where every law is extreme the best of them is still there."""
    table = [candidate("se", 1.0, largest=7.0), candidate("matern32", 2.0, largest=8.0)]
    assert len(shortlist(table)) == 1


@pytest.mark.parametrize("structures", [1, 2, 3])
def test_starting_point_is_valid(structures):
    """The start lies within the bounds, uncorrelated, with nested lengths for nested structures."""
    covariance = Covariance((KERNELS["se"], KERNELS["matern12"]), PLANE, structures=structures)
    theta = starting_point(covariance)
    bounds = covariance.bounds()
    assert ((bounds[:, 0] < theta) & (theta < bounds[:, 1])).all()
    assert (np.diff(covariance.part(theta, "length")[:, 0, 0]) > 0.5).all()
    assert (covariance.part(theta, "correlation") == 0.0).all()


def test_penalised_objective_adds_the_prior():
    """The penalised objective is the likelihood less the log prior, gradients too."""
    sample = draw(LogNormal(0.0, 0.5), n=20)
    process = Process(Covariance((KERNELS["se"],), PLANE), (LogNormal(0.0, 0.5),))
    theta = process.join(np.array([-1.0, 1.5]))
    objective = objective_of(process, sample)
    value, gradient = penalised(process, objective)(theta)
    nll, by = objective(theta)
    prior, by_prior = process.log_prior(theta)
    assert value == nll - prior
    np.testing.assert_array_equal(gradient, by - by_prior)


def test_fit_alone_improves_on_its_start():
    """A single-task fit ends at a better penalised value than it began, with two structures too."""
    sample = draw(LogNormal(0.0, 0.5), n=50)
    for structures in (1, 2):
        c = of(sample, structures).fit(KERNELS["matern32"], LogNormal(0.0, 1.0))
        covariance = Covariance((KERNELS["matern32"],), PLANE, structures=structures)
        process = Process(covariance, (LogNormal(0.0, 1.0),))
        objective = penalised(process, objective_of(process, sample))
        start = process.join(starting_point(covariance))
        assert objective(c.theta)[0] < objective(start)[0] - 1.0
        assert np.abs(objective(c.theta)[1]).max() < 0.5


@pytest.fixture(scope="module")
def trended():
    """A log-normal variable whose logarithm rises by 0.8 for each unit of the covariate."""
    sample = draw(LogNormal(1.0, 0.8), n=90, seed=4)
    x = np.random.default_rng(1).normal(size=90)
    values = sample.values * np.exp(0.8 * x)
    return replace(sample, values=values, covariates=(x[:, None],))


@pytest.fixture(scope="module")
def regressions(trended):
    """Its candidates, all families of a regression."""
    return select(of(trended), [KERNELS["matern32"]], regress(on="x"))


class TestVaryingLaws:
    """Recipes among the candidates."""

    def test_auto_finds_the_family_and_the_slope(self, regressions):
        """The family that made the data comes first, with the slope that made them."""
        assert {c.marginal.name for c in regressions} == {f"{name} ~ x" for name in MARGINALS}
        assert regressions[0].marginal.name == "lognormal ~ x"
        assert regressions[0].marginal.parameters["x"] == pytest.approx(0.8, abs=0.15)

    def test_a_trend_beats_none(self, trended, regressions):
        """The regression has a better AIC than the same family without."""
        plain = replace(trended, covariates=())
        (without,) = select(of(plain), [KERNELS["matern32"]], LogNormal)
        assert regressions[0].aic < without.aic - 10.0

    def test_candidates_report_the_bound_law(self, trended, regressions):
        """Likelihood and largest score are those at the sample's rows."""
        for c in regressions:
            scores = c.marginal.at(trended.covariates_of(0)).to_normal(trended.values)
            assert c.largest_score == pytest.approx(np.abs(scores).max())
            assert c.aic == pytest.approx(2 * (2 + c.marginal.dof - c.log_likelihood))

    def test_kernels_are_tried_under_the_best_law(self, trended):
        """A law that varies goes on to the other kernels as a constant one does."""
        candidates = select(of(trended), None, regress("lognormal", on="x"))
        assert {c.kernel.name for c in candidates} == set(KERNELS)
        assert {c.marginal.name for c in candidates} == {"lognormal ~ x"}
        assert [m.name for m in shortlist(candidates)] == ["lognormal ~ x"]

    def test_groups_have_their_labels(self, trended):
        """Names of groups reach the law."""
        codes = (trended.covariates_of(0) > 0.0).astype(float)
        sample = replace(trended, covariates=(codes,))
        labels = {"k": ("low", "high")}
        (only,) = select(of(sample), [KERNELS["se"]], by("k", "lognormal"), labels)
        assert (
            only.marginal.parameters["location[high]"] > only.marginal.parameters["location[low]"]
        )

    def test_unsupported_families(self):
        """Families without the support are skipped under "auto" and fail aloud by name."""
        sample = draw(Normal(0.0, 1.0), n=40)
        x = np.random.default_rng(1).normal(size=(40, 1))
        sample = replace(sample, covariates=(x,))
        kernels = [KERNELS["matern32"]]
        names = {c.marginal.name for c in select(of(sample), kernels, regress(on="x"))}
        assert names == {"normal ~ x", "gev ~ x", "t ~ x", "parzen ~ x"}
        with pytest.raises(SupportError, match="gamma needs positive values"):
            select(of(sample), kernels, regress("gamma", on="x"))
        with pytest.raises(SupportError, match="No marginal law gives all values"):
            select(of(sample), kernels, regress(on="x", link="log"))

    def test_other_errors_are_not_hidden(self, trended):
        """A covariate that says nothing is an error under "auto" too."""
        flat = replace(trended, covariates=(np.ones((90, 1)),))
        with pytest.raises(ValueError, match="'x' is constant"):
            select(of(flat), [KERNELS["se"]], regress(on="x"))

    def test_starting_law(self, trended):
        """A start is fitted to values and covariates and is not bound; None if not admitted."""
        x = trended.covariates_of(0)
        law = starting_law(regress("gamma", on="x"), trended.values, x)
        assert law is not None
        assert law.rows is None
        assert starting_law(law, trended.values, x) is law
        assert starting_law(regress("gamma", on="x"), -trended.values, x) is None
        zero = np.where(np.arange(90) == 4, 0.0, trended.values)
        assert starting_law(Exponential, zero) is None
        assert starting_law(by("k", "exponential"), zero, np.zeros((90, 1))) is None


class TestRows:
    """Step one may look at some observations only."""

    def test_laws_start_from_all_values(self):
        """A law that is left to choose sees every value, also beyond those of step one."""
        rng = np.random.default_rng(0)
        codes = np.repeat(np.arange(20.0), 6)
        sample = Sample.of(
            [rng.uniform(size=(120, 1))], [rng.gamma(3.0, size=120)], [codes[:, None]]
        )
        alone = Alone(sample, (InputGroup(1),), 1, Exact())
        rows = np.arange(0, 120, 3)  # two values of each group: too few for a law
        labels = {"k": tuple(map(str, range(20)))}
        found = select(alone, [KERNELS["matern32"]], by("k", "auto"), labels, rows)
        assert len(found) > 1
        parzen = select(alone, [KERNELS["matern32"]], Parzen, None, rows)
        assert parzen[0].marginal.sample.size == 120

    def test_a_law_admits_all_values(self):
        """Where the law that suits the rows does not admit the rest, that of all values stands."""
        sample = draw(GEV(0.0, 1.0, -0.4), n=80, seed=3)
        values = sample.values.copy()
        order = np.argsort(values)
        rows = np.sort(order[:70])  # the largest, next to the end of the support, are not seen
        (only,) = select(of(sample), [KERNELS["matern32"]], GEV, None, rows)
        z = only.marginal.to_normal(values)
        assert np.isfinite(z).all()
        assert only.largest_score == pytest.approx(np.abs(z).max())


def test_scores_are_those_of_honest_deletion(skewed):
    """A candidate's leave-one-out predictions are those of a process without the observation."""
    sample, candidates = skewed
    best = candidates[0]
    found = of(sample).scores(best)
    process = of(sample).process(best.kernel, best.marginal)
    for k in (0, 33, 69):
        rest = sample.take(np.delete(np.arange(sample.size), k))
        without = Exact().condition(process, rest, None, best.theta)
        moments = without.moments(sample.targets(np.array([k])))
        np.testing.assert_allclose(found.mean[k], moments.mean[0], rtol=1e-7)
        np.testing.assert_allclose(found.std[k] ** 2, moments.variance[0], rtol=1e-7)
