"""The kinds of record: their parameters, filters, SQL and JSON.

KINDS has the kinds of the API in its order. Series are an extension, but have a history like every other kind.
"""

from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.series import SERIES
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES

KINDS: tuple[Kind, ...] = (EVENTS, VENUES, ORGANIZERS, CATEGORIES, TAGS)
LOGGED_KINDS: tuple[Kind, ...] = (*KINDS, SERIES)
BY_NAME: dict[str, Kind] = {kind.name: kind for kind in LOGGED_KINDS}
