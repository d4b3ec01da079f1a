"""What ``censored=`` says, and what it cannot say."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.censoring import Rule, rules_of

FLAG = xr.DataArray([True, False], dims="site")


class TestRules:
    def test_all_variables_at_once(self):
        """Left to the data, or none."""
        assert rules_of("auto", ["a", "b"]) == (Rule("auto"), Rule("auto"))
        assert rules_of(None, ["a", "b"]) == (Rule("off"), Rule("off"))

    @pytest.mark.parametrize(
        ("given", "rule"),
        [
            ("flag", Rule("flag", ("flag",))),
            ("auto", Rule("auto")),
            (None, Rule("off")),
            (0.2, Rule("below", (0.2,))),
            (np.float32(2.0), Rule("below", (2.0,))),
            ((None, 0.2), Rule("below", (0.2,))),
            ((-np.inf, 0.2), Rule("below", (0.2,))),
            ((50, None), Rule("above", (50.0,))),
            ((50, np.inf), Rule("above", (50.0,))),
            (("low", "high"), Rule("between", ("low", "high"))),
            (["low", None], Rule("between", ("low", None))),
            ((0, "high"), Rule("between", (0.0, "high"))),
        ],
    )
    def test_of_one_variable(self, given, rule):
        """Others are left to the data."""
        assert rules_of({"a": given}, ["a", "b"]) == (rule, Rule("auto"))

    def test_arrays_are_not_kept(self):
        """A model knows that there were some."""
        (flag,) = rules_of({"a": FLAG}, ["a"])
        assert flag.kind == "flag"
        assert flag.plain == Rule("arrays")
        (pair,) = rules_of({"a": (None, FLAG.astype(float))}, ["a"])
        assert (pair.kind, pair.plain) == ("between", Rule("arrays"))
        assert Rule("flag", ("f",)).plain == Rule("flag", ("f",))

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            (0.2, TypeError, r"`censored` must be 'auto', None, or a mapping .* found 0\.2"),
            ("flag", TypeError, r"must be 'auto', None, or a mapping .* found 'flag'"),
            ({"c": 0.2}, KeyError, r"names \['c'\], but the variables .* \['a', 'b'\]"),
            ({"a": True}, TypeError, r"of 'a' cannot be True\. Give the name of a boolean"),
            ({"a": (True, 1.0)}, TypeError, r"of 'a' cannot be True\. A limit is a number"),
            ({"a": np.zeros(3)}, TypeError, r"of 'a' cannot be array"),
            ({"a": np.nan}, ValueError, r"of 'a' is NaN\. Give the name"),
            ({"a": (1.0, 2.0, 3.0)}, ValueError, r"pair \(lower, upper\), found 3 entries"),
            ({"a": (None, None)}, ValueError, "leaves both sides open"),
            ({"a": (0.1, 50.0)}, ValueError, r"every value would lie between 0\.1 and 50"),
        ],
    )
    def test_what_cannot_be(self, given, error, message):
        """With what to do."""
        with pytest.raises(error, match=message):
            rules_of(given, ["a", "b"])


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("auto", ("dl", "q")), "found in 'dl' and 'q'"),
        (Rule("flag", ("f",)), "flagged by 'f'"),
        (Rule("between", (0.0, "up")), "limits in 'up'"),
        (Rule("arrays"), "limits given as arrays"),
        (Rule("below", (0.2,)), "by one limit for all"),
    ],
)
def test_descriptions(rule, text):
    """The summary says where limits come from."""
    assert rule.describe() == text


def test_what_may_make_intervals():
    """Nothing found, or switched off, leaves numbers."""
    assert not Rule("off").tells
    assert not Rule().tells
    assert Rule("auto", ("Cd_flag",)).tells
    assert Rule("below", (0.2,)).tells
