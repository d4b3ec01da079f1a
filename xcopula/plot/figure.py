"""Figures that a notebook shows as pictures, without pyplot and its global state."""

from __future__ import annotations

import io

from matplotlib.figure import Figure as Plain

__all__ = ["Figure"]


class Figure(Plain):
    """A figure of matplotlib, with the method that a notebook calls for a picture."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()
