"""The slump of stiff concrete as it is: 11 of 103 mixes do not slump, 17 do not flow beyond 20 cm.

Run as ``python examples/report/slump_limits.py --data slump_test.data``; it takes some minutes. The
splits and the options are those of table 3. One model has the report's marginal, a GEV, for which a
slump of 0 is a number as any other. The other has the flexible marginal, censored at zero, and a
flow of 20 cm, the width of the cone, is an upper limit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pandas as pd
import xarray as xr
from common import Row, markdown, read_arguments, score
from table3 import CASES, METHODS, OPTIONS, SECONDARIES, divide, hide, load, near_zero

import xcopula

PLAIN, LIMITS = "GEV, zeros as values", "flexible, zeros and flow of 20 censored"
TREATMENTS: dict[str, dict[str, object]] = {
    PLAIN: {"marginals": "gev"},
    LIMITS: {
        "marginals": {"slump": "flexible", "flow": "gev", "strength": "gev"},
        "censored": {"flow": 20.0},
    },
}
SCORES = {
    "mae": ("MAE (cm)", 2),
    "rmse": ("RMSE (cm)", 2),
    "coverage": ("coverage of 90 % (%)", 1),
    "negative_lower": ("intervals that begin below zero (%)", 1),
    "median_at_zeros": ("median where it is zero (cm)", 1),
}


def run(data: xr.Dataset, split: int, case: str) -> list[Row]:
    """Fit both treatments on one split, and score the mixes that they did not see."""
    known = divide(data, split)
    tests, rows = data.isel(mix=~known), []
    for treatment, own in TREATMENTS.items():
        options = {**OPTIONS, **own, "method": METHODS["MtGCP"], "coords": list(data.coords)}
        model = xcopula.fit(hide(data, known, case), "slump", SECONDARIES, **options)
        found = {**score(model, tests, tests["slump"].values), **near_zero(model, tests)}
        found["negative_lower"] *= 100.0
        rows.append({"split": split, "case": case, "treatment": treatment, **found})
    return rows


def describe(table: pd.DataFrame) -> str:
    """Write means and standard deviations over splits as Markdown."""
    rows = []
    for (case, treatment), own in table.groupby(["case", "treatment"], sort=False):
        cells = [
            f"{own[name].mean():.{digits}f} ± {own[name].std():.{digits}f}"
            for name, (_, digits) in SCORES.items()
        ]
        rows.append([CASES[case], treatment, *cells])
    heads = ["known", "slump and flow", *(title for title, _ in SCORES.values())]
    lines = [
        "# The slump of stiff concrete, as it is",
        "",
        "Made by `python examples/report/slump_limits.py --data slump_test.data`: the full model, "
        f"{table['split'].nunique()} splits",
        "of table 3. Means and standard deviations over splits.",
        "",
        markdown(heads, rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare both treatments."""
    options = read_arguments(
        __doc__,
        arguments,
        ("--data", {"type": Path, "help": "the slump file; default $XCOPULA_SLUMP"}),
        ("--splits", {"type": int, "default": 20}),
    )
    data = load(options.data, options.quick)
    splits = range(1 if options.quick else options.splits)
    table = pd.DataFrame([r for c in CASES for s in splits for r in run(data, s, c)])
    text = describe(table)
    (options.output / "slump_limits.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
