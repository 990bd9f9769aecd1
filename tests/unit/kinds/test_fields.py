"""The rows of fields match the typed records, the parameters and the columns."""

from dataclasses import fields

import pytest

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.rules.column_headers import ORDER
from kalends.calendar.rules.fields import EVENT_FIELDS, ORGANIZER_FIELDS, VENUE_FIELDS, Field
from kalends.calendar.rules.record_types import Event, Organizer, Post, Venue
from kalends.console.field_texts import LABELS
from kalends.console.record_forms import FORMS

TABLES = {
    "events": (EVENT_FIELDS, Event),
    "venues": (VENUE_FIELDS, Venue),
    "organizers": (ORGANIZER_FIELDS, Organizer),
}
# Attributes of events that `build_event` computes, besides those of all posts.
COMPUTED = {
    *("uid", "title", "timezone", "all_day", "start_local", "end_local", "start_utc", "end_utc", "cost_details"),
    *("currency", "categories", "tags", "venues", "organizers", "feed_guid", "series", "is_locked"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_typed_record_has_the_attributes_of_the_rows(kind: str) -> None:
    rows, record = TABLES[kind]
    attributes = {entry.name for entry in fields(record)} - {entry.name for entry in fields(Post)}
    computed = COMPUTED if record is Event else {"name"}
    assert {row.path for row in rows if "." not in row.path} == attributes - computed


@pytest.mark.parametrize("kind", TABLES)
def test_each_row_is_a_parameter_and_a_column(kind: str) -> None:
    names = [row.name for row in TABLES[kind][0]]
    assert len(set(names)) == len(names)
    assert set(names) <= {param.name for param in BY_NAME[kind].fields}
    assert set(names) <= set(BY_NAME[kind].reads.columns.names)
    assert set(names) <= set(BY_NAME[kind].writes.passthrough_columns)
    assert set(names) <= set(LABELS)


@pytest.mark.parametrize("row", [*EVENT_FIELDS, *VENUE_FIELDS, *ORGANIZER_FIELDS], ids=lambda row: row.name)
def test_headers_have_all_languages(row: Field) -> None:
    assert len(row.headers) in (0, len(ORDER))


@pytest.mark.parametrize("kind", ["venues", "organizers"])
def test_form_has_an_input_for_each_row(kind: str) -> None:
    """A row whose group the form does not know would be missing."""
    assert {row.name for row in TABLES[kind][0]} <= {field.name for field in FORMS[kind].fields}
