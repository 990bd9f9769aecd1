"""GET /docs: the API reference for people, in their language, with forms to send requests.

The page is plain HTML made from the same description as /doc, and works without its script. Its content security
policy allows only this server's style sheet, script and icon.
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
from kalends.api.description import error_codes
from kalends.api.description.document import AUTHENTICATED, EXAMPLE_BASE, make_document
from kalends.core import errors
from kalends.core.messages import LANGUAGES, Message, Translate, choose_language, translator
from kalends.core.params import MAX_ID
from kalends.core.times import utc_now
from kalends.http import bodies
from kalends.http.request import AppState, ReadRequest, read_client_ip
from kalends.http.router import Mount
from kalends.rendering.templates import make_environment

# Parameters and body fields in readable form: flat names, short types, limits.

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """An operation parameter or a body field. A body field's location is empty."""

    name: str
    type: str
    location: str
    description: str
    limits: str
    default: str
    is_required: bool
    is_extension: bool


@dataclass(frozen=True, slots=True)
class SchemaField:
    """An object field named by its path, such as `operations[].method`."""

    name: str
    schema: Json
    is_required: bool


def flatten_fields(schema: Json, prefix: str = "") -> Iterator[SchemaField]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        yield SchemaField(f"{prefix}{name}", field, name in required)
        inner = field.get("items", {}) if field.get("type") == "array" else field
        mark = "[]" if inner is not field else ""
        yield from flatten_fields(inner, f"{prefix}{name}{mark}.")


def format_type(schema: Json) -> str:
    """Return a schema's short form: integer, string | null, asc | desc, array of integer."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(format_type(entry) for entry in schema["anyOf"]))
    type_name = schema.get("type", "any")
    if isinstance(type_name, list):
        return " | ".join(format_type({**schema, "type": name}) for name in type_name)
    return f"array of {format_type(schema.get('items', {}))}" if type_name == "array" else str(type_name)


def format_limits(schema: Json, translate: Translate) -> str:
    """Return the limits on a number, a string's length or a list's size; empty if there are none."""
    # A minimum length or size of 0 is not a limit.
    length = _format_range(schema.get("minLength") or None, schema.get("maxLength"))
    size = _format_range(schema.get("minItems") or None, schema.get("maxItems"))
    parts = [
        _format_range(schema.get("minimum"), schema.get("maximum")),
        Message("{range} characters", range=length).render(translate) if "maxLength" in schema else "",
        Message("{range} entries", range=size).render(translate) if "maxItems" in schema else "",
    ]
    return ", ".join(filter(None, parts))


def _format_range(minimum: float | None, maximum: float | None) -> str:
    if maximum is None or maximum >= MAX_ID:  # The general integer maximum is not specific to the parameter.
        return "" if minimum is None else f"≥ {_format_number(minimum)}"
    if minimum is None:
        return f"≤ {_format_number(maximum)}"
    dash = " – " if minimum < 0 else "–"
    return f"{_format_number(minimum)}{dash}{_format_number(maximum)}"


def _format_number(number: float) -> str:
    """Format with a real minus sign, which cannot be mistaken for a range dash."""
    return f"{number:.10g}".replace("-", "−")


def format_default(schema: Json) -> str:
    return orjson.dumps(schema["default"]).decode() if "default" in schema else ""


# Request examples: the body, a curl command, and JavaScript.

# Readers set these variables in their shell or script.
CURL_LOGIN: Final = '--user "$LOGIN:$PASSWORD"'
SCRIPT_LOGIN: Final = '"Authorization": `Basic ${btoa(`${login}:${password}`)}`,'


@dataclass(frozen=True, slots=True)
class RequestExample:
    method: str
    url: str
    is_authenticated: bool
    body: object = None  # the JSON body's value; None without a body
    file: str = ""  # the form's file field; its other fields are in `body`

    @property
    def body_text(self) -> str:
        return "" if self.body is None or self.file else format_json(self.body)

    @property
    def curl(self) -> str:
        parts = ["curl", *([CURL_LOGIN] if self.is_authenticated else [])]
        if self.file:
            pairs = [_quote(f"{name}={value}") for name, value in self._pairs()]
            parts += [f"--form {self.file}=@image.jpg", *[f"--form {pair}" for pair in pairs]]
        elif self.body is not None:
            parts.append(f"--json {_quote(self.body_text)}")
        # curl infers GET, and POST with a body.
        if self.method != ("GET" if self.body is None else "POST"):
            parts.insert(1, f"--request {self.method}")
        return " \\\n  ".join([" ".join([*parts[:2], _quote(self.url)]), *parts[2:]])

    @property
    def javascript(self) -> str:
        headers = [SCRIPT_LOGIN] if self.is_authenticated else []
        options = [f'method: "{self.method}",'] if self.method != "GET" else []
        before: list[str] = []
        if self.file:
            before = ["const form = new FormData();", f'form.append("{self.file}", fileInput.files[0]);']
            before += [f"form.append({', '.join(map(format_json, pair))});" for pair in self._pairs()]
        elif self.body is not None:
            headers.append('"Content-Type": "application/json",')
        if headers:
            options.append("headers: {\n" + "\n".join(f"    {line}" for line in headers) + "\n  },")
        if self.file:
            options.append("body: form,")
        elif self.body is not None:
            options.append(f"body: JSON.stringify({format_json(self.body).replace(chr(10), chr(10) + '  ')}),")
        arguments = f'"{self.url}"'
        if options:
            arguments += ", {\n" + "\n".join(f"  {line}" for line in options) + "\n}"
        return "\n".join(
            [*before, f"const response = await fetch({arguments});", "const result = await response.json();"]
        )

    def _pairs(self) -> list[tuple[str, Any]]:
        return list(self.body.items()) if isinstance(self.body, dict) else []  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]


def format_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _quote(text: str) -> str:
    if re.fullmatch(r"[\w.:/=@-]+", text, re.ASCII):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


STATIC: Final = Path(__file__).resolve().parent / "static"
TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
FILES: Final = {"reference.css": "text/css", "reference.js": "text/javascript", "icon.svg": "image/svg+xml"}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
METHODS: Final = ("get", "post", "put", "patch", "delete")
# Headers that the form offers. Browsers set the others, or the form has no use for them.
FORM_HEADERS: Final = ("If-Match", "If-None-Match", "Idempotency-Key")
MAX_TEXTAREA_ROWS: Final = 14
BY_SLUG: Final = "/by-slug/{slug}"


@dataclass(frozen=True, slots=True)
class ResponseRow:
    status: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation on a path. `methods` lists aliases; `note` mentions the operation's other path, if any."""

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
        return [field for field in self.parameters if field.location != "header" or field.name in FORM_HEADERS]

    @property
    def editor_text(self) -> str:
        return self.request.body_text or "{}"

    @property
    def editor_rows(self) -> int:
        return min(MAX_TEXTAREA_ROWS, self.editor_text.count("\n") + 2)


@dataclass(frozen=True, slots=True)
class Namespace:
    prefix: str
    title: str
    paragraphs: list[str]


@dataclass(frozen=True, slots=True)
class Group:
    """A section's operations in one namespace."""

    namespace: Namespace
    operations: list[OperationView]


@dataclass(slots=True)
class Section:
    """All operations on one kind of record."""

    name: str
    title: str
    groups: list[Group]


async def show(state: AppState, request: Request, host: str, mounts: tuple[Mount, ...]) -> Response:
    """Respond to /docs and the files below it, in the reader's or the site's language."""
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
    return show_page(language, mounts, base_url)


def show_file(name: str) -> Response:
    if name not in FILES:
        raise errors.no_route()
    headers = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": "default-src 'none'"}
    return Response((STATIC / name).read_bytes(), 200, headers, media_type=FILES[name])


def show_page(language: str, mounts: tuple[Mount, ...], base_url: str) -> Response:
    """Respond with the page; `mounts` holds the two interfaces, and examples use the base URL."""
    headers = {
        "Content-Language": language,
        "Vary": "Accept-Language",
        "Cache-Control": "public, max-age=60",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
    }
    page = make_page(language, mounts).replace(EXAMPLE_BASE, escape(base_url))
    return Response(page, 200, headers, media_type="text/html")


@lru_cache(maxsize=16)
def make_page(language: str, mounts: tuple[Mount, ...]) -> str:
    translate = translator(language)
    builders = [
        _NamespaceBuilder(orjson.loads(make_document(mount.interface, language, 12)), number, mount.prefix, translate)
        for number, mount in enumerate(mounts)
    ]
    return _ENVIRONMENT.get_template("reference.html").render(
        _=translate,
        language=language,
        languages=LANGUAGES,
        version=__version__,
        example_base=EXAMPLE_BASE,
        namespaces=_without_repetitions([builder.namespace for builder in builders]),
        sections=_merge_sections(builders),
    )


def _without_repetitions(namespaces: list[Namespace]) -> list[Namespace]:
    seen: set[str] = set()
    rows: list[Namespace] = []
    for namespace in namespaces:
        rows.append(replace(namespace, paragraphs=[text for text in namespace.paragraphs if text not in seen]))
        seen.update(namespace.paragraphs)
    return rows


def _merge_sections(builders: "list[_NamespaceBuilder]") -> list[Section]:
    """Return one section per kind with the operations from all namespaces; the API itself comes last."""
    sections: dict[str, Section] = {}
    for builder in builders:
        for name, title, views in builder.tags():
            section = sections.setdefault(name, Section(name, title, []))
            section.groups.append(Group(builder.namespace, views))
    return sorted(sections.values(), key=lambda section: section.name == "interface")


class _NamespaceBuilder:
    """Builds the view of an OpenAPI document; `number` makes the namespace's anchors unique."""

    def __init__(self, document: Json, number: int, prefix: str, translate: Translate) -> None:
        self._document = document
        self._number = number
        self._translate = translate
        info = document["info"]
        self.namespace = Namespace(prefix, info["title"], info["description"].split("\n\n"))

    def tags(self) -> Iterator[tuple[str, str, list[OperationView]]]:
        views = [(operation["tags"], view) for operation, view in self._operations()]
        for tag in self._document["tags"]:
            yield tag["name"], tag["description"], [view for names, view in views if tag["name"] in names]

    def _operations(self) -> Iterator[tuple[Json, OperationView]]:
        for path, by_method in self._document["paths"].items():
            if path.endswith(BY_SLUG):
                continue  # The by-ID operation has a note about this path.
            for methods, operation in _merge_methods(by_method):
                yield operation, self._operation(path, methods, operation)

    def _operation(self, path: str, methods: list[str], operation: Json) -> OperationView:
        names = " ".join(row.get("name", "") for row in operation["parameters"])
        parameters = [resolve(self._document, row) for row in operation["parameters"]]
        content = operation.get("requestBody", {}).get("content", {})
        body = content.get("application/json") or content.get(bodies.MULTIPART) or {}
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
            response_example="" if (answer := self._find_answer(operation)) is None else format_json(answer),
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
            file=bodies.FIELD if is_upload else "",
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
        extension_note = f". {self._translate(error_codes.EXTENSION_NOTE)}"
        return Field(
            name=row["name"],
            type=format_type(schema),
            location=row.get("in", ""),
            # The page shows a mark instead of this note.
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

    def _find_answer(self, operation: Json) -> Any:
        for status, response in operation["responses"].items():
            content = resolve(self._document, response).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            if status.startswith("2") and examples:
                return resolve(self._document, next(iter(examples.values())))["value"]
        return None


def _merge_methods(by_method: Json) -> Iterator[tuple[list[str], Json]]:
    """Yield the operations on a path; methods with the same summary are aliases of the last one."""
    by_summary: dict[str, tuple[list[str], Json]] = {}
    for method in METHODS:
        if method in by_method:
            summary = by_method[method]["summary"]
            methods, _ = by_summary.get(summary, ([], {}))
            by_summary[summary] = ([*methods, method], by_method[method])
    yield from by_summary.values()


def _render_code(text: str) -> Markup:
    """Escape text and mark up its `code` parts."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False)))  # noqa: S704


_ENVIRONMENT: Final = make_environment(TEMPLATES)
_ENVIRONMENT.filters["code"] = _render_code


def resolve(document: Json, node: Json) -> Json:
    """Return a document node, resolved if it is a reference."""
    if "$ref" not in node:
        return node
    target: Any = document
    for key in str(node["$ref"]).removeprefix("#/").split("/"):
        target = target[key]
    resolved: Json = target
    return resolved
