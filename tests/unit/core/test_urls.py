"""Websites and e-mail addresses."""

from typing import Any

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.urls import read_email, read_website
from tests.unit.core.vector_rows import load_rows, may_be_accepted, may_be_rejected, row_id


@pytest.mark.parametrize("row", load_rows("websites"), ids=row_id)
def test_websites_match_conformance_vectors(row: dict[str, Any]) -> None:
    try:
        website = read_website(row["input"]["website"])
    except InvalidValue:
        assert may_be_rejected(row)
        return
    assert may_be_accepted(row)
    expected = row.get("output", {}).get("website", website)
    assert website == ("" if expected == "<own url>" else expected)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("HTTPS://Example.org/Path", "https://Example.org/Path"),
        ("http://localhost:8080/x", "http://localhost:8080/x"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[::1]/", "http://[::1]/"),
        ("http://192.0.2.1/?a=%0a", "http://192.0.2.1/?a=%0a"),
        (" https://example.org ", "https://example.org"),
        ("http://münchen.example/straße?q=é#ü", "http://münchen.example/straße?q=é#ü"),
        ("https://例え.テスト/", "https://例え.テスト/"),
        ('http://example.org/?q="x"<y>|{z}', "http://example.org/?q=%22x%22%3Cy%3E%7C%7Bz%7D"),
        ("https://example.org/@user", "https://example.org/@user"),
    ],
)
def test_urls_are_preserved(url: str, stored: str) -> None:
    assert read_website(url) == stored
    assert read_website(stored) == stored


INVALID_URLS: list[object] = [
    "http://",
    "http:///x",
    "https:example.org",
    "//example.org/",
    "http://a b/",
    "http://exa mple.org",
    "http://..",
    "http://user:pw@example.org/",
    "http://user@example.org/",
    "http://example.org:0/",
    "http://example.org:99999",
    "http://example.org:x/",
    "http://[::1/",
    "http://<b>/",
    'http://"/',
    "http://a\u202eb.test/",
    True,
    5,
    {},
    [],
    "https://example.org/" + "x" * 2000,
    "http://example.org/\ud800",
    "data:text/html,x",
    "http://a\\b@c/",
    "   ",
    "jav\tascript:alert(1)",
    "http://example.org/a\nb",
]


@pytest.mark.parametrize("url", INVALID_URLS)
def test_invalid_urls_are_rejected(url: object) -> None:
    with pytest.raises(InvalidValue):
        read_website(url)


@pytest.mark.parametrize("email", ["", "jane@example.org", "a+b.c@sub.example.org", "jörg@münchen.example", "a@b"])
def test_email_with_single_at_sign_is_accepted(email: str) -> None:
    assert read_email(f" {email} ") == email


@pytest.mark.parametrize(
    "email",
    [
        "not-an-email",
        "a<b>@example.org",
        "@example.org",
        "a@",
        "a@b@c",
        "a b@c",
        "a@b\nBcc: x@y",
        "a@b,c@d",
        "x" * 300,
    ],
)
def test_invalid_email_addresses_are_rejected(email: str) -> None:
    with pytest.raises(InvalidValue):
        read_email(email)
