"""The lists whose plans are checked: each filter of events alone, and the combinations that sites use."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tests.plans.conftest import PlanSite

RawParams = Mapping[str, object]

# Stands in where only the names of the requests are needed.
EXAMPLE_SITE = PlanSite("", datetime(2026, 3, 14, tzinfo=UTC), 1, 1, 1, 1, 1, 1, 1, [1])


def single_filters(site: PlanSite) -> dict[str, RawParams]:
    """Name of the filter, perhaps with a word on its value -> parameters."""
    soon, later = f"{site.now + timedelta(days=20):%Y-%m-%d}", f"{site.now + timedelta(days=50):%Y-%m-%d}"
    past = f"{site.now - timedelta(days=700):%Y-%m-%d}"
    instant = f"{site.now:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "nothing": {},
        "page": {"page": 20},
        "per_page": {"per_page": 50},
        "start_date": {"start_date": soon},
        "start_date (years ago)": {"start_date": past},
        "end_date": {"end_date": later},
        "starts_before": {"starts_before": soon},
        "starts_after": {"starts_after": soon},
        "ends_before": {"ends_before": soon},
        "ends_after": {"ends_after": soon},
        "ends_after (now)": {"ends_after": instant, "strict_dates": "true"},
        "ends_after (years ago)": {"ends_after": past},
        "strict_dates": {"strict_dates": "true", "start_date": instant},
        "search": {"search": "accordion"},
        "search (in every text)": {"search": "the"},
        "search (two words)": {"search": "accordion beavers"},
        "search (nowhere)": {"search": "zyxomma"},
        "categories": {"categories": site.category},
        "categories (a small one)": {"categories": site.small_category},
        "tags": {"tags": site.tag},
        "venue": {"venue": site.venue},
        "venue (a quiet one)": {"venue": site.quiet_venue},
        "organizer": {"organizer": site.organizer},
        "featured": {"featured": "true"},
        "featured (others)": {"featured": "false"},
        "status": {"status": "publish"},
        "geoloc": {"geoloc": "true"},
        "geoloc_lat": _distance_filter(),
        "geoloc_radius": {**_distance_filter(), "geoloc_radius": 2},
        "include": {"include": ",".join(map(str, site.sample_ids))},
        "post_parent": {"post_parent": site.parent},
        "ticketed": {"ticketed": "true"},
        "free": {"free": "true"},
        "free (others)": {"free": "false"},
        "event_status": {"event_status": "cancelled,postponed"},
        "event_status (others)": {"event_status": "scheduled"},
        "overlaps_from": {"overlaps_from": soon},
        "overlaps_to": {"overlaps_to": soon},
        "order": {"order": "desc"},
        **{f"orderby={name}": {"orderby": name} for name in ("start_date", "end_date", "title", "date", "modified")},
        "orderby=distance": {**_distance_filter(), "orderby": "distance"},
    }


def filter_pairs(site: PlanSite) -> dict[str, RawParams]:
    """What a month page, a venue's page, a search box with a filter, a widget ask."""
    soon, later = f"{site.now + timedelta(days=20):%Y-%m-%d}", f"{site.now + timedelta(days=50):%Y-%m-%d}"
    long_ago = f"{site.now - timedelta(days=2500):%Y-%m-%d}"
    instant = f"{site.now:%Y-%m-%dT%H:%M:%SZ}"
    month = {"overlaps_from": soon, "overlaps_to": later}
    current = {"ends_after": instant, "strict_dates": "true"}
    span = {"start_date": soon, "end_date": later}
    return {
        "start_date, end_date": span,
        "start_date, end_date (long ago)": {"start_date": long_ago, "end_date": f"{long_ago[:7]}-28"},
        "overlaps_from, overlaps_to": month,
        "ends_before, order": {"ends_before": instant, "strict_dates": "true", "order": "desc"},
        "categories, start_date": {"categories": site.category, "start_date": soon},
        "categories, overlaps": {"categories": site.category, **month},
        "categories, ends_after": {"categories": site.category, **current},
        "categories, tags": {"categories": site.category, "tags": site.tag},
        "categories, venue": {"categories": site.category, "venue": site.venue},
        "categories, search": {"categories": site.category, "search": "accordion"},
        "categories, featured": {"categories": site.category, "featured": "true"},
        "categories, ticketed": {"categories": site.category, "ticketed": "true"},
        "categories, geoloc_lat": {"categories": site.category, **_distance_filter()},
        "venue, start_date": {"venue": site.venue, "start_date": soon},
        "venue, ends_after": {"venue": site.venue, **current},
        "venue, search": {"venue": site.venue, "search": "accordion"},
        "venue, ends_before": {"venue": site.venue, "ends_before": instant, "order": "desc"},
        "organizer, ends_after": {"organizer": site.organizer, **current},
        "organizer, categories": {"organizer": site.organizer, "categories": site.category},
        "search, start_date": {"search": "accordion", "start_date": soon},
        "search, ends_after": {"search": "accordion", **current},
        "search, geoloc_lat": {"search": "accordion", **_distance_filter()},
        "tags, start_date": {"tags": site.tag, "start_date": soon},
        "featured, start_date": {"featured": "true", "start_date": soon},
        "featured, ends_after": {"featured": "true", **current},
        "geoloc_lat, start_date": {**_distance_filter(), "start_date": soon},
    }


def unlimited_filters(site: PlanSite) -> dict[str, RawParams]:
    """Filters over all of the past: what they find must come from an index of their own."""
    wide = {"start_date": "1970-01-01", "end_date": "2100-01-01"}
    return {
        "nothing": wide,
        "geoloc": {**wide, "geoloc": "true"},
        "geoloc_lat": {**wide, **_distance_filter()},
        "categories": {**wide, "categories": site.category},
        "tags": {**wide, "tags": site.tag},
        "venue": {**wide, "venue": site.venue},
    }


def _distance_filter() -> dict[str, object]:
    """Around Tübingen, where made-up venues are."""
    return {"geoloc_lat": 48.52, "geoloc_lng": 9.05}
