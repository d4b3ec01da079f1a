"""Compiled loops: every numba function of the package."""
