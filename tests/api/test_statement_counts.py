"""A list asks the database the same number of questions for one record as for fifty, and only a few."""

from collections.abc import Callable

import pytest

from tests.api.running_app import Caller, RunningApp
from tests.api.sample_records import DATES

MAX_STATEMENTS = 9
# Each filter that names records looks them up first.
MAX_STATEMENTS_WITH_LOOKUPS = 11


class FilledSite:
    """Databases with one, three and fifty of everything, each event with links of every kind."""

    def __init__(self, app: RunningApp, size: int) -> None:
        self.interface = app
        editor = app.caller("editor")
        self.ids: dict[str, list[int]] = {
            kind: [] for kind in ("events", "venues", "organizers", "categories", "tags")
        }
        for n in range(size):
            parent = {"parent": self.ids["categories"][-1]} if n % 5 else {}
            self.ids["categories"].append(editor.create("categories", name=f"C{n}", **parent)["id"])
            self.ids["tags"].append(editor.create("tags", name=f"T{n}")["id"])
            self.ids["venues"].append(editor.create("venues", venue=f"V{n}", geo_lat=1, geo_lng=1)["id"])
            self.ids["organizers"].append(editor.create("organizers", organizer=f"O{n}")["id"])
        for n in range(size):
            linked = {kind: self.ids[kind][max(0, n - 2) : n + 1] for kind in self.ids if kind != "events"}
            event = editor.create(
                "events", title=f"E{n}", **DATES, categories=linked["categories"], tags=linked["tags"],
                venue=linked["venues"], organizer=linked["organizers"], ticket_url="https://t.example", featured=True,
            )  # fmt: skip
            self.ids["events"].append(event["id"])


@pytest.fixture(scope="module")
def sizes(start_app_for_module: Callable[..., RunningApp]) -> dict[int, FilledSite]:
    # The caches of responses and records are off, so that all statements are counted.
    return {size: FilledSite(start_app_for_module({"KALENDS_CACHE_MB": "0"}), size) for size in (1, 3, 50)}


# Query by kind; {id} is the first record of the kind that is named.
LISTS = {
    "events": "/events",
    "events by start": "/events?start_date=2020-01-01&end_date=2090-01-01&strict_dates=1",
    "events that run": "/events?overlaps_from=2020-01-01&overlaps_to=2090-01-01",
    "events by search": "/events?search=e",
    "events by category": "/events?categories={categories}",
    "events by slug of a category": "/events?categories=c0",
    "events by tag": "/events?tags={tags}",
    "events by venue": "/events?venue={venues}",
    "events by organizer": "/events?organizer={organizers}",
    "events by place": "/events?geoloc_lat=1&geoloc_lng=1&orderby=distance",
    "events by everything": (
        "/events?categories=c0&tags=t0&venue={venues}&organizer={organizers}&search=e&featured=1&ticketed=1"
    ),
    "events by title": "/events?orderby=title&order=desc",
    "events by id": "/events?include={events}",
    "events with a password": "/events?password=x",
    "venues": "/venues",
    "venues of an event": "/venues?event={events}",
    "venues with events": "/venues?has_events=1&only_with_upcoming=1&search=v",
    "organizers": "/organizers",
    "organizers of an event": "/organizers?event={events}",
    "categories": "/categories?hide_empty=0",
    "categories below": "/categories?parent={categories}",
    "categories of an event": "/categories?event={events}",
    "categories by id": "/categories?include={categories}&orderby=include",
    "tags": "/tags?hide_empty=0",
    "tags of an event": "/tags?post={events}",
}


def collect_statements(full: FilledSite, caller: Caller, path: str, statements: list[str]) -> list[str]:
    joiner = "&" if "?" in path else "?"
    target = path.format(**{kind: ids[0] for kind, ids in full.ids.items()}) + f"{joiner}per_page=50"
    for _ in range(2):
        caller.get("/")  # The use of a password is noted after the first answer of an hour.
    statements.clear()
    response = caller.get(target)
    assert response.status_code == 200, response.text
    return list(statements)


@pytest.mark.quick("events-anonymous", "tags of an event-editor")
@pytest.mark.parametrize("role", ["anonymous", "author", "editor"])
@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
def test_list_statement_count_is_independent_of_size(
    sizes: dict[int, FilledSite], statements: list[str], path: str, role: str
) -> None:
    counts = {
        size: len(collect_statements(full, full.interface.caller(role), path, statements))
        for size, full in sizes.items()
    }
    assert len(set(counts.values())) == 1, counts
    maximum = MAX_STATEMENTS_WITH_LOOKUPS if path == LISTS["events by everything"] else MAX_STATEMENTS
    login_statements = int(role != "anonymous")
    assert 0 < counts[50] <= maximum + login_statements, counts


@pytest.mark.quick("/events/{events}", "/tags/{tags}")
@pytest.mark.parametrize("path", ["/events/{events}", "/venues/{venues}", "/categories/{categories}", "/tags/{tags}"])
def test_single_read_needs_few_statements(sizes: dict[int, FilledSite], statements: list[str], path: str) -> None:
    counts = {
        size: len(collect_statements(full, full.interface.caller(), path, statements)) for size, full in sizes.items()
    }
    assert len(set(counts.values())) == 1, counts
    assert 0 < counts[50] <= 5, counts


@pytest.mark.parametrize("path", ["/events.ics", "/events.json"])
def test_feed_statement_count_is_independent_of_size(
    sizes: dict[int, FilledSite], statements: list[str], path: str
) -> None:
    counts: dict[int, int] = {}
    for size, full in sizes.items():
        statements.clear()
        response = full.interface.caller().request("GET", f"/{path}")
        assert response.text.count('"title":"E' if path.endswith("json") else "SUMMARY:E") == size
        counts[size] = len(statements)
    assert len(set(counts.values())) == 1, counts
    assert 0 < counts[50] <= MAX_STATEMENTS, counts


def test_fixture_lists_have_expected_size(sizes: dict[int, FilledSite]) -> None:
    for size, full in sizes.items():
        for kind in ("events", "venues", "organizers", "categories", "tags"):
            assert len(full.interface.caller().ids(kind, hide_empty=0)) == size


# BEGIN, entering the site and COMMIT.
ROUND_TRIPS_OF_TRANSACTION = 3


def test_changed_event_needs_nine_round_trips(start_app: Callable[..., RunningApp], statements: list[str]) -> None:
    editor = start_app().caller("editor")
    venue, tag = editor.create("venues", venue="Hall"), editor.create("tags", name="Jazz")
    event = editor.create("events", title="Concert", venue=venue["id"], tags=[tag["id"]], **DATES)
    statements.clear()
    changed = editor.change("events", event["id"], title="Recital")
    assert len(statements) + ROUND_TRIPS_OF_TRANSACTION == 9, statements
    assert (changed["title"], changed["venue"]["venue"], changed["tags"][0]["name"]) == ("Recital", "Hall", "Jazz")
    # What a change returns is what a read returns, also if links change, or nothing does.
    moved = {"venue": venue["id"], "status": "draft"}
    for values in ({"title": "Talk"}, {"venue": []}, moved, {"title": "Talk"}, {"status": "publish"}):
        changed = editor.change("events", event["id"], **values)
        assert changed.items() <= editor.read("events", event["id"]).items(), values


def test_new_event_removes_no_links(start_app: Callable[..., RunningApp], statements: list[str]) -> None:
    editor = start_app().caller("editor")
    venue, tag = editor.create("venues", venue="Hall"), editor.create("tags", name="Jazz")
    statements.clear()
    editor.create("events", title="Concert", venue=venue["id"], tags=[tag["id"]], **DATES)
    assert [sql for sql in statements if "INSERT INTO event_venues" in sql]
    assert [sql for sql in statements if "DELETE FROM event_" in sql] == []


def test_finding_free_slug_needs_few_statements(start_app: Callable[..., RunningApp], statements: list[str]) -> None:
    app = start_app()
    editor = app.caller("editor")
    editor.create("venues", venue="Same")
    app.sql(
        """INSERT INTO venues (site_id, id, revision, author_id, status, slug, published_at, modified_utc, title)
            SELECT s.id, 1000 + n, -n, $1, 'publish', 'same-' || n, now(), now(), 'Same'
            FROM sites s, generate_series(2, 5000) n""",
        editor.id,
    )
    statements.clear()
    assert editor.create("venues", venue="Same", phone="1")["slug"] == "same-5001"
    assert len(statements) <= 25
