"""Parameters of a request that have no effect: they are named in a header, or rejected with `strict=1`.

`http/request_head.py` finds those of reads, because it removes them from the query string before the response cache
is searched.
"""

from collections.abc import Collection, Iterable
from typing import Final

from kalends.api.catalog import Endpoint
from kalends.api.request import ApiRequest
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.params import Param
from kalends.core.suggestions import suggest
from kalends.http import requests
from kalends.http.request_head import COMMON_NAMES, STRICT, is_strict, list_ignored
from kalends.http.requests import RawParams
from kalends.operations import permissions

WRITE_NAMES: Final = COMMON_NAMES | {"lang", STRICT, "_method"}
# Parameters of the index, and none of the OpenAPI document.
INDEX_NAMES: Final = COMMON_NAMES | {"lang", STRICT, "namespace", "context"}
# Other words for parameters, which clients send by mistake.
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
    """Find the parameters of a write that have no effect; raise if the request is strict."""
    known = {p.name for p in endpoint.params}.union(WRITE_NAMES, extra_names)
    api_request.ignored_params = list_ignored(name for name in raw.values if name not in known)
    api_request.is_strict = is_strict(requests.query_value(api_request.request, STRICT))
    raise_if_strict(api_request, endpoint.params)


def report_new_names(api_request: ApiRequest, names: Collection[str]) -> None:
    """Add the parameters with new names that the caller may not create; raise if the request is strict."""
    api_request.ignored_params = list_ignored((*api_request.ignored_params, *names))
    if names and api_request.is_strict:
        problem = Message(
            "some names do not exist yet, and creating them {requirement}", requirement=permissions.naming_message()
        )
        raise errors.invalid_params({name: errors.for_param(name, problem) for name in names})


def check_description(api_request: ApiRequest) -> None:
    """Find the parameters that the index or the OpenAPI document ignore; raise if the request is strict."""
    try:
        pairs = requests.read_pairs(api_request.request.scope["query_string"])
    except ApiError:
        return  # A description is available even if the query string cannot be read.
    known = INDEX_NAMES if api_request.path == "" else INDEX_NAMES - {"namespace", "context"}
    api_request.ignored_params = list_ignored(name for name, _ in pairs if requests.base_name(name) not in known)
    api_request.is_strict = is_strict(next((value for name, value in pairs if name == STRICT), None))
    raise_if_strict(api_request, ())


def raise_if_strict(api_request: ApiRequest, params: Collection[Param]) -> None:
    """Reject a strict request with parameters that have no effect."""
    if api_request.is_strict and api_request.ignored_params:
        raise errors.invalid_params({name: _explain(name, params) for name in api_request.ignored_params})


def _explain(name: str, params: Collection[Param]) -> Message:
    reduced = next((p.type for p in params if p.name == name), None)
    # The name of a malformed list, such as `title[`, is reduced to that of a known parameter.
    if reduced is not None and "minimum" in reduced.doc_schema:
        limits = {"minimum": reduced.doc_schema["minimum"], "maximum": reduced.doc_schema["maximum"]}
        return errors.for_param(name, Message("must be an integer from {minimum} to {maximum}.", **limits))
    suggestion = suggest(name, [p.name for p in params], SYNONYMS)
    return errors.for_param(name, errors.with_suggestion(Message("there is no such parameter here."), suggestion))
