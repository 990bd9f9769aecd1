"""The document itself: valid, complete, with examples that are answers, the same in every language."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import validate

from kalends.api.description import document, error_codes
from kalends.api.description.error_codes import BATCH, ERROR_CODES
from kalends.api.description.schema_types import schema_name
from kalends.calendar.kinds import KINDS
from kalends.core import errors
from kalends.core.messages import LANGUAGES
from kalends.http.router import Endpoint, Interface
from kalends.routes import EXTENSION, INTERFACE
from tests.description.response_validation import resolve_reference
from tools import examples

BOTH_APIS = pytest.mark.parametrize("interface", [INTERFACE, EXTENSION], ids=lambda interface: interface.namespace)
TEXT_KEYS = {"description", "summary", "title", "message"}


def read_document(interface: Interface, language: str = "en") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document.make_document(interface, language, 12))
    return found


def iter_endpoints(interface: Interface) -> Iterator[tuple[str, str, Endpoint]]:
    for route in interface.routes:
        for endpoint in route.endpoints:
            for method in endpoint.methods:
                yield document.build_path(route), method.lower(), endpoint


@BOTH_APIS
def test_openapi_document_is_valid(interface: Interface) -> None:
    validate(read_document(interface))


@BOTH_APIS
def test_all_routes_methods_and_parameters_are_documented(interface: Interface) -> None:
    described = read_document(interface)
    assert set(described["paths"]) == {"/", "/doc", *(document.build_path(route) for route in interface.routes)}
    for path, method, endpoint in iter_endpoints(interface):
        operation = described["paths"][path][method]
        parameters = [resolve_reference(described, row) for row in operation["parameters"]]
        named = {row["name"] for row in parameters}
        for body in operation.get("requestBody", {}).get("content", {}).values():
            # A body that is a file has no fields.
            named |= set(resolve_reference(described, body.get("schema", {})).get("properties", {}))
        assert named >= {p.name for p in (*endpoint.path_params, *endpoint.params)}, (path, method)
        for p in endpoint.params:
            assert p.description
        assert operation["summary"]


@BOTH_APIS
def test_operation_ids_are_unique(interface: Interface) -> None:
    names = [
        operation["operationId"] for path in read_document(interface)["paths"].values() for operation in path.values()
    ]
    assert len(names) == len(set(names))


@BOTH_APIS
def test_all_endpoints_have_a_response_schema(interface: Interface) -> None:
    names = read_document(interface)["components"]["schemas"].keys()
    for path, _, endpoint in iter_endpoints(interface):
        assert endpoint.returns in names, path
        assert endpoint.body_schema in {"", *names}, path


def test_extensions_are_marked() -> None:
    described = read_document(INTERFACE)
    rows = {row["name"]: row for row in described["paths"]["/events"]["get"]["parameters"] if "name" in row}
    extension_names = {
        p.name for kind in KINDS if kind.name == "events" for row in kind.filters if (p := row.param).is_extension
    }
    assert extension_names == {name for name, row in rows.items() if row.get("x-extension")}
    assert {"cursor", "overlaps_from"} <= extension_names
    assert all(error_codes.EXTENSION_NOTE in rows[name]["description"] for name in extension_names)
    assert described["components"]["schemas"]["EventNew"]["properties"]["ticket_url"]["x-extension"] is True
    assert read_document(EXTENSION)["paths"]["/changes"]["get"]["x-extension"] is True


# Error codes ----------------------------------------------------------------------------------


def collect_error_codes() -> set[tuple[int | None, str]]:
    """Status and code of every ApiError that core/errors.py makes; * stands for a kind."""
    tree = ast.parse(Path(errors.__file__).read_text())
    codes: set[tuple[int | None, str]] = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "ApiError":
            continue
        status, code = call.args[0], call.args[1]
        codes.add((status.value if isinstance(status, ast.Constant) else None, _read_code(code)))
    return codes


def _read_code(code: ast.expr) -> str:
    """Return a code that is a literal, a constant of the module, or an f-string."""
    if isinstance(code, ast.Constant):
        return str(code.value)
    if isinstance(code, ast.Name):
        return str(getattr(errors, code.id))
    return re.sub(r"\{[^}]*\}", "*", ast.unparse(code)[2:-1])


def test_documented_error_codes_match_code() -> None:
    table = {(row.status, row.code) for row in ERROR_CODES if row not in BATCH} | {(None, "rest_batch_failed")}
    known = {
        (403, "event-no-longer-available"): (403, "*-no-longer-available"),
        (410, "series-is-in-trash"): (410, "*-is-in-trash"),
    }
    assert {known.get(pair, pair) for pair in table} == collect_error_codes()


def test_all_error_codes_are_documented() -> None:
    described = {
        name for interface in (INTERFACE, EXTENSION) for name in read_document(interface)["components"]["responses"]
    }
    documented = {code for name in described for code in name.split(".")[1:]}
    expected = {row.code for row in ERROR_CODES if "*" not in row.code} - {"rest_no_route"}
    assert expected <= documented
    for row in ERROR_CODES:
        pattern = re.compile(row.code.replace("*", "[a-z]+"))
        assert row.code == "rest_no_route" or any(pattern.fullmatch(code) for code in documented), row.code


def test_errors_docstring_lists_all_codes() -> None:
    text = errors.__doc__ or ""
    for row in ERROR_CODES:
        assert row.code.replace("*-", "…-").replace("-*", "-…") in text or row.code == "internal_server_error", (
            row.code
        )


# Examples -------------------------------------------------------------------------------------


@BOTH_APIS
def test_response_examples_match_schemas(interface: Interface) -> None:
    described = read_document(interface)
    seen = 0
    for path in described["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                content = resolve_reference(described, response).get("content", {}).get("application/json", {})
                schema = {**content.get("schema", {}), "components": described["components"]}
                for example in content.get("examples", {}).values():
                    jsonschema_rs.validate(schema, resolve_reference(described, example)["value"])
                    seen += 1
    assert seen > 50


def test_request_examples_match_schemas() -> None:
    described = read_document(INTERFACE)
    for kind in KINDS:
        schema = {
            "$ref": f"#/components/schemas/{schema_name(kind)}New",
            "components": described["components"],
        }
        jsonschema_rs.validate(schema, examples.REQUESTS[kind.name])


def test_examples_match_current_responses() -> None:
    assert json.loads(document.EXAMPLES.read_text()) == json.loads(examples.render()), "run `just examples`"


# Languages ------------------------------------------------------------------------------------


def strip_texts(value: Any) -> Any:
    """Everything but words: descriptions, titles, and the messages inside examples of refusals."""
    if isinstance(value, dict):
        if set(value) == {"code", "message", "data"} and isinstance(value["message"], str):
            return {"code": value["code"], "data": _data_shape(value["data"])}
        return {
            key: strip_texts(inner)
            for key, inner in value.items()
            if not (key in TEXT_KEYS and isinstance(inner, str))
        }
    return [strip_texts(inner) for inner in value] if isinstance(value, list) else value


def _data_shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _data_shape(inner) for key, inner in value.items()}
    return value if isinstance(value, int) else type(value).__name__


@BOTH_APIS
def test_documents_of_all_languages_have_same_structure(interface: Interface) -> None:
    structures = {language: strip_texts(read_document(interface, language)) for language in LANGUAGES}
    assert len(structures) == 8
    assert all(structure == structures["en"] for structure in structures.values())
    full = {json.dumps(read_document(interface, language)) for language in LANGUAGES}
    assert len(full) == 8


def test_documented_headers_are_used() -> None:
    documents = json.dumps([read_document(INTERFACE), read_document(EXTENSION)])
    for name in error_codes.HEADERS:
        assert f"#/components/headers/{name}" in documents or name in error_codes.COMMON_HEADERS, name
