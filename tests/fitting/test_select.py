"""The choice of the report, on request: marginals under one kernel, then kernels, by AIC."""

from __future__ import annotations

import numpy as np
import pytest

import xcopula
from xcopula.errors import SupportError
from xcopula.fitting.alone import Alone
from xcopula.fitting.directions import input_groups
from xcopula.fitting.maximise import Fit
from xcopula.fitting.newton import Optimum
from xcopula.fitting.select import (
    Options,
    agree,
    kernel_options,
    marginal_options,
    select,
    tabulate,
)
from xcopula.kernels import KERNELS, Nested
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.observations import observe
from xcopula.marginals import MARGINALS, Gamma, LogNormal, Normal, fit_law, regress
from xcopula.process import Process
from xcopula.solvers import Exact, Neighbours

QUICK = {"method": "full", "anisotropy": False, "uncertainty": "plugin"}
REPORT = ("normal", "lognormal", "exponential", "gev", "gamma", "t", "parzen")
SE, M12, M32 = (KERNELS[name] for name in ("se", "matern12", "matern32"))


@pytest.fixture(scope="module")
def metal(sites):
    """The metal alone."""
    seen = observe(sites, ["metal"])
    return Alone(seen.sample, input_groups(seen), 1, Exact())


def by_hand(alone, kernels, laws):
    """Fit each marginal under the first kernel, then the other kernels under the best."""
    starts = [fit_law(MARGINALS[name], alone.sample.values) for name in laws]
    singles = [alone.fit(KERNELS[kernels[0]], start) for start in starts]
    best = min(singles, key=lambda s: s.aic)
    singles += [alone.fit(KERNELS[k], best.marginal) for k in kernels[1:]]
    return sorted(singles, key=lambda s: s.aic)


class TestOptions:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ("select", tuple(MARGINALS[name] for name in REPORT)),
            (["gamma", "normal"], (Gamma, Normal)),
            (("gamma", LogNormal(0.0, 1.0)), (Gamma, LogNormal(0.0, 1.0))),
            ({"normal", "gamma"}, (Gamma, Normal)),
            ("gamma", None),
            ("auto", None),
            (Gamma(), None),
        ],
    )
    def test_marginals(self, spec, expected):
        """A list keeps its order, a set has one of its own; one name is no selection."""
        found = marginal_options(spec)
        assert found == (None if expected is None else Options(expected))

    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ("auto", None),
            ("se", SE),
            (["matern32", "matern12"], Nested((M32, M12))),
            ("select", Options((M12, *(k for k in KERNELS.values() if k != M12)))),
            ({"se", "matern12"}, Options((M12, SE))),
            (frozenset({"se"}), Options((SE,))),
        ],
    )
    def test_kernels(self, spec, expected):
        """A list has a kernel for each structure; a set is selected from."""
        assert kernel_options(spec) == expected

    @pytest.mark.parametrize(
        ("call", "spec", "error", "match"),
        [
            (marginal_options, ["zz"], ValueError, "Unknown marginal 'zz'.*'normal'.*'parzen'"),
            (marginal_options, [], ValueError, "at least one name to select from"),
            (marginal_options, [3], TypeError, "A marginal is"),
            (marginal_options, [regress("normal", on="h")], TypeError, r"fields: \['normal ~ h'\]"),
            (kernel_options, {"zz"}, ValueError, "Unknown kernel 'zz'.*'se'.*'matern32'"),
            (kernel_options, set(), ValueError, "at least one name to select from"),
        ],
    )
    def test_refusals(self, call, spec, error, match):
        """Unknown names list what there is."""
        with pytest.raises(error, match=match):
            call(spec)


class TestSelect:
    @pytest.mark.parametrize(
        ("kernels", "laws"),
        [
            (["matern32"], ["normal", "lognormal", "gamma"]),
            (["se", "matern12", "matern32"], ["normal", "lognormal"]),
            (["matern12", "se"], ["gev"]),
        ],
    )
    def test_is_the_best_of_all(self, sites, metal, kernels, laws):
        """Against fits of each alternative: the table, and the model's marginal and kernel."""
        expected = by_hand(metal, kernels, laws)
        options = QUICK | {"marginals": laws, "kernels": "select"}
        tried = [KERNELS[k] for k in kernels]
        found = select(
            metal,
            tried,
            [MARGINALS[name] for name in laws],
            lambda law: fit_law(law, metal.sample.values),
        )
        assert [s.aic for s in found] == pytest.approx([s.aic for s in expected], abs=1e-9)
        assert [(s.kernel, s.marginal.name) for s in found] == [
            (s.kernel, s.marginal.name) for s in expected
        ]
        options |= {"kernels": set(kernels)} if len(kernels) > 1 else {"kernels": kernels[0]}
        model = xcopula.fit(sites, "metal", **options)
        table = model.selection
        assert table.sizes == {"alternative": len(kernels) + len(laws) - 1}
        assert model.marginals["metal"].name == table["marginal"].values[0]
        assert str(model.parameters["kernel"].values[0]) == table["kernel"].values[0]
        assert table["selected"].values.tolist() == [True] + [False] * (len(found) - 1)
        assert (np.diff(table["aic"]) >= 0.0).all()

    def test_of_the_report(self, sites):
        """Seven marginals and four kernels: ten fits; the metal was drawn log-normal."""
        model = xcopula.fit(sites, "metal", marginals="select", kernels="select", **QUICK)
        table = model.selection
        assert table.sizes == {"alternative": 10}
        assert set(table["marginal"].values) == set(REPORT)
        assert set(table["kernel"].values) == set(KERNELS)
        under_first = table.where(table["kernel"] == "matern12", drop=True)
        best = dict(zip(under_first["marginal"].values, under_first["aic"].values, strict=True))
        assert best["lognormal"] < best["normal"]

    def test_laws_that_do_not_admit_the_values(self, sites):
        """They are passed over, and are in no table."""
        data = sites.assign(metal=sites["metal"] - float(sites["metal"].min()))
        options = QUICK | {"kernels": "se"}
        model = xcopula.fit(data, "metal", marginals="select", **options)
        assert set(model.selection["marginal"].values) == {"normal", "gev", "t", "parzen"}
        with pytest.raises(SupportError, match="'metal': lognormal needs positive values: 1 of 40"):
            xcopula.fit(data, "metal", marginals=["lognormal", "gamma"], **options)

    def test_all_have_the_default_support(self, sites):
        """Zeros are values at or below zero for all marginals, if the default one is among them."""
        data = sites.assign(metal=sites["metal"].where(sites["metal"] > 1.2, 0.0))
        data = data.assign(metal=data["metal"].where(np.arange(60) < 40))
        laws = ["normal", "flexible", "gamma"]
        model = xcopula.fit(data, "metal", marginals=laws, kernels={"se", "matern12"}, **QUICK)
        names = {"normal censored at 0", "flexible censored at 0"}
        assert set(model.selection["marginal"].values) == names
        model = xcopula.fit(data, "metal", kernels={"se", "matern12"}, **QUICK)
        assert set(model.selection["marginal"].values) == {"flexible censored at 0"}

    def test_on_a_part_of_the_terms(self, monkeypatch):
        """All alternatives have the terms of the first."""
        monkeypatch.setattr("xcopula.fitting.alone.TERMS_ALONE", 60)
        rng = np.random.default_rng(0)
        places = rng.uniform(size=(200, 2))
        values = np.exp(np.sin(6.0 * places).sum(axis=1) + 0.3 * rng.normal(size=200))
        sample = xcopula.process.Sample.of([places], [values])
        alone = Alone(sample, (InputGroup(2),), 1, Neighbours(6))
        laws = [Normal, LogNormal]
        found = select(alone, [SE, M12], laws, lambda law: law.fit(values))
        first = alone.fit(SE, Normal.fit(values))
        part = alone.part(first.process, first.theta)
        for single in found:
            nll, _ = part.objective(single.process, single.theta)
            assert single.log_likelihood == pytest.approx(-nll, abs=0.05)


class TestAgree:
    """One kernel for all variables, where the coupling shares it."""

    @staticmethod
    def table(**aics):
        """Alternatives of one variable by kernel, with this AIC."""
        theta, singles = np.zeros(4), []
        end = Optimum(theta, 0.0, True, "", 1)
        for name, aic in aics.items():
            process = Process(Covariance((KERNELS[name],), (InputGroup(2),)), (Normal(),))
            singles.append(Fit(process, theta, 4.0 - 0.5 * aic, end, theta))
        assert [s.aic for s in singles] == pytest.approx(list(aics.values()))
        return sorted(singles, key=lambda s: s.aic)

    def test_the_best_for_all_of_them(self):
        tables = [self.table(se=10.0, matern12=11.0), self.table(se=30.0, matern12=20.0)]
        assert [s.kernel for s in agree(tables, shared=False)] == [SE, M12]
        assert [s.kernel for s in agree(tables, shared=True)] == [M12, M12]

    def test_kernels_that_all_have(self):
        tables = [self.table(se=1.0, matern12=11.0), self.table(matern12=20.0, matern32=5.0)]
        assert [s.kernel for s in agree(tables, shared=True)] == [M12, M12]

    def test_the_table_says_which(self):
        tables = [self.table(se=10.0, matern12=11.0), self.table(se=30.0, matern12=20.0)]
        rows = tabulate(["a", "b"], tables, agree(tables, shared=True))
        assert [(r.variable, r.kernel, r.selected) for r in rows] == [
            ("a", "se", False),
            ("a", "matern12", True),
            ("b", "matern12", True),
            ("b", "se", False),
        ]

    def test_in_a_fit(self, sites):
        options = QUICK | {"marginals": {"metal": "lognormal", "proxy": "normal"}}
        options |= {"kernels": {"se", "matern12"}, "coupling": "icm"}
        model = xcopula.fit(sites, "metal", "proxy", **options)
        kernels = set(model.parameters["kernel"].values.tolist())
        assert len(kernels) == 1
        table = model.selection
        assert set(table["kernel"].values[table["selected"].values]) == kernels
        total = {
            k: float(table["aic"].where(table["kernel"] == k).sum()) for k in ("se", "matern12")
        }
        assert kernels == {min(total, key=total.get)}


def test_a_shared_kernel_that_one_variable_has(sites):
    """A coupling that shares kernels takes the one that all variables may have."""
    options = QUICK | {"kernels": {"metal": {"se", "matern12"}, "proxy": "matern12"}}
    model = xcopula.fit(sites, "metal", ["proxy"], coupling="icm", **options)
    assert model.parameters["kernel"].values.tolist() == ["matern12", "matern12"]
