"""GET /docs: the reference for people, in their language, with requests to try.

Plain HTML made from the same description as /doc. Style and script are files of ours; nothing comes from
another host, and the policy of the page allows nothing else.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends import __version__
from kalends.api.description.document import make_document
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.messages import Message
from kalends.http.context import AppState, read_client_ip
from kalends.http.language import LANGUAGES, choose_language, translator

STATIC: Final = Path(__file__).resolve().parent / "static"
FILES: Final = {"reference.css": "text/css", "reference.js": "text/javascript", "icon.svg": "image/svg+xml"}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
Document = dict[str, Any]
DocumentedOperation = tuple[
    str, list[str], dict[str, Any]
]  # a path, the methods that mean the same on it, and what they do
METHODS: Final = ("get", "post", "put", "patch", "delete")


async def show(service: AppState, request: Request, host: str, home: str, extension: str) -> Response:
    """Respond to /docs: the reference in the language of the reader or of the site."""
    if request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(request.method, ["GET"])
    name = request.scope["path"].removeprefix("/docs").strip("/")
    if name:
        return show_file(name)
    client = read_client_ip(request, service)
    async with service.database.transaction(host, utc_now(), writing=False, anonymous=True, client_ip=client) as tx:
        site_language = tx.site.language
    language = choose_language(
        request.scope["query_string"], request.headers.get("accept-language", ""), site_language
    )
    return show_page(language, home, extension)


def show_file(name: str) -> Response:
    if name not in FILES:
        raise errors.no_route()
    headers = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": "default-src 'none'"}
    return Response((STATIC / name).read_bytes(), 200, headers, media_type=FILES[name])


def show_page(language: str, api_prefix: str, extension_prefix: str) -> Response:
    """`home` and `ours` are the paths of the interface and of what this server adds."""
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
    return "".join(ReferencePage(language, api_prefix, extension_prefix).parts())


class ReferencePage:
    def __init__(self, language: str, api_prefix: str, extension_prefix: str) -> None:
        self._translate = translator(language)
        self._language = language
        self._sections = [
            (api_prefix, orjson.loads(make_document(INTERFACE.namespace, language, 12))),
            (extension_prefix, orjson.loads(make_document(EXTENSION.namespace, language, 12))),
        ]
        self._api_prefix = api_prefix

    def word(self, text: str) -> str:
        """A text of the page itself, said and safe in HTML."""
        return escape(self._translate(text))

    def parts(self) -> Iterator[str]:
        yield f'<!doctype html><html lang="{self._language}"><head><meta charset="utf-8">'
        yield f"<title>{self.word('Reference')} · Kalends</title>"
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<meta name="color-scheme" content="light dark"><link rel="stylesheet" href="/docs/reference.css">'
        yield '<link rel="icon" href="/docs/icon.svg"><script src="/docs/reference.js" defer></script></head>'
        yield f'<body data-failed="{self.word("The server could not be reached.")}">'
        yield f'<a class="skip" href="#content">{self.word("Skip to the content")}</a>'
        yield from self._head()
        yield '<div class="frame">'
        yield from self._contents()
        yield '<main id="content">'
        for number, (prefix, document) in enumerate(self._sections):
            yield from self._interface(number, prefix, document)
        yield "</main></div></body></html>"

    def _head(self) -> Iterator[str]:
        options = "".join(
            f'<option value="{tag}"{" selected" if tag == self._language else ""}>{name}</option>'
            for tag, name in LANGUAGES.items()
        )
        label = self.word("Language")
        yield '<header><a class="brand" href="/docs">Kalends</a>'
        yield f'<span class="version">{__version__}</span><span class="space"></span>'
        yield '<form class="language" method="get" action="/docs"><label>'
        yield f'<span>{label}</span> <select name="lang">{options}'
        yield "</select></label><noscript><button>OK</button></noscript></form></header>"

    def _contents(self) -> Iterator[str]:
        yield f'<nav aria-label="{self.word("Contents")}"><details class="contents" open>'
        yield f"<summary>{self.word('Contents')}</summary>"
        label = self.word("Find a route or a parameter")
        yield f'<input type="search" id="find" placeholder="{label}" aria-label="{label}">'
        for number, (_, document) in enumerate(self._sections):
            for tag in document["tags"]:
                rows = [row for row in _iter_operations(document) if tag["name"] in row[2]["tags"]]
                yield f"<h2>{escape(tag['description'])}</h2><ul>"
                for path, methods, operation in rows:
                    summary = escape(operation["summary"])
                    names = " ".join(row.get("name", "") for row in operation["parameters"])
                    search_text = escape(f"{path} {operation['summary']} {names}".lower())
                    yield f'<li data-find="{search_text}"><a href="#{_anchor(number, operation)}">'
                    yield f"{_badge(methods[-1])} <span>{summary}<small>{escape(path)}</small></span></a></li>"
                yield "</ul>"
        yield "</details></nav>"

    def _interface(self, number: int, prefix: str, document: dict[str, Any]) -> Iterator[str]:
        info = document["info"]
        yield f'<section class="intro"><h1>{escape(info["title"])}</h1>'
        yield from (f"<p>{_render_code(text)}</p>" for text in info["description"].split("\n\n"))
        label = self.word("The document for programs (OpenAPI)")
        yield f'<p><code class="base">{escape(prefix)}</code> · <a href="{escape(prefix)}/doc">{label}</a></p>'
        if number == 0:
            yield from self._sign_in()
        yield "</section>"
        for tag in document["tags"]:
            yield f'<h2 class="tag">{escape(tag["description"])}</h2>'
            for path, methods, operation in _iter_operations(document):
                if tag["name"] in operation["tags"]:
                    yield from self._operation(number, prefix, document, (path, methods, operation))

    def _sign_in(self) -> Iterator[str]:
        yield f'<details class="sign"><summary>{self.word("Sign in")}</summary><p>'
        yield self.word("Stays in this page until it is closed; reads of published records need none.")
        yield f'</p><label>{self.word("User name")} <input id="login" autocomplete="off"></label> '
        yield f"<label>{self.word('Application password')} "
        yield '<input id="password" type="password" autocomplete="off"></label></details>'

    def _operation(
        self, number: int, prefix: str, document: Document, documented: DocumentedOperation
    ) -> Iterator[str]:
        path, methods, operation = documented
        badges = "".join(_badge(method) for method in methods)
        extension = f' <em class="ours">{self.word("extension")}</em>' if operation.get("x-extension") else ""
        yield f'<article id="{_anchor(number, operation)}"><h3>{badges} <code>{escape(path)}</code>{extension}</h3>'
        yield f"<p>{escape(operation['summary'])}</p>"
        parameters = [resolve(document, row) for row in operation["parameters"]]
        if parameters:
            yield self._rows(
                self.word("Parameters"),
                [(row, row["schema"], row["in"], row.get("required", False)) for row in parameters],
            )
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = resolve(document, body.get("schema", {}))
        if schema:
            required = schema.get("required", [])
            fields = [
                ({"name": name, **row}, row, "", name in required) for name, row in schema["properties"].items()
            ]
            yield self._rows(self.word("Body"), fields)
        yield from self._responses(document, operation)
        yield from self._try_it(prefix, path, methods, parameters, body)
        yield "</article>"

    def _rows(self, title: str, rows: list[tuple[dict[str, Any], dict[str, Any], str, bool]]) -> str:
        lines: list[str] = []
        for row, schema, where, required in rows:
            notes = [escape(format_type(schema))]
            notes += [escape(where)] if where in ("path", "header") else []
            notes += [f"<b>{self.word('required')}</b>"] if required else []
            if "default" in schema:
                value = orjson.dumps(schema["default"]).decode()
                notes.append(escape(Message("by default {value}", value=value).render(self._translate)))
            is_extension = row.get("x-extension")
            notes += [f'<em class="ours">{self.word("extension")}</em>'] if is_extension else []
            description = row.get("description", "").removesuffix(
                f". {self._translate('Not in the interface: an extension of this server.')}"
            )
            lines.append(f"<dt><code>{escape(row['name'])}</code> <small>{' · '.join(notes)}</small></dt>")
            lines.append(f"<dd>{_render_code(description)}</dd>")
        return f"<details><summary>{title} ({len(rows)})</summary><dl>{''.join(lines)}</dl></details>"

    def _responses(self, document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
        yield f"<details><summary>{self.word('Answers')}</summary><dl>"
        example = None
        for status, response in operation["responses"].items():
            resolved = resolve(document, response)
            lines = "<br>".join(_render_code(line) for line in resolved["description"].split("\n"))
            yield f'<dt class="s{status[0]}"><code>{status}</code></dt><dd>{lines}</dd>'
            examples = resolved.get("content", {}).get("application/json", {}).get("examples", {})
            if status.startswith("2") and examples:
                example = resolve(document, next(iter(examples.values())))["value"]
        yield "</dl></details>"
        if example is not None:
            text = orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()
            yield f"<details><summary>{self.word('Example')}</summary><pre>{escape(text)}</pre></details>"

    def _try_it(
        self, prefix: str, path: str, methods: list[str], parameters: list[dict[str, Any]], body: dict[str, Any]
    ) -> Iterator[str]:
        yield f"<details><summary>{self.word('Try it')}</summary>"
        yield f'<form class="trial" data-method="{methods[-1].upper()}" data-path="{escape(prefix + path)}">'
        if methods[-1] != "get":
            yield f'<p class="warning">{self.word("This writes to the site.")}</p>'
        yield '<div class="fields">'
        for row in parameters:
            if row["in"] == "header" and row["name"] not in ("If-Match", "If-None-Match", "Idempotency-Key"):
                continue
            name, required = escape(row["name"]), " required" if row.get("required") else ""
            yield f'<label><code>{name}</code><input name="{name}" data-in="{row["in"]}"{required}></label>'
        yield "</div>"
        if body:
            text = orjson.dumps(body.get("example", {}), option=orjson.OPT_INDENT_2).decode()
            lines = min(14, text.count("\n") + 2)
            label = self.word("Body")
            yield f'<label class="body">{label}<textarea rows="{lines}" spellcheck="false">'
            yield f"{escape(text)}</textarea></label>"
        yield f'<button>{self.word("Send")}</button><output aria-live="polite"></output></form></details>'


def format_type(schema: dict[str, Any]) -> str:
    """A schema in a few letters: integer, string | null, asc | desc, array of integer."""
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


def _iter_operations(document: dict[str, Any]) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """Operations in order; methods that mean the same on one path are one."""
    for path, operations in document["paths"].items():
        by_summary: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for method in METHODS:
            if method in operations:
                methods, _ = by_summary.setdefault(operations[method]["summary"], ([], operations[method]))
                methods.append(method)
                by_summary[operations[method]["summary"]] = (methods, operations[method])
        for methods, operation in by_summary.values():
            yield path, methods, operation


def _anchor(number: int, operation: dict[str, Any]) -> str:
    return f"{operation['operationId']}{number or ''}"


def _badge(method: str) -> str:
    return f'<b class="method {method}">{method.upper()}</b>'


def _render_code(text: str) -> str:
    """Plain text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def resolve(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    target: Any = document
    for key in str(node["$ref"]).removeprefix("#/").split("/"):
        target = target[key]
    resolved: dict[str, Any] = target
    return resolved
