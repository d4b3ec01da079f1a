"""Which variables a picture shows."""

from __future__ import annotations

import pytest

from xcopula.plot.variables import chosen


def test_all_by_default_and_some_in_the_order_of_the_model(triple):
    assert chosen(triple, None) == [0, 1, 2]
    assert chosen(triple, "other") == [2]
    assert chosen(triple, ["other", "metal", "other"]) == [0, 2]


def test_errors_name_the_variables(triple):
    with pytest.raises(KeyError, match=r"no variable 'zz'; it has \['metal'"):
        chosen(triple, ["zz"])
    with pytest.raises(ValueError, match=r"at least one variable, found \[\]. Choose from"):
        chosen(triple, [])
