"""Models of the interface, generated from /doc by `just client`."""

from __future__ import annotations

# ruff: noqa

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, confloat, conint, constr
from enum import Enum, StrEnum
from typing import Any, Literal


class DateDetails(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    year: constr(pattern=r"^\d{4}$")
    month: constr(pattern=r"^\d\d$")
    day: constr(pattern=r"^\d\d$")
    hour: constr(pattern=r"^\d\d$")
    minutes: constr(pattern=r"^\d\d$")
    seconds: constr(pattern=r"^\d\d$")


class Webp(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    url: AnyUrl
    filesize: conint(ge=0)


class ImageSize(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    width: conint(ge=0) | None = None
    height: conint(ge=0) | None = None
    mime_type: str | None = Field(None, alias="mime-type")
    filesize: conint(ge=0) | None = None
    url: AnyUrl | None = None
    webp: Webp | None = Field(None, description="This size as WebP")


class Image(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    url: AnyUrl
    id: conint(ge=1, le=9007199254740991)
    extension: str
    width: conint(ge=0)
    height: conint(ge=0)
    filesize: conint(ge=0)
    sizes: dict[str, ImageSize] | None = Field(
        None, description="thumbnail, medium, large and full; absent until generated"
    )
    alt_text: str = Field(..., description="Alternative text")
    caption: str = Field(..., description="Sanitized HTML, or empty")
    focus_x: confloat(ge=0.0, le=1.0) = Field(..., description="Horizontal focal point, from 0 (left) to 1 (right)")
    focus_y: confloat(ge=0.0, le=1.0) = Field(..., description="Vertical focal point, from 0 (top) to 1 (bottom)")


class CurrencyPosition(StrEnum):
    prefix = "prefix"
    postfix = "postfix"
    field_ = ""


class CostDetails(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    currency_symbol: str
    currency_code: str
    currency_position: CurrencyPosition
    values: list[str]


class Taxonomy(StrEnum):
    tribe_events_cat = "tribe_events_cat"
    post_tag = "post_tag"


class Urls(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    self: AnyUrl
    collection: AnyUrl
    up: AnyUrl | None = None


class TermInEvent(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    name: str
    slug: str
    term_group: conint(ge=0)
    term_taxonomy_id: conint(ge=1, le=9007199254740991)
    taxonomy: Taxonomy
    description: str
    parent: conint(ge=0)
    count: conint(ge=0)
    filter: Literal["raw"]
    id: conint(ge=1, le=9007199254740991)
    urls: Urls


class SeriesReference(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    slug: str
    url: AnyUrl = Field(..., description="URL of the page of the series")
    rest_url: AnyUrl = Field(..., description="URL of the record in this API")
    slot: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The date’s time by the rule, which identifies it", examples=["2027-04-01 19:30:00"]
    )
    own: list[str] = Field(..., description="Fields that differ from the series; `times` stands for the dates")


class Status(StrEnum):
    publish = "publish"
    draft = "draft"
    pending = "pending"
    private = "private"
    future = "future"
    trash = "trash"


class EventStatus(Enum):
    scheduled = "scheduled"
    cancelled = "cancelled"
    postponed = "postponed"
    moved_online = "moved_online"
    sold_out = "sold_out"
    NoneType_None = None


class CurrencyPosition1(Enum):
    prefix = "prefix"
    postfix = "postfix"
    NoneType_None = None


class PossibleDuplicate(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    title: str = Field(..., description="The event title as plain text")
    status: Status
    start_date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The start, in the event's time zone", examples=["2027-04-01 19:30:00"]
    )
    score: confloat(ge=0.0, le=1.0) = Field(
        ..., description="How likely the events are the same; imports link them at 0.85 and above"
    )


class JsonLd(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    field_context: Literal["https://schema.org"] = Field(..., alias="@context")
    field_type: str = Field(..., alias="@type")


class Venue(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    global_id: str = Field(..., description="Host name of the site and ID of the record")
    global_id_lineage: list[str]
    author: constr(pattern=r"^[0-9]+$") = Field(..., description="Author ID as a string of digits")
    status: Status
    date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    date_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date in UTC", examples=["2027-04-01 19:30:00"]
    )
    modified: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    modified_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change in UTC", examples=["2027-04-01 19:30:00"]
    )
    url: AnyUrl = Field(..., description="URL of the record's page on the site")
    venue: str
    description: str | None = Field(None, description="Sanitized HTML, or empty")
    slug: str | None = None
    image: Image | None = None
    address: str | None = None
    city: str | None = None
    country: str | None = None
    province: str | None = None
    state: str | None = None
    zip: str | None = None
    phone: str | None = None
    website: str | None = None
    stateprovince: str | None = None
    geo_lat: confloat(ge=-90.0, le=90.0) | None = None
    geo_lng: confloat(ge=-180.0, le=180.0) | None = None
    show_map: bool
    show_map_link: bool
    json_ld: JsonLd | None = Field(None, description="schema.org structured data; only when a single record is read")


class VenueList(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    venues: list[Venue]
    rest_url: AnyUrl = Field(..., description="URL of this page")
    next_rest_url: AnyUrl | None = Field(None, description="URL of the next page, if any")
    previous_rest_url: AnyUrl | None = Field(None, description="URL of the previous page, if any")
    total: conint(ge=0) = Field(..., description="Total number of records in the list")
    total_pages: conint(ge=0) = Field(..., description="Number of pages")


class Organizer(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    global_id: str = Field(..., description="Host name of the site and ID of the record")
    global_id_lineage: list[str]
    author: constr(pattern=r"^[0-9]+$") = Field(..., description="Author ID as a string of digits")
    status: Status
    date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    date_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date in UTC", examples=["2027-04-01 19:30:00"]
    )
    modified: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    modified_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change in UTC", examples=["2027-04-01 19:30:00"]
    )
    url: AnyUrl = Field(..., description="URL of the record's page on the site")
    organizer: str
    description: str | None = Field(None, description="Sanitized HTML, or empty")
    slug: str | None = None
    image: Image | None = None
    phone: str | None = None
    website: str | None = None
    email: str | None = None
    json_ld: JsonLd | None = Field(None, description="schema.org structured data; only when a single record is read")


class OrganizerList(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    organizers: list[Organizer]
    rest_url: AnyUrl = Field(..., description="URL of this page")
    next_rest_url: AnyUrl | None = Field(None, description="URL of the next page, if any")
    previous_rest_url: AnyUrl | None = Field(None, description="URL of the previous page, if any")
    total: conint(ge=0) = Field(..., description="Total number of records in the list")
    total_pages: conint(ge=0) = Field(..., description="Number of pages")


class Category(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    count: conint(ge=0) = Field(..., description="Number of published events with this term")
    description: str
    name: str
    slug: str
    taxonomy: Taxonomy
    urls: Urls
    meta: list[Any] = Field(..., max_length=0)
    url: AnyUrl
    parent: conint(ge=0) = Field(..., description="The parent category; 0 for none")


class CategoryList(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    categories: list[Category]
    rest_url: AnyUrl = Field(..., description="URL of this page")
    next_rest_url: AnyUrl | None = Field(None, description="URL of the next page, if any")
    previous_rest_url: AnyUrl | None = Field(None, description="URL of the previous page, if any")
    total: conint(ge=0) = Field(..., description="Total number of records in the list")
    total_pages: conint(ge=0) = Field(..., description="Number of pages")


class Tag(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    count: conint(ge=0) = Field(..., description="Number of published events with this term")
    description: str
    name: str
    slug: str
    taxonomy: Taxonomy
    urls: Urls
    meta: list[Any] = Field(..., max_length=0)
    url: AnyUrl


class TagList(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    tags: list[Tag]
    rest_url: AnyUrl = Field(..., description="URL of this page")
    next_rest_url: AnyUrl | None = Field(None, description="URL of the next page, if any")
    previous_rest_url: AnyUrl | None = Field(None, description="URL of the previous page, if any")
    total: conint(ge=0) = Field(..., description="Total number of records in the list")
    total_pages: conint(ge=0) = Field(..., description="Number of pages")


class Data(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: conint(ge=400, le=599)


class Error(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: str = Field(..., description="Machine-readable code; never changes")
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data


class Data1(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[400]
    params: list[str]


class RestMissingCallbackParam(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_missing_callback_param"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data1


class Data3(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    param: str


class Details(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_invalid_param"]
    message: str
    data: Data3


class Data2(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[400]
    params: dict[str, str]
    details: dict[str, Details]


class RestInvalidParam(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_invalid_param"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data2


class JsonErrorCode(Enum):
    int_4 = 4
    int_5 = 5


class Data4(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[400]
    json_error_code: JsonErrorCode
    json_error_message: str


class RestInvalidJson(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_invalid_json"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data4


class Status4(Enum):
    int_401 = 401
    int_403 = 403


class Data5(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Status4
    params: dict[str, str] | None = Field(None, description="New names that the caller may not create, by parameter")


class RestForbidden(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_forbidden"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data5


class Data6(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[400]
    term_id: conint(ge=1, le=9007199254740991)


class TermExists(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["term_exists"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data6


class Data7(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[400]
    limit: conint(ge=0)


class RestTooManyRecords(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_too_many_records"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data7


class Data8(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: conint(ge=400, le=599)
    operation: conint(ge=0)
    error: dict[str, Any]


class RestBatchFailed(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_batch_failed"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data8


class UsedByItem(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    kind: str
    id: conint(ge=1, le=9007199254740991)


class Data9(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[409]
    used_by: list[UsedByItem]


class RestMediaInUse(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_media_in_use"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data9


class Date(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    event: conint(ge=1, le=9007199254740991)
    slot: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(..., examples=["2027-04-01 19:30:00"])
    fields: list[str]


class Data10(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[409]
    dates: list[Date]


class SeriesOverridesLost(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["series_overrides_lost"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data10


class Data11(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[409]
    dates: list[Date]


class SeriesUndoConflicts(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["series_undo_conflicts"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data11


class Data12(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[409]
    state: str


class RestProposalDecided(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_proposal_decided"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data12


class Conflicts(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    base: Any
    record: Any
    proposal: Any


class Data13(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[409]
    conflicts: dict[str, Conflicts] = Field(
        ..., description="By field: the value that the sender saw, the record’s and the proposed one"
    )
    revision: conint(ge=0)


class RestProposalConflict(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_proposal_conflict"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data13


class Data14(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    status: Literal[410]
    oldest: conint(ge=0)


class RestHistoryExpired(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    code: Literal["rest_history_expired"]
    message: str = Field(..., description="Human-readable message, in the language of the response")
    data: Data14


class Method(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


class FieldLink(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    href: AnyUrl


class Argument(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    type: str | None = None
    items: Any | None = None
    enum: list[str] | None = None
    description: str | None = None
    required: bool
    default: Any | None = None


class Document(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )


class Status5(StrEnum):
    publish = "publish"
    draft = "draft"
    pending = "pending"
    private = "private"
    future = "future"
    trash = "trash"


class Venue1(BaseModel):
    id: conint(ge=1)


class Organizer1(BaseModel):
    id: conint(ge=1)


class EventStatus1(StrEnum):
    scheduled = "scheduled"
    cancelled = "cancelled"
    postponed = "postponed"
    moved_online = "moved_online"
    sold_out = "sold_out"


class CurrencyPosition2(StrEnum):
    prefix = "prefix"
    postfix = "postfix"
    field_ = ""


class EventStatus2(Enum):
    scheduled = "scheduled"
    cancelled = "cancelled"
    postponed = "postponed"
    moved_online = "moved_online"
    sold_out = "sold_out"


class CurrencyPosition3(Enum):
    prefix = "prefix"
    postfix = "postfix"
    field_ = ""


class VenueNew(BaseModel):
    venue: constr(min_length=1, max_length=10000) = Field(..., description="The venue name")
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    show_map: bool | None = Field(None, description="Whether events linked to the venue show a map")
    show_map_link: bool | None = Field(None, description="Whether events linked to the venue show a map link")
    address: constr(max_length=1000) | None = Field(None, description="The address")
    city: constr(max_length=1000) | None = Field(None, description="The city")
    country: constr(max_length=1000) | None = Field(None, description="The country")
    province: constr(max_length=1000) | None = Field(None, description="The province")
    state: constr(max_length=1000) | None = Field(None, description="The state")
    zip: constr(max_length=1000) | None = Field(None, description="The ZIP or postal code")
    phone: constr(max_length=1000) | None = Field(None, description="The phone number")
    stateprovince: constr(max_length=1000) | None = Field(None, description="The state and province")
    website: constr(max_length=2000) | None = Field(None, description="The website URL")
    geo_lat: confloat(ge=-90.0, le=90.0) | None = Field(None, description="The latitude. Kalends extension.")
    geo_lng: confloat(ge=-180.0, le=180.0) | None = Field(None, description="The longitude. Kalends extension.")


class VenueChanges(BaseModel):
    venue: constr(min_length=1, max_length=10000) | None = Field(None, description="The venue name")
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    show_map: bool | None = Field(None, description="Whether events linked to the venue show a map")
    show_map_link: bool | None = Field(None, description="Whether events linked to the venue show a map link")
    address: constr(max_length=1000) | None = Field(None, description="The address")
    city: constr(max_length=1000) | None = Field(None, description="The city")
    country: constr(max_length=1000) | None = Field(None, description="The country")
    province: constr(max_length=1000) | None = Field(None, description="The province")
    state: constr(max_length=1000) | None = Field(None, description="The state")
    zip: constr(max_length=1000) | None = Field(None, description="The ZIP or postal code")
    phone: constr(max_length=1000) | None = Field(None, description="The phone number")
    stateprovince: constr(max_length=1000) | None = Field(None, description="The state and province")
    website: constr(max_length=2000) | None = Field(None, description="The website URL")
    geo_lat: confloat(ge=-90.0, le=90.0) | None = Field(None, description="The latitude. Kalends extension.")
    geo_lng: confloat(ge=-180.0, le=180.0) | None = Field(None, description="The longitude. Kalends extension.")


class OrganizerNew(BaseModel):
    organizer: constr(min_length=1, max_length=10000) = Field(..., description="The organizer name")
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    phone: constr(max_length=1000) | None = Field(None, description="The phone number")
    website: constr(max_length=2000) | None = Field(None, description="The website")
    email: constr(max_length=254) | None = Field(None, description="The email address")


class OrganizerChanges(BaseModel):
    organizer: constr(min_length=1, max_length=10000) | None = Field(None, description="The organizer name")
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    phone: constr(max_length=1000) | None = Field(None, description="The phone number")
    website: constr(max_length=2000) | None = Field(None, description="The website")
    email: constr(max_length=254) | None = Field(None, description="The email address")


class CategoryNew(BaseModel):
    name: constr(min_length=1, max_length=200) = Field(..., description="The category name")
    description: constr(max_length=20000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The slug; by default generated from the name")
    parent: conint(ge=0, le=9007199254740991) | None = Field(
        None, description="ID of the parent category; 0 for none"
    )


class CategoryChanges(BaseModel):
    name: constr(min_length=1, max_length=200) | None = Field(None, description="The category name")
    description: constr(max_length=20000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The slug; by default generated from the name")
    parent: conint(ge=0, le=9007199254740991) | None = Field(
        None, description="ID of the parent category; 0 for none"
    )


class TagNew(BaseModel):
    name: constr(min_length=1, max_length=200) = Field(..., description="The tag name")
    description: constr(max_length=20000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The slug; by default generated from the name")


class TagChanges(BaseModel):
    name: constr(min_length=1, max_length=200) | None = Field(None, description="The tag name")
    description: constr(max_length=20000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The slug; by default generated from the name")


class Event(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    id: conint(ge=1, le=9007199254740991)
    global_id: str = Field(..., description="Host name of the site and ID of the record")
    global_id_lineage: list[str]
    author: constr(pattern=r"^[0-9]+$") = Field(..., description="Author ID as a string of digits")
    status: Status
    date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    date_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The publication date in UTC", examples=["2027-04-01 19:30:00"]
    )
    modified: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change, in the site's time zone", examples=["2027-04-01 19:30:00"]
    )
    modified_utc: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The last change in UTC", examples=["2027-04-01 19:30:00"]
    )
    url: AnyUrl = Field(..., description="URL of the record's page on the site")
    rest_url: AnyUrl = Field(..., description="URL of the record in this API")
    title: str
    description: str = Field(..., description="Sanitized HTML, or empty")
    excerpt: str = Field(..., description="Sanitized HTML, or empty")
    slug: str
    image: Image | Literal[False]
    all_day: bool | None = Field(..., description="null if the event is protected and its password was not sent")
    start_date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The start, in the event's time zone", examples=["2027-04-01 19:30:00"]
    )
    start_date_details: DateDetails
    end_date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The end, in the event's time zone", examples=["2027-04-01 19:30:00"]
    )
    end_date_details: DateDetails
    utc_start_date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The start in UTC", examples=["2027-04-01 19:30:00"]
    )
    utc_start_date_details: DateDetails
    utc_end_date: constr(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$") = Field(
        ..., description="The end in UTC", examples=["2027-04-01 19:30:00"]
    )
    utc_end_date_details: DateDetails
    timezone: str = Field(..., description="IANA time zone such as Europe/Paris, or a fixed offset such as UTC+5")
    timezone_abbr: str
    cost: str = Field(..., description="The formatted cost, with its currency")
    cost_details: CostDetails
    website: str
    show_map: bool | None = Field(..., description="null if the event is protected and its password was not sent")
    show_map_link: bool | None = Field(
        ..., description="null if the event is protected and its password was not sent"
    )
    hide_from_listings: bool | None = Field(
        ..., description="null if the event is protected and its password was not sent"
    )
    sticky: bool | None = Field(..., description="null if the event is protected and its password was not sent")
    featured: bool | None = Field(..., description="null if the event is protected and its password was not sent")
    categories: list[TermInEvent]
    tags: list[TermInEvent]
    venue: Venue | list[Venue] = Field(
        ..., description="An object for one venue, an empty list for none, a list for several"
    )
    organizer: list[Organizer]
    custom_fields: list[Any] = Field(..., max_length=0)
    ticket_url: str = Field(..., description="URL where tickets are sold")
    event_status: EventStatus | None = Field(
        ..., description="The event’s status, such as scheduled or cancelled; null if a password protects it"
    )
    status_reason: str = Field(..., description="The reason for the status, as plain text")
    online_url: str = Field(..., description="URL to take part online")
    currency_symbol: str | None = Field(..., description="The event’s currency symbol; null means the site’s")
    currency_code: str | None = Field(..., description="The event’s currency code; null means the site’s")
    currency_position: CurrencyPosition1 | None = Field(
        ..., description="The position of the currency symbol; null means as on the site"
    )
    uid: str = Field(..., description="Globally unique, permanent ID of the event")
    series: SeriesReference | None = Field(
        ..., description="The series that the event belongs to; null if none, or if a password protects the event"
    )
    possible_duplicates: list[PossibleDuplicate] | None = Field(
        None, description="Stored events that may be the same, if a write asks for them"
    )
    json_ld: JsonLd | None = Field(None, description="schema.org structured data; only when a single record is read")


class EventList(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    events: list[Event]
    rest_url: AnyUrl = Field(..., description="URL of this page")
    next_rest_url: AnyUrl | None = Field(None, description="URL of the next page, if any")
    previous_rest_url: AnyUrl | None = Field(None, description="URL of the previous page, if any")
    total: conint(ge=0) = Field(..., description="Total number of records in the list")
    total_pages: conint(ge=0) = Field(..., description="Number of pages")
    next_cursor: str | None = Field(..., description="Value of `cursor` for the next page; null on the last page")


class Endpoint(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    methods: list[Method]
    args: dict[str, Argument]


class Route(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    namespace: str
    methods: list[Method]
    endpoints: list[Endpoint]
    field_links: dict[str, list[FieldLink]] | None = Field(None, alias="_links")


class Index(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
    )
    namespace: str
    routes: dict[str, Route]
    field_links: dict[str, list[FieldLink]] = Field(..., alias="_links")


class EventNew(BaseModel):
    title: constr(min_length=1, max_length=10000) = Field(..., description="The event title")
    start_date: constr(max_length=64) = Field(
        ...,
        description="The start, in the event's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    end_date: constr(max_length=64) = Field(
        ...,
        description="The end, in the event's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The event slug")
    excerpt: constr(max_length=64000) | None = Field(None, description="The event excerpt")
    timezone: str | None = Field(None, description="The event time zone; by default the site's")
    all_day: bool | None = Field(False, description="Whether the event lasts the whole day")
    cost: str | float | list[float | str] | None = Field(None, description="The event cost")
    website: constr(max_length=2000) | None = Field(None, description="The event website URL")
    show_map: bool | None = Field(None, description="Whether to show a map")
    show_map_link: bool | None = Field(None, description="Whether to show a map link")
    hide_from_listings: bool | None = Field(None, description="Whether to hide the event in lists")
    sticky: bool | None = Field(
        None, description="Whether the event is pinned to the top of its day in the calendar view"
    )
    featured: bool | None = Field(None, description="Whether the event is featured")
    categories: list[conint(ge=1, le=9007199254740991) | constr(min_length=1)] | None = Field(
        None, description="Category IDs, slugs or names", max_length=200, min_length=0
    )
    tags: list[conint(ge=1, le=9007199254740991) | constr(min_length=1)] | None = Field(
        None, description="Tag IDs, slugs or names", max_length=200, min_length=0
    )
    venue: list[conint(ge=1) | Venue1 | VenueNew] | conint(ge=1) | Venue1 | VenueNew | None = Field(
        None, description="Venue IDs or venue data"
    )
    organizer: list[conint(ge=1) | Organizer1 | OrganizerNew] | conint(ge=1) | Organizer1 | OrganizerNew | None = (
        Field(None, description="Organizer IDs or organizer data")
    )
    ticket_url: constr(max_length=2000) | None = Field(
        None, description="URL where tickets are sold. Kalends extension."
    )
    event_status: EventStatus1 | None = Field(
        "scheduled", description="The event’s status, such as scheduled or cancelled. Kalends extension."
    )
    status_reason: constr(max_length=500) | None = Field(
        None, description="The reason for the status, as plain text. Kalends extension."
    )
    online_url: constr(max_length=2000) | None = Field(
        None, description="URL to take part online. Kalends extension."
    )
    currency_symbol: constr(max_length=16) | None = Field(
        None, description="The currency symbol; by default the site's. Kalends extension."
    )
    currency_code: constr(pattern=r"^([A-Za-z]{3})?$") | None = Field(
        None, description="The currency code; by default the site's. Kalends extension."
    )
    currency_position: CurrencyPosition2 | None = Field(
        None,
        description="Whether the symbol is before or after the amount; by default as on the site. Kalends extension.",
    )
    new_password: constr(max_length=255) | None = Field(
        None, description="Sets the event password; empty clears it. Kalends extension."
    )
    check_duplicates: bool | None = Field(
        False, description="Whether to return stored events that may be the same. Kalends extension."
    )


class EventChanges(BaseModel):
    title: constr(min_length=1, max_length=10000) | None = Field(None, description="The event title")
    start_date: constr(max_length=64) | None = Field(
        None,
        description="The start, in the event's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    end_date: constr(max_length=64) | None = Field(
        None,
        description="The end, in the event's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    author: conint(ge=1, le=9007199254740991) | None = Field(None, description="The author ID")
    date: constr(max_length=64) | None = Field(
        None,
        description="The publication date, in the site's time zone. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    date_utc: constr(max_length=64) | None = Field(
        None,
        description="The publication date in UTC. ISO 8601, `now`, `today`, `+1 week`, `11/15/2026` (month first) or `15 November 2026`, optionally with a time and a time zone",
        examples=["2027-04-01 19:30:00", "2027-04-01", "2027-04-01T19:30:00+02:00", "today", "+1 week"],
    )
    status: Status5 | None = Field(None, description="The post status")
    image: int | str | None = Field(
        None, description="The featured image: ID of an image in the media library, or URL to fetch it from"
    )
    description: constr(max_length=256000) | None = Field(None, description="The description")
    slug: constr(max_length=2000) | None = Field(None, description="The event slug")
    excerpt: constr(max_length=64000) | None = Field(None, description="The event excerpt")
    timezone: str | None = Field(None, description="The event time zone; by default the site's")
    all_day: bool | None = Field(None, description="Whether the event lasts the whole day")
    cost: str | float | list[float | str] | None = Field(None, description="The event cost")
    website: constr(max_length=2000) | None = Field(None, description="The event website URL")
    show_map: bool | None = Field(None, description="Whether to show a map")
    show_map_link: bool | None = Field(None, description="Whether to show a map link")
    hide_from_listings: bool | None = Field(None, description="Whether to hide the event in lists")
    sticky: bool | None = Field(
        None, description="Whether the event is pinned to the top of its day in the calendar view"
    )
    featured: bool | None = Field(None, description="Whether the event is featured")
    categories: list[conint(ge=1, le=9007199254740991) | constr(min_length=1)] | None = Field(
        None, description="Category IDs, slugs or names", max_length=200, min_length=0
    )
    tags: list[conint(ge=1, le=9007199254740991) | constr(min_length=1)] | None = Field(
        None, description="Tag IDs, slugs or names", max_length=200, min_length=0
    )
    venue: list[conint(ge=1) | Venue1 | VenueNew] | conint(ge=1) | Venue1 | VenueNew | None = Field(
        None, description="Venue IDs or venue data"
    )
    organizer: list[conint(ge=1) | Organizer1 | OrganizerNew] | conint(ge=1) | Organizer1 | OrganizerNew | None = (
        Field(None, description="Organizer IDs or organizer data")
    )
    ticket_url: constr(max_length=2000) | None = Field(
        None, description="URL where tickets are sold. Kalends extension."
    )
    event_status: EventStatus2 | None = Field(
        None, description="The event’s status, such as scheduled or cancelled. Kalends extension."
    )
    status_reason: constr(max_length=500) | None = Field(
        None, description="The reason for the status, as plain text. Kalends extension."
    )
    online_url: constr(max_length=2000) | None = Field(
        None, description="URL to take part online. Kalends extension."
    )
    currency_symbol: constr(max_length=16) | None = Field(
        None, description="The currency symbol; by default the site's. Kalends extension."
    )
    currency_code: constr(pattern=r"^([A-Za-z]{3})?$") | None = Field(
        None, description="The currency code; by default the site's. Kalends extension."
    )
    currency_position: CurrencyPosition3 | None = Field(
        None,
        description="Whether the symbol is before or after the amount; by default as on the site. Kalends extension.",
    )
    new_password: constr(max_length=255) | None = Field(
        None, description="Sets the event password; empty clears it. Kalends extension."
    )
    password: constr(min_length=1, max_length=255) | None = Field(None, description="The event password")
    check_duplicates: bool | None = Field(
        None, description="Whether to return stored events that may be the same. Kalends extension."
    )
