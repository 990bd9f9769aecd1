"""Bodies that are too large, too deep, too many or no text at all: 4xx, never 5xx (reliability.md, S7 and S8)."""

import json
from typing import Any

import httpx
import pytest

from tests.api.running_app import API_PATH, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, Sample, unique

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MAX_BODY_BYTES = 2 * 1024 * 1024


def send(caller: Caller, body: bytes | str, content_type: str = JSON, path: str = "/venues") -> httpx.Response:
    return caller.request("POST", path, content=body, headers={"Content-Type": content_type})


INVALID_JSON = {
    "broken": b'{"venue": "x"',
    "trailing comma": b'{"venue": "x",}',
    "two values": b'{"venue": "x"} {"venue": "y"}',
    "single quotes": b"{'venue': 'x'}",
    "comment": b'{"venue": "x"} // no',
    "NaN": b'{"venue": "x", "geo_lat": NaN}',
    "infinity": b'{"venue": "x", "geo_lat": -Infinity}',
    "beyond a double": b'{"venue": "x", "geo_lat": 1e999}',
    "lone surrogate": b'{"venue": "\\ud800"}',
    "second half of a surrogate pair": b'{"venue": "\\udfffx"}',
    "raw control character": b'{"venue": "a\x01b"}',
    "byte-order mark": b'\xef\xbb\xbf{"venue": "x"}',
    "UTF-16": '{"venue": "x"}'.encode("utf-16"),
    "UTF-32": '{"venue": "x"}'.encode("utf-32-le"),
    "Latin-1": b'{"venue": "caf\xe9"}',
    "overlong UTF-8": b'{"venue": "\xc0\xaf"}',
    "surrogate in UTF-8": b'{"venue": "\xed\xa0\x80"}',
    "100,000 lists": b'{"venue": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100,000 open lists": b"[" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "a bare word": b"venue",
    "zeros": b"\x00" * 1000,
    "a hexadecimal number": b'{"venue": 0x10}',
}


@pytest.mark.quick("broken", "a hexadecimal number")
@pytest.mark.parametrize("body", INVALID_JSON.values(), ids=INVALID_JSON)
def test_invalid_json_is_rejected(editor: Caller, body: bytes) -> None:
    data = assert_error(send(editor, body), 400, "rest_invalid_json")
    assert data.keys() == {"status", "json_error_code", "json_error_message"}


UNUSUAL_JSON = {
    "NUL": (b'{"venue": "a\\u0000b"}', "ab"),
    "duplicate keys": (b'{"venue": "first", "venue": "last"}', "last"),
    "a surrogate pair": (b'{"venue": "\\ud83d\\ude00"}', "\U0001f600"),
    "a noncharacter": (b'{"venue": "x\\ufffe"}', "x\ufffe"),
    "white space around": (b' \r\n\t{"venue":"x"}\n ', "x"),
    "200,000 keys": (("{" + ",".join(f'"k{n}":1' for n in range(150_000)) + ',"venue":"many"}').encode(), "many"),
    "an unknown key 900 deep": (b'{"a":' + b"[" * 900 + b"]" * 900 + b',"venue":"deep"}', "deep"),
    "an unknown integer of 300 digits": (b'{"a": ' + b"9" * 300 + b', "venue": "long"}', "long"),
    "an empty key": (b'{"": 1, "venue": "empty"}', "empty"),
}


@pytest.mark.quick("NUL", "an empty key")
@pytest.mark.parametrize(("body", "name"), UNUSUAL_JSON.values(), ids=UNUSUAL_JSON)
def test_unusual_json_is_accepted(editor: Caller, body: bytes, name: str) -> None:
    assert expect_json(send(editor, body), 201)["venue"] == name


@pytest.mark.quick("author-19", "zip-1000")
@pytest.mark.parametrize("digits", [19, 20, 40, 1000])
@pytest.mark.parametrize("field", ["author", "image", "geo_lat", "date", "status", "show_map", "zip"])
def test_huge_integers_are_rejected(editor: Caller, field: str, digits: int) -> None:
    body = f'{{"venue": "x", "{field}": {"9" * digits}}}'
    response = send(editor, body)
    assert response.status_code == 400, response.text
    assert response.json()["code"] in ("rest_invalid_param", "rest_invalid_json")


@pytest.mark.quick("/events", "/tags")
@pytest.mark.parametrize("path", ["/events", "/events/1", "/events/by-slug/a", "/tags"])
def test_body_over_limit_is_413(app: RunningApp, editor: Caller, path: str) -> None:
    for content_type in (JSON, FORM, "multipart/form-data; boundary=x", "text/plain"):
        assert_error(send(editor, b"x" * (MAX_BODY_BYTES + 1), content_type, path), 413, "rest_body_too_large")
    # The length is refused before anything is read, and what has no length while it is read.
    credentials = ("authorization", authorization_header(editor))
    too_long_header = [credentials, ("content-length", str(MAX_BODY_BYTES + 1)), ("content-type", JSON)]
    assert app.raw("POST", API_PATH + path, headers=too_long_header, body=[b"{}"])[0] == 413
    false_header = [credentials, ("content-length", "2"), ("content-type", JSON)]
    chunks = [b"x" * 300_000] * 8
    assert app.raw("POST", API_PATH + path, headers=false_header, body=chunks)[0] == 413
    assert app.raw("POST", API_PATH + path, headers=[credentials, ("content-type", JSON)], body=chunks)[0] == 413


def authorization_header(caller: Caller) -> str:
    return next(caller.auth.auth_flow(httpx.Request("GET", "http://a"))).headers["authorization"]  # type: ignore[union-attr]


def test_body_at_limit_is_accepted(start_app: Any) -> None:
    caller = start_app({"KALENDS_MAX_BODY_BYTES": "1024"}).caller("editor")
    body = json.dumps({"venue": "x", "pad": ""})
    padding = "p" * (1024 - len(body))
    assert expect_json(send(caller, json.dumps({"venue": "x", "pad": padding})), 201)["venue"] == "x"
    assert_error(send(caller, json.dumps({"venue": "x", "pad": padding + "p"})), 413, "rest_body_too_large")


def test_chunked_body_is_reassembled(app: RunningApp, editor: Caller) -> None:
    text = json.dumps({"name": unique("pieces"), "description": "日本"}, ensure_ascii=False).encode()
    headers = [("authorization", authorization_header(editor)), ("content-type", JSON)]
    chunks = [text[at : at + 1] for at in range(len(text))]
    status, _, body = app.raw("POST", f"{API_PATH}/tags", headers=headers, body=chunks)
    assert (status, json.loads(body)["description"]) == (201, "日本")


def test_long_text_within_limit_is_stored(editor: Caller) -> None:
    long = "word " * 51_000  # 255,000 characters
    record = editor.create("venues", venue=unique("long"), description=long)
    assert record["description"] == f"<p>{long.strip()}</p>"
    assert_error(
        editor.post("/venues", {"venue": "x", "description": "x" * 256_001}), 400, "rest_invalid_param", "description"
    )


@pytest.mark.quick("events-description-text0", "categories-description-text8")
@pytest.mark.parametrize(
    ("kind", "field", "text"),
    [
        ("events", "description", "& " * 100_000),
        ("events", "excerpt", "& " * 30_000),
        ("events", "title", "\ufb2c" * 9_000),
        ("venues", "description", "& " * 100_000),
        ("venues", "venue", "&lt;b " + "&" * 9_000),
        ("organizers", "organizer", "\ufb2c" * 9_000),
        ("categories", "name", "\ufb2c" * 200),
        ("tags", "name", "\ufb2c" * 200),
        ("categories", "description", "& " * 10_000),
    ],
)
def test_text_that_grows_when_sanitized_is_stored_or_rejected(
    editor: Caller, kind: str, field: str, text: str
) -> None:
    required: dict[str, Any] = {"events": {"title": "x", **DATES}}.get(
        kind, {"venue": "x", "organizer": "x", "name": "y"}
    )
    response = editor.post(f"/{kind}", {**required, field: text})
    assert response.status_code in (201, 400), response.text
    if response.status_code == 400:
        assert_error(response, 400, "rest_invalid_param", field)


# Forms ----------------------------------------------------------------------------------------


def test_form_with_too_many_fields_is_rejected(editor: Caller, sample: Sample) -> None:
    body = "&".join(f"a{n}=1" for n in range(1001))
    assert_error(send(editor, body, FORM, f"/{sample.kind}"), 400, "rest_invalid_form")
    assert_error(editor.get(f"/{sample.kind}?{body}"), 400, "rest_invalid_form")


@pytest.mark.quick("venue[a][b][c][d][e]=x", "body2")
@pytest.mark.parametrize(
    "body",
    [
        "venue[a][b][c][d][e]=x",
        "venue" + "[a]" * 1000 + "=x",
        "venue" + "[]" * 300 + "=x",
    ],
)
def test_bracket_nesting_is_limited(editor: Caller, body: str) -> None:
    assert_error(send(editor, body, FORM, "/events"), 400, "rest_invalid_param", "venue")
    assert_error(editor.get(f"/events?{body}"), 400, "rest_invalid_param", "venue")


@pytest.mark.quick("[a]=1", "[][]=1")
@pytest.mark.parametrize(
    "body",
    ["[a]=1", "venue[=x", "venue]=x", "venue[a=x", "=x", "&&&", "venue[0]=a&venue[x]=b", "venue=x&venue[]=y&venue=z",
     "venue[99999999999]=x", "%5B%5D=1", "[]=1", "[][]=1"],
)  # fmt: skip
def test_malformed_brackets_cause_no_server_error(editor: Caller, body: str) -> None:
    for path in ("/venues", "/events", "/tags"):
        assert send(editor, body, FORM, path).status_code in (201, 400)
        assert editor.get(f"{path}?{body}").status_code in (200, 400)


@pytest.mark.quick("venue=%ff", "venue=%ed%a0%80")
@pytest.mark.parametrize("body", [b"venue=%ff", b"venue=%c3%28", b"venue=\xff", b"%ff=x", b"venue=%ed%a0%80"])
def test_invalid_utf8_in_form_is_rejected(editor: Caller, body: bytes) -> None:
    assert_error(send(editor, body, FORM), 400, "rest_invalid_form")


def test_malformed_percent_escapes_in_form_are_literal(editor: Caller) -> None:
    assert expect_json(send(editor, b"venue=100%25+%zz+%", FORM), 201)["venue"] == "100% %zz %"


MALFORMED_MULTIPART = {
    "no boundary": ("multipart/form-data", b"--x\r\n"),
    "an empty boundary": ("multipart/form-data; boundary=", b"--\r\n"),
    "another boundary": ("multipart/form-data; boundary=y",
    b'--x\r\nContent-Disposition: form-data; name="venue"\r\n\r\nx\r\n--x--\r\n'),
    "no end": ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="venue"\r\n\r\nx'),
    "no name": ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n"),
    "no disposition": ("multipart/form-data; boundary=x", b"--x\r\n\r\nx\r\n--x--\r\n"),
    "garbage": ("multipart/form-data; boundary=x", bytes(range(256))),
    "a bad header": ("multipart/form-data; boundary=x", b"--x\r\n: bad\r\n\r\nx\r\n--x--\r\n"),
    "1,001 fields": (
        "multipart/form-data; boundary=x",
        b"".join(b'--x\r\nContent-Disposition: form-data; name="a%d"\r\n\r\n1\r\n' % n for n in range(1001))
        + b"--x--\r\n",
    ),
    "11 files": (
        "multipart/form-data; boundary=x",
        b"".join(
            b'--x\r\nContent-Disposition: form-data; name="a%d"; filename="f"\r\n\r\n1\r\n' % n for n in range(11)
        ) + b"--x--\r\n",
    ),
    "a field of more than a megabyte": (
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="venue"\r\n\r\n' + b"x" * 1_100_000 + b"\r\n--x--\r\n",
    ),
    "a header of 100 kB": (
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="' + b"v" * 100_000 + b'"\r\n\r\nx\r\n--x--\r\n',
    ),
    "an unknown character set": (
        "multipart/form-data; boundary=x; charset=nonsense",
        b'--x\r\nContent-Disposition: form-data; name="venue"\r\n\r\n\xff\r\n--x--\r\n',
    ),
    "a boundary of 5,000 characters": ("multipart/form-data; boundary=" + "b" * 5_000, b"--x\r\n"),
}  # fmt: skip


@pytest.mark.quick("no boundary", "a boundary of 5,000 characters")
@pytest.mark.parametrize(("content_type", "body"), MALFORMED_MULTIPART.values(), ids=MALFORMED_MULTIPART)
def test_malformed_multipart_form_causes_no_server_error(editor: Caller, content_type: str, body: bytes) -> None:
    response = send(editor, body, content_type)
    assert response.status_code in (201, 400), response.text
    if response.status_code == 400:
        assert response.json()["code"] in ("rest_invalid_form", "rest_missing_callback_param", "rest_invalid_param")


def test_malformed_global_parameters_are_ignored(editor: Caller) -> None:
    deep: Any = "id"
    for _ in range(800):
        deep = [deep]
    for name in ("_fields", "_envelope", "_method", "password", "context"):
        for value in (None, 5, True, {}, {"a": 1}, [None, 5, {}], deep, "a." * 5_000, "\x00"):
            if (name, value) != ("_envelope", True):
                response = editor.post("/tags", {"name": unique("odd"), name: value})
                assert response.status_code == 201, (name, response.text)
