"""Cross-validation: how well values are predicted that the model has not seen."""

from __future__ import annotations

from xcopula.validation.crossing import cross_validate
from xcopula.validation.table import format_validation

__all__ = ["cross_validate", "format_validation"]
