"""Contracts of laws that vary from row to row, over one list of fitted recipes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from xcopula.errors import SupportError
from xcopula.marginals import (
    GEV,
    MARGINALS,
    Gamma,
    Grouped,
    Marginal,
    Normal,
    Parzen,
    Regression,
    StudentT,
    by,
    fit_law,
    regress,
)
from xcopula.marginals.estimation import maximise

RNG = np.random.default_rng(11)
N = 180
X, Y = RNG.uniform(0.0, 3.0, N), RNG.normal(100.0, 20.0, N)
CODES = np.repeat([0.0, 1.0, 2.0], N // 3)
TREND = 0.4 * X + 0.005 * Y + 0.3 * CODES
VALUES = np.exp(TREND) * RNG.gamma(3.0, 2.0, N)
LABELS = {"season": ("DJF", "MAM", "JJA")}

RECIPES = {
    **{f"{name}~x": regress(name, on="x") for name in MARGINALS},
    **{f"{name}|season": by("season", name) for name in MARGINALS},
    **{f"{name}~x|season": by("season", regress(name, on="x")) for name in MARGINALS},
    **{f"{name}|season~x": regress(by("season", name), on="x") for name in MARGINALS},
    "normal~x+y,2": regress("normal", on=["x", "y"], degree=2),
    "gamma~x+y,3": regress("gamma", on=["x", "y"], degree=3),
    "t~x,log": regress("t", on="x", link="log"),
}
COLUMNS = {"x": X, "y": Y, "season": CODES}


def rows_of(law):
    """Return the columns that a recipe or a law asks for."""
    return np.column_stack([COLUMNS[name] for name in law.fields])


LAWS: dict[str, Marginal] = {
    key: recipe.fit(VALUES, rows_of(recipe), LABELS) for key, recipe in RECIPES.items()
}
every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


@every
def test_round_trip(law):
    """Scores survive the way to values and back, each under the law of its own row."""
    bound = law.at(rows_of(law))
    z = np.random.default_rng(0).normal(size=(3, N)) * 2.0
    y = bound.from_normal(z)
    assert y.shape == (3, N)
    np.testing.assert_allclose(bound.to_normal(y), z, rtol=1e-8, atol=1e-9)


@every
def test_rows_do_not_meet(law):
    """A row's result is its own: any order and any part of the rows give the same."""
    rows, z = rows_of(law), np.linspace(-2.0, 2.0, N)
    order = np.random.default_rng(1).permutation(N)[:50]
    np.testing.assert_allclose(
        law.at(rows[order]).from_normal(z[order]), law.at(rows).from_normal(z)[order], rtol=1e-12
    )
    assert law.at(rows[:0]).from_normal(np.empty(0)).shape == (0,)


@every
def test_nan_rows(law):
    """A row with NaN among its covariates gives NaN, and no other row does."""
    for column in range(len(law.fields)):
        rows = rows_of(law)[:4].copy()
        rows[1, column] = np.nan
        bound = law.at(rows)
        y = bound.from_normal(np.zeros(4))
        assert np.isnan(y).tolist() == [False, True, False, False]
        known = np.where(np.isnan(y), 1.0, y)
        for out in (bound.to_normal(known), bound.log_density(known)):
            assert np.isnan(out).tolist() == [False, True, False, False]
        bound.check_support(known)


@every
def test_density_is_the_derivative(law):
    """The log density is the derivative of F at each row."""
    bound, h = law.at(rows_of(law)), 1e-5
    z = np.linspace(-3.0, 3.0, N)
    dy = (bound.from_normal(z + h) - bound.from_normal(z - h)) / (2.0 * h)
    np.testing.assert_allclose(
        bound.log_density(bound.from_normal(z)), stats.norm.logpdf(z) - np.log(dy), atol=1e-4
    )


@every
def test_slopes(law):
    """Derivatives in y equal central differences, away from the knots of a smoothed sample."""
    bound, h = law.at(rows_of(law)), 1e-6
    y = bound.from_normal(np.linspace(-3.0, 3.0, N))
    step = h * np.abs(y)
    for slope, method in [
        (bound.to_normal_slope, "to_normal"),
        (bound.log_density_slope, "log_density"),
    ]:
        function = getattr(bound, method)
        expected = (function(y + step) - function(y - step)) / (2.0 * step)
        wrong = ~np.isclose(slope(y), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
        assert wrong.sum() <= (1 if "parzen" in law.name else 0)


@every
def test_sensitivity(law):
    """Derivatives in theta equal five-point differences."""
    bound = law.at(rows_of(law))
    y = bound.from_normal(np.linspace(-4.0, 3.0, N))
    dz, dlogf = bound.sensitivity(y)
    assert dz.shape == dlogf.shape == (N, law.theta.size)
    np.testing.assert_array_equal(bound.to_normal_gradient(y), dz)
    np.testing.assert_array_equal(bound.log_density_gradient(y), dlogf)
    widths = np.ptp(law.bounds, axis=1)
    for k, unit in enumerate(np.eye(law.theta.size)):
        h = 1e-5 * widths[k]
        shifted = [bound.with_theta(law.theta + m * h * unit) for m in (-2, -1, 1, 2)]
        for got, method in [(dz, "to_normal"), (dlogf, "log_density")]:
            a, b, c, d = (getattr(other, method)(y) for other in shifted)
            expected = (a - 8.0 * b + 8.0 * c - d) / (12.0 * h)
            ok = np.isfinite(expected)
            assert ok.sum() > 0.9 * N
            atol = 1e-6 * max(1.0, np.abs(expected[ok]).max())
            wrong = ~np.isclose(got[ok, k], expected[ok], rtol=1e-5, atol=atol)
            # a step across a knot of a smoothed sample is no derivative
            assert wrong.sum() <= (0.05 * N if "parzen" in law.name else 0)


@every
def test_pullbacks(law):
    """Sums over values equal those of the derivatives; a row of no group adds nothing."""
    bound = law.at(rows_of(law))
    y, weights = bound.from_normal(np.linspace(-3.0, 3.0, N)), np.linspace(-1.0, 2.0, N)
    for derivative, pullback in zip(
        bound.sensitivity(y), (bound.score_pullback, bound.density_pullback), strict=True
    ):
        scale = np.abs(derivative).sum(axis=0).max(initial=1.0)
        for w in (weights, np.ones(N)):
            np.testing.assert_allclose(pullback(y, w), w @ derivative, atol=1e-12 * scale)
        np.testing.assert_allclose(pullback(y), derivative.sum(axis=0), atol=1e-12 * scale)


@every
def test_parts_of_theta(law):
    """Parts follow one another; a value depends on one of them, and on what comes after all."""
    parts = law.parts
    assert parts[0].start == 0
    assert all(a.stop == b.start for a, b in pairwise(parts))
    assert parts[-1].stop <= law.theta.size
    depends = law.at(rows_of(law)).log_density_gradient(VALUES) != 0.0
    met = np.stack([depends[:, part].any(axis=1) for part in parts])
    assert (met.sum(axis=0) <= 1).all()


@every
def test_theta(law):
    """Free parameters rebuild the law, bound or not, and lie within finite bounds."""
    bound = law.at(rows_of(law))
    for one in (law, bound):
        again = one.with_theta(one.theta)
        assert type(again) is type(one)
        np.testing.assert_allclose(again.theta, law.theta, rtol=1e-15, atol=1e-15)
        np.testing.assert_array_equal(one.bounds, law.bounds)
        assert one.log_prior()[0] == law.log_prior()[0]
        assert one.name == law.name
        assert one.dof == pytest.approx(law.dof)
    np.testing.assert_allclose(
        bound.with_theta(law.theta).to_normal(VALUES), bound.to_normal(VALUES)
    )
    assert law.bounds.shape == (law.theta.size, 2)
    assert np.isfinite(law.bounds).all()
    assert ((law.bounds[:, 0] < law.theta) & (law.theta < law.bounds[:, 1])).all()
    assert law.dof >= law.theta.size
    assert all(isinstance(value, float) for value in law.parameters.values())
    assert np.all(np.asarray(bound.tail_index) >= 0.0)
    assert np.isscalar(law.tail_index)


@every
def test_log_prior_gradient(law):
    """The gradient of the log prior equals central differences."""
    _, gradient = law.log_prior()
    assert gradient.shape == law.theta.shape
    for k, unit in enumerate(np.eye(law.theta.size)):
        above, below = (law.with_theta(law.theta + s * 1e-5 * unit).log_prior()[0] for s in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("key", [k for k in RECIPES if "parzen" not in k])
def test_fit_is_a_maximum(key):
    """The likelihood with the prior is flat at the estimate, in units of the bounds."""
    law = LAWS[key]
    bound = law.at(rows_of(law))
    gradient = bound.log_density_gradient(VALUES).sum(axis=0) + law.log_prior()[1]
    np.testing.assert_allclose(gradient * np.ptp(law.bounds, axis=1), 0.0, atol=0.05)
    assert law.link == ("log" if any(n in key for n in ("log", "gamma", "exp")) else "identity")


@every
def test_unbound_law_says_so(law):
    """Without rows there are no values, and wrong columns are named."""
    names = ", ".join(law.fields)
    for method in ("to_normal", "from_normal", "log_density", "log_density_slope", "sensitivity"):
        with pytest.raises(ValueError, match=rf"varies with {names}.*\.at\(covariates\)"):
            getattr(law, method)(VALUES)
    with pytest.raises(
        ValueError, match=rf"shape \(n, {len(law.fields)}\), with the columns {names}"
    ):
        law.at(np.empty((4, 7)))
    with pytest.raises(NotImplementedError, match="regress"):
        type(law).fit(VALUES)


@pytest.mark.parametrize("name", MARGINALS)
class TestReducesToThePlainLaw:
    def test_regression_at_the_mean(self, name):
        """At the mean covariate a regression is its base law."""
        law = LAWS[f"{name}~x"]
        bound, z = law.at(np.full((5, 1), X.mean())), np.linspace(-2.0, 2.0, 5)
        y = law.base.from_normal(z)
        np.testing.assert_allclose(bound.from_normal(z), y, rtol=1e-10)
        np.testing.assert_allclose(bound.log_density(y), law.base.log_density(y), rtol=1e-10)

    def test_one_group(self, name):
        """One group for all values is the plain law."""
        law, plain = by("k", name).fit(VALUES, np.zeros((N, 1))), MARGINALS[name].fit(VALUES)
        bound = law.at(np.zeros((N, 1)))
        np.testing.assert_allclose(bound.to_normal(VALUES), plain.to_normal(VALUES), rtol=1e-12)
        np.testing.assert_array_equal(law.theta, plain.theta)
        np.testing.assert_array_equal(bound.sensitivity(VALUES)[1], plain.sensitivity(VALUES)[1])

    def test_groups_are_fitted_apart(self, name):
        """A grouped law is that of each group fitted alone."""
        law = LAWS[f"{name}|season"].at(CODES[:, None])
        for g in range(3):
            own = np.flatnonzero(g == CODES)
            alone = MARGINALS[name].fit(VALUES[own])
            np.testing.assert_allclose(
                law.to_normal(VALUES)[own], alone.to_normal(VALUES[own]), rtol=1e-12
            )


def test_a_constant_law_is_the_same_at_all_rows():
    """Constant laws have no fields and do not change when bound."""
    law = Gamma(2.0, 3.0)
    assert law.fields == ()
    assert law.at(np.empty((4, 0))) is law


def test_regression_by_definition():
    """Links, standardisation and monomials are those of the definition."""
    law = LAWS["normal~x+y,2"]
    u, v = (X - X.mean()) / X.std(), (Y - Y.mean()) / Y.std()
    trend = np.column_stack([u, v, u * u, u * v, v * v]) @ law.coefficients
    np.testing.assert_allclose(
        law.at(rows_of(law)).to_normal(VALUES), law.base.to_normal(VALUES - trend), rtol=1e-9
    )
    law = LAWS["gamma~x"]
    factor = np.exp(u * law.coefficients[0])
    np.testing.assert_allclose(
        law.at(rows_of(law)).log_density(VALUES),
        stats.gamma(law.base.shape, scale=law.base.scale * factor).logpdf(VALUES),
        rtol=1e-10,
    )


def test_least_squares_is_the_normal_fit():
    """A normal regression is ordinary least squares, and its slope is per unit of the covariate."""
    slope, level = np.polyfit(X, VALUES, 1)
    law = LAWS["normal~x"]
    assert law.parameters["x"] == pytest.approx(slope)
    assert law.base.location == pytest.approx(level + slope * X.mean())
    assert law.base.scale == pytest.approx(np.std(VALUES - level - slope * X))


@pytest.mark.parametrize(
    ("base", "link"),
    [
        (Normal(10.0, 2.0), "identity"),
        (GEV(10.0, 2.0, 0.1), "identity"),
        (StudentT(10.0, 1.0, 4.0), "identity"),
        (Gamma(3.0, 2.0), "log"),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_slope_is_recovered(base, link):
    """A known slope is found within three standard errors by the score's outer product."""
    n, rng = 2000, np.random.default_rng(4)
    x = rng.uniform(0.0, 5.0, n)
    y = base.from_normal(rng.normal(size=n))
    y = y * np.exp(0.3 * x) if link == "log" else y + 0.3 * x
    law = regress(base.name, on="x").fit(y, x[:, None])
    scores = law.at(x[:, None]).log_density_gradient(y)
    error = np.sqrt(np.linalg.inv(scores.T @ scores)[-1, -1]) / x.std()
    assert abs(law.parameters["x"] - 0.3) < 3.0 * error < 0.1


def test_maximise_climbs_a_bound_law():
    """The climb works on a law that varies, from a poor start."""
    law = LAWS["gamma~x"]
    start = law.with_theta(law.theta + np.array([0.5, -0.4, 0.6]))
    found = maximise(start, VALUES, rows_of(law))
    assert isinstance(found, Regression)
    np.testing.assert_allclose(found.theta, law.theta, atol=1e-4)


def test_names_and_parameters():
    """Names say what varies and with what; parameters are keyed by group and monomial."""
    names = {key: law.name for key, law in LAWS.items()}
    assert names["gamma~x"] == "gamma ~ x"
    assert names["normal~x+y,2"] == "normal ~ x + y (degree 2)"
    assert names["gamma|season"] == "gamma by season"
    assert names["gamma~x|season"] == "gamma ~ x by season"
    assert names["gamma|season~x"] == "gamma by season ~ x"
    assert names["t~x,log"] == "t ~ x (log link)"
    assert names == {key: recipe.name for key, recipe in RECIPES.items()}
    assert list(LAWS["gamma~x"].parameters) == ["shape", "scale", "x"]
    assert list(LAWS["normal~x+y,2"].parameters)[2:] == ["x", "y", "x^2", "x y", "y^2"]
    assert "x^2 y" in LAWS["gamma~x+y,3"].parameters
    groups = ["DJF", "MAM", "JJA"]
    assert list(LAWS["gamma|season"].parameters) == [
        f"{p}[{g}]" for g in groups for p in ("shape", "scale")
    ]
    assert list(LAWS["exponential~x|season"].parameters) == [
        f"{p}[{g}]" for g in groups for p in ("scale", "x")
    ]
    assert list(LAWS["exponential|season~x"].parameters) == [*(f"scale[{g}]" for g in groups), "x"]
    law = regress("gamma", on="scale").fit(VALUES, X[:, None])
    assert list(law.parameters) == ["shape", "scale", "slope of scale"]


def test_shared_slope_and_slope_by_group():
    """The two compositions differ: one slope for all groups, or one for each."""
    shared, own = LAWS["gamma|season~x"], LAWS["gamma~x|season"]
    assert isinstance(shared, Regression)
    assert isinstance(own, Grouped)
    assert shared.fields == own.fields == ("season", "x")
    assert shared.theta.size == 3 * 2 + 1
    assert own.theta.size == 3 * (2 + 1)


def test_residuals_of_a_smoothed_sample_have_no_origin():
    """A Parzen law of residuals is not cut off at zero; one of ratios is positive."""
    assert not LAWS["parzen~x"].base.logarithmic
    assert not LAWS["parzen|season~x"].base.laws[0].logarithmic
    assert LAWS["parzen|season"].laws[0].logarithmic
    ratio = regress("parzen", on="x", link="log").fit(VALUES, X[:, None])
    assert ratio.base.logarithmic
    assert not Parzen.fit(VALUES, residuals=True).logarithmic


class TestSupport:
    def test_positive_laws(self):
        """Values that a positive law does not admit are refused at rows, and without."""
        for key in ("gamma~x", "gamma|season", "gamma~x|season", "gamma|season~x"):
            law = LAWS[key]
            assert law.support == (0.0, np.inf)
            bad = np.where(np.arange(N) == 3, -1.0, VALUES)
            text = f"^lead: {law.name} needs positive values: 1 of {N} are not \\(first: -1.0\\)"
            for one in (law, law.at(rows_of(law))):
                with pytest.raises(SupportError, match=text.replace("|", "")):
                    one.check_support(bad, "lead")

    def test_the_end_moves_with_the_row(self):
        """The upper end of a bounded law is that of the row."""
        law = regress("gev", on="x").fit(VALUES, X[:, None])
        law = law.with_theta([5.0, np.log(2.0), -0.4, 1.0])
        bound = law.at(X[:4, None])
        end = 10.0 + (X[:4] - X.mean()) / X.std()
        np.testing.assert_allclose(bound.ends()[1], end)
        bound.check_support(end - 0.01)
        with pytest.raises(SupportError, match="support of their own row: 4 of 4"):
            bound.check_support(end + 0.01)
        assert np.isinf(bound.to_normal(end + 0.01)).all()

    def test_groups_have_ends_of_their_own(self):
        """Rows of a group end where its law does."""
        law = Grouped("k", ("a", "b"), (GEV(0.0, 1.0, -0.5), Gamma(2.0)))
        assert law.support == (-np.inf, np.inf)
        lower, upper = law.at([[1.0], [0.0], [np.nan]]).ends()
        np.testing.assert_array_equal(lower, [0.0, -np.inf, np.nan])
        np.testing.assert_array_equal(upper, [np.inf, 2.0, np.nan])


def test_tail_index_of_rows():
    """Each row has its group's; a law without rows that of the heaviest."""
    law = Grouped("k", ("a", "b"), (GEV(0.0, 1.0, 0.3), Normal()))
    assert law.tail_index == 0.3
    np.testing.assert_array_equal(law.at([[1.0], [0.0], [np.nan]]).tail_index, [0.0, 0.3, np.nan])


@pytest.mark.parametrize("code", [3.0, -1.0, 0.5, np.inf])
def test_unknown_groups(code):
    """A group that was not fitted is refused by name and number."""
    with pytest.raises(
        ValueError, match=rf"'season' has groups .* numbered {code:g}\. It was fitted to 3: DJF"
    ):
        LAWS["gamma|season"].at([[0.0], [code]])


def test_fit_law():
    """An instance stays, a class is fitted to values, a recipe to values and covariates."""
    law = Normal(1.0, 2.0)
    assert fit_law(law, VALUES) is law
    assert fit_law(Gamma, VALUES) == Gamma.fit(VALUES)
    fitted = fit_law(by("season", "gamma"), VALUES, CODES[:, None], LABELS)
    np.testing.assert_array_equal(fitted.theta, LAWS["gamma|season"].theta)
    with pytest.raises(ValueError, match=r"covariates of shape \(180, 1\)"):
        fit_law(by("season", "gamma"), VALUES)
