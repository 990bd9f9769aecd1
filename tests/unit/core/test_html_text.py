"""Descriptions as they are shown."""

import pytest
from hypothesis import given, strategies as st

from kalends.core.html_text import to_paragraphs, to_plain_text
from kalends.core.sanitize import clean_html
from tests.unit.core.vector_rows import quick_settings


@pytest.mark.parametrize(
    ("stored", "formatted"),
    [
        ("", ""),
        ("0", "<p>0</p>"),
        ("Short text", "<p>Short text</p>"),
        ("e1\n\ne2", "<p>e1</p>\n<p>e2</p>"),
        ("a\n \n\t\n\nb\n", "<p>a</p>\n<p>b</p>"),
        (
            "line one\nline two\n\nsecond para\n\n<ul>\n<li>a</li>\n</ul>",
            "<p>line one<br />\nline two</p>\n<p>second para</p>\n<ul>\n<li>a</li>\n</ul>",
        ),
        (
            "<p>Hello <strong>world</strong></p>\n<p>Second paragraph</p>",
            "<p>Hello <strong>world</strong></p>\n<p>Second paragraph</p>",
        ),
        ("An <i>organizer</i>", "<p>An <i>organizer</i></p>"),
        ("a<br>\nb", "<p>a<br />\nb</p>"),
        ("<p>ok</p>alert", "<p>ok</p>\n<p>alert</p>"),
        ("<p>P</p><a>l</a><b>b</b>", "<p>P</p>\n<p><a>l</a><b>b</b></p>"),
        ("<b>one\n\nstill</b> bold", "<p><b>one<br />\n<br />\nstill</b> bold</p>"),
        ("<a><p>block inside</p></a> x", "<a><p>block inside</p></a>\n<p>x</p>"),
        ("<pre>a\n\nb</pre>", "<pre>a\n\nb</pre>"),
        ("a<hr>b", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("<div><p>a</p>\n\n<p>b</p></div>c", "<div><p>a</p>\n\n<p>b</p></div>\n<p>c</p>"),
        ('It\'s "quoted" -- dash :-) (tm)', '<p>It\'s "quoted" -- dash :-) (tm)</p>'),
        ("a &lt; b", "<p>a &lt; b</p>"),
    ],
)
def test_plain_text_becomes_paragraphs_and_blocks_are_preserved(stored: str, formatted: str) -> None:
    assert to_paragraphs(stored) == formatted
    assert to_paragraphs(formatted) == formatted


PIECES = [
    "a",
    "b",
    "\n",
    "\n\n",
    " ",
    "<b>",
    "</b>",
    "<p>",
    "</p>",
    "<ul>",
    "<li>",
    "</ul>",
    "<br>",
    "<hr>",
    "<pre>",
]
PIECES += [
    "</pre>",
    "<img src='x'>",
    "<table><td>",
    "</table>",
    "<div>",
    "</div>",
    "<a href='y'>",
    "</a>",
    "&amp;",
]


@quick_settings
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_paragraph_formatting_preserves_words_and_is_idempotent(soup: str) -> None:
    stored = clean_html(soup)
    formatted = to_paragraphs(stored)
    assert to_plain_text(formatted) == to_plain_text(to_paragraphs(formatted))
    assert to_plain_text(formatted).replace(" ", "") == to_plain_text(stored).replace(" ", "")
    assert to_paragraphs(formatted) == formatted


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ("<p>a</p><p>b <b>c</b>d &amp; e</p>", "a b cd & e"),
        ("one<br>two", "one two"),
        ("I <3 <i>you</i>", "I <3 you"),
        ('<img src="x" alt="a > b">c', "c"),
        ("<ul>\n<li>a</li><li>b</li></ul>", "a b"),
        ("", ""),
    ],
)
def test_plain_words_strip_markup(stored: str, words: str) -> None:
    assert to_plain_text(stored) == words
