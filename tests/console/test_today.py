"""The first page of the console: what it counts is what the table shows; its navigation has what a role may open."""

import re

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient
from tests.console.event_table_pages import TABLE, Table, days_from_now, make_event
from tests.proposals.queue_client import list_keys

TALLY = re.compile(r'<li><a href="([^"]*)"><strong>(\d+)</strong> ([^<]*)</a></li>')
SECTIONS = re.compile(r'<nav class="console-sections".*?</nav>', re.DOTALL)
NAMES = {
    "subscriber": [],
    "contributor": ["Today", "Events", "Proposals", "Places", "Library"],
    "editor": ["Today", "Events", "Proposals", "Places", "Library", "Imports"],
    "administrator": ["Today", "Events", "Proposals", "Places", "Library", "Imports", "Settings"],
}


def read_tallies(client: ConsoleClient) -> dict[str, tuple[str, int]]:
    """Return the address and the number of each tally, by name."""
    html = client.page("/console/").html
    return {name: (path.replace("&amp;", "&"), int(number)) for path, number, name in TALLY.findall(html)}


@pytest.fixture(scope="module")
def filled(app: RunningApp) -> RunningApp:
    editor, contributor = app.caller("editor"), app.caller("contributor")
    hall = editor.create("venues", venue="Town Hall")["id"]
    concerts = editor.create("categories", name="Concerts")["id"]
    make_event(editor, "Concert", 5, venue=[hall], categories=[concerts])
    make_event(editor, "Reading", 5, venue=[hall])
    make_event(editor, "Cancelled talk", 5, venue=[hall], event_status="cancelled")
    make_event(editor, "Week at the hall", 4, venue=[hall], end_date=f"{days_from_now(9)} 21:00:00")
    make_event(editor, "Nowhere", 6, categories=[concerts])
    make_event(editor, "Hidden", 7, hide_from_listings=True)
    make_event(editor, "Far away", 40)
    make_event(editor, "Editor's draft", 8, status="draft")
    make_event(contributor, "Submission", 9, status="pending")
    make_event(contributor, "Contributor's draft", -10, status="draft")
    return app


@pytest.mark.parametrize("role", ["editor", "contributor"])
def test_each_number_is_that_of_the_table_it_leads_to(filled: RunningApp, role: str) -> None:
    client = ConsoleClient.signed_in(filled, role)
    tallies = read_tallies(client)
    assert {"My drafts", "Proposals to review" if role == "editor" else "Waiting for review"} <= set(tallies)
    for name, (path, number) in tallies.items():
        if path == "/console/queue":
            assert len(list_keys(client.page(path))) == number
        elif path != "/console/imports":
            assert len(Table.read(client, path.removeprefix(f"{TABLE}?")).titles) == number, name


def test_an_editor_sees_what_is_incomplete(filled: RunningApp) -> None:
    client = ConsoleClient.signed_in(filled, "editor")
    numbers = {name: number for name, (_, number) in read_tallies(client).items()}
    assert numbers["Proposals to review"] == 1
    assert numbers["My drafts"] == 1
    # Concert, Reading, Cancelled talk, Week at the hall, Nowhere, Hidden
    assert (numbers["Without picture"], numbers["Without venue"], numbers["Without category"]) == (6, 2, 4)


def test_double_bookings_leave_out_cancelled_and_long_events(filled: RunningApp) -> None:
    page = ConsoleClient.signed_in(filled, "editor").page("/console/")
    assert page.text.count("Two events at once: Town Hall") == 1
    booking = page.html[page.html.index('class="booking"') :].partition("</div>")[0]
    assert re.findall(r">([^<>]+)</a>", booking) == ["Concert", "Reading"]


def test_changes_by_others_lead_to_the_history(filled: RunningApp) -> None:
    editor, contributor = (ConsoleClient.signed_in(filled, role) for role in ("editor", "contributor"))
    assert "Submission Created · " in editor.page("/console/").text
    assert "Changed by others" not in contributor.page("/console/").text
    submission = filled.sql("SELECT id FROM events WHERE title = 'Submission'")[0]["id"]
    filled.caller("editor").change("events", submission, excerpt="Shorter")
    page = contributor.page("/console/")
    assert "Submission Changed · " in page.text
    assert f"/console/events/{submission}/history" in page.html
    filled.sql("UPDATE changes SET changed_at = changed_at - interval '8 days'")
    assert "Changed by others" not in contributor.page("/console/").text


def test_a_contributor_sees_own_events_only(filled: RunningApp) -> None:
    page = ConsoleClient.signed_in(filled, "contributor").page("/console/")
    assert "Two events at once" not in page.text
    assert "Without picture" not in page.text
    assert "Submission" in page.text.partition("Next events")[2]
    assert "Concert" not in page.text


def test_an_empty_calendar_is_all_done(start_single_site: object) -> None:
    app: RunningApp = start_single_site()  # type: ignore[operator]
    page = ConsoleClient.signed_in(app, "editor").page("/console/")
    assert "All done. Nothing is waiting for you." in page.text
    assert "No upcoming events." in page.text


@pytest.mark.parametrize("role", NAMES)
def test_navigation_has_what_the_role_may_open(filled: RunningApp, role: str) -> None:
    client = ConsoleClient.signed_in(filled, role)
    page = client.page("/console/account")
    navigation = SECTIONS.search(page.html)
    names = re.findall(r'<a href="([^"]+)"[^>]*>([^<\n]+)', navigation[0]) if navigation else []
    assert [name.strip() for _, name in names] == NAMES[role]
    links = set(re.findall(r'<a href="(/console/[^"]*)"', page.html))
    assert [path for path in links if client.get(path).status_code not in (200, 303)] == []


def test_numbers_beside_the_sections(filled: RunningApp) -> None:
    page = ConsoleClient.signed_in(filled, "editor").page("/console/venues")
    navigation = SECTIONS.search(page.html)
    assert navigation is not None
    assert "1 waiting" in navigation[0]
    assert "waiting" not in ConsoleClient.signed_in(filled, "contributor").page("/console/venues").text


@pytest.mark.parametrize(
    ("path", "section", "name"),
    [
        ("/console/events/new", "Events", "All events"),
        ("/console/trash", "Events", "Trash"),
        ("/console/venues/new", "Places", "Venues"),
        ("/console/tags", "Library", "Tags"),
        ("/console/people/new", "Settings", "People"),
        ("/console/settings/appearance", "Settings", "Appearance"),
    ],
)
def test_the_current_section_and_page_are_marked(filled: RunningApp, path: str, section: str, name: str) -> None:
    html = ConsoleClient.signed_in(filled, "administrator").page(path).html
    header, _, rest = html.partition('<nav class="console-pages"')
    assert re.findall(r'aria-current="\w+">([^<\n]+)', header) == [section]
    assert re.findall(r'aria-current="page">([^<\n]+)', rest.partition("</nav>")[0]) == [name]
