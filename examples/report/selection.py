"""Compare all kernels and marginals for each Jura metal alone, as the report's first step does.

The primaries Cd and Cu are known at the 259 prediction sites, the others at all 359.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

import xcopula

QUICK = {"kernels": ("matern12", "matern32"), "marginals": ("lognormal", "gev")}
FULL = {"marginals": ("normal", "lognormal", "exponential", "gev", "gamma", "t", "parzen")}


def compare_metals(quick: bool) -> xr.Dataset:
    """Return the comparison of every metal of the two models."""
    samples = xcopula.datasets.jura(hide=["Cd", "Cu"])
    metals = ["Cd"] if quick else ["Cd", "Cu", "Ni", "Pb", "Zn"]
    return xcopula.compare(samples, metals, anisotropy=False, **(QUICK if quick else FULL))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one metal, few alternatives")
    parser.add_argument("--output", type=Path, default=Path("docs/report"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    table = compare_metals(options.quick)
    text = xcopula.format_comparison(table, most=6)
    print(text)
    made = "Made by `python examples/report/selection.py`."
    (options.output / "selection.md").write_text(f"```text\n{text}\n```\n\n{made}\n")
    frame = table.to_dataframe().dropna().reset_index()
    frame.to_csv(options.output / "selection.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
