"""Any sequence of updates: what the property test of history writes to events, venues and organizers."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Update = dict[str, Any]

NEW_YORK, PARIS, LORD_HOWE = "America/New_York", "Europe/Paris", "Australia/Lord_Howe"
# Wall times around the hours that exist twice or not at all, by zone.
LOCAL_TIMES = {
    NEW_YORK: ["2027-11-07 00:30", "2027-11-07 01:30-04:00", "2027-11-07 01:30-05:00", "2027-03-14 02:30"],
    PARIS: ["2027-10-31 01:30", "2027-10-31 02:30+02:00", "2027-10-31 02:30+01:00", "2027-03-28 02:30"],
    LORD_HOWE: ["2027-04-04 01:45+11:00", "2027-04-04 01:45+10:30", "2027-10-03 02:15"],
    "UTC": ["2027-06-01 10:00", "2027-11-07 01:30"],
}

words = st.sampled_from(["One", "Two words", "Drei & vier", "<b>Fünf</b>", "6", "日本", "a\n\nb"])
texts = words | st.just("")
booleans = st.booleans()
links = st.lists(st.sampled_from([0, 1, 2]), unique=True, max_size=3)  # which of three records that the test made


def _time_updates() -> SearchStrategy[Update]:
    """Both dates and the zone, one date, the zone alone, or whole days; what does not fit is refused."""
    both = st.sampled_from(list(LOCAL_TIMES)).flatmap(
        lambda zone: st.tuples(st.sampled_from(LOCAL_TIMES[zone]), st.sampled_from(LOCAL_TIMES[zone])).map(
            lambda pair: {"timezone": zone, "start_date": pair[0], "end_date": pair[1]}
        )
    )
    hours = st.sampled_from([hour for zone in LOCAL_TIMES.values() for hour in zone])
    return st.one_of(
        both,
        both,
        st.builds(lambda zone: {"timezone": zone}, st.sampled_from(list(LOCAL_TIMES))),
        st.builds(lambda hour: {"start_date": hour}, hours),
        st.builds(lambda hour: {"end_date": hour}, hours),
        st.builds(lambda switch: {"all_day": switch}, booleans),
    )


def _field_updates(fields: dict[str, SearchStrategy[Any]]) -> SearchStrategy[Update]:
    """One or two fields at once."""
    pairs = st.sampled_from(list(fields)).flatmap(lambda name: st.tuples(st.just(name), fields[name]))
    return st.lists(pairs, min_size=1, max_size=2).map(dict)


def _status_updates() -> SearchStrategy[Update]:
    """Statuses with dates far from now, so that no time passes in a test."""
    statuses = st.sampled_from(["publish", "draft", "pending", "private", "future", "trash"])
    dates = st.sampled_from(["2020-01-01 00:00:00", "2021-01-01 00:00:00", "2090-01-01 00:00:00"])
    return st.one_of(
        st.builds(lambda status: {"status": status}, statuses),
        st.builds(lambda status, date: {"status": status, "date_utc": date}, statuses, dates),
        st.builds(lambda date: {"date_utc": date}, dates),
    )


COMMON_FIELDS: dict[str, SearchStrategy[Any]] = {
    "description": texts,
    "image": st.sampled_from([True, None]),  # the image that the test made, or none
    "author": st.sampled_from(["editor", "author", "contributor"]),
}
WEBSITES = st.sampled_from(["", "https://example.org/", "https://example.org/a?b=c&d=e"])
EVENT_FIELDS = {
    **COMMON_FIELDS,
    "title": words,
    "excerpt": texts,
    "slug": st.sampled_from(["one", "two", "taken"]),
    "cost": st.sampled_from(["", 0, "10", "10-20", "Free", "15 €"]),
    "website": WEBSITES,
    "ticket_url": WEBSITES,
    "online_url": WEBSITES,
    "event_status": st.sampled_from(["scheduled", "cancelled", "postponed", "moved_online", "sold_out"]),
    "status_reason": texts,
    "currency_symbol": st.sampled_from([None, "£", "€"]),
    "currency_code": st.sampled_from([None, "GBP", "EUR"]),
    "currency_position": st.sampled_from([None, "prefix", "postfix"]),
    "new_password": st.sampled_from(["", "one", "two"]),
    **dict.fromkeys(("show_map", "show_map_link", "hide_from_listings", "sticky", "featured"), booleans),
    **dict.fromkeys(("venue", "organizer", "categories", "tags"), links),
}
VENUE_FIELDS = {
    **COMMON_FIELDS,
    "venue": words,
    "website": WEBSITES,
    "country": st.sampled_from(["", "United States", "France"]),
    **dict.fromkeys(("address", "city", "province", "state", "zip", "phone", "stateprovince"), texts),
    **dict.fromkeys(("show_map", "show_map_link"), booleans),
}
ORGANIZER_FIELDS = {
    **COMMON_FIELDS,
    "organizer": words,
    "phone": texts,
    "website": WEBSITES,
    "email": st.sampled_from(["", "a@example.org", "b@example.org"]),
}
COORDINATES = st.sampled_from(
    [{"geo_lat": 48.85, "geo_lng": 2.35}, {"geo_lat": 0, "geo_lng": -0.5}, {"geo_lat": None, "geo_lng": None}]
)

UPDATES: dict[str, SearchStrategy[list[Update]]] = {
    "events": st.lists(
        st.one_of(_field_updates(EVENT_FIELDS), _field_updates(EVENT_FIELDS), _time_updates(), _status_updates()),
        min_size=1,
        max_size=7,
    ),
    "venues": st.lists(
        st.one_of(_field_updates(VENUE_FIELDS), _field_updates(VENUE_FIELDS), COORDINATES, _status_updates()),
        min_size=1,
        max_size=7,
    ),
    "organizers": st.lists(st.one_of(_field_updates(ORGANIZER_FIELDS), _status_updates()), min_size=1, max_size=7),
}
# How a record begins: with its own slug or without, open or as a draft.
INITIAL_FIELDS = st.sampled_from(
    [{}, {"status": "draft"}, {"status": "pending"}, {"status": "draft", "slug": "begun"}]
)
