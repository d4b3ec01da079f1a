"""Sphinx configuration."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "xcopula"
author = "the xcopula developers"
copyright = author
release = version = installed_version("xcopula")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
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
    "uncertainty/*.md",
]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"xcopula {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
