"""The command line: click commands over the public functions."""

from __future__ import annotations

from xcopula.cli.main import main

__all__ = ["main"]
