"""Cross-validation of files."""

from __future__ import annotations

import pytest
import xarray as xr

import xcopula


def test_the_table_and_the_scores(run, files, sites, quick, tmp_path):
    """Both are those of Python."""
    words = ("--folds", "blocks", "--count", "3", "--fixed", "--secondaries", "drop", "--seed", "2")
    out = tmp_path / "scores.nc"
    done = run("validate", files / "data.nc", *quick, *words, "-o", out)
    assert done.exit_code == 0, done.output
    expected = xcopula.cross_validate(
        sites,
        "metal",
        "proxy",
        folds="blocks",
        count=3,
        refit=False,
        secondaries="drop",
        seed=2,
        method="full",
        anisotropy=False,
        marginals={"metal": "lognormal", "proxy": "normal"},
        kernels="matern32",
        uncertainty="plugin",
    )
    assert done.output == f"{xcopula.format_validation(expected)}\n\nWrote {out}.\n"
    with xr.open_dataset(out) as found:
        xr.testing.assert_allclose(found.drop_attrs(), expected.drop_attrs(), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "1"], "folds"),
        (["--folds", "region"], "region"),
        (["--buffer", "far=3"], "`buffer` names groups of coordinates, found ['far']"),
        (["--buffer", "100"], "leaves"),
    ],
)
def test_folds_that_cannot_be(run, files, quick, words, message):
    """One line, before anything is fitted."""
    done = run("validate", files / "data.csv", *quick, *words)
    assert done.exit_code == 1
    assert message in done.output
    assert done.output.count("\n") == 1
