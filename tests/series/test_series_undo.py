"""Undoing edits of a series, and restoring it from the trash."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error
from tests.series.series_client import EXTENSION, SeriesClient, strip_revisions


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def state(client: SeriesClient, series_id: int) -> Any:
    """Return the series and its events without what every write changes."""
    series = client.read(series_id)
    return strip_revisions(series), [strip_revisions(event) for event in client.events(series_id)]


EDITS: list[tuple[str, dict[str, Any]]] = [
    ("all", {"title": "Renamed", "cost": "5"}),
    ("following", {"start_date": "20:00", "title": "Later"}),
    ("all", {"rule": "FREQ=WEEKLY;BYDAY=WE,FR;UNTIL=20270601"}),
    ("all", {"rule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;UNTIL=20270503"}),
    ("following", {"rule": "FREQ=MONTHLY;COUNT=3"}),
    ("all", {"status": "draft"}),
]


@pytest.mark.quick("all-fields0", "all-fields5")
@pytest.mark.parametrize(("scope", "fields"), EDITS)
def test_an_undo_restores_everything_and_can_be_undone(
    client: SeriesClient, scope: str, fields: dict[str, Any]
) -> None:
    series = client.create(title="Undo", remove_dates=["2027-02-09"])
    events = client.events(series["id"])
    client.edit(events[5]["id"], "this", title="Own", start_date="2027-02-16 11:00:00")
    before, first = state(client, series["id"]), client.revision(series["id"])
    client.edit(events[2]["id"], scope, options="&overrides=replace", **fields)
    changed, second = state(client, series["id"]), client.revision(series["id"])
    assert changed != before
    client.restore(series["id"], revision=first)
    assert state(client, series["id"]) == before
    client.restore(series["id"], revision=second)
    assert state(client, series["id"]) == changed


def test_several_edits_are_undone_at_once(client: SeriesClient) -> None:
    series = client.create(title="Several")
    events = client.events(series["id"])
    before, revision = state(client, series["id"]), client.revision(series["id"])
    for scope, fields in EDITS[:3]:
        client.edit(client.events(series["id"])[3]["id"], scope, **fields)
    client.caller.delete(f"{EXTENSION}/events/{events[4]['id']}?scope=following")
    dry = client.restore(series["id"], revision=revision, dry_run=True)
    wet = client.restore(series["id"], revision=revision)
    assert {**dry, "dry_run": False} == {key: value for key, value in wet.items() if key != "series"}
    assert state(client, series["id"]) == before


def test_later_changes_of_single_dates_are_conflicts(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Conflict")
    events = client.events(series["id"])
    revision = client.revision(series["id"])
    client.edit(events[0]["id"], "all", title="Renamed")
    client.edit(events[3]["id"], "this", title="Special")
    client.edit(events[4]["id"], "this", cost="7")
    response = editor.post(f"{EXTENSION}/series/{series['id']}/restore", {"revision": revision})
    data = assert_error(response, 409, "series_undo_conflicts")
    assert data["dates"] == [{"event": events[3]["id"], "slot": events[3]["start_date"], "fields": ["title"]}]
    client.restore(series["id"], revision=revision, force=True)
    after = client.events(series["id"])
    assert [event["title"] for event in after[2:5]] == ["Conflict", "Special", "Conflict"]
    assert (after[3]["series"]["own"], after[4]["series"]["own"]) == (["title"], ["cost"])


def test_a_trashed_series_comes_back_with_the_dates_that_went_with_it(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Trashed")
    events = client.events(series["id"])
    editor.delete(f"/events/{events[2]['id']}")
    before = state(client, series["id"])
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    assert client.events(series["id"]) == []
    summary = client.restore(series["id"])
    assert (summary["changed"], summary["created"], summary["trashed"]) == (16, 0, 0)
    assert state(client, series["id"]) == before
    assert_error(
        editor.post(f"{EXTENSION}/series/{series['id']}/restore", {}), 400, "rest_missing_callback_param", "revision"
    )


def test_revisions_that_cannot_be_restored_are_rejected(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Wrong")
    for revision in (client.revision(series["id"]) + 1000, 1):
        response = editor.post(f"{EXTENSION}/series/{series['id']}/restore", {"revision": revision})
        assert_error(response, 400, "rest_invalid_param", "revision")


def test_a_date_of_another_author_prevents_an_undo(client: SeriesClient, author: Caller) -> None:
    own = SeriesClient(author)
    series = own.create(title="Mine")
    events = own.events(series["id"])
    revision = own.revision(series["id"])
    own.edit(events[0]["id"], "all", title="Renamed")
    client.caller.change("events", events[2]["id"], author=client.caller.id)
    response = author.post(f"{EXTENSION}/series/{series['id']}/restore", {"revision": revision})
    assert_error(response, 403, "rest_forbidden")
    assert str(events[2]["id"]) in response.json()["message"]
