"""Make table 1 of the report: errors of ten systems on the Jura data, for cadmium and copper.

Run as ``python examples/report/table1.py``. The primary metal is known at 259 sites, the
secondaries at all 359, and the primary is predicted at the other 100. Kernels and marginals are the
default ones, selected by AIC on the data that are known, or the report's. Rows of the table are
kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from common import (
    BLUE,
    FAINT,
    RED,
    REPORT_KERNELS,
    REPORT_LAWS,
    SECONDARIES,
    Row,
    bare,
    describe_choice,
    heard,
    markdown,
    new_figure,
    read_arguments,
    run_missing,
    score,
    timed,
    warm_up,
    write_text,
)

# isort: split
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula
from xcopula.methods import CoKriging, Committee, Full, Sparse, Transductive

KEYS = ("metal", "system", "choices")
COMMAND = "python examples/report/table1.py"


@dataclass(frozen=True)
class System:
    """A row of the table: what to ask of a fit."""

    name: str
    choices: str  # "default", "select", "normal" or "report"
    multi: bool = True
    options: dict[str, object] = field(default_factory=dict)


def _sparse(choices: str) -> list[System]:
    return [
        System("DTC-200", choices, options={"method": Sparse("dtc", inducing=200)}),
        System("FITC-359", choices, options={"method": Sparse("fitc", inducing=359)}),
        System("PITC-200", choices, options={"method": Sparse("pitc", inducing=200)}),
        System("BCM-4", choices, options={"method": Committee(blocks=4)}),
    ]


FULL, TRANSDUCTIVE = {"method": Full()}, {"method": Transductive()}
SYSTEMS = [
    System("StGCP", "default", multi=False),
    System("MtGCP", "default", options=FULL),
    System("TransGCP", "default", options=TRANSDUCTIVE),
    System("StGCP", "select", multi=False),
    System("MtGCP", "select", options=FULL),
    System("TransGCP", "select", options=TRANSDUCTIVE),
    System("StGCP", "report", multi=False),
    System("MtGCP", "report", options=FULL),
    System("TransGCP", "report", options=TRANSDUCTIVE),
    # A linear model of coregionalisation with a short and a long structure, as in Goovaerts (1997).
    System("CK", "normal", options={"method": CoKriging(), "structures": 2}),
    System("StGP", "normal", multi=False),
    System("MtGP", "normal", options=FULL),
    *_sparse("normal"),
    *_sparse("select"),
]
# The report's own numbers, and those that it quotes.
PUBLISHED = {
    "Cd": {
        "StGCP": "0.56 ± 0.07",
        "MtGCP": "0.42 ± 0.06",
        "TransGCP": "0.44 ± 0.09",
        "CK": "0.51",
        "StGP": "0.57",
        "MtGP": "0.44",
        "DTC-200": "~0.46",
        "FITC-359": "~0.47",
        "PITC-200": "~0.45",
    },
    "Cu": {
        "StGCP": "14.43 ± 2.62",
        "MtGCP": "6.57 ± 1.04",
        "TransGCP": "6.96 ± 1.43",
        "CK": "7.8",
        "StGP": "15.8",
        "MtGP": "7.5",
    },
}
DIGITS = {"Cd": 3, "Cu": 2}
TICKS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50)


def published(metal: str, system: str, choices: str) -> str:
    """Return the report's number for a row; it has none for sparse copula processes."""
    if choices == "select" and "-" in system:
        return ""
    return PUBLISHED[metal].get(system, "")


def fit_options(system: System, metal: str, quick: bool) -> dict[str, object]:
    """Return the options of a row's fit."""
    names = [metal, *(SECONDARIES[metal] if system.multi else ())]
    options = dict(system.options)
    if quick:
        options |= {"kernels": "matern32", "marginals": "lognormal"}
        if isinstance(options.get("method"), Sparse):
            options["method"] = replace(options["method"], inducing=30)
    elif system.choices in ("select", "normal"):
        options |= {"kernels": "select", "marginals": "select"}
    if system.choices != "default":
        options |= {"anisotropy": False, "uncertainty": "plugin"}
    if system.choices == "normal":
        options["marginals"] = "normal"
    elif system.choices == "report":
        options["kernels"] = {n: REPORT_KERNELS[n] for n in names}
        options["marginals"] = {n: REPORT_LAWS[n] for n in names}
    return options


def run_row(metal: str, system: System, quick: bool) -> Row:
    """Fit one system and score it at the validation sites."""
    data, truth = xcopula.datasets.jura(hide=metal), xcopula.datasets.jura()
    if quick:
        data, truth = (d.isel(site=slice(219, 274)) for d in (data, truth))
    tests = truth.isel(site=truth["split"].values == "validation")
    others = SECONDARIES[metal] if system.multi else ()
    with heard() as warnings, timed() as clock:
        model = xcopula.fit(data, metal, others, **fit_options(system, metal, quick))
    errors = score(model, tests, tests[metal].values)
    return {
        "metal": metal,
        "system": system.name,
        "choices": system.choices,
        "secondaries": " ".join(others),
        **errors,
        "published": published(metal, system.name, system.choices),
        "fit_seconds": clock.wall,
        "cpu_seconds": clock.cpu,
        "evaluations": model.evaluations,
        "converged": model.converged,
        "log_likelihood": model.log_likelihood,
        **describe_choice(model),
        "test_sites": tests.sizes["site"],
        "warnings": "; ".join(warnings),
        "version": xcopula.__version__,
    }


def describe(table: pd.DataFrame) -> str:
    """Write the table as Markdown, a part for each metal."""
    heads = ["system", "laws", "MAE ± s.e.", "s.d.", "report", "90 % covers", "fit, CPU s"]
    heads += ["kernel and law of each variable"]
    lines = []
    for metal, own in table.groupby("metal", sort=False):
        digits = DIGITS[str(metal)]
        lines += [f"**{metal} with {', '.join(SECONDARIES[str(metal)])}** (mg/kg)", ""]
        rows = [
            [
                r.system,
                r.choices,
                f"{r.mae:.{digits}f} ± {r.se:.{digits}f}",
                f"{r.sd:.{digits}f}",
                r.published,
                f"{r.coverage:.0f} %",
                f"{r.cpu_seconds:.1f}",
                _chosen(r.kernels, r.laws, r.rule),
            ]
            for r in own.itertuples()
        ]
        lines += [markdown(heads, rows), ""]
    return "\n".join([*lines, f"Made by `{COMMAND}`."]) + "\n"


def _chosen(kernels: str, laws: str, rule: str) -> str:
    pairs = [f"{k} {m}" for k, m in zip(kernels.split(), laws.split(), strict=True)]
    if len(set(pairs)) == 1:
        pairs = pairs[:1] if len(pairs) == 1 else [f"all {pairs[0]}"]
    return ", ".join(pairs) + (f"; weights {rule}" if rule else "")


def draw_figure(table: pd.DataFrame) -> Figure:
    """Draw the errors of each metal with bars of one standard error, beside the report's."""
    figure = new_figure(9.4, 5.2)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (metal, own) in zip(axes, table.groupby("metal", sort=False), strict=True):
        _draw_metal(ax, own, str(metal))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_metal(ax: Axes, own: pd.DataFrame, metal: str) -> None:
    place = np.arange(len(own))[::-1]
    ax.errorbar(
        own["mae"],
        place,
        xerr=own["se"],
        fmt="o",
        color=BLUE,
        markersize=5,
        capsize=3,
        label="this library, ± one standard error",
    )
    values = [float(p.strip("~").split()[0]) if p else np.nan for p in own["published"]]
    ax.plot(values, place, "D", color=RED, markersize=5, mfc="none", label="report")
    ax.set_yticks(place, [f"{r.system}  ({r.choices})" for r in own.itertuples()])
    ax.set_xscale("log")
    low, high = (own["mae"] - own["se"]).min(), (own["mae"] + own["se"]).max()
    ticks = [t for t in TICKS if low < t < high]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel("mean absolute error (mg/kg)")
    ax.set_title(f"{metal} with {', '.join(SECONDARIES[metal])}", fontsize=10)
    ax.grid(axis="y", color=FAINT, alpha=0.2, linewidth=0.6)
    bare(ax)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    options = read_arguments(__doc__, arguments)
    systems = {(s.name, s.choices): s for s in SYSTEMS}
    wanted = [(metal, *key) for metal in SECONDARIES for key in systems]
    warm_up()
    table = run_missing(
        options.output / "table1.csv",
        KEYS,
        wanted,
        lambda key: run_row(key[0], systems[key[1:]], options.quick),
    )
    write_text(options.output / "table1.md", describe(table))
    draw_figure(table).savefig(options.output / "table1.png")
    print(describe(table))


if __name__ == "__main__":
    main()
