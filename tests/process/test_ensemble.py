"""Statistics of draws and their Monte-Carlo errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from xcopula.process.ensemble import count_statistics, quantile_of_present, summarise

LEVELS = np.array([0.05, 0.5, 0.95])


class TestSummarise:
    def test_against_numpy(self):
        """Mean, its error and median-unbiased quantiles."""
        draws = np.random.default_rng(0).gamma(2.0, size=(4, 3, 50))
        found = summarise(draws, LEVELS)
        assert found.shape == (4, 3, count_statistics(3)) == (4, 3, 8)
        np.testing.assert_allclose(found[..., 0], draws.mean(axis=-1))
        np.testing.assert_allclose(found[..., 1], draws.std(axis=-1, ddof=1) / np.sqrt(50))
        expected = np.quantile(draws, LEVELS, axis=-1, method="median_unbiased")
        np.testing.assert_allclose(np.moveaxis(found[..., 2:5], -1, 0), expected)

    @pytest.mark.parametrize("transform", [np.positive, np.exp, np.sinh], ids=str)
    def test_errors_cover(self, transform):
        """The quantile is within 1.645 errors of the estimate in 90 %, within one in 68 %.

        Of 20,000 ensembles, whatever the law. In long tails errors are a little too large.
        """
        draws = transform(np.random.default_rng(1).normal(size=(20_000, 200)))
        found = summarise(draws, LEVELS)
        truth = transform(ndtri(LEVELS))
        off = np.abs(found[:, 2:5] - truth)
        for times, level, within in ((1.0, 0.683, 0.07), (1.645, 0.90, 0.02)):
            covered = (off <= times * found[:, 5:8]).mean(axis=0)
            np.testing.assert_allclose(covered, level, atol=within)

    def test_errors_are_those_of_repeated_ensembles(self):
        """Their average is how much the estimates differ from ensemble to ensemble."""
        draws = np.random.default_rng(2).normal(size=(10_000, 1_000))
        found = summarise(draws, LEVELS)
        np.testing.assert_allclose(found[:, 5:8].mean(axis=0), found[:, 2:5].std(axis=0), rtol=0.05)
        np.testing.assert_allclose(found[:, 1].mean(), found[:, 0].std(), rtol=0.02)

    def test_too_few_draws_to_tell(self):
        """One draw has no error; of ten draws none may lie below a quantile of 5 %."""
        one = summarise(np.array([3.0]), LEVELS)
        np.testing.assert_array_equal(one, [3.0, np.nan, 3.0, 3.0, 3.0, *[np.nan] * 3])
        ten = summarise(np.arange(10.0), LEVELS)
        assert np.isnan(ten[[5, 7]]).all()
        assert ten[6] > 0.0

    def test_what_is_missing_or_infinite(self):
        """NaN stays NaN; infinite draws leave the quantiles below them as they are."""
        draws = np.stack([np.full(20, np.nan), np.arange(20.0)])
        draws[1, -1] = np.inf
        found = summarise(draws, np.array([0.5]))
        assert np.isnan(found[0]).all()
        assert found[1, 2] == 9.5
        assert found[1, 0] == np.inf
        assert summarise(np.full(20, np.inf), np.array([0.5]))[2] == np.inf


class TestQuantileOfPresent:
    def test_against_numpy(self):
        """Of the numbers that are there."""
        values = np.random.default_rng(3).normal(size=(5, 30))
        np.testing.assert_allclose(
            quantile_of_present(values, 0.904), np.quantile(values, 0.904, axis=-1)
        )
        values[:4, ::3] = np.nan
        values[0] = np.nan
        found = quantile_of_present(values, 0.3)
        assert np.isnan(found[0])
        np.testing.assert_allclose(found[1:], np.nanquantile(values[1:], 0.3, axis=-1))
