"""References to images of the media library inside of descriptions."""

import pytest

from kalends.core.html_text import find_image_ids, find_sources, replace_sources, resolve_references
from kalends.core.sanitize import clean_html, clean_term_description


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ('<img src="media:7" alt="A > b">', '<img src="media:7" alt="A &gt; b">'),
        ("<img src=media:7>", '<img src="media:7">'),
        ('<img src="media:07">', "<img>"),
        ('<img src="media:x">', "<img>"),
        ('<img src="MEDIA:7"> media:', "<img> media:"),
        ('<img src="me&#9;dia:7"> media:', "<img> media:"),
        ('<img src="&#109;edia:7">', "<img>"),
        ('<a href="media:7">a</a>', "<a>a</a>"),
        ('<a href=" media:7" title="media: x">a</a>', '<a title="media: x">a</a>'),
        ('<img src="javascript:7" alt="media:">', '<img alt="media:">'),
        ("write media:7", "write media:7"),
    ],
)
def test_only_images_refer_to_images(text: str, cleaned: str) -> None:
    assert clean_html(text) == cleaned
    assert clean_html(cleaned) == cleaned


def test_descriptions_of_terms_have_no_references() -> None:
    assert clean_term_description('<img src="media:7"><a href="media:7">a</a>') == "<a>a</a>"


def test_references_are_resolved_or_left_out() -> None:
    html = '<p>src="media:1" <img alt="src=&quot;media:2&quot;" src="media:3"><img src="media:4">.</p>'
    assert find_image_ids(html) == [3, 4]
    expected = '<p>src="media:1" <img alt="src=&quot;media:2&quot;" src="https://a.example/x?a&amp;b">.</p>'
    assert resolve_references(html, {3: "https://a.example/x?a&b", 1: "wrong", 2: "wrong"}) == expected


def test_addresses_are_read_without_escapes() -> None:
    html = '<img src="https://a.example/?a&amp;b"><img alt="none"><img src="media:1">'
    assert find_sources(html) == ["https://a.example/?a&b", "media:1"]
    assert replace_sources(html, lambda source: source) == html
