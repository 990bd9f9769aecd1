"""Hostile HTML is refused quickly, and nothing slips past the count of nesting."""

import time
from contextlib import suppress
from html.parser import HTMLParser

import nh3
import pytest
from hypothesis import given, strategies as st

from kalends.core import html_text
from kalends.core.errors import InvalidValue
from kalends.core.html_text import VOID, enforce_html_limits
from kalends.core.sanitize import clean_html
from tests.soak import slowdown
from tests.unit.core.vector_rows import quick_settings

MAX_DESCRIPTION = 256_000

HOSTILE_MARKUP = {
    "nested": "<div>" * 20_000,
    "nested to the limit": "<b>" * (MAX_DESCRIPTION // 3),
    "nested formatting": "".join(f"<p><b id={n}>" for n in range(2000)),
    "many tags": "<b></b>" * 36_000,
    "many attributes": "<b " + " ".join(f"a{n}" for n in range(35_000)) + ">x</b>",
    "many quoted attributes": "<b " + " ".join(f"a{n}='>'" for n in range(20_000)) + ">x</b>",
    "many attributes in foreign content": "<svg><b " + " ".join(f"a{n}" for n in range(35_000)) + ">x</b>",
    "end tags out of scope": "<div><table><tr><td></div></td></tr></table>" * 2000,
    "end tags out of order": "".join(f"<p><b id={n}></p>" for n in range(2000)),
    "end tags in attributes": '<div title="</div>">' * 2000,
    "end tags in comments": "<div><!-- </div> -->" * 2000,
    "end tags in raw text": "<div><textarea></div></textarea>" * 2000,
    "end tags in foreign content": "<div><svg><![CDATA[</svg></div>]]></svg>" * 2000,
    "names that only look alike": "<lin\u212a>" * 2000,
    "spaces that are none": '<div\u00a0a="></div>">' * 2000,
}
UNUSUAL_MARKUP = {
    "tags without end": "<a " * 3000,
    "open quotation marks": "<a b='" * 9000,
    "signs": "<" * MAX_DESCRIPTION,
    "comments without end": "<!--" * (MAX_DESCRIPTION // 4),
    "end tags": "</p>" * 9000,
    "half end tags": "</" * (MAX_DESCRIPTION // 2),
    "entities": "&amp;" * (MAX_DESCRIPTION // 5),
    "text": "word " * (MAX_DESCRIPTION // 5),
    "flat": "<p>text <b>bold</b></p>" * 4900,
    "items without end": "<ul>" + "<li>x" * 9000 + "</ul>",
    "table without ends": "<table>" + "<tr><td>x<td>y" * 3000 + "</table>",
    "paragraphs without ends": "<div>" + "<p>text" * 9000 + "</div>",
    "blank lines inside an element": "<b>" + "x\n\n" * 80_000 + "</b>",
}


def minimum_seconds(html: str) -> float:
    """The least of three on a quiet machine, in CPU time."""
    durations = []
    for _ in range(3):
        start = time.process_time()
        with suppress(InvalidValue):
            enforce_html_limits(html)
        durations.append(time.process_time() - start)
    return min(durations) / slowdown()


@pytest.mark.parametrize("name", HOSTILE_MARKUP)
def test_hostile_markup_is_rejected_quickly(name: str) -> None:
    with pytest.raises(InvalidValue):
        enforce_html_limits(HOSTILE_MARKUP[name][:MAX_DESCRIPTION])
    assert minimum_seconds(HOSTILE_MARKUP[name]) < 0.05


def test_descriptions_are_limited_before_sanitizing() -> None:
    with pytest.raises(InvalidValue, match="at most 10000 HTML tags"):
        clean_html(HOSTILE_MARKUP["nested"])
    with pytest.raises(InvalidValue, match="nest HTML at most 100 levels deep"):
        clean_html("<div>" * 101)


@pytest.mark.parametrize("name", UNUSUAL_MARKUP)
def test_unusual_markup_is_cheap(name: str) -> None:
    assert minimum_seconds(UNUSUAL_MARKUP[name]) < 0.4  # While coverage is counted and others work, too.


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 99 + "x" + "</div>" * 99,
        ("<ul>" + "<li>x" * 50 + "</ul>") * 50,
        "<p>one<p>two<p>three" * 100,
        "<table><tr><td>a<td>b<tr><td>c</table>" * 100,
        "<p>a<br>b<img src=x><hr>" * 100,
        "<a name=x>" * 150,
        "<b>a</b> <i>b</i> " * 1000,
        "<dl><dt>a<dd>b<dt>c<dd>d</dl>" * 100,
        "<!-- <div> -->" * 1000,
        "<script>'<div><div>'</script>" * 1000,
    ],
)
def test_ordinary_markup_is_accepted(html: str) -> None:
    assert enforce_html_limits(html) == html


class DepthParser(HTMLParser):
    deepest = depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1


TAG_NAMES = [
    "b",
    "i",
    "a",
    "p",
    "div",
    "table",
    "tr",
    "td",
    "tbody",
    "caption",
    "li",
    "ul",
    "dd",
    "h1",
    "pre",
    "span",
]
TAG_NAMES += ["button", "form", "option", "ruby", "rt", "details", "center", "font", "nobr", "marquee", "object"]
TAG_NAMES += [
    "select",
    "svg",
    "math",
    "template",
    "noscript",
    "textarea",
    "title",
    "style",
    "xmp",
    "br",
    "mtext",
    "desc",
]
TOKENS = [f"<{name}>" for name in TAG_NAMES] + [f"</{name}>" for name in TAG_NAMES]
TOKENS += [
    "<!--",
    "-->",
    "--!>",
    "<![CDATA[",
    "]]>",
    "<p title='",
    "'>",
    "<a x=",
    '"',
    "<",
    ">",
    "x",
    "<!x",
    "<?y",
]


@quick_settings
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=7).map("".join))
def test_accepted_markup_is_not_deeply_nested(pattern: str) -> None:
    """Whatever leaks a level each time it is repeated would be 400 levels deep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_text, "MAX_DEPTH", 20)
        try:
            html = enforce_html_limits(pattern * 400)
        except InvalidValue:
            return
    reader = DepthParser()
    reader.feed(
        nh3.clean(
            html,
            tags=set(TAG_NAMES) - {"style", "template", "textarea", "title", "xmp"},
            clean_content_tags=set(),
        )
    )
    assert reader.deepest < 100
