"""GET /docs: the API reference for people, in their language, with forms to send requests.

The page is plain HTML made from the same description as /doc, and works without its script. Its policy allows
only the style sheet, the script and the icon of this server.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

import orjson
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from kalends import __version__
from kalends.api import uploads
from kalends.api.description import operations
from kalends.api.description.document import AUTHENTICATED, EXAMPLE_BASE, make_document
from kalends.api.description.fields import Field, flatten_fields, format_default, format_limits, format_type
from kalends.api.description.snippets import RequestExample, format_json
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.messages import Message, Translate
from kalends.http.context import AppState, read_client_ip
from kalends.http.language import LANGUAGES, choose_language, translator
from kalends.http.read_sources import ReadRequest
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
BY_SLUG: Final = "/by-slug/{slug}"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResponseRow:
    status: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation on a path; `methods` are those that do the same. `note` mentions its other path, if any."""

    anchor: str
    prefix: str
    path: str
    methods: list[str]
    summary: str
    note: str
    search_text: str
    is_extension: bool
    parameters: list[Field]
    body_fields: list[Field] | None
    request: RequestExample
    has_json_body: bool
    responses: list[ResponseRow]
    response_example: str

    @property
    def inputs(self) -> list[Field]:
        """Return the parameters that the form asks for."""
        return [field for field in self.parameters if field.location != "header" or field.name in FORM_HEADERS]

    @property
    def editor_text(self) -> str:
        """Return the initial text of the editor for the body."""
        return self.request.body_text or "{}"

    @property
    def editor_rows(self) -> int:
        return min(MAX_TEXTAREA_ROWS, self.editor_text.count("\n") + 2)


@dataclass(frozen=True, slots=True)
class Namespace:
    """One of the two interfaces."""

    prefix: str
    title: str
    paragraphs: list[str]


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of a section that belong to one namespace."""

    namespace: Namespace
    operations: list[OperationView]


@dataclass(slots=True)
class Section:
    """The operations on one kind of records."""

    name: str
    title: str
    groups: list[Group]


async def show(state: AppState, request: Request, host: str, api_prefix: str, extension_prefix: str) -> Response:
    """Respond to /docs and the files below it, in the language of the reader or of the site."""
    if request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(request.method, ["GET"])
    name = request.scope["path"].removeprefix("/docs").strip("/")
    if name:
        return show_file(name)
    client_ip = read_client_ip(request, state)
    async with state.sources.transaction(ReadRequest(host, utc_now(), client_ip)) as tx:
        site_language, site_url = tx.site.language, tx.site.base_url
    language = choose_language(
        request.scope["query_string"], request.headers.get("accept-language", ""), site_language
    )
    requested = f"{request.scope['scheme']}://{request.headers.get('host') or 'localhost'}"
    base_url = (site_url or state.base_url or requested).rstrip("/")
    return show_page(language, api_prefix, extension_prefix, base_url)


def show_file(name: str) -> Response:
    if name not in FILES:
        raise errors.no_route()
    headers = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": "default-src 'none'"}
    return Response((STATIC / name).read_bytes(), 200, headers, media_type=FILES[name])


def show_page(language: str, api_prefix: str, extension_prefix: str, base_url: str) -> Response:
    """Respond with the page; the prefixes are the paths of the two interfaces, the base URL that of examples."""
    headers = {
        "Content-Language": language,
        "Vary": "Accept-Language",
        "Cache-Control": "public, max-age=60",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
    }
    page = make_page(language, api_prefix, extension_prefix).replace(EXAMPLE_BASE, escape(base_url))
    return Response(page, 200, headers, media_type="text/html")


@lru_cache(maxsize=16)
def make_page(language: str, api_prefix: str, extension_prefix: str) -> str:
    """Render the page; the few variants are cached."""
    translate = translator(language)
    prefixes = {INTERFACE.namespace: api_prefix, EXTENSION.namespace: extension_prefix}
    builders = [
        _NamespaceBuilder(orjson.loads(make_document(namespace, language, 12)), number, prefix, translate)
        for number, (namespace, prefix) in enumerate(prefixes.items())
    ]
    return _ENVIRONMENT.get_template("reference.html").render(
        _=translate,
        language=language,
        languages=LANGUAGES,
        version=__version__,
        namespaces=_without_repetitions([builder.namespace for builder in builders]),
        sections=_merge_sections(builders),
    )


def _without_repetitions(namespaces: list[Namespace]) -> list[Namespace]:
    """Leave out the paragraphs that an earlier namespace has, too."""
    seen: set[str] = set()
    rows: list[Namespace] = []
    for namespace in namespaces:
        rows.append(replace(namespace, paragraphs=[text for text in namespace.paragraphs if text not in seen]))
        seen.update(namespace.paragraphs)
    return rows


def _merge_sections(builders: "list[_NamespaceBuilder]") -> list[Section]:
    """Return one section per kind with the operations of all namespaces; the API itself comes last."""
    sections: dict[str, Section] = {}
    for builder in builders:
        for name, title, views in builder.tags():
            section = sections.setdefault(name, Section(name, title, []))
            section.groups.append(Group(builder.namespace, views))
    return sorted(sections.values(), key=lambda section: section.name == "interface")


class _NamespaceBuilder:
    """Builds the view of an OpenAPI document; `number` keeps the anchors of the namespaces apart."""

    def __init__(self, document: Json, number: int, prefix: str, translate: Translate) -> None:
        self._document = document
        self._number = number
        self._translate = translate
        info = document["info"]
        self.namespace = Namespace(prefix, info["title"], info["description"].split("\n\n"))

    def tags(self) -> Iterator[tuple[str, str, list[OperationView]]]:
        """Yield the name and the title of each tag, and its operations."""
        views = [(operation["tags"], view) for operation, view in self._operations()]
        for tag in self._document["tags"]:
            yield tag["name"], tag["description"], [view for names, view in views if tag["name"] in names]

    def _operations(self) -> Iterator[tuple[Json, OperationView]]:
        for path, by_method in self._document["paths"].items():
            if path.endswith(BY_SLUG):
                continue  # A note of the operation by ID mentions this path.
            for methods, operation in _merge_methods(by_method):
                yield operation, self._operation(path, methods, operation)

    def _operation(self, path: str, methods: list[str], operation: Json) -> OperationView:
        names = " ".join(row.get("name", "") for row in operation["parameters"])
        parameters = [resolve(self._document, row) for row in operation["parameters"]]
        content = operation.get("requestBody", {}).get("content", {})
        body = content.get("application/json") or content.get(uploads.FORM) or {}
        slug_path = path.removesuffix("/{id}") + BY_SLUG
        note = Message("The path can contain the slug instead of the ID: `{path}`.", path=slug_path)
        has_slug_path = path.endswith("/{id}") and slug_path in self._document["paths"]
        return OperationView(
            anchor=f"{operation['operationId']}{self._number or ''}",
            prefix=self.namespace.prefix,
            path=path,
            methods=methods,
            summary=operation["summary"],
            note=note.render(self._translate) if has_slug_path else "",
            search_text=f"{path} {slug_path if has_slug_path else ''} {operation['summary']} {names}".lower(),
            is_extension=operation.get("x-extension", False),
            parameters=[self._field(row, row["schema"], required=row.get("required", False)) for row in parameters],
            body_fields=self._body_fields(resolve(self._document, body.get("schema", {}))),
            request=self._request(path, methods[-1], operation, body),
            has_json_body="application/json" in content,
            responses=self._responses(operation),
            response_example=self._response_example(operation),
        )

    def _request(self, path: str, method: str, operation: Json, body: Json) -> RequestExample:
        answer = self._find_answer(operation) or {}
        url = f"{EXAMPLE_BASE}{self.namespace.prefix}{path}".replace("{id}", str(answer.get("id", 1))).rstrip("/")
        is_paged = any(row.get("name") == "per_page" for row in operation["parameters"])
        is_upload = bool(body) and "application/json" not in operation["requestBody"]["content"]
        return RequestExample(
            method.upper(),
            f"{url}?per_page=5" if is_paged else url,
            operation.get("security") == AUTHENTICATED,
            body=body.get("example"),
            file=uploads.FIELD if is_upload else "",
        )

    def _body_fields(self, schema: Json) -> list[Field] | None:
        if not schema:
            return None
        return [
            self._field({**field.schema, "name": field.name}, field.schema, required=field.is_required)
            for field in flatten_fields(schema)
        ]

    def _field(self, row: Json, schema: Json, *, required: bool) -> Field:
        default = format_default(schema)
        extension_note = f". {self._translate(operations.EXTENSION_NOTE)}"
        return Field(
            name=row["name"],
            type=format_type(schema),
            location=row.get("in", ""),
            # A mark in the list replaces the note of the document.
            description=row.get("description", "").removesuffix(extension_note),
            limits=format_limits(schema, self._translate),
            default=Message("default: {value}", value=default).render(self._translate) if default else "",
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
        answer = self._find_answer(operation)
        return "" if answer is None else format_json(answer)

    def _find_answer(self, operation: Json) -> Any:
        for status, response in operation["responses"].items():
            content = resolve(self._document, response).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            if status.startswith("2") and examples:
                return resolve(self._document, next(iter(examples.values())))["value"]
        return None


def _merge_methods(by_method: Json) -> Iterator[tuple[list[str], Json]]:
    """Yield the operations of a path; methods with the same summary are aliases of one operation, the last one."""
    by_summary: dict[str, tuple[list[str], Json]] = {}
    for method in METHODS:
        if method in by_method:
            summary = by_method[method]["summary"]
            methods, _ = by_summary.get(summary, ([], {}))
            by_summary[summary] = ([*methods, method], by_method[method])
    yield from by_summary.values()


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
