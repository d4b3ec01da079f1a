"""Entries of theta in words."""

from __future__ import annotations

import pytest

import xcopula
from xcopula.model.naming import parameter_names
from xcopula.process import Process


def named(model, **changes) -> list[str]:
    """Return the names of a model's parameters."""
    groups = [g.name for g in model.coordinates.groups]
    return parameter_names(model.process, model.tasks, groups)


def test_two_variables(model):
    """Each has a name that a user knows it by, in the order of theta."""
    assert named(model) == [
        "length scale of 'metal' in space",
        "length scale of 'proxy' in space",
        "share of the nugget of 'metal'",
        "share of the nugget of 'proxy'",
        "correlation of 'metal' and 'proxy'",
        "correlation of the nuggets of 'metal' and 'proxy'",
        "location of the lognormal law of 'metal'",
        "scale of the lognormal law of 'metal'",
        "location of the normal law of 'proxy'",
        "scale of the normal law of 'proxy'",
    ]


def test_structures_and_scales_of_their_own(sites):
    """Structures are counted from one; a block without words keeps its name."""
    options = {"marginals": "parzen", "kernels": "matern32", "restarts": 0, "method": "full"}
    model = xcopula.fit(sites, "metal", structures=2, ard=True, **options)
    found = named(model)
    assert len(found) == model.theta.size == len(set(found))
    assert "length scale of 'metal' in space (structure 2)" in found
    assert "scaling 1" in found


@pytest.mark.parametrize("coupling", ["icm", "lmc"])
def test_shared_kernels(model, coupling):
    """One length scale is that of all variables."""
    import dataclasses

    shared = dataclasses.replace(model.process.covariance, coupling=coupling)
    found = parameter_names(Process(shared, model.process.marginals), model.tasks, ["space"])
    assert found[0] == "length scale of all variables in space"
    assert found[1] == "share of the nugget of 'metal'"
