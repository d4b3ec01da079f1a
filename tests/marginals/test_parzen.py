"""The Parzen law: tails that join the body, and samples that are hard to smooth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from xcopula.marginals import Parzen
from xcopula.marginals.smoother import choose_bandwidth, smooth

RNG = np.random.default_rng(11)
SAMPLES = {
    "positive": RNG.lognormal(1.0, 0.8, size=259),
    "real": RNG.standard_t(3.0, size=400),
    "short": np.array([1.0, 2.0, 4.0]),
    "pair": np.array([-1.0, 1.0]),
    "tied": np.round(RNG.gamma(1.0, 2.0, size=200)),
    "mostly one value": np.r_[np.zeros(90), RNG.normal(size=10)],
    "gap": np.r_[RNG.normal(size=100), 1e4 + RNG.normal(size=100)],
    "kelvin": 280.0 + RNG.normal(size=500),
    "outlier": np.r_[RNG.gamma(2.0, size=100), 1e5],
}
each = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


@each
def test_tails_continue_the_body(sample):
    """Score and density are continuous at both thresholds."""
    law = Parzen.fit(sample)
    for u in law.from_normal(law.table.z[[0, -1]]):
        sides = np.array([u - 1e-9 * law.bandwidth, u + 1e-9 * law.bandwidth])
        np.testing.assert_allclose(*law.to_normal(sides), atol=1e-6)
        np.testing.assert_allclose(*law.log_density(sides), atol=1e-4)


@each
def test_increasing_and_invertible(sample):
    """Quantiles increase strictly, are finite past the sample, and round-trip."""
    law = Parzen.fit(sample)
    z = np.linspace(-8.0, 8.0, 4001)
    y = law.from_normal(z)
    assert np.isfinite(y).all()
    assert np.all(np.diff(y) > 0.0)
    assert y[-1] > sample.max()
    np.testing.assert_allclose(law.to_normal(y), z, rtol=1e-8, atol=1e-8)
    assert np.isfinite(law.log_density(y)).all()


@each
def test_positive_samples_stay_positive(sample):
    """The support begins at zero exactly where every value is positive."""
    law = Parzen.fit(sample)
    assert law.support[0] == (0.0 if sample.min() > 0.0 else -np.inf)
    if law.support[0] == 0.0:
        assert law.from_normal(-30.0) >= 0.0


def test_body_is_the_smoothed_sample():
    """The table equals the kernel smoother it stands for."""
    sample = SAMPLES["real"]
    law = Parzen.fit(sample)
    x = np.linspace(law.table.x[0], law.table.x[-1], 777)
    cdf, density = smooth(x, sample, law.bandwidth)
    np.testing.assert_allclose(stats.norm.cdf(law.to_normal(x)), cdf, atol=1e-6)
    np.testing.assert_allclose(np.exp(law.log_density(x)), density, rtol=1e-3)


def test_follows_the_law_of_a_large_sample():
    """Quantiles of a large sample come near the true ones, also past the thresholds."""
    truth = stats.gamma(3.0, scale=2.0)
    law = Parzen.fit(truth.rvs(size=20_000, random_state=np.random.default_rng(5)))
    p = np.array([0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999])
    np.testing.assert_allclose(law.from_normal(stats.norm.ppf(p)), truth.ppf(p), rtol=0.25)


def test_bandwidth_fits_clusters():
    """Two clusters far apart keep their own width, and their scores are normal."""
    rng = np.random.default_rng(4)
    sample = np.r_[rng.normal(size=100), 50.0 + rng.normal(size=100)]
    law = Parzen.fit(sample)
    assert law.bandwidth < 0.6
    assert stats.kstest(law.to_normal(sample), "norm").pvalue > 0.2


def test_bandwidth_is_silvermans_for_one_cluster():
    """A normal sample keeps the rule of thumb to within a factor of two."""
    sample = np.random.default_rng(4).normal(size=500)
    rule = 0.9 * sample.std() * 500**-0.2
    assert 0.5 * rule <= Parzen.fit(sample).bandwidth <= rule


@each
def test_bandwidth_by_definition(sample):
    """The bandwidth is the factor of Silverman's rule with the best penalised likelihood."""
    x = np.sort(sample)
    if np.quantile(x, 0.1) < np.quantile(x, 0.9):
        far = 10.0 * np.abs(x[[x.size // 10, -1 - x.size // 10]] - np.median(x)).max()
        x = x[np.abs(x - np.median(x)) <= far]
    x = x[np.linspace(0, x.size - 1, min(x.size, 300)).astype(int)]
    iqr = np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.34
    rule = 0.9 * (min(x.std(), iqr) if iqr > 0.1 * x.std() else x.std()) * x.size**-0.2
    body = x[x.size // 20 : x.size - x.size // 20]
    gains = []
    for k in range(17):
        others = stats.norm.pdf(body[:, None], x, rule * 2.0 ** (-k / 2))
        others = np.where(body[:, None] == x, 0.0, others).sum(axis=1)
        gains.append(np.log(others + stats.norm.pdf(body, x.mean(), x.std())).sum() - k)
    assert choose_bandwidth(x) == pytest.approx(rule * 2.0 ** (-np.argmax(gains) / 2), rel=1e-12)


OUTLIERS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 1000),
        "size": st.integers(30, 700),
        "share": st.floats(0.0, 1.0),
        "exponent": st.floats(2.0, 8.0),
        "sides": st.sampled_from([(1.0,), (-1.0,), (1.0, -1.0)]),
        "tied": st.booleans(),
    }
)


def with_outliers(seed, size, share, exponent, sides, tied):
    """Return a sample of standard deviation one, and the same with up to a ninth of outliers."""
    rng = np.random.default_rng(seed)
    clean = rng.normal(size=size)
    if tied:
        clean[: int(0.6 * size)] = 0.0
    count = 1 + int(share * (size // 9 - 1))
    far = 10.0**exponent * rng.uniform(1.0, 2.0, count) * np.resize(sides, count)
    return clean, np.concatenate([clean, far])


def assert_increasing(law, sample):
    """Both maps increase, at values, between them and past them, and undo each other."""
    z = np.concatenate([np.linspace(-8.0, 8.0, 1601), np.linspace(*law.table.z[[0, -1]], 1601)])
    z = np.unique(np.concatenate([z, np.linspace(-1e-3, 1e-3, 201)]))
    y = law.from_normal(z)
    assert np.all(np.diff(y) > 0.0)
    np.testing.assert_allclose(law.to_normal(y), z, atol=1e-8)
    grid = np.linspace(*np.quantile(sample, [0.02, 0.98]), 2001)
    places = np.unique(np.concatenate([grid, sample, y]))
    assert np.diff(law.to_normal(places)).min() >= -1e-14  # values apart by rounding
    assert np.isfinite(law.log_density(places)).all()


@settings(max_examples=40, deadline=None)
@given(OUTLIERS)
@example({"seed": 0, "size": 30, "share": 0.0, "exponent": 6.0, "sides": (1.0,), "tied": False})
@example({"seed": 0, "size": 400, "share": 1.0, "exponent": 8.0, "sides": (1.0,), "tied": False})
def test_outliers_have_no_say(case):
    """The bandwidth is that of the sample without them, and both maps increase."""
    clean, sample = with_outliers(**case)
    law = Parzen.fit(sample)
    assert law.bandwidth == pytest.approx(Parzen.fit(clean).bandwidth, rel=1e-12)
    assert_increasing(law, sample)


@settings(max_examples=15, deadline=None)
@given(OUTLIERS, st.sampled_from([1e-9, 1e-6, 1e3, 1e9]))
def test_units_of_a_sample_with_outliers(case, factor):
    """The bandwidth has the units of the values; scores have none."""
    _, sample = with_outliers(**case)
    law, scaled = Parzen.fit(sample), Parzen.fit(factor * sample)
    assert scaled.bandwidth == pytest.approx(factor * law.bandwidth, rel=1e-9)
    np.testing.assert_allclose(
        scaled.to_normal(factor * sample), law.to_normal(sample), rtol=0.0, atol=1e-7
    )


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_both_thresholds_on_one_side_of_the_median(side):
    """Ties that begin at the threshold: the tail holds more than half, and the maps increase."""
    below, above = -4.0 - np.arange(19) / 10.0, 0.8 + np.arange(21) / 50.0
    sample = side * np.concatenate([below, np.zeros(60), above])
    law = Parzen.fit(sample)
    assert np.all(side * law.table.z > 0.0)
    assert_increasing(law, sample)


@pytest.mark.parametrize("tied", [0.55, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("side", [-1.0, 0.0, 1.0])
def test_ties_fill_the_body(tied, side):
    """Values that many share are the body of the law; both maps still increase."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=100) if side == 0.0 else side * rng.uniform(1.0, 2.0, 100)
    values[: int(100 * tied)] = 0.0
    for scale in (0.0, 1e-12, 1e-6):  # equal, or nearly so
        sample = values + scale * rng.normal(size=100)
        assert_increasing(Parzen.fit(sample), sample)
        far = np.append(sample, 1e6)
        assert_increasing(Parzen.fit(far), far)


def test_values_past_the_share_of_outliers_are_a_part_of_the_law():
    """A second cluster is not thrown away: half of its values lie below its median."""
    rng = np.random.default_rng(6)
    sample = np.concatenate([rng.normal(size=160), 1e5 + rng.normal(size=40)])
    law = Parzen.fit(sample)
    assert law.to_normal(1e5) == pytest.approx(stats.norm.ppf(0.9), abs=0.1)
    assert_increasing(law, sample)


def test_tail_index_sees_heavy_tails():
    """A Pareto sample has a heavier tail than a normal one."""
    heavy = Parzen.fit(np.random.default_rng(2).pareto(3.0, size=5000) + 1.0)
    light = Parzen.fit(np.random.default_rng(2).normal(size=5000))
    assert 0.15 < heavy.tail_index <= 0.5
    assert light.tail_index < 0.05


def test_dof_counts_the_smoother():
    """The effective number of parameters grows slowly with the sample."""
    small, large = (Parzen.fit(RNG.normal(size=n)).dof for n in (100, 10_000))
    assert 3.0 < small < large < 30.0


def test_no_free_parameters():
    """Theta is empty, its derivatives have no columns, and others are refused."""
    law = Parzen.fit(SAMPLES["real"])
    assert [part.shape for part in law.sensitivity(np.zeros(4))] == [(4, 0), (4, 0)]
    with pytest.raises(ValueError, match="no free parameters"):
        law.with_theta([1.0])
