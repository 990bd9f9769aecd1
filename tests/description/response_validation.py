"""Holds every answer of the application against /doc: its status, headers, body and code.

`checked` wraps the ASGI application; whatever a test asks of it in this process is looked at.
"""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import jsonschema_rs
import orjson

from kalends.api.catalog import Interface
from kalends.api.description import headers
from kalends.api.description.document import build_path, make_document
from kalends.asgi import Application

OF_THE_TRANSPORT = {"content-type", "content-length", "content-encoding"}
COMMON = {name.lower() for name in headers.COMMON_HEADERS}
Scope = Any


class Undocumented(AssertionError):
    """The server said something that its description does not know."""


@cache
def document_of(namespace: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(make_document(namespace, "en", 12))
    return document


@cache
def validator(namespace: str, path: str, method: str, status: str, partial: bool) -> Any:
    """Of the body of one answer; `partial` where `_fields` left keys out."""
    document = document_of(namespace)
    response = resolved(document, document["paths"][path][method]["responses"][status])
    return _validator(namespace, response["content"]["application/json"]["schema"], partial)


def _validator(namespace: str, schema: dict[str, Any], partial: bool = False) -> Any:
    whole = {**schema, "components": {"schemas": document_of(namespace)["components"]["schemas"]}}
    return jsonschema_rs.validator_for(_without_required(whole) if partial else whole)


@cache
def validator_of(namespace: str, name: str) -> Any:
    return _validator(namespace, {"$ref": f"#/components/schemas/{name}"})


def resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = document
    for key in node["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    return found


def checked(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def call(self: Application, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await original(self, scope, receive, send)
            return
        answer = Answer(scope)

        async def hear() -> Any:
            message = await receive()
            answer.sent += message.get("body", b"")
            return message

        async def say(message: Any) -> None:
            answer.take(message)
            await send(message)

        await original(self, scope, hear, say)
        answer.check(self)

    return call


class Answer:
    """What came back for one request."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.sent = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    def take(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
        self.body += message.get("body", b"")

    def check(self, app: Application) -> None:
        for door in app._config.mounts:
            path = self.scope["path"]
            below = path[len(door.prefix) :]
            if path[: len(door.prefix)].lower() == door.prefix.lower() and below[:1] in ("", "/"):
                self._check(door.interface, below.removesuffix("/"))
                return

    def _check(self, interface: Interface, below: str) -> None:
        namespace = interface.namespace
        self._check_refusal(namespace)
        route = interface.find(below)
        if below in ("", "/doc"):
            path = below or "/"
        elif route is None:
            self._expect(404, "rest_no_route")
            return
        else:
            path = build_path(route[0])
        operations = document_of(namespace)["paths"][path]
        method = self._method()
        if method == "options":
            if self.status == 200:
                self._validate(validator_of(namespace, "Route"), orjson.loads(self.body))
            return
        if method not in operations:
            self._expect(405, "rest_method_not_allowed", 400, "rest_invalid_param")
            return
        self._check_answer(namespace, path, method, operations[method])

    def _check_answer(self, namespace: str, path: str, method: str, operation: dict[str, Any]) -> None:
        status, enveloped = str(self.status), self._envelope()
        if enveloped is not None:
            status = str(enveloped["status"])
        if status not in operation["responses"]:
            raise self._complaint(f"the status is not documented; there are {', '.join(operation['responses'])}")
        response = resolved(document_of(namespace), operation["responses"][status])
        known = {name.lower() for name in response.get("headers", {})} | COMMON | OF_THE_TRANSPORT
        if unknown := set(self.headers) - known:
            raise self._complaint(f"headers are not documented: {', '.join(sorted(unknown))}")
        if self.scope["method"] == "HEAD" or self.status == 304:
            if self.body:
                raise self._complaint("a body where none belongs")
            return
        if self.headers.get("content-encoding") == "gzip":
            return
        body = orjson.loads(self.body)
        partial = b"_fields" in self.scope["query_string"] or b"_fields" in self.sent
        self._validate(validator(namespace, path, method, status, partial), enveloped["body"] if enveloped else body)

    def _envelope(self) -> dict[str, Any] | None:
        if b"_envelope" not in self.scope["query_string"] or self.status != 200 or not self.body:
            return None
        body: dict[str, Any] = orjson.loads(self.body)
        return body if set(body) == {"body", "status", "headers"} else None

    def _check_refusal(self, namespace: str) -> None:
        if self.status >= 400 and "content-language" not in self.headers:
            raise self._complaint("a refusal without Content-Language")

    def _method(self) -> str:
        """The method that counts: a POST can stand for another."""
        given = {name.decode().lower(): value.decode("latin-1") for name, value in self.scope["headers"]}
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        asked = query.get("_method", [""])[-1] or given.get("x-http-method-override", "")
        method = self.scope["method"]
        if method == "POST" and asked.upper() in ("PUT", "PATCH", "DELETE"):
            method = asked
        return "get" if method == "HEAD" else method.lower()

    def _expect(self, *pairs: Any) -> None:
        body = orjson.loads(self.body) if self.body else {"code": None}
        allowed = list(zip(pairs[::2], pairs[1::2], strict=True))
        early = self.status in (404, 413, 429, 503) or self.scope["method"] == "HEAD"
        if (self.status, body["code"]) not in allowed and not early:
            raise self._complaint(f"not one of {allowed}")

    def _validate(self, schema: Any, body: Any) -> None:
        error = next(iter(schema.iter_errors(body)), None)
        if error is not None:
            where = "/".join(map(str, error.instance_path))
            raise self._complaint(f"outside its schema at {where or 'the top'}: {error.message[:500]}")

    def _complaint(self, what: str) -> Undocumented:
        query = self.scope["query_string"].decode("latin-1")
        asked = f"{self.scope['method']} {self.scope['path']}?{query}"
        return Undocumented(f"{asked} -> {self.status}: {what}\n{self.body[:1500].decode(errors='replace')}")


def _without_required(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_required(v) for k, v in value.items() if not (k == "required" and isinstance(v, list))}
    if isinstance(value, list):
        return [_without_required(entry) for entry in value]
    return value
