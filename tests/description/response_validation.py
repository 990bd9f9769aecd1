"""Validation of every response against /doc: its status, headers, body and error code.

`checked` wraps the ASGI application, so that all requests of tests in this process are covered.
"""

from collections.abc import Awaitable, Callable
from functools import cache, wraps
from typing import Any
from urllib.parse import parse_qs

import jsonschema_rs
import orjson

from kalends.api.description import error_codes
from kalends.api.description.document import build_path, make_document
from kalends.asgi import Application
from kalends.http.router import Interface
from kalends.routes import EXTENSION, INTERFACE

TRANSPORT_HEADERS = {"content-type", "content-length", "content-encoding"}
COMMON_HEADERS = {name.lower() for name in error_codes.COMMON_HEADERS}
INTERFACES = {interface.namespace: interface for interface in (INTERFACE, EXTENSION)}
Scope = Any


class UndocumentedResponse(AssertionError):
    """A response that /doc does not describe."""


@cache
def load_document(namespace: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(make_document(INTERFACES[namespace], "en", 12))
    return document


@cache
def response_validator(namespace: str, path: str, method: str, status: str, partial: bool) -> Any:
    """Of the body of one answer; `partial` where `_fields` left keys out."""
    document = load_document(namespace)
    response = resolve_reference(document, document["paths"][path][method]["responses"][status])
    return _build_validator(namespace, response["content"]["application/json"]["schema"], partial)


def _build_validator(namespace: str, schema: dict[str, Any], partial: bool = False) -> Any:
    complete_schema = {**schema, "components": {"schemas": load_document(namespace)["components"]["schemas"]}}
    return jsonschema_rs.validator_for(_without_required(complete_schema) if partial else complete_schema)


@cache
def schema_validator(namespace: str, name: str) -> Any:
    return _build_validator(namespace, {"$ref": f"#/components/schemas/{name}"})


def resolve_reference(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    target: Any = document
    for key in node["$ref"].removeprefix("#/").split("/"):
        target = target[key]
    return target


def wrap_application(call_original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(call_original)
    async def call_checked(self: Application, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await call_original(self, scope, receive, send)
            return
        response = RecordedResponse(scope)

        async def receive_recorded() -> Any:
            message = await receive()
            response.request_body += message.get("body", b"")
            return message

        async def send_recorded(message: Any) -> None:
            response.record_message(message)
            await send(message)

        await call_original(self, scope, receive_recorded, send_recorded)
        response.check(self)

    return call_checked


class RecordedResponse:
    """What came back for one request."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.request_body = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    def record_message(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
        self.body += message.get("body", b"")

    def check(self, app: Application) -> None:
        for mount in app._config.mounts:
            path = self.scope["path"]
            path_below = path[len(mount.prefix) :]
            if path[: len(mount.prefix)].lower() == mount.prefix.lower() and path_below[:1] in ("", "/"):
                if mount.interface.has_document:
                    self._check(mount.interface, path_below.removesuffix("/"))
                return

    def _check(self, interface: Interface, path_below: str) -> None:
        namespace = interface.namespace
        self._check_error_language(namespace)
        route = interface.router.find(path_below)
        if path_below in ("", "/doc"):
            path = path_below or "/"
        elif route is None:
            self._expect(404, "rest_no_route")
            return
        else:
            path = build_path(route[0])
        operations = load_document(namespace)["paths"][path]
        method = self._method()
        if method == "options":
            if self.status == 200:
                self._validate(schema_validator(namespace, "Route"), orjson.loads(self.body))
            return
        if method not in operations:
            self._expect(405, "rest_method_not_allowed", 400, "rest_invalid_param")
            return
        self._check_response(namespace, path, method, operations[method])

    def _check_response(self, namespace: str, path: str, method: str, operation: dict[str, Any]) -> None:
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return  # docs/live-lists.md describes the messages.
        status, enveloped = str(self.status), self._envelope()
        if enveloped is not None:
            status = str(enveloped["status"])
        if status not in operation["responses"]:
            raise self._error(f"the status is not documented; there are {', '.join(operation['responses'])}")
        response = resolve_reference(load_document(namespace), operation["responses"][status])
        known = {name.lower() for name in response.get("headers", {})} | COMMON_HEADERS | TRANSPORT_HEADERS
        if unknown := set(self.headers) - known:
            raise self._error(f"headers are not documented: {', '.join(sorted(unknown))}")
        if self.scope["method"] == "HEAD" or self.status == 304:
            if self.body:
                raise self._error("a body where none belongs")
            return
        if self.headers.get("content-encoding") == "gzip":
            return
        if "application/json" not in response["content"]:
            if self.headers["content-type"].partition(";")[0] not in response["content"]:
                raise self._error(f"a file of an undocumented type: {self.headers['content-type']}")
            return
        body = orjson.loads(self.body)
        partial = b"_fields" in self.scope["query_string"] or b"_fields" in self.request_body
        self._validate(
            response_validator(namespace, path, method, status, partial), enveloped["body"] if enveloped else body
        )

    def _envelope(self) -> dict[str, Any] | None:
        if b"_envelope" not in self.scope["query_string"] or self.status != 200 or not self.body:
            return None
        body: dict[str, Any] = orjson.loads(self.body)
        return body if set(body) == {"body", "status", "headers"} else None

    def _check_error_language(self, namespace: str) -> None:
        if self.status >= 400 and "content-language" not in self.headers:
            raise self._error("a refusal without Content-Language")

    def _method(self) -> str:
        """The method that counts: a POST can stand for another."""
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in self.scope["headers"]}
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        override = query.get("_method", [""])[-1] or headers.get("x-http-method-override", "")
        method = self.scope["method"]
        if method == "POST" and override.upper() in ("PUT", "PATCH", "DELETE"):
            method = override
        return "get" if method == "HEAD" else method.lower()

    def _expect(self, *pairs: Any) -> None:
        body = orjson.loads(self.body) if self.body else {"code": None}
        status, enveloped = self.status, self._envelope()
        if enveloped is not None:
            status, body = enveloped["status"], enveloped["body"]
        allowed = list(zip(pairs[::2], pairs[1::2], strict=True))
        early = status in (404, 413, 429, 503) or self.scope["method"] == "HEAD"
        if (status, body["code"]) not in allowed and not early:
            raise self._error(f"not one of {allowed}")

    def _validate(self, schema: Any, body: Any) -> None:
        error = next(iter(schema.iter_errors(body)), None)
        if error is not None:
            where = "/".join(map(str, error.instance_path))
            raise self._error(f"outside its schema at {where or 'the top'}: {error.message[:500]}")

    def _error(self, problem: str) -> UndocumentedResponse:
        query = self.scope["query_string"].decode("latin-1")
        request_line = f"{self.scope['method']} {self.scope['path']}?{query}"
        return UndocumentedResponse(
            f"{request_line} -> {self.status}: {problem}\n{self.body[:1500].decode(errors='replace')}"
        )


def _without_required(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_required(v) for k, v in value.items() if not (k == "required" and isinstance(v, list))}
    if isinstance(value, list):
        return [_without_required(entry) for entry in value]
    return value
