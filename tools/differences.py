"""Intended differences from The Events Calendar: the source of docs/compatibility.md.

Each row names the decisions of the conformance kit that it documents; a test checks that none is missing.
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
    _row("unsupported method of a known path", "404", "405 with `Allow`", "wrong-method"),
    _row("unknown record, by ID or by slug", "400 or 404", "404 with a code that names the kind", "not-found"),
    _row("writing an unknown venue or organizer", "400 for all callers", "401 or 403 for callers without the right to write, 404 for others",
         "not-found-by-role"),
    _row("`id` or `slug` in body or query", "overrides the path", "the path takes precedence", "path-wins"),
    _row("method override", "also on GET", "on POST only", "method-override"),
    _row("JSONP", "supported", "unknown parameter", "no-jsonp"),
    _row("cross-origin requests", "any origin with credentials", "configurable, never with credentials", "cross-origin"),
    _row("wrong credentials", "401 that distinguishes unknown users from wrong passwords", "the same 401 for both",
         "credentials"),
    _row("credentials of another scheme than Basic", "ignored", "ignored where none are needed, otherwise a 401 that names the scheme"),
    _row("401", "without `WWW-Authenticate`", "with `WWW-Authenticate`, except for browsers (`Sec-Fetch-Mode`)"),
    _row("a body of another content type than JSON and forms", "ignored",
         "ignored if the URL has all parameters; otherwise 400 if required ones are missing, or 415; the message names the content type"),
    _row("`Location` of a 201", "terms only, in another namespace", "always, in the same namespace", "location"),
    _row("`details` of an error", "sometimes a list", "always an object", "error-data"),
    _row("page links", "omit some filters", "contain every filter of the request", "page-links"),
    _row("several errors in one request", "depends on the route", "credentials first, then all invalid parameters together",
         "order-of-checks"),
    _row("`per_page` above 50", "reduced to 50", "reduced to 50, also in page links, and named in `X-Kalends-Ignored-Params`"),
    _row("the document at the REST root", "describes WordPress", "the same form for `/api/` and the roots of aliases, with the namespaces below them"),
    _row("the description at `/doc`", "a separate document", "generated from the routes, OpenAPI 3.1", "description-document"),
    _row("`url` of a record", "a WordPress page", "a page of this server", "web-addresses"),
)  # fmt: skip

RECORDS: Final = (
    _row("fields missing in an update", "status, dates, zone, cost, links, image and others are reset", "keep their values",
         f"event-updates matrix-updates categories-updates tags-updates {_for_venues_and_organizers('updates')}"),
    _row("`null`", "depends on the field", "absent on create, cleared on update", "null"),
    _row("text", "quotes and dashes are replaced, backslashes are lost, `0` is empty", "stored as sent",
         f"event-text categories-text tags-text {_for_venues_and_organizers('text')}"),
    _row("scripts in HTML by editors", "stored", "removed for all users"),
    _row("invalid input", "sometimes 500", "400 that names the parameter",
         "event-input-errors categories-input-errors tags-input-errors"),
    _row("booleans", "depend on the field", "true, false, 1, 0, yes, no, on, off; anything else is rejected",
         "booleans venue-switches"),
    _row("`modified` of a new record", "the publication date", "now", "modified"),
    _row("setting another author", "any user", "editors and administrators", f"authors {_for_venues_and_organizers('author')}"),
    _row("`status` on create", "also internal ones", "publish, draft, pending, private or future",
         f"status-values {_for_venues_and_organizers('status')}"),
    _row("`private`, sent by contributors", "allowed", "becomes `pending`", "private-needs-publish"),
    _row("publication date", "offsets are ignored, drafts have no `date_utc`", "offsets are honoured, `date_utc` takes precedence over `date`",
         f"publication-dates {_for_venues_and_organizers('publication-date')}"),
    _row("websites", "any text", "http and https", f"event-websites {_for_venues_and_organizers('websites')}"),
    _row("e-mail of an organizer", "validated by WordPress", "text on both sides of exactly one @", "organizer-email"),
    _row("image", "depends on the kind", "an ID, as number or digits, or an image URL",
         f"images {_for_venues_and_organizers('image')}"),
    _row("slugs", "also follow rules of WordPress", "unique within the kind; an existing slug of a term gets 400",
         "event-slugs categories-slugs tags-slugs"),
    _row("category tree", "a parent cannot be removed", "`parent=0` removes the parent, a cycle gets 400",
         "category-parents"),
    _row("`parent` of a tag", "400", "ignored", "tag-parent"),
    _row("a venue or organizer with an existing name", "updates the existing record", "creates a new record",
         "venues-duplicates organizers-duplicates inline-reuse"),
    _row("an organizer in the trash", "all organizers are removed from its events", "only this one is removed"),
)  # fmt: skip

EVENTS: Final = (
    _row("end before start", "corrected silently", "400", "end-before-start"),
    _row("offset in a date", "ignored", "honoured", "event-date-offsets"),
    _row("digit strings and natural language as dates", "guessed", "400", "event-date-formats"),
    _row("an hour that occurs twice", "the first or the second, depending on the zone", "the first, unless an offset selects the second", "ambiguous-times"),
    _row("change of the zone only", "UTC times become wrong", "local times stay, UTC times are recomputed"),
    _row("zones", "several spellings, legacy names are kept", "IANA names in upper or lower case, legacy names replaced by current ones, `UTC±H[:MM]`",
         "time-zones"),
    _row("cost", "some separators are misinterpreted", "decimal comma and decimal point are understood, negative numbers rejected", "cost"),
    _row("categories and tags of an event", "any user creates unknown names", "by ID, slug or name; unknown names require the right to create terms",
         "event-terms new-terms-need-the-right"),
    _row("`venue` as list, `organizer` as object, comma lists", "rejected", "accepted for both", "linked-forms"),
    _row("by-slug routes", "weaker permission checks", "the same permissions as by ID", "by-slug-rights"),
)  # fmt: skip

LISTS: Final = (
    _row("date filters", "shifted by the zone of the site", "in the zone of the site, unless they have an offset; exact with `strict_dates`",
         "list-dates"),
    _row("default list", "from yesterday", "from today, in the zone of the site", "default-window"),
    _row("`include`", "limited to two years", "not limited by dates", "include-has-no-window"),
    _row("drafts of others in lists, linked drafts", "visible", "hidden", "unpublished-in-lists drafts-stay-hidden"),
    _row("the terms, venues and organizers of an unpublished or protected event (`?event=`)", "visible to all callers",
         "visible to callers who may read the whole event"),
    _row("`total` of an empty search", "wrong", "0", "totals"),
    _row("venues and organizers created in the same second", "undefined order", "newest first, then by descending ID", "order-of-linked-lists"),
    _row("`only_with_upcoming`", "considers the next 12 events", "considers all events", "upcoming-complete"),
    _row("`context`, `offset` in lists of terms", "change the list", "unknown parameters", "no-foreign-parameters"),
    _row("`geoloc`, `geoloc_lat`, `geoloc_lng`, `ticketed`", "require a plug-in", "supported", "geoloc-and-tickets"),
)  # fmt: skip

TABLES: Final = {"Protocol": PROTOCOL, "Records": RECORDS, "Events": EVENTS, "Lists": LISTS}

# Decisions about the comparison itself, without a visible difference.
KIT_ONLY: Final = {"total-headers", "counts-in-records", "odd-list-values", "optional-protocol"}

INTRODUCTION: Final = """# Compatibility

`just reference` generates this page from `tools/differences.py`.

Kalends implements the API of The Events Calendar (`tribe/events/v1`) at `{api_root}/calendar/events/v1`. Set `KALENDS_API_ALIASES=/wp-json/tribe/events/v1`, and existing clients only have to change the host.

A kit of 2,934 requests compares Kalends with a reference installation (`just conformance`): routes, parameters, defaults, status codes, error codes, keys and types of all records, totals and page links.

## Intended differences
"""
ADDITIONS: Final = """
## Extensions

Clients can ignore all of them.

- Lists of events: `overlaps_from`, `overlaps_to`, `order`, `orderby` (`start_date`, `end_date`, `title`, `date`, `modified`, `distance`), `cursor` with `next_cursor` in the response (null at the end), `geoloc_radius` in kilometres, `free`.
- Events: `ticket_url`, `new_password` (at least 6 characters; sets the password of the event, empty removes it), `uid` in the response. An event with several venues has a list in `venue`.
- Venues: `geo_lat`, `geo_lng`.
- `ETag`, `If-Match`, `If-None-Match`, `Idempotency-Key` (stored for a day), `Location`, `Link` paging, `X-Request-ID`.
- `X-Kalends-Ignored-Params`: the names of the parameters that a request sent and that had no effect, because they are unknown or were reduced; at most 10, percent-encoded. With `strict=1` such a request gets 400 instead, with a suggestion for each name. Only the parameters of the request itself are checked, not those inside of linked records and batches. The response cache of the server never shares the header between requests; a shared cache that removes unknown parameters, such as Varnish with the configuration in `deploy/varnish`, removes it with them.
- `X-WP-Total` and `X-WP-TotalPages` in addition to `X-TEC-Total` and `X-TEC-TotalPages`.
- Everything below `{api_root}/kalends/v1`: [history and restore](how-to/restore.md), [changes since a revision](how-to/sync.md), [images](how-to/images.md), [batches](how-to/batch.md).
- `/openapi.json` redirects to the OpenAPI document of the API.
- [Public pages](pages.md) at the `url` of each record, and [feeds](feeds.md).
"""


def render() -> str:
    lines = [INTRODUCTION]
    for title, rows in TABLES.items():
        lines += [f"### {title}", "", "| Subject | The Events Calendar | Kalends |", "|---|---|---|"]
        lines += [f"| {row.where} | {row.reference} | {row.kalends} |" for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + ADDITIONS
