"""Plan with a fitted model: where to measure next, and what is worth measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from xcopula.arguments import check_methods
from xcopula.model.design import design
from xcopula.model.worth import worth
from xcopula.prediction.layout import Target
from xcopula.prediction.thresholds import Threshold

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["Planning"]


@check_methods
class Planning:
    """What a fitted model says about measurements that are not made yet, or could be spared."""

    def design(  # type: ignore[misc]  # of the one class that it is a part of
        self: CopulaModel,
        candidates: Target,
        k: int,
        target: Target | None = None,
        *,
        variable: str | None = None,
        measure: str | None = None,
        threshold: Threshold | None = None,
        weights: xr.DataArray | None = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Choose where to measure next: the k sites that tell most about a map.

        Sites are chosen one after the other. Each is the one that, given those before it, leaves
        the least mean variance of the map, or the fewest wrong decisions at a threshold. No value
        is needed for that: how much a measurement narrows the map does not depend on what will be
        found. Parameters stay as they are.

        Parameters
        ----------
        candidates : Dataset, DataArray or DataFrame
            Where something could be measured: the model's coordinates, as on a target of
            :meth:`predict`. Fields of laws are not needed.
        k : int
            How many sites to choose.
        target : Dataset, DataArray or DataFrame, optional
            The map that is to become better, as in :meth:`predict`. The candidates by default.
        variable : str, optional
            The variable that is mapped; the primary by default.
        measure : str, optional
            The variable that will be measured; the one that is mapped by default.
        threshold : float or DataArray, optional
            Choose by the decision whether a cell lies above it, in the variable's units; one
            number, or one for each cell. Cells where it is NaN do not count.
        weights : DataArray, optional
            How much each cell counts, on dims of the target: zero or more.
        of : {"observation", "signal"}
            What is mapped, as in :meth:`posterior`. The nugget of an observation can be told by
            measuring at that very cell only.
        mask : str or DataArray, optional
            Boolean, on the target: False cells do not count. Where the candidates are the target,
            they are no candidates either.

        Returns
        -------
        Dataset
            Along dim ``choice``, the first site first: ``candidate``, its position among the
            candidates (of a grid counted row by row), its coordinates as ``site_x``, ``site_y``
            and so on, the ``criterion`` after it was measured, and its ``gain``, by which the
            criterion has become less. ``criterion_before`` is that of the model as it is. Maps on
            the target: ``variance_before`` and ``variance_after``, latent; with a threshold also
            ``misclassification_before`` and ``misclassification_after``: the probability that the
            decision of a cell is wrong, and what it is expected to be.

        Raises
        ------
        KeyError
            If the model has no such variable.
        CoordinateError
            If candidates or target lack a coordinate, or a candidate has one that is NaN.
        ValueError
            If ``k`` is not between one and the number of candidates; if the variable is known at
            a candidate, or two candidates are one site; if weights are negative, all zero or on
            other cells; if the threshold has other units, or is not one number.
        CostError
            If candidates times cells are more numbers than there is memory for.

        Notes
        -----
        It goes by the one Gaussian process of all variables at the model's parameters. With
        ``method="full"``, and with one secondary, the map before is that of :meth:`posterior`.
        A transductive model of several secondaries, a sparse one or a committee differs a little
        from it.
        """
        return design(
            self,
            candidates,
            k,
            target,
            variable=variable,
            measure=measure,
            threshold=threshold,
            weights=weights,
            of=of,
            mask=mask,
        )

    def worth(  # type: ignore[misc]
        self: CopulaModel,
        target: Target,
        *,
        variable: str | None = None,
        threshold: Threshold | None = None,
        network: str | None = None,
        weights: xr.DataArray | None = None,
        of: str = "observation",
        mask: str | xr.DataArray | None = None,
    ) -> xr.Dataset:
        """Tell what each other variable is worth to a map: what the map would be without it.

        Its values are taken away, one variable or network at a time. Nothing is fitted anew, so
        the numbers tell what the values add, not what they taught the parameters.

        Parameters
        ----------
        target : Dataset, DataArray or DataFrame
            The map, as in :meth:`predict`.
        variable : str, optional
            The variable that is mapped; the primary by default.
        threshold : float or DataArray, optional
            Also tell of decisions whether a cell lies above it; see :meth:`design`.
        network : str, optional
            A coordinate of the observations, such as the owner of each station. Its groups are
            switched off in place of variables: all values of every variable that have the name.
            Values without a name always stay.
        weights : DataArray, optional
            How much each cell counts, on dims of the target: zero or more.
        of, mask
            As in :meth:`posterior`.

        Returns
        -------
        Dataset
            Along dim ``variable``, or ``network``: ``latent_std_without``, the mean latent
            standard deviation, and ``width_without``, the mean width of the 90 % intervals in the
            variable's units; beside each, without a dim, what it is with everything. With a
            threshold also ``misclassification_without``, the expected share of wrong decisions,
            and ``changed``, the share of cells with another decision. ``values`` counts what was
            switched off.

        Raises
        ------
        KeyError
            If the model has no such variable, or its observations no such coordinate.
        ValueError
            If nothing can be switched off; as in :meth:`design` otherwise.

        Notes
        -----
        As in :meth:`design` it goes by the one Gaussian process of all variables.
        """
        return worth(
            self,
            target,
            variable=variable,
            threshold=threshold,
            network=network,
            weights=weights,
            of=of,
            mask=mask,
        )
