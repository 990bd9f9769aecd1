"""The calendars of the corpus are written to a site, and a second run changes nothing."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kalends.imports.operations import apply
from kalends.imports.rules.ical_calendar import read_calendar
from kalends.imports.rules.import_records import ImportedRecord
from kalends.store.change_log import MAX_NEW_RECORDS
from tests.api.running_app import RunningApp
from tests.imports.ical_corpus import FOLDER, NAMES, NOW, read_expected
from tests.imports.site import Subscription

# Titles of markup only, which the API refuses.
REJECTED = {"hostile_texts": 1}
WITH_RECORDS = [name for name in NAMES if read_expected(name).get("records")]


def read_records(name: str) -> list[ImportedRecord]:
    """Return the records of a calendar. Their images are left out, because nothing serves them here."""
    options = {"now": NOW, **read_expected(name)["options"]}
    records = read_calendar((FOLDER / f"{name}.ics").read_bytes(), options).records
    return [
        replace(record, values={key: value for key, value in record.values.items() if key != "image"})
        for record in records
    ]


@pytest.mark.quick("apple_birthdays", "zimbra")
@pytest.mark.parametrize("name", WITH_RECORDS)
def test_calendar_is_written_once(app: RunningApp, name: str) -> None:
    records = read_records(name)
    feed = Subscription.add(app)
    feed.now = datetime.fromisoformat(NOW).astimezone(UTC)
    first = feed.plan(*records)
    feed.apply(first)
    rows = feed.rows(first)
    rejected = [row for row in rows if row["action"] == "rejected"]
    failed = [row for row in rows if row["state"] != "applied" and row not in rejected]
    assert len(rejected) == REJECTED.get(name, 0), [(row["title"], row["reasons"]) for row in rejected]
    assert failed == [], [(row["title"], row["state"], row["reasons"]) for row in failed]
    assert len([row for row in rows if row["kind"] != "categories"]) == len(records)
    second = feed.rows(feed.plan(*records))
    changed = [row for row in second if row["action"] not in ("unchanged", "rejected")]
    assert changed == [], [(row["title"], row["action"], row["changes"]) for row in changed]


def test_rows_of_one_transaction_do_not_share_the_limit_of_new_records(
    app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "MAX_SECONDS", 60.0)
    feed = Subscription.add(app)
    feed.now = datetime.fromisoformat(NOW).astimezone(UTC)
    run = feed.plan(*read_records("long_running_series_known"))
    feed.apply(run)
    assert [(row["title"], row["reasons"]) for row in feed.rows(run) if row["state"] != "applied"] == []
    assert app.sql("SELECT count(*) FROM events")[0][0] > MAX_NEW_RECORDS


def test_email_addresses_of_organizers_need_consent() -> None:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:a@x", "DTSTART:20270501T100000Z"]
    lines += ["SUMMARY:A", "ORGANIZER;CN=Ann:mailto:ann@example.org", "END:VEVENT", "END:VCALENDAR", ""]
    data = "\r\n".join(lines).encode()
    for options, expected in (({}, {}), ({"organizer_emails": True}, {"email": "ann@example.org"})):
        (organizer,) = [row for row in read_calendar(data, options).records if row.kind == "organizers"]
        assert organizer.values == {"organizer": "Ann", **expected}
