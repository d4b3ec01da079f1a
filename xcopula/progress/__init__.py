"""Progress of fits and predictions as events, for terminals, notebooks, loggers and functions."""

from xcopula.progress.displays import to_logger, to_notebook, to_terminal
from xcopula.progress.run import Event, Listener, Progress

__all__ = ["Event", "Listener", "Progress", "to_logger", "to_notebook", "to_terminal"]
