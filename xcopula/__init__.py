"""Multi-task Gaussian copula processes for xarray."""
