"""The routes of `wp/v2`. Their forms are those of WordPress, so they have no OpenAPI document of their own."""

from typing import Any, Final

from kalends.api.catalog import UPDATES, Endpoint, Interface, Operation, Route
from kalends.api.core_routes.accounts import list_accounts, read_account, read_me
from kalends.api.core_routes.reads import COLLECTIONS, list_core, read_core
from kalends.api.core_routes.site import list_types, read_settings, read_type
from kalends.api.core_routes.writes import update_media, upload_media
from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.core.params import Param, Type, param
from kalends.kinds.event_passwords import PASSWORD
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.operations.core_kinds import (
    CORE_CATEGORIES,
    CORE_EVENTS,
    CORE_MEDIA,
    CORE_ORGANIZERS,
    CORE_TAGS,
    CORE_VENUES,
    MAX_PER_PAGE,
    NAMES,
    list_orders,
)

KINDS: Final = (CORE_EVENTS, CORE_VENUES, CORE_ORGANIZERS, CORE_CATEGORIES, CORE_TAGS, CORE_MEDIA)


def _read_text(text_type: Type) -> Type:
    """Return a type that also accepts the form in which WordPress returns a text, `{"raw": …}`."""

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            value = value.get("raw", value.get("rendered"))  # pyright: ignore[reportUnknownMemberType]
            if value is None:
                raise InvalidValue("must be a string.")
        return text_type.read(value)

    return Type(text_type.schema, read, text_type.null_value, exact_schema=text_type.exact_schema)


def _read_filter(filter_type: Type) -> Type:
    """Return a type that accepts an empty value, which is no condition."""
    return Type(
        filter_type.schema,
        lambda value: "" if value == "" else filter_type.read(value),
        accepts_lists=filter_type.accepts_lists,
    )


ID: Final = param("id", params.integer(), "The ID of the record", required=True)
TYPE: Final = param("slug", params.text(str), "The slug of the record", required=True)
CONTEXT: Final = param(
    "context", params.one_of("view", "embed", "edit"), "edit adds the texts as they are stored", default="view"
)
PAGING: Final = (
    param("page", params.integer(minimum=1), "The page of the list to return", default=1),
    param("per_page", params.integer(minimum=1, maximum=MAX_PER_PAGE), "Maximum number of records", default=10),
)


def _read_embed(value: object) -> bool:
    """Read `_embed`, which may have no value or name the links; every name embeds all of them."""
    return value not in ("0", "false", 0, False)


EMBED: Final = param(
    "_embed", Type({"type": "boolean"}, _read_embed, accepts_lists=True), "Add the linked records as `_embedded`"
)
MEDIA_FIELDS: Final = tuple(
    param(row.name, _read_text(row.type), row.description)
    for row in MEDIA.fields
    if row.name in ("title", "alt_text", "caption")
)


def _list_params(kind: Kind) -> tuple[Param, ...]:
    filters = [
        param(NAMES.get(row.param.name, row.param.name), _read_filter(row.param.type), row.param.description)
        for row in kind.filters
    ]
    order = param("order", params.one_of("asc", "desc"), "Sort direction, asc or desc")
    orderby = param("orderby", params.one_of(*list_orders(kind)), "Sort key")
    return (*PAGING, CONTEXT, EMBED, *filters, order, orderby)


def _endpoint(operation: Operation, kind: Kind | None, *rows: Param, **options: Any) -> Endpoint:
    return Endpoint(
        options.pop("methods", ("GET",)), operation, kind, rows, operation_id="", summary="", returns="", **options
    )


def _record_routes(kind: Kind) -> tuple[Route, Route]:
    name = COLLECTIONS[kind.name].name
    password = (PASSWORD,) if kind.is_event else ()
    lists = [_endpoint(list_core, kind, *_list_params(kind))]
    records = [_endpoint(read_core, kind, CONTEXT, EMBED, *password, path_params=(ID,))]
    if kind.is_media:
        upload = {"methods": ("POST",), "status": 201, "accepts_file": True}
        lists.append(_endpoint(upload_media, MEDIA, *MEDIA_FIELDS, **upload))
        records.append(_endpoint(update_media, MEDIA, *MEDIA_FIELDS, methods=UPDATES, path_params=(ID,)))
    return Route(f"/{name}", tuple(lists)), Route(rf"/{name}/(?P<id>\d+)", tuple(records))


CORE: Final = Interface(
    "wp/v2",
    (
        *[route for kind in KINDS for route in _record_routes(kind)],
        Route("/users/me", (_endpoint(read_me, None, CONTEXT),)),
        Route("/users", (_endpoint(list_accounts, None, *PAGING, CONTEXT),)),
        Route(r"/users/(?P<id>\d+)", (_endpoint(read_account, None, CONTEXT, path_params=(ID,)),)),
        Route("/types", (_endpoint(list_types, None, CONTEXT),)),
        Route(r"/types/(?P<slug>[\w-]+)", (_endpoint(read_type, None, CONTEXT, path_params=(TYPE,)),)),
        Route("/settings", (_endpoint(read_settings, None),)),
    ),
    has_document=False,
)
