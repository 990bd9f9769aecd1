"""Record kinds: their parameters, filters, SQL and JSON.

KINDS lists the API's kinds in order. Series are an extension, but have a history like all other kinds.
"""

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.kinds.venues import VENUES

KINDS: tuple[Kind, ...] = (EVENTS, VENUES, ORGANIZERS, CATEGORIES, TAGS)
LOGGED_KINDS: tuple[Kind, ...] = (*KINDS, SERIES)
BY_NAME: dict[str, Kind] = {kind.name: kind for kind in LOGGED_KINDS}
