"""Names that results need for themselves."""

from __future__ import annotations

import pytest

import xcopula
from xcopula.errors import CoordinateError
from xcopula.labels import names
from xcopula.process import Scores


@pytest.mark.parametrize("name", [*names.DIMS, "observation"])
def test_variables(name):
    """The name is said, and how to change it."""
    with pytest.raises(
        ValueError, match=rf"called '{name}'.*`ds\.rename\({name}='{name}_value'\)`"
    ):
        names.check_variables(["metal", name])
    names.check_variables(["metal", f"{name}_value"])


@pytest.mark.parametrize("name", ["", "caf\ud800"])
def test_variables_without_a_name_to_write(sites, name):
    """They are refused before any work, in a message that can be printed."""
    with pytest.raises(ValueError, match=r"A variable is called .*Rename it") as caught:
        xcopula.fit(sites.rename(metal=name), name)
    assert str(caught.value).encode()


@pytest.mark.parametrize("name", [*names.DIMS, *Scores._fields])
def test_inputs(name):
    """Whatever ``loo`` returns beside the coordinates is not one of them."""
    with pytest.raises(CoordinateError, match=rf"input is called '{name}'.*Rename the coordinate"):
        names.check_inputs(["x", name])


def test_other_inputs():
    """A dim of observations may be an input."""
    names.check_inputs(["x", "time", "observation"])


def test_inputs_of_one_result():
    """A name that only one kind of result needs is refused there alone."""
    with pytest.raises(CoordinateError, match=r"input is called 'fold'.*Rename the coordinate"):
        names.check_inputs(["x", "fold"], ["fold"])
    names.check_inputs(["x", "fold"])
