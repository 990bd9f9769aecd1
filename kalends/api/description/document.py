"""GET /doc: an OpenAPI document of every route, parameter, body, answer, header and error code.

It is made once per language from the rows that also read the parameters, then only addresses are put in.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from kalends import __version__
from kalends.api import uploads
from kalends.api.catalog import Endpoint, Interface, Route
from kalends.api.description import headers, operations, schemas
from kalends.api.description.errors import ALWAYS, NAMESPACE, Problem, problems_of
from kalends.api.description.schemas import Schema, name_of, ref
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core.image_types import BY_MIME
from kalends.core.messages import Translate
from kalends.core.params import NOT_NULLABLE, Param
from kalends.http.language import DEFAULT, translator
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.operations.changes import list_changes
from kalends.operations.history import read_history
from kalends.operations.media.records import create_media
from kalends.operations.permissions import READERS
from kalends.operations.records import create_record, list_records, read_record

# Real answers of a server with this address, by `just examples`.
EXAMPLES: Final = Path(__file__).resolve().parent / "examples.json"
EXAMPLE_BASE: Final = "https://calendar.example.org"
EXAMPLE_HOME: Final = f"{EXAMPLE_BASE}/api/{INTERFACE.namespace}"
EXAMPLE_OURS: Final = f"{EXAMPLE_BASE}/api/kalends/v1"
MEDIA_TYPES: Final = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
SIGNED: Final = [{"applicationPassword": list[str]()}]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an interface is reached, and where its records link to."""

    base_url: str
    prefix: str
    home: str


def describe_interface(interface: Interface, place: Place, language: str, per_page: int) -> bytes:
    """The document of an interface as it is reached there, in this language."""
    made = make_document(interface.namespace, language, per_page)
    base_url = place.base_url
    places = (
        (EXAMPLE_OURS, base_url + place.prefix),
        (EXAMPLE_HOME, base_url + place.home),
        (EXAMPLE_BASE, base_url),
    )
    for example, real in places:
        made = made.replace(example.encode(), orjson.dumps(real)[1:-1])
    return made


@lru_cache(maxsize=64)
def make_document(namespace: str, language: str, per_page: int) -> bytes:
    interface = INTERFACE if namespace == INTERFACE.namespace else EXTENSION
    return orjson.dumps(Description(interface, language, per_page).document())


@lru_cache(maxsize=1)
def read_examples() -> dict[str, Any]:
    """Under "answers" by operation and status, under "refusals" by language and code."""
    examples: dict[str, Any] = orjson.loads(EXAMPLES.read_bytes()) if EXAMPLES.exists() else {}
    return examples


class Description:
    """A document in the making: what is described by operations, and what they refer to."""

    def __init__(self, interface: Interface, language: str, per_page: int = 12) -> None:
        self._interface = interface
        self._is_ours = interface is not INTERFACE
        self._language = language
        self._say: Translate = translator(language)
        self._per_page = per_page
        self._responses: dict[str, Schema] = {}
        self._examples: dict[str, Schema] = {}

    def document(self) -> Schema:
        paths: dict[str, Schema] = {"/": self._index(), "/doc": self._description()}
        for route in self._interface.routes:
            paths[path_of(route)] = self._path(route)
        names = [operations.tag_of(endpoint) for route in self._interface.routes for endpoint in route.endpoints]
        bodies = self._bodies()
        return {
            "openapi": "3.1.0",
            "info": self._info(),
            "servers": [{"url": EXAMPLE_OURS if self._is_ours else EXAMPLE_HOME}],
            "tags": [
                {"name": name, "description": self._say(operations.TAGS.get(name, name))}
                for name in dict.fromkeys([*names, "interface"])
            ],
            "security": [{}, *SIGNED],
            "paths": paths,
            "components": {
                "schemas": self._translated({**schemas.components(of_interface=not self._is_ours), **bodies}),
                "parameters": self._translated(headers.PARAMETERS),
                "headers": self._translated(headers.HEADERS),
                "responses": self._responses,
                "examples": self._examples,
                "securitySchemes": {
                    "applicationPassword": {
                        "type": "http",
                        "scheme": "basic",
                        "description": self._say(headers.SECURITY),
                    }
                },
            },
        }  # fmt: skip

    def _info(self) -> Schema:
        texts = (
            [operations.ABOUT_OURS, operations.ABOUT_LANGUAGE]
            if self._is_ours
            else [operations.ABOUT, operations.ABOUT_FIELDS, operations.ABOUT_LANGUAGE]
        )
        return {
            "title": self._say(operations.TITLE_OF_OURS if self._is_ours else operations.TITLE),
            "version": __version__,
            "description": "\n\n".join(map(self._say, texts)),
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        }

    # The interface about itself --------------------------------------------------------------

    def _index(self) -> Schema:
        namespace = {
            "name": "namespace",
            "in": "query",
            "description": self._say(headers.NAMESPACE),
            "schema": {"type": "string"},
        }
        context = {
            "name": "context",
            "in": "query",
            "description": self._say(headers.CONTEXT),
            "schema": {"type": "string"},
        }
        answer = self._answer("200", ref("Index"), "readIndex", ("Content-Language", "ETag"))
        answer["304"] = self._unchanged()
        taken = [namespace, context, _parameter("If-None-Match")]
        return {"get": self._about("readIndex", operations.INDEX, taken, answer, (*ALWAYS, NAMESPACE))}

    def _description(self) -> Schema:
        answer = self._answer("200", ref("Document"), "", ("Content-Language", "ETag"))
        answer["304"] = self._unchanged()
        found = self._about("readDescription", operations.DESCRIPTION, [_parameter("If-None-Match")], answer, ALWAYS)
        return {"get": found}

    def _about(
        self, name: str, summary: str, parameters: list[Schema], answer: Schema, problems: tuple[Problem, ...]
    ) -> Schema:
        ordered = sorted(problems, key=lambda row: row.status)
        return {
            "operationId": name,
            "tags": ["interface"],
            "summary": self._say(summary),
            "parameters": [*parameters, *map(_parameter, headers.EVERYWHERE)],
            "responses": {**answer, **self._refusals(ordered, None)},
        }

    # Routes ----------------------------------------------------------------------------------

    def _path(self, route: Route) -> Schema:
        return {
            method.lower(): self._operation(endpoint, method)
            for endpoint in route.endpoints
            for method in endpoint.methods
        }

    def _operation(self, endpoint: Endpoint, method: str) -> Schema:
        tag = operations.tag_of(endpoint)
        described: Schema = {
            "operationId": operations.operation_id(endpoint, method),
            "tags": [tag],
            "summary": self._say(operations.summary_of(endpoint)),
        }
        if self._is_ours:
            described["x-extension"] = True
        has_body = method in ("POST", "PUT", "PATCH")
        described["parameters"] = [
            *[self._parameter(p, "path", endpoint) for p in endpoint.path_params],
            *([] if has_body else [self._parameter(p, "query", endpoint) for p in endpoint.params]),
            *map(_parameter, headers.parameters_of(endpoint, method)),
        ]
        if has_body:
            described["requestBody"] = self._body(endpoint)
        if endpoint.writes or endpoint.operation is read_history or tag in READERS:
            described["security"] = SIGNED
        described["responses"] = {
            **self._success(endpoint, method, described["operationId"]),
            **self._refusals(problems_of(endpoint, method), endpoint.kind),
        }
        return described

    def _parameter(self, p: Param, where: str, endpoint: Endpoint) -> Schema:
        schema = dict(p.type.doc_schema)
        if p.has_default:
            schema["default"] = p.default
        if p.name == "per_page" and endpoint.operation is list_records:
            schema["default"] = self._per_page
        described: Schema = {
            "name": p.name,
            "in": where,
            "required": where == "path",
            "description": self._words_of(p),
            "schema": schema,
        }
        if schema.get("type") == "array":
            described |= {"style": "form", "explode": False}
        if p.is_extension:
            described["x-extension"] = True
        return described

    def _words_of(self, p: Param) -> str:
        words = self._say(p.description)
        return f"{words}. {self._say(operations.EXTENSION)}" if p.is_extension else words

    # Bodies ----------------------------------------------------------------------------------

    def _body(self, endpoint: Endpoint) -> Schema:
        schema = self._fields(endpoint.params, update=endpoint.updates)
        if endpoint.takes_file:
            return _file_body(schema)
        if endpoint.kind is not None and endpoint.operation is create_record:
            schema = ref(f"{name_of(endpoint.kind)}New")
        elif endpoint.kind is not None and endpoint.updates:
            schema = ref(f"{name_of(endpoint.kind)}Changes")
        example = read_examples().get("requests", {}).get(endpoint.kind.name if endpoint.kind else "")
        content: Schema = {media_type: {"schema": schema} for media_type in MEDIA_TYPES}
        if example and endpoint.operation is create_record:
            content["application/json"]["example"] = example
        return {"required": endpoint.operation is create_record, "content": content}

    def _bodies(self) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for route in self._interface.routes:
            for endpoint in route.endpoints:
                if endpoint.kind is not None and endpoint.operation is create_record:
                    found[f"{name_of(endpoint.kind)}New"] = self._fields(endpoint.params, update=False)
                elif endpoint.kind is not None and endpoint.updates:
                    found[f"{name_of(endpoint.kind)}Changes"] = self._fields(endpoint.params, update=True)
        return found

    def _fields(self, params: tuple[Param, ...], *, update: bool) -> Schema:
        """Fields of a body. On update nothing is required, and null clears what can be cleared."""
        required = [p.name for p in params if p.required and not update]
        return {
            "type": "object",
            "properties": {p.name: self._field(p, update) for p in params},
            **({"required": required} if required else {}),
        }

    def _field(self, p: Param, update: bool) -> Schema:
        schema = _linked(p) if p.name in ("venue", "organizer") and p.type.accepts_lists else dict(p.type.doc_schema)
        if update and p.type.null_value is not NOT_NULLABLE:
            schema = _nullable(schema)
        if p.has_default and not update:
            schema["default"] = p.default
        if p.is_extension:
            schema["x-extension"] = True
        return {**schema, "description": self._words_of(p)}

    # Answers ---------------------------------------------------------------------------------

    def _success(self, endpoint: Endpoint, method: str, operation: str) -> Schema:
        kind, by = endpoint.kind, endpoint.operation
        names = headers.of_answer(endpoint, method)
        if by is list_changes:
            return self._answer("200", ref("Changes"), operation, names)
        if by is read_history:
            return self._answer("200", ref("History"), operation, names)
        if by in schemas.OTHERS or kind is None:
            return self._answer("200", schemas.OTHERS.get(by, {"type": "object"}), operation, names)
        if by is list_records:
            return {**self._answer("200", ref(f"{name_of(kind)}List"), operation, names), "304": self._unchanged()}
        if by in (create_record, create_media):
            return self._answer("201", ref(name_of(kind)), operation, names, links=_links(kind))
        answer = self._answer("200", ref(name_of(kind)), operation, names)
        return {**answer, "304": self._unchanged()} if by is read_record else answer

    def _answer(
        self, status: str, schema: Schema, operation: str, names: tuple[str, ...], *, links: Schema | None = None
    ) -> Schema:
        content: Schema = {"schema": schema}
        # An update looks the same by every method and address.
        plain = re.sub(r"By(Slug|Post|Put)", "", operation)
        if plain in read_examples().get("answers", {}):
            self._examples[plain] = {"value": read_examples()["answers"][plain]}
            content["examples"] = {plain: {"$ref": f"#/components/examples/{plain}"}}
        described: Schema = {
            "description": self._say(headers.CREATED if status == "201" else headers.DONE),
            "headers": {name: _header(name) for name in (*headers.ALWAYS, *names)},
            "content": {"application/json": content},
        }
        return {status: {**described, "links": links} if links else described}

    def _unchanged(self) -> Schema:
        names = (*headers.ALWAYS, "ETag", "Content-Language", *headers.TOTALS, "Surrogate-Key")
        return {"description": self._say(headers.UNCHANGED), "headers": {name: _header(name) for name in names}}

    def _refusals(self, problems: list[Problem], kind: Kind | None) -> Schema:
        """One answer per status; equal ones are described once and named after their codes."""
        found: Schema = {}
        for status in sorted({row.status for row in problems}):
            rows = [row for row in problems if row.status == status]
            codes = [row.code_of(kind) for row in rows]
            name = ".".join([str(status), *codes])
            if name not in self._responses:
                self._responses[name] = self._refusal(status, rows, codes)
            found[str(status)] = {"$ref": f"#/components/responses/{name}"}
        return found

    def _refusal(self, status: int, rows: list[Problem], codes: list[str]) -> Schema:
        words = [f"`{code}`: {self._say(row.when)}" for code, row in zip(codes, rows, strict=True)]
        own = [ref(code) for code in codes if code in schemas.ERRORS]
        plain = [code for code in codes if code not in schemas.ERRORS]
        if plain:
            narrower = {"code": {"enum": plain}, "data": {"properties": {"status": {"const": status}}}}
            own.append({"allOf": [ref("Error"), {"type": "object", "properties": narrower}]})
        names = [*headers.ALWAYS, "Content-Language"]
        names += ["Retry-After"] if status in (409, 429, 503) else []
        content: Schema = {"schema": own[0] if len(own) == 1 else {"anyOf": own}}
        spoken = read_examples().get("refusals", {})
        shown = spoken.get(self._language, spoken.get(DEFAULT, {}))
        for code in codes:
            key = f"{status}.{code}"
            if key in shown:
                self._examples[key] = {"value": shown[key]}
                content.setdefault("examples", {})[code] = {"$ref": f"#/components/examples/{key}"}
        return {
            "description": "\n".join(words),
            "headers": {name: _header(name) for name in names},
            "content": {"application/json": content},
        }

    def _translated(self, value: Any) -> Any:
        """A copy in which every description is said."""
        if isinstance(value, dict):
            return {
                key: self._say(inner) if key == "description" and isinstance(inner, str) else self._translated(inner)
                for key, inner in value.items()  # pyright: ignore[reportUnknownVariableType]
            }
        if isinstance(value, list | tuple):
            return [self._translated(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        return value


def _file_body(fields: Schema) -> Schema:
    """A form with a file among its fields, or the file as it is; its fields are in the query string then."""
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    form = {**fields, "properties": {uploads.FIELD: binary, **fields["properties"]}, "required": [uploads.FIELD]}
    raw: Schema = {mime: {} for mime in BY_MIME}
    return {"required": True, "content": {uploads.FORM: {"schema": form}, **raw}}


def path_of(route: Route) -> str:
    return re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.pattern)


def _parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def _linked(p: Param) -> Schema:
    """A linked record is named by its ID, or given as data from which it is made."""
    other = BY_NAME[f"{p.name}s"]
    entry: list[Schema] = [
        {"type": "integer", "minimum": 1},
        {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}},
        ref(f"{name_of(other)}New"),
    ]
    return {"anyOf": [{"type": "array", "items": {"anyOf": entry}, "maxItems": 50}, *entry]}


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*types, "null"]}


def _links(kind: Kind) -> Schema:
    """Where to go on with what was created."""
    name = name_of(kind)
    found: Schema = {
        verb: {"operationId": f"{verb}{name}", "parameters": {"id": "$response.body#/id"}}
        for verb in ("read", "update", "delete")
    }
    if kind.is_post:
        found["readBySlug"] = {"operationId": f"read{name}BySlug", "parameters": {"slug": "$response.body#/slug"}}
    return found
