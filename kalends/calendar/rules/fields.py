"""The plain fields of events, venues and organizers: one row each, in JSON order.

A plain field is a parameter whose column has the same name and stores the parsed value. Its row here defines it for
the API, the API description, the history, tables and forms. Other fields need code in `kinds`: times, slug, password,
links, and the display of cost and excerpt.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field as attribute
from operator import attrgetter, itemgetter
from typing import Any, Final, Literal, LiteralString

from kalends.calendar.rules import column_headers as headers
from kalends.calendar.rules.record_types import MAX_REASON_LENGTH, SCHEDULED, STATES
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import BOOLEAN, WEBSITE, Param, param
from kalends.core.sanitize import clean_html, clean_plain

Control = Literal[
    "text", "email", "tel", "url", "number", "datetime-local", "textarea", "checkbox", "image", "select"
]
OFF: Final = {"autocomplete": "off"}  # otherwise, a browser suggests the editor's address instead of the venue's


@dataclass(frozen=True, slots=True)
class Input:
    """The form input for a field. An empty label means the field's label."""

    control: Control = "text"
    label: str = ""
    hint: str = ""
    attributes: Mapping[str, str] = attribute(default_factory=lambda: OFF)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    param: Param
    label: str  # a message ID
    group: str  # groups fields in forms, labels and tables
    headers: Sequence[str] = ()  # column headers in tables; tables omit a field without headers
    name: LiteralString = attribute(init=False)  # parameter and column name
    is_flag: bool = attribute(init=False)
    path: str = ""  # attribute of the typed record; by default the parameter's name
    schema: Mapping[str, Any] | None = None  # for responses; None means derived from the parameter
    form: Input = Input()
    in_sequence: bool = False  # whether a change raises the event's SEQUENCE in calendar feeds
    in_feed: bool = False  # whether calendar feeds show the field

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.param.name)
        object.__setattr__(self, "is_flag", self.param.type is BOOLEAN)
        object.__setattr__(self, "path", self.path or self.param.name)

    @property
    def default(self) -> Any:
        """Return the value for a new record or for a locked event."""
        return False if self.is_flag else self.param.type.null_value

    @property
    def response_schema(self) -> dict[str, Any]:
        if self.schema is not None:
            return dict(self.schema)
        schema = self.param.type.doc_schema if self.param.type.schema["type"] in _NUMBERS else self.param.type.schema
        notes = {"description": self.param.description, "x-extension": True} if self.param.is_extension else {}
        return {**schema, **notes}


_NUMBERS: Final = ("number", "integer")


class Plain:
    """Reads all plain fields of a row or a typed record in one call."""

    __slots__ = ("attributes", "columns", "get_attributes", "get_columns", "names")

    def __init__(self, fields: Iterable[Field]) -> None:
        rows = list(fields)
        self.names = tuple(row.name for row in rows)
        self.get_attributes: Callable[[Any], tuple[Any, ...]] = attrgetter(*(row.path for row in rows))
        # A dotted path names part of an attribute that the kind's code builds.
        self.attributes = tuple(row.path for row in rows if "." not in row.path)
        self.columns = tuple(row.name for row in rows if "." not in row.path)
        self.get_columns: Callable[[Any], tuple[Any, ...]] = itemgetter(*self.columns)


def in_group(fields: Iterable[Field], group: str) -> list[Field]:
    return [row for row in fields if row.group == group]


def pick(fields: Iterable[Field], *names: str) -> list[Field]:
    """Return the named fields in the given order."""
    rows = {row.name: row for row in fields}
    return [rows[name] for name in names]


def names_of(fields: Iterable[Field]) -> tuple[LiteralString, ...]:
    return tuple(row.name for row in fields)


_TEXT: Final = params.text(clean_plain)
_PHONE: Final = Field(
    param("phone", _TEXT, "The phone number"), N_("Phone"), "contact", headers.PHONE, form=Input("tel")
)

# Organizers ----------------------------------------------------------------------------------

ORGANIZER_FIELDS: Final = (
    _PHONE,
    Field(param("website", WEBSITE, "The website"), N_("Website"), "contact", headers.WEBSITE, form=Input("url")),
    Field(
        param("email", params.EMAIL, "The email address"),
        N_("Email"),
        "contact",
        headers.EMAIL,
        form=Input("email", hint=N_("Shown on the public page.")),
    ),
)

# Venues --------------------------------------------------------------------------------------

_LATITUDE: Final = params.number(-90, 90)
_LONGITUDE: Final = params.number(-180, 180)


def _decimal(limit: int) -> Mapping[str, str]:
    return {"step": "any", "min": f"-{limit}", "max": f"{limit}", "inputmode": "decimal", **OFF}


VENUE_FIELDS: Final = (
    Field(
        param("address", _TEXT, "The address"),
        N_("Street address"),
        "address",
        headers.ADDRESS,
        form=Input(label=N_("Street and number")),
        in_sequence=True,
    ),
    Field(param("city", _TEXT, "The city"), N_("City"), "address", headers.CITY, in_sequence=True),
    Field(param("country", _TEXT, "The country"), N_("Country"), "address", headers.COUNTRY, in_sequence=True),
    Field(param("province", _TEXT, "The province"), N_("Province"), "state", headers.PROVINCE, in_sequence=True),
    Field(param("state", _TEXT, "The state"), N_("State"), "state", headers.STATE, in_sequence=True),
    Field(param("zip", _TEXT, "The ZIP or postal code"), N_("Postal code"), "address", headers.ZIP, in_sequence=True),
    _PHONE,
    Field(param("website", WEBSITE, "The website URL"), N_("Website"), "contact", headers.WEBSITE, form=Input("url")),
    Field(
        param("stateprovince", _TEXT, "The state and province"),
        N_("State or province"),
        "state",
        form=Input(label=N_("State or province in addresses"), hint=N_("If empty, it’s chosen by country.")),
        in_sequence=True,
    ),
    Field(
        param("geo_lat", _LATITUDE, "The latitude", is_extension=True),
        N_("Latitude"),
        "map",
        headers.LATITUDE,
        path="latitude",
        schema=_LATITUDE.doc_schema,
        form=Input("number", hint=N_("From -90 to 90."), attributes=_decimal(90)),
        in_sequence=True,
    ),
    Field(
        param("geo_lng", _LONGITUDE, "The longitude", is_extension=True),
        N_("Longitude"),
        "map",
        headers.LONGITUDE,
        path="longitude",
        schema=_LONGITUDE.doc_schema,
        form=Input("number", hint=N_("From -180 to 180."), attributes=_decimal(180)),
        in_sequence=True,
    ),
    Field(
        param("show_map", BOOLEAN, "Whether events linked to the venue show a map"),
        N_("Show a map"),
        "map",
        headers.SHOW_MAP,
        form=Input("checkbox", N_("Show a map on event pages")),
    ),
    Field(
        param("show_map_link", BOOLEAN, "Whether events linked to the venue show a map link"),
        N_("Show a map link"),
        "map",
        headers.SHOW_MAP_LINK,
        form=Input("checkbox"),
    ),
)

# Events --------------------------------------------------------------------------------------


def _clean_excerpt(value: str, limit: int = 64_000) -> str:
    return clean_html(value, limit)


def _clean_reason(value: str, limit: int = MAX_REASON_LENGTH) -> str:
    return clean_plain(value, limit)


def _optional(description: str, **options: Any) -> dict[str, Any]:
    return {"type": ["string", "null"], **options, "description": description, "x-extension": True}


EVENT_FIELDS: Final = (
    Field(
        param("excerpt", params.text(_clean_excerpt), "The event excerpt"),
        N_("Summary"),
        "text",
        headers.EXCERPT,
        schema={"type": "string", "description": N_("Sanitized HTML, or empty")},
        in_feed=True,
    ),
    Field(
        param("cost", params.COST, "The event cost"),
        N_("Cost"),
        "cost",
        headers.COST,
        schema={"type": "string", "description": N_("The formatted cost, with its currency")},
    ),
    Field(param("website", WEBSITE, "The event website URL"), N_("Website"), "links", headers.WEBSITE),
    Field(param("show_map", BOOLEAN, "Whether to show a map"), N_("Show a map"), "display", headers.SHOW_MAP),
    Field(
        param("show_map_link", BOOLEAN, "Whether to show a map link"),
        N_("Show a map link"),
        "display",
        headers.SHOW_MAP_LINK,
    ),
    Field(
        param("hide_from_listings", BOOLEAN, "Whether to hide the event in lists"),
        N_("Hidden from lists"),
        "display",
        headers.HIDDEN,
    ),
    Field(
        param("sticky", BOOLEAN, "Whether the event is pinned to the top of its day in the calendar view"),
        N_("Pin to the top of the day"),
        "display",
        headers.STICKY,
    ),
    Field(param("featured", BOOLEAN, "Whether the event is featured"), N_("Featured"), "display", headers.FEATURED),
    Field(
        param("ticket_url", WEBSITE, "URL where tickets are sold", is_extension=True),
        N_("Tickets"),
        "links",
        headers.TICKETS,
    ),
    Field(
        param(
            "event_status",
            params.one_of(*STATES, null_value=SCHEDULED),
            "The event’s status, such as scheduled or cancelled",
            default=SCHEDULED,
            is_extension=True,
        ),
        N_("Event status"),
        "state",
        headers.EVENT_STATUS,
        schema=_optional(
            N_("The event’s status, such as scheduled or cancelled; null if a password protects it"),
            enum=[*STATES, None],
        ),
        in_sequence=True,
        in_feed=True,
    ),
    Field(
        param(
            "status_reason", params.text(_clean_reason), "The reason for the status, as plain text", is_extension=True
        ),
        N_("Reason"),
        "state",
        headers.STATUS_REASON,
        in_sequence=True,
    ),
    Field(
        param("online_url", WEBSITE, "URL to take part online", is_extension=True),
        N_("Online link"),
        "links",
        headers.ONLINE,
        in_sequence=True,
        in_feed=True,
    ),
    Field(
        param(
            "currency_symbol", params.CURRENCY_SYMBOL, "The currency symbol; by default the site's", is_extension=True
        ),
        N_("Currency symbol"),
        "cost",
        headers.CURRENCY_SYMBOL,
        path="currency.symbol",
        schema=_optional(N_("The event’s currency symbol; null means the site’s")),
    ),
    Field(
        param("currency_code", params.CURRENCY_CODE, "The currency code; by default the site's", is_extension=True),
        N_("Currency"),
        "cost",
        headers.CURRENCY_CODE,
        path="currency.code",
        schema=_optional(N_("The event’s currency code; null means the site’s")),
    ),
    Field(
        param(
            "currency_position",
            params.CURRENCY_POSITION,
            "Whether the symbol is before or after the amount; by default as on the site",
            is_extension=True,
        ),
        N_("Currency symbol position"),
        "cost",
        headers.CURRENCY_POSITION,
        path="currency.position",
        schema=_optional(
            N_("The position of the currency symbol; null means as on the site"), enum=["prefix", "postfix", None]
        ),
    ),
)
