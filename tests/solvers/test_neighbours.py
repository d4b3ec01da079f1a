"""The neighbour solver: exact with all neighbours, a density with right gradients with few."""

from __future__ import annotations

import itertools
import logging
import pickle

import numpy as np
import pytest
import reference
from reference import PLANE_AXES, TANGENT_AXES

from xcopula import datasets
from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.directions import input_groups
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.observations import observe
from xcopula.marginals import GEV, Gamma, LogNormal, Normal, Parzen, StudentT
from xcopula.methods import Transductive
from xcopula.process import Moments, Process, Sample, Targets, scores
from xcopula.solvers import Exact, Neighbours, terms
from xcopula.solvers.terms import evaluate_terms

RNG = np.random.default_rng
PLANE = (InputGroup(2),)
# More neighbours than there are observations.
ALL = Neighbours(neighbours=10**6, predict=10**6)
LAWS = (LogNormal(0.3, 0.6), Gamma(2.5, 0.8), StudentT(0.5, 1.2, 5.0))


def make(kernels, groups=PLANE, laws=LAWS, **options):
    """Build a process from the names of kernels."""
    kernels = reference.kernels_of(kernels)
    covariance = Covariance(kernels, groups, **options)
    return Process(covariance, laws[: len(kernels)])


SPACE_TIME = (InputGroup(2, ard=True), InputGroup(1))
TURNED = InputGroup(2, directions=PLANE_AXES)
SETUPS = {
    **{f"{k}, alone": make(k) for k in KERNELS},
    "line": make("matern12", (InputGroup(1),), (GEV(2.0, 1.5, 0.1),)),
    "one task, two groups": make("matern32", SPACE_TIME),
    "one task, two structures": make("matern52", structures=2),
    "four families": make("se matern12 matern52", laws=(Normal(1.0, 2.0), *LAWS[:2])),
    "independent noise": make("matern32 se matern32", noise="independent"),
    "groups": make("matern32 matern52 se", SPACE_TIME, structures=2),
    "one task, directions": make("matern32", (TURNED,)),
    "directions": make("matern32 matern12 se", (TURNED, InputGroup(1)), structures=2),
    "directions on the globe": make(
        "matern52 matern52", (InputGroup(3, directions=TANGENT_AXES),), coupling="lmc"
    ),
    "a kernel each": make("matern52+matern12", structures=2),
    "a kernel each, several": make(
        "matern32+se matern12 se+matern52", (TURNED, InputGroup(1)), structures=2
    ),
    "a kernel each, lmc": make("se+matern12 se+matern12 se+matern12", coupling="lmc", structures=2),
    "icm": make("matern32 matern32 matern32", coupling="icm"),
    "icm, independent": make("matern52 matern52", coupling="icm", noise="independent"),
    "lmc": make("matern32 matern32 matern32", SPACE_TIME, coupling="lmc", structures=2),
}


def setting(process, sizes=(17, 14, 11), together=5, seed=0):
    """Draw parameters and a sample; some sites are common to all tasks, others are their own."""
    rng = RNG(seed)
    theta = process.join(reference.random_theta(process.covariance, rng))
    sizes = sizes[: process.covariance.tasks]
    inputs = reference.random_inputs(process.covariance, rng, sizes, together)
    return process, reference.simulate(process, theta, inputs, seed), theta


def cases():
    """Yield the name and the setting of every configuration; also laws that vary."""
    for seed, (name, process) in enumerate(SETUPS.items()):
        yield pytest.param(lambda p=process, s=seed: setting(p, seed=s), id=name)
    for tasks in (1, 2, 3):
        yield pytest.param(lambda t=tasks: reference.varying(t), id=f"varying, {tasks} tasks")


every = pytest.mark.parametrize("case", list(cases()))


def close(found, expected, within=1e-10):
    """Compare by the largest entry."""
    expected = np.asarray(expected)
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=within * size)


def both(process, sample, theta, solver=ALL):
    """Condition by neighbours and exactly."""
    return (reference.condition(s, process, sample, theta) for s in (solver, Exact()))


@every
class TestAllNeighbours:
    """With all that come before as neighbours nothing is approximated."""

    def test_value_and_gradient(self, case):
        """They equal the exact solver's to 1e-10."""
        process, sample, theta = case()
        found = reference.objective(ALL, process, sample, theta)
        expected = reference.objective(Exact(), process, sample, theta)
        close(found[0], expected[0])
        close(found[1], expected[1])

    def test_leave_one_out_and_solve(self, case):
        """So do left-out values, and products with the inverse covariance."""
        process, sample, theta = case()
        found, expected = both(process, sample, theta)
        close(found.leave_one_out(), expected.leave_one_out())
        rows = RNG(1).normal(size=(3, sample.size))
        close(found.solve(rows), expected.solve(rows))
        close(found.solve(found.scores[None])[0], expected.alpha)

    @pytest.mark.parametrize("tiles", [True, False])
    def test_predictions(self, case, tiles):
        """Moments, means and means of other scores, of every task, at sites and elsewhere."""
        process, sample, theta = case()
        solver = Neighbours(10**6, 10**6, tiles=tiles)
        found, expected = both(process, sample, theta, solver)
        cells = reference.some_targets(sample, RNG(2))
        rows = RNG(3).normal(size=(2, sample.size))
        for task, nugget in itertools.product(range(sample.tasks), (True, False)):
            how = {"task": task, "nugget": nugget}
            assert found.prior_variance(**how) == pytest.approx(expected.prior_variance(**how))
            moments = found.moments(cells, **how)
            close(moments, expected.moments(cells, **how))
            close(found.mean(cells, **how), moments.mean)
            close(found.means(cells, rows, **how), expected.means(cells, rows, **how))
            other = found.with_scores(rows[0]).moments(cells, **how)
            close(other, expected.with_scores(rows[0]).moments(cells, **how))

    def test_left_out_with_others(self, case):
        """Values without some others, of any task, also without all others."""
        process, sample, theta = case()
        found, expected = both(process, sample, theta)
        rng = RNG(4)
        rows = rng.permutation(sample.size)[:12]
        without = [
            rng.permutation(np.setdiff1d(np.arange(sample.size), [row]))[:number]
            for row, number in zip(rows, [0, 0, 1, 2, 3, 5, 8, 10, 10, 10, 10, 10], strict=True)
        ]
        close(found.left_out(rows, without), expected.left_out(rows, without), 1e-9)
        alone = [np.setdiff1d(np.arange(sample.size), [row]) for row in rows]
        moments = found.left_out(rows, alone)
        close(moments.mean, np.zeros(rows.size))
        close(moments.variance, np.ones(rows.size))
        none = [np.empty(0, np.int64)] * rows.size
        close(found.left_out(rows, none), np.array(expected.leave_one_out())[:, rows])


@every
def test_gradient_with_few_neighbours(case):
    """The gradient is that of the value, by central differences, while the neighbours stay."""
    process, sample, theta = case()
    solver = Neighbours(neighbours=4)
    structure = solver.prepare(process, theta, sample)
    _, gradient = solver.objective(process, sample, structure, theta)
    expected = reference.differences(
        lambda x: solver.objective(process, sample, structure, x)[0], theta, step=5e-4
    )
    np.testing.assert_allclose(
        gradient, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max())
    )


def term(solver, process, sample, graph, theta, k):
    """Return the log density of one term."""
    value, _ = solver.objective(process, sample, graph.take(np.arange(graph.rows.size) == k), theta)
    return -value


@every
def test_terms_add_up(case):
    """The log-likelihood is a sum of log densities, of an observation given its neighbours."""
    process, sample, theta = case()
    solver = Neighbours(neighbours=5)
    structure = solver.prepare(process, theta, sample)
    graph, exact = structure.graph, Exact()
    value, _ = solver.objective(process, sample, structure, theta)
    terms = [term(solver, process, sample, graph, theta, k) for k in range(sample.size)]
    assert sum(terms) == pytest.approx(-value, rel=1e-11)
    for k in range(0, sample.size, 5):
        given = graph.neighbours[k, : graph.counts[k]].astype(np.int64)
        joined = np.sort(np.append(given, graph.rows[k]))
        expected = -sum(
            sign * exact.objective(process, sample.take(rows), None, theta)[0]
            for sign, rows in ((1.0, joined), (-1.0, given))
            if rows.size
        )
        assert terms[k] == pytest.approx(expected, abs=1e-8)


class TestOneDensity:
    """Tasks in blocks: the first alone, then each given what comes before."""

    def setting(self):
        """Three tasks in the plane."""
        return setting(SETUPS["four families"], (40, 35, 30), 15)

    @pytest.mark.parametrize("most", [3, 8, 500])
    def test_terms_of_the_first_task_are_those_of_the_task_alone(self, most):
        """Whatever comes after it."""
        process, sample, theta = self.setting()
        alone, index = process.with_tasks((0,))
        solver = Neighbours(most)
        whole = solver.prepare(process, theta, sample)
        first = whole.graph.rows < sample.offsets[1]
        value, gradient = solver.objective(process, sample, whole.graph.take(first), theta)
        part = sample.select([0])
        structure = solver.prepare(alone, theta[index], part)
        expected = solver.objective(alone, part, structure, theta[index])
        assert value == pytest.approx(expected[0], rel=1e-11)
        close(gradient[index], expected[1], 1e-9)

    @pytest.mark.parametrize("most", [4, 500])
    def test_a_task_given_the_first(self, most):
        """``given=1`` is the likelihood of a pair less that of the first task alone."""
        process, sample, theta = self.setting()
        pair, index = process.with_tasks((0, 2))
        own, theta = sample.select([0, 2]), theta[index]
        alone, first = pair.with_tasks((0,))
        solver = Neighbours(most)
        value, gradient = solver.objective(pair, own, solver.prepare(pair, theta, own, 1), theta)
        whole = reference.objective(solver, pair, own, theta)
        part = reference.objective(solver, alone, own.select([0]), theta[first])
        assert value == pytest.approx(whole[0] - part[0], rel=1e-10)
        expected = whole[1].copy()
        expected[first] -= part[1]
        close(gradient, expected, 1e-10)
        # The sum over terms is the exact one where all that come before are neighbours.
        if most > own.size:
            exact = (
                reference.objective(Exact(), pair, own, theta)[0]
                - reference.objective(Exact(), alone, own.select([0]), theta[first])[0]
            )
            assert value == pytest.approx(exact, rel=1e-10)

    def test_left_out_values_need_all_terms(self):
        """A pair conditioned with the first task given still leaves out values of both tasks."""
        process, sample, theta = self.setting()
        solver = Neighbours(6)
        given = solver.condition(process, sample, solver.prepare(process, theta, sample, 1), theta)
        whole = reference.condition(solver, process, sample, theta)
        close(given.leave_one_out(), whole.leave_one_out(), 1e-14)

    @pytest.mark.parametrize("tasks", [1, 2, 3])
    def test_transduction_is_the_composite_likelihood(self, tasks):
        """With all neighbours the sum of terms is the exact sum of pairs less the primary's."""
        process, sample, theta = self.setting()
        process, index = process.with_tasks(tuple(range(tasks)))
        sample, theta = sample.select(range(tasks)), theta[index]
        method = Transductive()
        found = reference.objective(method, process, sample, theta, ALL)
        expected = reference.objective(method, process, sample, theta, Exact())
        close(found[0], expected[0])
        close(found[1], expected[1])

    def test_transduction_with_few_neighbours(self):
        """The gradient of the sum over the primary's terms and each secondary's given it."""
        process, sample, theta = self.setting()
        method, solver = Transductive(), Neighbours(5)
        parts = method.prepare(solver, process, theta, sample)
        value, gradient = method.objective(process, sample, parts, theta)
        expected = reference.differences(
            lambda x: method.objective(process, sample, parts, x)[0], theta, step=5e-4
        )
        close(gradient, expected, 1e-6)
        # Every observation has one term, so the sum is one density.
        rows = [p.structure.graph.rows for p in parts]
        assert [r.size for r in rows] == sample.sizes
        assert np.isfinite(value)


class TestTravels:
    """What is found again does not travel."""

    def setting(self):
        """Two tasks of some hundred values."""
        return setting(SETUPS["icm, independent"], (300, 250), 100)

    def test_a_structure(self):
        """It is as large as the sample, with its graph or without, and evaluates the same."""
        process, sample, theta = self.setting()
        solver = Neighbours(30)
        structure = solver.prepare(process, theta, sample)
        before = len(pickle.dumps(structure))
        value, gradient = solver.objective(process, sample, structure, theta)
        assert "graph" in structure.__dict__
        text = pickle.dumps(structure)
        assert len(text) == before
        assert before < 1.2 * len(pickle.dumps(sample)) + 4000
        assert structure.graph.neighbours.nbytes > before
        back = pickle.loads(text)
        assert "graph" not in back.__dict__
        found = solver.objective(process, back.sample, back, theta)
        assert found[0] == value
        np.testing.assert_array_equal(found[1], gradient)

    def test_a_conditioned_process(self):
        """Trees are built again where they are needed."""
        process, sample, theta = self.setting()
        conditioned = reference.condition(Neighbours(), process, sample, theta)
        before = len(pickle.dumps(conditioned))
        cells = reference.some_targets(sample, RNG(0), 50)
        expected = conditioned.moments(cells)
        conditioned.leave_one_out()
        assert "_search" in conditioned.__dict__
        text = pickle.dumps(conditioned)
        assert len(text) == before < 1.5 * len(pickle.dumps(sample)) + 8000
        np.testing.assert_array_equal(pickle.loads(text).moments(cells), expected)

    def test_the_search_serves_other_scores(self):
        """A process with other scores searches the same trees."""
        process, sample, theta = self.setting()
        conditioned = reference.condition(Neighbours(), process, sample, theta)
        conditioned.moments(reference.some_targets(sample, RNG(0)))
        other = conditioned.with_scores(np.zeros(sample.size))
        assert other._search is conditioned._search


def test_threads_do_not_matter(monkeypatch):
    """One, two or three threads give one value, gradient and left-out values, to 1e-12."""
    process, sample, theta = setting(SETUPS["four families"], (90, 70, 60), 30)
    monkeypatch.setattr(terms, "_FEWEST", 20)
    solver = Neighbours(8)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        assert len(terms.pieces(sample.size)) == count
        value, gradient = reference.objective(solver, process, sample, theta)
        conditioned = reference.condition(solver, process, sample, theta)
        results.append((value, gradient, np.array(conditioned.leave_one_out())))
    for other in results[1:]:
        for found, expected in zip(other, results[0], strict=True):
            close(found, expected, 1e-12)


def test_few_terms_need_no_thread(monkeypatch):
    """Pieces cover all terms; there is one where a thread would cost more than it saves."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert terms.pieces(terms._FEWEST) == [slice(0, terms._FEWEST)]
    pieces = terms.pieces(10 * terms._FEWEST + 1)
    assert len(pieces) == 3
    stops = list(itertools.chain.from_iterable((p.start, p.stop) for p in pieces))
    assert stops[0] == 0
    assert stops[-1] == 10 * terms._FEWEST + 1
    assert stops[1:-1:2] == stops[2:-1:2]


@pytest.mark.parametrize("name", ["matern32, alone", "groups"])
def test_order_of_observations_is_immaterial(name):
    """Permuting each task changes no value, gradient or prediction, with few neighbours."""
    process, sample, theta = setting(SETUPS[name], (60, 50, 40), 20)
    rng = RNG(7)
    order = np.concatenate(
        [rng.permutation(np.arange(sample.size)[sample.task(i)]) for i in range(sample.tasks)]
    )
    shuffled = Sample(
        sample.inputs[:, order].copy(), sample.offsets, sample.values[order], sample.sites[order]
    )
    solver = Neighbours(7, 15)
    found, expected = (reference.objective(solver, process, s, theta) for s in (shuffled, sample))
    close(found[0], expected[0], 1e-12)
    close(found[1], expected[1], 1e-11)
    cells = reference.some_targets(sample, rng, 30)
    found, expected = (reference.condition(solver, process, s, theta) for s in (shuffled, sample))
    close(found.moments(cells), expected.moments(cells), 1e-11)
    close(found.leave_one_out(), np.array(expected.leave_one_out())[:, order], 1e-11)


def test_more_neighbours_are_nearer_to_exact():
    """The Kullback-Leibler divergence to the exact density falls with their number to zero.

    It is half the difference of log determinants, as each term has the exact conditional variance.
    """
    process, sample, theta = setting(SETUPS["icm, independent"], (120, 100), 40)
    exact = reference.condition(Exact(), process, sample, theta)
    log_determinant = 2.0 * np.log(np.diagonal(exact.factor)).sum()
    divergence = []
    for most in (2, 5, 10, 30, 300):
        graph = Neighbours(most).prepare(process, theta, sample).graph
        each = evaluate_terms(process, sample, graph, theta, exact.scores, gradient=False).each
        divergence.append(0.5 * (each[:, 1].sum() - log_determinant))
    assert divergence == sorted(divergence, reverse=True)
    assert divergence[0] > 1.0
    assert divergence[3] < 0.05 * divergence[0]
    assert divergence[4] == pytest.approx(0.0, abs=1e-9)


class TestOptions:
    @pytest.mark.parametrize("option", ["neighbours", "predict"])
    def test_numbers_are_checked(self, option):
        """At least one, and whole."""
        for odd in (0, -1):
            with pytest.raises(ValueError, match=f"`{option}` must be at least 1, found {odd}"):
                Neighbours(**{option: odd})
        for odd in (2.5, True, "5", [5]):
            with pytest.raises(TypeError, match=f"`{option}` must be an integer, found"):
                Neighbours(**{option: odd})
        assert type(getattr(Neighbours(**{option: np.int64(5)}), option)) is int

    @pytest.mark.parametrize("odd", [0, 1, None, "yes"])
    def test_tiles_is_a_flag(self, odd):
        """True or False."""
        with pytest.raises(TypeError, match="`tiles` must be True or False"):
            Neighbours(tiles=odd)

    @pytest.mark.parametrize(
        ("name", "most"), [("se, alone", 20), ("icm", 35), ("one task, two groups", 40)]
    )
    def test_defaults(self, name, most):
        """Twenty for one variable, thirty for several, forty where there are several groups."""
        process, sample, theta = setting(SETUPS[name], (80, 30, 30))
        assert Neighbours().prepare(process, theta, sample).graph.neighbours.shape[1] == most
        assert Neighbours(7).most(process, sample) == 7
        assert Neighbours(10**9).most(process, sample) == sample.size - 1

    def test_adapts(self):
        """Lengths matter where there are several, of tasks, groups or axes."""
        assert not Neighbours().adapts(SETUPS["se, alone"])
        assert not Neighbours().adapts(SETUPS["one task, two structures"])
        assert Neighbours().adapts(SETUPS["one task, two groups"])
        assert Neighbours().adapts(SETUPS["icm"])
        assert Neighbours().adapts(make("matern32", (InputGroup(2, ard=True),)))
        assert Neighbours().adapts(make("matern32", (TURNED,)))

    def test_describe(self):
        """The summary says how many neighbours there are, for a value and for a prediction."""
        process, sample, theta = setting(SETUPS["se, alone"])
        lines = {
            Neighbours(): "each value given 16 neighbours; each tile predicted from 100",
            Neighbours(5): "each value given 5 neighbours; each tile predicted from 100",
            Neighbours(predict=9): "each value given 16 neighbours; each tile predicted from 9",
            Neighbours(tiles=False): "each value given 16 neighbours; each cell predicted from 60",
        }
        for solver, line in lines.items():
            assert reference.condition(solver, process, sample, theta).describe() == [line]

    def test_cost_grows_linearly(self):
        """Memory and time are those of so many small matrices."""
        solver = Neighbours()
        small, large = solver.cost([1000]), solver.cost([100_000])
        assert large.bytes == pytest.approx(100 * small.bytes)
        assert large.flops == pytest.approx(100 * small.flops)
        assert solver.cost([500, 500]).flops > small.flops
        assert Neighbours(60).cost([1000]).flops > small.flops
        # More neighbours than there are values cost nothing.
        assert Neighbours(10**30).cost([60, 40]) == Neighbours(99).cost([60, 40])
        assert large.hours < 0.1 < Exact().cost([100_000]).hours
        # Space, height and time in two structures: six look-ups for a pair, and 40 neighbours.
        rich = solver.cost([100_000], 6)
        assert 4.0 < rich.flops / large.flops < 12.0
        assert Neighbours(20).cost([1000], 6).flops < solver.cost([1000], 6).flops
        # Of many values most evaluations are of some terms only.
        assert solver.cost([10**6]).evaluations < large.evaluations < small.evaluations

    def test_work_grows_linearly(self):
        """As many numbers are kept for each value, whatever their number."""
        for n in (50, 200):
            process, sample, theta = setting(SETUPS["matern32, alone"], (n,))
            graph = Neighbours(6).prepare(process, theta, sample).graph
            assert graph.neighbours.shape == (n, 6)


class TestHardMatrices:
    def test_what_cannot_be_factorised_is_told(self, monkeypatch):
        """The message names the parameters, the usual causes and what to do."""
        process, sample, theta = setting(SETUPS["matern32, alone"])
        state = Process.state

        def wrong(self, at):
            found = state(self, at)
            return found._replace(amplitudes=3.0 * found.amplitudes)

        monkeypatch.setattr(Process, "state", wrong)
        solver = Neighbours(6)
        structure = solver.prepare(process, theta, sample)
        with pytest.raises(NotPositiveDefiniteError, match=r"of 6 neighbours is not positive") as e:
            solver.objective(process, sample, structure, theta)
        assert "length" in str(e.value)
        assert "Kernels smoother than 'matern12' fail sooner" in str(e.value)
        conditioned = solver.condition(process, sample, structure, theta)
        cells = reference.some_targets(sample, RNG(0))
        none = [np.empty(0, np.int64)]
        for call in (
            lambda: conditioned.moments(cells),
            lambda: conditioned.mean(cells),
            lambda: (
                Neighbours(6, tiles=False)
                .condition(process, sample, structure, theta)
                .moments(cells)
            ),
            lambda: conditioned.left_out(np.array([3]), none),
        ):
            with pytest.raises(NotPositiveDefiniteError, match="neighbours of a cell is not"):
                call()

    def test_sites_that_almost_coincide(self, caplog):
        """Without a nugget such pairs need a jitter; it is counted and told; values are finite."""
        caplog.set_level(logging.INFO, logger="xcopula")
        rng = RNG(0)
        process = make("se")
        x = rng.uniform(size=(40, 2))
        x = np.vstack([x, x + 1e-7])
        theta = process.join(np.array([np.log(0.3), 40.0]))
        sample = Sample.of([x], [np.exp(0.3 + 0.6 * np.sin(5.0 * x[:, 0]))])
        graph = Neighbours(10).prepare(process, theta, sample).graph
        scores = process.scores(theta, sample)
        passed = evaluate_terms(process, sample, graph, theta, scores, gradient=True)
        assert passed.jittered > 0
        assert f"{passed.jittered} of 80 small matrices needed a jitter" in caplog.text
        value, gradient = reference.objective(Neighbours(10), process, sample, theta)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()

    def test_far_from_all_data_is_the_prior(self):
        """Mean zero and the prior variance, of any task, without a warning."""
        process, sample, theta = setting(SETUPS["four families"])
        far = Targets.nowhere(np.array([[1e3, 1e6, -1e9], [0.0, 1e6, 0.0]]))
        for tiles, task in itertools.product((True, False), range(3)):
            conditioned = reference.condition(Neighbours(tiles=tiles), process, sample, theta)
            mean, variance = conditioned.moments(far, task=task)
            close(mean, np.zeros(3), 1e-9)
            close(variance, np.ones(3), 1e-9)


# Where `fit(jura("Cd"), "Cd", ["Ni", "Zn"], method="full", solver="exact")` ends.
JURA = (
    *(-3.5076, -2.9879, -3.4034),  # lengths
    *(1.8616, 2.8126, 2.6776),  # shares of the signal
    *(0.7365, 0.8859, 0.5100),  # correlations of the signal
    *(0.1564, 0.4148, 0.1283),  # and of the nugget
    *(0.0610, -0.3561, 61.357, 3.1118, 0.0663),  # laws
)


@pytest.fixture(scope="module")
def jura():
    """Return the process, the sample, theta, and what the exact solver makes of them."""
    data = datasets.jura("Cd")
    observations = observe(data, ["Cd", "Ni", "Zn"], None, ard=False)
    sample = observations.sample
    covariance = Covariance((KERNELS["matern12"],) * 3, input_groups(observations))
    cd, ni, zn = (sample.values[sample.task(i)] for i in range(3))
    process = Process(covariance, (LogNormal.fit(cd), Parzen.fit(ni), GEV.fit(zn)))
    theta = np.array(JURA)
    value, gradient = reference.objective(Exact(), process, sample, theta)
    assert value == pytest.approx(2782.88, abs=0.05)
    assert np.abs(gradient).max() < 3.0
    return process, sample, theta, value, reference.condition(Exact(), process, sample, theta)


class TestJura:
    """Cadmium with nickel and zinc, 977 values, at the exact maximum of the likelihood."""

    def test_divergence_with_default_neighbours(self, jura):
        """The density by neighbours is within half a nat of the exact one, as an expectation."""
        process, sample, theta, _, exact = jura
        graph = Neighbours().prepare(process, theta, sample).graph
        each = evaluate_terms(process, sample, graph, theta, exact.scores, gradient=False).each
        divergence = 0.5 * each[:, 1].sum() - np.log(np.diagonal(exact.factor)).sum()
        assert 0.0 < divergence < 0.5

    @pytest.mark.parametrize(("most", "nats"), [(None, 0.5), (40, 0.5), (100, 0.05)])
    def test_log_likelihood(self, jura, most, nats):
        """That of these data is within half a nat from 35 neighbours on."""
        process, sample, theta, value, _ = jura
        found, _ = reference.objective(Neighbours(most), process, sample, theta)
        assert found == pytest.approx(value, abs=nats)

    def test_leave_one_out(self, jura):
        """The mean CRPS of left-out values is within a hundredth, for every metal."""
        process, sample, theta, _, exact = jura
        conditioned = reference.condition(Neighbours(), process, sample, theta)
        left = [c.leave_one_out() for c in (conditioned, exact)]
        for i, law in enumerate(process.split(theta)[1]):
            own = sample.task(i)
            found, expected = (
                scores(Moments(m.mean[own], m.variance[own]), law, sample.values[own]).crps.mean()
                for m in left
            )
            assert found == pytest.approx(expected, rel=0.01)

    def test_predictions(self, jura):
        """Where cadmium is not known it is predicted as by the exact solver, for every task."""
        process, sample, theta, _, exact = jura
        conditioned = reference.condition(Neighbours(), process, sample, theta)
        cells = reference.targets(sample, np.unique(sample.inputs, axis=1)[:, ::3] + 0.003)
        for task in range(3):
            found, expected = (c.moments(cells, task=task) for c in (conditioned, exact))
            np.testing.assert_allclose(found.mean, expected.mean, atol=0.05)
            np.testing.assert_allclose(found.variance, expected.variance, rtol=0.01)
