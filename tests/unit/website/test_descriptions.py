"""Descriptions as pages show them: typed addresses become links."""

import time

import pytest

from kalends.core.sanitize import clean_html
from kalends.website.models.page_parts import adapt


def link(target: str, text: str = "") -> str:
    return f'<a rel="nofollow noopener" href="{target}">{text or target}</a>'


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("See https://a.example/b.", f"See {link('https://a.example/b')}."),
        ("(https://a.example/b_(c))", f"({link('https://a.example/b_(c)')})"),
        ("https://a.example/?x=1&y=2!", f"{link('https://a.example/?x=1&amp;y=2')}!"),
        ('"HTTP://a.example/"', f'"{link("HTTP://a.example/")}"'),
        ("https://a.example/<br>b", f"{link('https://a.example/')}<br>b"),
        ("https://a.example/&nbsp;b", f"{link('https://a.example/')}&nbsp;b"),
        ("https://de.example/Köln", link("https://de.example/Köln")),
        ("詳細はhttps://a.example/。", f"詳細は{link('https://a.example/')}。"),
        ("Write to box.x+y@a-b.example.", f"Write to {link('mailto:box.x+y@a-b.example', 'box.x+y@a-b.example')}."),
        ("https://a.example/@b.example", link("https://a.example/@b.example")),
        # These are not addresses, or links already.
        ("javascript://x data:x //a.example x@y @a.example", "javascript://x data:x //a.example x@y @a.example"),
        ("https:// https://. ftp://a.example", "https:// https://. ftp://a.example"),
        ('<a href="https://a.example/">x@a.example <b>https://b.example</b></a>',
         '<a rel="nofollow noopener" href="https://a.example/">x@a.example <b>https://b.example</b></a>'),
        ('<img src="https://own.example/a.png" alt="https://b.example">',
         '<img loading="lazy" src="https://own.example/a.png" alt="https://b.example">'),
    ],
)  # fmt: skip
def test_typed_addresses_become_links(typed: str, shown: str) -> None:
    assert adapt(clean_html(typed), frozenset({"own.example"})) == shown


@pytest.mark.parametrize("text", ["https://" * 9000, "a" * 70_000, "a@" * 30_000, "a.a@a." * 12_000,
                                  f"https://{'(' * 60_000}", f"https://a{')' * 60_000}"])  # fmt: skip
def test_linking_takes_linear_time(text: str) -> None:
    started = time.process_time()
    adapt(text, frozenset())
    assert time.process_time() - started < 2
