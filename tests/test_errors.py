"""What a caller may want to catch: subclasses of built-ins, with a docstring each."""

from __future__ import annotations

import inspect
import pickle

import pytest

from xcopula import errors

KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", KINDS, ids=errors.__all__)
class TestEveryOne:
    def test_is_a_built_in_too(self, kind):
        """Code that knows nothing of the package still catches it."""
        parent = UserWarning if kind.__name__.endswith("Warning") else ValueError
        if kind is errors.FitInterrupted:
            parent = KeyboardInterrupt
        assert issubclass(kind, parent)
        with pytest.raises(parent):
            raise kind("what was wrong, what was found, and what to do")

    def test_says_what_it_is_for(self, kind):
        """In one sentence."""
        assert kind.__doc__
        assert kind.__doc__.strip().endswith(".")

    def test_travels_between_processes(self, kind):
        """With its message."""
        again = pickle.loads(pickle.dumps(kind("a message")))
        assert type(again) is kind
        assert str(again) == "a message"


def test_all_of_them_are_listed():
    """Whatever the module defines is public."""
    defined = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and kind.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)


def test_the_model_of_an_interruption_is_made_once_and_when_asked_for():
    """There may be none; and it stays in its process."""
    made = []

    def make():
        made.append(1)
        return object()

    stop = errors.FitInterrupted("a message", make)
    assert not made
    assert stop.model is stop.model
    assert len(made) == 1
    assert errors.FitInterrupted("a message").model is None
    assert pickle.loads(pickle.dumps(stop)).model is None
