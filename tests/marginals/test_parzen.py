"""The Parzen law: tails that join the body, and samples that are hard to smooth."""

from __future__ import annotations

import numpy as np
import pytest
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
