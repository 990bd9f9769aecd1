"""The JSON of records in responses: built from rows, or taken from the cache as bytes."""

from typing import Any

import orjson

from kalends.kinds.kind import JsonObject, Kind, RenderContext
from kalends.operations.context import OperationContext
from kalends.operations.representation_cache import build_fragment_key, build_scope
from kalends.store import Row


def render_records(
    kind: Kind, context: OperationContext, rows: list[Row], render_context: RenderContext, *, in_full: bool = False
) -> list[Any]:
    """Return the JSON of each row: an object or, if the response is sent as it is, a fragment of encoded JSON.

    `in_full` adds what only a single read contains.
    """
    cache = context.representation_cache if context.accepts_fragments else None
    # The JSON of a series changes as time passes. Images are of interest to editors only.
    if cache is None or kind.reads.depends_on_now or kind.is_media:
        return [_render(kind, row, render_context, in_full=in_full) for row in rows]
    scope = build_scope(render_context)
    fragments: list[orjson.Fragment] = []
    for row in rows:
        key = build_fragment_key(scope, kind, row, render_context, in_full=in_full)
        fragment = cache.get_fragment(key)
        if fragment is None:
            encoded = orjson.dumps(_render(kind, row, render_context, in_full=in_full))
            fragment = cache.put_fragment(key, encoded)
        fragments.append(fragment)
    return fragments


def _render(kind: Kind, row: Row, context: RenderContext, *, in_full: bool) -> JsonObject:
    record = kind.reads.from_row(row, context)
    body = kind.reads.to_json(record, context)
    if in_full and kind.reads.to_json_ld:
        body["json_ld"] = kind.reads.to_json_ld(record, context)
    return body
