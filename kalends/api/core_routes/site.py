"""The settings of the site and the types of its records."""

from typing import Final

from kalends.api.core_routes.errors import unknown_type
from kalends.api.core_routes.shapes import CURIES
from kalends.kinds.kind import JsonObject
from kalends.operations import permissions
from kalends.operations.accounts import read_profiles
from kalends.operations.context import OperationContext, Outcome

# Name, REST base, taxonomies and whether there is a page of all records, by type.
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
        raise unknown_type()
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
    """Return the settings of the site to administrators. The e-mail address is that of the caller."""
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
            # The formats that dates have in responses.
            "date_format": "Y-m-d",
            "time_format": "H:i",
            "start_of_week": site.first_weekday % 7,
            "language": site.language.replace("-", "_"),
            "posts_per_page": site.per_page,
        }
    )
