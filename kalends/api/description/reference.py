"""GET /docs: the API reference for people, in their language, with forms to send requests.

The page is plain HTML made from the same description as /doc, and works without its script. Its policy allows
only the style sheet, the script and the icon of this server.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

import orjson
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from kalends import __version__
from kalends.api.description import operations
from kalends.api.description.document import make_document
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.messages import Message, Translate
from kalends.http.context import AppState, read_client_ip
from kalends.http.language import LANGUAGES, choose_language, translator
from kalends.http.templates import make_environment

STATIC: Final = Path(__file__).resolve().parent / "static"
TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
FILES: Final = {"reference.css": "text/css", "reference.js": "text/javascript", "icon.svg": "image/svg+xml"}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
METHODS: Final = ("get", "post", "put", "patch", "delete")
# Other headers are set by the browser, or of no use in a form.
FORM_HEADERS: Final = ("If-Match", "If-None-Match", "Idempotency-Key")
MAX_TEXTAREA_ROWS: Final = 14
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of an operation, or a field of its body, whose location is empty."""

    name: str
    type: str
    location: str
    description: str
    default: str
    is_required: bool
    is_extension: bool


@dataclass(frozen=True, slots=True)
class ResponseRow:
    status: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class BodyExample:
    text: str
    rows: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation on a path; `methods` are those that do the same."""

    anchor: str
    path: str
    methods: list[str]
    summary: str
    search_text: str
    is_extension: bool
    parameters: list[Field]
    body_fields: list[Field] | None
    body_example: BodyExample | None
    responses: list[ResponseRow]
    response_example: str

    @property
    def inputs(self) -> list[Field]:
        """Return the parameters that the form asks for."""
        return [field for field in self.parameters if field.location != "header" or field.name in FORM_HEADERS]


@dataclass(frozen=True, slots=True)
class TagView:
    title: str
    operations: list[OperationView]


@dataclass(frozen=True, slots=True)
class Section:
    """One of the two interfaces."""

    prefix: str
    title: str
    paragraphs: list[str]
    tags: list[TagView]


async def show(state: AppState, request: Request, host: str, api_prefix: str, extension_prefix: str) -> Response:
    """Respond to /docs and the files below it, in the language of the reader or of the site."""
    if request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(request.method, ["GET"])
    name = request.scope["path"].removeprefix("/docs").strip("/")
    if name:
        return show_file(name)
    client_ip = read_client_ip(request, state)
    async with state.database.transaction(host, utc_now(), writing=False, anonymous=True, client_ip=client_ip) as tx:
        site_language = tx.site.language
    language = choose_language(
        request.scope["query_string"], request.headers.get("accept-language", ""), site_language
    )
    return show_page(language, api_prefix, extension_prefix)


def show_file(name: str) -> Response:
    if name not in FILES:
        raise errors.no_route()
    headers = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": "default-src 'none'"}
    return Response((STATIC / name).read_bytes(), 200, headers, media_type=FILES[name])


def show_page(language: str, api_prefix: str, extension_prefix: str) -> Response:
    """Respond with the page; the prefixes are the paths of the two interfaces."""
    headers = {
        "Content-Language": language,
        "Vary": "Accept-Language",
        "Cache-Control": "public, max-age=60",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
    }
    return Response(make_page(language, api_prefix, extension_prefix), 200, headers, media_type="text/html")


@lru_cache(maxsize=16)
def make_page(language: str, api_prefix: str, extension_prefix: str) -> str:
    """Render the page; the few variants are cached."""
    translate = translator(language)
    prefixes = {INTERFACE.namespace: api_prefix, EXTENSION.namespace: extension_prefix}
    sections = [
        _SectionBuilder(orjson.loads(make_document(namespace, language, 12)), number, translate).section(prefix)
        for number, (namespace, prefix) in enumerate(prefixes.items())
    ]
    template = _ENVIRONMENT.get_template("reference.html")
    return template.render(
        _=translate, language=language, languages=LANGUAGES, version=__version__, sections=sections
    )


class _SectionBuilder:
    """Builds the view of an OpenAPI document; `number` keeps the anchors of the sections apart."""

    def __init__(self, document: Json, number: int, translate: Translate) -> None:
        self._document = document
        self._number = number
        self._translate = translate

    def section(self, prefix: str) -> Section:
        info = self._document["info"]
        views = [(operation["tags"], view) for operation, view in self._operations()]
        tags = [
            TagView(tag["description"], [view for names, view in views if tag["name"] in names])
            for tag in self._document["tags"]
        ]
        return Section(prefix, info["title"], info["description"].split("\n\n"), tags)

    def _operations(self) -> Iterator[tuple[Json, OperationView]]:
        for path, by_method in self._document["paths"].items():
            for methods, operation in _merge_methods(by_method):
                yield operation, self._operation(path, methods, operation)

    def _operation(self, path: str, methods: list[str], operation: Json) -> OperationView:
        names = " ".join(row.get("name", "") for row in operation["parameters"])
        parameters = [resolve(self._document, row) for row in operation["parameters"]]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        return OperationView(
            anchor=f"{operation['operationId']}{self._number or ''}",
            path=path,
            methods=methods,
            summary=operation["summary"],
            search_text=f"{path} {operation['summary']} {names}".lower(),
            is_extension=operation.get("x-extension", False),
            parameters=[self._field(row, row["schema"], required=row.get("required", False)) for row in parameters],
            body_fields=self._body_fields(resolve(self._document, body.get("schema", {}))),
            body_example=_make_body_example(body),
            responses=self._responses(operation),
            response_example=self._response_example(operation),
        )

    def _body_fields(self, schema: Json) -> list[Field] | None:
        if not schema:
            return None
        required = schema.get("required", [])
        return [
            self._field({"name": name, **row}, row, required=name in required)
            for name, row in schema["properties"].items()
        ]

    def _field(self, row: Json, schema: Json, *, required: bool) -> Field:
        default = ""
        if "default" in schema:
            value = orjson.dumps(schema["default"]).decode()
            default = Message("default: {value}", value=value).render(self._translate)
        extension_note = f". {self._translate(operations.EXTENSION_NOTE)}"
        return Field(
            name=row["name"],
            type=format_type(schema),
            location=row.get("in", ""),
            # A mark in the list replaces the note of the document.
            description=row.get("description", "").removesuffix(extension_note),
            default=default,
            is_required=required,
            is_extension=row.get("x-extension", False),
        )

    def _responses(self, operation: Json) -> list[ResponseRow]:
        return [
            ResponseRow(status, resolve(self._document, response)["description"].split("\n"))
            for status, response in operation["responses"].items()
        ]

    def _response_example(self, operation: Json) -> str:
        """Return the example of a successful response as JSON, or an empty string."""
        for status, response in operation["responses"].items():
            content = resolve(self._document, response).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            if status.startswith("2") and examples:
                return _format_json(resolve(self._document, next(iter(examples.values())))["value"])
        return ""


def format_type(schema: Json) -> str:
    """Return a short form of a schema: integer, string | null, asc | desc, array of integer."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(format_type(entry) for entry in schema["anyOf"]))
    type_name = schema.get("type", "any")
    if type_name == "array":
        return f"array of {format_type(schema.get('items', {}))}"
    return " | ".join(type_name) if isinstance(type_name, list) else str(type_name)


def _merge_methods(by_method: Json) -> Iterator[tuple[list[str], Json]]:
    """Yield the operations of a path; methods with the same summary are aliases of one operation, the last one."""
    by_summary: dict[str, tuple[list[str], Json]] = {}
    for method in METHODS:
        if method in by_method:
            summary = by_method[method]["summary"]
            methods, _ = by_summary.get(summary, ([], {}))
            by_summary[summary] = ([*methods, method], by_method[method])
    yield from by_summary.values()


def _make_body_example(body: Json) -> BodyExample | None:
    if not body:
        return None
    text = _format_json(body.get("example", {}))
    return BodyExample(text, min(MAX_TEXTAREA_ROWS, text.count("\n") + 2))


def _format_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _render_code(text: str) -> Markup:
    """Escape a text and mark up the `code` in it."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False)))  # noqa: S704


_ENVIRONMENT: Final = make_environment(TEMPLATES)
_ENVIRONMENT.filters["code"] = _render_code


def resolve(document: Json, node: Json) -> Json:
    """Return a node of the document, or the one that it refers to."""
    if "$ref" not in node:
        return node
    target: Any = document
    for key in str(node["$ref"]).removeprefix("#/").split("/"):
        target = target[key]
    resolved: Json = target
    return resolved
