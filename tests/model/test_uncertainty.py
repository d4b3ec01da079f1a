"""What predictions count of what parameters do not know."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from strategies import raise_if_dask_computes

import xcopula
from xcopula.errors import CostError
from xcopula.marginals import LogNormal
from xcopula.methods import Transductive
from xcopula.model import uncertainty
from xcopula.model.uncertainty import Member, Uncertainty, students_of
from xcopula.process import Student

QUICK = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0, "method": "full"}
PLAIN = QUICK | {"uncertainty": "plugin"}


@pytest.fixture(scope="module")
def drawn(model):
    """The two-task model with draws of its parameters."""
    return model.with_uncertainty("laplace")


@pytest.fixture(scope="module")
def widened(model):
    """The two-task model with errors of Student's t."""
    return model.with_uncertainty("t")


@pytest.fixture(scope="module")
def mixed(alone, sites):
    """Two models of one variable, of other laws and kernels, as one."""
    other = xcopula.fit(sites, "metal", **PLAIN | {"marginals": "gamma", "kernels": "se"})
    members = tuple(
        Member(m.process, m.prepared, m.theta[None], np.array([w]))
        for m, w in ((alone, 0.3), (other, 0.7))
    )
    both = dataclasses.replace(alone, uncertainty=Uncertainty("laplace", "by hand", members))
    return alone, other, both


class TestOtherParameters:
    """A copy of a model at other parameters must not predict as the model does."""

    @pytest.mark.parametrize("kind", ["t", "laplace"])
    def test_a_mixture_does_not_move(self, model, kind):
        """So it is refused, and the message says what to give."""
        mixed = model.with_uncertainty(kind)
        with pytest.raises(
            ValueError,
            match=r"`theta` is not that of the model's mixture.*Give `uncertainty=None, other",
        ):
            dataclasses.replace(mixed, theta=model.theta + 0.1)
        again = dataclasses.replace(mixed, theta=model.theta.copy(), message="as before")
        assert again.uncertainty is mixed.uncertainty

    def test_as_the_message_says(self, model, grid):
        """The model at these parameters, then a mixture around them."""
        mixed, theta = model.with_uncertainty("t"), model.theta + 0.1
        moved = dataclasses.replace(mixed, theta=theta, uncertainty=None, others=())
        plain = dataclasses.replace(model, theta=theta)
        xr.testing.assert_identical(moved.predict(grid), plain.predict(grid))
        members = moved.with_uncertainty("t").uncertainty.members
        np.testing.assert_array_equal(members[0].thetas[0], theta)

    def test_files_keep_what_it_was_made_for(self, model, tmp_path):
        """A loaded model refuses too; one from an older file, without them, cannot tell."""
        mixed = model.with_uncertainty("t")
        loaded = xcopula.load(mixed.save(tmp_path / "model.nc"))
        np.testing.assert_array_equal(loaded.uncertainty.of, model.theta)
        with pytest.raises(ValueError, match="`theta` is not that of the model's mixture"):
            dataclasses.replace(loaded, theta=model.theta + 0.1)
        older = dataclasses.replace(mixed.uncertainty, of=None)
        moved = dataclasses.replace(model, theta=model.theta + 0.1, uncertainty=older)
        assert moved.uncertainty is older


class TestPlugin:
    def test_is_the_model_itself(self, model, grid):
        """Nothing is added, not even a copy of the conditioned process."""
        plain = model.with_uncertainty("plugin")
        assert plain.uncertainty is None
        assert model.components[0].conditioned is model.conditioned
        assert model.mixture == (1, True)
        xr.testing.assert_identical(plain.predict(grid), model.predict(grid))
        assert plain.summary() == model.summary()

    def test_closed_forms_to_the_last_bit(self, model, grid):
        """Quantiles are the law's of the latent ones."""
        posterior = model.posterior(grid)
        law, latent = model.marginals[0], posterior.latent
        for level in (0.05, 0.5, 0.95):
            score = latent["mean"].values + latent["std"].values * stats.norm.ppf(level)
            np.testing.assert_array_equal(posterior.quantile(level), law.from_normal(score))


class TestStudent:
    def test_counts(self, model):
        """Values, and parameters of a variable with its correlations."""
        found = students_of(
            model.process, model.theta, model.observations.sample, model.tasks, model.method
        )
        assert found == (Student(40.0, 6.0), Student(60.0, 6.0))

    def test_secondaries_of_pairs_meet_the_primary_only(self, triple):
        """The primary has a correlation with each, a secondary with one."""
        counts = students_of(
            triple.process, triple.theta, triple.observations.sample, triple.tasks, triple.method
        )
        own = [2 + law.dof for law in triple.process.marginals]
        assert [s.parameters for s in counts] == [own[0] + 4, own[1] + 2, own[2] + 2]

    def test_intervals_count_as_what_they_tell(self, sites):
        """Narrow ones as numbers, half a law as less, and the summary says how many they are."""
        first = sites["metal"].notnull() & (np.arange(60) < 20)
        given = {"marginals": LogNormal(0.0, 1.0), "uncertainty": "t", "kernels": "matern32"}
        values = sites["metal"]

        def count(lower, upper):
            data = sites.assign(
                low=values.where(~first, lower(values)), high=values.where(~first, upper(values))
            )
            limits = {"metal": ("low", "high")}
            return xcopula.fit(data, "metal", censored=limits, restarts=0, **given)

        whole = count(lambda v: v * (1 - 1e-6), lambda v: v * (1 + 1e-6))
        assert whole.uncertainty.members[0].students[0].values == pytest.approx(40.0, abs=1e-9)
        half = count(lambda v: 0.0 * v, lambda v: v)
        found, number = half.uncertainty.members[0].students[0].values, int(first.sum())
        law = half.marginals["metal"]
        limits = law.to_normal(values.values[first.values])
        told = [1.0 - stats.truncnorm.var(-np.inf, z) for z in limits]
        assert found == pytest.approx(40.0 - number + sum(told), rel=1e-9)
        shown = f"{found:.1f}".removesuffix(".0")
        assert f"({shown} values of metal, 4 parameters)" in half.summary()

    def test_quantiles_against_scipy(self, model, widened, grid):
        """The latent deviation grows, and its quantiles are those of t."""
        latent = model.posterior(grid).latent
        for level in (0.05, 0.5, 0.95):
            error = stats.t.ppf(level, 34) * np.sqrt(40.0 / 34.0)
            score = latent["mean"] + latent["std"] * error
            expected = model.marginals[0].from_normal(score.values)
            found = widened.posterior(grid).quantile(level)
            np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_other_variables_have_their_own(self, model, widened, grid):
        """The proxy has more values."""
        latent = model.posterior(grid, variable="proxy").latent
        found = widened.posterior(grid, variable="proxy").latent
        factor = np.sqrt(60.0 / 54.0) * stats.t.std(54)
        np.testing.assert_allclose(found["std"], factor * latent["std"], rtol=1e-8)
        np.testing.assert_array_equal(found["mean"], latent["mean"])

    def test_the_median_needs_the_mean_alone(self, model, widened, grid):
        """As before."""
        found = widened.posterior(grid)
        np.testing.assert_array_equal(found.median(), model.posterior(grid).median())
        assert "moments" not in found.__dict__

    def test_a_known_scale_of_ordinary_kriging(self):
        """With unknown mean and scale and no correlation it is the t interval of a regression."""
        rng = np.random.default_rng(3)
        values = 5.0 + 2.0 * rng.normal(size=25)
        data = xr.Dataset({"v": ("site", values)}, coords={"x": ("site", np.arange(25.0))})
        fitted = xcopula.fit(data, "v", **QUICK | {"marginals": "normal"})
        law = fitted.marginals["v"]
        only = dataclasses.replace(
            fitted.uncertainty or Uncertainty("t", ""),
            members=(
                Member(
                    fitted.process,
                    fitted.prepared,
                    fitted.theta[None],
                    np.ones(1),
                    (Student(25.0, 2.0),),
                ),
            ),
        )
        far = xr.Dataset(coords={"x": ("site", [1e6])})
        found = dataclasses.replace(fitted, uncertainty=only).posterior(far).quantile(0.95)
        expected = stats.t(23, law.location, law.scale * np.sqrt(25.0 / 23.0)).ppf(0.95)
        np.testing.assert_allclose(found, expected, rtol=1e-7)

    def test_too_few_values(self, sites):
        """Both numbers and what to do are said."""
        few = sites.isel(site=slice(0, 8))
        with pytest.raises(ValueError, match=r"'metal' has 8 values and 6 param.*'plugin'"):
            xcopula.fit(few, "metal", "proxy", uncertainty="t", **QUICK)


class TestLaplace:
    def test_draws_surround_the_optimum(self, model, drawn):
        """Thirty at most, with weights that add up to one."""
        (member,) = drawn.uncertainty.members
        assert member.process is model.process
        assert 10 < member.weights.size <= 30
        assert member.weights.sum() == pytest.approx(1.0)
        spread = np.sqrt(member.weights @ (member.thetas - model.theta) ** 2)
        assert (spread > 0.02).all()
        assert 2.0 < drawn.uncertainty.effective < 30.0

    def test_the_same_model_gives_the_same_draws(self, model, drawn):
        """Nothing is left to chance."""
        again = model.with_uncertainty("laplace").uncertainty.members[0]
        np.testing.assert_array_equal(again.thetas, drawn.uncertainty.members[0].thetas)
        np.testing.assert_array_equal(again.weights, drawn.uncertainty.members[0].weights)

    def test_intervals_are_wider(self, model, drawn, grid):
        """On the whole."""
        before, after = (m.posterior(grid).interval() for m in (model, drawn))
        width = [
            float((b.sel(bound="upper") - b.sel(bound="lower")).mean()) for b in (before, after)
        ]
        assert 1.01 < width[1] / width[0] < 1.6

    def test_is_the_mixture_of_models_at_the_draws(self, model, drawn, grid):
        """Each draw is a model of its own; probabilities are their weighted mean."""
        (member,) = drawn.uncertainty.members
        each = [
            dataclasses.replace(model, theta=theta).posterior(grid).cdf(1.5)
            for theta in member.thetas
        ]
        expected = sum(w * p for w, p in zip(member.weights, each, strict=True))
        np.testing.assert_allclose(drawn.posterior(grid).cdf(1.5), expected, rtol=1e-12)

    def test_pairs_too(self, triple, grid):
        """Draws of all parameters of a combination; what no pair tells is not drawn."""
        drawn = triple.with_uncertainty("laplace")
        (member,) = drawn.uncertainty.members
        covariance = triple.process.covariance
        others = covariance.part(np.arange(covariance.size), "correlation")[:, 2]
        assert (member.thetas[:, others] == triple.theta[others]).all()
        assert drawn.posterior(grid).information().shape == (2, 6, 7)
        assert np.isfinite(drawn.predict(grid)["metal"]).all()

    def test_an_optimum_on_a_bound(self, model, monkeypatch):
        """Which parameter, and what to do."""
        theta = model.theta.copy()
        theta[0] = model.process.bounds()[0, 0]
        stuck = dataclasses.replace(model, theta=theta)
        message = "length scale of 'metal' in space ended at the lower end .*uncertainty='t'"
        with pytest.raises(ValueError, match=message):
            stuck.with_uncertainty("laplace")
        monkeypatch.setattr(uncertainty, "_CROWDED", 0.1)
        chosen = stuck.with_uncertainty("auto").uncertainty
        assert chosen.kind == "t"
        assert "no draws: `uncertainty='laplace'` needs" in chosen.reason

    def test_a_cliff_beside_the_optimum(self, model, monkeypatch):
        """The parameter is named."""

        def over(*_):
            raise FloatingPointError(6)

        monkeypatch.setattr(uncertainty, "draw", over)
        with pytest.raises(
            ValueError, match="step of the location of the lognormal law of 'metal'"
        ):
            model.with_uncertainty("laplace")

    def test_no_optimum_to_go_by(self, trio):
        """A method that stops at its pairs has none of all parameters."""
        method = Transductive(polish=False)
        options = QUICK | {"method": method, "marginals": "normal"}
        fitted = xcopula.fit(trio, "metal", ["proxy", "other"], **options)
        with pytest.raises(ValueError, match=r"Transductive\(.*polish=True"):
            fitted.with_uncertainty("laplace")

    def test_memory(self, sites, monkeypatch):
        """Refused before the fit."""
        monkeypatch.setattr(uncertainty, "machine_memory", lambda: 1e5)
        with pytest.raises(CostError, match="keeps 30 conditioned models of 40 values"):
            xcopula.fit(sites, "metal", uncertainty="laplace", **QUICK)


class TestMixture:
    def test_of_other_laws_and_kernels(self, mixed, grid):
        """Each component has its own process; the CDF is the weighted mean."""
        one, other, both = mixed
        expected = 0.3 * one.posterior(grid).cdf(1.2) + 0.7 * other.posterior(grid).cdf(1.2)
        np.testing.assert_allclose(both.posterior(grid).cdf(1.2), expected, rtol=1e-12)
        quantile = both.posterior(grid).quantile(0.9)
        np.testing.assert_allclose(both.posterior(grid).cdf(quantile.drop_vars("quantile")), 0.9)
        mean = 0.3 * one.posterior(grid).mean() + 0.7 * other.posterior(grid).mean()
        np.testing.assert_allclose(both.posterior(grid).mean(), mean, rtol=1e-12)

    def test_a_file_of_it(self, mixed, grid, tmp_path):
        """Read again, it predicts the same to the last bit."""
        both = mixed[2]
        again = xcopula.load(both.save(tmp_path / "both.nc"))
        xr.testing.assert_identical(again.predict(grid), both.predict(grid))
        assert again.summary() == both.summary()

    @pytest.mark.parametrize("kind", ["t", "laplace"])
    @pytest.mark.parametrize("chunks", [{"x": 3, "y": 2}, {"x": 7, "y": 1}])
    def test_lazy_equals_eager_whatever_the_chunks(self, model, grid, kind, chunks):
        """Nothing computes while the graph is built, and the model is in it once."""
        own = model.with_uncertainty(kind)
        with raise_if_dask_computes():
            lazy = own.posterior(grid, chunks=chunks)
            results = [lazy.quantile([0.05, 0.5, 0.95]), lazy.exceedance(1.2), lazy.mean()]
            results += [lazy.latent["mean"], lazy.latent["std"], lazy.median()]
        now = own.posterior(grid)
        expected = [now.quantile([0.05, 0.5, 0.95]), now.exceedance(1.2), now.mean()]
        expected += [now.latent["mean"], now.latent["std"], now.median()]
        for left, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(left.compute(), right, rtol=1e-10)
        graph = dict(results[0].__dask_graph__())
        holders = [
            k for k, v in graph.items() if "CopulaModel" in repr(type(getattr(v, "value", v)))
        ]
        assert len(holders) <= 1

    @pytest.mark.parametrize("kind", ["t", "laplace", "auto"])
    def test_of_a_model_that_is_a_graph(self, sites, grid, kind):
        """How many components there will be need not be known."""
        options = QUICK | {"uncertainty": kind}
        with raise_if_dask_computes():
            later = xcopula.fit(sites, "metal", compute=False, **options)
            posterior = later.posterior(grid)
            both = posterior.quantile([0.05, 0.5]), posterior.latent["std"]
            point = later.posterior(grid.isel(x=0, y=0)).quantile(0.9)
        now = xcopula.fit(sites, "metal", **options)
        expected = now.posterior(grid)
        np.testing.assert_allclose(both[0].compute(), expected.quantile([0.05, 0.5]), rtol=1e-9)
        np.testing.assert_allclose(both[1].compute(), expected.latent["std"], rtol=1e-9)
        corner = expected.quantile(0.9).isel(x=0, y=0)
        np.testing.assert_allclose(point.compute(), corner, rtol=1e-9)

    def test_another_model_has_another_token(self, model, drawn, widened):
        """What is cached of one is not taken for the other."""
        from dask.base import tokenize

        assert len({tokenize(m) for m in (model, drawn, widened)}) == 3
        assert tokenize(drawn) == tokenize(model.with_uncertainty("laplace"))


class TestOtherData:
    def test_draws_stay(self, model, drawn, sites):
        """Conditioned on more, and on other data, the mixture is the same."""
        new = sites[["metal"]].isel(site=[41, 45]).fillna(1.3)
        more = drawn.condition(new)
        np.testing.assert_array_equal(
            more.uncertainty.members[0].weights, drawn.uncertainty.members[0].weights
        )
        assert more.components[0].conditioned.sample.size == 102
        half = drawn.with_only(sites.isel(site=slice(0, 30)))
        assert len(half.components) == len(drawn.components)

    def test_draws_under_which_a_value_is_impossible_are_left_out(self, sites):
        """The ends of a support differ from draw to draw."""
        fitted = xcopula.fit(sites, "metal", **QUICK | {"marginals": "gev"})
        law = fitted.marginals["metal"]
        away = fitted.theta.copy()
        away[fitted.process.slices[0].start] += np.sign(law.shape) * 1e4
        weights = np.array([0.25, 0.75])
        member = Member(fitted.process, fitted.prepared, np.stack([fitted.theta, away]), weights)
        both = dataclasses.replace(fitted, uncertainty=Uncertainty("laplace", "", (member,)))
        left = both.with_only(sites.isel(site=slice(0, 20))).uncertainty
        np.testing.assert_array_equal(left.members[0].weights, [1.0])
        np.testing.assert_array_equal(left.members[0].thetas, fitted.theta[None])
        gone = Uncertainty("laplace", "", (dataclasses.replace(member, thetas=away[None]),))
        with pytest.raises(ValueError, match="in every draw of the parameters"):
            gone.given(fitted.observations.sample)


class TestChoice:
    def test_what_auto_takes_and_says(self, model, sites):
        """Student's t where parameters are few for the values, draws where they are not."""
        chosen = model.with_uncertainty("auto")
        assert chosen.uncertainty.kind == "t"
        assert "6 parameters); few parameters for so many values" in chosen.summary()
        few = sites.isel(site=slice(0, 25))
        crowded = xcopula.fit(few, "metal", "proxy", uncertainty="auto", **QUICK)
        assert crowded.uncertainty.kind == "laplace"
        assert "; 6 parameters are many for 25 values of metal" in crowded.summary()

    def test_what_auto_does_not_draw(self, sites, monkeypatch):
        """Many values of secondaries take too long; draws of no weight are not worth it."""
        few = sites.isel(site=slice(0, 25))
        crowded = xcopula.fit(few, "metal", "proxy", **PLAIN)
        monkeypatch.setattr(uncertainty, "_FEWEST_DRAWS", 31.0)
        assert "draws of 30 would count" in crowded.with_uncertainty("auto").summary()
        monkeypatch.setattr(uncertainty, "_MOST_DRAWN", 30)
        assert crowded.with_uncertainty("auto").uncertainty.kind == "t"

    def test_neighbours_leave_little_open(self, sites):
        """It costs nothing there."""
        own = xcopula.fit(sites, "metal", solver="neighbours", uncertainty="auto", **QUICK)
        assert own.uncertainty.kind == "plugin"
        assert own.mixture == (1, True)
        assert "parameters are taken for certain; 40 values leave little open" in own.summary()

    def test_too_few_for_anything(self, sites):
        """Six values and six parameters: the reason is said."""
        few = sites.isel(site=slice(0, 6))
        method = Transductive(polish=False)
        own = xcopula.fit(few, "metal", "proxy", uncertainty="auto", **QUICK | {"method": method})
        assert own.uncertainty.kind == "plugin"
        assert "has 6 values and 6 parameters" in own.summary()

    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            ("bayes", ValueError, "Unknown uncertainty 'bayes'. Choose one of auto, plugin, t"),
            (True, TypeError, "`uncertainty` must be one of auto, plugin, t, laplace; found True"),
        ],
    )
    def test_unknown(self, sites, model, given, kind, message):
        """Before any work."""
        with pytest.raises(kind, match=message):
            xcopula.fit(sites, "metal", uncertainty=given, **QUICK)
        with pytest.raises(kind, match=message):
            model.with_uncertainty(given)

    def test_summaries(self, drawn, widened):
        """What intervals count."""
        assert "Student's t with 34 degrees of freedom (40 values of metal, 6" in widened.summary()
        assert "draws of the parameters, as good as" in drawn.summary()

    def test_few_draws_are_said_to_be_few(self, drawn):
        """One that has nearly all weight."""
        few = dataclasses.replace(drawn.uncertainty, effective=1.5)
        found = few.describe(["metal"])[0]
        assert "as good as 1.5 of equal weight; these are FEW, compare with" in found


def test_cross_validation_counts_it(sites):
    """With parameters fitted anew and once."""
    for refit in (True, False):
        found = [
            xcopula.cross_validate(sites, "metal", folds=2, refit=refit, uncertainty=kind, **QUICK)
            for kind in ("plugin", "t")
        ]
        width = [
            float(f["quantiles"].sel(quantile=0.95).sum() - f["quantiles"].sel(quantile=0.05).sum())
            for f in found
        ]
        assert width[1] > 1.02 * width[0]
