"""Lists of events: every filter but the dates, what is never listed, orders and cursors (behaviour 8.4)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json


class Calendar:
    """A few events in a database of their own, by a letter each; all in January 2027."""

    def __init__(self, app: RunningApp) -> None:
        self.interface = app
        self.editor, self.anonymous = app.caller("editor"), app.caller()
        editor = self.editor
        self.music = editor.create("categories", name="Music")["id"]
        self.rock = editor.create("categories", name="Rock", parent=self.music)["id"]
        self.art = editor.create("categories", name="Fine Art")["id"]
        self.red, self.blue = (editor.create("tags", name=name)["id"] for name in ("Red", "Blue"))
        self.hall = editor.create("venues", venue="Hall", geo_lat=48.8566, geo_lng=2.3522)["id"]
        self.far_venue = editor.create("venues", venue="Far", geo_lat=52.52, geo_lng=13.405)["id"]
        self.venue_without_location = editor.create("venues", venue="Bare")["id"]
        self.olga, self.pete = (editor.create("organizers", organizer=name)["id"] for name in ("Olga", "Pete"))
        self.events: dict[str, int] = {}
        self.add("a", "10", title="Alpha concert", description="Loud music needle1", categories=[self.music],
        tags=[self.red],
                 venue=self.hall, organizer=[self.olga], featured=True)  # fmt: skip
        self.add("b", "11", title="Bravo night", description="needle1 and needle2", categories=[self.rock],
                 tags=[self.red, self.blue], venue=self.far_venue, organizer=[self.olga, self.pete])  # fmt: skip
        self.add(
            "c",
            "12",
            title="Charlie 100%",
            excerpt="<b>needle3</b> in excerpt",
            categories=[self.art],
            venue=self.venue_without_location,
        )
        self.add(
            "d", "13", title="Delta", ticket_url="https://t.example", venue=[self.venue_without_location, self.hall]
        )
        self.add("e", "14", title="Écho", date="2020-01-01 00:00:00")
        self.add("h", "15", title="Hidden needle1", hide_from_listings=True, categories=[self.music], featured=True)
        self.add(
            "x",
            "16",
            title="Draft needle1",
            status="draft",
            venue=self.hall,
            author=app.users["contributor"].id,
        )
        self.add("p", "17", title="Private", status="private", categories=[self.music])
        self.add("t", "18", title="Trashed", tags=[self.red])
        editor.trash("events", self.events["t"])
        self.add("o", "01", title="Old", start_date="2019-01-01", end_date="2019-01-02")

    def add(self, letter: str, day: str, **fields: Any) -> None:
        dates = {"start_date": f"2027-01-{day} 10:00", "end_date": f"2027-01-{day} 12:00"}
        self.events[letter] = self.editor.create("events", **{**dates, **fields})["id"]

    def search(self, caller: Caller | None = None, **query: Any) -> str:
        """The letters of a list, in its order."""
        letters = {number: letter for letter, number in self.events.items()}
        dates = {} if "include" in query else {"start_date": "2026-12-01", "end_date": "2027-12-31"}
        return "".join(letters[number] for number in (caller or self.anonymous).ids("events", **{**dates, **query}))

    def id_list(self, letters: str) -> str:
        return ",".join(str(self.events[letter]) for letter in letters)


@pytest.fixture(scope="module")
def calendar(start_app_for_module: Callable[..., RunningApp]) -> Calendar:
    return Calendar(start_app_for_module())


def test_list_is_ordered_by_start_without_hidden_events(calendar: Calendar) -> None:
    assert calendar.search() == "abcde"
    assert calendar.search(calendar.editor) == "abcdexp"
    assert calendar.search(calendar.interface.caller("contributor")) == "abcdex"


@pytest.mark.quick("needle1-ab", "Loud\\tmusic-a")
@pytest.mark.parametrize(
    ("words", "letters"),
    [
        ("needle1", "ab"), ("NEEDLE1 needle2", "b"), ("needle1 -bravo", "a"), ('"needle1 and"', "b"),
        ("concert loud", "a"),
        ("needle3", "c"), ("echo", "e"), ("écho", "e"), ("100%", "c"), ("%", "c"), ("_", ""), ("hall", ""),
        ("<b>", ""),
        ("eedl", "abc"), ("-needle1", "cde"), ("Loud\tmusic", "a"),
    ],
)  # fmt: skip
def test_search_finds_words_phrases_and_exclusions(calendar: Calendar, words: str, letters: str) -> None:
    assert calendar.search(search=words) == letters


def test_search_index_follows_text_changes(calendar: Calendar) -> None:
    calendar.editor.change("events", calendar.events["e"], description="fresh words", excerpt="")
    assert calendar.search(search="fresh") == "e"
    calendar.editor.change("events", calendar.events["e"], description="")
    assert (calendar.search(search="fresh"), calendar.search(search="echo")) == ("", "e")


@pytest.mark.quick("music-ab", "{art},music-abc")
@pytest.mark.parametrize(
    ("categories", "letters"),
    [("music", "ab"), ("MUSIC", "ab"), ("rock", "b"), ("rock,fine-art", "bc"), ("{music}", "ab"),
    ("{rock},{art}", "bc"), ("{art},music", "abc")],
)  # fmt: skip
def test_category_filter_includes_descendants(calendar: Calendar, categories: str, letters: str) -> None:
    assert calendar.search(categories=categories.format(**vars(calendar))) == letters
    assert calendar.search(**{"categories[]": categories.format(**vars(calendar)).split(",")}) == letters


def test_terms_are_found_by_unique_names(calendar: Calendar) -> None:
    editor, events = calendar.editor, calendar.events
    fun = editor.create("categories", name="Culture & Fun", slug="fun")["id"]
    editor.change("events", events["c"], categories=[calendar.art, fun])
    blues = editor.create("tags", name="R&B", slug="blues")["id"]
    editor.change("events", events["b"], tags=[calendar.red, calendar.blue, blues])
    for name in ("Culture & Fun", "culture  & FUN", "Culture &amp; Fun"):
        assert calendar.search(categories=name) == "c"
    assert calendar.search(categories=f"Culture & Fun,{fun},rock") == "bc"
    assert calendar.search(tags="R&B") == "b"
    # A slug takes precedence.
    editor.create("categories", name="fun")
    assert calendar.search(categories="fun") == "c"
    # A name that two terms have is ambiguous.
    editor.create("categories", name="Culture & Fun", parent=calendar.music)
    for name, wrong in (("categories", "Culture & Fun"), ("categories", "Culture"), ("tags", "R\0B")):
        assert_error(calendar.anonymous.get("/events", {name: wrong}), 400, "rest_invalid_param", name)


def test_tag_and_category_filters_combine(calendar: Calendar) -> None:
    assert calendar.search(tags="red") == "ab"
    assert calendar.search(tags=calendar.blue) == "b"
    assert calendar.search(tags="red,blue") == "ab"
    assert calendar.search(tags="red", categories="rock") == "b"
    assert calendar.search(tags="blue", categories="fine-art") == ""


def test_venue_and_organizer_filters(calendar: Calendar) -> None:
    assert calendar.search(venue=calendar.hall) == "ad"
    assert calendar.search(calendar.editor, venue=calendar.hall) == "adx"
    assert calendar.search(venue=f"{calendar.far_venue},{calendar.venue_without_location}") == "bcd"
    assert calendar.search(organizer=calendar.olga) == "ab"
    assert calendar.search(organizer=calendar.olga, venue=calendar.far_venue) == "b"
    assert calendar.search(organizer=f"{calendar.pete}", venue=calendar.hall) == ""


@pytest.mark.quick("-categories", "-1-organizer")
@pytest.mark.parametrize("name", ["categories", "tags", "venue", "organizer"])
@pytest.mark.parametrize("wrong", ["", "0", "999999", "none-such", ",", "-1"])
def test_filters_by_unknown_records_are_rejected(calendar: Calendar, name: str, wrong: str) -> None:
    assert_error(calendar.anonymous.get("/events", {name: wrong}), 400, "rest_invalid_param", name)


def test_boolean_filters(calendar: Calendar) -> None:
    assert calendar.search(featured="true") == calendar.search(featured="1") == "a"
    assert calendar.search(featured="no") == "bcde"
    assert calendar.search(ticketed="true") == "d"
    assert calendar.search(ticketed="false") == "abcde"
    assert calendar.search(geoloc="true") == "abd"
    assert calendar.search(geoloc="false") == "abcde"
    for letter, cost in (("a", "0"), ("b", "Free"), ("c", "12"), ("d", "0 - 5")):
        calendar.editor.change("events", calendar.events[letter], cost=cost)
    assert calendar.search(free="true") == "ab"
    assert calendar.search(free="false") == "cde"
    for name in ("featured", "ticketed", "geoloc", "free"):
        for wrong in ("", "maybe"):
            assert_error(calendar.anonymous.get("/events", {name: wrong}), 400, "rest_invalid_param", name)


def test_distance_filter(calendar: Calendar) -> None:
    paris, berlin = {"geoloc_lat": 48.85, "geoloc_lng": 2.35}, {"geoloc_lat": 52.5, "geoloc_lng": 13.4}
    assert calendar.search(**paris) == "ad"
    assert calendar.search(**berlin) == "b"
    assert calendar.search(**berlin, geoloc_radius=1000) == "abd"
    assert calendar.search(**berlin, geoloc_radius=1) == ""
    assert calendar.search(**berlin, geoloc_radius=1000, orderby="distance") == "bad"
    assert calendar.search(**berlin, geoloc_radius=1000, orderby="distance", order="desc") in ("adb", "dab")


def test_coordinates_need_both_values_and_distance_order_needs_coordinates(calendar: Calendar) -> None:
    for name in ("geoloc_lat", "geoloc_lng"):
        assert_error(calendar.anonymous.get("/events", {name: 1}), 400, "rest_invalid_param", name)
    both = {"geoloc_lat": 91, "geoloc_lng": "x"}
    assert_error(calendar.anonymous.get("/events", both), 400, "rest_invalid_param", "geoloc_lat", "geoloc_lng")
    assert_error(calendar.anonymous.get("/events", {"orderby": "distance"}), 400, "rest_invalid_param", "orderby")


def test_include_ignores_dates_and_orders_by_publication(calendar: Calendar) -> None:
    assert calendar.search(include=calendar.id_list("abeo")) == "eabo"
    dates = {"start_date": "2027-01-11", "starts_after": "2028-01-01", "strict_dates": "1"}
    assert calendar.search(include=calendar.id_list("ab"), **dates) == "ab"
    assert calendar.search(include=calendar.id_list("ab"), search="bravo") == "b"
    assert calendar.search(include=f"{calendar.events['a']},999999") == "a"
    for wrong in ("", "x", "0", "-1", "1.5"):
        assert_error(calendar.anonymous.get("/events", {"include": wrong}), 400, "rest_invalid_param", "include")


def test_include_omits_hidden_and_inaccessible_events(calendar: Calendar) -> None:
    everything = calendar.id_list("hxpta")
    assert calendar.search(include=everything) == "a"
    assert calendar.search(calendar.editor, include=everything) in ("axp", "xpa", "apx", "pxa")
    assert calendar.search(calendar.editor, include=everything, status="trash") == "t"
    assert calendar.search(calendar.editor, include=calendar.id_list("h"), status="publish,draft,private") == ""


def test_hidden_events_are_unlisted_but_readable(calendar: Calendar) -> None:
    for query in ({"search": "hidden"}, {"categories": "music"}, {"featured": "true"}):
        assert "h" not in calendar.search(calendar.editor, **query)
    assert calendar.anonymous.read("events", calendar.events["h"])["title"] == "Hidden needle1"


def test_post_parent_filter_matches_nothing(calendar: Calendar) -> None:
    for caller in (calendar.anonymous, calendar.editor):
        assert calendar.search(caller, post_parent=calendar.events["a"]) == ""
    for wrong in ("999999", "0", "x", ""):
        assert_error(
            calendar.anonymous.get("/events", {"post_parent": wrong}), 400, "rest_invalid_param", "post_parent"
        )


def test_status_filter_by_role(calendar: Calendar) -> None:
    roles = {
        "editor": {"draft": "x", "private": "p", "trash": "t", "publish,draft": "abcdex", "": "abcdep"},
        "contributor": {"draft": "x", "private": "", "trash": "", "publish,draft": "abcdex", "": "abcde"},
        "author": {"draft": "", "private": "", "trash": "", "publish,draft": "abcde", "": "abcde"},
    }
    for role, by_status in roles.items():
        for status, letters in by_status.items():
            assert calendar.search(calendar.interface.caller(role), status=status) == letters, (role, status)
    for role in ("anonymous", "subscriber"):
        caller = calendar.interface.caller(role)
        assert calendar.search(caller, status="publish") == "abcde"
        for status in ("draft", "publish,draft", ""):
            assert_error(caller.get("/events", {"status": status}), 400, "rest_invalid_param", "status")


@pytest.mark.quick("start_date-abcde", "date-eabcd")
@pytest.mark.parametrize(
    ("orderby", "letters"), [("start_date", "abcde"), ("end_date", "abcde"), ("title", "abcde"), ("date", "eabcd")]
)
def test_orders_and_their_cursors(calendar: Calendar, orderby: str, letters: str) -> None:
    assert calendar.search(orderby=orderby) == letters
    assert calendar.search(orderby=orderby, order="desc") == letters[::-1]
    for order, expected in (("asc", letters), ("desc", letters[::-1])):
        query = {
            "orderby": orderby,
            "order": order,
            "per_page": 2,
            "start_date": "2026-12-01",
            "end_date": "2027-12-31",
        }
        seen: list[int] = []
        page = expect_json(calendar.anonymous.get("/events", query))
        while True:
            seen += [event["id"] for event in page["events"]]
            if page["next_cursor"] is None:
                break
            page = expect_json(calendar.anonymous.get("/events", {**query, "cursor": page["next_cursor"]}))
            assert (page["total"], "next_rest_url" in page) == (5, False)
        assert seen == [calendar.events[letter] for letter in expected]


def test_cursor_is_bound_to_its_order(calendar: Calendar) -> None:
    page = calendar.anonymous.page("events", per_page=1, orderby="title")
    for query in ({}, {"orderby": "date"}, {"orderby": "title", "order": "desc"}):
        response = calendar.anonymous.get("/events", {"cursor": page["next_cursor"], **query})
        assert_error(response, 400, "rest_invalid_param", "cursor")


def test_cursor_is_stable_under_concurrent_changes(calendar: Calendar) -> None:
    window = {"start_date": "2026-12-01", "end_date": "2027-12-31", "per_page": 2}
    first = expect_json(calendar.anonymous.get("/events", window))
    calendar.add("early", "02", title="Early")
    second = expect_json(calendar.anonymous.get("/events", {**window, "cursor": first["next_cursor"]}))
    assert [event["id"] for event in second["events"]] == [calendar.events["c"], calendar.events["d"]]
    calendar.editor.trash("events", calendar.events.pop("early"))
