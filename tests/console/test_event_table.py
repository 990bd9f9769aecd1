"""The table of events: who sees which rows, filters, order, paging and saved filters."""

import time
from collections.abc import Callable

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, set_passwords
from tests.console.event_table_pages import TABLE, Table, days_from_now, list_titles, make_event


@pytest.fixture(scope="module")
def filled(app: RunningApp) -> RunningApp:
    """Return the application with a few events of several authors."""
    editor, author, contributor = (app.caller(role) for role in ("editor", "author", "contributor"))
    venue = editor.create("venues", venue="Town Hall")["id"]
    editor.create("venues", venue="Town Hall Annex")
    editor.create("organizers", organizer="Music Club")
    category = editor.create("categories", name="Concerts")["id"]
    make_event(editor, "Zither concert", 5, venue=[venue], categories=[category], featured=True)
    make_event(editor, "Apple fair", 20, organizer=[{"organizer": "Music Club"}])
    make_event(editor, "Old market", -30)
    make_event(editor, "Editor's draft", 7, status="draft")
    make_event(editor, "Hidden reception", 8, hide_from_listings=True)
    make_event(editor, "Secret dinner", 9, new_password="sesame", venue=[venue])
    make_event(author, "Author's talk", 6)
    make_event(author, "Author's private", 6, status="private")
    make_event(author, "Author's hidden", 6, hide_from_listings=True)
    make_event(contributor, "Submission", 3, status="pending")
    make_event(contributor, "Contributor's draft", 4, status="draft")
    make_event(contributor, "Late submission", -3, status="pending")
    return app


@pytest.fixture(scope="module")
def desk(filled: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(filled, "editor")


@pytest.fixture(scope="module")
def writer(filled: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(filled, "author")


@pytest.fixture(scope="module")
def helper(filled: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(filled, "contributor")


UPCOMING = [
    "Contributor's draft",
    "Zither concert",
    "Author's hidden",
    "Author's private",
    "Author's talk",
    "Editor's draft",
    "Hidden reception",
    "Secret dinner",
    "Apple fair",
]


def test_editor_sees_all_upcoming_events(desk: ConsoleClient) -> None:
    titles = list_titles(desk)
    assert sorted(titles) == sorted([*UPCOMING, "Submission"])
    assert (titles[0], titles[-1]) == ("Submission", "Apple fair")
    assert "10 events" in desk.page(TABLE).text


@pytest.mark.quick("period=past-expected0", "status=draft&page=9-expected15")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("period=past", ["Old market"]),
        ("status=draft", ["Editor's draft", "Contributor's draft"]),
        ("status=pending", ["Late submission", "Submission"]),
        ("search=zither", ["Zither concert"]),
        ("venue=town+hall", ["Zither concert", "Secret dinner"]),
        ("venue=Annex", []),
        ("organizer=music", ["Apple fair"]),
        ("featured=true", ["Zither concert"]),
        ("lacking=venue&status=private", ["Author's private"]),
        ("lacking=image&period=past", ["Old market"]),
        (f"period=range&first={days_from_now(19)}&last={days_from_now(21)}", ["Apple fair"]),
        ("status=publish&sort=title", ["Apple fair", "Author's hidden", "Author's talk", "Hidden reception",
                                       "Secret dinner", "Zither concert"]),
        ("status=draft&sort=changed", ["Contributor's draft", "Editor's draft"]),
        ("status=draft&sort=changed&order=asc", ["Editor's draft", "Contributor's draft"]),
        ("status=nonsense&period=past&sort=x&page=-1&first=2026-13-01&category=999", ["Old market"]),
        ("status=draft&page=9", []),
    ],
)  # fmt: skip
def test_filter(desk: ConsoleClient, query: str, expected: list[str]) -> None:
    titles = list_titles(desk, query)
    shown = [title for title in titles if title not in ("Submission", "Late submission") or "pending" in query]
    assert shown == expected


def test_filter_by_category_and_author(desk: ConsoleClient, filled: RunningApp) -> None:
    category = filled.sql("SELECT id FROM categories WHERE name = 'Concerts'")[0]["id"]
    assert list_titles(desk, f"category={category}") == ["Zither concert"]
    author = filled.users["author"].id
    assert sorted(list_titles(desk, f"author={author}")) == ["Author's hidden", "Author's private", "Author's talk"]


def test_unknown_venue_is_named(desk: ConsoleClient) -> None:
    page = desk.page(f"{TABLE}?venue=Nowhere")
    assert "“Nowhere” was not found." in page.text
    assert "No events match these filters." in page.text


def test_author_sees_own_events_only(writer: ConsoleClient) -> None:
    table = Table.read(writer)
    assert sorted(table.titles) == ["Author's hidden", "Author's private", "Author's talk"]
    assert sorted(table.boxes) == sorted(table.titles)


def test_author_sees_published_events_of_others_read_only(writer: ConsoleClient, desk: ConsoleClient) -> None:
    assert {"Hidden reception", "Editor's draft"} <= set(list_titles(desk))
    table = Table.read(writer, "of=others&period=all")
    assert table.titles == ["Apple fair", "Secret dinner", "Zither concert", "Old market"]
    assert table.boxes == {}
    assert 'name="action"' not in table.html.partition('<form class="bulk"')[2]


@pytest.mark.quick("status=draft", "of=others&status=draft")
@pytest.mark.parametrize(
    "query", ["status=draft", "status=pending", "status=trash", "author=4", "of=others&status=draft"]
)
def test_hidden_events_of_others_never_appear(writer: ConsoleClient, query: str) -> None:
    hidden = {"Editor's draft", "Hidden reception", "Submission", "Contributor's draft", "Late submission"}
    assert not hidden & set(list_titles(writer, f"{query}&period=all"))


def test_protected_event_of_others_shows_title_and_date_only(writer: ConsoleClient, desk: ConsoleClient) -> None:
    assert "Town Hall" in _find_row(desk, "Secret dinner", "period=all")
    row = _find_row(writer, "Secret dinner", "of=others&period=all")
    assert "Town Hall" not in row
    assert "Secret dinner" not in list_titles(writer, "of=others&venue=Town+Hall")


def _find_row(client: ConsoleClient, title: str, query: str) -> str:
    html = Table.read(client, query).html
    return next(row for row in html.split("<tr data-row>") if title in row).partition("</tr>")[0]


def test_contributor_is_offered_review_instead_of_publication(helper: ConsoleClient) -> None:
    table = Table.read(helper)
    assert table.titles == ["Submission", "Contributor's draft"]
    assert 'value="pending"' in table.html
    assert 'name="action" value="publish"' not in table.html


def test_subscriber_may_not_open_the_table(filled: RunningApp) -> None:
    client = ConsoleClient.signed_in(filled, "subscriber")
    assert client.get(TABLE).status_code == 403


def test_row_has_date_in_zone_of_event_and_actions(desk: ConsoleClient, filled: RunningApp) -> None:
    event = make_event(
        filled.caller("editor"), "In Tokyo", start_date="2031-05-03 20:00:00", end_date="2031-05-03 22:00:00",
        timezone="Asia/Tokyo", event_status="cancelled",
    )  # fmt: skip
    row = _find_row(desk, "In Tokyo", "search=tokyo")
    assert "Sat, May 3, 2031" in row
    assert "8:00" in row
    assert "Asia/Tokyo" in row
    assert "Cancelled" in row
    for address in ("", "/history"):
        assert f'href="{TABLE}/{event["id"]}{address}"' in row
    assert f'href="{TABLE}/new?copy={event["id"]}&amp;shift_days=7"' in row
    assert f'href="{TABLE}/new?copy={event["id"]}"' in row
    german = desk.get(f"{TABLE}?search=tokyo&lang=de").text
    assert "Sa., 3. Mai 2031" in german
    filled.caller("editor").trash("events", event["id"])


def test_saved_filter_is_listed_and_deleted(desk: ConsoleClient, writer: ConsoleClient) -> None:
    saved = desk.post(f"{TABLE}/filters", {"name": " Town  drafts ", "query": "status=draft&search=ä&evil=1&page=3"})
    assert saved.headers["location"] == f"{TABLE}?search=%C3%A4&status=draft&notice=filter-saved"
    page = desk.page(TABLE)
    assert 'href="/console/events?search=%C3%A4&amp;status=draft">Town drafts</a>' in page.html
    assert "Town drafts" not in writer.page(TABLE).html
    desk.post(f"{TABLE}/filters/delete", {"name": "Town drafts"})
    assert "Town drafts" not in desk.page(TABLE).html
    assert desk.post(f"{TABLE}/filters", {"name": "", "query": ""}).status_code == 400


def test_empty_site_offers_to_create_the_first_event(start_app: StartApp) -> None:
    app = start_app()
    set_passwords(app)
    page = ConsoleClient.signed_in(app, "editor").page(TABLE)
    assert "Create the first event" in page.text
    assert 'href="/console/events/new"' in page.html


def test_pages_of_many_rows(start_app: StartApp, report: Callable[[object], None]) -> None:
    app = start_app()
    set_passwords(app)
    _add_many_events(app, 620)
    desk = ConsoleClient.signed_in(app, "editor")
    assert len(list_titles(desk)) == 50
    assert len(list_titles(desk, "per_page=100&page=7")) == 20
    table = Table.read(desk, "per_page=500")
    assert len(table.boxes) == 500
    assert "Page 1 of 2" in table.html
    seconds = [_measure_cpu(desk, "per_page=500") for _ in range(5)]
    report(f"500 rows: {min(seconds) * 1000:.0f} ms of CPU time, {len(table.html) // 1000} kB")
    assert min(seconds) < 0.3


def _add_many_events(app: RunningApp, count: int) -> None:
    """Add copies of an event directly to the database; requests would take a minute."""
    editor = app.caller("editor")
    venue, category = (
        editor.create("venues", venue="Town Hall")["id"],
        editor.create("categories", name="Music")["id"],
    )
    event = make_event(editor, "Event", venue=[venue], categories=[category])["id"]
    columns = ", ".join(
        row["name"]
        for row in app.sql(
            """SELECT attname::text AS name FROM pg_attribute WHERE attrelid = 'events'::regclass AND attnum > 0
                AND NOT attisdropped AND attgenerated = ''
                AND attname NOT IN ('id', 'uid', 'slug', 'revision', 'title')"""
        )
    )
    app.sql(
        f"""INSERT INTO events (id, uid, slug, revision, title, {columns})
            SELECT 1000 + n, gen_random_uuid(), 'event-' || n, 1000 + n, 'Event <b>' || n || '</b> &amp; more',
                {columns}
            FROM events, generate_series(2, $2::int) n WHERE id = $1""",
        event,
        count,
    )
    for table, column, linked in (("event_venues", "venue_id", venue), ("event_categories", "category_id", category)):
        app.sql(
            f"""INSERT INTO {table} (site_id, event_id, {column}, position, start_utc, listed, published)
                SELECT site_id, id, $1, 0, start_utc, true, true FROM events WHERE id > 1000""",
            linked,
        )


def _measure_cpu(client: ConsoleClient, query: str) -> float:
    """Return the CPU time of this process during a request, which includes the whole application."""
    before = time.process_time()
    assert client.get(f"{TABLE}?{query}").status_code == 200
    return time.process_time() - before
