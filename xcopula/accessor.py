"""The ``.mtcopula`` accessor: one-line delegations to the functions, no state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from xcopula.model.lazy import LazyModel
    from xcopula.model.record import CopulaModel

__all__ = ["MultiTaskCopulaAccessor"]


@xr.register_dataset_accessor("mtcopula")
class MultiTaskCopulaAccessor:
    """Fit and apply multi-task Gaussian copula processes on this dataset."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def fit(
        self,
        primary: str,
        secondary: str | Sequence[str] = (),
        *,
        coords: Any = None,
        method: str = "transductive",
        marginals: Any = "auto",
        kernels: str | Mapping[str, str] = "auto",
        coupling: str = "convolution",
        structures: int = 1,
        noise: str = "correlated",
        weights: str = "auto",
        anchors: str | xr.Dataset | None = "auto",
        inducing: int | xr.Dataset | Mapping[str, int | xr.Dataset] = 200,
        blocks: int = 4,
        polish: bool = True,
        optimizer: str = "l-bfgs",
        ard: bool | Sequence[str] = False,
        thin: int | Mapping[str, int] | None = None,
        max_hours: float | None = 4.0,
        restarts: int = 2,
        seed: int = 0,
        compute: bool = True,
        callback: Any = None,
    ) -> CopulaModel | LazyModel:
        """Fit a model to variables of this dataset; see :func:`xcopula.fit`."""
        from xcopula.fitting.fit import fit

        return fit(
            self._dataset,
            primary,
            secondary,
            coords=coords,
            method=method,
            marginals=marginals,
            kernels=kernels,
            coupling=coupling,
            structures=structures,
            noise=noise,
            weights=weights,
            anchors=anchors,
            inducing=inducing,
            blocks=blocks,
            polish=polish,
            optimizer=optimizer,
            ard=ard,
            thin=thin,
            max_hours=max_hours,
            restarts=restarts,
            seed=seed,
            compute=compute,
            callback=callback,
        )

    def predict(
        self,
        model: CopulaModel | LazyModel,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
        *,
        chunks: Any = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Predict on the coordinates of this dataset; see :func:`xcopula.predict`."""
        from xcopula.prediction.target import predict

        return predict(model, self._dataset, quantiles, chunks=chunks, of=of, mask=mask)
