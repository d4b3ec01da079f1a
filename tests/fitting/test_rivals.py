"""Who competes in the whole model, and where each starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.fitting import rivals as rivals_module
from xcopula.fitting.alone import Alone, starting_law
from xcopula.fitting.rivals import name_of, rivals_of
from xcopula.fitting.suggestion import suggest
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.process import Process, Sample
from xcopula.solvers import Exact

GROUPS = (InputGroup(2),)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    places = rng.random((60, 2))
    smooth = np.sin(5.0 * places[:, 0]) + np.cos(4.0 * places[:, 1])
    first = np.exp(0.4 * smooth + 0.1 * rng.normal(size=60))
    second = smooth + 0.3 * rng.normal(size=60)
    return Sample.of([places, places], [first, second])


@pytest.fixture(scope="module")
def tables(sample):
    """Two laws and two kernels of the first variable, one or two structures of both."""
    found = []
    for i, laws in enumerate([(LogNormal, Normal), (Normal,)]):
        alone = Alone(sample.select([i]), GROUPS, 1, Exact())
        values = alone.sample.values
        own = [alone.fit(KERNELS["matern32"], starting_law(law, values)) for law in laws]
        kernels = ("matern52", "matern12") if i == 0 else ()
        own += [alone.fit(KERNELS[k], own[0].marginal) for k in kernels]
        own.append(alone.with_structures(own[0], 2))
        found.append(own)
    return found


@pytest.fixture(scope="module")
def fitted(sample, tables):
    chosen = [table[0] for table in tables]
    covariance = Covariance(tuple(c.kernel for c in chosen), GROUPS)
    process, theta = suggest(covariance, chosen, sample)
    return process, theta + 0.01


def near(tables, behind=1.0):
    """Return the same candidates, all close to the best."""
    return [
        [replace(c, aic=table[0].aic + behind * k) for k, c in enumerate(table)] for table in tables
    ]


def test_all_kinds_compete(sample, tables, fitted):
    rivals = rivals_of(*fitted, near(tables, 0.5), sample)
    names = [name_of(r.process) for r in rivals]
    assert names == [
        "normal, matern32",
        "lognormal, matern52",
        "lognormal, matern12",
        "lognormal, matern32, 2 structures",
    ]
    assert [r.behind for r in rivals] == sorted(r.behind for r in rivals)
    for rival in rivals:
        assert rival.start.shape == (rival.process.size,)
        low, high = rival.process.bounds().T
        assert ((low <= rival.start) & (rival.start <= high)).all()


def test_the_closest_are_looked_at(sample, tables, fitted):
    rivals = rivals_of(*fitted, near(tables, 4.0), sample)
    # A law may be further behind than a kernel: its AIC is that of the values, too.
    assert [name_of(r.process) for r in rivals] == ["normal, matern32", "lognormal, matern52"]


def test_what_is_given_has_no_rivals(sample, tables, fitted):
    assert rivals_of(*fitted, [table[:1] for table in tables], sample) == []


def test_another_law_keeps_the_covariance(sample, tables, fitted):
    process, theta = fitted
    (rival, *_) = rivals_of(process, theta, near(tables), sample)
    size = process.covariance.size
    np.testing.assert_array_equal(rival.start[:size], theta[:size])
    assert rival.process.marginals[0].name == "normal"
    np.testing.assert_array_equal(
        rival.process.marginals[1].theta, process.split(theta)[1][1].theta
    )


def test_another_kernel_starts_where_it_was_alone(sample, tables, fitted):
    """Its length differs from the first one's as it did in step one; the rest is kept."""
    process, theta = fitted
    rivals = rivals_of(process, theta, near(tables), sample)
    rival = next(r for r in rivals if "matern52" in name_of(r.process))
    alone = Covariance((KERNELS["matern52"],), GROUPS)
    best, other = tables[0][0], tables[0][2]
    for name in ("length", "logit"):
        moved = alone.part(other.theta, name) - alone.part(best.theta, name)
        own, new = (
            cov.part(t[: cov.size], name)
            for cov, t in ((process.covariance, theta), (rival.process.covariance, rival.start))
        )
        np.testing.assert_allclose(new[..., :1] - own[..., :1], moved)
        np.testing.assert_array_equal(new[..., 1:], own[..., 1:])
    np.testing.assert_array_equal(theta, fitted[1])


def test_more_structures_keep_the_correlations(sample, tables, fitted):
    process, theta = fitted
    rivals = rivals_of(process, theta, near(tables, 0.5), sample)
    rival = next(r for r in rivals if r.process.covariance.structures == 2)
    covariance = rival.process.covariance
    own = process.covariance.part(theta[: process.covariance.size], "correlation")
    found = covariance.part(rival.start[: covariance.size], "correlation")
    np.testing.assert_allclose(found, np.repeat(own, 2, axis=0))
    lengths = covariance.part(rival.start[: covariance.size], "length")
    single = Covariance((KERNELS["matern32"],), GROUPS, structures=2)
    np.testing.assert_array_equal(lengths[..., :1], single.part(tables[0][-1].theta, "length"))


def test_more_structures_keep_the_directions(sample, tables, fitted):
    """Step one has tried them without: they start with the metric that is known."""
    process, theta = fitted
    turned = (InputGroup(2, directions=reference.PLANE_AXES),)
    wide = replace(process, covariance=replace(process.covariance, groups=turned))
    covariance = wide.covariance
    own = np.zeros(covariance.size)
    for name in covariance.layout:
        part = 0.3 if name == "scaling" else process.covariance.part(theta, name)
        covariance.part(own, name)[:] = part
    first = [replace(table[0], groups=turned, aic=table[0].aic - 30.0) for table in tables]
    known = [[one, *table] for one, table in zip(first, near(tables, 0.5), strict=True)]
    rivals = rivals_of(wide, wide.join(own), known, sample)
    rival = next(r for r in rivals if r.process.covariance.structures == 2)
    assert rival.process.covariance.groups == turned
    found = rival.process.covariance.part(rival.start[: rival.process.covariance.size], "scaling")
    np.testing.assert_array_equal(found, [0.3, 0.3])
    # It is as far behind as it was without directions, not by what these gain.
    assert rival.behind == pytest.approx(2.0)
    assert rival.start.shape == (rival.process.size,)


def test_a_kernel_for_each_structure(sample, tables, fitted, monkeypatch):
    """The best with two structures competes, whatever kernels it has."""
    mixed = Nested((KERNELS["matern52"], KERNELS["matern12"]))
    more = []
    for i, table in enumerate(near(tables, 0.5)):
        alone = Alone(sample.select([i]), GROUPS, 1, Exact())
        new = alone.with_kernels(table[-1], mixed)
        more.append([*table[:-1], replace(new, aic=table[0].aic + 0.1), table[-1]])
    rivals = rivals_of(*fitted, more, sample)
    names = [name_of(r.process) for r in rivals]
    assert names.count("lognormal, matern52 + matern12, 2 structures") == 1
    assert "lognormal, matern32, 2 structures" not in names
    # Where all variables have it, it is settled; of one variable the other kernel is a rival.
    two = [[c for c in table if c.structures == 2] for table in more]
    whole = Covariance((mixed, mixed), GROUPS, structures=2)
    start = suggest(whole, [t[0] for t in two], sample)
    assert rivals_of(*start, two, sample) == []
    all_of_them = [[*t, *m] for t, m in zip(two, more, strict=True)]
    assert len(rivals_of(*start, all_of_them, sample)) == 2
    monkeypatch.setattr(rivals_module, "_MOST_NESTED", 1)
    assert len(rivals_of(*start, all_of_them, sample)) == 1
    only = sample.select([0])
    single = suggest(Covariance((mixed,), GROUPS, structures=2), two[0][:1], only)
    (rival,) = rivals_of(*single, two[:1], only)
    assert name_of(rival.process) == "lognormal, matern32, 2 structures"


def test_structures_that_one_variable_has_not_tried_do_not_compete(sample, tables, fitted):
    some = [near(tables, 0.5)[0], near(tables, 0.5)[1][:1]]
    rivals = rivals_of(*fitted, some, sample)
    assert all(r.process.covariance.structures == 1 for r in rivals)


def test_another_coupling_has_the_first_kernel_for_all(sample, tables, fitted):
    process, theta = fitted
    given = [table[:1] for table in tables]
    (rival,) = rivals_of(process, theta, given, sample, other_coupling=True)
    covariance = rival.process.covariance
    assert covariance.coupling == "icm"
    assert name_of(rival.process) == "lognormal, matern32, icm"
    own, new = theta[: process.covariance.size], rival.start[: covariance.size]
    np.testing.assert_array_equal(
        covariance.part(new, "length"), process.covariance.part(own, "length")[..., :1]
    )
    for name in ("logit", "correlation", "noise_correlation"):
        np.testing.assert_array_equal(
            covariance.part(new, name), process.covariance.part(own, name)
        )


def test_one_variable_has_no_coupling(sample, tables, fitted):
    process, theta = fitted
    alone, index = process.with_tasks((0,))
    found = rivals_of(alone, theta[index], [tables[0][:1]], sample.select([0]), other_coupling=True)
    assert found == []


def test_shared_kernels_change_together(sample, tables, fitted):
    process, _ = fitted
    shared = replace(process.covariance, coupling="icm")
    one, theta = suggest(shared, [table[0] for table in tables], sample)
    rivals = rivals_of(one, theta, near(tables), sample)
    rival = next(r for r in rivals if "matern52" in name_of(r.process))
    assert {k.name for k in rival.process.covariance.kernels} == {"matern52"}


def test_names():
    law = LogNormal(0.0, 1.0)
    kernel = KERNELS["se"]
    one = Process(Covariance((kernel,), GROUPS), (law,))
    assert name_of(one) == "lognormal, se"
    several = Covariance((kernel, kernel), GROUPS, coupling="lmc", structures=3)
    assert name_of(Process(several, (law, law))) == "lognormal, se, 3 structures, lmc"
