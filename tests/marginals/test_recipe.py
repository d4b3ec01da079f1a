"""Recipes: what they name, what they expand to, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.errors import SupportError
from xcopula.marginals import Gamma, Normal, SinhArcsinh, by, regress, resolve

RNG = np.random.default_rng(2)
N = 60
X = RNG.normal(size=N)
VALUES = RNG.gamma(2.0, 3.0, N)


def test_fields_and_keys():
    """A key comes first, whichever way regress and by are nested."""
    assert regress("gamma", on="x").fields == ("x",)
    assert regress("gamma", on=["x", "y"]).keys == ()
    for recipe in (
        by("time.month", regress("gamma", on=["x", "y"])),
        regress(by("time.month", "gamma"), on=["x", "y"]),
    ):
        assert recipe.fields == ("time.month", "x", "y")
        assert recipe.keys == ("time.month",)


def test_links():
    """A positive family has a log link unless told otherwise."""
    assert regress("gamma", on="x").link == "log"
    assert regress(by("k", "gamma"), on="x").link == "log"
    assert regress("normal", on="x").link == "identity"
    assert regress("gamma", on="x", link="identity").link == "identity"
    assert regress("gamma", on="x", link="identity").name == "gamma ~ x (identity link)"


@pytest.mark.parametrize(
    "recipe",
    [
        regress(on="x"),
        by("k"),
        by("k", regress(on="x")),
        regress(by("k"), on="x", degree=2),
    ],
    ids=lambda r: r.name,
)
def test_auto_is_the_flexible_family(recipe):
    """With the same fields, keys and form as that of any other family."""
    assert recipe.family is SinhArcsinh
    assert "flexible" in recipe.name
    other = recipe.with_family(Gamma)
    assert other.family is Gamma
    assert (other.fields, other.keys) == (recipe.fields, recipe.keys)
    assert other.name.startswith(recipe.name.replace("flexible", "gamma"))
    assert other.with_family(SinhArcsinh) == recipe
    columns = {"k": np.arange(N) % 2.0, "x": X}
    law = recipe.fit(VALUES, np.column_stack([columns[name] for name in recipe.fields]))
    assert law.name == recipe.name


def test_recipes_are_values():
    """Equal recipes are equal and hashable; resolve returns them as they are."""
    one = regress(Gamma, on=["x"])
    assert one == regress("gamma", on="x")
    assert hash(one) == hash(regress("gamma", on="x"))
    assert resolve(one) is one


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: regress("gamma"), ValueError, "names of covariates"),
        (lambda: regress("gamma", on=[]), ValueError, "names of covariates"),
        (lambda: regress("gamma", on=[3]), ValueError, "names of covariates"),
        (lambda: regress("gamma", on=["x", "x"]), ValueError, "twice"),
        (lambda: regress("gamma", on="x", degree=0), ValueError, "from 1 to 4, found 0"),
        (lambda: regress("gamma", on="x", degree=5), ValueError, "from 1 to 4, found 5"),
        (lambda: regress("gamma", on="x", degree=1.0), ValueError, "from 1 to 4, found 1.0"),
        (lambda: regress("gamma", on="x", degree=True), ValueError, "from 1 to 4, found True"),
        (lambda: regress("gamma", on="x", link="logit"), ValueError, "'logit'.*'identity' or"),
        (lambda: regress("weibull", on="x"), ValueError, "'weibull'.*'auto' or one of 'flexible'"),
        (lambda: regress(Normal(), on="x"), TypeError, "Pass its name, 'normal'"),
        (lambda: by("k", Normal()), TypeError, "Pass its name, 'normal'"),
        (lambda: by("k", 3), TypeError, "found int"),
        (lambda: by(3, "gamma"), TypeError, "found 3"),
        (lambda: regress(regress("gamma", on="x"), on="y"), ValueError, "all covariates in one"),
        (
            lambda: regress(by("k", regress("gamma", on="x")), on="y"),
            ValueError,
            "all covariates in one",
        ),
        (lambda: by("k", by("j", "gamma")), ValueError, "cannot contain another by.*one key"),
        (lambda: by("k", regress(by("j"), on="x")), ValueError, "cannot contain another by"),
        (lambda: by("x", regress("gamma", on="x")), ValueError, "groups by 'x' and regresses"),
        (lambda: regress(by("x", "gamma"), on="x"), ValueError, "groups by 'x' and regresses"),
    ],
)
def test_bad_recipes(call, error, text):
    """A recipe that cannot be meant is refused when it is written."""
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("recipe", "covariates", "text"),
    [
        (regress("normal", on="x"), np.full((N, 1), 3.0), "'x' is constant: 3 at all 60"),
        (
            regress("normal", on=["a", "b", "c"]),
            np.column_stack([X, X**2, 2.0 * X + 1.0]),
            "'a', 'c' are collinear over the 60",
        ),
        (regress("normal", on="a", degree=2), np.sign(X)[:, None], "'a', 'a\\^2' are collinear"),
        (regress("normal", on="a"), np.where(X > 0, np.nan, X)[:, None], "a are NaN or infinite"),
        (regress("normal", on="a"), np.where(X > 0, np.inf, X)[:, None], "a are NaN or infinite"),
        (
            regress("normal", on="a"),
            np.empty((N, 2)),
            r"shape \(60, 1\), with the columns a; found",
        ),
        (
            regress(by("k", "normal"), on="a"),
            np.column_stack([np.arange(N) % 3, np.arange(N) % 3]),
            "'a' is constant within each group of k",
        ),
        (
            by("k", regress("normal", on="a")),
            np.column_stack([np.arange(N) % 3, np.where(np.arange(N) % 3 == 1, 5.0, X)]),
            "^k=1: The covariate 'a' is constant: 5 at all 20",
        ),
        (
            by("k", "normal"),
            np.repeat([0.0, 1.0, 2.0], [54, 3, 3])[:, None],
            r"normal by k needs at least 5 values in each group; .* fewer: 1 \(3\), 2 \(3\)",
        ),
        (by("k", "normal"), np.repeat([0.0, 1.5], 30)[:, None], "'k' has groups .* numbered 1.5"),
    ],
)
def test_bad_covariates(recipe, covariates, text):
    """Covariates that cannot tell the parameters are refused by name."""
    with pytest.raises(ValueError, match=text):
        recipe.fit(VALUES, covariates)


def test_too_few_rows():
    """A regression needs some rows beside its coefficients."""
    with pytest.raises(ValueError, match=r"9 coefficients and needs at least 14 values; found 12"):
        regress("normal", on=["a", "b"], degree=3).fit(VALUES[:12], RNG.normal(size=(12, 2)))


def test_labels_name_the_groups():
    """Given labels are those of messages; a group that has no value at all is among the few."""
    codes = np.repeat([0.0, 2.0], 30)[:, None]
    with pytest.raises(ValueError, match=r"fewer: MAM \(0\)\. Choose"):
        by("k", "normal").fit(VALUES, codes, {"k": ("DJF", "MAM", "JJA")})
    with pytest.raises(ValueError, match=r"fewer: 1 \(0\)"):
        by("k", "normal").fit(VALUES, codes)
    with pytest.raises(ValueError, match=r"numbered 2\. It was fitted to 2: a, b"):
        by("k", "normal").fit(VALUES, codes, {"k": ("a", "b")})


def test_no_group_at_all():
    """No values have no group."""
    with pytest.raises(ValueError, match="needs at least one group, and there is none"):
        by("k", "normal").fit([], np.empty((0, 1)))


def test_a_group_without_spread():
    """A group of equal values is named."""
    codes = np.repeat([0.0, 1.0], 30)
    values = np.where(codes == 1.0, 4.0, VALUES)
    with pytest.raises(ValueError, match="all values of wet are the same"):
        by("k", "gamma").fit(values, codes[:, None], {"k": ("dry", "wet")})


@pytest.mark.parametrize("name", ["lognormal", "gamma", "exponential"])
def test_values_outside_the_support(name):
    """Positive families refuse negative values as they do alone, whatever they vary with."""
    values = VALUES.copy()
    values[:2] = [-1.0, -2.5]
    codes = np.arange(N) % 3.0
    for recipe, rows in [
        (regress(name, on="x"), X[:, None]),
        (by("k", name), codes[:, None]),
        (by("k", regress(name, on="x")), np.column_stack([codes, X])),
        (regress(by("k", name), on="x"), np.column_stack([codes, X])),
    ]:
        with pytest.raises(SupportError, match=rf"^{name} needs .*: 2 of 60 are not \(first: -1.0"):
            recipe.fit(values, rows)


def test_logarithms_of_zero():
    """A log link refuses a zero, also under a law that admits it."""
    values = np.where(np.arange(N) == 1, 0.0, VALUES)
    with pytest.raises(SupportError, match=r"^exponential ~ x takes logarithms .* 1 of 60 are not"):
        regress("exponential", on="x").fit(values, X[:, None])
    with pytest.raises(SupportError, match="link='identity'"):
        regress("normal", on="x", link="log").fit(-values, X[:, None])


def test_a_trend_out_of_the_support():
    """A positive law under an identity link says that the trend is the reason."""
    steep = np.exp(2.0 * X)
    with pytest.raises(
        SupportError, match=r"without the trend, .* outside the support.*link='log'"
    ):
        regress("gamma", on="x", link="identity").fit(steep, X[:, None])
    gentle = 10.0 + 0.1 * X + VALUES
    law = regress("gamma", on="x", link="identity").fit(gentle, X[:, None])
    assert law.link == "identity"


def test_bad_values():
    """Values that are NaN or in two dimensions are refused."""
    with pytest.raises(ValueError, match="1 of 60 values are NaN"):
        regress("normal", on="x").fit(np.where(np.arange(N) == 1, np.nan, VALUES), X[:, None])
    with pytest.raises(ValueError, match="1-D"):
        regress("normal", on="x").fit(VALUES[:, None], X[:, None])
