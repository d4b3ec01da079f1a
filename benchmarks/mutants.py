"""Break the package on purpose, one line at a time, and see whether the tests notice.

Run as ``python benchmarks/mutants.py`` (``--quick``: three mutants; ``--only NAME``; ``--list``).
Each mutant names the tests that should fail with it: they are run first without any mutant, where
all must pass, and then once for each. Package and tests are copied to a temporary folder: nothing
here is touched. The exit code is 1 if fewer than 95 % are killed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("xcopula", "tests", "pyproject.toml")
QUICK = ("outcome-std-centre", "times-julian", "gamma-fraction")
ENOUGH = 0.95
SECONDS = 300  # a mutant may make a loop endless
FAILED = 1  # pytest's code where tests ran and some failed


class Mutant(NamedTuple):
    """A change that is wrong: of a file in ``xcopula/``, told by tests in ``tests/``."""

    name: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def nodes(self) -> list[str]:
        """What pytest is asked to run."""
        return [f"tests/{node}" for node in self.tests.split()]

    @property
    def compiled(self) -> bool:
        """Whether numba compiles the file."""
        return self.file.startswith("jit/")


class Outcome(NamedTuple):
    """What became of a mutant: killed or not, by which test, and in how many seconds."""

    killed: bool
    by: str
    seconds: float


MUTANTS = (
    Mutant(
        "sites-norm",
        "process/sites.py",
        "query_pairs(1.0, p=np.inf",
        "query_pairs(1.0, p=2",
        "process/test_sites.py::TestNumbers::test_against_all_pairs",
    ),
    Mutant(
        "sites-upper",
        "process/sites.py",
        "distance_upper_bound=1.0 + 1e-6",
        "distance_upper_bound=0.5",
        "process/test_sites.py::TestFind::test_against_all_distances",
    ),
    Mutant(
        "sample-keeps-sites",
        "process/sample.py",
        "            np.concatenate([self.sites[self.task(i)] for i in tasks]),",
        "            None,",
        "process/test_sample.py::TestSites::test_sub_samples_keep_them",
    ),
    Mutant(
        "sample-observed",
        "process/sample.py",
        "np.where(ordered[place] == sites, rows[place], NO_SITE)",
        "np.where(ordered[place] == sites, place, NO_SITE)",
        "process/test_sample.py::TestSites::test_observed_tells_who_stands_there",
    ),
    Mutant(
        "sample-take-covariates",
        "process/sample.py",
        "offsets[i + 1]] - self.offsets[i]]",
        "offsets[i + 1]] - offsets[i]]",
        "process/test_sample.py::TestCovariates::test_observations_carry_them",
    ),
    Mutant(
        "evidence-determinant",
        "process/evidence.py",
        "self._pull(alpha) + log_determinant",
        "self._pull(alpha) - log_determinant",
        "process/test_evidence.py::TestPieces::test_value",
    ),
    Mutant(
        "evidence-pull",
        "process/evidence.py",
        "law.score_pullback(values, pull[task])",
        "law.score_pullback(values, alpha[task])",
        "process/test_evidence.py::TestPieces::test_gradient_by_the_laws",
    ),
    Mutant(
        "outcome-tie",
        "process/bounded.py",
        "np.where(score >= mean, np.inf, -np.inf)",
        "np.where(score > mean, np.inf, -np.inf)",
        "process/test_predictive.py::TestExactCells::test_probabilities_are_zero_or_one",
    ),
    Mutant(
        "outcome-moment-decay",
        "process/predictive.py",
        "1.0 - power * law.tail_index * self.sigma**2",
        "1.0 - law.tail_index * self.sigma**2",
        "process/test_predictive.py::TestHeavyTails::test_gev_moments_at_prior_variance",
    ),
    Mutant(
        "outcome-std-centre",
        "process/predictive.py",
        "self._moment(2, self.mean())",
        "self._moment(2, 0.0)",
        "process/test_predictive.py::TestClosedForms::test_mean_and_std",
    ),
    Mutant(
        "crps-nodes",
        "process/predictive.py",
        "leggauss(48)",
        "leggauss(40)",
        "process/test_predictive.py::TestCrps::test_closed_forms_of_observations_far_out",
    ),
    Mutant(
        "crps-range",
        "process/predictive.py",
        "_FARTHEST = 9.0",
        "_FARTHEST = 6.0",
        "process/test_predictive.py::TestCrps::test_closed_forms_of_observations_far_out",
    ),
    Mutant(
        "scores-log-score",
        "process/predictive.py",
        "gain - np.log(self.sigma)",
        "gain + np.log(self.sigma)",
        "process/test_scores.py::TestNormal::test_log_score",
    ),
    Mutant(
        "scores-interval",
        "process/scores.py",
        "predicted.quantile(0.95)",
        "predicted.quantile(0.9)",
        "process/test_scores.py::TestNormal::test_quantiles",
    ),
    Mutant(
        "exact-with-scores",
        "solvers/exact.py",
        "return replace(self, scores=scores, alpha=_solve(self.factor, scores.copy()))",
        "return replace(self, scores=scores)",
        "solvers/test_exact.py::TestMeans::test_other_scores_are_conditioned_on",
    ),
    Mutant(
        "exact-prior-offsets",
        "kernels/assembly.py",
        "<= other, 0, others.shape[1])",
        "<= 0, 0, others.shape[1])",
        "solvers/test_exact.py::TestPieces::test_prior",
    ),
    Mutant(
        "exact-loo",
        "solvers/exact.py",
        "return without_extra(self.scores - self.alpha * variance, variance, self.extra)",
        "return without_extra(self.scores + self.alpha * variance, variance, self.extra)",
        "solvers/test_exact.py::test_leave_one_out_matches_deletion",
    ),
    Mutant(
        "exact-prior-nugget",
        "solvers/exact.py",
        "self.state.nugget[task, task]) if nugget else 0.0",
        "self.state.nugget[0, 0]) if nugget else 0.0",
        "solvers/test_exact.py::TestPieces::test_prior_variance",
    ),
    Mutant(
        "combination-coefficients",
        "methods/combination.py",
        "[[1.0 - self.beta.sum()], self.beta]",
        "[[1.0], self.beta]",
        "methods/test_combination.py::TestPrecisions::test_report_is_the_product_of_pairs_over_powers_of_the_single",
    ),
    Mutant(
        "combination-spread",
        "methods/combination.py",
        "spread = 1.0 / total + rest",
        "spread = 1.0 / total",
        "methods/test_combination.py::TestCalibration::test_no_point_of_a_fine_grid_is_better",
    ),
    Mutant(
        "observed-told",
        "methods/nugget.py",
        "left[met[which.reshape(-1) == k]] -= told",
        "left[met[which.reshape(-1) == k]] -= 0.9 * told",
        "methods/test_nugget.py::TestUnexplained::test_is_the_conditional_variance",
    ),
    Mutant(
        "observed-known",
        "process/sample.py",
        "np.where(met, known.variance[datum], moments.variance)",
        "moments.variance",
        "methods/test_nugget.py::TestKeepData::test_the_datum_where_the_task_was_observed",
    ),
    Mutant(
        "interval-gain",
        "process/intervals.py",
        "gain = mean * mean + edges",
        "gain = mean * mean - edges",
        "process/test_intervals.py::TestTruncate::test_moments",
    ),
    Mutant(
        "interval-mass",
        "process/evidence.py",
        "law.log_mass + 0.5 * (np.log(total) + off)",
        "law.log_mass + 0.5 * np.log(total)",
        "test_intervals.py::TestLikelihood::test_genz",
    ),
    Mutant(
        "interval-slope",
        "process/evidence.py",
        "slopes[:, rows] = -law.by_low, -law.by_high",
        "slopes[:, rows] = law.by_low, -law.by_high",
        "test_intervals.py::TestLikelihood::test_gradient",
    ),
    Mutant(
        "committee-votes",
        "methods/committee.py",
        "precision = -(len(votes) - 1) /",
        "precision = -len(votes) /",
        "methods/test_committee.py::TestVotes::test_any_task_against_dense_algebra",
    ),
    Mutant(
        "committee-loo",
        "methods/committee.py",
        " for j, m in enumerate(self.members) if j != k]",
        " for j, m in enumerate(self.members)]",
        "methods/test_committee.py::TestLeaveOneOut::test_is_a_vote_without_the_observation",
    ),
    Mutant(
        "sparse-datum",
        "methods/sparse.py",
        "amounts[:, data[task] >= 0] = 0.0  # the datum itself is there",
        "pass",
        "methods/test_sparse.py::TestWork::test_only_sites_of_other_tasks_are_solved_for",
    ),
    Mutant(
        "sparse-dtc-loo",
        "methods/sparse.py",
        "variance = variance + self.pieces.missing(self.sample)",
        "pass",
        "methods/test_sparse.py::TestLeaveOneOut::test_is_prediction_without_the_observation",
    ),
    Mutant(
        "lowrank-precision",
        "methods/lowrank.py",
        "precision[index] += np.diagonal(inverse, axis1=1, axis2=2)",
        "precision[index] += 1.01 * np.diagonal(inverse, axis1=1, axis2=2)",
        "methods/test_lowrank.py::test_precision",
    ),
    Mutant(
        "lowrank-pull-back",
        "methods/lowrank.py",
        "inner = -0.5 * (through @ gain.T)",
        "inner = 0.5 * (through @ gain.T)",
        "methods/test_lowrank.py::test_pull_back",
    ),
    Mutant(
        "cokriging-missing",
        "methods/cokriging.py",
        "missing[task] += 1.0",
        "missing[0] += 1.0",
        "methods/test_cokriging.py::TestSystem::test_any_task_against_the_kriging_system",
    ),
    Mutant(
        "cokriging-loo",
        "methods/cokriging.py",
        'precision -= np.einsum("in,ij,jn->n", self.lifted, self.gram, self.lifted)',
        "pass",
        "methods/test_cokriging.py::TestLeaveOneOut::test_equals_deletion",
    ),
    Mutant(
        "anchors-known",
        "methods/anchors.py",
        "points = points.take(sample.observed(0, points.sites) < 0)",
        "pass",
        "methods/test_anchors.py::TestChoice::test_are_the_sites_of_secondaries_without_the_primary",
    ),
    Mutant(
        "anchors-explained",
        "methods/anchors.py",
        "cross -= white @ self.whitened[k].T",
        "pass",
        "methods/test_transductive.py::TestCoherence::test_anchored_equals_the_joint_posterior_of_anchors_and_cell",
    ),
    Mutant(
        "transductive-datum",
        "methods/transductive.py",
        "return keep_data(combined, self.sample, self._known, targets, 0)",
        "return combined",
        "methods/test_transductive.py::TestBlock::test_cells_at_the_data_tell_the_others_nothing",
    ),
    Mutant(
        "transductive-task",
        "methods/transductive.py",
        "return self.models[task].moments(targets, task=1, nugget=nugget)",
        "return self.models[task].moments(targets, task=0, nugget=nugget)",
        "methods/test_transductive.py::TestSecondaries::test_a_secondary_is_predicted_by_its_pair",
    ),
    Mutant(
        "transductive-scores",
        "methods/transductive.py",
        "return replace(self, models=models, anchors=anchors)",
        "return replace(self, models=models)",
        "methods/test_anchors.py::TestUse::test_other_scores_keep_the_anchors",
    ),
    Mutant(
        "matern-curvature",
        "kernels/matern.py",
        "-1.0 / (2.0 * nu - 2.0)",
        "-1.0 / (2.0 * nu - 1.0)",
        "kernels/test_families.py::test_curvature_at_zero_is_the_limit",
    ),
    Mutant(
        "matern-52",
        "kernels/matern.py",
        "(1.0 + x * (1.0 + x / 3.0)) * e",
        "(1.0 + x * (1.0 + x / 2.0)) * e",
        "kernels/test_families.py::test_value_matches_the_general_formula",
    ),
    Mutant(
        "se-curvature",
        "kernels/se.py",
        "(x * x - 1.0) * value",
        "(x * x + 1.0) * value",
        "kernels/test_families.py::test_derivatives_match_differences",
    ),
    Mutant(
        "convolution-dimension",
        "kernels/convolution.py",
        "/ total) ** (dimension / 2)",
        "/ total) ** 0.5",
        "kernels/test_convolution.py::test_se_pair_in_any_dimension",
    ),
    Mutant(
        "convolution-swapped",
        "kernels/convolution.py",
        "-profile.slope - r * profile.curvature - profile.by_first_slope",
        "profile.slope - r * profile.curvature - profile.by_first_slope",
        "kernels/test_convolution.py::test_derivatives_match_differences",
    ),
    Mutant(
        "convolution-gamma",
        "kernels/convolution.py",
        "tau = t / a2 + 0.25 * length_se**2",
        "tau = t / a2 + 0.5 * length_se**2",
        "kernels/test_convolution.py::test_se_matern32_in_one_dimension",
    ),
    Mutant(
        "covariance-lengths",
        "kernels/covariance.py",
        "lengths[..., q, g, j] -= by.slope[..., k] + by.sensitivity[..., k]",
        "lengths[..., q, g, j] -= by.slope[..., k]",
        "solvers/test_exact.py::test_gradient_matches_differences",
    ),
    Mutant(
        "covariance-pair",
        "kernels/covariance.py",
        "pair = [i * (i - 1) // 2 for i in others]",
        "pair = [i * (i + 1) // 2 - 1 for i in others]",
        "kernels/test_covariance.py::test_covariance_of_a_pair_of_tasks",
    ),
    Mutant(
        "covariance-shares",
        "kernels/covariance.py",
        "by_log_share - shares * by_log_share.sum(axis=-2, keepdims=True)",
        "by_log_share - shares * by_log_share",
        "process/test_evidence.py::TestPieces::test_gradient_by_the_covariance",
    ),
    Mutant(
        "correlation-left",
        "kernels/correlation.py",
        "gradient[..., :-1] -= z[..., :-1] * after[..., 1:]",
        "gradient[..., :-1] += z[..., :-1] * after[..., 1:]",
        "kernels/test_correlation.py::test_pullback_matches_differences",
    ),
    Mutant(
        "tables-cells",
        "kernels/tables.py",
        "CELLS = 512",
        "CELLS = 128",
        "kernels/test_tables.py::test_same_task_table",
    ),
    Mutant(
        "tables-chain",
        "kernels/tables.py",
        "16.0 * _NODES**6",
        "8.0 * _NODES**6",
        "kernels/test_tables.py::test_same_task_table",
    ),
    Mutant(
        "hermite-quintic",
        "kernels/hermite.py",
        "-15.0 * rise + 7.0 * tilt",
        "-15.0 * rise + 8.0 * tilt",
        "kernels/test_tables.py::test_hermite_reproduces_polynomials",
    ),
    Mutant(
        "jit-sites",
        "jit/pairs.py",
        "nugget if others[b] == site else 0.0",
        "nugget if others[b] >= site else 0.0",
        "jit/test_pairs.py::test_fill_below_the_diagonal",
    ),
    Mutant(
        "jit-slope",
        "jit/pairs.py",
        "return by_value, 0.25 * by_slope",
        "return by_value, by_slope",
        "jit/test_pairs.py::test_contraction_is_the_derivative",
    ),
    Mutant(
        "jit-anchored",
        "jit/anchored.py",
        "base_variance -= g[k] * right[k, 1]",
        "base_variance += g[k] * right[k, 1]",
        "jit/test_anchored.py::test_equals_the_joint_precision",
    ),
    Mutant(
        "normal-density",
        "marginals/normal.py",
        "np.asarray(log_phi(self.to_normal(y)) - np.log(self.scale))",
        "np.asarray(log_phi(self.to_normal(y)))",
        "marginals/test_marginal_contract.py::test_density_is_the_derivative",
    ),
    Mutant(
        "lognormal-density",
        "marginals/lognormal.py",
        "- np.log(self.scale) - x",
        "- np.log(self.scale)",
        "marginals/test_marginal_contract.py::test_density_is_the_derivative",
    ),
    Mutant(
        "exponential-tail",
        "marginals/exponential.py",
        "normal_score(np.log(-np.expm1(-x)), -x)",
        "normal_score(np.log(1.0 - np.exp(-x)), -x)",
        "marginals/test_marginal_contract.py::test_round_trip",
    ),
    Mutant(
        "gamma-fraction",
        "marginals/gamma.py",
        "- 1.0 - k - n * (n - k) / tail",
        "- 1.0 - k + n * (n - k) / tail",
        "marginals/test_deep_tails.py::TestGamma::test_upper_tail",
    ),
    Mutant(
        "gamma-series",
        "marginals/gamma.py",
        "term = term * small / (k + n)",
        "term = term * small / (k + n + 1.0)",
        "marginals/test_deep_tails.py::TestGamma::test_lower_tail",
    ),
    Mutant(
        "gev-support",
        "marginals/gev.py",
        "end = self.location - self.scale / self.shape",
        "end = self.location + self.scale / self.shape",
        "marginals/test_marginal_contract.py::test_nan_infinity_and_shape",
    ),
    Mutant(
        "gev-density",
        "marginals/gev.py",
        "- (1.0 + self.shape) * g - np.exp(-g)",
        "- (1.0 - self.shape) * g - np.exp(-g)",
        "marginals/test_marginal_contract.py::test_density_is_the_derivative",
    ),
    Mutant(
        "student-gradient",
        "marginals/student.py",
        "digamma(v / 2.0) - 1.0 / v",
        "digamma(v / 2.0) + 1.0 / v",
        "marginals/test_marginal_contract.py::test_sensitivity",
    ),
    Mutant(
        "student-deep",
        "marginals/student.py",
        "np.sqrt(-np.expm1(log_x)) / (2.0 * a)",
        "np.sqrt(-np.expm1(log_x)) / a",
        "marginals/test_marginal_contract.py::test_round_trip",
    ),
    Mutant(
        "tails-slope-series",
        "marginals/tails.py",
        "(k + 1) / (k + 2) for k in range(14)]",
        "(k + 1) / (k + 2) for k in range(4)]",
        "marginals/test_gev.py::test_series_joins_the_closed_form",
    ),
    Mutant(
        "parzen-tail-count",
        "marginals/parzen.py",
        "_PER_TAIL = 20",
        "_PER_TAIL = 18",
        "marginals/test_deep_tails.py::TestParzen::test_values_of_each_tail",
    ),
    Mutant(
        "parzen-threshold",
        "marginals/parzen.py",
        "low, high = float(x[k]), float(x[-1 - k])",
        "low, high = float(x[k]), float(x[-k])",
        "marginals/test_deep_tails.py::TestParzen::test_values_of_each_tail",
    ),
    Mutant(
        "smoother-wide",
        "marginals/smoother.py",
        "1.5 * near.std()",
        "1.0 * near.std()",
        "marginals/test_smoother.py::test_smooth_against_all_kernels",
    ),
    Mutant(
        "smoother-outliers",
        "marginals/smoother.py",
        "_FAR = 10.0",
        "_FAR = 1e12",
        "marginals/test_parzen.py::test_outliers_have_no_say",
    ),
    Mutant(
        "parzen-side-of-a-tail",
        "marginals/parzen.py",
        "tail if low <= 0.0 else log_ndtr(z)",
        "tail",
        "marginals/test_parzen.py::test_both_thresholds_on_one_side_of_the_median",
    ),
    Mutant(
        "smoother-monotone",
        "marginals/smoother.py",
        "limit = 3.0 * np.minimum",
        "limit = 30.0 * np.minimum",
        "marginals/test_smoother.py::test_scores_increase_between_knots_that_are_far_apart",
    ),
    Mutant(
        "regress-degree",
        "marginals/design.py",
        "for degree in range(1, self.degree + 1)",
        "for degree in range(1, self.degree)",
        "marginals/test_design.py::test_matrix_is_the_products",
    ),
    Mutant(
        "regression-trend",
        "marginals/regression.py",
        "return out - trend if self.multiplicative else out",
        "return out",
        "marginals/test_varying.py::test_density_is_the_derivative",
    ),
    Mutant(
        "censored-atom",
        "marginals/censored.py",
        "np.where(y == self.lower, log_ndtr(self.base.to_normal(inside)), out)",
        "np.where(y == self.lower, self.base.log_density(inside), out)",
        "marginals/test_censored.py::test_against_the_formula",
    ),
    Mutant(
        "censored-gradient",
        "marginals/censored.py",
        "ratio = np.exp(log_phi(z) - log_ndtr(z))",
        "ratio = np.exp(log_phi(z))",
        "marginals/test_censored.py::test_sensitivity_and_pullbacks",
    ),
    Mutant(
        "flexible-tail",
        "marginals/flexible.py",
        "arc, self.tail * arc - self.skewness",
        "arc, self.tail * (arc - self.skewness)",
        "marginals/test_flexible.py::test_against_the_formula",
    ),
    Mutant(
        "flexible-prior",
        "marginals/flexible.py",
        "_SD_SKEW, _SD_TAIL = 0.5, 0.25",
        "_SD_SKEW, _SD_TAIL = 5.0, 2.5",
        "marginals/test_flexible.py::test_few_normal_values_have_a_nearly_normal_law",
    ),
    Mutant(
        "defaults-zeros",
        "fitting/defaults.py",
        "values.min() >= 0.0 else None",
        "values.min() > 0.0 else None",
        "fitting/test_defaults.py::test_supports",
    ),
    Mutant(
        "defaults-structures",
        "fitting/defaults.py",
        "if groups > 1 and enough and",
        "if groups > 1 and",
        "fitting/test_defaults.py::test_structures",
    ),
    Mutant(
        "defaults-noise",
        "fitting/steps.py",
        "if smooth.nugget < _NO_NUGGET else (single,)",
        "if smooth.nugget > _NO_NUGGET else (single,)",
        "fitting/test_defaults.py::test_a_field_without_noise_is_smooth",
    ),
    Mutant(
        "directions-scaled",
        "fitting/directions.py",
        "not group.ard and group.columns",
        "group.columns",
        "fitting/test_directions.py::test_groups_that_are_free",
    ),
    Mutant(
        "interval-atom",
        "marginals/intervals.py",
        "limits[0] <= law.atom",
        "limits[0] < law.atom",
        "marginals/test_intervals.py::test_an_atom_within",
    ),
    Mutant(
        "by-few",
        "marginals/by.py",
        "if rows.size < FEWEST]",
        "if rows.size < FEWEST - 1]",
        "marginals/test_by.py::test_four_values_are_too_few",
    ),
    Mutant(
        "units-mile",
        "labels/coordinates/units.py",
        '"1609.344": "mile miles',
        '"1609": "mile miles',
        "labels/coordinates/test_units.py::test_conversion",
    ),
    Mutant(
        "units-case",
        "labels/coordinates/units.py",
        'return "_".join(units.lower().split())',
        'return "_".join(units.split())',
        "labels/coordinates/test_units.py::test_conversion",
    ),
    Mutant(
        "axis-down",
        "labels/coordinates/axis.py",
        "factor = -factor  # a depth",
        "pass  # a depth",
        "labels/coordinates/test_axis.py::TestRead::test_a_depth_is_a_height_below_zero",
    ),
    Mutant(
        "axis-latitude",
        "labels/coordinates/axis.py",
        "np.abs(values) > 90.0",
        "np.abs(values) > 180.0",
        "labels/coordinates/test_axis.py::TestRead::test_latitudes_beyond_the_pole",
    ),
    Mutant(
        "groups-earth",
        "labels/coordinates/groups.py",
        "EARTH_RADIUS = 6371.0",
        "EARTH_RADIUS = 6378.137",
        "labels/coordinates/test_groups.py::TestGlobe::test_the_size_of_the_earth",
    ),
    Mutant(
        "groups-cycle",
        "labels/coordinates/groups.py",
        "(self.period / (2.0 * np.pi)) * np.stack",
        "(self.period / np.pi) * np.stack",
        "labels/coordinates/test_groups.py::TestCycle::test_a_period_leads_back",
    ),
    Mutant(
        "groups-single",
        "labels/coordinates/groups.py",
        "_SINGLE = 2.0**-23",
        "_SINGLE = 2.0**-26",
        "labels/test_sites.py::TestPrecision::test_sites_stay_common",
    ),
    Mutant(
        "times-julian",
        "labels/coordinates/times.py",
        '"julian": 365.25,',
        '"julian": 365.2425,',
        "labels/coordinates/test_times.py::TestCalendars::test_years",
    ),
    Mutant(
        "times-all-leap",
        "labels/coordinates/times.py",
        '"all_leap": 366.0,',
        '"all_leap": 365.0,',
        "labels/coordinates/test_times.py::TestCalendars::test_years",
    ),
    Mutant(
        "times-micro",
        "labels/coordinates/times.py",
        "* 86_400e6)",
        "* 86_400e3)",
        "labels/coordinates/test_times.py::test_datetime64_there_and_back",
    ),
    Mutant(
        "projection-tolerance",
        "labels/coordinates/projection.py",
        "rtol=1e-9",
        "rtol=1e-6",
        "labels/coordinates/test_projection.py::TestDifferences::test_how_much_rounding_is_none",
    ),
    Mutant(
        "degrees-longitude",
        "labels/coordinates/system.py",
        "(high > [360.0, 90.0])",
        "(high > [365.0, 90.0])",
        "labels/coordinates/test_system.py::TestDegrees::test_only_what_could_be_degrees",
    ),
    Mutant(
        "degrees-globe",
        "labels/coordinates/system.py",
        "(extent > [300.0, 120.0]).all()",
        "(extent > [300.0, 100.0]).all()",
        "labels/coordinates/test_system.py::TestDegrees::test_only_what_could_be_degrees",
    ),
    Mutant(
        "degrees-middle",
        "labels/coordinates/system.py",
        "(middle > extent).all()",
        "(middle > extent).any()",
        "labels/coordinates/test_system.py::TestDegrees::test_only_what_could_be_degrees",
    ),
    Mutant(
        "roles-whole",
        "labels/coordinates/roles.py",
        "re.fullmatch(pattern, name.lower())",
        "re.match(pattern, name.lower())",
        "labels/coordinates/test_roles.py::test_a_guess_takes_the_whole_name",
    ),
    Mutant(
        "fields-wrap",
        "labels/fields.py",
        "(numbers - self.wrap + 180.0) % 360.0 - 180.0",
        "(numbers - self.wrap) % 360.0",
        "labels/test_fields.py::TestEncode::test_longitudes_are_taken_about_the_training_data",
    ),
    Mutant(
        "fields-strange",
        "labels/fields.py",
        "strange = order[place] != found",
        "strange = order[place] < found",
        "labels/test_fields.py::TestEncode::test_groups_never_seen",
    ),
    Mutant(
        "labels-sites-share",
        "labels/sites.py",
        "_LESS * closest / links",
        "_LESS * closest",
        "labels/test_sites.py::TestCloseSites::test_the_other_variable_is_told_apart_too",
    ),
    Mutant(
        "observations-few",
        "labels/rows.py",
        "if entries.values.size < FEWEST:",
        "if entries.values.size < FEWEST - 1:",
        "labels/test_observations.py::TestErrors::test_too_few_values",
    ),
    Mutant(
        "entries-order",
        "labels/entries.py",
        'order = np.argsort(places, kind="stable")',
        "order = np.arange(places.size)",
        "labels/test_entries.py::TestEntries::test_hold_what_is_not_nan",
    ),
    Mutant(
        "entries-starts",
        "labels/entries.py",
        "places = places * size + (k + start)",
        "places = places * size + k",
        "labels/test_entries.py::TestEntries::test_hold_what_is_not_nan",
    ),
    Mutant(
        "entries-epoch",
        "labels/coordinates/discovery.py",
        "if axis.epoch and name in self.extents:",
        "if False:",
        "labels/test_entries.py::TestChunks::test_dates_of_every_cell",
    ),
    Mutant(
        "mean-keeps-data",
        "process/sample.py",
        "return np.where(datum >= 0, known.mean[datum], mean)",
        "return mean",
        "methods/test_contract.py::TestConditioned::test_the_mean_alone_is_that_of_the_moments",
    ),
    Mutant(
        "mean-of-a-pair",
        "methods/transductive.py",
        "return self.models[-1].mean(targets, nugget=nugget)",
        "return self.models[0].mean(targets, nugget=nugget)",
        "methods/test_contract.py::TestConditioned::test_the_mean_alone_is_that_of_the_moments",
    ),
    Mutant(
        "posterior-mean-alone",
        "prediction/posterior.py",
        "or (levels != 0.5).any()",
        "or (levels != 0.5).all()",
        "prediction/test_posterior.py::TestPosterior::test_interval "
        "prediction/test_posterior.py::TestMeanAlone",
    ),
    Mutant(
        "observations-duplicates",
        "labels/rows.py",
        "repeated = np.flatnonzero(counts > 1)",
        "repeated = np.flatnonzero(counts > 2)",
        "labels/test_observations.py labels/test_sites.py",
    ),
    Mutant(
        "additions-known",
        "labels/additions.py",
        "np.isin(before, sites) | np.isin(old, own)",
        "np.isin(before, sites + 10**6) | np.isin(old, own)",
        "model/test_conditioning.py::TestErrors",
    ),
    Mutant(
        "splits-buffer",
        "validation/splits.py",
        "lost |= withheld & near_any",
        "lost |= own & near_any",
        "validation/test_splits.py",
    ),
    Mutant(
        "table-clusters",
        "validation/table.py",
        "np.unique(np.asarray(folds), return_inverse=True)",
        "np.unique(np.arange(own.size), return_inverse=True)",
        "validation/test_table.py",
    ),
    Mutant(
        "newton-two",
        "fitting/newton.py",
        "small = small + 1 if value - new_value < gain else 0",
        "small = small + 2 if value - new_value < gain else 0",
        "fitting/test_newton.py::test_two_small_gains_in_a_row_are_the_end",
    ),
    Mutant(
        "newton-best",
        "fitting/newton.py",
        "best = min(scouts, key=lambda number: scouts[number].value)",
        "best = 0",
        "fitting/test_newton.py::TestSeveralStarts::test_the_better_basin_is_chosen",
    ),
    Mutant(
        "newton-secants",
        "fitting/newton.py",
        "pairs.append((step, (new_slope - slope) * unit))",
        "pairs.append((step, new_slope - slope))",
        "fitting/test_newton.py::test_units_and_constants_cannot_be_told",
    ),
    Mutant(
        "newton-damping",
        "fitting/newton.py",
        "if seen < _DAMPING * bend:",
        "if False:",
        "fitting/test_newton.py::test_a_correction_leaves_the_curvature_positive",
    ),
    Mutant(
        "newton-faces",
        "fitting/newton.py",
        "free &= ~met",
        "free[:] = False",
        "fitting/test_newton.py::test_it_ends_where_scipy_does",
    ),
    Mutant(
        "newton-nan",
        "fitting/newton.py",
        "fine = np.isfinite(new_value) and np.isfinite(new_slope).all()",
        "fine = not np.isinf(new_value)",
        "fitting/test_newton.py::test_walls "
        "fitting/test_newton.py::test_a_slope_that_overflows_is_a_wall",
    ),
    Mutant(
        "selection-aic",
        "fitting/maximise.py",
        "2.0 * (self.covariance.size + self.marginal.dof - self.log_likelihood)",
        "self.covariance.size + self.marginal.dof - 2.0 * self.log_likelihood",
        "fitting/test_alone.py::TestFit::test_is_at_the_maximum",
    ),
    Mutant(
        "selection-best",
        "fitting/select.py",
        "best = min(singles, key=lambda s: s.aic).marginal",
        "best = singles[0].marginal",
        "fitting/test_select.py::TestSelect::test_is_the_best_of_all",
    ),
    Mutant(
        "selection-shared",
        "fitting/select.py",
        "key=lambda k: sum(best(table, k).aic for table in tables)",
        "key=lambda k: best(tables[0], k).aic",
        "fitting/test_select.py::TestAgree::test_the_best_for_all_of_them",
    ),
    Mutant(
        "steps-free",
        "fitting/steps.py",
        "free = np.setdiff1d(np.arange(process.size), process.with_tasks((0,))[1])",
        "free = np.arange(process.size)",
        "fitting/test_steps.py::TestPairs::test_hold_the_primary_s_parameters_exactly",
    ),
    Mutant(
        "cost-share",
        "fitting/cost.py",
        "cost.bytes < MEMORY_SHARE * memory",
        "cost.bytes < memory",
        "fitting/test_cost.py::TestCheck::test_memory_counts_too",
    ),
    Mutant(
        "cost-hours",
        "fitting/cost.py",
        "cost.hours <= max_hours",
        "True",
        "fitting/test_cost.py::TestCheck::test_the_limit_is_in_hours",
    ),
    Mutant(
        "request-twice",
        "fitting/request.py",
        "if len(set(others)) < len(others):",
        "if False:",
        "fitting/test_request.py::TestRefused::test_variables",
    ),
    Mutant(
        "interruption-add",
        "model/running.py",
        "_stopped.add(ticket)",
        "pass",
        "fitting/test_interruption.py::test_an_objective_stops_with_its_fit",
    ),
    Mutant(
        "ensemble-error-of-a-quantile",
        "process/ensemble.py",
        "width / (2.0 * _WIDE)",
        "width / 2.0",
        "process/test_ensemble.py::TestSummarise",
    ),
    Mutant(
        "ensembles-batches",
        "prediction/ensembles.py",
        "posterior.sample(size, self.seed, start=start)",
        "posterior.sample(size, self.seed)",
        "prediction/test_ensembles.py::TestBatches",
    ),
    Mutant(
        "weighting-mask",
        "prediction/weighting.py",
        "weights = np.where(present, weights, 0.0)",
        "weights = 1.0 * weights",
        "prediction/test_weighting.py::TestSums",
    ),
    Mutant(
        "weighting-regions",
        "prediction/weighting.py",
        "codes[wanted] = inverse.reshape(-1)",
        "codes[wanted] = inverse.reshape(-1)[::-1]",
        "prediction/test_weighting.py",
    ),
    Mutant(
        "areas-poles",
        "labels/areas.py",
        "np.clip(degrees, -90.0, 90.0)",
        "degrees",
        "labels/test_areas.py::TestGlobe",
    ),
    Mutant(
        "predictor-endless",
        "prediction/predictor.py",
        "heaviest * self.process.factors[task] ** 2",
        "heaviest * 0.0",
        "prediction/test_functionals.py::TestNoMean",
    ),
    Mutant(
        "blocks-mask",
        "prediction/blocks.py",
        "return np.flatnonzero(wanted)",
        "return np.arange(wanted.size)",
        "prediction/test_blocks.py::TestEvaluate::test_mask_and_nan",
    ),
    Mutant(
        "decision-distance",
        "process/decision.py",
        "owens_t(distance[cell], np.sqrt(left / less))",
        "owens_t(distance[cell], left / less)",
        "process/test_decision.py::test_against_draws_of_truth_and_decision",
    ),
    Mutant(
        "decision-left-out",
        "process/decision.py",
        "_MOVED = 30.0",
        "_MOVED = 3.0",
        "process/test_decision.py::test_what_is_left_out_counts_nothing",
    ),
    Mutant(
        "choosing-rank-one",
        "process/choosing.py",
        "among -= beside[:, None] * among[best].copy()",
        "among -= 0.0",
        "process/test_choosing.py::test_is_the_best_at_each_step",
    ),
    Mutant(
        "between-task",
        "methods/posterior_covariance.py",
        "both = measured.inputs, measured.sites, task, some.inputs, some.sites, other",
        "both = measured.inputs, measured.sites, other, some.inputs, some.sites, other",
        "methods/test_posterior_covariance.py::test_against_one_large_matrix",
    ),
    Mutant(
        "design-shared-nugget",
        "model/design.py",
        "np.where(fresh, first + met, cells.sites)",
        "cells.sites",
        "model/test_design.py::TestVariance::test_a_cell_that_is_measured_is_known",
    ),
    Mutant(
        "worth-rows",
        "methods/joint.py",
        "return self._replace(sample=self.sample.take(rows))",
        "return self",
        "model/test_worth.py::TestVariables::test_is_the_map_of_a_model_without_the_values",
    ),
    Mutant(
        "blocks-slices",
        "prediction/blocks.py",
        "min(k + step, size))",
        "min(k + step - 1, size))",
        "prediction/test_blocks.py::TestEvaluate::test_so_many_cells_at_a_time_do_not_change_the_result",
    ),
    Mutant(
        "layout-own",
        "prediction/layout.py",
        "found.setdefault(dim, chunks)",
        "found[dim] = chunks",
        "prediction/test_layout.py::TestOwnChunks::test_of_what_is_read_before_anything_else",
    ),
    Mutant(
        "target-dims",
        "prediction/target.py",
        "dict.fromkeys(d for d in shown if d in needed)",
        "dict.fromkeys(d for d in shown[::-1] if d in needed)",
        "prediction/test_target.py::TestCoordinates",
    ),
    Mutant(
        "posterior-interval",
        "prediction/posterior.py",
        "[0.5 * (1.0 - level), 0.5 * (1.0 + level)]",
        "[1.0 - level, level]",
        "prediction/test_posterior.py::TestPosterior::test_interval",
    ),
    Mutant(
        "predicting-nugget",
        "prediction/predicting.py",
        'self.nugget = of == "observation"',
        "self.nugget = True",
        "prediction/test_predicting.py::TestValues::test_the_signal_is_smoother_and_surer",
    ),
    Mutant(
        "extremes-chance",
        "model/extremes.py",
        "0.5 * _CHANCE / max(size, 1)",
        "_CHANCE / max(size, 1)",
        "model/test_record.py::TestExtremes::test_what_chance_reaches_is_not_extreme",
    ),
    Mutant(
        "record-prior",
        "model/record.py",
        "return value - weak, gradient - weak_gradient",
        "return value + weak, gradient - weak_gradient",
        "model/test_record.py::TestObjective::test_gradient",
    ),
    Mutant(
        "summary-correlation",
        "model/summary.py",
        "p[what].values[..., 0, i]",
        "p[what].values[..., i, i]",
        "model/test_summary.py::TestDescription::test_correlations_are_those_with_the_primary",
    ),
    Mutant(
        "parameters-lengths",
        "model/parameters.py",
        "1.0 if g.ard else system.scale[s]",
        "1.0",
        "model/test_parameters.py::TestParameters::test_length_scales_do_not_depend_on_units",
    ),
    Mutant(
        "parameters-nugget",
        "model/parameters.py",
        '"nugget": shares[-1]',
        '"nugget": shares[0]',
        "model/test_parameters.py::TestParameters::test_dims_units_and_unit_variance",
    ),
    Mutant(
        "storage-overwrite",
        "storage/whole.py",
        "if os.path.lexists(path) and not overwrite:",
        "if path.exists() and not overwrite:",
        "storage/test_whole.py::TestReplacing::test_a_link_that_leads_nowhere_is_not_replaced_unasked",
    ),
    Mutant(
        "storage-temporary",
        "storage/whole.py",
        "temporary.unlink(missing_ok=True)",
        "pass",
        "storage/test_whole.py::TestWrite::test_a_failure_leaves_no_trace",
    ),
    Mutant(
        "state-freeze",
        "state.py",
        "state.flags.writeable = False",
        "pass",
        "test_state.py::TestFreeze::test_closes_every_array",
    ),
    Mutant(
        "state-tuple",
        "state.py",
        'return tuple(put_together(part, classes) for part in plain["items"])',
        'return [put_together(part, classes) for part in plain["items"]]',
        "test_state.py::TestValues::test_there_and_back",
    ),
    Mutant(
        "graph-shuffled",
        "solvers/graph.py",
        "np.lexsort(points.T)[np.random.default_rng(0).permutation(n)]",
        "np.random.default_rng(0).permutation(n)",
        "solvers/test_graph.py::TestOrder::test_the_order_of_the_data_is_immaterial",
    ),
    Mutant(
        "graph-precedes",
        "solvers/graph.py",
        "precedes = found < before[todo][:, None]",
        "precedes = found <= before[todo][:, None]",
        "solvers/test_graph.py::TestNeighbours::test_precede_and_are_as_many_as_there_are",
    ),
    Mutant(
        "graph-enough-found",
        "solvers/graph.py",
        "np.minimum(count, before[todo])",
        "np.minimum(1, before[todo])",
        "solvers/test_graph.py::TestNeighbours::test_the_nearest_of_one_task",
    ),
    Mutant(
        "graph-quota",
        "solvers/graph.py",
        "most // (3 * sample.tasks)",
        "most // (30 * sample.tasks)",
        "solvers/test_graph.py::TestNeighbours::test_the_quota_of_each_task",
    ),
    Mutant(
        "graph-given",
        "solvers/graph.py",
        "first = int(near.sample.offsets[given])",
        "first = 0",
        "solvers/test_graph.py::TestNeighbours::test_tasks_that_are_given_have_no_terms",
    ),
    Mutant(
        "graph-metric",
        "solvers/near.py",
        "logs.sum(axis=0) / shares.sum()",
        "logs.mean(axis=0)",
        "solvers/test_near.py::test_metric_is_a_mean_weighted_by_variance",
    ),
    Mutant(
        "graph-once",
        "solvers/graph.py",
        "ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1",
        "pass",
        "solvers/test_graph.py::TestNeighbours::test_precede_and_are_as_many_as_there_are",
    ),
    Mutant(
        "graph-structures",
        "solvers/graph.py",
        "_BY_STRUCTURE = 0.5",
        "_BY_STRUCTURE = 0.0",
        "solvers/test_graph.py::TestPlacesAndDates",
    ),
    Mutant(
        "graph-travels",
        "solvers/graph.py",
        "do not travel.\n        return {f.name: getattr(self, f.name) for f in fields(self)}",
        "do not travel.\n        return dict(self.__dict__)",
        "solvers/test_neighbours.py::TestTravels::test_a_structure",
    ),
    Mutant(
        "search-reach",
        "solvers/search.py",
        "_REACH = 2.5",
        "_REACH = 0.5",
        "solvers/test_search.py::TestTiles::test_neighbours_reach_beyond_the_corners",
    ),
    Mutant(
        "search-far",
        "solvers/search.py",
        "_FAR, _THINNER, _FEWEST = 0.15",
        "_FAR, _THINNER, _FEWEST = 0.0",
        "solvers/test_search.py::test_a_gap_is_seen_from_all_sides",
    ),
    Mutant(
        "search-without",
        "solvers/search.py",
        "min(count + more, tree.n)",
        "min(count, tree.n)",
        "solvers/test_search.py::TestCells::test_the_nearest_without_some",
    ),
    Mutant(
        "search-last",
        "solvers/search.py",
        "np.argsort(numbers < 0",
        "np.argsort(numbers >= 0",
        "solvers/test_search.py::TestCells::test_the_nearest_without_some",
    ),
    Mutant(
        "search-known",
        "solvers/search.py",
        "candidates[known] = -1",
        "pass",
        "solvers/test_search.py::test_a_gap_is_seen_from_all_sides",
    ),
    Mutant(
        "search-lattice",
        "solvers/search.py",
        "np.floor(where[todo] / edge)",
        "np.floor((where[todo] - where[0]) / edge)",
        "solvers/test_search.py::TestAFunctionOfThePlace::test_bitwise",
    ),
    Mutant(
        "search-thinned-order",
        "solvers/search.py",
        "np.lexsort(near.places[rows].T)[np.random.default_rng(0).permutation(rows.size)]",
        "np.random.default_rng(0).permutation(rows.size)",
        "solvers/test_search.py::test_thinned_samples_do_not_depend_on_the_order_of_the_data",
    ),
    Mutant(
        "strata-weights",
        "solvers/strata.py",
        "own.size / max(rows.size, 1)",
        "1.0",
        "solvers/test_graph.py::TestSubset::test_terms_stand_for_all",
    ),
    Mutant(
        "strata-extremes",
        "solvers/strata.py",
        "place[[np.argmin(values), np.argmax(values)]] = -1",
        "pass",
        "solvers/test_graph.py::TestSubset::test_extremes_of_each_task_count_once",
    ),
    Mutant(
        "strata-compressed",
        "solvers/strata.py",
        "number = np.cumsum(used) - 1",
        "number = np.cumsum(used)",
        "solvers/test_graph.py::TestSubset::test_the_compressed_sample_has_the_same_terms",
    ),
    Mutant(
        "terms-pieces",
        "solvers/terms.py",
        "size // _FEWEST",
        "size",
        "solvers/test_neighbours.py::test_few_terms_need_no_thread",
    ),
    Mutant(
        "terms-precision",
        "solvers/terms.py",
        "functools.reduce(np.add, precisions)",
        "precisions[0]",
        "solvers/test_neighbours.py::test_threads_do_not_matter",
    ),
    Mutant(
        "terms-jitter-told",
        "solvers/terms.py",
        "if jittered:",
        "if False:",
        "solvers/test_neighbours.py::TestHardMatrices",
    ),
    Mutant(
        "likelihood-mixed",
        "solvers/graph.py",
        "inside[self.rows] | (inside[self.neighbours] & there).any(axis=1)",
        "inside[self.rows]",
        "solvers/test_likelihood.py::test_a_term_is_all_less_its_neighbours",
    ),
    Mutant(
        "interval-terms-determinant",
        "jit/neighbours.py",
        "factor = (variance + extra) * own_precision",
        "factor = (variance + old) * own_precision",
        "solvers/test_likelihood.py::test_a_term_is_all_less_its_neighbours",
    ),
    Mutant(
        "interval-terms-slopes",
        "jit/neighbours.py",
        "part += before[a] * before[b] - after[a] * after[b]",
        "part += after[a] * after[b] - before[a] * before[b]",
        "solvers/test_likelihood.py::test_the_gradient_is_that_of_the_value",
    ),
    Mutant(
        "neighbours-mean",
        "solvers/neighbours.py",
        "mean_is_cheaper: ClassVar[bool] = False",
        "mean_is_cheaper: ClassVar[bool] = True",
        "prediction/test_posterior.py::TestMeanAlone::test_of_neighbours_which_need_a_factor_for_either",
    ),
    Mutant(
        "neighbours-whole",
        "solvers/neighbours.py",
        "isinstance(self.structure, Connected) and not self.structure.given",
        "isinstance(self.structure, Connected)",
        "solvers/test_neighbours.py::TestOneDensity::test_left_out_values_need_all_terms",
    ),
    Mutant(
        "neighbours-itself",
        "solvers/neighbours.py",
        "(np.append(others, row) for row, others",
        "(others for row, others",
        "solvers/test_search.py::test_left_out_from_few_neighbours_equals_exact_from_the_same",
    ),
    Mutant(
        "neighbours-adapts",
        "solvers/neighbours.py",
        "return not one or covariance.groups[0].freedom > 0",
        "return not one",
        "solvers/test_neighbours.py::TestOptions::test_adapts",
    ),
    Mutant(
        "neighbours-cost",
        "solvers/neighbours.py",
        "m = min(asked, max(n - 1.0, 0.0))",
        "m = asked",
        "solvers/test_neighbours.py::TestOptions::test_cost_grows_linearly",
    ),
    Mutant(
        "jit-terms-precision",
        "jit/neighbours.py",
        "precision[row[j]] += weight * b[j] * b[j]",
        "precision[row[j]] += b[j] * b[j] * b[j]",
        (
            "jit/test_neighbours.py::test_terms_are_conditional_densities "
            "solvers/test_neighbours.py::TestAllNeighbours::test_leave_one_out_and_solve"
        ),
    ),
    Mutant(
        "choice-least",
        "jit/choice.py",
        "taken[owner[c]] < least",
        "taken[owner[c]] <= least",
        "jit/test_choice.py::TestPick::test_against_brute_force",
    ),
    Mutant(
        "choice-radius",
        "jit/choice.py",
        "if squared < radius * radius:",
        "if squared <= radius * radius:",
        "jit/test_choice.py::TestThin",
    ),
    Mutant(
        "choice-structures",
        "jit/choice.py",
        "last = min(number + each, most)",
        "last = most",
        "jit/test_choice.py::TestPick::test_some_of_every_structure",
    ),
    Mutant(
        "choice-away",
        "jit/choice.py",
        "if taken[i] or away[i] < radius * radius:",
        "if taken[i] or away[i] < 4.0 * radius * radius:",
        "jit/test_choice.py::TestThin",
    ),
    Mutant(
        "stages-anew",
        "fitting/maximise.py",
        "range(rounds if anew else 0)",
        "range(rounds)",
        "fitting/test_maximise.py::TestNeighboursAnew::test_only_lengths_count",
    ),
    Mutant(
        "stages-evaluations",
        "fitting/maximise.py",
        "evaluations=again.evaluations + begun.evaluations",
        "evaluations=again.evaluations",
        "fitting/test_maximise.py::TestNeighboursAnew::test_evaluations_of_all_rounds_count",
    ),
    Mutant(
        "buffer-itself",
        "labels/buffer.py",
        "np.setdiff1d(np.asarray(near, np.int64), [row])",
        "np.sort(np.asarray(near, np.int64))",
        "labels/test_buffer.py::TestWithin::test_in_the_plane",
    ),
    Mutant(
        "buffer-rounding",
        "labels/buffer.py",
        "limit * (1.0 + 1e-9) + 1e-12)",
        "limit)",
        "labels/test_buffer.py::TestWithin::test_a_distance_that_is_reached_counts",
    ),
    Mutant(
        "buffer-rest",
        "labels/buffer.py",
        "<= limit]",
        "<= np.inf]",
        "labels/test_buffer.py::TestWithin::test_in_space_and_time_by_name",
    ),
    Mutant(
        "batches-lists",
        "solvers/batches.py",
        "wider = max(longest, len(own))",
        "wider = len(own)",
        "solvers/test_batches.py::test_lists_in_batches",
    ),
    Mutant(
        "entries-beside",
        "labels/entries.py",
        "or (c.ndim and c.size == array.size",
        "or (False and c.size == array.size",
        "labels/test_entries.py::TestOnce labels/test_entries.py::TestEntries",
    ),
    Mutant(
        "entries-extents",
        "labels/entries.py",
        "extents=tuple(map(Extent.of, beside))",
        "extents=tuple(None for _ in beside)",
        "labels/test_entries.py::TestChunks",
    ),
)


class Copy:
    """A copy of the package and its tests, in which one file at a time is wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignore = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=ignore)
            else:
                shutil.copy2(ROOT / name, folder / name)

    def run(self, *command: str, compiled: str = "all") -> subprocess.CompletedProcess[str]:
        """Run Python in the copy; what numba compiles is kept, by the name ``compiled``."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "NUMBA_CACHE_DIR": str(self.folder / "compiled" / compiled),
        }
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def test(self, nodes: Sequence[str], **options: str) -> subprocess.CompletedProcess[str]:
        """Run tests, up to the first that fails."""
        return self.run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *nodes, **options)

    def check(self, mutants: Sequence[Mutant]) -> None:
        """Make sure that the copy is what is imported, and that all tests pass as it is."""
        found = self.run("-c", "import xcopula; print(xcopula.__file__)").stdout.strip()
        if found != str(self.folder / "xcopula" / "__init__.py"):
            raise SystemExit(f"Not the copy is imported, but {found!r}.")
        print(f"xcopula is imported from {found}")
        nodes = list(dict.fromkeys(node for mutant in mutants for node in mutant.nodes))
        done = self.test(nodes)
        if done.returncode:
            raise SystemExit(f"Tests fail without any mutant:\n{done.stdout}{done.stderr}")

    @contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """Hold a file in its mutated state."""
        path = self.folder / "xcopula" / mutant.file
        text, stamp = path.read_text(), path.stat().st_mtime
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.name}: {text.count(mutant.old)} times in {mutant.file}.")
        path.write_text(text.replace(mutant.old, mutant.new))
        # Python and numba tell by the time, in whole seconds, whether they have compiled a file:
        # no two mutants have one, and the file itself is the one of before.
        later = stamp + 10 + MUTANTS.index(mutant)
        os.utime(path, (later, later))
        try:
            yield
        finally:
            path.write_text(text)
            os.utime(path, (stamp, stamp))

    def attack(self, mutant: Mutant) -> Outcome:
        """Run the tests of a mutant."""
        begin = time.perf_counter()
        with self.broken(mutant):
            try:
                done = self.test(mutant.nodes, compiled=mutant.name if mutant.compiled else "all")
            except subprocess.TimeoutExpired:
                return Outcome(True, f"no end in {SECONDS} s", time.perf_counter() - begin)
        lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
        by = lines[0].split()[1] if lines else f"pytest ended with {done.returncode}"
        return Outcome(done.returncode == FAILED, by, time.perf_counter() - begin)


def attack_all(mutants: Sequence[Mutant]) -> list[str]:
    """Run the tests of every mutant, print a table, and return the names of the survivors."""
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder).resolve())
        copy.check(mutants)
        for mutant in mutants:
            outcome = copy.attack(mutant)
            word = "killed" if outcome.killed else "SURVIVED"
            print(f"{word:8}  {mutant.name:26}  {outcome.seconds:5.1f} s  {outcome.by}", flush=True)
            if not outcome.killed:
                survivors.append(mutant.name)
    return survivors


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack the mutants that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="this mutant; repeatable")
    parser.add_argument("--quick", action="store_true", help="three mutants")
    parser.add_argument("--list", action="store_true", help="list the mutants, attack none")
    given = parser.parse_args(arguments)
    wanted = given.only or (QUICK if given.quick else [m.name for m in MUTANTS])
    unknown = [name for name in wanted if name not in {m.name for m in MUTANTS}]
    if unknown:
        parser.error(f"unknown mutants {unknown}; --list shows all")
    mutants = [m for m in MUTANTS if m.name in wanted]
    if given.list:
        for mutant in mutants:
            print(f"{mutant.name:26}  {mutant.file:32}  {mutant.old!r} -> {mutant.new!r}")
        return 0
    begin = time.perf_counter()
    survivors = attack_all(mutants)
    killed = len(mutants) - len(survivors)
    print(
        f"killed {killed} of {len(mutants)} in {time.perf_counter() - begin:.0f} s, "
        f"survived: {', '.join(survivors) or 'none'}"
    )
    return 0 if killed >= ENOUGH * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
