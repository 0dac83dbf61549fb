"""Planted bugs: what the simulator must find, each a shipped function that is wrong in one way.

Guards: a checker that finds nothing proves nothing. `BUGS` names them all, `planted` plants one, `search` looks for a
seed that shows it. `clustering` and `filing` have the bugs of the stores; they stand apart, as the first needs
Cassandra's driver.
"""

from __future__ import annotations

from fairway.testing.planted import auditing as auditing
from fairway.testing.planted import batching as batching
from fairway.testing.planted import calling as calling
from fairway.testing.planted import leasing as leasing
from fairway.testing.planted import leaving as leaving
from fairway.testing.planted import naming as naming
from fairway.testing.planted import selecting as selecting
from fairway.testing.planted import serving as serving
from fairway.testing.planted import storing as storing
from fairway.testing.planted import turning as turning
from fairway.testing.planted import windowing as windowing
from fairway.testing.planted.planting import BUGS as BUGS
from fairway.testing.planted.planting import planted as planted
from fairway.testing.planted.searching import Found as Found
from fairway.testing.planted.searching import search as search
