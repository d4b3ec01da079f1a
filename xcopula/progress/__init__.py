"""What is being done, as events: one hook for terminals, notebooks, loggers and your own."""

from xcopula.progress.displays import to_logger, to_notebook, to_terminal
from xcopula.progress.events import Event, Listener, Progress

__all__ = ["Event", "Listener", "Progress", "to_logger", "to_notebook", "to_terminal"]
