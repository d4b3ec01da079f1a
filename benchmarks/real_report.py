"""Tables, page and picture of `bench_real.py`: differences to the default, paired by task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DEFAULT = "default"
LARGE, PUBLISHED = "large", "published"
COLOURS = {"small": "#1f5a94", "zeros": "#c8641e", "limesoda": "#3c8c4a", "worlds": "#777777"}
BEGIN, END = "<!-- real: begin -->", "<!-- real: end -->"
TASK = ["set", "task"]
# How much worse than the best peer a task may be, in per cent.
ALLOWED = 4.0
# Settings in the table of the published Jura.
BESIDE_PEERS = ("full", "plugin")
GROUPS = {
    "small": "small tasks",
    "zeros": "tasks with many zeros",
    "limesoda": "soils of LimeSoDa",
    "worlds": "worlds of known truth",
}

HEAD = """# Judged by real data

Are the defaults good? Simulated worlds cannot tell: they reward whatever made them. This page
compares the defaults with other settings and with other libraries, on real data sets with hidden
values.

```
python benchmarks/bench_real.py --small --peers --page
python benchmarks/bench_real.py --large --peers --page
```

A *task* is a variable of a set, alone or with secondaries. A third of its sites is hidden, twice,
by fixed seeds; the Jura with its published split is a table of its own. Secondaries stay known
wherever they were measured. Of panels whole stations are hidden, or blocks of time; of the grid,
holes. The variables were chosen before anything was fitted. Zeros are a group of their own: basal
areas of tree species, and dry months in Colorado.

Scores are paired. The CRPS of a setting is divided by that of the default, task by task; splits
of one task are averaged first. Tables show the mean over tasks in per cent, with its standard
error; **+ is worse than the default**. Seconds are CPU seconds of a fit on one thread, after what
is compiled has been compiled.

"""

FOOT = """
## Where it is worse

Two tasks are worse than the best peer beyond chance, pH of BB.51 and of G.150 with organic carbon
and clay as secondaries. They are known at 34 and 100 sites, and the secondaries say next to nothing
of them. The peers do not see these, and alone the default is level with the peers. Correlations are
shrunk ([decision 3](decisions/0003-default.md)), which removes a part of such losses, not all.
`summary()` compares the leave-one-out CRPS with and without secondaries.

## What it cannot tell

Hidden sites are drawn at random among the sites, so that most have a neighbour that is known:
this judges interpolation, not extrapolation. Tasks of one set are not independent, and the
standard errors take them as if they were. Log scores of tasks with many zeros are left out, since
a density and a probability cannot be compared, and those of normal scores and forests, which have
no density. Elevation is an input of Colorado and of the monthly temperatures, for all but
kriging. The forest takes secondaries as further inputs where all are known; Gaussian processes
and kriging of other libraries see the primary alone.

Sets that are not shipped are read from a folder (`--data`), and LimeSoDa is a package (`pip
install LimeSoDa`). What is absent is skipped, with a reason.
"""


@dataclass(frozen=True)
class Report:
    """Rows of a run, and what is needed to tell them apart."""

    rows: pd.DataFrame
    values: dict[tuple[str, ...], np.ndarray]
    version: str
    axes: dict[str, str]
    peers: dict[str, str]
    absent: dict[str, str] = field(default_factory=dict)


def read_values(path: Path) -> dict[tuple[str, ...], np.ndarray]:
    """Read the CRPS of single values, by version, set, task, split and setting."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = ("version", "set", "task", "split", "setting")
    return {tuple(str(x[n]) for n in names): np.array(x["crps"]) for x in lines}


# --- numbers ------------------------------------------------------------------------------------


def current(report: Report) -> pd.DataFrame:
    """Return rows of this version and of the peers that are installed.

    Defaults of other versions that are in the file are settings too, called by their version.
    """
    rows = report.rows
    stamps = pd.Series([report.peers.get(n, report.version) for n in rows["setting"]], rows.index)
    present = rows[rows["version"] == stamps]
    before = rows[(rows["version"] != stamps) & (rows["setting"] == DEFAULT)]
    before = before.assign(setting="default of " + before["version"].astype(str))
    both = pd.concat([present, before]) if len(before) else present
    return both.drop_duplicates(["set", "task", "split", "setting"], keep="last")


def paired(rows: pd.DataFrame, base: str = DEFAULT) -> pd.DataFrame:
    """Return the change of each task and setting against a base, splits averaged first.

    ``change`` is the log of the ratio of the CRPS, ``gain`` the difference of the log scores.
    """
    good = rows[rows["crps"].notna() & (rows["crps"] > 0.0)]
    key = [*TASK, "split"]
    scores = good[good["setting"] == base].set_index(key)[["crps", "log_score"]]
    both = good.join(scores.add_suffix("_base"), on=key).dropna(subset=["crps_base"])
    both = both.assign(
        change=np.log(both["crps"] / both["crps_base"]),
        gain=both["log_score"] - both["log_score_base"],
    )
    names = ["change", "gain", "coverage", "cpu_seconds"]
    grouped = both.groupby(["group", *TASK, "setting"], sort=False)[names]
    return grouped.mean().reset_index()


def per_cent(change: float) -> float:
    """Return a log ratio in per cent."""
    return float(100.0 * np.expm1(change))


def summary(changes: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting: mean change with its error, the worst task, and costs."""
    lines = []
    for name, part in changes.groupby("setting", sort=False):
        change = part["change"].to_numpy()
        worst = part.loc[part["change"].idxmax()]
        gain = part["gain"].dropna()
        lines.append(
            {
                "setting": name,
                "tasks": len(part),
                "change": per_cent(change.mean()),
                "error": 100.0 * np.exp(change.mean()) * standard_error(change),
                "worst": per_cent(worst["change"]),
                "worst_task": f"{worst['set']}, {worst['task']}",
                "gain": gain.mean() if len(gain) else np.nan,
                "gain_error": standard_error(gain.to_numpy()),
                "coverage": 100.0 * part["coverage"].mean(),
                "mean_seconds": part["cpu_seconds"].mean(),
                "median_seconds": part["cpu_seconds"].median(),
            }
        )
    return pd.DataFrame(lines)


def standard_error(numbers: np.ndarray) -> float:
    """Return the standard error of a mean; NaN of fewer than two."""
    return float(numbers.std(ddof=1) / np.sqrt(numbers.size)) if numbers.size > 1 else np.nan


def against_peers(report: Report, rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each task, how much worse the default is than the best peer, in per cent.

    The error is that of the mean difference over hidden values, of all splits together, which are
    taken as independent.
    """
    names = [name for name in rows["setting"].unique() if name in report.peers]
    good = rows[rows["crps"].notna()]
    lines = []
    for (group, set_name, task), part in good.groupby(["group", *TASK], sort=False):
        table = part.pivot_table(index="split", columns="setting", values="crps")
        here = [n for n in names if n in table and table[n].notna().all()]
        if DEFAULT not in table or not here:
            continue
        means = np.log(table[here]).mean()
        best = str(means.idxmin())
        change = float(np.log(table[DEFAULT]).mean() - means.min())
        lines.append(
            {
                "group": group,
                "set": set_name,
                "task": task,
                "best": best,
                "change": change,
                "error": difference_error(report, set_name, task, table.index, best),
            }
        )
    return pd.DataFrame(lines, columns=["group", "set", "task", "best", "change", "error"])


def difference_error(
    report: Report, set_name: str, task: str, splits: Sequence[Any], peer: str
) -> float:
    """Return the standard error of the relative difference of default and peer within a task."""
    gaps, level = [], []
    for split in splits:
        key = (set_name, task, str(split))
        base = report.values.get((report.version, *key, DEFAULT))
        other = report.values.get((report.peers[peer], *key, peer))
        if base is None or other is None or base.shape != other.shape:
            return np.nan
        gaps.append(base - other)
        level.append(other)
    return standard_error(np.concatenate(gaps)) / float(np.concatenate(level).mean())


# --- tables -------------------------------------------------------------------------------------


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    marks = ["---"] * len(heads)
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, marks, *lines]) + "\n"


def signed(number: float, error: float = np.nan, digits: int = 1, unit: str = "") -> str:
    """Return a number with its sign and its error."""
    if np.isnan(number):
        return ""
    text = f"{number:+.{digits}f}"
    return text + unit if np.isnan(error) else f"{text} ± {error:.{digits}f}{unit}"


def settings_table(changes: pd.DataFrame, axes: dict[str, str]) -> str:
    """Return the table of settings, axis by axis."""
    found = summary(changes)
    order = {name: k for k, name in enumerate(axes)}
    found = found.sort_values("setting", key=lambda s: s.map(lambda n: order.get(n, 999)))
    heads = ["setting", "axis", "tasks", "CRPS", "worst task", "log score", "cover", "seconds"]
    lines = [
        [
            str(r["setting"]),
            axes.get(str(r["setting"]), ""),
            str(r["tasks"]),
            "0" if r["setting"] == DEFAULT else signed(r["change"], r["error"], 2, " %"),
            ""
            if r["setting"] == DEFAULT
            else f"{signed(r['worst'], unit=' %')} ({r['worst_task']})",
            "" if r["setting"] == DEFAULT else signed(r["gain"], r["gain_error"], 3),
            f"{r['coverage']:.1f} %",
            f"{r['mean_seconds']:.2f} ({r['median_seconds']:.2f})",
        ]
        for r in found.to_dict("records")
    ]
    return markdown(heads, lines)


def large_table(rows: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return the CRPS of the default, and of settings and peers against it, task by task."""
    changes = paired(rows)
    heads = ["set and variable", "default", "cover", "seconds"]
    names = [c for c in columns if c != DEFAULT and c in set(changes["setting"])]
    good = rows[(rows["setting"] == DEFAULT) & rows["crps"].notna()]
    lines = []
    for (set_name, task), part in good.groupby(TASK, sort=False):
        here = changes[(changes["set"] == set_name) & (changes["task"] == task)]
        change = here.set_index("setting")["change"]
        cells = [f"{signed(per_cent(change[n]), digits=1)} %" if n in change else "" for n in names]
        score, cover = f"{part['crps'].mean():.4g}", f"{100.0 * part['coverage'].mean():.1f} %"
        seconds = f"{part['cpu_seconds'].mean():.0f}"
        lines.append([f"{set_name}: {task}", score, cover, seconds, *cells])
    return markdown([*heads, *names], lines)


def peers_table(table: pd.DataFrame) -> str:
    """Return, set by set, the default against the best peer of each task."""
    lines = []
    for set_name, part in table.groupby("set", sort=False):
        change = part["change"].to_numpy()
        worst = part.loc[part["change"].idxmax()]
        error = 100.0 * standard_error(change)
        counts = part["best"].value_counts()
        lines.append(
            [
                str(set_name),
                str(len(part)),
                signed(per_cent(change.mean()), error, 1, " %"),
                f"{signed(per_cent(worst['change']), 100.0 * worst['error'], 1, ' %')} "
                f"({worst['task']}; {worst['best']})",
                ", ".join(f"{name} {count}" for name, count in counts.items()),
            ]
        )
    heads = ["set", "tasks", "default against the best peer", "worst task", "best peers"]
    return markdown(heads, lines)


def check(table: pd.DataFrame) -> str:
    """Return whether a task is worse than the best peer by more than is allowed."""
    over = table[table["change"] > np.log1p(ALLOWED / 100.0)]
    sure = over[over["change"] - 2.0 * over["error"] > 0.0]
    names = [
        f"{r['set']}: {r['task']} ({per_cent(r['change']):+.0f} %, {r['best']})"
        for r in sure.to_dict("records")
    ]
    text = (
        f"Of {len(table)} tasks, the default is more than {ALLOWED:.0f} % worse than the best peer "
        f"in {len(over)}, and in {len(sure)} of these by more than two standard errors"
    )
    return text + (": " + "; ".join(names) if names else "") + "."


def failures(rows: pd.DataFrame) -> str:
    """Return what failed, by setting and message."""
    bad = rows[rows["message"].fillna("") != ""]
    if bad.empty:
        return ""
    bad = bad.assign(message=bad["message"].str.replace(r", the task has [\d,]+", "", regex=True))
    counts = bad.groupby(["setting", "message"], sort=False).size()
    lines = [
        [str(name), str(count), str(message).replace("|", "/")[:160]]
        for (name, message), count in counts.items()
    ]
    return markdown(["setting", "tasks", "message"], lines)


def sections(report: Report) -> list[tuple[str, str]]:
    """Return titles and texts of all that the rows can tell."""
    rows = current(report)
    parts: list[tuple[str, str]] = []
    settings = rows[~rows["setting"].isin(report.peers)]
    for group, title in GROUPS.items():
        here = paired(settings[settings["group"] == group])
        if len(here):
            parts.append((title[0].upper() + title[1:], settings_table(here, report.axes)))
    wide = {
        PUBLISHED: ("The Jura as published", [*BESIDE_PEERS, *report.peers]),
        LARGE: ("Panels and a grid", [*report.axes, *report.peers]),
    }
    for group, (title, columns) in wide.items():
        here = rows[rows["group"] == group]
        if here["crps"].notna().any():
            parts.append((title, large_table(here, columns)))
    rows = rows[rows["group"] != PUBLISHED]
    table = against_peers(report, rows)
    if len(table):
        peers = pd.unique(rows["setting"][rows["setting"].isin(report.peers)])
        everyone = paired(rows[rows["setting"].isin([DEFAULT, *peers]) & (rows["group"] != LARGE)])
        text = peers_table(table) + "\n" + check(table) + "\n"
        if len(everyone):
            text = settings_table(everyone, dict.fromkeys([DEFAULT, *peers], "")) + "\n" + text
        parts.append(("Other libraries", text))
    wrong = failures(current(report))
    if wrong:
        parts.append(("What was not run, and why", wrong))
    if report.absent:
        lines = [[name, reason] for name, reason in report.absent.items()]
        parts.append(("What is absent", markdown(["set", "reason"], lines)))
    return parts


def text(report: Report) -> str:
    """Return all tables, for the terminal."""
    return "\n".join(f"== {title}\n\n{body}" for title, body in sections(report))


# --- page ---------------------------------------------------------------------------------------


def write_page(report: Report, page: Path) -> None:
    """Write the tables between the marks of a page, and its picture beside it."""
    picture = page.with_suffix(".png")
    drawn = draw(report, picture)
    body = [f"Measured with {report.version}; {', '.join(sorted(set(report.peers.values())))}.\n"]
    if drawn:
        body.append(
            f"![CRPS of settings and other libraries against the default]({picture.name})\n"
        )
    body += [f"## {title}\n\n{part}" for title, part in sections(report)]
    block = f"{BEGIN}\n\n" + "\n".join(body) + f"\n{END}\n"
    old = page.read_text(encoding="utf-8") if page.exists() else f"{HEAD}{BEGIN}\n{END}\n{FOOT}"
    if BEGIN not in old or END not in old:
        raise SystemExit(
            f"{page.name} must have the lines {BEGIN} and {END}, between which tables are written; "
            "add them, or remove the page to have it made anew."
        )
    before, rest = old.split(BEGIN, 1)
    after = rest.split(END, 1)[1].lstrip("\n")
    page.write_text(f"{before}{block}\n{after}", encoding="utf-8")


def draw(report: Report, path: Path) -> bool:
    """Draw mean changes with two standard errors; return whether there was anything to draw."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = current(report)
    changes = {group: paired(rows[rows["group"] == group]) for group in GROUPS}
    tables = {g: summary(t).set_index("setting") for g, t in changes.items() if len(t)}
    known = {name for table in tables.values() for name in table.index} - {DEFAULT}
    panels = [[n for n in names if n in known] for names in (report.axes, report.peers)]
    panels = [names for names in panels if names]
    if not panels:
        return False
    sizes = [len(names) for names in panels]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(8.0, 0.9 + 0.5 * len(panels) + 0.36 * sum(sizes)),
        height_ratios=sizes,
        squeeze=False,
        layout="constrained",
    )
    for ax, names in zip(axes[:, 0], panels, strict=True):
        draw_panel(ax, tables, names)
    axes[-1, 0].set_xlabel(
        "CRPS against the default in %, with two standard errors; to the right is worse"
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(tables), frameon=False, fontsize=9
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def draw_panel(ax: Any, tables: dict[str, pd.DataFrame], names: list[str]) -> None:
    """Draw a line for each setting, and in it a point for each group; arrows are far off."""
    step = 0.72 / len(tables)
    limit = axis_limit(list(tables.values()), names)
    for k, (group, table) in enumerate(tables.items()):
        part, colour = table.reindex(names), COLOURS[group]
        at = np.arange(len(names)) + (k - 0.5 * (len(tables) - 1)) * step
        change, error = part["change"].to_numpy(), 2.0 * part["error"].fillna(0.0).to_numpy()
        far = np.abs(change) > limit
        near = ~far & np.isfinite(change)
        points = (change[near], at[near])
        ax.errorbar(
            *points, xerr=error[near], fmt="o", ms=4.5, lw=1.3, color=colour, label=GROUPS[group]
        )
        for value, y in zip(change[far], at[far], strict=True):
            side = np.sign(value)
            ax.plot(side * limit, y, ">" if side > 0 else "<", color=colour, ms=5)
            ax.annotate(
                f"{value:+.0f} %",
                (side * limit, y),
                (-7 * side, 0),
                textcoords="offset points",
                va="center",
                ha="right" if side > 0 else "left",
                fontsize=7.5,
                color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=5,
            )
    ax.axvline(0.0, color="black", lw=0.8)
    for y in np.arange(len(names) - 1) + 0.5:
        ax.axhline(y, color="#e4e4e4", lw=0.6, zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(-1.06 * limit, 1.06 * limit)


def axis_limit(tables: Sequence[pd.DataFrame], names: Sequence[str]) -> float:
    """Return where the axis ends: most points are inside, those far off are arrows."""
    changes = pd.concat([t["change"].reindex(names) for t in tables]).dropna().abs()
    return float(np.clip(1.25 * np.quantile(changes, 0.9), 2.0, 40.0))
