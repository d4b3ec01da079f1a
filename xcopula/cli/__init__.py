"""The command line: click commands over the public functions."""

from __future__ import annotations

from xcopula.cli.commands import main

__all__ = ["main"]
