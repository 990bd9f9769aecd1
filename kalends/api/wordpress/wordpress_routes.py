"""The `wp/v2` routes. They follow WordPress, so they have no OpenAPI document."""

from typing import Any, Final

from kalends.accounts.operations.user_accounts import read_profiles
from kalends.api.wordpress.wordpress_records import (
    COLLECTIONS,
    list_core,
    make_page_info,
    read_core,
    update_media,
    upload_media,
)
from kalends.api.wordpress.wordpress_shapes import (
    CORE_CATEGORIES,
    CORE_EVENTS,
    CORE_MEDIA,
    CORE_ORGANIZERS,
    CORE_TAGS,
    CORE_VENUES,
    CURIES,
    MAX_PER_PAGE,
    NAMES,
    list_orders,
)
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.events import PASSWORD
from kalends.calendar.kinds.kind import Actor, JsonObject, Kind
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.core import params
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import Param, Type, param
from kalends.core.slugs import make_slug
from kalends.http.router import UPDATES, Endpoint, Interface, Operation, Route
from kalends.store import Row

# The caller and the site's accounts. Accounts are not public, because their names are logins.

POST_TYPES: Final = ("tribe_events", "tribe_venues", "tribe_organizers")
# WordPress capabilities per post type, grouped by the lowest role that has them.
POST_CAPABILITIES: Final = {
    permissions.CONTRIBUTOR: ("edit", "delete"),
    permissions.AUTHOR: ("publish", "edit_published", "delete_published"),
    permissions.EDITOR: ("edit_others", "delete_others", "read_private", "edit_private", "delete_private"),
}
OTHER_CAPABILITIES: Final = {
    permissions.SUBSCRIBER: ("read",),
    permissions.CONTRIBUTOR: ("edit_posts",),
    permissions.MIN_WRITER_ROLES["media"]: ("upload_files",),
    permissions.MIN_WRITER_ROLES["tags"]: ("manage_categories",),
    permissions.ADMINISTRATOR: ("list_users", "manage_options"),
}


async def read_me(_: object, context: OperationContext) -> Outcome:
    if context.actor.user_id is None:
        raise ApiError(401, "rest_not_logged_in", "Authentication is required.")
    (row,) = await read_profiles(context.transaction, user_id=context.actor.user_id)
    is_edit = context.values.get("context") == "edit"
    return Outcome(_shape_account(row, context, is_edit=is_edit, read_only=context.actor.read_only))


async def list_accounts(_: object, context: OperationContext) -> Outcome:
    is_edit = context.values.get("context") == "edit"
    permissions.require_role(context.actor, permissions.ADMINISTRATOR if is_edit else permissions.CONTRIBUTOR)
    page, per_page = context.values.get("page", 1), context.values.get("per_page", 10)
    rows = await read_profiles(context.transaction, limit=per_page, offset=(page - 1) * per_page)
    # The caller has an account, so an empty page is beyond the last one.
    total = (rows or await read_profiles(context.transaction))[0]["total"]
    items = [_shape_account(row, context, is_edit=is_edit) for row in rows]
    page_info = make_page_info(f"{context.extension_url}/users", context, page, per_page, total)
    return Outcome({}, items=items, page=page_info)


async def read_account(_: object, context: OperationContext) -> Outcome:
    if context.actor.user_id is not None and context.record_id == context.actor.user_id:
        return await read_me(None, context)
    is_edit = context.values.get("context") == "edit"
    permissions.require_role(context.actor, permissions.ADMINISTRATOR if is_edit else permissions.CONTRIBUTOR)
    rows = await read_profiles(context.transaction, user_id=context.record_id)
    if not rows:
        raise ApiError(404, "rest_user_invalid_id", "There is no such record.")
    return Outcome(_shape_account(rows[0], context, is_edit=is_edit))


def _shape_account(row: Row, context: OperationContext, *, is_edit: bool, read_only: bool = False) -> JsonObject:
    collection = f"{context.extension_url}/users"
    shape: JsonObject = {
        "id": row["id"],
        "name": row["display_name"],
        "url": "",
        "description": "",
        "link": f"{context.base_url}/",
        "slug": make_slug(row["login"]),
        "avatar_urls": {},
        "meta": [],
        "_links": {"self": [{"href": f"{collection}/{row['id']}"}], "collection": [{"href": collection}]},
    }
    if not is_edit:
        return shape
    role: str = row["role"]
    return {
        **shape,
        "username": row["login"],
        "first_name": "",
        "last_name": "",
        "email": row["email"],
        "locale": context.transaction.site.language.replace("-", "_"),
        "nickname": row["display_name"],
        "roles": [role],
        "registered_date": row["created_at"].isoformat(timespec="seconds"),
        "capabilities": dict.fromkeys(_list_capabilities(role, read_only=read_only), True),
        "extra_capabilities": {role: True},
    }


def _list_capabilities(role: str, *, read_only: bool) -> list[str]:
    """Return the role's rights as WordPress capabilities; a read-only password grants only reading."""
    level = permissions.SUBSCRIBER if read_only else permissions.rank(Actor(role=role))
    names = [name for min_role, names in OTHER_CAPABILITIES.items() if level >= min_role for name in names]
    actions = [name for min_role, names in POST_CAPABILITIES.items() if level >= min_role for name in names]
    return [*names, *[f"{action}_{post_type}" for post_type in POST_TYPES for action in actions], role]


# Site settings and record types.

# Each type's name, REST base, taxonomies, and whether a page lists all of its records.
TYPES: Final[dict[str, tuple[str, str, list[str], bool]]] = {
    "attachment": ("Media", "media", [], False),
    "tribe_venue": ("Venues", "tribe_venue", [], False),
    "tribe_organizer": ("Organizers", "tribe_organizer", [], False),
    "tribe_events": ("Events", "tribe_events", ["post_tag", "tribe_events_cat"], True),
}


async def list_types(_: object, context: OperationContext) -> Outcome:
    return Outcome({name: _shape_type(name, context) for name in TYPES})


async def read_type(_: object, context: OperationContext) -> Outcome:
    if context.slug not in TYPES:
        raise ApiError(404, "rest_type_invalid", "There is no such record.")
    return Outcome(_shape_type(context.slug, context))


def _shape_type(name: str, context: OperationContext) -> JsonObject:
    title, base, taxonomies, has_archive = TYPES[name]
    return {
        "description": "",
        "hierarchical": False,
        "has_archive": has_archive,
        "name": title,
        "slug": name,
        "icon": None,
        "taxonomies": taxonomies,
        "rest_base": base,
        "rest_namespace": "wp/v2",
        "_links": {
            "collection": [{"href": f"{context.extension_url}/types"}],
            "wp:items": [{"href": f"{context.extension_url}/{base}"}],
            "curies": CURIES,
        },
    }


async def read_settings(_: object, context: OperationContext) -> Outcome:
    """Return the site settings to administrators, with the caller's email address."""
    permissions.require_role(context.actor, permissions.ADMINISTRATOR)
    site = context.transaction.site
    (caller,) = await read_profiles(context.transaction, user_id=context.actor.user_id)
    return Outcome(
        {
            "title": site.name,
            "description": "",
            "url": context.base_url,
            "email": caller["email"],
            "timezone": site.timezone,
            # The date formats used in responses.
            "date_format": "Y-m-d",
            "time_format": "H:i",
            "start_of_week": site.first_weekday % 7,
            "language": site.language.replace("-", "_"),
            "posts_per_page": site.per_page,
        }
    )


KINDS: Final = (CORE_EVENTS, CORE_VENUES, CORE_ORGANIZERS, CORE_CATEGORIES, CORE_TAGS, CORE_MEDIA)


def _read_text(text_type: Type) -> Type:
    """Return a type that also accepts `{"raw": …}`, as in WordPress responses."""

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            value = value.get("raw", value.get("rendered"))  # pyright: ignore[reportUnknownMemberType]
            if value is None:
                raise InvalidValue("must be a string.")
        return text_type.read(value)

    return Type(text_type.schema, read, text_type.null_value, exact_schema=text_type.exact_schema)


def _read_filter(filter_type: Type) -> Type:
    """Return a type that treats an empty value as no filter."""
    return Type(
        filter_type.schema,
        lambda value: "" if value == "" else filter_type.read(value),
        accepts_lists=filter_type.accepts_lists,
    )


CONTEXT: Final = param(
    "context", params.one_of("view", "embed", "edit"), "edit adds the texts as they are stored", default="view"
)
PAGING: Final = (
    param("page", params.integer(minimum=1), "The page of the list to return", default=1),
    param("per_page", params.integer(minimum=1, maximum=MAX_PER_PAGE), "Maximum number of records", default=10),
)


def _read_embed(value: object) -> bool:
    """Parse `_embed`. An empty value or any link name embeds all linked records."""
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


def _read(operation: Operation, kind: Kind | None, *rows: Param) -> Endpoint:
    return Endpoint(("GET",), operation, kind, rows)


def _record_routes(kind: Kind) -> tuple[Route, Route]:
    name = COLLECTIONS[kind.name].name
    password = (PASSWORD,) if kind.is_event else ()
    lists = [_read(list_core, kind, *_list_params(kind))]
    records = [_read(read_core, kind, CONTEXT, EMBED, *password)]
    if kind.is_media:
        lists.append(Endpoint(("POST",), upload_media, MEDIA, MEDIA_FIELDS, status=201, accepts_file=True))
        records.append(Endpoint(UPDATES, update_media, MEDIA, MEDIA_FIELDS))
    return Route(f"/{name}", tuple(lists)), Route(rf"/{name}/(?P<id>\d+)", tuple(records))


CORE: Final = Interface(
    "wp/v2",
    (
        *[route for kind in KINDS for route in _record_routes(kind)],
        Route("/users/me", (_read(read_me, None, CONTEXT),)),
        Route("/users", (_read(list_accounts, None, *PAGING, CONTEXT),)),
        Route(r"/users/(?P<id>\d+)", (_read(read_account, None, CONTEXT),)),
        Route("/types", (_read(list_types, None, CONTEXT),)),
        Route(r"/types/(?P<slug>[\w-]+)", (_read(read_type, None, CONTEXT),)),
        Route("/settings", (_read(read_settings, None),)),
    ),
    has_document=False,
)
