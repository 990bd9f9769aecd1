"""Generates docs/reference/*.md from the API, and docs/compatibility.md; `--check` only compares."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from kalends.api.description.document import make_document
from kalends.api.description.reference import flatten_fields, format_default, format_limits, format_type, resolve
from kalends.routes import EXTENSION, INTERFACE
from tools import differences

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "`just reference` generates this page from the code."
METHODS = ("get", "post", "put", "patch", "delete")


def render() -> dict[str, str]:
    """Return the pages by file name."""
    pages: dict[str, str] = {}
    links: list[str] = []
    for interface in (INTERFACE, EXTENSION):
        namespace, document = interface.namespace, orjson.loads(make_document(interface, "en", 12))
        for tag in document["tags"]:
            name = tag["name"] if namespace == INTERFACE.namespace else f"{tag['name']}-extensions"
            name = "changes" if tag["name"] == "changes" else "batch" if tag["name"] == "batch" else name
            title = tag["description"] if namespace == INTERFACE.namespace else f"{tag['description']} (extensions)"
            pages[f"{name}.md"] = "\n".join(_page(title, tag["name"], namespace, document)) + "\n"
            links.append(f"| [{title}]({name}.md) | `{{api_root}}/{namespace}` |")
    first = orjson.loads(make_document(INTERFACE, "en", 12))
    pages["errors.md"] = "\n".join(_errors()) + "\n"
    pages["headers.md"] = "\n".join(_headers(first)) + "\n"
    pages["README.md"] = "\n".join(_index(first, links)) + "\n"
    return pages


def _index(document: dict[str, Any], links: list[str]) -> Iterator[str]:
    yield from ("# Reference", "", NOTE, "", document["info"]["description"], "")
    yield (
        "Every server has an interactive version of this reference at `/docs`, in eight languages, and the OpenAPI "
        "3.1 document at `/doc` of each namespace."
    )
    yield from ("", "| Page | Path prefix |", "|---|---|", *links)
    yield from ("| [Error codes](errors.md) | |", "| [Headers and common parameters](headers.md) | |")


def _page(title: str, tag: str, namespace: str, document: dict[str, Any]) -> Iterator[str]:
    yield from (f"# {title}", "", NOTE, f"Paths are below `{{api_root}}/{namespace}`.", "")
    for path, operations in document["paths"].items():
        methods_by_summary: dict[str, list[str]] = {}
        for method in METHODS:
            if method in operations and tag in operations[method]["tags"]:
                methods_by_summary.setdefault(operations[method]["summary"], []).append(method)
        for summary, methods in methods_by_summary.items():
            yield from _operation(document, path, summary, methods, operations[methods[-1]])


def _operation(
    document: dict[str, Any], path: str, summary: str, methods: list[str], operation: dict[str, Any]
) -> Iterator[str]:
    yield from (f"## {', '.join(methods).upper()} `{path}`", "", f"{summary}.", "")
    own = [row for row in operation["parameters"] if "$ref" not in row]
    common = [row["$ref"].rpartition("/")[2] for row in operation["parameters"] if "$ref" in row]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = resolve(document, body)
    rows = [(row, row["schema"], row["in"], row.get("required", False)) for row in own]
    rows += [
        ({**field.schema, "name": field.name}, field.schema, "body", field.is_required)
        for field in flatten_fields(schema)
    ]
    if rows:
        yield from ("| Parameter | Location | Type | Limits | Default | Description |", "|---|---|---|---|---|---|")
        for row, kind, where, required in rows:
            default = f"`{format_default(kind)}`" if "default" in kind else ""
            required_note = " (required)" if required else ""
            text = row.get("description", "").replace("|", "\\|")
            type_name = format_type(kind).replace("|", "or")
            limits = format_limits(kind, str)
            yield f"| `{row['name']}`{required_note} | {where} | {type_name} | {limits} | {default} | {text} |"
        yield ""
    yield f"Common parameters: {', '.join(f'[`{name}`](headers.md)' for name in common)}."
    yield from ("", "| Status | Response |", "|---|---|")
    for status, response in operation["responses"].items():
        resolved = resolve(document, response)
        text = "<br>".join(resolved["description"].split("\n"))
        schema_name = resolved.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
        name = schema_name.rpartition("/")[2]
        yield f"| {status} | {text}{f' A `{name}`.' if status.startswith('2') and name else ''} |"
    yield ""


def _errors() -> Iterator[str]:
    from kalends.api.description.error_codes import ERROR_CODES

    yield from ("# Error codes", "", NOTE, "")
    yield 'Every error has the form `{"code", "message", "data": {"status"}}`.'
    yield "The code is for programs and never changes; the message is for people and is translated."
    yield ""
    yield from ("| Status | Code | Condition |", "|---|---|---|")
    for row in sorted(ERROR_CODES, key=lambda row: row.status):
        yield f"| {row.status} | `{row.code.replace('*', '…')}` | {row.when} |"
    yield from ("", "`…` stands for the singular of the kind: `event`, `venue`, `organizer`, `category`, `tag`.")


def _headers(document: dict[str, Any]) -> Iterator[str]:
    yield from ("# Headers and common parameters", "", NOTE, "", "## Requests", "")
    yield from ("| Name | Location | Description |", "|---|---|---|")
    for name, row in document["components"]["parameters"].items():
        yield f"| `{name}` | {row['in']} | {row['description']} |"
    yield from ("", "## Responses", "", "| Name | Description |", "|---|---|")
    for name, row in document["components"]["headers"].items():
        yield f"| `{name}` | {row['description']} |"


def main() -> int:
    pages = render()
    existing = {path.name: path.read_text() for path in FOLDER.glob("*.md")} if FOLDER.exists() else {}
    if "--check" in sys.argv:
        return 0 if existing == pages else 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in set(existing) - set(pages):
        (FOLDER / name).unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text)
    (FOLDER.parent / "compatibility.md").write_text(differences.render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
