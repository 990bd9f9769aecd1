"""GET /doc: an OpenAPI document made from the routes."""

import re
from typing import Any

from kalends import __version__
from kalends.core.params import Param
from kalends.web.routes import Endpoint, Interface, Route

ERROR = {"$ref": "#/components/schemas/Error"}


def describe_interface(interface: Interface, ns: str) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Calendar events",
            "version": __version__,
            "description": "Events, venues, organizers, event categories and event tags.",
        },
        "servers": [{"url": ns}],
        "paths": {_path(route): _describe_path(route) for route in interface.routes},
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["code", "message", "data"],
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "data": {"type": "object", "properties": {"status": {"type": "integer"}}},
                    },
                }
            },
            "securitySchemes": {"applicationPassword": {"type": "http", "scheme": "basic"}},
        },
    }


def _path(route: Route) -> str:
    return re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.pattern)


def _describe_path(route: Route) -> dict[str, Any]:
    return {
        method.lower(): _describe_operation(endpoint, method)
        for endpoint in route.endpoints
        for method in endpoint.methods
    }


def _describe_operation(endpoint: Endpoint, method: str) -> dict[str, Any]:
    in_path = [_describe_param(p, "path") for p in endpoint.path_params]
    described: dict[str, Any] = {
        "tags": [endpoint.kind.name if endpoint.kind else "changes"],
        "parameters": in_path,
        "responses": {
            "201" if endpoint.methods == ("POST",) else "200": {"description": "Done."},
            "default": {"description": "Refused.", "content": {"application/json": {"schema": ERROR}}},
        },
    }
    if method in ("POST", "PUT", "PATCH"):
        schema = {
            "type": "object",
            "properties": {p.name: {**p.type.schema, "description": p.description} for p in endpoint.params},
            "required": [p.name for p in endpoint.params if p.required and not endpoint.updates],
        }
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        described["security"] = [{"applicationPassword": []}]
    else:
        described["parameters"] = [*in_path, *[_describe_param(p, "query") for p in endpoint.params]]
    return described


def _describe_param(p: Param, where: str) -> dict[str, Any]:
    return {
        "name": p.name,
        "in": where,
        "required": where == "path",
        "description": p.description,
        "schema": dict(p.type.schema),
    }
