"""GET / and OPTIONS: the interface describes itself, from the same rows that read its parameters."""

from typing import Any

from kalends.api.catalog import Endpoint, Interface, Route
from kalends.core.messages import Translate


def describe_index(
    interface: Interface, ns: str, namespace: str, defaults: dict[str, Any], say: Translate
) -> dict[str, Any]:
    """`defaults` are those computed at request time, by parameter; `say` puts descriptions into a language."""
    root = ns.removesuffix(f"/{namespace}")
    own = {
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
        "_links": {"self": [{"href": ns}]},
    }
    doc = {
        **own,
        "endpoints": [{"methods": ["GET"], "args": {}}],
        "_links": {"self": [{"href": f"{ns}/doc"}]},
    }
    routes: dict[str, Any] = {f"/{namespace}": own, f"/{namespace}/doc": doc}
    for route in interface.routes:
        routes[f"/{namespace}{route.pattern}"] = describe_route(route, ns, namespace, defaults, say)
    return {"namespace": namespace, "routes": routes, "_links": {"up": [{"href": f"{root}/"}]}}


def describe_route(route: Route, ns: str, namespace: str, defaults: dict[str, Any], say: Translate) -> dict[str, Any]:
    described: dict[str, Any] = {
        "namespace": namespace,
        "methods": route.methods,
        "endpoints": [
            {
                "methods": list(endpoint.methods),
                "args": describe_params(endpoint, {} if endpoint.writes else defaults, say),
            }
            for endpoint in route.endpoints
        ],
    }
    if "(" not in route.pattern:
        described["_links"] = {"self": [{"href": f"{ns}{route.pattern}"}]}
    return described


def describe_params(endpoint: Endpoint, defaults: dict[str, Any], say: Translate) -> dict[str, Any]:
    """On update no field is required; what stands in the path is, unless a field has the same name."""
    fields = {p.name for p in endpoint.params}
    described: dict[str, Any] = {}
    for p in (*endpoint.path_params, *endpoint.params):
        row: dict[str, Any] = {**p.type.schema, "description": say(p.description)}
        in_path = p in endpoint.path_params
        row["required"] = p.required and (p.name not in fields if in_path else not endpoint.updates)
        if p.name in defaults:
            row["default"] = defaults[p.name]
        elif p.has_default:
            row["default"] = p.default
        described.setdefault(p.name, row)
    return described
