"""Input for API requests: parameters, bodies, files and images, all read before the site is locked."""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kalends.api.batch import BatchOperation, BatchTarget
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import UploadedFile
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import IMAGE, Param, find_missing, read_params
from kalends.core.words import suggest
from kalends.http import bodies
from kalends.http.auth import find_new_passwords, hash_new_passwords
from kalends.http.bodies import COMMON_NAMES, STRICT, RawParams, is_strict, list_ignored
from kalends.http.request import ApiRequest, RequestContext
from kalends.http.router import Endpoint
from kalends.media.adapters.library import FetchResult, Library, StoredImage
from kalends.media.images import PendingFetch, find_unfetched
from kalends.proposals import storage as proposals_storage
from kalends.proposals.operations.proposal_decisions import accept_proposal
from kalends.store.sites import Site

# Larger bodies are parsed in a thread, because sanitizing long HTML takes time.
LARGE_BODY: Final = 2048


@dataclass(frozen=True, slots=True)
class OperationInput:
    """A request's raw and parsed parameters, with the images that a write stores before its transaction."""

    raw: RawParams
    values: dict[str, Any]
    upload: StoredImage | None = None
    file: UploadedFile | None = None
    fetched_images: Mapping[str, FetchResult | InvalidValue] = field(
        default_factory=dict[str, FetchResult | InvalidValue]
    )
    stored_pictures: Mapping[str, StoredImage] = field(default_factory=dict[str, StoredImage])


async def read_input(api_request: ApiRequest, endpoint: Endpoint, site: Site) -> OperationInput:
    body = await bodies.read_body(api_request.request, api_request.state.max_body_bytes)
    sent = await parse_body(api_request, endpoint, body)
    return await prepare_input(api_request, endpoint, site, sent)


async def parse_body(api_request: ApiRequest, endpoint: Endpoint, body: bytes) -> OperationInput:
    raw = await bodies.read_values(api_request.request, body)
    if raw.files and endpoint.kind is MEDIA:
        raise errors.invalid("file", "image files cannot be replaced; upload a new image.")
    _reject_unread_body(endpoint, raw)
    check_write(api_request, endpoint, raw)
    values = (
        await asyncio.to_thread(endpoint.read_params, raw.values)
        if len(body) > LARGE_BODY
        else endpoint.read_params(raw.values)
    )
    require_writer(api_request, endpoint)
    return OperationInput(raw, values)


async def prepare_input(
    api_request: ApiRequest, endpoint: Endpoint, site: Site, sent: OperationInput
) -> OperationInput:
    """Hash a write's event passwords and fetch its images. Both take time, so no transaction may be open."""
    await hash_new_passwords(site, sent.values)
    images = await fetch_images(api_request, site.id, find_image_urls(endpoint.kind, sent.values))
    pictures = await store_pictures(api_request, site.id, find_accepted(api_request, endpoint, sent.values))
    return replace(sent, fetched_images=images, stored_pictures=pictures)


def needs_preparation(api_request: ApiRequest, endpoint: Endpoint, sent: OperationInput) -> bool:
    return bool(
        find_new_passwords(sent.values)
        or find_image_urls(endpoint.kind, sent.values)
        or find_accepted(api_request, endpoint, sent.values)
    )


def _reject_unread_body(endpoint: Endpoint, raw: RawParams) -> None:
    """Raise if the body was not read, unless the request is a DELETE or its URL has all required parameters."""
    if raw.unread is None or endpoint.methods == ("DELETE",):
        return
    missing = find_missing(endpoint.params, raw.values, update=endpoint.is_update)
    if missing or not any(p.name in raw.values for p in endpoint.params):
        raise errors.unread_body(raw.unread.content_type, missing, is_json=raw.unread.is_json)


def require_writer(api_request: ApiRequest, endpoint: Endpoint) -> None:
    actor = api_request.actor
    if actor.read_only and not (actor.may_propose and endpoint.accepts_proposals):
        raise errors.read_only()
    permissions.require_role(api_request.actor, endpoint.min_role)
    permissions.require_writer(api_request.actor, endpoint.kind)


# Images: uploaded files, and image URLs in the body.

MAX_IMAGE_URLS: Final = 10


async def store_upload(api_request: ApiRequest, endpoint: Endpoint, library: Library, site_id: int) -> OperationInput:
    async with library.limiter.slot((site_id, api_request.actor.user_id)), library.open_work_directory() as directory:
        raw, upload = await bodies.read_upload(api_request.request, directory, library.max_bytes)
        check_write(api_request, endpoint, raw, [bodies.FIELD])
        values = read_params(endpoint.params, raw.values)
        if upload is None:
            raise errors.missing_params([bodies.FIELD])
        try:
            image = await library.store_image(site_id, upload.path, title=upload.name)
        except InvalidValue as error:
            raise errors.invalid_params({bodies.FIELD: errors.for_param(bodies.FIELD, error.message)}) from error
    raw.body = bodies.fingerprint_upload(image.upload_sha256, raw.values)
    return OperationInput(raw, values, upload=image)


async def fetch_images(
    context: RequestContext[Any], site_id: int, urls: list[str]
) -> dict[str, FetchResult | InvalidValue]:
    """Fetch the images that are not in the library yet, and return a result for each URL.

    An invalid image is a result too, because the operation reports it with the parameter name.
    """
    library = context.state.library
    if library is None or not urls or not permissions.may_publish(context.actor):
        return {}
    if len(urls) > MAX_IMAGE_URLS:
        raise errors.invalid("image", "must have at most {maximum} image URLs per request.", maximum=MAX_IMAGE_URLS)
    async with context.transaction() as tx:
        pending = await find_unfetched(tx, urls)
    owner = (site_id, context.actor.user_id)
    results = await asyncio.gather(*[_fetch(library, site_id, row, owner) for row in pending])
    fetched: dict[str, FetchResult | InvalidValue] = {}
    for row, result in zip(pending, results, strict=True):
        if isinstance(result, ApiError):
            raise result
        fetched[row.url] = result
    return fetched


async def _fetch(
    library: Library, site_id: int, pending: PendingFetch, owner: Hashable
) -> FetchResult | InvalidValue | ApiError:
    try:
        async with library.limiter.slot(owner):
            return await library.fetch(site_id, pending.url, etag=pending.etag, last_modified=pending.last_modified)
    except (InvalidValue, ApiError) as error:
        return error


def find_image_urls(kind: Kind | None, values: Mapping[str, Any]) -> list[str]:
    """Return the distinct valid image URLs in a record, in new records linked to it, and in a batch's writes."""
    urls: dict[str, None] = {}
    if kind is not None:
        _collect_image_urls(kind, values, urls)
    for operation in values.get("operations", ()):
        if isinstance(operation, BatchOperation) and isinstance(operation.target, BatchTarget):
            urls |= dict.fromkeys(find_image_urls(operation.target.endpoint.kind, operation.values))
    return list(urls)


def _collect_image_urls(kind: Kind, values: Mapping[str, Any], urls: dict[str, None]) -> None:
    image = values.get("image")
    if isinstance(image, str) and image:
        try:
            image_url = IMAGE.read(image)
        except InvalidValue:
            image_url = None
        if isinstance(image_url, str):
            urls[image_url] = None
    for link in kind.links:
        linked_kind, linked = BY_NAME[link.kind], values.get(link.param)
        if not any(field.name == "image" for field in linked_kind.fields):
            continue
        for entry in linked if isinstance(linked, list) else [linked]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, dict):
                _collect_image_urls(linked_kind, entry, urls)  # pyright: ignore[reportUnknownArgumentType]


# The pictures of proposals, which become images when an editor accepts them.


def find_accepted(api_request: ApiRequest, endpoint: Endpoint, values: Mapping[str, Any]) -> list[str]:
    """Return the IDs of the proposals that a request or the operations of a batch accept."""
    writes = [(endpoint, api_request.path_params)]
    for operation in values.get("operations", ()):
        if isinstance(operation, BatchOperation) and isinstance(operation.target, BatchTarget):
            writes.append((operation.target.endpoint, operation.target.path_params))
    return [found["id"].lower() for called, found in writes if called.operation is accept_proposal]


async def store_pictures(
    context: RequestContext[Any], site_id: int, proposal_ids: list[str]
) -> dict[str, StoredImage]:
    """Store the files of waiting proposals' pictures, by proposal, before the site is locked."""
    library = context.state.library
    if library is None or not proposal_ids or permissions.rank(context.actor) < permissions.EDITOR:
        return {}
    async with context.transaction() as tx:
        rows = await proposals_storage.find_pictures(tx, proposal_ids)
    stored: dict[str, StoredImage] = {}
    for row in rows:
        async with library.limiter.slot((site_id, context.actor.user_id)), library.open_work_directory() as directory:
            path = directory / "picture"
            await asyncio.to_thread(path.write_bytes, row["content"])
            try:
                stored[row["id"]] = await library.store_image(site_id, path)
            except InvalidValue as error:
                raise errors.invalid_params({"image": errors.for_param("image", error.message)}) from error
    return stored


# A response header lists parameters that have no effect; `strict=1` rejects them instead.

WRITE_NAMES: Final = COMMON_NAMES | {"lang", STRICT, "_method"}
# The index accepts all of these; the OpenAPI document accepts neither `namespace` nor `context`.
INDEX_NAMES: Final = COMMON_NAMES | {"lang", STRICT, "namespace", "context"}
# Synonyms that clients send by mistake.
SYNONYMS: Final = {
    "after": "starts_after",
    "before": "ends_before",
    "category": "categories",
    "count": "per_page",
    "from": "start_date",
    "limit": "per_page",
    "name": "title",
    "offset": "page",
    "paged": "page",
    "posts_per_page": "per_page",
    "q": "search",
    "query": "search",
    "s": "search",
    "sort": "orderby",
    "tag": "tags",
    "to": "end_date",
    "tz": "timezone",
    "until": "end_date",
}


def check_write(api_request: ApiRequest, endpoint: Endpoint, raw: RawParams, extra_names: Iterable[str] = ()) -> None:
    """Record parameters that have no effect on this write; raise if the request is strict."""
    known = {p.name for p in endpoint.params}.union(WRITE_NAMES, extra_names)
    api_request.ignored_params = list_ignored(name for name in raw.values if name not in known)
    api_request.is_strict = is_strict(bodies.query_value(api_request.request, STRICT))
    raise_if_strict(api_request, endpoint.params)


def report_new_names(api_request: ApiRequest, names: Collection[str]) -> None:
    """Record parameters that name new terms if the caller may not create any; raise if the request is strict."""
    api_request.ignored_params = list_ignored((*api_request.ignored_params, *names))
    if names and api_request.is_strict:
        problem = Message(
            "some names do not exist yet, and creating them {requirement}", requirement=permissions.naming_message()
        )
        raise errors.invalid_params({name: errors.for_param(name, problem) for name in names})


def check_description(api_request: ApiRequest) -> None:
    """Record parameters that the index or the OpenAPI document ignores; raise if the request is strict."""
    try:
        pairs = bodies.read_pairs(api_request.request.scope["query_string"])
    except ApiError:
        return  # Descriptions are available even if the query string cannot be parsed.
    known = INDEX_NAMES if api_request.path == "" else INDEX_NAMES - {"namespace", "context"}
    api_request.ignored_params = list_ignored(name for name, _ in pairs if bodies.base_name(name) not in known)
    api_request.is_strict = is_strict(next((value for name, value in pairs if name == STRICT), None))
    raise_if_strict(api_request, ())


def raise_if_strict(api_request: ApiRequest, params: Collection[Param]) -> None:
    if api_request.is_strict and api_request.ignored_params:
        raise errors.invalid_params({name: _explain(name, params) for name in api_request.ignored_params})


def _explain(name: str, params: Collection[Param]) -> Message:
    reduced = next((p.type for p in params if p.name == name), None)
    # A parameter without limits can appear here, because a malformed list name such as `title[` is shortened to
    # `title`.
    if reduced is not None and "minimum" in reduced.doc_schema:
        limits = {"minimum": reduced.doc_schema["minimum"], "maximum": reduced.doc_schema["maximum"]}
        return errors.for_param(name, Message("must be an integer from {minimum} to {maximum}.", **limits))
    suggestion = suggest(name, [p.name for p in params], SYNONYMS)
    return errors.for_param(name, errors.with_suggestion(Message("there is no such parameter here."), suggestion))
