"""Cross-validation as text, and the skill in it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula import format_validation
from xcopula.validation.table import skill


def made(**attrs) -> xr.Dataset:
    """Return a result that was made up: four values in two folds."""
    observed = np.array([1.0, 2.0, 3.0, 4.0])
    columns = {"observed": observed, "fold": np.array([0, 0, 1, 1])}
    for end, shift in (("", 0.1), ("_single_task", 0.2), ("_climatology", 1.0)):
        columns[f"median{end}"] = observed + shift * np.array([1.0, -1.0, 1.0, -3.0])
        columns[f"crps{end}"] = shift * np.array([1.0, 1.0, 1.0, 3.0])
        columns[f"pit{end}"] = np.array([0.5, 0.2, 0.96, 0.999])
    return xr.Dataset({n: ("site", v) for n, v in columns.items()}, attrs=attrs)


class TestSkill:
    def test_is_the_ratio_of_means(self):
        """One minus the ratio; no error where every value says the same."""
        assert skill([1.0, 3.0], [2.0, 6.0], [0, 1]) == pytest.approx((0.5, 0.0))

    def test_error_of_independent_values(self):
        """Each value a fold: the spread of the skill over many samples."""
        rng = np.random.default_rng(0)
        found = []
        for _ in range(400):
            other = rng.gamma(4.0, 0.25, 200)
            own = 0.7 * other + rng.gamma(1.0, 0.1, 200)
            found.append(skill(own, other, np.arange(200)))
        values, errors = np.array(found).T
        assert errors.mean() == pytest.approx(values.std(), rel=0.1)
        assert values.mean() == pytest.approx(0.2, abs=0.005)

    def test_error_of_values_that_err_alike(self):
        """Copies of a value in its fold add nothing."""
        rng = np.random.default_rng(1)
        own, other = rng.gamma(2.0, 1.0, (2, 30))
        once = skill(own, other, np.arange(30))
        assert skill(*np.repeat([own, other, np.arange(30)], 5, axis=1)) == pytest.approx(once)


class TestText:
    def test_numbers(self):
        """Errors of the median, mean CRPS and coverage, and the skill."""
        found = made(primary="lead", folds="blocks", secondary="tin", secondaries="keep")
        text = format_validation(found)
        assert "lead: 4 values in 2 folds (blocks)" in text
        assert "at withheld places tin are known" in text
        (row,) = [line for line in text.splitlines() if line.startswith("  model")]
        error = 0.1 * np.array([1.0, 1.0, 1.0, 3.0])
        expected = [error.mean(), np.sqrt((error**2).mean()), 0.15]
        assert [float(v) for v in row.split()[1:4]] == pytest.approx(expected, rel=1e-3)
        assert row.split()[4:] == ["25.0%", "50.0%", "50.0%", "75.0%"]
        assert "skill against climatology  +0.900" in text
        assert "skill against single task  +0.500" in text

    def test_intervals_have_no_error(self):
        """They are left out of MAE and RMSE, and counted; where nothing is left, nothing is."""
        found = made(primary="lead", folds="blocks")
        observed = found["observed"]
        limits = {"observed_lower": observed.where(observed < 4.0, 0.0), "observed_upper": observed}
        text = format_validation(found.assign(limits))
        row = next(line for line in text.splitlines() if line.startswith("  model"))
        assert [float(v) for v in row.split()[1:4]] == pytest.approx([0.1, 0.1, 0.15])
        assert "MAE and RMSE are of the 3 values that are no intervals" in text
        assert "no intervals" not in format_validation(found)
        limits["observed_lower"] = 0.0 * observed
        assert "nan" in format_validation(found.assign(limits))

    def test_without_secondaries(self):
        """There is no single task to compare with."""
        found = made(primary="lead", folds="sites", buffer="space 3")
        found = found.drop_vars([n for n in found if n.endswith("_single_task")])
        text = format_validation(found)
        assert "single task" not in text
        assert "(random sites), buffer space 3" in text

    def test_of_one_fold(self):
        """It has a skill, and no standard error."""
        found = made(primary="lead", folds="blocks").isel(site=[0, 1])
        assert np.isnan(skill(found["crps"], found["crps_climatology"], found["fold"])[1])
        lines = format_validation(found).splitlines()
        assert lines[0] == "lead: 2 values in 1 fold (blocks)"
        assert lines[-2] == "  skill against climatology  +0.900"

    @pytest.mark.parametrize("bad", ["a table", xr.Dataset(), None])
    def test_of_something_else(self, bad):
        """It takes what cross_validate returned."""
        with pytest.raises(TypeError, match="Pass the Dataset that `cross_validate` returned"):
            format_validation(bad)
