"""What each kind of record is: data and pure functions. The order is that of the interface."""

from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES

KINDS: tuple[Kind, ...] = (EVENTS, VENUES, ORGANIZERS, CATEGORIES, TAGS)
BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}
