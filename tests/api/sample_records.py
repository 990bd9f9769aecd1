"""A record of each kind, as the shared tests write it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

_numbers = count(1)


@dataclass(frozen=True)
class Sample:
    """How a kind is written: `name` is the parameter that names a record, `text` one that is plain text."""

    kind: str
    singular: str
    name_param: str
    text_param: str
    is_post: bool
    required: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def body(self, **extra: Any) -> dict[str, Any]:
        """What creates a record that no other test has made."""
        return {self.name_param: unique(self.singular), **self.required, **extra}

    def form(self, **extra: str) -> dict[str, str]:
        """The same for a form or a query string."""
        return {name: str(value) for name, value in self.body(**extra).items()}


# In a month: inside the two years that a list of events covers by default.
_DAY = (datetime.now(UTC) + timedelta(days=30)).date()
DATES = {"start_date": f"{_DAY} 10:00:00", "end_date": f"{_DAY} 12:00:00"}

SAMPLES = {
    sample.kind: sample
    for sample in (
        Sample("events", "event", "title", "excerpt", is_post=True, required=DATES),
        Sample("venues", "venue", "venue", "phone", is_post=True),
        Sample("organizers", "organizer", "organizer", "phone", is_post=True),
        Sample("categories", "category", "name", "description", is_post=False),
        Sample("tags", "tag", "name", "description", is_post=False),
    )
}
POSTS = [sample for sample in SAMPLES.values() if sample.is_post]
TERMS = [sample for sample in SAMPLES.values() if not sample.is_post]
LINKED = [SAMPLES["venues"], SAMPLES["organizers"]]


def unique(word: str) -> str:
    """A name that is used once, so that tests of one module share a database without meeting."""
    return f"{word.capitalize()} no{next(_numbers)}"


def format_text(sample: Sample, text: str) -> str:
    """How the plain text parameter comes back: an excerpt is shown in a paragraph."""
    return f"<p>{text}</p>" if sample.text_param == "excerpt" and text else text
