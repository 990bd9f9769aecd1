"""The pages behind links in emails: what a person follows, and the end of one follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.core.messages import LANGUAGES, gettext_noop as N_
from kalends.core.times import local_of
from kalends.follow import storage
from kalends.follow.mails.digest_model import describe_query
from kalends.follow.mails.message_bytes import END_PATH, FOLLOW_PATH
from kalends.follow.operations import followings
from kalends.follow.operations.event_follows import find_public_event
from kalends.follow.pages.follow_form import RhythmChoices, read_form_rhythm
from kalends.follow.rules.follow_tokens import mask_email, read_end_token, read_manage_token
from kalends.follow.rules.slots import Rhythm
from kalends.rendering.cards import read_title
from kalends.store import Row
from kalends.website.context import PageRequest, PageRoute
from kalends.website.form_visits import FormPage, FormVisit, read_form, read_text, see_other, visit_form

HEADING: Final = N_("Your emails")
EXPIRED: Final = N_("Link expired")
EXPIRED_TEXT: Final = N_("For your security, links to this page work for 30 days.")
NEW_LINK: Final = N_("Send me a new link")
NEW_LINK_SENT: Final = N_("We’ve sent you an email with a new link.")
CHECK_EMAIL: Final = N_("Check your email")
UNKNOWN: Final = N_("This link doesn’t work any more.")
ERASED: Final = N_("Your data is deleted")
ERASED_TEXT: Final = N_("We’ve deleted your email address. You won’t get any more emails.")
END_HEADING: Final = N_("Unsubscribe")
END_TEXT: Final = N_("You won’t get any more emails about this.")
GONE_EVENT: Final = N_("An event that is no longer in the calendar")
END_BUTTON: Final = N_("Unsubscribe")
ENDED: Final = N_("You’re unsubscribed")


@dataclass(frozen=True, slots=True)
class Followed:
    """A list or an event on a person's page."""

    id: str
    about: str
    when: str  # of an event
    is_event: bool
    rhythm: Rhythm
    is_confirmed: bool
    is_paused: bool
    confirmed: str  # a day
    next_mail: str  # a day and time; empty for an event


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagePage(FormPage):
    template: ClassVar[str] = "follow_manage.html"
    action: str
    masked_email: str
    language_name: str
    suppressed: str  # the day on which emails ended because of refusals
    refusal_code: str
    follows: Sequence[Followed]
    waiting_events: int
    choices: RhythmChoices
    zone: str


_enter: Final = partial(visit_form, FormVisit)


async def handle_manage(request: PageRequest) -> Response:
    """Show everything stored about a person, or do what a button says."""
    # A replica may not know yet what the email leads to.
    request.needs_primary, form = True, await read_form(request)
    token = read_manage_token(request.path_params["token"])
    async with _enter(request, None, writing=form is not None) as visit:
        follower = await followings.open_manage_token(visit.tx, token, locked=form is not None) if token else None
        if follower is None or token is None:
            return await visit.show_note(EXPIRED, [UNKNOWN], 404)
        if token.expires_at <= visit.tx.now:
            return await _offer_link(visit, follower, is_sent=form is not None)
        if form is None:
            return await _show(visit, follower)
        action, follow_id = read_text(form, "action"), read_text(form, "follow")
        if action == "erase":
            await followings.erase(visit.tx, follower["id"])
            return await visit.show_note(ERASED, [ERASED_TEXT])
        follows = {row["id"]: row for row in await storage.list_follows(visit.tx, follower["id"])}
        if action == "resume_address":
            await followings.lift_suppression(visit.tx, follower["id"])
        elif (follow := follows.get(follow_id)) is not None:
            await _act(visit, follower, follow, form)
            if action == "end" and len(follows) == 1 and follower["suppressed_at"] is None:
                return await visit.show_note(ERASED, [ERASED_TEXT])
    return see_other(request.path, request)


async def _act(visit: FormVisit, follower: Row, follow: Row, form: Mapping[str, Any]) -> None:
    """Do what a button beside a follow says. If it is no longer possible, the page shows what has changed."""
    tx = visit.tx
    match read_text(form, "action"):
        case "confirm":
            await followings.confirm(tx, follower, follow)
        case "change" if (rhythm := read_form_rhythm(form)) is not None:
            await followings.change_rhythm(tx, follow, rhythm)
        case "pause" | "resume" as action:
            await followings.pause(tx, follower, follow, paused=action == "pause")
        case "end":
            await followings.end(tx, follow)
        case _:
            pass


async def _offer_link(visit: FormVisit, follower: Row, *, is_sent: bool) -> Response:
    if is_sent:
        await followings.send_link(visit.tx, follower["email"], follower["id"])
        return await visit.show_note(CHECK_EMAIL, [NEW_LINK_SENT])
    button = visit.page.locale.text(NEW_LINK)
    return await visit.show_note(EXPIRED, [EXPIRED_TEXT], button=button)


async def _show(visit: FormVisit, follower: Row) -> Response:
    locale, zone = visit.page.locale, visit.tx.site.timezone
    suppressed, rows = follower["suppressed_at"], await storage.list_follows(visit.tx, follower["id"])
    language: str = follower["language"]
    model = ManagePage(
        title=locale.text(HEADING),
        action=visit.request.with_query(visit.request.path),
        masked_email=mask_email(follower["email"]),
        language_name=LANGUAGES.get(language) or language,
        suppressed=locale.day(local_of(suppressed, zone).date()) if suppressed is not None else "",
        refusal_code=follower["refusal_code"],
        follows=[await _describe(visit, row) for row in rows],
        waiting_events=sum(map(followings.is_waiting_event, rows)),
        choices=RhythmChoices.make(locale),
        zone=zone,
    )
    return await visit.show(model)


async def _describe(visit: FormVisit, follow: Row) -> Followed:
    locale, zone = visit.page.locale, visit.tx.site.timezone
    confirmed, next_at = follow["confirmed_at"], follow["next_at"]
    # An event is looked at again then, which need not make an email.
    next_local = local_of(next_at, zone) if next_at is not None and follow["event_id"] is None else None
    about, when = await _name(visit, follow)
    return Followed(
        id=follow["id"],
        about=about,
        when=when,
        is_event=follow["event_id"] is not None,
        rhythm=followings.read_rhythm(follow),
        is_confirmed=confirmed is not None,
        is_paused=follow["paused"],
        confirmed=locale.day(local_of(confirmed, zone).date()) if confirmed is not None else "",
        next_mail=f"{locale.day(next_local.date())}, {locale.time(next_local)}" if next_local is not None else "",
    )


async def _name(visit: FormVisit, follow: Row) -> tuple[str, str]:
    """Return what a follow is about: the name of a list, or an event and its time."""
    if follow["event_id"] is None:
        return await describe_query(visit.context, follow["query"], visit.page.locale), ""
    event = await find_public_event(visit.context, follow["event_id"])
    if event is None:
        return visit.page.locale.text(GONE_EVENT), ""
    return read_title(event.title), visit.page.make_card(event).when.text


async def handle_end(request: PageRequest) -> Response:
    """Ask before a follow ends. A POST ends it at once, from wherever it comes: email programs send it (RFC 8058)."""
    request.needs_primary = True
    is_post = request.request.method == "POST"
    token = read_end_token(request.path_params["token"])
    async with _enter(request, None, writing=is_post) as visit:
        follow = await followings.open_end_token(visit.tx, token) if token else None
        if follow is None:
            # Programs may repeat a request after it has succeeded.
            return await visit.show_note(ENDED if is_post else EXPIRED, [UNKNOWN], 200 if is_post else 404)
        about, _ = await _name(visit, follow)
        if not is_post:
            button = visit.page.locale.text(END_BUTTON)
            return await visit.show_note(END_HEADING, [about], button=button)
        await followings.end(visit.tx, follow)
        return await visit.show_note(ENDED, [END_TEXT])


# Everything that looks like a link, but is none, gets the page that explains why links die.
ROUTES: Final[tuple[PageRoute, ...]] = tuple(
    PageRoute(pattern, None, accepts_post=True, handle=handle)
    for pattern, handle in (
        (rf"{END_PATH}(?P<token>[^/]+)", handle_end),
        (rf"{FOLLOW_PATH}(?P<token>[^/]+)/", handle_manage),
    )
)
