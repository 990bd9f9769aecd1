"""Slugs of WordPress records, which are kept as they are stored."""

import re
from collections.abc import Mapping
from typing import Final

from kalends.core.tec.exchanges import JsonObject

_TRASHED: Final = re.compile(r"__trashed(?:-\d+)?$")


def strip_trashed(slug: str) -> str:
    return _TRASHED.sub("", slug)


def choose_slugs(records: Mapping[int, JsonObject]) -> dict[int, str]:
    """Return the slugs of the records of a kind.

    Records that TEC took out of the trash may still have the slug of trashed ones; they get their own back if it is
    free.
    """
    slugs = {record_id: str(record.get("slug") or "") for record_id, record in records.items()}
    taken = set(slugs.values())
    for record_id, slug in slugs.items():
        bare = strip_trashed(slug)
        if bare != slug and bare and bare not in taken and records[record_id].get("status") != "trash":
            slugs[record_id] = bare
            taken.add(bare)
    return slugs
