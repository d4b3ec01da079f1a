"""Files of the command line: data, models and outputs, and grids in words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from xcopula.cli import tables

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "InputPath",
    "check_output",
    "checksum",
    "is_model",
    "make_grid",
    "output_option",
    "overwrite_option",
    "read_data",
    "split",
    "write_dataset",
]

InputPath = click.Path(path_type=Path)

# Files up to this size are read whole, larger ones chunk by chunk on demand.
_SMALL_BYTES = 2**28
_PIECE = 2**20


def read_data(
    path: Path,
    coords: Collection[str] = (),
    numbers: Collection[str] | None = (),
    known: Collection[str] = (),
    flags: Collection[str] = (),
) -> xr.Dataset:
    """Read a Dataset; the other arguments are those of :func:`xcopula.cli.tables.read_table`.

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file has another format, or holds a model.
    """
    _check_there(path)
    if path.suffix in tables.ENDINGS:
        return tables.read_table(path, coords, numbers, known, flags)
    from xcopula.storage import NETCDF_LOCK

    with NETCDF_LOCK, _opened(path) as dataset:
        if _holds_model(dataset):
            raise ValueError(f"{path} is a model. Give a file of data here.")
        if dataset.nbytes <= _SMALL_BYTES:
            return dataset.load()
    with NETCDF_LOCK:
        large = _opened(path, chunks={})
    return large.assign_coords({n: c.load() for n, c in large.coords.items() if c.ndim < 2})


def is_model(path: Path) -> bool:
    """Tell whether a file holds a model rather than data."""
    _check_there(path)
    if path.suffix in tables.ENDINGS:
        return False
    from xcopula.storage import NETCDF_LOCK

    with NETCDF_LOCK, _opened(path) as dataset:
        return _holds_model(dataset)


def _holds_model(dataset: xr.Dataset) -> bool:
    from xcopula.model.tree import FORMAT

    return bool(dataset.attrs.get("format") == FORMAT)


def _check_there(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} must be a file or a Zarr store, found a device or a pipe.")


def _opened(path: Path, **options: Any) -> xr.Dataset:
    import xarray as xr

    from xcopula.storage import is_zarr, require_zarr

    if is_zarr(path):
        require_zarr()
    try:
        return xr.open_dataset(path, engine="zarr" if is_zarr(path) else "netcdf4", **options)
    except (OSError, ValueError, KeyError) as error:
        kinds = "NetCDF, Zarr (.zarr) or a table of text (.csv)"
        raise ValueError(f"{path} cannot be read: it must be {kinds} ({error}).") from None


def split(text: str, option: str) -> tuple[str, str]:
    """Return the two sides of ``NAME=VALUE``; anything else is wrong usage."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise click.BadParameter(f"must be NAME=VALUE, found {text!r}.", param_hint=f"'{option}'")
    return name.strip(), value.strip()


def make_grid(axes: Sequence[str]) -> xr.Dataset:
    """Make a grid of axes such as ``lon=5:12:0.1``, ``lat=47`` or ``time=2024-05-31``.

    A range has both ends, if the step leads there; a single value is a scalar coordinate.
    """
    import xarray as xr

    coords: dict[str, Any] = {}
    for text in axes:
        name, value = split(text, "--axis")
        if name in coords:
            raise click.UsageError(f"--axis gives {name!r} twice.")
        coords[name] = _axis(name, value)
    return xr.Dataset(coords=coords)


def _axis(name: str, text: str) -> Any:
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 3:
        start, stop, step = numbers
        if step and 0 <= (stop - start) / step < np.inf:
            # Steps are counted, not added up: the last cell does not depend on rounding.
            count = int(np.floor((stop - start) / step * (1.0 + 1e-12))) + 1
            return (name, start + step * np.arange(count))
    elif not numbers:
        try:
            return np.datetime64(text, "ns")
        except ValueError:
            pass
    raise click.BadParameter(
        f"{name} must be START:STOP:STEP, a number or a date, found {text!r}.",
        param_hint="'--axis'",
    )


def checksum(path: Path) -> str:
    """Return a checksum of a file, or of all files of a folder and their names."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        digest.update(f"{file.relative_to(path)}\n".encode())
        with open(file, "rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()


class _Output(click.Path):
    """A path with one of some endings."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        super().__init__(path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.endings:
            self.fail(f"{path} must end in {' or '.join(self.endings)}.", param, ctx)
        return path


def output_option(
    what: str, endings: tuple[str, ...] = (".nc", ".zarr"), *, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option -o for a file of some kind."""
    return click.option(
        "-o",
        "--output",
        type=_Output(endings),
        required=required,
        help=f"{what} Ends in {' or '.join(endings)}.",
    )


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an output that is already there."
)


def check_output(path: Path, inputs: Sequence[Path | None] = (), *, overwrite: bool) -> None:
    """Refuse an output that cannot be written, or is an input, also by the name of a link."""
    from xcopula.storage import check_free, is_zarr, require_zarr

    for source in inputs:
        if source is None or not source.exists():  # reading it raises
            continue
        if path.resolve() in (source.resolve(), *source.resolve().parents) or (
            path.exists() and path.samefile(source)
        ):
            raise ValueError(f"The output {path} is the input {source}. Choose another name.")
    check_free(path, overwrite=overwrite)
    if is_zarr(path):
        require_zarr()


def write_dataset(dataset: xr.Dataset, path: Path, *, overwrite: bool, **options: Any) -> None:
    """Write a Dataset in the format of the ending; options are those of Zarr."""
    from xcopula.storage import is_zarr, write_netcdf, write_zarr

    if is_zarr(path):
        write_zarr(dataset, path, overwrite=overwrite, **options)
    else:
        write_netcdf(dataset, path, overwrite=overwrite)
