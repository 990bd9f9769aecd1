"""The kinds of record: their parameters, filters, SQL and JSON. KINDS has the order of the API."""

from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES

KINDS: tuple[Kind, ...] = (EVENTS, VENUES, ORGANIZERS, CATEGORIES, TAGS)
BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}
