"""Sphinx configuration."""

from importlib.metadata import version as installed_version

project = "xcopula"
author = "the xcopula developers"
copyright = author
release = version = installed_version("xcopula")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"
exclude_patterns = [
    "data",
    "colorado/*.md",
    "large/*.md",
    "report/*.md",
    "satellite/*.md",
    "transduction/*.md",
]

html_theme = "furo"
html_title = f"xcopula {release}"
