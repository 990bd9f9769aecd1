"""Cleaning text: bounds, normal forms, markup that may stay, and attacks that may not."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import (
    ATTRIBUTES,
    DESCRIPTION_ELEMENTS,
    INLINE_ELEMENTS,
    TERM_ELEMENTS,
    clean_html,
    clean_name,
    clean_plain,
    clean_term_description,
    clean_text,
    clean_title,
    fold,
)
from tests.core.vector_rows import quick_settings
from tests.core.xss_vectors import VECTORS

Clean = Callable[[str], str]
CLEANERS: list[tuple[Clean, frozenset[str]]] = [
    (clean_html, DESCRIPTION_ELEMENTS),
    (clean_title, INLINE_ELEMENTS),
    (clean_term_description, TERM_ELEMENTS),
    (lambda text: clean_name(text, 500), frozenset()),
    (clean_plain, frozenset()),
]
PIECES = [
    "<b>",
    "</b>",
    "<p>",
    "</p>",
    "<table>",
    "<td>",
    "</table>",
    "<svg>",
    "</svg>",
    "<a href='x'>",
    "</a>",
]
PIECES += [
    "<pre>",
    "</pre>",
    "\n",
    "&lt;",
    "&amp;",
    "&",
    ";",
    "<",
    ">",
    "'",
    '"',
    "<!--",
    "-->",
    "<script>",
    "x",
]
PIECES += ["</script>", "<style>", "<li>", "<div>", "</div>", "&#1;", "&nbsp;", "é", "e\u0301", "\x00", " 3 "]
tag_soups = st.lists(st.sampled_from(PIECES) | st.text(max_size=3).filter(str.isprintable), max_size=12).map("".join)


class TagCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def assert_harmless(text: str, allowed: frozenset[str]) -> None:
    reader = TagCollector()
    reader.feed(text)
    reader.close()
    for tag, attributes in reader.tags:
        assert tag in allowed, text
        assert attributes.keys() <= set(ATTRIBUTES["*"]) | set(ATTRIBUTES.get(tag, ())), text
        for name in ("href", "src"):
            scheme = re.match(r"\s*([a-z][a-z0-9+.-]*):", attributes.get(name) or "", re.IGNORECASE)
            assert scheme is None or scheme[1] in ("http", "https", "mailto"), text
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\r\u2028]", text), text
    assert not re.search(r"<(script|iframe|style|form|input|object|embed)\b", text, re.IGNORECASE), text


def test_enough_attack_vectors_are_tested() -> None:
    assert len(VECTORS) >= 60


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
@pytest.mark.parametrize("vector", VECTORS)
def test_attack_vectors_are_neutralized(vector: str, clean: Clean, allowed: frozenset[str]) -> None:
    for text in (vector, f"before {vector} after", f"<b>{vector}</b>", vector + "\n" + vector):
        cleaned = clean(text)
        assert_harmless(cleaned, allowed)
        assert clean(cleaned) == cleaned


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
def test_sanitizing_any_tag_soup_is_idempotent(clean: Clean, allowed: frozenset[str]) -> None:
    @quick_settings
    @given(tag_soups)
    def check(soup: str) -> None:
        try:
            cleaned = clean(soup)
        except InvalidValue:
            return
        assert_harmless(cleaned, allowed)
        assert clean(cleaned) == cleaned

    check()


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("  a\r\nb\rc\u2028d \t", "a\nb\nc\nd"),
        ("Nul\x00byte\x1f\x7f\x85", "Nulbyte"),
        ("e\u0301", "é"),
        ("tab\tstays", "tab\tstays"),
        ("\\n stays \\\\", "\\n stays \\\\"),
    ],
)
def test_text_is_normalized(text: str, stored: str) -> None:
    assert clean_text(text, 100) == stored


def test_text_length_is_limited() -> None:
    assert clean_text("é" * 10, 10) == "é" * 10
    with pytest.raises(InvalidValue, match="at most 10 characters"):
        clean_text("é" * 11, 10)
    with pytest.raises(InvalidValue, match="surrogate"):
        clean_text("a\ud800b", 10)
    with pytest.raises(InvalidValue):
        clean_name("n" * 201)
    assert clean_name("n" * 200) == "n" * 200
    assert clean_title("t" * 5000) == "t" * 5000
    assert clean_html("word " * 40_000) == ("word " * 40_000).strip()


@pytest.mark.parametrize(
    ("title", "stored"),
    [
        ("It's \"quoted\" -- and... 1990's 2x3 (c) <3", "It's \"quoted\" -- and... 1990's 2x3 (c) <3"),
        ('Back\\slash \\\\ \\n "q"', 'Back\\slash \\\\ \\n "q"'),
        ("Emoji 🎉👨‍👩‍👧 event", "Emoji 🎉👨‍👩‍👧 event"),
        ("  padded   title  ", "padded   title"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("two&NewLine;lines&Tab;and&#10;&amp;", "two lines and &"),
        ("Rock & Roll, R&D, AT&T", "Rock & Roll, R&D, AT&T"),
        ("Rock &amp; Roll &copy;", "Rock & Roll ©"),
        ("5 > 3 & 2 < 4", "5 > 3 & 2 < 4"),
        ("<b>Bold</b> & <i>more</i>", "<b>Bold</b> & <i>more</i>"),
        ("<b>Bold", "<b>Bold</b>"),
        ("<p>No <a href='https://example.org/'>blocks</a></p>", "No blocks"),
        # Escaped where it would read as markup or as another character.
        ("How to write &lt;b&gt; & more", "How to write &lt;b&gt; &amp; more"),
        ("Food&section", "Food&amp;section"),
        ("&amp;copy;", "&amp;copy;"),
        ("0", "0"),
    ],
)
def test_titles_are_preserved(title: str, stored: str) -> None:
    assert clean_title(title) == stored
    assert clean_title(stored) == stored


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('<b>Bold</b> & "q" category <script>alert(1)</script>', 'Bold & "q" category'),
        ("<b>1</b> Main <script>x</script> & Co", "1 Main & Co"),
        ("Rock &amp;amp; Roll", "Rock & Roll"),
        ("under 12 <3 and > 3", "under 12 <3 and > 3"),
        ("a \n\t b\u00a0c", "a b c"),
        ("Food&section", "Food&section"),
        ("Emoji 🎉", "Emoji 🎉"),
        ("<script>alert(1)</script>", ""),
        ("0", "0"),
    ],
)
def test_plain_fields_lose_only_markup(text: str, stored: str) -> None:
    assert clean_plain(text) == stored
    assert clean_name(text) == stored


@pytest.mark.parametrize(
    ("description", "stored"),
    [
        ("Some <b>bold</b> text & more", "Some <b>bold</b> text &amp; more"),
        ("Some <b>bold</b> text &amp; more", "Some <b>bold</b> text &amp; more"),
        ('<p>x</p><script>y</script><a href="http://a.test">l</a>', 'x<a href="http://a.test">l</a>'),
    ],
)
def test_term_description_keeps_links_and_emphasis(description: str, stored: str) -> None:
    assert clean_term_description(description) == stored


@pytest.mark.parametrize(
    ("description", "stored"),
    [
        ("line one\nline two", "line one\nline two"),
        ("A &amp; B & C &lt;x&gt;", "A &amp; B &amp; C &lt;x&gt;"),
        ('<p class="x" lang="fr">P</p>', '<p lang="fr">P</p>'),
        ('<a href="mailto:a@example.org">m</a>', '<a href="mailto:a@example.org">m</a>'),
        ('<img src="https://a.test/x.png" alt="X">', '<img src="https://a.test/x.png" alt="X">'),
        ("<ul>\n<li>a</li>\n</ul>", "<ul>\n<li>a</li>\n</ul>"),
        ("<div>a<form><p>b</form></div>", "<div>a<p>b</p></div>"),
        ("<svg><path d='M0 0'/></svg>icon", "icon"),
        ("<!-- wp:paragraph --><p>In block</p><!-- /wp:paragraph -->", "<p>In block</p>"),
        ("", ""),
        ("0", "0"),
    ],
)
def test_description_keeps_markup(description: str, stored: str) -> None:
    assert clean_html(description) == stored


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Été À Zürich", "ete a zurich"),
        ("STRAẞE straße", "strasse strasse"),
        ("İstanbul Łódź Ørsted Æon", "istanbul lodz orsted aeon"),
        ("it’s “so” – so", 'it\'s "so" - so'),
        ("  a\n\tb\u00a0c ", "a b c"),
        ("ﬁne Ⅷ １２", "fine viii 12"),
        ("हिन्दी", "हिन्दी"),
        ("が 각", "が 각"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_text_folding(text: str, folded: str) -> None:
    assert fold(text) == folded


@quick_settings
@given(st.text())
def test_text_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(text.upper().lower()) == fold(text.upper())


@quick_settings
@given(st.text(max_size=60))
def test_plain_text_never_gains_markup(text: str) -> None:
    try:
        assert_harmless(clean_plain(text), frozenset())
        assert_harmless(clean_title(text), INLINE_ELEMENTS)
    except InvalidValue:
        assert not text.isprintable()
