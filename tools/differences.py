"""Intentional differences between Kalends and the original service: the source of docs/compatibility.md.

Each row names the decisions of the conformance kit that it covers; a test ensures that none is missing.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    reference: str
    kalends: str
    decisions: tuple[str, ...] = ()


def _row(where: str, reference: str, kalends: str, decisions: str = "") -> Difference:
    return Difference(where, reference, kalends, tuple(decisions.split()))


def _for_venues_and_organizers(name: str) -> str:
    return f"venues-{name} organizers-{name}"


PROTOCOL: Final = (
    _row("known path, unknown method", "404", "405 with `Allow`", "wrong-method"),
    _row("unknown record, by ID or by slug", "400 or 404", "404 with a code that names the kind", "not-found"),
    _row("writing an unknown venue or organizer", "400 for everybody", "401 or 403 for those who may not write at all, 404 for the others",
         "not-found-by-role"),
    _row("`id` or `slug` in body or query", "overrides the path", "the path wins", "path-wins"),
    _row("method override", "on GET too", "on POST only", "method-override"),
    _row("JSONP", "offered", "an unknown parameter", "no-jsonp"),
    _row("cross-origin requests", "any origin with credentials", "configurable, never with credentials", "cross-origin"),
    _row("wrong credentials", "401 that tells an unknown user from a wrong password", "401 that does not",
         "credentials"),
    _row("`Location` of a 201", "terms only, into another namespace", "always, in this interface", "location"),
    _row("`details` of an error", "sometimes a list", "always an object", "error-data"),
    _row("page links", "lose some filters", "keep every filter that was sent", "page-links"),
    _row("several things wrong at once", "depends on the route", "credentials first, then all wrong parameters together",
         "order-of-checks"),
    _row("the description at `/doc`", "a document of its own", "made from the routes, OpenAPI 3.1", "description-document"),
    _row("`url` of a record", "a page of WordPress", "a page of this server", "web-addresses"),
)  # fmt: skip

RECORDS: Final = (
    _row("update without a field", "resets status, dates, zone, cost, links, image …", "changes only what was sent",
         f"event-updates matrix-updates categories-updates tags-updates {_for_venues_and_organizers('updates')}"),
    _row("`null`", "differs from field to field", "absent on create, clears on update", "null"),
    _row("text", "quotes and dashes decorated, backslashes lost, `0` is empty", "as written",
         f"event-text categories-text tags-text {_for_venues_and_organizers('text')}"),
    _row("scripts in HTML by editors", "stored", "filtered for everybody"),
    _row("bad input", "sometimes 500", "400 with the parameter named",
         "event-input-errors categories-input-errors tags-input-errors"),
    _row("switches", "differ from field to field", "true, false, 1, 0, yes, no, on, off; anything else is refused",
         "booleans venue-switches"),
    _row("`modified` of a new record", "the publication date", "now", "modified"),
    _row("another author", "anybody may set it", "editors and administrators", f"authors {_for_venues_and_organizers('author')}"),
    _row("`status` on create", "internal ones too", "publish, draft, pending, private or future",
         f"status-values {_for_venues_and_organizers('status')}"),
    _row("private, by contributors", "allowed", "becomes pending", "private-needs-publish"),
    _row("publication date", "offsets thrown away, drafts without `date_utc`", "offsets honoured, `date_utc` wins over `date`",
         f"publication-dates {_for_venues_and_organizers('publication-date')}"),
    _row("websites", "any text", "http and https", f"event-websites {_for_venues_and_organizers('websites')}"),
    _row("e-mail of an organizer", "checked by the platform's own rules", "something on both sides of one @", "organizer-email"),
    _row("image", "differs from kind to kind", "a number, digits or the address of an image",
         f"images {_for_venues_and_organizers('image')}"),
    _row("slugs", "shaped by rules of the platform too", "unique within the kind; a term's taken slug is 400",
         "event-slugs categories-slugs tags-slugs"),
    _row("category tree", "no way back to the top", "`parent=0` is the top, a circle is 400",
         "category-parents"),
    _row("`parent` of a tag", "400", "ignored", "tag-parent"),
    _row("a venue or organizer with an existing name", "changes the existing one", "a new record",
         "venues-duplicates organizers-duplicates inline-reuse"),
    _row("a trashed organizer", "all organizers leave the event", "only that one does"),
)  # fmt: skip

EVENTS: Final = (
    _row("end before start", "changed silently", "400", "end-before-start"),
    _row("offset in a date", "thrown away", "honoured", "event-date-offsets"),
    _row("digit strings and running text as dates", "guessed", "400", "event-date-formats"),
    _row("an hour that occurs twice", "the first or the second, by zone", "the first, unless an offset says otherwise", "ambiguous-times"),
    _row("zone changed alone", "UTC stays wrong", "clock stays, UTC moves"),
    _row("zones", "several spellings, legacy names kept", "IANA names in any case, legacy ones under today's name, `UTC±H[:MM]`",
         "time-zones"),
    _row("cost", "some separators misread", "both customs understood, negative numbers refused", "cost"),
    _row("categories and tags of an event", "unknown names are made by anybody", "by ID, slug or name; unknown names need the right to make them",
         "event-terms new-terms-need-the-right"),
    _row("`venue` as list, `organizer` as object, comma lists", "refused", "accepted, for both", "linked-forms"),
    _row("by-slug routes", "weaker rights", "the same rights as by ID", "by-slug-rights"),
)  # fmt: skip

LISTS: Final = (
    _row("date filters", "shifted by the zone of the site", "in the zone of the site, or with their own offset; exact when strict",
         "list-dates"),
    _row("default list", "from yesterday", "from today, in the zone of the site", "default-window"),
    _row("`include`", "still cut to two years", "no window", "include-has-no-window"),
    _row("drafts of others in lists, linked drafts", "visible", "hidden", "unpublished-in-lists drafts-stay-hidden"),
    _row("the terms, venues and organizers of an unpublished or protected event (`?event=`)", "told to everybody",
         "told to those who may read all of it"),
    _row("`total` of an empty search", "wrong", "0", "totals"),
    _row("venues and organizers of one second", "in any order", "newest first, then by descending ID", "order-of-linked-lists"),
    _row("`only_with_upcoming`", "looks at the next 12 events", "looks at all", "upcoming-complete"),
    _row("`context`, `offset` of terms", "change the list", "unknown parameters", "no-foreign-parameters"),
    _row("`geoloc`, `geoloc_lat`, `geoloc_lng`, `ticketed`", "need an extension", "work", "geoloc-and-tickets"),
)  # fmt: skip

TABLES: Final = {"Protocol": PROTOCOL, "Records": RECORDS, "Events": EVENTS, "Lists": LISTS}

# Decisions that only relax the comparison of the kit and are not visible to clients.
KIT_ONLY: Final = {"total-headers", "counts-in-records", "odd-list-values", "optional-protocol"}

INTRODUCTION: Final = """# Compatibility

The tables of this page are made from `tools/differences.py` by `just reference`.

Kalends speaks the interface of The Events Calendar (`tribe/events/v1`) at `{api_root}/calendar/events/v1`. Set `KALENDS_API_ALIASES=/wp-json/tribe/events/v1` and existing clients change only the host.

A kit of 2,934 requests compares Kalends with a reference installation (`just conformance`). What it holds equal: routes, parameters, defaults, status codes, error codes, keys and types of all records, totals and page links.

## What differs on purpose
"""
ADDITIONS: Final = """
## What is added

All of it can be left unused.

- Lists of events: `overlaps_from`, `overlaps_to`, `order`, `orderby` (`start_date`, `end_date`, `title`, `date`, `modified`, `distance`), `cursor` with `next_cursor` in the answer (null at the end), `geoloc_radius` in kilometres.
- Events: `ticket_url`, `new_password` (at least 6 characters; sets the password that `password` is compared with; empty clears it), `uid` in the answer. Several venues are a list.
- Venues: `geo_lat`, `geo_lng`.
- `ETag`, `If-Match`, `If-None-Match`, `Idempotency-Key` (kept a day), `Location`, `Link` paging, `X-Request-ID`.
- `X-WP-Total` and `X-WP-TotalPages` beside `X-TEC-Total` and `X-TEC-TotalPages`.
- Everything below `{api_root}/kalends/v1`: [history and restoring](how-to/go-back.md), [changes since a revision](how-to/keep-a-copy.md), [many writes at once](reference/batch.md).
- [Public pages](pages.md) at the addresses that the `url` of a record names, and [feeds](feeds.md).
"""


def render() -> str:
    lines = [INTRODUCTION]
    for title, rows in TABLES.items():
        lines += [f"### {title}", "", "| Where | There | Here |", "|---|---|---|"]
        lines += [f"| {row.where} | {row.reference} | {row.kalends} |" for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + ADDITIONS
