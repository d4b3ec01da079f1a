"""Solvers: how one Gaussian sample is evaluated and conditioned."""
