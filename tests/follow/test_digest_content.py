"""What a digest says, as the events of a list change."""

from datetime import timedelta
from typing import Any

import pytest

from kalends.core.messages import LANGUAGES
from kalends.follow.mails.digest_formats import to_html, to_markdown, to_text
from kalends.follow.mails.digest_model import DigestModel, Reader, make_digest
from kalends.follow.operations.digest_content import DigestContent
from kalends.follow.rules.slots import Slot
from kalends.store.database import Transaction
from tests.api.running_app import RunningApp
from tests.follow.follow_client import (
    BASE_URL,
    NOW,
    add_event,
    find_revision,
    in_days,
    make_times,
    open_following,
    read_content,
)


@pytest.fixture
def app(start_app: Any) -> RunningApp:
    return open_following(start_app())


def describe(app: RunningApp, content: DigestContent, language: str = "en", query: str = "") -> DigestModel:
    slot = Slot(NOW, NOW + timedelta(days=7))

    async def make(tx: Transaction) -> DigestModel:
        return make_digest(content, query, slot, Reader.make(tx.site, language, BASE_URL))

    return app.run_operation(make)


def titles(events: Any) -> list[str]:
    return [event.title for event in events]


def test_coming_events_are_those_of_the_window(app: RunningApp) -> None:
    for title, days in (("Over", -1), ("Soon", 1), ("Later", 6), ("After", 8)):
        add_event(app, title, days)
    add_event(app, "Running", -2, end_date=f"{in_days(3):%Y-%m-%d %H:%M}")
    add_event(app, "Draft", 2, status="draft")
    content = read_content(app)
    assert titles(content.coming) == ["Running", "Soon", "Later"]
    assert (content.coming_more, content.news.changes, content.news.new) == (0, (), ())
    assert read_content(app, days=1).is_empty is False


def test_lists_have_their_filters(app: RunningApp) -> None:
    music = app.caller("editor").create("categories", name="Music")
    add_event(app, "Concert", categories=[music["id"]])
    add_event(app, "Market")
    assert titles(read_content(app, f"categories={music['id']}").coming) == ["Concert"]
    assert titles(read_content(app, "search=market").coming) == ["Market"]
    assert read_content(app, "search=opera").is_empty


def test_series_appear_once(app: RunningApp) -> None:
    fields = {"title": "Yoga", **make_times(in_days(1)), "rule": "FREQ=DAILY;COUNT=20"}
    response = app.caller("editor").post("//api/kalends/v1/series", fields)
    assert response.status_code == 201, response.text
    assert titles(read_content(app).coming) == ["Yoga"]


def test_net_changes_since_the_last_email(app: RunningApp) -> None:
    editor = app.caller("editor")
    moved, cancelled, twice, back = (add_event(app, name)["id"] for name in ("Moved", "Cancelled", "Twice", "Back"))
    since = find_revision(app)
    editor.change("events", moved, **make_times(in_days(3)))
    editor.change("events", cancelled, event_status="cancelled", status_reason="The singer is ill.")
    editor.change("events", twice, **make_times(in_days(4)))
    editor.change("events", twice, **make_times(in_days(5)))
    editor.change("events", back, **make_times(in_days(5)))
    editor.change("events", back, **make_times(in_days(2)))
    editor.change("events", back, description="Another text")
    content = read_content(app, since=since)
    assert [(change.event.title, change.kinds) for change in content.news.changes] == [
        ("Cancelled", ("cancelled",)),
        ("Moved", ("new_time",)),
        ("Twice", ("new_time",)),
    ]
    text = to_text(describe(app, content))
    assert "The singer is ill." in text
    assert "before: " in text
    assert read_content(app, since=find_revision(app)).news.changes == ()


def test_new_events_after_the_window_are_announced_once(app: RunningApp) -> None:
    add_event(app, "Known", 30)
    since = find_revision(app)
    add_event(app, "Far", 30)
    add_event(app, "Near", 3)
    draft = add_event(app, "Published later", 31, status="draft")
    app.caller("editor").change("events", draft["id"], status="publish")
    content = read_content(app, since=since)
    assert (titles(content.coming), titles(content.news.new)) == (["Near"], ["Far", "Published later"])
    assert content.news.changes == ()


def test_withdrawn_events_are_named_without_title(app: RunningApp) -> None:
    editor = app.caller("editor")
    secret = add_event(app, "Secret title", 3)
    never = add_event(app, "Never public", 3, status="draft")
    since = find_revision(app)
    editor.trash("events", secret["id"])
    editor.trash("events", never["id"])
    content = read_content(app, since=since)
    assert len(content.news.withdrawn) == 1
    digest = describe(app, content)
    text = to_text(digest)
    assert "no longer in the calendar" in text
    assert "Secret" not in text + to_html(digest) + to_markdown(digest)


def test_old_revisions_have_only_coming_events(app: RunningApp) -> None:
    event = add_event(app, "Moved")
    since = find_revision(app)
    app.caller("editor").change("events", event["id"], **make_times(in_days(3)))
    app.sql(
        "UPDATE sites SET trimmed_revision = $1 WHERE id = $2", since + 1, app.site_id
    ) if not app._is_confined else None
    assert len(read_content(app, since=since).news.changes) in (0, 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_formats_in_every_language(app: RunningApp, language: str) -> None:
    add_event(
        app, "Songs <b>&amp; dances</b> [live] *now*", venue={"venue": f"Old mill {language}", "city": "Larkford"}
    )
    add_event(app, "All day", 3, all_day=True)
    digest = describe(app, read_content(app), language)
    text, markdown, html = to_text(digest), to_markdown(digest), to_html(digest)
    for shown in (text, markdown, html):
        assert "{" not in shown.partition("</style>")[2 if shown is html else 0]
    assert "Songs & dances [live] *now*" in text
    assert r"Songs & dances \[live\] \*now\*" in markdown
    assert "Songs &amp; dances [live] *now*" in html
    assert f'<html lang="{language}">' in html
    assert "<img" not in html
    assert (f"?lang={language}" in text) is (language != "en")
    assert "/event/songs-dances-live-now/" in text
