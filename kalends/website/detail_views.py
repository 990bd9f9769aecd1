"""Pages for single records: events, venues, organizers, categories and tags."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson
from markupsafe import Markup

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.json_ld import describe_event, describe_organizer, describe_venue
from kalends.calendar.kinds.kind import JsonObject
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.operations import calendar_months
from kalends.calendar.operations.record_verbs import (
    list_terms,
    read_event,
    read_locked_event,
    read_organizer,
    read_term,
    read_venue,
)
from kalends.calendar.rules.record_types import CANCELLED, SOLD_OUT, Event, Image, Organizer, Term, Venue
from kalends.core.cost import FREE
from kalends.core.errors import ApiError
from kalends.core.html_text import to_paragraphs, to_plain_text, to_single_line
from kalends.core.messages import gettext_noop as N_
from kalends.feeds.ics import address_lines, format_address
from kalends.rendering.cards import (
    FREE_TEXT,
    ONLINE,
    Badge,
    When,
    make_page_image,
    make_state_badge,
    make_when,
    pick_hue,
    read_title,
    shorten,
)
from kalends.rendering.page_urls import has_page, make_calendar_links, readable_slug
from kalends.series.operations.series_dates import find_position
from kalends.website.context import REPEATS, PageContext, PageRequest, PageResponse, make_page_context, show_page
from kalends.website.list_views import list_cards
from kalends.website.map_views import find_directions, format_points, is_locatable, list_mapped, make_places, map_link
from kalends.website.models.page_parts import WHOLE_API, ApiAddress, adapt
from kalends.website.models.series_models import ONE_OF, SeriesNote, describe_move, describe_rule_at, make_date_link
from kalends.website.pages import EventPage, Facts, Line, MessagePage, NamedUrls, Place, RecordPage

MAX_SIMILAR: Final = 3
MAX_SUMMARY: Final = 200


async def show_event(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show an event, or ask for its password."""
    return await show_event_page(page_request, replace(context, slug=path_params["slug"]))


async def show_event_page(page_request: PageRequest, context: OperationContext) -> PageResponse:
    page = make_page_context(page_request, context)
    try:
        read = await read_event(page.context)
    except ApiError as error:
        if error.code != "event-password-protected":
            raise
        return await _password_page(page)
    event = read.record
    # If a password has unlocked the event, the page must not be cached.
    is_unlocked = "password" in context.values
    similar_events, similar_tags = await calendar_months.list_similar(_with_values(context), event, MAX_SIMILAR)
    similar = [page.make_card(other) for other in similar_events]
    image = make_page_image(event.image)
    when = make_when(event, page.locale, page.site.timezone, long=True, names_zone=event.is_online)
    is_past = event.end_utc <= context.transaction.now
    mapped = list_mapped(page, event.places if event.show_map else ())
    state = make_state_badge(event.event_status, page.locale.translate)
    image_urls = [card.image.src for card in similar if card.image] + ([image.src] if image else [])
    model = EventPage(
        title=read_title(event.title),
        summary=_summary(event, when),
        canonical=event.url,
        when=when,
        is_past=is_past,
        id=event.id,
        follow_url=page.links.with_filters([("include", str(event.id))]).follow(),
        current_day=when.first,
        has_month=has_page(when.first),
        state=None if is_past and event.event_status == SOLD_OUT else state,
        reason=event.reason,
        badges=make_badges(page, event, is_past=is_past),
        image=image,
        description=adapt(event.description or event.excerpt, find_own_hosts(page)),
        calendar_links=make_calendar_links(event),
        ticket_url="" if is_past or event.event_status in (CANCELLED, SOLD_OUT) else event.ticket_url,
        directions_url="" if is_past or event.event_status == CANCELLED else find_directions(event),
        facts=make_event_facts(page, event),
        points=format_points(mapped),
        places=make_places(page, mapped),
        similar=similar,
        hue=pick_hue(event.categories[0].id if event.categories else None),
        categories=[(term.name, make_category_url(page, term)) for term in event.categories],
        tags=[(term.name, page.links.top_level(f"/tag/{term.slug}/")) for term in event.tags],
        json_ld=orjson.dumps(_json_ld(event, context)).decode(),
        series=await _make_series_note(page, event) if event.series else None,
    )
    return await show_page(
        page,
        model,
        cache_tags=(*read.cache_tags, *similar_tags),
        expires_at=None if is_past else event.end_utc,
        is_cacheable=not is_unlocked,
        image_urls=tuple(image_urls),
        api_address=ApiAddress.of_event(event.id),
    )


async def show_venue(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page = make_page_context(page_request, context)
    venue = (await read_venue(_with_slug(context, path_params["slug"]))).record
    lines = [Line(text) for text in address_lines(venue)]
    if is_locatable(venue):
        lines += [Line(page.locale.text(N_("Open in OpenStreetMap")), map_link(venue), is_external=True)]
    mapped = list_mapped(page, [venue])
    return await _show_record(
        page,
        venue,
        to_plain_text(venue.name),
        ("venue", str(venue.id)),
        image=venue.image,
        facts=[*([(N_("Address"), lines)] if lines else []), *_contact_facts(venue.phone, "", venue.website)],
        points=format_points(mapped),
        places=[replace(place, url="") for place in make_places(page, mapped)],
        json_ld=describe_venue(venue, context.render_context),
    )


async def show_organizer(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page = make_page_context(page_request, context)
    organizer = (await read_organizer(_with_slug(context, path_params["slug"]))).record
    return await _show_record(
        page,
        organizer,
        to_plain_text(organizer.name),
        ("organizer", str(organizer.id)),
        image=organizer.image,
        facts=_contact_facts(organizer.phone, organizer.email, organizer.website),
        json_ld=describe_organizer(organizer, context.render_context),
    )


async def show_category(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show the category that the last part of the path names. Redirect if the path is outdated."""
    page = make_page_context(page_request, context)
    slug = path_params["path"].rpartition("/")[2]
    category = (await read_term(CATEGORIES, _with_slug(context, slug))).record
    # Decode both paths, because request paths are decoded, whereas records store them percent-encoded.
    canonical_path = unquote(urlsplit(category.url).path)
    if canonical_path != f"/events/category/{unquote(path_params['path'])}/" and not page_request.frame:
        location = page_request.with_query(category.url)
        return PageResponse(b"", "text/plain", status=301, headers={"Location": location}, is_cacheable=False)
    subcategories = await list_terms(CATEGORIES, _with_values(context, parent=category.id, per_page=50))
    links = [(term.name, page.links.top_level(urlsplit(term.url).path)) for term in subcategories.records]
    return await _show_record(page, category, category.name, ("categories", str(category.id)), subcategories=links)


async def show_tag(page_request: PageRequest, context: OperationContext, path_params: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    tag = (await read_term(TAGS, _with_slug(context, path_params["slug"]))).record
    return await _show_record(page, tag, tag.name, ("tags", str(tag.id)))


async def _show_record(
    page: PageContext,
    record: Venue | Organizer | Term,
    name: str,
    filter_: tuple[str, str],
    *,
    image: Image | None = None,
    facts: Facts = (),
    points: str = "",
    places: Sequence[Place] = (),
    subcategories: NamedUrls = (),
    json_ld: JsonObject | None = None,
) -> PageResponse:
    """Show a venue, organizer, category or tag with the events that `filter_` selects."""
    page = replace(page, links=page.links.with_filters([filter_]))
    values = {
        key: entry for key, entry in page.context.values.items() if key in ("page", "per_page", "past", REPEATS)
    }
    context = _with_values(page.context, **values, **{filter_[0]: [int(filter_[1])]})
    path = urlsplit(record.url).path
    list_page = replace(page, links=page.links.with_filters([(REPEATS, "all")] if REPEATS in values else []))
    card_list = await list_cards(list_page, context, path, views=page.links, hides_repeats=True)
    # The picture and the number of upcoming events are the same on all pages of the record.
    upcoming = card_list
    if values.keys() - {REPEATS}:
        others = {key: entry for key, entry in context.values.items() if key not in ("page", "per_page", "past")}
        upcoming = await list_cards(list_page, _with_values(context, **others), path, hides_repeats=True)
    page_image = make_page_image(image) or upcoming.image
    text = record.description
    model = RecordPage(
        title=name,
        heading=name,
        card_list=card_list,
        summary=shorten(to_single_line(text), MAX_SUMMARY),
        canonical=record.url,
        robots="index",
        image=page_image,
        count=_count_upcoming(page, upcoming.total),
        facts=facts,
        points=points,
        places=places,
        description=adapt(to_paragraphs(text), find_own_hosts(page)) if text else Markup(),
        subcategories=subcategories,
        json_ld=orjson.dumps(json_ld).decode() if json_ld else "",
    )
    image_urls = (*card_list.image_urls, *([page_image.src] if page_image else []))
    address = ApiAddress.of_term(filter_[0], record.slug) if isinstance(record, Term) else WHOLE_API
    cache_tags = (*card_list.cache_tags, *upcoming.cache_tags)
    return await show_page(page, model, cache_tags=cache_tags, image_urls=image_urls, api_address=address)


def _count_upcoming(page: PageContext, count: int) -> str:
    if count > 1:
        return page.locale.text(N_("{n} upcoming events"), n=count)
    return page.locale.text(N_("One upcoming event") if count else N_("No upcoming events"))


def _with_slug(context: OperationContext, slug: str) -> OperationContext:
    return replace(context, slug=slug, values={})


async def _password_page(page: PageContext) -> PageResponse:
    """Ask for the password. As in the API and feeds, the title and time of a protected event are public."""
    event = await read_locked_event(page.context)
    is_wrong = "password" in page.context.values
    message = N_("Wrong password.") if is_wrong else N_("Enter the password to see the details.")
    model = MessagePage(
        title=read_title(event.title),
        message=page.locale.gettext(message),
        asks_password=True,
        when=make_when(event, page.locale, page.site.timezone, long=True),
        robots="noindex",
    )
    return await show_page(page, model, status=403, is_cacheable=False, api_address=ApiAddress.of_event(event.id))


async def _make_series_note(page: PageContext, event: Event) -> SeriesNote | None:
    series, locale, now = event.series, page.locale, page.context.transaction.now
    if series is None:
        return None
    position = await find_position(page.context, event, series)
    before, after = (
        make_date_link(page.links.event(found.slug), found.start_local, label, locale) if found else None
        for found, label in (
            (position.before, N_("Previous date: {when}")),
            (position.after, N_("Next date: {when}")),
        )
    )
    return SeriesNote(
        rule=describe_rule_at(series, now, locale),
        count=locale.text(ONE_OF, count=position.total) if position.is_complete and position.total > 1 else "",
        moved_from=describe_move(event, series, locale),
        before=before,
        after=after,
        url=page.links.top_level(f"/series/{readable_slug(series.slug)}/"),
    )


def _with_values(context: OperationContext, **values: Any) -> OperationContext:
    return replace(context, slug=None, values=values)


def _summary(event: Event, when: When) -> str:
    """Return the excerpt or the description as one line. If both are empty, return the time and place."""
    text = to_single_line(event.excerpt or event.description)
    return shorten(text or " · ".join([when.text, *map(format_address, event.places)]), MAX_SUMMARY)


def make_badges(page: PageContext, event: Event, *, is_past: bool) -> list[Badge]:
    badges = [
        (is_past, Badge(N_("This event has ended."))),
        (event.featured and not is_past, Badge(N_("Featured"), "is-featured")),
        (event.cost == FREE, Badge(FREE_TEXT, "is-positive")),
    ]
    return [replace(badge, label=page.locale.text(badge.label)) for applies, badge in badges if applies]


def _json_ld(event: Event, context: OperationContext) -> JsonObject:
    """Return the API's JSON-LD. All-day events get dates without times, because search engines expect that."""
    json_ld = describe_event(event, context.render_context)
    if event.all_day:
        first, last = event.start_local.date(), event.end_local.date()
        json_ld |= {"startDate": first.isoformat(), "endDate": last.isoformat()}
    return json_ld


def find_own_hosts(page: PageContext) -> frozenset[str]:
    host = page.request.request.headers.get("host", "").lower()
    return frozenset((host, urlsplit(page.context.base_url).netloc.lower()))


def make_event_facts(page: PageContext, event: Event) -> Facts:
    links = page.links
    facts: list[tuple[str, list[Line]]] = []
    if event.online_url:
        facts.append((ONLINE, [_website_line(event.online_url)]))
    elif event.is_online:
        facts.append((N_("Where"), [Line(page.locale.text(ONLINE))]))
    for venue in event.places:
        name = to_plain_text(venue.name)
        lines = [Line(name, links.top_level(f"/venue/{venue.slug}/"))]
        lines += [Line(text) for text in address_lines(venue) if text != name]
        if event.show_map_link and is_locatable(venue):
            lines += [Line(page.locale.text(N_("Open in OpenStreetMap")), map_link(venue), is_external=True)]
        facts.append((N_("Where"), lines))
    if event.cost:
        facts.append((N_("Cost"), [Line(page.locale.text(FREE_TEXT) if event.cost == FREE else event.cost)]))
    organizers = [
        Line(to_plain_text(organizer.name), links.top_level(f"/organizer/{organizer.slug}/"))
        for organizer in event.organizers
    ]
    if organizers:
        facts.append((N_("Organizer"), organizers))
    if event.website and event.website != event.url:
        facts.append((N_("Website"), [_website_line(event.website)]))
    return facts


def _contact_facts(phone: str, email: str, website: str) -> Facts:
    facts: list[tuple[str, list[Line]]] = []
    if phone:
        facts.append((N_("Phone"), [Line(phone)]))
    if email:
        facts.append((N_("Email"), [Line(email, f"mailto:{quote(email, safe='@')}")]))
    if website:
        facts.append((N_("Website"), [_website_line(website)]))
    return facts


def _website_line(url: str) -> Line:
    host = urlsplit(url).netloc.removeprefix("www.")
    return Line(host or url, url, is_external=True)


def make_category_url(page: PageContext, term: Term) -> str:
    """Return a URL that contains only the slug. The category page redirects to the full path."""
    return page.links.top_level(f"/events/category/{term.slug}/")
