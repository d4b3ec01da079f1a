"""Make the model file of a schema that a test reads for ever after, and numbers to compare with.

Run it once for a new schema, from the top of the repository, and commit what it writes::

    python tests/data/make_schema.py

It writes ``schema-2.nc`` and ``schema-2.json`` beside itself, and never replaces them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

import xcopula
from xcopula.model.tree import SCHEMA

HERE = Path(__file__).parent


def target() -> xr.Dataset:
    """Some points of the Jura."""
    x, y = np.linspace(1.0, 4.5, 6), np.linspace(0.8, 5.2, 6)[::-1]
    return xr.Dataset(coords={"x": ("site", x), "y": ("site", y)})


def describe(model: xcopula.CopulaModel) -> dict[str, list[float]]:
    """Return predictions of both variables, leave-one-out scores, and parameters."""
    found = {name: model.predict(target(), variable=name)[name].values for name in model.tasks}
    found["loo"] = model.loo()["crps"].values[:10]
    found["length_scale"] = model.parameters["length_scale"].values
    return {name: np.ravel(values).tolist() for name, values in found.items()}


def main() -> None:
    """Fit cadmium with nickel at every third site, and write both files.

    Since schema 2 some values are below a limit, some sites have two, and small values of nickel
    are zeros, whose probability follows a coordinate.
    """
    data = xcopula.datasets.jura(hide="Cd").isel(site=slice(None, None, 3))
    data["Ni"] = data["Ni"].where(data["Ni"] > 9.0, 0.0)
    twice = data.isel(site=slice(0, 6))
    data = xr.concat([data, twice.assign(Cd=1.1 * twice["Cd"], Ni=0.9 * twice["Ni"])], "site")
    laws = {"Cd": "lognormal", "Ni": xcopula.regress(xcopula.zero_inflated("gamma"), on="y")}
    given = {"censored": {"Cd": 0.5}, "replicates": True, "restarts": 0}
    model = xcopula.fit(data, "Cd", "Ni", marginals=laws, kernels="matern32", **given)
    model.save(HERE / f"schema-{SCHEMA}.nc")
    (HERE / f"schema-{SCHEMA}.json").write_text(json.dumps(describe(model), indent=1) + "\n")


if __name__ == "__main__":
    main()
