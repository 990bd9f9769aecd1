"""GET / and OPTIONS: the index of routes and their parameters, generated from the route table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kalends.calendar.kinds.kind import PAGING
from kalends.core.messages import Translate
from kalends.http.router import Endpoint, Interface, Route


@dataclass(frozen=True, slots=True)
class RootSite:
    name: str
    base_url: str
    timezone: str
    offset: timedelta


def describe_root(
    site: RootSite, root_url: str, namespaces: Mapping[str, Interface], defaults: dict[str, Any], translate: Translate
) -> dict[str, Any]:
    hours = site.offset.total_seconds() / 3600
    self_route = {
        "namespace": "",
        "methods": ["GET"],
        "endpoints": [{"methods": ["GET"], "args": {"context": {"default": "view", "required": False}}}],
        "_links": {"self": [{"href": f"{root_url}/"}]},
    }
    routes: dict[str, Any] = {"/": self_route}
    for namespace, interface in namespaces.items():
        routes |= describe_index(interface, f"{root_url}/{namespace}", namespace, defaults, translate)["routes"]
    return {
        "name": site.name,
        "description": "",
        "url": site.base_url,
        "home": site.base_url,
        "gmt_offset": int(hours) if hours.is_integer() else hours,
        "timezone_string": "" if site.timezone.startswith("UTC") and site.timezone != "UTC" else site.timezone,
        "page_for_posts": 0,
        "page_on_front": 0,
        "show_on_front": "posts",
        "namespaces": list(namespaces),
        "authentication": {"application-passwords": {"endpoints": {}}},
        "site_logo": 0,
        "site_icon": 0,
        "site_icon_url": "",
        "routes": routes,
        "_links": {"help": [{"href": f"{site.base_url}/docs"}]},
    }


def describe_index(
    interface: Interface, api_url: str, namespace: str, defaults: dict[str, Any], translate: Translate
) -> dict[str, Any]:
    """Describe all routes; `defaults` holds parameter defaults that depend on the request."""
    root = api_url.removesuffix(f"/{namespace}")
    self_route = {
        "namespace": namespace,
        "methods": ["GET"],
        "endpoints": [
            {
                "methods": ["GET"],
                "args": {
                    "namespace": {"default": namespace, "required": False},
                    "context": {"default": "view", "required": False},
                },
            }
        ],
        "_links": {"self": [{"href": api_url}]},
    }
    doc = {
        **self_route,
        "endpoints": [{"methods": ["GET"], "args": {}}],
        "_links": {"self": [{"href": f"{api_url}/doc"}]},
    }
    routes: dict[str, Any] = {f"/{namespace}": self_route}
    if interface.has_document:
        routes[f"/{namespace}/doc"] = doc
    for route in interface.routes:
        routes[f"/{namespace}{route.pattern}"] = describe_route(route, api_url, namespace, defaults, translate)
    return {"namespace": namespace, "routes": routes, "_links": {"up": [{"href": f"{root}/"}]}}


def describe_route(
    route: Route, api_url: str, namespace: str, defaults: dict[str, Any], translate: Translate
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "namespace": namespace,
        "methods": route.methods,
        "endpoints": [
            {
                "methods": list(endpoint.methods),
                "args": describe_params(endpoint, {} if endpoint.is_write else defaults, translate),
            }
            for endpoint in route.endpoints
        ],
    }
    if "(" not in route.pattern:
        described["_links"] = {"self": [{"href": f"{api_url}{route.pattern}"}]}
    return described


def describe_params(endpoint: Endpoint, defaults: dict[str, Any], translate: Translate) -> dict[str, Any]:
    """Describe an endpoint's parameters. Path parameters are required unless a field has the same name."""
    fields = {p.name for p in endpoint.params}
    described: dict[str, Any] = {}
    for p in (*endpoint.path_params, *endpoint.params):
        row: dict[str, Any] = {**p.type.schema, "description": translate(p.description)}
        in_path = p in endpoint.path_params
        row["required"] = p.required and (p.name not in fields if in_path else not endpoint.is_update)
        # Other `per_page` parameters have a fixed default.
        if p.name in defaults and (p.name != "per_page" or p in PAGING):
            row["default"] = defaults[p.name]
        elif p.has_default:
            row["default"] = p.default
        described.setdefault(p.name, row)
    return described
