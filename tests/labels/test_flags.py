"""Flags and detection limits by the CF conventions."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.flags import find_beside_variable, read_flags


def flag(values, **attrs) -> xr.DataArray:
    """Return a flag with attributes."""
    return xr.DataArray(np.asarray(values), dims="site", name="q", attrs=attrs)


class TestReadFlags:
    def test_a_boolean_says_which_are_upper_limits(self):
        """And nothing of lower ones."""
        below, above = read_flags(flag([True, False]), "it")
        np.testing.assert_array_equal(below.values, [True, False])
        assert above is None

    @pytest.mark.parametrize(
        "meaning",
        [
            *("below_detection_limit", "below_limit_of_detection", "value_below_LOD", "BDL"),
            *("non_detect", "nondetect", "not_detected", "less_than_reporting_limit"),
            "below_quantification_limit",
        ],
    )
    def test_words_for_below(self, meaning):
        """As laboratories write them."""
        found = read_flags(
            flag([0, 1, 2, 1], flag_values=[0, 1, 2], flag_meanings=f"good {meaning} bad"), "it"
        )
        np.testing.assert_array_equal(found.below.values, [False, True, False, True])
        assert found.above is None

    @pytest.mark.parametrize("meaning", ["saturated", "above_measurement_range", "over_range"])
    def test_words_for_above(self, meaning):
        """The stored value is then a lower limit."""
        found = read_flags(flag([0, 1], flag_values=[0, 1], flag_meanings=f"good {meaning}"), "it")
        np.testing.assert_array_equal(found.above.values, [False, True])
        assert found.below is None

    @pytest.mark.parametrize("meaning", ["above_detection_limit", "not_saturated", "bad"])
    def test_words_for_neither(self, meaning):
        """Ordinary values are what they are."""
        with pytest.raises(ValueError, match=rf"no flag of 'q' says .* good, {meaning}"):
            read_flags(flag([0, 1], flag_values=[0, 1], flag_meanings=f"good {meaning}"), "it")

    def test_bits(self):
        """Masks are tested bit by bit, with values or without; gaps are no flags."""
        meanings = "suspect below_detection_limit saturated"
        found = read_flags(
            flag([0, 1, 2, 6, 4], flag_masks=[1, 2, 4], flag_meanings=meanings), "it"
        )
        np.testing.assert_array_equal(found.below.values, [False, False, True, True, False])
        np.testing.assert_array_equal(found.above.values, [False, False, False, True, True])
        both = {"flag_masks": [3, 3, 3], "flag_values": [1, 2, 3], "flag_meanings": meanings}
        found = read_flags(flag([1.0, 2.0, np.nan, 3.0], **both), "it")
        np.testing.assert_array_equal(found.below.values, [False, True, False, False])

    def test_values_that_are_text(self):
        """As some tools write them."""
        words = {"flag_values": "0b, 1b", "flag_meanings": "ok below_detection_limit"}
        found = read_flags(flag([1, 0], **words), "it")
        np.testing.assert_array_equal(found.below.values, [True, False])

    @pytest.mark.parametrize("values", [[0.0, 1.0], [0, 1]])
    def test_numbers_without_meaning(self, values):
        """Zeros and ones do not say what they mean."""
        with pytest.raises(TypeError, match=r"it: 'q' has dtype .*must be boolean.*\['q'\] == 1"):
            read_flags(flag(values), "it")

    @pytest.mark.parametrize("attrs", [{}, {"flag_values": [0, 1, 2]}, {"flag_masks": [1]}])
    def test_attributes_that_do_not_fit(self, attrs):
        """Meanings need as many numbers."""
        with pytest.raises(ValueError, match=r"it: 'q' has 2 `flag_meanings`, which need as many"):
            read_flags(flag([0, 1], flag_meanings="ok below_detection_limit", **attrs), "it")


class TestBeside:
    LIMIT = xr.DataArray(1.0, attrs={"standard_name": "mass_of_a detection_minimum"})
    QUALITY = flag([0, 1], flag_values=[0, 1], flag_meanings="ok below_detection_limit")
    OTHER = flag([0, 1], flag_values=[0, 1], flag_meanings="ok suspect")

    def find(self, listed, where="attrs"):
        """Look for variables that are listed."""
        array = xr.DataArray([1.0, 2.0], dims="site", name="a")
        getattr(array, where)["ancillary_variables"] = listed
        return find_beside_variable(array, {"l": self.LIMIT, "q": self.QUALITY, "o": self.OTHER})

    @pytest.mark.parametrize("where", ["attrs", "encoding"])
    def test_what_is_listed_is_found(self, where):
        """Also where decoding has moved the list."""
        assert self.find("l", where).names == ("l",)
        assert self.find("o l q none", where).names == ("l", "q")
        assert self.find("o", where).names == ()

    def test_what_is_not_listed_is_not(self):
        """A variable without ancillary ones has no limits."""
        array = xr.DataArray([1.0, 2.0], dims="site", name="a")
        assert find_beside_variable(array, {"l": self.LIMIT}).names == ()
