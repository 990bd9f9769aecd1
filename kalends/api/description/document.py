"""GET /doc: an OpenAPI document for every route, parameter, body, response, header and error code.

It is generated from the route table that also dispatches requests, and cached by language and default page size. Only
its URLs depend on the request.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from kalends import __version__
from kalends.api.description import error_codes, schemas
from kalends.api.description.error_codes import COMMON_ERRORS, INVALID, NAMESPACE, SIGN_IN, list_errors
from kalends.api.description.schema_types import Schema, ref, schema_name
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import CALENDAR_NAMESPACE, PAGING, Kind
from kalends.core.image_types import BY_MIME
from kalends.core.messages import DEFAULT, Translate, translator
from kalends.core.params import NOT_NULLABLE, Param
from kalends.http import bodies as uploads
from kalends.http.router import Endpoint, ErrorCode, Interface, Route

# Responses from a real server at this base URL, recorded by `just examples`.
EXAMPLES: Final = Path(__file__).resolve().parent / "examples.json"
EXAMPLE_BASE: Final = "https://calendar.example.org"
EXAMPLE_API: Final = f"{EXAMPLE_BASE}/api/{CALENDAR_NAMESPACE}"
EXAMPLE_EXTENSION: Final = f"{EXAMPLE_BASE}/api/kalends/v1"
MEDIA_TYPES: Final = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
AUTHENTICATED: Final = [{"applicationPassword": list[str]()}]


@dataclass(frozen=True, slots=True)
class DocumentUrls:
    """The site's base URL, the requested path prefix, and the prefix used in links to records."""

    base_url: str
    prefix: str
    canonical_prefix: str


def describe_interface(interface: Interface, urls: DocumentUrls, language: str, per_page: int) -> bytes:
    """Return the cached document in a language, with URLs replaced to match the request."""
    document = make_document(interface, language, per_page)
    base_url = urls.base_url
    replacements = (
        (EXAMPLE_EXTENSION, base_url + urls.prefix),
        (EXAMPLE_API, base_url + urls.canonical_prefix),
        (EXAMPLE_BASE, base_url),
    )
    for example, actual in replacements:
        document = document.replace(example.encode(), orjson.dumps(actual)[1:-1])
    return document


@lru_cache(maxsize=64)
def make_document(interface: Interface, language: str, per_page: int) -> bytes:
    return orjson.dumps(Description(interface, language, per_page).document())


@lru_cache(maxsize=1)
def read_examples() -> dict[str, Any]:
    """Return the examples: "answers" by operation, "requests" by kind, "refusals" by language and code."""
    examples: dict[str, Any] = orjson.loads(EXAMPLES.read_bytes()) if EXAMPLES.exists() else {}
    return examples


class Description:
    """Builds an interface's OpenAPI document and collects the components that its operations refer to."""

    def __init__(self, interface: Interface, language: str, per_page: int = 12) -> None:
        self._interface = interface
        self._is_extension = interface.namespace != CALENDAR_NAMESPACE
        self._language = language
        self._translate: Translate = translator(language)
        self._per_page = per_page
        self._responses: dict[str, Schema] = {}
        self._examples: dict[str, Schema] = {}

    def document(self) -> Schema:
        paths: dict[str, Schema] = {"/": self._index_operation(), "/doc": self._document_operation()}
        for route in self._interface.routes:
            paths[build_path(route)] = {
                method.lower(): self._operation(route, endpoint, method)
                for endpoint in route.endpoints
                for method in endpoint.methods
            }
        names = [route.tag for route in self._interface.routes]
        bodies = {
            endpoint.body_schema: self._fields(endpoint)
            for route in self._interface.routes
            for endpoint in route.endpoints
            if endpoint.body_schema
        }
        return {
            "openapi": "3.1.0",
            "info": self._info(),
            "servers": [{"url": EXAMPLE_EXTENSION if self._is_extension else EXAMPLE_API}],
            "tags": [
                {"name": name, "description": self._translate(error_codes.TAGS.get(name, name))}
                for name in dict.fromkeys([*names, "interface"])
            ],
            "security": [{}, *AUTHENTICATED],
            "paths": paths,
            "components": {
                "schemas": self._translated(
                    {**schemas.components(self._interface.schemas, of_interface=not self._is_extension), **bodies}
                ),
                "parameters": self._translated(error_codes.PARAMETERS),
                "headers": self._translated(error_codes.HEADERS),
                "responses": self._responses,
                "examples": self._examples,
                "securitySchemes": {
                    "applicationPassword": {
                        "type": "http",
                        "scheme": "basic",
                        "description": self._translate(error_codes.SECURITY),
                    }
                },
            },
        }

    def _info(self) -> Schema:
        texts = (
            [error_codes.ABOUT_EXTENSION, error_codes.ABOUT_IGNORED, error_codes.ABOUT_LANGUAGE]
            if self._is_extension
            else [error_codes.ABOUT, error_codes.ABOUT_IGNORED, error_codes.ABOUT_FIELDS, error_codes.ABOUT_LANGUAGE]
        )
        return {
            "title": self._translate(error_codes.EXTENSION_TITLE if self._is_extension else error_codes.TITLE),
            "version": __version__,
            "description": "\n\n".join(map(self._translate, texts)),
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        }

    # Index and document ----------------------------------------------------------------------

    def _index_operation(self) -> Schema:
        namespace = {
            "name": "namespace",
            "in": "query",
            "description": self._translate(error_codes.NAMESPACE_NOTE),
            "schema": {"type": "string"},
        }
        context = {
            "name": "context",
            "in": "query",
            "description": self._translate(error_codes.CONTEXT),
            "schema": {"type": "string"},
        }
        responses = self._response("200", ref("Index"), "readIndex", ("Content-Language", "ETag"))
        responses["304"] = self._not_modified()
        parameters = [namespace, context, _parameter("If-None-Match")]
        return {
            "get": self._self_operation(
                "readIndex", error_codes.INDEX, parameters, responses, (*COMMON_ERRORS, INVALID, NAMESPACE)
            )
        }

    def _document_operation(self) -> Schema:
        responses = self._response("200", ref("Document"), "", ("Content-Language", "ETag"))
        responses["304"] = self._not_modified()
        operation = self._self_operation(
            "readDescription",
            error_codes.DESCRIPTION,
            [_parameter("If-None-Match")],
            responses,
            (*COMMON_ERRORS, INVALID),
        )
        return {"get": operation}

    def _self_operation(
        self, name: str, summary: str, parameters: list[Schema], responses: Schema, errors: tuple[ErrorCode, ...]
    ) -> Schema:
        ordered = sorted(errors, key=lambda row: row.status)
        return {
            "operationId": name,
            "tags": ["interface"],
            "summary": self._translate(summary),
            "parameters": [*parameters, *map(_parameter, error_codes.COMMON_PARAMETERS)],
            "responses": {**responses, **self._error_responses(ordered, None)},
        }

    # Routes ----------------------------------------------------------------------------------

    def _operation(self, route: Route, endpoint: Endpoint, method: str) -> Schema:
        errors = list_errors(endpoint, method)
        operation: Schema = {
            "operationId": error_codes.operation_id(endpoint, method),
            "tags": [route.tag],
            "summary": self._translate(error_codes.SUMMARIES[endpoint.operation_id]),
        }
        if self._is_extension:
            operation["x-extension"] = True
        has_body = method in ("POST", "PUT", "PATCH")
        operation["parameters"] = [
            *[self._parameter(p, "path") for p in endpoint.path_params],
            *([] if has_body else [self._parameter(p, "query") for p in endpoint.params]),
            *map(_parameter, error_codes.list_parameters(endpoint)),
        ]
        if has_body:
            operation["requestBody"] = self._request_body(endpoint)
        if SIGN_IN in errors:
            operation["security"] = AUTHENTICATED
        operation["responses"] = {
            **self._success(endpoint, operation["operationId"]),
            **self._error_responses(errors, endpoint.kind),
        }
        return operation

    def _parameter(self, p: Param, where: str) -> Schema:
        schema = dict(p.type.doc_schema)
        if p.has_default:
            schema["default"] = p.default
        if p.name == "per_page" and p in PAGING:
            schema["default"] = self._per_page
        parameter: Schema = {
            "name": p.name,
            "in": where,
            "required": where == "path",
            "description": self._param_description(p),
            "schema": schema,
        }
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        if p.is_extension:
            parameter["x-extension"] = True
        return parameter

    def _param_description(self, p: Param) -> str:
        notes = (p.description, p.type.note, error_codes.EXTENSION_NOTE if p.is_extension else "")
        return ". ".join(self._translate(note) for note in notes if note)

    # Bodies ----------------------------------------------------------------------------------

    def _request_body(self, endpoint: Endpoint) -> Schema:
        if endpoint.accepts_file:
            return _file_body(self._fields(endpoint), _find_request_example(endpoint))
        if endpoint.accepts_input:
            return _input_body(self._fields(endpoint), _find_request_example(endpoint))
        schema = ref(endpoint.body_schema) if endpoint.body_schema else self._fields(endpoint)
        content: Schema = {media_type: {"schema": schema} for media_type in MEDIA_TYPES}
        if (example := _find_request_example(endpoint)) is not None:
            content["application/json"]["example"] = example
        return {"required": endpoint.requires_body, "content": content}

    def _fields(self, endpoint: Endpoint) -> Schema:
        """Describe the body's fields. On update, no field is required, and null clears fields that can be empty."""
        required = [p.name for p in endpoint.params if p.required and not endpoint.is_update]
        return {
            "type": "object",
            "properties": {p.name: self._field(p, endpoint) for p in endpoint.params},
            **({"required": required} if required else {}),
        }

    def _field(self, p: Param, endpoint: Endpoint) -> Schema:
        linked_kind = _find_linked_post(endpoint.kind, p)
        schema = _linked_schema(linked_kind) if linked_kind else self._translated(p.type.doc_schema)
        if endpoint.is_update and p.type.null_value is not NOT_NULLABLE:
            schema = _nullable(schema)
        if p.has_default and not endpoint.is_update:
            schema["default"] = p.default
        if p.is_extension:
            schema["x-extension"] = True
        return {**schema, "description": self._param_description(p)}

    # Responses -------------------------------------------------------------------------------

    def _success(self, endpoint: Endpoint, operation_id: str) -> Schema:
        names = error_codes.list_response_headers(endpoint)
        links = _links(endpoint.kind) if endpoint.status == 201 and endpoint.kind else None
        responses = self._response(str(endpoint.status), ref(endpoint.returns), operation_id, names, links=links)
        if endpoint.file_types:
            responses["200"]["content"] = {name: {"schema": ref(endpoint.returns)} for name in endpoint.file_types}
        if endpoint.returns_existing:
            responses |= self._response("200", ref(endpoint.returns), operation_id, names)
            responses["200"]["description"] = self._translate(error_codes.EXISTING)
        if endpoint.has_etag and not endpoint.is_write:
            responses["304"] = self._not_modified()
        return responses

    def _response(
        self, status: str, schema: Schema, operation_id: str, names: tuple[str, ...], *, links: Schema | None = None
    ) -> Schema:
        content: Schema = {"schema": schema}
        # Update examples are the same for all methods and paths.
        example_name = re.sub(r"By(Slug|Post|Put)", "", operation_id)
        if example_name in read_examples().get("answers", {}):
            self._examples[example_name] = {"value": read_examples()["answers"][example_name]}
            content["examples"] = {example_name: {"$ref": f"#/components/examples/{example_name}"}}
        response: Schema = {
            "description": self._translate(error_codes.CREATED if status == "201" else error_codes.SUCCESS),
            "headers": {name: _header(name) for name in (*error_codes.DOCUMENTED_ALWAYS, *names)},
            "content": {"application/json": content},
        }
        return {status: {**response, "links": links} if links else response}

    def _not_modified(self) -> Schema:
        names = (
            *error_codes.DOCUMENTED_ALWAYS,
            "ETag",
            "Content-Language",
            *error_codes.TOTAL_HEADERS,
            "Surrogate-Key",
        )
        return {
            "description": self._translate(error_codes.NOT_MODIFIED),
            "headers": {name: _header(name) for name in names},
        }

    def _error_responses(self, errors: list[ErrorCode], kind: Kind | None) -> Schema:
        """Describe one response per status; identical responses share a component named after their codes."""
        responses: Schema = {}
        for status in sorted({row.status for row in errors}):
            rows = [row for row in errors if row.status == status]
            codes = [row.for_kind(kind) for row in rows]
            name = ".".join([str(status), *codes])
            if name not in self._responses:
                self._responses[name] = self._error_response(status, rows, codes)
            responses[str(status)] = {"$ref": f"#/components/responses/{name}"}
        return responses

    def _error_response(self, status: int, rows: list[ErrorCode], codes: list[str]) -> Schema:
        lines = [f"`{code}`: {self._translate(row.when)}" for code, row in zip(codes, rows, strict=True)]
        variants = [ref(code) for code in codes if code in schemas.ERRORS]
        generic_codes = [code for code in codes if code not in schemas.ERRORS]
        if generic_codes:
            restrictions = {"code": {"enum": generic_codes}, "data": {"properties": {"status": {"const": status}}}}
            variants.append({"allOf": [ref("Error"), {"type": "object", "properties": restrictions}]})
        names = [*error_codes.DOCUMENTED_ALWAYS, "Content-Language"]
        names += ["Retry-After"] if status in (409, 429, 503) else []
        names += ["WWW-Authenticate"] if status == 401 else []
        content: Schema = {"schema": variants[0] if len(variants) == 1 else {"anyOf": variants}}
        by_language = read_examples().get("refusals", {})
        examples = by_language.get(self._language, by_language.get(DEFAULT, {}))
        for code in codes:
            key = f"{status}.{code}"
            if key in examples:
                self._examples[key] = {"value": examples[key]}
                content.setdefault("examples", {})[code] = {"$ref": f"#/components/examples/{key}"}
        return {
            "description": "\n".join(lines),
            "headers": {name: _header(name) for name in names},
            "content": {"application/json": content},
        }

    def _translated(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: self._translate(inner)
                if key == "description" and isinstance(inner, str)
                else self._translated(inner)
                for key, inner in value.items()  # pyright: ignore[reportUnknownVariableType]
            }
        if isinstance(value, list | tuple):
            return [self._translated(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        return value


def _find_request_example(endpoint: Endpoint) -> Schema | None:
    """Return a recorded request body for the operation, or else one that creates a record or changes one field."""
    requests: dict[str, Schema] = read_examples().get("requests", {})
    if endpoint.operation_id in requests or endpoint.kind is None:
        return requests.get(endpoint.operation_id)
    example: Schema | None = requests.get(endpoint.kind.name)
    return dict([next(iter(example.items()))]) if example and endpoint.is_update else example


def _file_body(fields: Schema, example: Schema | None) -> Schema:
    """Describe an upload: a form with a file, or the file as the body and the fields in the query string."""
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    form = {**fields, "properties": {uploads.FIELD: binary, **fields["properties"]}, "required": [uploads.FIELD]}
    raw: Schema = {mime: {} for mime in BY_MIME}
    described = {"schema": form, "example": example} if example else {"schema": form}
    return {"required": True, "content": {uploads.MULTIPART: described, **raw}}


def _input_body(fields: Schema, example: Schema | None) -> Schema:
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    form = {**fields, "properties": {uploads.FIELD: binary, **fields["properties"]}}
    plain: Schema = {media_type: {"schema": fields} for media_type in MEDIA_TYPES if media_type != uploads.MULTIPART}
    if example is not None:
        plain["application/json"]["example"] = example
    return {"required": False, "content": {**plain, uploads.MULTIPART: {"schema": form}}}


def build_path(route: Route) -> str:
    return re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.pattern)


def _parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def _find_linked_post(kind: Kind | None, p: Param) -> Kind | None:
    """Return the kind of posts that a parameter links to; None for a plain parameter or a list of terms."""
    for link in kind.links if kind else ():
        if link.param == p.name and BY_NAME[link.kind].is_post:
            return BY_NAME[link.kind]
    return None


def _linked_schema(kind: Kind) -> Schema:
    entry: list[Schema] = [
        {"type": "integer", "minimum": 1},
        {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}},
        ref(f"{schema_name(kind)}New"),
    ]
    return {"anyOf": [{"type": "array", "items": {"anyOf": entry}, "maxItems": 50}, *entry]}


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*types, "null"]}


def _links(kind: Kind) -> Schema:
    name = schema_name(kind)
    links: Schema = {
        verb: {"operationId": f"{verb}{name}", "parameters": {"id": "$response.body#/id"}}
        for verb in ("read", "update", "delete")
    }
    if kind.is_post:
        links["readBySlug"] = {"operationId": f"read{name}BySlug", "parameters": {"slug": "$response.body#/slug"}}
    return links
