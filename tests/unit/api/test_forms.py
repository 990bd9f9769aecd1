"""The parser of uploaded forms, without a server."""

import pytest

from kalends.core.errors import ApiError
from kalends.http.bodies import MAX_FIELD_BYTES, MAX_FORM_FIELDS, FormParser

CONTENT_TYPE = "multipart/form-data; boundary=x"


def make_part(disposition: bytes, content: bytes) -> bytes:
    return b"--x\r\nContent-Disposition: form-data; " + disposition + b"\r\n\r\n" + content + b"\r\n"


FILE = make_part(b'name="file"; filename="a.jpg"', b"\xff\xd8\r\n--not the boundary")
FORM = make_part(b'name="alt_text"', "Zoë".encode()) + FILE + make_part(b'name="title"', b"T") + b"--x--\r\n"


def parse(body: bytes, chunk_bytes: int = 1000, content_type: str = CONTENT_TYPE) -> tuple[FormParser, bytes]:
    parser = FormParser(content_type, "file")
    content = b"".join(parser.feed(body[i : i + chunk_bytes]) for i in range(0, len(body), chunk_bytes))
    parser.finish()
    return parser, content


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 50, 1000])
def test_chunk_size_does_not_matter(chunk_bytes: int) -> None:
    parser, content = parse(FORM, chunk_bytes)
    assert parser.fields == [("alt_text", "Zoë"), ("title", "T")]
    assert (parser.file_name, content) == ("a.jpg", b"\xff\xd8\r\n--not the boundary")


@pytest.mark.parametrize(
    ("charset", "content", "text"),
    [("", b"\xeb", "ë"), ("; charset=iso-8859-15", b"\xa4", "€"), ("; charset=unknown", b"\xc3\xab", "Ã«")],
)
def test_fields_are_decoded_by_charset_else_as_latin_1(charset: str, content: bytes, text: str) -> None:
    parser, _ = parse(make_part(b'name="title"', content) + b"--x--", content_type=CONTENT_TYPE + charset)
    assert parser.fields == [("title", text)]


def test_file_in_another_field_is_ignored() -> None:
    parser, content = parse(make_part(b'name="other"; filename="b.jpg"', b"x") + b"--x--")
    assert (parser.file_name, parser.fields, content) == (None, [], b"")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        FORM[:-6],
        FILE + FILE + b"--x--",
        make_part(b'filename="a.jpg"', b"x") + b"--x--",
        make_part(b'name="title"', b"x" * (MAX_FIELD_BYTES + 1)) + b"--x--",
        make_part(b'name="title"', b"x") * (MAX_FORM_FIELDS + 1) + b"--x--",
    ],
    ids=["empty", "incomplete", "two files", "no name", "long field", "many fields"],
)
def test_malformed_form_is_rejected(body: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        parse(body)
    assert (raised.value.status, raised.value.code) == (400, "rest_invalid_form")


def test_boundary_is_required() -> None:
    with pytest.raises(ApiError):
        FormParser("multipart/form-data", "file")
