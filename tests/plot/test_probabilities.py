"""Maps of probabilities that were computed before."""

from __future__ import annotations

import pytest
import xarray as xr

pytest.importorskip("matplotlib")

from xcopula.plot import exceedance_map


def test_as_the_posterior_draws_them(model, grid):
    """From a Dataset the picture has the panels and titles that it has from the posterior."""
    posterior = model.posterior(grid)
    found = xr.merge([posterior.quantile([0.5]), posterior.exceedance([1.0, 2.0])])
    own, other = exceedance_map(found), posterior.plot.exceedance([1.0, 2.0])
    titles = [[ax.get_title("left") for ax in figure.axes] for figure in (own, other)]
    assert titles[0] == titles[1]
    assert [t.partition("\N{NO-BREAK SPACE}")[0] for t in titles[0][:2]] == [
        "Metal in topsoil above 1",
        "Metal in topsoil above 2",
    ]


def test_units_without_the_variable(model, grid):
    """Those of the threshold serve where no quantiles are there."""
    found = model.posterior(grid).exceedance(2.0).to_dataset()
    title = exceedance_map(found, "metal").axes[0].get_title("left")
    assert title.startswith("metal above 2\N{NO-BREAK SPACE}mg")


def test_what_cannot_be_drawn(model, grid):
    """No exceedance, several, or another one."""
    posterior = model.posterior(grid)
    with pytest.raises(TypeError, match="must be a Dataset"):
        exceedance_map(posterior.exceedance(1.0))
    with pytest.raises(ValueError, match="Predict exceedances first"):
        exceedance_map(posterior.quantile([0.5]).to_dataset())
    found = posterior.exceedance(1.0).to_dataset()
    with pytest.raises(ValueError, match=r"No exceedance of 'gold' .* \['metal'\]"):
        exceedance_map(found, "gold")
    with pytest.raises(ValueError, match="several variables"):
        exceedance_map(found.assign(gold_exceedance=found["metal_exceedance"]))
