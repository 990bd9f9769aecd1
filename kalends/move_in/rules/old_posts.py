"""Events, venues, organizers, images and authors from the old site."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED
from kalends.core import times
from kalends.core.cost import Currency, Position, format_cost, read_cost
from kalends.core.credentials import ROLES
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.times import DateTimeInput
from kalends.core.zones import read_zone
from kalends.imports.rules.import_records import ImportedRecord, Rejection
from kalends.move_in.rules.exchanges import JsonObject
from kalends.move_in.rules.old_content import Converter
from kalends.move_in.rules.old_records import (
    Key,
    SiteFacts,
    Warnings,
    clean_email,
    clean_website,
    compute_uid,
    list_other_fields,
    parse_time,
    read_flag,
    read_ids,
    read_meta,
    read_number,
    read_raw,
    read_rendered,
    read_text,
    read_utc,
)

STATUSES: Final = ("publish", "future", "draft", "pending", "private", "trash")
STATES: Final = {
    "": SCHEDULED,
    "scheduled": SCHEDULED,
    "canceled": CANCELLED,
    "cancelled": CANCELLED,
    "postponed": POSTPONED,
    "moved-online": MOVED_ONLINE,
    "moved_online": MOVED_ONLINE,
}
# TEC stores `suffix`, but its API uses `postfix`.
POSITIONS: Final[Mapping[str, Literal["prefix", "postfix"]]] = {
    "prefix": "prefix",
    "postfix": "postfix",
    "suffix": "postfix",
}
NO_TITLE: Final = "(no title)"  # as WordPress shows it
# Warnings that explain differences when the move is verified.
UNKNOWN_ZONE: Final = N_("The time zone {name} is unknown; the site’s time zone is used.")
OTHER_UTC: Final = N_("The UTC time differs from the local time; the local time counts.")
UNKNOWN_FLAGS: Final = N_("Whether it is hidden, featured or sticky could not be read.")

Values = dict[str, Any]


@dataclass(slots=True)
class Mapper:
    """Maps posts. `tribe` holds the events from `tribe/events/v1`, the only source for some flags."""

    site: SiteFacts
    converter: Converter
    slugs: Mapping[str, Mapping[int, str]]
    tribe: Mapping[int, JsonObject]
    users: frozenset[str]
    warnings: Warnings = field(default_factory=Warnings)
    rejections: list[Rejection] = field(default_factory=list[Rejection])

    # Venues and organizers ----------------------------------------------------------------------

    def map_venue(self, record: JsonObject) -> ImportedRecord:
        key, meta = ("venues", str(record["id"])), read_meta(record)
        latitude, longitude = (read_number(read_text(meta, name)) for name in ("_VenueLat", "_VenueLng"))
        has_place = latitude is not None and longitude is not None and abs(latitude) <= 90 and abs(longitude) <= 180
        values: Values = {
            "venue": self._read_title(key, record),
            **self._read_post(key, record),
            "address": read_text(meta, "_VenueAddress"),
            "city": read_text(meta, "_VenueCity"),
            "country": read_text(meta, "_VenueCountry"),
            "province": read_text(meta, "_VenueProvince"),
            "state": read_text(meta, "_VenueState"),
            "stateprovince": read_text(meta, "_VenueStateProvince"),
            "zip": read_text(meta, "_VenueZip"),
            "phone": read_text(meta, "_VenuePhone"),
            "website": self._read_website(key, read_text(meta, "_VenueURL")),
            "geo_lat": latitude if has_place else None,
            "geo_lng": longitude if has_place else None,
            "show_map": read_flag(meta.get("_VenueShowMap")),
            "show_map_link": read_flag(meta.get("_VenueShowMapLink")),
        }
        return self._finish(key, record, self._hide_protected(key, record, values), self._read_links(key, record))

    def map_organizer(self, record: JsonObject) -> ImportedRecord:
        key, meta = ("organizers", str(record["id"])), read_meta(record)
        email = clean_email(read_text(meta, "_OrganizerEmail"))
        if email is None:
            self.warnings.add(key, Message("The email address is not valid; it is left out."))
        values: Values = {
            "organizer": self._read_title(key, record),
            **self._read_post(key, record),
            "phone": read_text(meta, "_OrganizerPhone"),
            "website": self._read_website(key, read_text(meta, "_OrganizerWebsite")),
            "email": email or "",
        }
        return self._finish(key, record, self._hide_protected(key, record, values), self._read_links(key, record))

    def _hide_protected(self, key: Key, record: JsonObject, values: Values) -> Values:
        """Make a password-protected record private: in Kalends, only events can have a password."""
        if not record.get("password"):
            return values
        self.warnings.add(
            key, Message("It is protected by a password, which only events can be; it becomes private.")
        )
        return {**values, "status": "private" if values["status"] in ("publish", "future") else values["status"]}

    # Events -------------------------------------------------------------------------------------

    def map_event(self, record: JsonObject) -> ImportedRecord | None:
        key, meta = ("events", str(record["id"])), read_meta(record)
        start, end = parse_time(meta.get("_EventStartDate")), parse_time(meta.get("_EventEndDate"))
        if start is None or end is None:
            self._reject(key, record, Message("It has no start or end."))
            return None
        columns = {"uid": compute_uid(record["id"], start, end, self.site.host)}
        if guid := read_raw(record, "guid"):
            columns["feed_guid"] = guid
        values: Values = {
            "title": self._read_title(key, record),
            **self._read_post(key, record),
            "excerpt": self._convert(key, record, "excerpt"),
            **self._read_times(key, meta, start, end),
            **self._read_cost(key, record, meta),
            "website": self._read_website(key, read_text(meta, "_EventURL")),
            "show_map": read_flag(meta.get("_EventShowMap")),
            "show_map_link": read_flag(meta.get("_EventShowMapLink")),
            **self._read_flags(key, record),
            **self._read_state(key, meta),
            "online_url": self._read_online_url(key, record, meta),
            "new_password": str(record.get("password") or ""),
        }
        links = {
            **self._read_links(key, record),
            "venue": read_ids(meta.get("_EventVenueID")),
            "organizer": read_ids(meta.get("_EventOrganizerID")),
            "categories": read_ids(record.get("tribe_events_cat") or []),
            "tags": read_ids(record.get("tags") or []),
        }
        return self._finish(key, record, values, links, columns)

    def _read_times(self, key: Key, meta: JsonObject, start: datetime, end: datetime) -> Values:
        """Return the local times.

        TEC derives its UTC times from the local times, so the UTC times are only compared.
        """
        is_all_day, zone = (
            read_flag(meta.get("_EventAllDay")),
            self._read_zone(key, read_text(meta, "_EventTimezone")),
        )
        if is_all_day and end.time() < start.time():
            end -= timedelta(days=1)  # if the day ends after midnight, TEC stores the next day as the end
        if not is_all_day:
            self._compare_utc(key, meta, zone, start, end)
        return {
            "start_date": times.format_datetime(start),
            "end_date": times.format_datetime(end),
            "timezone": zone,
            "all_day": is_all_day,
        }

    def _read_zone(self, key: Key, name: str) -> str:
        try:
            return read_zone(name) if name else self.site.timezone
        except InvalidValue:
            self.warnings.add(key, Message(UNKNOWN_ZONE, name=name))
            return self.site.timezone

    def _compare_utc(self, key: Key, meta: JsonObject, zone: str, start: datetime, end: datetime) -> None:
        for local, name in ((start, "_EventStartDateUTC"), (end, "_EventEndDateUTC")):
            stored = parse_time(meta.get(name))
            utc = times.to_utc(DateTimeInput(local, None, False), zone).replace(tzinfo=None)
            if stored is not None and stored != utc:
                self.warnings.add(key, Message(OTHER_UTC))

    def _read_cost(self, key: Key, record: JsonObject, meta: JsonObject) -> Values:
        code = read_text(meta, "_EventCurrencyCode").strip()
        cost, symbol = read_text(meta, "_EventCost"), read_text(meta, "_EventCurrencySymbol")
        position: Position = POSITIONS.get(read_text(meta, "_EventCurrencyPosition")) or ""
        self._compare_cost(key, record, cost, Currency(symbol.strip() or None, None, position or None))
        return {
            "cost": cost,
            "currency_symbol": symbol,
            "currency_code": code if len(code) == 3 and code.isalpha() else "",
            "currency_position": position,
        }

    def _compare_cost(self, key: Key, record: JsonObject, cost: str, currency: Currency) -> None:
        """Warn if the displayed costs differ. TEC adds the site's currency even to amounts in another currency."""
        former = self.tribe.get(record["id"], {}).get("cost")
        position = POSITIONS.get(self.site.currency_position) or "prefix"
        try:
            shown, _ = format_cost(read_cost(cost), self.site.currency_symbol or "$", position, currency)
        except InvalidValue:
            return  # The plan rejects the event with a reason.
        if isinstance(former, str) and former and html.unescape(former) != shown:
            self.warnings.add(
                key, Message("The old site shows the cost as {old}, this one as {new}.", old=former, new=shown)
            )

    def _read_online_url(self, key: Key, record: JsonObject, meta: JsonObject) -> str:
        """Return a virtual event's address, unless the old site hides it from some visitors."""
        shown = self.tribe.get(record["id"], {})
        address = read_text(meta, "_tribe_events_virtual_url") or read_text(shown, "virtual_url")
        audience = meta.get("_tribe_events_virtual_show_embed_to") or "all"
        moment = read_text(meta, "_tribe_events_virtual_show_embed_at") or "immediately"
        if address and (audience not in ("all", ["all"]) or moment != "immediately"):
            self.warnings.add(
                key, Message("The old site restricts who sees the online address, or when; it is left out.")
            )
            return ""
        return self._read_website(key, address)

    def _read_flags(self, key: Key, record: JsonObject) -> Values:
        """Return the flags from `tribe`, the only source. A trashed event that `tribe` lacks is hidden."""
        found = self.tribe.get(record["id"])
        if found is None and record.get("status") != "trash":
            self.warnings.add(key, Message(UNKNOWN_FLAGS))
        is_hidden = record.get("status") == "trash" if found is None else read_flag(found.get("hide_from_listings"))
        flags = found or {}
        return {
            "hide_from_listings": is_hidden,
            "featured": read_flag(flags.get("featured")),
            "sticky": read_flag(flags.get("sticky")),
        }

    def _read_state(self, key: Key, meta: JsonObject) -> Values:
        name = read_text(meta, "_tribe_events_status")
        if name not in STATES:
            self.warnings.add(key, Message("The state {name} of events is unknown; it is left out.", name=name))
        state = STATES.get(name, SCHEDULED)
        reason = read_text(meta, "_tribe_events_status_reason") if state != SCHEDULED else ""
        return {"event_status": state, "status_reason": reason}

    # Fields that all posts share ----------------------------------------------------------------

    def _read_post(self, key: Key, record: JsonObject) -> Values:
        values: Values = {"status": str(record["status"]), "description": self._convert(key, record, "content")}
        if published := read_utc(record, "date", self.site.timezone):
            values["date_utc"] = times.format_datetime(published)
        return values

    def _read_title(self, key: Key, record: JsonObject) -> str:
        title = read_raw(record, "title").strip()
        if not title:
            self.warnings.add(key, Message("It has no title."))
        return title or NO_TITLE

    def _read_website(self, key: Key, text: str) -> str:
        website = clean_website(text) if text.strip() else ""
        if website is None:
            self.warnings.add(key, Message("The address of the website is not valid; it is left out."))
        return website or ""

    def _read_links(self, key: Key, record: JsonObject) -> dict[str, Sequence[str]]:
        image, author = record.get("featured_media"), str(record.get("author") or "")
        links: dict[str, Sequence[str]] = {"image": read_ids(image or [])}
        if author not in self.users:
            self.warnings.add(key, Message("Its author has no account on the site."))
            return links
        return {**links, "author": [author]}

    def _convert(self, key: Key, record: JsonObject, name: str) -> str:
        converted = self.converter.convert(read_raw(record, name), read_rendered(record, name), record["id"])
        causes = [
            *[
                Message("The shortcode [{name}] is removed.", name=entry)
                for entry in dict.fromkeys(converted.shortcodes)
            ],
            *[Message("The block {name} has no content here.", name=entry) for entry in converted.blocks],
            *[Message("The element <{name}> is removed.", name=entry) for entry in converted.elements],
            *[Message("The frame of {host} is removed.", host=entry) for entry in converted.frames],
            *([Message("Its embedded media become links.")] if converted.has_players else []),
            *[
                Message("Its gallery shows image {number}, which is missing.", number=entry)
                for entry in dict.fromkeys(converted.missing)
            ],
            *[
                Message("It links the file {url}; serve the old uploads folder to keep the link working.", url=url)
                for url in dict.fromkeys(converted.files)
            ],
        ]
        for cause in causes:
            self.warnings.add(key, cause)
        return converted.html

    def _finish(
        self,
        key: Key,
        record: JsonObject,
        values: Values,
        links: Mapping[str, Sequence[str]],
        columns: Mapping[str, str] | None = None,
    ) -> ImportedRecord:
        exact = dict(columns or {})
        slug = self.slugs[key[0]][record["id"]]
        if slug or key[0] == "events":  # An event draft may have no slug; other records always get one.
            exact["slug"] = slug
        if modified := read_utc(record, "modified", self.site.timezone):
            exact["modified_utc"] = modified.isoformat()
        self.list_fields(key, record)
        return ImportedRecord(
            *key, values, columns=exact, links=links, wanted_id=record["id"], warnings=self.warnings.of(key)
        )

    def list_fields(self, key: Key, record: JsonObject) -> None:
        """Warn about a record's fields that have no equivalent."""
        names = list_other_fields(record, self.tribe.get(record["id"], {}) if key[0] == "events" else {})
        if key[0] in ("venues", "organizers") and read_raw(record, "excerpt").strip():
            names.append("excerpt")
        if key[0] == "users" and str(record.get("description") or "").strip():
            names.append("description")
        for name in names:
            self.warnings.add(key, Message("The field {name} has no equivalent here and stays behind.", name=name))

    def _reject(self, key: Key, record: JsonObject, reason: Message) -> None:
        self.rejections.append(Rejection(reason, identity=key[1], title=read_raw(record, "title")))

    # Images -------------------------------------------------------------------------------------

    def map_image(self, record: JsonObject) -> ImportedRecord:
        key = ("media", str(record["id"]))
        caption, description = read_raw(record, "caption").strip(), read_raw(record, "description").strip()
        if caption and description:
            self.warnings.add(key, Message("It has a caption and a description; the description is lost."))
        columns = {
            name: time.isoformat()
            for name, time in (
                ("added_at", read_utc(record, "date", self.site.timezone)),
                ("modified_utc", read_utc(record, "modified", self.site.timezone)),
            )
            if time is not None
        }
        self.list_fields(key, record)
        links = self._read_links(key, record)
        values = {
            "title": read_raw(record, "title"),
            "alt_text": str(record.get("alt_text") or ""),
            "caption": caption or description,
        }
        return ImportedRecord(
            *key,
            values,
            columns=columns,
            links={name: ids for name, ids in links.items() if name == "author"},
            wanted_id=record["id"],
            warnings=self.warnings.of(key),
        )


# Users and terms ----------------------------------------------------------------------------------

# For an account with a custom role, the strongest of these capabilities determines the role.
ROLE_BY_CAPABILITY: Final = (
    ("manage_options", "administrator"),
    ("edit_others_tribe_events", "editor"),
    ("publish_tribe_events", "author"),
    ("edit_tribe_events", "contributor"),
)


def map_user(record: JsonObject) -> ImportedRecord:
    login = str(record.get("username") or record.get("slug") or record["id"])
    return ImportedRecord(
        "users",
        str(record["id"]),
        {
            "login": login,
            "email": clean_email(str(record.get("email") or "")) or "",
            "name": html.unescape(str(record.get("name") or login)),
            "role": choose_role(record),
        },
        columns={"created_at": created} if (created := _read_time(record.get("registered_date"))) else {},
        wanted_id=record["id"],
    )


def choose_role(record: JsonObject) -> str:
    """Return the account's first role that exists in Kalends, or else a role that matches its capabilities."""
    roles: list[Any] = record.get("roles") or []
    known = next((role for role in roles if role in ROLES and role != "anonymous"), None)
    given = record.get("capabilities")
    capabilities: JsonObject = given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return known or next((role for name, role in ROLE_BY_CAPABILITY if capabilities.get(name)), "subscriber")


def map_terms(kind: str, records: Mapping[int, JsonObject]) -> Iterator[ImportedRecord]:
    """Yield the terms, parents before their children."""
    done: set[int] = set()

    def visit(record_id: int) -> Iterator[ImportedRecord]:
        if record_id in done or record_id not in records:
            return
        done.add(record_id)
        yield from visit(int(records[record_id].get("parent") or 0))
        yield _map_term(kind, records[record_id], records)

    for record_id in records:
        yield from visit(record_id)


def _map_term(kind: str, record: JsonObject, records: Mapping[int, JsonObject]) -> ImportedRecord:
    parent = int(record.get("parent") or 0)
    return ImportedRecord(
        kind,
        str(record["id"]),
        {
            "name": html.unescape(str(record.get("name") or record.get("slug") or record["id"])),
            "description": str(record.get("description") or ""),
        },
        columns={"slug": str(record["slug"])} if record.get("slug") else {},
        links={"parent": [str(parent)] if parent in records else []} if kind == "categories" else {},
        wanted_id=record["id"],
    )


def _read_time(value: object) -> str:
    try:
        return datetime.fromisoformat(value).isoformat() if isinstance(value, str) else ""
    except ValueError:
        return ""
