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
    _row("`_fields`", "does not reach into the records of a list", "does; `{}` if nothing matches"),
    _row("`_envelope`", "contains the totals", "contains the totals, which are also sent as headers"),
    _row("an invalid `X-WP-Nonce`", "403", "ignored; programs sign in with an application password"),
)  # fmt: skip

RECORDS: Final = (
    _row("fields missing in an update", "status, dates, zone, cost, links, image and others are reset", "keep their values",
         f"event-updates matrix-updates categories-updates tags-updates {_for_venues_and_organizers('updates')}"),
    _row("`null`", "depends on the field", "absent on create, cleared on update", "null"),
    _row("text", "quotes and dashes are replaced, backslashes are lost, `0` is empty", "stored as sent",
         f"event-text categories-text tags-text {_for_venues_and_organizers('text')}"),
    _row("`&amp;` and other entities in plain texts, such as titles and names", "returned as entities", "decoded: `R&B`"),
    _row("scripts in HTML by editors", "stored", "removed for all users"),
    _row("`<blockquote>` without paragraphs, `<!--more-->`", "gets paragraphs, stays as a comment", "stays as sent, removed"),
    _row("invalid input", "sometimes 500", "400 that names the parameter",
         "event-input-errors categories-input-errors tags-input-errors"),
    _row("booleans", "depend on the field", "true, false, 1, 0, yes, no, on, off; anything else is rejected",
         "booleans venue-switches"),
    _row("`json_ld` of an event", "the first organizer; a range of prices as text; `performer`, `offers.category`",
         "an object for one organizer, a list for several; a range as `AggregateOffer`, whose `price` is the lower one; no offer if the cost has no number; no `performer`, no `offers.category`"),
    _row("`json_ld` of all records", "texts as escaped HTML, empty values, organizers as `Person`, images of venues and organizers, inside of `venue` and `organizer` as well",
         "plain text, no empty values, organizers as `Organization`, `url` is the page of this server; images of events only; on the record itself only"),
    _row("`_links` of a category or tag", "addresses in `wp/v2`", "absent"),
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
    _row("a venue or organizer with an existing name", "updates the existing record",
         "the same data as that of a published record: returns that record with 200; any difference: creates a new record",
         "venues-duplicates organizers-duplicates inline-reuse"),
    _row("venues and organizers of a public event", "published when it is saved again, also those in the trash",
         "drafts, pending and scheduled ones are published when it is created or saved, if the caller may publish them; those in the trash stay there"),
    _row("an organizer in the trash", "all organizers are removed from its events", "only this one is removed"),
    _row("slugs of names with ß", "`grosmarkt`", "`grossmarkt`"),
    _row("slugs that consist of digits, by slug", "taken for an ID", "found"),
    _row("`stateprovince` of a venue", "only states of the US", "the state or province of any country"),
)  # fmt: skip

EVENTS: Final = (
    _row("end before start", "corrected silently", "400", "end-before-start"),
    _row("offset in a date", "ignored", "honoured", "event-date-offsets"),
    _row("digit strings, two-digit years, `15.11.2027`, `15-11-2027`, phrases and zone abbreviations as dates", "guessed",
         "400; words such as `tomorrow`, `+1 week`, `11/15/2027` and English month names are [accepted](time.md#forms-of-dates)",
         "event-date-formats"),
    _row("an hour that occurs twice", "the first or the second, depending on the zone", "the first, unless an offset selects the second", "ambiguous-times"),
    _row("change of the zone only", "UTC times become wrong", "local times stay, UTC times are recomputed"),
    _row("zones", "several spellings, legacy names are kept", "IANA names in upper or lower case, legacy names replaced by current ones, `UTC±H[:MM]`, also without `UTC`",
         "time-zones"),
    _row("cost", "some separators are misinterpreted", "decimal comma and decimal point are understood, negative numbers rejected", "cost"),
    _row("categories and tags of an event", "by ID or name; any user creates unknown names",
         "by ID, slug or name; authors and above create unknown names. From contributors, an unknown category gets 403 with "
         "its name in `data.params`; unknown tags are left out, and `X-Kalends-Ignored-Params` names `tags`",
         "event-terms new-terms-need-the-right"),
    _row("`venue` as list, `organizer` as object, comma lists", "rejected", "accepted for both", "linked-forms"),
    _row("by-slug routes", "weaker permission checks", "the same permissions as by ID", "by-slug-rights"),
    _row("`cost` of `0` on create", "empty", "`Free`, as after an update"),
    _row("`series`", "absent", "the series of a repeating event, `null` for others"),
    _row("`cost` with a thousands separator, such as `$1,250.00`", "`Free`", "read as written"),
)  # fmt: skip

LISTS: Final = (
    _row("date filters", "shifted by the zone of the site", "in the zone of the site, unless they have an offset; exact with `strict_dates`",
         "list-dates"),
    _row("default list", "from yesterday", "from today, in the zone of the site", "default-window"),
    _row("all-day events in another zone than the site", "found by their local dates",
         "found by their instants, as all events are: a day in Auckland starts on the previous day of a site in Berlin; see [lists](time.md#lists)"),
    _row("`venue` with a private venue", "its events", "its events only for callers who may read the venue, otherwise an empty list"),
    _row("`include`", "limited to two years", "not limited by dates", "include-has-no-window"),
    _row("drafts of others in lists, linked drafts", "visible", "hidden", "unpublished-in-lists drafts-stay-hidden"),
    _row("the terms, venues and organizers of an unpublished or protected event (`?event=`)", "visible to all callers",
         "visible to callers who may read the whole event"),
    _row("unknown values of `order` and `orderby` in lists of events", "ignored, as all values are",
         "ignored and named in `X-Kalends-Ignored-Params`; `orderby=distance` without coordinates gets 400"),
    _row("`total` of an empty search", "wrong", "0", "totals"),
    _row("venues and organizers created in the same second", "undefined order", "newest first, then by descending ID", "order-of-linked-lists"),
    _row("`only_with_upcoming`", "considers the next 12 events", "considers all events", "upcoming-complete"),
    _row("`context`, `offset` in lists of terms", "change the list", "unknown parameters", "no-foreign-parameters"),
    _row("`geoloc`, `geoloc_lat`, `geoloc_lng`, `ticketed`", "require a plug-in", "supported; `geoloc=false` and `ticketed=false` are no filters",
         "geoloc-and-tickets"),
    _row("`include` with `exclude` in lists of terms", "`exclude` is ignored", "both apply"),
    _row("`categories`, `tags`, `venue`, `organizer`, `featured`, `search` and protected events", "find them", "find them only for callers who may read the whole event"),
    _row("several `tags`", "only one of them counts", "events with any of them"),
    _row("`has_events`", "counts events in the trash", "does not"),
    _row("`search`", "also matches markup and URLs; misses words in other scripts in venues and slugs", "matches the text, in all scripts"),
)  # fmt: skip

ADDRESSES: Final = (
    _row("`?ical=1`, `?outlook-ical=1`", "30 events per page; a page of HTML or 404 if there are none", "all events of the address, up to 5,000; an empty calendar if there are none"),
    _row("`eventDisplay=past` with `ical`", "events that are over now", "events that ended before today"),
    _row("`/event/…/?ical=1` of a protected event", "with venue and organizer", "title and time, as in feeds of lists; `/event/….ics` is 403"),
    _row("addresses of months, days, page numbers and tags; `tribe-bar-date` and similar parameters", "pages of their own", "301 to the page that replaces them; see [old addresses](pages.md#old-addresses)"),
    _row("months and days of a category", "404 for `…/category/a/month/2026-12/`", "301 to the month or day with the filter `categories`"),
    _row("`/events/category/b/` of a nested category", "200", "301 to the full path, `/events/category/a/b/`; with `ical` 200"),
    _row("`/?p=ID` of venues and organizers", "404", "301, as for events"),
    _row("`/events/day/2026-12-05/`, `/sitemap.xml`", "404", "200; `/wp-sitemap.xml` and its parts for posts and terms redirect to the latter"),
    _row("RSS", "`/events/feed/`, `/feed/`, `/?feed=rss2` and feeds of categories and tags", "301 to `/events.rss`, with the ID of the category or tag"),
    _row("comment feeds (`/event/…/feed/`), `/xmlrpc.php`, `/author/…/`, `/wp-login.php`, `/wp-admin/`", "exist", "404"),
    _row("`/wp-json/tec/v1`, `/wp-json/tribe/views/v2/html`", "interfaces of newer versions and of its own pages", "404"),
)  # fmt: skip

CORE_ROUTES: Final = (
    _row("routes", "all of WordPress",
         "`media` (read, upload, change of texts), `users/me`, `users`, `settings`, `types`, and read-only lists of `tribe_events`, "
         "`tribe_venue`, `tribe_organizer`, `tribe_events_cat`, `tags`; others are 404, other writes 405 with `Allow`"),
    _row("`users` for anonymous callers", "lists the authors", "401, because the names of authors are logins; `_embed` leaves authors out"),
    _row("`link`, `url` and `avatar_urls` of an account", "a page of the author, a website, images of another service", "the home page, empty, empty"),
    _row("images for anonymous callers", "all", "those that a published record shows; 401 for the others"),
    _row("protected events", "`meta`, terms and `featured_media` are shown", "hidden without the password, as `content` and `excerpt` are"),
    _row("lists of events", "leave out past events, contain hidden ones", "contain past events, leave out hidden ones"),
    _row("`content` of events", "as its page shows it, with the date, the venue and buttons in some events", "the description"),
    _row("empty `excerpt`", "made from the content", "empty"),
    _row("`meta`", "the keys of all types in each record", "the keys of its type; none for images"),
    _row("`tribe_events_cat` as a filter", "without the categories below it", "with them"),
    _row("`context=edit`", "also `permalink_template`, `generated_slug`, `class_list` and the password of an event",
         "`raw` texts of records that the caller may edit; never a password"),
    _row("`_embed`", "names choose what is embedded", "any value except `0` and `false` embeds images and terms"),
)  # fmt: skip

TABLES: Final = {
    "Protocol": PROTOCOL,
    "Records": RECORDS,
    "Events": EVENTS,
    "Lists": LISTS,
    "Pages and feeds": ADDRESSES,
    "Core routes of WordPress (`wp/v2`)": CORE_ROUTES,
}

# Decisions about the comparison itself, without a visible difference.
KIT_ONLY: Final = {"total-headers", "counts-in-records", "odd-list-values", "optional-protocol"}

INTRODUCTION: Final = """# Compatibility

`just reference` generates this page from `tools/differences.py`.

Kalends implements the API of The Events Calendar (`tribe/events/v1`) at `{api_root}/calendar/events/v1`. Set `KALENDS_API_ALIASES=/wp-json/tribe/events/v1`, and existing clients only have to change the host. `/?rest_route=/tribe/events/v1/…` and `/index.php/wp-json/tribe/events/v1/…` work, too; as in WordPress with pretty permalinks, links have the form `/wp-json/…`. Beside each alias that ends in `/tribe/events/v1`, the core routes that calendar clients use are served at `wp/v2`.

A kit of 2,934 requests compares Kalends with a reference installation (`just conformance`): routes, parameters, defaults, status codes, error codes, keys and types of all records, totals and page links.
"""
DIFFERENCES: Final = """
## Intended differences
"""
ADDITIONS: Final = """
## Extensions

Clients can ignore all of them.

- Lists of events: `overlaps_from`, `overlaps_to`, `order`, `orderby` (`start_date`, `end_date`, `title`, `date`, `modified`, `distance`), `cursor` with `next_cursor` in the response (null at the end), `geoloc_radius` in kilometres, `free`, `event_status`.
- Events: `event_status`, `status_reason` and `online_url`, the [state](event-states.md) of the event; `currency_symbol`, `currency_code` and `currency_position`, null for those of the site, as The Events Calendar stores them (its API reports them in `cost_details` only); `ticket_url`, `new_password` (at least 6 characters; sets the password of the event, empty removes it), `uid` in the response. With `check_duplicates=1` a write returns `possible_duplicates`, stored events that may be the same; it never fails because of them. An event with several venues has a list in `venue`.
- Venues: `geo_lat`, `geo_lng`.
- `ETag`, `If-Match`, `If-None-Match`, `Idempotency-Key` (stored for a day), `Location`, `Link` paging, `X-Request-ID`.
- `X-Kalends-Ignored-Params`: the names of the parameters that a request sent and that had no effect, because they are unknown or were reduced; at most 10, percent-encoded. With `strict=1` such a request gets 400 instead, with a suggestion for each name. Only the parameters of the request itself are checked, not those inside of linked records and batches. The response cache of the server never shares the header between requests; a shared cache that removes unknown parameters, such as Varnish with the configuration in `deploy/varnish`, removes it with them.
- `X-WP-Total` and `X-WP-TotalPages` in addition to `X-TEC-Total` and `X-TEC-TotalPages`.
- Everything below `{api_root}/kalends/v1`: [history and restore](how-to/restore.md), [changes since a revision](how-to/sync.md), [images](how-to/images.md), [batches](how-to/batch.md).
- `/openapi.json` redirects to the OpenAPI document of the API.
- [Public pages](pages.md) at the `url` of each record, and [feeds](feeds.md).
"""


@dataclass(frozen=True, slots=True)
class Check:
    """A request to try with an existing client, and its response. `{event}` is the ID of a published event."""

    subject: str
    request: str
    status: int
    content: str


CHECKS: Final = (
    Check("lists events", "/wp-json/tribe/events/v1/events?per_page=50", 200, "application/json"),
    Check("asks for events from now on", "/wp-json/tribe/events/v1/events?start_date=now", 200, "application/json"),
    Check("stops after the last page", "/wp-json/tribe/events/v1/events?page=9999", 404, "application/json"),
    Check("reads one event", "/wp-json/tribe/events/v1/events/{event}", 200, "application/json"),
    Check("uses plain permalinks", "/?rest_route=/tribe/events/v1/events", 200, "application/json"),
    Check("uses permalinks with `index.php`", "/index.php/wp-json/tribe/events/v1/events", 200, "application/json"),
    Check("looks for the API first", "/wp-json/", 200, "application/json"),
    Check("reads posts instead of events", "/wp-json/wp/v2/tribe_events", 200, "application/json"),
    Check("tests its credentials", "/wp-json/wp/v2/users/me", 401, "application/json"),
    Check("subscribes to the calendar", "/?post_type=tribe_events&ical=1&eventDisplay=list", 200, "text/calendar"),
    Check("downloads a month", "/events/month/2026-12/?ical=1", 200, "text/calendar"),
    Check("reads RSS", "/events/feed/", 301, "application/rss+xml"),
    Check("reads RSS with plain permalinks", "/?feed=rss2&post_type=tribe_events", 301, "application/rss+xml"),
    Check("links to an event by its ID", "/?p={event}", 301, "text/html"),
    Check("links to a month", "/events/2026-12/", 301, "text/html"),
)

CHECKLIST: Final = """
## Does my client work?

Set `KALENDS_API_ALIASES=/wp-json/tribe/events/v1`. Then send the requests that your client sends, with the host of your site in front. All rows are tested. After a redirect (301), the content is that of its target.

| If your client … | try | Status | Content |
|---|---|---|---|
"""
AFTER_CHECKLIST: Final = """
1. If the client writes, create an application password (`kalends app-password create LOGIN NAME`) and repeat the credentials request with `curl -u LOGIN:PASSWORD`; it must return 200.
2. Look for `X-Kalends-Ignored-Params` in the responses. It names parameters that had no effect.
3. If a response is an error, read its `message` and `data.params`: they name the parameter and the accepted values.
4. If a value differs, look for it in the tables below.
"""


def render() -> str:
    checks = [f"| {row.subject} | `{row.request}` | {row.status} | {row.content} |" for row in CHECKS]
    checklist = CHECKLIST + "\n".join(checks) + "\n" + AFTER_CHECKLIST
    lines = [INTRODUCTION + checklist + DIFFERENCES]
    for title, rows in TABLES.items():
        lines += [f"### {title}", "", "| Subject | The Events Calendar | Kalends |", "|---|---|---|"]
        lines += [f"| {row.where} | {row.reference} | {row.kalends} |" for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + ADDITIONS
