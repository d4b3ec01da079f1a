"""Which coordinates are the inputs of a model, and how labelled coordinates become columns.

Coordinates are found by CF role (through cf_xarray) or named by ``coords=``. A *group* of them
shares one distance; the covariance is a product over groups. Every column is centred and scaled
once, so that the array core always sees inputs of about unit extent.
"""

from __future__ import annotations

from xcopula.labels.coordinates.asked import Coords, coordinates_asked
from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.cycles import Recurring, cycle
from xcopula.labels.coordinates.discovery import find_coordinates
from xcopula.labels.coordinates.extent import Extent
from xcopula.labels.coordinates.groups import CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.projection import Projection, find_projection
from xcopula.labels.coordinates.roles import coordinates_of
from xcopula.labels.coordinates.system import CoordinateSystem

__all__ = [
    "Axis",
    "CoordinateGroup",
    "CoordinateSystem",
    "Coords",
    "Cycle",
    "Extent",
    "Globe",
    "Projection",
    "Recurring",
    "coordinates_asked",
    "coordinates_of",
    "cycle",
    "find_coordinates",
    "find_projection",
]
