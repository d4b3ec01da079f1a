"""NamedLaws are a tuple that also knows the names of its variables."""

from __future__ import annotations

import pickle

import pytest

from xcopula.marginals import Gamma, Normal
from xcopula.model.laws import NamedLaws

LAWS = NamedLaws([Gamma(), Normal()], ["pm10", "wind"])


def test_a_law_is_found_by_name_and_by_number():
    assert LAWS["pm10"] is LAWS[0]
    assert LAWS["wind"] is LAWS[-1]


def test_it_still_is_a_tuple():
    assert (Gamma(), Normal()) == LAWS
    assert LAWS[:1] == (Gamma(),)
    assert [law.name for law in LAWS] == ["gamma", "normal"]


def test_an_unknown_name_lists_the_names():
    with pytest.raises(KeyError, match=r"no variable 'pm25'; it has \['pm10', 'wind'\]"):
        LAWS["pm25"]
    with pytest.raises(IndexError):
        LAWS[2]


def test_names_travel():
    again = pickle.loads(pickle.dumps(LAWS))
    assert again == LAWS
    assert again["wind"] == LAWS["wind"]


def test_a_model_has_them(model):
    assert model.marginals["proxy"] == model.marginals[1]
    assert model.marginals.names == model.tasks
    assert type(model.predictor.process.laws) is tuple
