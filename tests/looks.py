"""A tolerant look at a figure: it is drawn, nothing is cut off, and no labels overlap."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text


def check_looks(figure) -> None:
    """Draw a figure, and fail where a label leaves it or lies on another, or nothing is drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    inked = (pixels < 250).any(axis=-1).mean()
    assert 0.005 < inked < 0.95, f"{100 * inked:.1f} % of the pixels are drawn on"
    renderer = canvas.get_renderer()
    labels = [
        (text.get_text(), text.get_window_extent(renderer))
        for ax in figure.axes
        for text in (*_titles(ax), ax.xaxis.label, ax.yaxis.label)
        if text.get_visible() and text.get_text().strip()
    ]
    width, height = canvas.get_width_height()
    for name, box in labels:
        inside = box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1
        assert inside, f"{name!r} is cut off"
    for (one, first), (other, second) in itertools.combinations(labels, 2):
        assert not first.overlaps(second), f"{one!r} lies on {other!r}"
    for ax in figure.axes:
        ticks = [t for t in ax.get_xticklabels() if t.get_visible() and t.get_text()]
        boxes = [t.get_window_extent(renderer) for t in ticks]
        for first, second in itertools.pairwise(sorted(boxes, key=lambda box: box.x0)):
            assert not first.overlaps(second), "labels of the horizontal axis overlap"


def _titles(ax) -> list[Text]:
    return [ax.title, ax._left_title, ax._right_title]
