"""Small data sets for examples and tests: embedded files and seeded simulations, all offline."""

from xcopula.datasets._colorado import colorado, colorado_grid
from xcopula.datasets._jura import jura, jura_grid
from xcopula.datasets._slump import slump
from xcopula.datasets._toy import toy, toy_truth

__all__ = ["colorado", "colorado_grid", "jura", "jura_grid", "slump", "toy", "toy_truth"]
