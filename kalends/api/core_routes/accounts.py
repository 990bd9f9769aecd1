"""The caller and the accounts of the site. Accounts are not public, because their names are logins."""

from typing import Final

from kalends.api.core_routes.errors import not_logged_in, unknown_user
from kalends.api.core_routes.reads import make_page_info
from kalends.core.slugs import make_slug
from kalends.kinds.kind import Actor, JsonObject
from kalends.operations import permissions
from kalends.operations.accounts import read_profiles
from kalends.operations.context import OperationContext, Outcome
from kalends.store import Row

POST_TYPES: Final = ("tribe_events", "tribe_venues", "tribe_organizers")
# Rights that WordPress names per type of post, by the lowest role that has them.
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
        raise not_logged_in()
    (row,) = await read_profiles(context.transaction, user_id=context.actor.user_id)
    is_edit = context.values.get("context") == "edit"
    return Outcome(_shape_account(row, context, is_edit=is_edit, read_only=context.actor.read_only))


async def list_accounts(_: object, context: OperationContext) -> Outcome:
    is_edit = context.values.get("context") == "edit"
    permissions.require_role(context.actor, permissions.ADMINISTRATOR if is_edit else permissions.CONTRIBUTOR)
    page, per_page = context.values.get("page", 1), context.values.get("per_page", 10)
    rows = await read_profiles(context.transaction, limit=per_page, offset=(page - 1) * per_page)
    # The caller has an account, so only a page beyond the end is empty.
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
        raise unknown_user()
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
    """Return what the role permits, in the words of WordPress; with a read-only password, only reading."""
    level = permissions.SUBSCRIBER if read_only else permissions.rank(Actor(role=role))
    names = [name for min_role, names in OTHER_CAPABILITIES.items() if level >= min_role for name in names]
    actions = [name for min_role, names in POST_CAPABILITIES.items() if level >= min_role for name in names]
    return [*names, *[f"{action}_{post_type}" for post_type in POST_TYPES for action in actions], role]
