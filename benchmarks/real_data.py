"""Real data sets, cut into tasks: a variable with hidden values, and what is known beside them.

The Jura and Colorado are shipped with the package. Other sets are tables in a folder (``real`` in
the folder that ``--data`` names), which are not shipped. LimeSoDa is a package of its own. What is
absent is `Absent`, with a reason and what to do.

The variables were chosen before anything was fitted: of each set some that are skewed, some that
are close to normal, and some that are bounded or rounded. A third of the sites is hidden, and two
splits are drawn with fixed seeds. Secondaries stay known wherever they were measured, as in the
published protocol of the Jura.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import worlds
import xarray as xr

import xcopula

FloatArray = np.ndarray
SEED = 20
SPLITS = (1, 2)
# Hidden values that are scored, where there are more: drawn at random.
MOST_TARGETS = 4000
KM, METRES = {"units": "km"}, {"units": "m"}
PLANE = {"space": ["x", "y"]}
SMALL, ZEROS, SOILS, WORLDS, LARGE = "small", "zeros", "limesoda", "worlds", "large"
PUBLISHED = "published"


class Absent(Exception):
    """A data set that is not here: why, and what to do."""


@dataclass(frozen=True)
class Task:
    """A variable of a set, its secondaries, and one of the ways to hide values of it.

    ``part`` says which month, year or world it is, or what is hidden; ``thin`` keeps every n-th
    site only; ``character`` is the reason for which the variable was chosen. Split 0 is the
    published one.
    """

    group: str
    set: str
    primary: str
    secondaries: tuple[str, ...] = ()
    split: int = 1
    part: str = ""
    thin: int = 1
    character: str = ""

    @property
    def name(self) -> str:
        """What the task is called in tables, the same for all splits."""
        name = " with ".join(filter(None, (self.primary, ", ".join(self.secondaries))))
        return f"{name} ({self.part})" if self.part else name

    @property
    def zeros(self) -> bool:
        """Whether it is of the group with many zeros."""
        return self.group == ZEROS


@dataclass(frozen=True)
class Cut:
    """A task with its values: what a fit reads, where values are hidden, and what they are.

    ``known`` and ``hidden`` are rows of coordinates, primary and secondaries, for peers.
    """

    task: Task
    train: xr.Dataset
    targets: xr.Dataset
    truth: xr.DataArray
    known: pd.DataFrame
    hidden: pd.DataFrame
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def panel(self) -> bool:
        """Whether there is time."""
        return "time" in self.known

    @property
    def positive(self) -> bool:
        """Whether all known values of the primary are above zero."""
        return bool((self.known[self.task.primary] > 0.0).all())


# --- tables -------------------------------------------------------------------------------------

# Columns of the coordinates, and their unit; without a unit the plane is named by `coords=`.
TABLES: dict[str, tuple[str, str, dict[str, str]]] = {
    "camg": ("x", "y", METRES),
    "soil250": ("Linha", "Coluna", {}),
    "soja98": ("X", "Y", METRES),
    "wrc": ("CoordX", "CoordY", METRES),
    "parana": ("x", "y", KM),
    "wolfcamp": ("x", "y", KM),
    "kattegat": ("x", "y", KM),
    "tce": ("x", "y", {}),
    "oxford": ("XCOORD", "YCOORD", METRES),
    "coalash": ("x", "y", {}),
    "bef": ("XCOORD", "YCOORD", METRES),
}


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Read a table of the folder, or say that it is absent."""
    path = folder / "real" / f"{name}.csv.gz"
    if not path.exists():
        raise Absent(
            f"{name}.csv.gz is not in the folder 'real' of the data. "
            "Name the folder that holds it by --data."
        )
    return pd.read_csv(path)


def on_plane(
    frame: pd.DataFrame, x: str, y: str, attrs: dict[str, str], **coords: Any
) -> xr.Dataset:
    """Return numeric columns on dim ``site``, with coordinates ``x`` and ``y``."""
    numbers = frame.select_dtypes("number").astype(float)
    places = {"x": ("site", numbers[x], attrs), "y": ("site", numbers[y], attrs)}
    values = {n: ("site", numbers[n]) for n in numbers.columns if n not in (x, y, "x", "y")}
    return xr.Dataset(values, {**places, **coords})


def sites(folder: Path, task: Task) -> xr.Dataset:
    """Return a table of sites."""
    x, y, attrs = TABLES[task.set]
    frame = read_table(folder, task.set)
    if attrs:
        return on_plane(frame, x, y, attrs)
    values = {n: ("site", frame[n].astype(float)) for n in frame.columns if n not in (x, y)}
    return xr.Dataset(values, {c: ("site", frame[c].astype(float)) for c in (x, y)})


def jura(folder: Path, task: Task) -> xr.Dataset:
    """Return the metals at all sites."""
    return xcopula.datasets.jura().drop_vars(["landuse", "rock"])


def colorado(folder: Path, task: Task) -> xr.Dataset:
    """Return a month of Colorado's stations."""
    return xcopula.datasets.colorado().sel(time=task.part).squeeze("time", drop=True)


def limesoda(folder: Path, task: Task) -> xr.Dataset:
    """Return the targets of a set of LimeSoDa, without its other columns."""
    try:
        package = importlib.import_module("LimeSoDa")
    except ImportError as error:
        raise Absent("LimeSoDa is not installed: pip install LimeSoDa") from error
    try:
        loaded = package.load_dataset(task.set)
    except Exception as error:
        raise Absent(
            f"LimeSoDa does not load {task.set} ({error}); install another version"
        ) from error
    frame = loaded["Dataset"].filter(like="_target").rename(columns=lambda n: n[: -len("_target")])
    frame = frame.rename(columns={"SOM": "SOC"})
    places = loaded["Coordinates"]
    degrees = str(places.columns[0]).endswith("4326")
    names = ("lon", "lat") if degrees else ("x", "y")
    units = ("degrees_east", "degrees_north") if degrees else ("m", "m")
    coords = {
        n: ("site", places.iloc[:, k].astype(float), {"units": units[k]})
        for k, n in enumerate(names)
    }
    return xr.Dataset({n: ("site", frame[n].astype(float)) for n in frame}, coords)


# --- panels and grids ---------------------------------------------------------------------------


def degrees(text: str) -> float:
    """Return degrees of a text such as 51d56'N."""
    whole, _, rest = text.partition("d")
    minutes, _, side = rest.partition("'")
    return (float(whole) + float(minutes) / 60.0) * (-1.0 if side in "SW" else 1.0)


def irish_wind(folder: Path, task: Task) -> xr.Dataset:
    """Return a year of daily wind speeds at twelve stations."""
    frame, places = read_table(folder, "irish_wind"), read_table(folder, "irish_wind_stations")
    frame = frame[frame["year"] == 77]
    times = pd.to_datetime(frame[["year", "month", "day"]].assign(year=1900 + frame["year"]))
    coords = {
        "lon": ("station", [degrees(t) for t in places["Longitude"]], {"units": "degrees_east"}),
        "lat": ("station", [degrees(t) for t in places["Latitude"]], {"units": "degrees_north"}),
        "time": times.values,
    }
    values = frame[places["Code"].tolist()].to_numpy(float).T
    return xr.Dataset({"wind": (("station", "time"), values, {"units": "knot"})}, coords)


def wide(
    frame: pd.DataFrame, name: str, columns: list[str], times: Any, coords: dict, attrs: dict
) -> xr.Dataset:
    """Return columns of a table as a panel of stations and times."""
    values = frame[columns].to_numpy(float)
    return xr.Dataset({name: (("station", "time"), values, attrs)}, {**coords, "time": times})


def netemp(folder: Path, task: Task) -> xr.Dataset:
    """Return monthly temperatures, with the elevation of their stations."""
    frame = read_table(folder, "netemp")
    columns = [c for c in frame if c.startswith("y.")]
    coords = {
        "x": ("station", frame["UTMX"] / 1000.0, KM),
        "y": ("station", frame["UTMY"] / 1000.0, KM),
        "elevation": ("station", frame["elev"].astype(float), METRES),
    }
    times = pd.date_range("2000-01-01", periods=len(columns), freq="MS").values
    return wide(frame, "temperature", columns, times, coords, {"units": "degree_Celsius"})


def swiss_maxima(folder: Path, task: Task) -> xr.Dataset:
    """Return summer maxima of daily rain; their coordinates are of a plane, in km."""
    frame = read_table(folder, "swiss_maxima")
    columns = [c for c in frame if c.startswith("y")]
    coords = {"x": ("station", frame["lon"], KM), "y": ("station", frame["lat"], KM)}
    times = pd.to_datetime([f"{c[1:]}-07-01" for c in columns]).values
    return wide(frame, "rain", columns, times, coords, {"units": "mm"})


def pcb(folder: Path, task: Task) -> xr.Dataset:
    """Return PCB138 in sediments, of all years or of one."""
    frame = read_table(folder, "pcb")
    if task.part.isdigit():
        return on_plane(frame[frame["year"] == int(task.part)], "x", "y", METRES)
    times = pd.to_datetime(frame["year"].astype(str) + "-07-01").values
    return on_plane(frame, "x", "y", METRES, time=("site", times))


def colorado_panel(folder: Path, task: Task) -> xr.Dataset:
    """Return two years of Colorado's stations."""
    return xcopula.datasets.colorado().sel(time=slice("1985-01", "1986-12"))


def colorado_grid(folder: Path, task: Task) -> xr.Dataset:
    """Return every other row and column of the elevation of Colorado."""
    return xcopula.datasets.colorado_grid().thin(lat=2, lon=2)


# --- worlds -------------------------------------------------------------------------------------

# Sites, variables and what else `worlds.scattered` takes.
TRUTHS: dict[str, tuple[int, int, dict[str, float]]] = {
    "rough": (150, 1, {"nu": 0.5, "length": 0.3}),
    "smooth": (150, 1, {"nu": 2.5, "length": 0.15}),
    "noisy": (300, 1, {"nu": 0.5, "length": 0.3, "nugget": 0.5}),
    "skewed": (150, 1, {"nu": 1.5, "length": 0.2, "scale": 1.2}),
    "one secondary": (150, 2, {"nu": 0.5, "length": 0.3, "correlation": 0.8}),
    "weak secondaries": (150, 3, {"nu": 0.5, "length": 0.3, "correlation": 0.3}),
}


def world(folder: Path, task: Task) -> xr.Dataset:
    """Return the values of a simulated world; each split is another world."""
    count, variables, options = TRUTHS[task.part]
    return worlds.scattered(100 + task.split, count, variables, **options).data


SOURCES: dict[str, Callable[[Path, Task], xr.Dataset]] = {
    **dict.fromkeys(TABLES, sites),
    "jura": jura,
    "colorado": colorado,
    "pcb": pcb,
    "worlds": world,
    "irish_wind": irish_wind,
    "netemp": netemp,
    "swiss_maxima": swiss_maxima,
    "colorado panel": colorado_panel,
    "colorado grid": colorado_grid,
}
HEIGHT = {"elevation": "elevation"}
DEGREES = {"space": ["lon", "lat"]}
# What `coords=` says: planes without units, and elevation, which is no input by default. Other
# libraries have the same inputs.
COORDS: dict[str, dict[str, Any]] = {
    "colorado": DEGREES | HEIGHT,
    "colorado panel": DEGREES | HEIGHT | {"time": "time"},
    "netemp": PLANE | HEIGHT | {"time": "time"},
    "soil250": {"space": ["Linha", "Coluna"]},
    "tce": PLANE,
    "coalash": PLANE,
}


# --- tasks --------------------------------------------------------------------------------------

# Of each set: the variable, why it was chosen, whether it is alone too, and its secondaries.
Choice = tuple[str, str, str, bool, tuple[tuple[str, ...], ...]]
CHOICES: tuple[Choice, ...] = (
    ("jura", "Cd", "skewed", True, (("Ni",), ("Ni", "Zn"))),
    ("jura", "Co", "two modes", True, (("Ni",), ("Cr", "Ni"))),
    ("jura", "Cr", "near normal", True, (("Ni",),)),
    ("jura", "Cu", "very skewed", True, (("Pb", "Ni", "Zn"),)),
    ("jura", "Ni", "near normal", True, (("Co",),)),
    ("jura", "Pb", "very skewed", True, (("Cu", "Ni", "Zn"),)),
    ("jura", "Zn", "skewed", True, (("Cd", "Ni"), ("Cu", "Pb"))),
    ("camg", "ca020", "near normal", True, (("mg020",),)),
    ("camg", "mg020", "near normal", True, (("ca020",),)),
    ("camg", "ca2040", "near normal", True, (("ca020",),)),
    ("camg", "mg2040", "near normal", False, (("mg020", "ca2040"),)),
    ("camg", "ctc2040", "near normal", True, (("ctc020", "ca2040"),)),
    ("soil250", "CTC", "near normal", True, (("C", "Argila"),)),
    ("soil250", "K", "near normal", True, (("CTC", "Mg"),)),
    ("soil250", "V", "per cent", True, (("pHAgua", "H"),)),
    ("soil250", "Argila", "rounded", True, (("Silte",),)),
    ("soja98", "P", "very skewed", True, (("K",),)),
    ("soja98", "K", "skewed", True, (("SB", "MO"),)),
    ("soja98", "SB", "per cent", True, (("PH",),)),
    ("soja98", "PH", "rounded", False, (("SB",),)),
    ("soja98", "PROD", "near normal", True, (("SB",), ("P", "K", "SB"))),
    ("wrc", "Densidade", "near normal", True, (("Pr5",),)),
    ("wrc", "Pr5", "skewed", True, (("Densidade", "Pr60"),)),
    ("wrc", "Pr306", "skewed to the left", True, (("Pr100",),)),
    ("wrc", "Pr15300", "near normal", True, (("Pr306", "Densidade"),)),
    ("parana", "rain", "near normal, trend", True, ()),
    ("wolfcamp", "head", "strong trend", True, ()),
    ("kattegat", "salinity", "few sites", True, ()),
    ("tce", "tce", "four decades", True, ()),
    ("coalash", "coalash", "outliers", True, ()),
    ("oxford", "OM1", "skewed", True, (("CEC1",),)),
    ("oxford", "MG1", "skewed", True, (("CEC1",),)),
    ("oxford", "POT1", "very skewed", True, (("PHOS1",),)),
    ("oxford", "CEC1", "skewed", True, (("OM1", "PCLAY1"),)),
    ("bef", "SUM_02_TC1", "near normal", False, (("ELEV",),)),
    ("bef", "SUM_02_TC3", "skewed to the left", True, (("FALL_02_TC3", "SPR_02_TC3"),)),
    ("bef", "FALL_02_TC2", "skewed", True, (("SUM_02_TC1", "SPR_02_TC2"),)),
)
# The same of sets with parts: months of Colorado, a year of PCB.
PARTS: tuple[tuple[str, Choice], ...] = (
    ("1985-05", ("colorado", "ppt", "skewed", True, (("tmin", "tmax"),))),
    ("1986-08", ("colorado", "ppt", "skewed", True, (("tmax",),))),
    ("1985-07", ("colorado", "tmax", "follows elevation", True, (("tmin",),))),
    ("1985-01", ("colorado", "tmin", "follows elevation", True, (("tmax",),))),
    ("1996", ("pcb", "PCB138", "skewed, few sites", True, (("depth", "coast"),))),
)
# Basal area of tree species and dry months, by the share of zeros; the forests follow elevation.
FORESTS = {
    "BE_02BAREA": (12, True),
    "YB_02BAREA": (16, True),
    "RM_02BAREA": (25, False),
    "SM_02BAREA": (34, False),
    "PB_02BAREA": (52, False),
    "WA_02BAREA": (69, False),
    "BF_02BAREA": (82, True),
}
DRY = {"1989-11": 35, "1980-06": 35, "1980-12": 22, "1986-01": 17, "1988-10": 15}
LIMESODA = (
    *("BB.250", "BB.72", "BB.51", "G.150", "H.138"),
    *("MGS.101", "SC.93", "SC.50", "SP.231", "UL.120"),
)
# What is hidden of a panel or a grid.
STATIONS, BLOCKS, DAYS, HOLES = "stations", "blocks of 30 days", "runs of 5 days", "holes"
PANELS = (
    ("irish_wind", "wind", STATIONS),
    ("irish_wind", "wind", BLOCKS),
    ("irish_wind", "wind", DAYS),
    ("pcb", "PCB138", STATIONS),
    ("swiss_maxima", "rain", STATIONS),
    ("colorado panel", "ppt", STATIONS),
    ("colorado panel", "tmax", STATIONS),
    ("colorado grid", "elevation", HOLES),
    ("netemp", "temperature", STATIONS),
)


def chosen(group: str, choice: Choice, part: str = "", **others: Any) -> Iterator[Task]:
    """Yield the tasks of one variable, with all splits; the published one is not drawn."""
    name, primary, character, alone, secondaries = choice
    splits = (0,) if group == PUBLISHED else SPLITS
    for beside in (*(((),) if alone else ()), *secondaries):
        for split in splits:
            yield Task(group, name, primary, beside, split, part, character=character, **others)


def small_tasks() -> list[Task]:
    """Return the tasks of some ten to some hundred sites, without many zeros."""
    pairs = [("", choice) for choice in CHOICES] + list(PARTS)
    return [task for part, choice in pairs for task in chosen(SMALL, choice, part)]


def published_tasks() -> list[Task]:
    """Return the tasks of the Jura with the split with which it was published."""
    return [task for c in CHOICES if c[0] == "jura" for task in chosen(PUBLISHED, c)]


def zeros_tasks() -> list[Task]:
    """Return the tasks of variables that are often exactly zero."""
    forests = [
        ("", ("bef", name, f"{share} % zeros", True, (("ELEV",),) if beside else ()))
        for name, (share, beside) in FORESTS.items()
    ]
    months = [(m, ("colorado", "ppt", f"{share} % zeros", True, ())) for m, share in DRY.items()]
    return [task for part, choice in forests + months for task in chosen(ZEROS, choice, part)]


def soil_tasks() -> list[Task]:
    """Return each target of the sets of LimeSoDa, alone and with the other two."""
    names = ("SOC", "pH", "Clay")
    choices = [
        (name, primary, "soil", True, (tuple(n for n in names if n != primary),))
        for name in LIMESODA
        for primary in names
    ]
    return [task for choice in choices for task in chosen(SOILS, choice)]


def world_tasks() -> list[Task]:
    """Return simulated worlds, whose truth the models contain."""
    return [
        Task(WORLDS, "worlds", "v0", tuple(f"v{k}" for k in range(1, count)), split, part)
        for part, (_, count, _) in TRUTHS.items()
        for split in SPLITS
    ]


def large_tasks() -> list[Task]:
    """Return panels and a grid; of each one split, since they are large."""
    return [Task(LARGE, name, primary, (), 1, part) for name, primary, part in PANELS]


def quick_tasks() -> list[Task]:
    """Return three tiny tasks of data that are shipped."""
    return [
        Task(SMALL, "jura", "Cu", thin=6, character="very skewed"),
        Task(SMALL, "jura", "Cd", ("Ni",), thin=6, character="skewed"),
        Task(ZEROS, "colorado", "ppt", part="1989-11", thin=5, character="35 % zeros"),
    ]


GROUPS: dict[str, Callable[[], list[Task]]] = {
    SMALL: small_tasks,
    PUBLISHED: published_tasks,
    ZEROS: zeros_tasks,
    SOILS: soil_tasks,
    WORLDS: world_tasks,
    LARGE: large_tasks,
}


# --- hiding -------------------------------------------------------------------------------------


def generator(task: Task) -> np.random.Generator:
    """Return the random numbers of a split: the same with and without secondaries."""
    return np.random.default_rng([SEED, task.split, zlib.crc32(task.set.encode())])


def random_third(rng: np.random.Generator, known: np.ndarray) -> np.ndarray:
    """Mark a third of what is known."""
    where = rng.permutation(np.flatnonzero(known))
    return np.isin(np.arange(known.size), where[: where.size // 3])


def some_stations(rng: np.random.Generator, values: xr.DataArray) -> np.ndarray:
    """Mark a quarter of the stations, at all times; or of the places of a list of sites."""
    if values.ndim == 1:
        places = np.column_stack([values["x"], values["y"]])
        _, number = np.unique(places, axis=0, return_inverse=True)
        names = rng.permutation(number.max() + 1)
        return np.isin(number.ravel(), names[: names.size // 4])
    names = rng.permutation(values.sizes["station"])
    hidden = np.isin(np.arange(names.size), names[: names.size // 4])
    return np.broadcast_to(hidden[:, None], values.shape)


def runs(rng: np.random.Generator, shape: tuple[int, int], length: int, share: float) -> np.ndarray:
    """Mark runs of times, of each row its own, until they hold a share of them."""
    hidden = np.zeros(shape, bool)
    for row in hidden:
        while row.mean() < share:
            start = rng.integers(0, row.size - length + 1)
            row[start : start + length] = True
    return hidden


def holes(rng: np.random.Generator, values: xr.DataArray) -> np.ndarray:
    """Mark discs of a grid of longitudes and latitudes, until they hold three tenths of it."""
    lat, lon = np.meshgrid(values["lat"], values["lon"], indexing="ij")
    hidden = np.zeros(lat.shape, bool)
    while hidden.mean() < 0.3:
        row, column = rng.integers(0, lat.shape[0]), rng.integers(0, lat.shape[1])
        apart = np.hypot(lat - lat[row, column], 0.78 * (lon - lon[row, column]))
        hidden |= apart < rng.uniform(0.1, 0.4)
    return hidden


def hide(task: Task, data: xr.Dataset) -> np.ndarray:
    """Mark the values of the primary that are hidden, on its dims."""
    rng, values = generator(task), data[task.primary]
    known = values.notnull().values
    if task.set == "jura" and task.split == 0:
        return (data["split"] == "validation").values
    if task.part == STATIONS:
        hidden = some_stations(rng, values)
    elif task.part == BLOCKS:
        hidden = runs(rng, values.shape, 30, 0.25)
    elif task.part == DAYS:
        hidden = np.broadcast_to(runs(rng, (1, values.shape[1]), 5, 0.25), values.shape)
    elif task.part == HOLES:
        hidden = holes(rng, values)
    else:
        hidden = random_third(rng, known)
    return hidden & known


def rows(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each cell, with all numeric coordinates and values, and dates."""
    frame = data.to_dataframe().reset_index()
    return frame[[c for c in frame if frame[c].dtype.kind in "fM"]]


@lru_cache(maxsize=4)
def load(folder: Path, task: Task) -> xr.Dataset:
    """Return the variables of a task with their coordinates, or raise `Absent`."""
    source = limesoda if task.set in LIMESODA else SOURCES[task.set]
    data = source(folder, task)[[task.primary, *task.secondaries]]
    if task.thin > 1:
        (dim,) = data[task.primary].dims
        data = data.thin({dim: task.thin})
    return data


def cut(folder: Path, task: Task) -> Cut:
    """Return a task with its values."""
    data = load(folder, task)
    (primary, dims) = (task.primary, data[task.primary].dims)
    hidden = xr.DataArray(hide(task, data), dims=dims)
    train = data.assign({primary: data[primary].where(~hidden)})
    whole, mask = rows(data), rows(train)[primary].isna() & rows(data)[primary].notna()
    at = whole[mask].reset_index(drop=True)
    if len(at) > MOST_TARGETS:
        kept = np.sort(generator(task).permutation(len(at))[:MOST_TARGETS])
        at = at.iloc[kept].reset_index(drop=True)
    names = [c for c in at if c in data.coords]
    targets = xr.Dataset(coords={c: ("cell", at[c].values, data[c].attrs) for c in names})
    truth = xr.DataArray(at[primary].values, targets.coords, "cell", primary, data[primary].attrs)
    drop = [c for c in data.coords if c not in names and c not in data.dims]
    return Cut(
        task,
        train.drop_vars(drop),
        targets,
        truth,
        whole[~mask & whole[primary].notna()].reset_index(drop=True),
        at,
        {"coords": COORDS[task.set]} if task.set in COORDS else {},
    )
