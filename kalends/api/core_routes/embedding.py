"""`_embed`: the linked records of a list inside of its records, so that a client needs no further requests."""

from collections.abc import Sequence
from typing import Any

from kalends.api.core_routes.shapes import ShapeContext, shape_category, shape_media, shape_tag
from kalends.core.record_types import Event, Post
from kalends.kinds.kind import JsonObject
from kalends.operations.context import OperationContext
from kalends.operations.media.records import read_images


async def embed_linked(context: OperationContext, records: Sequence[Any], shapes: Sequence[JsonObject]) -> None:
    """Add `_embedded` with the image and the terms of each post. Accounts are not public, so authors are left out."""
    posts = [(post, shape) for post, shape in zip(records, shapes, strict=True) if isinstance(post, Post)]
    shape_context = ShapeContext(context.transaction.site, context.extension_url)
    found = await read_images(context, [post.image.id for post, _ in posts if post.image])
    images = {item.id: shape_media(item, row, shape_context) for item, row in found}
    for post, shape in posts:
        embedded: JsonObject = {}
        if post.image and post.image.id in images:
            embedded["wp:featuredmedia"] = [images[post.image.id]]
        if isinstance(post, Event):
            embedded["wp:term"] = _shape_terms(post, shape_context)
        shape["_embedded"] = embedded


def _shape_terms(event: Event, shape_context: ShapeContext) -> list[list[JsonObject]]:
    tags = [shape_tag(term, None, shape_context) for term in event.tags]
    return [tags, [shape_category(term, None, shape_context) for term in event.categories]]
