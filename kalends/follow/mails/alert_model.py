"""An alert or a reminder in words, with the event for calendar programs."""

from typing import Final

from kalends.core.messages import gettext_noop as N_
from kalends.core.times import utc_of
from kalends.feeds import ics
from kalends.follow.mails.digest_model import (
    WITHDRAWN,
    DigestModel,
    Entry,
    Reader,
    Section,
    format_state,
    make_change,
    make_entry,
    name_changes,
)
from kalends.follow.operations.digest_content import Change
from kalends.follow.operations.event_follows import EventNews
from kalends.rendering.cards import mark_title, read_title

CHANGED: Final = N_("An event that you follow has changed")
REMINDER: Final = N_("Reminder: an event that you follow")
CHANGE_SUBJECT: Final = N_("{changes}: {event}")
REMINDER_SUBJECT: Final = N_("Reminder: {event}")
CANCELLED_TITLE: Final = N_("Cancelled")


def make_alert(news: EventNews, reader: Reader) -> DigestModel:
    locale, event = reader.locale, news.event
    heading, kinds = (REMINDER if news.decision.is_reminder else CHANGED), news.decision.kinds
    if event is None:
        subject = locale.text(WITHDRAWN, when=format_state(news.former, locale))
        entry = Entry("", "", "", "", (subject,))
    elif news.decision.is_reminder:
        subject = locale.text(REMINDER_SUBJECT, event=read_title(event.title))
        entry = make_entry(reader.card(event), reader)
    else:
        subject = locale.text(CHANGE_SUBJECT, changes=name_changes(kinds, locale), event=read_title(event.title))
        entry = make_change(Change(event, news.former, kinds, 1), reader)
    return DigestModel(
        language=locale.language,
        subject=subject,
        title=reader.site.name,
        period="",
        about="",
        sections=[Section(locale.text(heading), [("", [entry])])],
        links=[],
        is_event=True,
    )


def write_calendar(news: EventNews, reader: Reader) -> str:
    """Return the event for calendar programs, which replace the entry that they have; empty after a deletion."""
    event, state, site = news.event, news.former, reader.site
    calendar = ics.Calendar(site.name, reader.base_url, site.timezone, reader.locale.text(CANCELLED_TITLE))
    if event is not None:
        title = mark_title(read_title(event.title), event.event_status, reader.locale.translate)
        parts = [ics.begin_calendar(calendar, [event]), ics.write_event(event, news.sequence, title)]
    elif news.uid:
        # The former times are all that is public.
        starts, ends = [
            utc_of(local, state.timezone, fold)
            for local, fold in zip((state.start, state.end), state.folds, strict=True)
        ]
        times = ics.Times(state.start, state.end, starts, ends, state.timezone, state.all_day)
        cancelled = ics.CancelledEvent(news.uid, news.sequence, news.read_at, times)
        parts = [ics.begin_calendar(calendar, [times]), ics.write_cancelled(cancelled, calendar)]
    else:
        return ""
    return "".join((*parts, ics.end_calendar()))
