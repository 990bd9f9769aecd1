"""Examples of requests and limits in /docs, generated from the description of the API."""

import re
import shlex
from html import unescape
from typing import Any

import orjson
import pytest

from kalends.api.description.document import EXAMPLE_BASE, make_document
from kalends.api.description.reference import RequestExample, flatten_fields, format_limits, format_type, make_page
from kalends.core.messages import translator
from kalends.core.params import MAX_ID
from kalends.http.router import Interface, Mount
from kalends.routes import EXTENSION, INTERFACE

INTERFACES = pytest.mark.parametrize("interface", [INTERFACE, EXTENSION], ids=lambda interface: interface.namespace)
MOUNTS = tuple(Mount(f"/api/{it.namespace}", it.namespace, it, "") for it in (INTERFACE, EXTENSION))


@INTERFACES
def test_each_body_has_an_example(interface: Interface) -> None:
    document = orjson.loads(make_document(interface, "en", 12))
    missing = [
        operation["operationId"]
        for by_method in document["paths"].values()
        for operation in by_method.values()
        if "requestBody" in operation
        and not any("example" in row for row in operation["requestBody"]["content"].values())
    ]
    assert missing == []


def test_each_operation_has_a_command_and_a_script() -> None:
    page = make_page("en", MOUNTS)
    operations = page.count('<details class="operation">')
    texts = [unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
    commands = [shlex.split(text) for text in texts if text.startswith("curl ")]
    # The page begins with one more command.
    assert len(commands) - 1 == sum("await fetch(" in text for text in texts) == operations
    for words in commands:
        url = next(word for word in words if word.startswith("https:"))
        assert url.startswith(EXAMPLE_BASE)
        assert "{" not in url
        if "--json" in words:
            assert isinstance(orjson.loads(words[words.index("--json") + 1]), dict)


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (RequestExample("GET", "https://a/x?p=5", False), ["curl", "https://a/x?p=5"]),
        (
            RequestExample("PATCH", "https://a/x/1", True, {"title": "It's"}),
            ["curl", "--request", "PATCH", "https://a/x/1", "--user", "$LOGIN:$PASSWORD",
             "--json", '{\n  "title": "It\'s"\n}'],
        ),
        (
            RequestExample("POST", "https://a/x", True, {"alt_text": "A b"}, file="file"),
            ["curl", "--user", "$LOGIN:$PASSWORD", "https://a/x", "--form", "file=@image.jpg",
             "--form", "alt_text=A b"],
        ),
    ],
)  # fmt: skip
def test_command_is_quoted_for_the_shell(example: RequestExample, words: list[str]) -> None:
    assert shlex.split(example.curl.replace("\\\n", "")) == words


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 50}, "1–50"),
        ({"type": "integer", "minimum": 0, "maximum": MAX_ID}, "≥ 0"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "0–1"),
        ({"type": "number", "minimum": -90, "maximum": 90}, "−90 – 90"),
        ({"type": "string", "minLength": 1, "maxLength": 200}, "1–200 Zeichen"),
        ({"type": "string", "maxLength": 256_000}, "≤ 256000 Zeichen"),
        ({"type": "array", "minItems": 0, "maxItems": 500}, "≤ 500 Einträge"),
        ({"type": "string"}, ""),
    ],
)
def test_limits_are_formatted(schema: dict[str, Any], limits: str) -> None:
    assert format_limits(schema, translator("de")) == limits


def test_nested_fields_are_named_by_their_path() -> None:
    document = orjson.loads(make_document(EXTENSION, "en", 12))
    body = document["paths"]["/batch"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    rows = [(field.name, format_type(field.schema), field.is_required) for field in flatten_fields(body)]
    assert rows == [
        ("operations", "array of object", True),
        ("operations[].method", "POST | PUT | PATCH | DELETE", True),
        ("operations[].path", "string", True),
        ("operations[].body", "object", False),
        ("operations[].if_match", "integer | string", False),
        ("atomic", "boolean", False),
    ]
