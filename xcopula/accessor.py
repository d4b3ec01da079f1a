"""The ``.mtcopula`` accessor: one-line delegations to the functions, no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from xcopula.model import CopulaModel, LazyModel

__all__ = ["MultiTaskCopulaAccessor"]


@xr.register_dataset_accessor("mtcopula")
class MultiTaskCopulaAccessor:
    """Fit and apply multi-task Gaussian copula processes on this dataset."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return (
            f"<xcopula accessor of a Dataset with {[str(n) for n in self._dataset.data_vars]}: "
            ".mtcopula.fit(primary, secondary) fits a model, .mtcopula.predict(model) predicts on "
            "the coordinates>"
        )

    def fit(
        self, primary: str, secondary: str | Sequence[str] = (), **options: Any
    ) -> CopulaModel | LazyModel:
        """Fit a model to variables of this dataset; :func:`xcopula.fit` explains the options."""
        from xcopula.fitting import fit

        return fit(self._dataset, primary, secondary, **options)

    def predict(
        self,
        model: CopulaModel | LazyModel,
        quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
        **options: Any,
    ) -> xr.Dataset:
        """Predict on this dataset's coordinates; :func:`xcopula.predict` explains the options."""
        from xcopula.prediction import predict

        return predict(model, self._dataset, quantiles, **options)
