"""Cleaning text: bounds, normal forms, markup that may stay, and attacks that may not."""

import re
from collections.abc import Callable, Mapping, Set
from html.parser import HTMLParser
from itertools import product

import pytest
from hypothesis import given, strategies as st

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import (
    clean_html,
    clean_name,
    clean_plain,
    clean_term_description,
    clean_text,
    clean_title,
    fold,
)
from tests.unit.core.vector_rows import quick_settings
from tests.unit.core.xss_vectors import VECTORS

Clean = Callable[[str], str]
Allowed = Mapping[str, Set[str]]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The elements that may stay, with their attributes, written out: rules loosened by mistake have to fail here.
INLINE: Allowed = dict.fromkeys(
    words("abbr b bdi cite code del em i ins mark q s small strong sub sup u"), words("lang title")
)
TERM: Allowed = {
    **dict.fromkeys(words("abbr b blockquote cite code del em i ins q s strike strong sub sup"), words("lang title")),
    "a": words("href lang title"),
}
DESCRIPTION: Allowed = {
    **dict.fromkeys(
        words("""abbr address article aside b bdi blockquote br caption center cite code dd dfn div dl dt em
            figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i kbd mark p pre q rp rt ruby s samp section small
            span strike strong sub summary sup table tbody tfoot thead tr tt u ul var wbr"""),
        words("dir lang title"),
    ),
    "a": words("dir href hreflang lang title"),
    "col": words("dir lang span title"),
    "colgroup": words("dir lang span title"),
    "del": words("datetime dir lang title"),
    "details": words("dir lang open title"),
    "img": words("alt dir height lang src title width"),
    "ins": words("datetime dir lang title"),
    "li": words("dir lang title value"),
    "ol": words("dir lang reversed start title"),
    "td": words("colspan dir lang rowspan title"),
    "th": words("colspan dir lang rowspan scope title"),
    "time": words("datetime dir lang title"),
}
# The elements and attributes of HTML, obsolete ones included, and some of SVG and MathML.
ELEMENTS = words("""a abbr acronym address animate annotation-xml applet area article aside audio b base basefont bdi
    bdo bgsound big blink blockquote body br button canvas caption center circle cite code col colgroup command
    content data datalist dd defs del desc details dfn dialog dir div dl dt em embed fencedframe fieldset figcaption
    figure font footer foreignobject form frame frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image
    img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu menuitem meta meter
    mglyph mi mtext multicol nav nextid nobr noembed noframes noscript object ol optgroup option output p param path
    picture plaintext portal pre progress q rb rp rt rtc ruby s samp script search section select selectedcontent set
    shadow slot small source spacer span strike strong style sub summary sup svg table tbody td template text textarea
    tfoot th thead time title tr track tt u ul use var video wbr xmp x-custom""")
# In two parts, because a tag may have 100 attributes.
ATTRIBUTES = (
    words("""accept accesskey action align allow alt archive async autofocus autoplay background behavior bgcolor
        border cite class classid code codebase color cols colspan content contenteditable controls coords data data-x
        datetime dir disabled download draggable enctype exportparts face fill filter for form formaction formtarget
        frame height hidden href hreflang http-equiv id imagesrcset inert integrity is ismap itemid itemprop itemscope
        itemtype kind lang language list longdesc loop lowsrc manifest media method multiple muted name nonce
        object"""),
    words("""onanimationend onbegin onbeforetoggle onblur onclick onerror onfocus onload onmouseover onpointerenter
        ontoggle open part pattern ping placeholder popover popovertarget poster profile readonly referrerpolicy rel
        required reversed role rowspan sandbox scope shape size sizes slot span spellcheck src srcdoc srclang srcset
        start style summary tabindex target title translate type usemap value width wrap xlink:href xml:base
        xmlns"""),
)
# Elements that browsers drop outside of a table.
PARENTS = {
    **dict.fromkeys(("caption", "colgroup", "tbody", "tfoot", "thead"), "<table>{}</table>"),
    **dict.fromkeys(("td", "th"), "<table><tbody><tr>{}</tr></tbody></table>"),
    "col": "<table><colgroup>{}</colgroup></table>",
    "tr": "<table><tbody>{}</tbody></table>",
}
# Elements whose text is removed too, those of SVG and MathML included; the text of all others stays.
DROPPED = words("""animate annotation-xml circle defs desc g iframe math mglyph mi mtext noembed noframes noscript
    object path script set style svg template text textarea title use xmp""")
CLEANERS: list[tuple[Clean, Allowed]] = [
    (clean_html, DESCRIPTION),
    (clean_title, INLINE),
    (clean_term_description, TERM),
    (lambda text: clean_name(text, 5000), {}),
    (lambda text: clean_plain(text, 5000), {}),
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


def assert_harmless(text: str, allowed: Allowed) -> None:
    reader = TagCollector()
    reader.feed(text)
    reader.close()
    for tag, attributes in reader.tags:
        assert tag in allowed, text
        assert attributes.keys() <= allowed[tag], text
        for name in ("href", "src"):
            scheme = re.match(r"\s*([a-z][a-z0-9+.-]*):", attributes.get(name) or "", re.IGNORECASE)
            assert scheme is None or scheme[1] in ("http", "https", "mailto"), text
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\r\u2028]", text), text
    assert not re.search(r"<(script|iframe|style|form|input|object|embed)\b", text, re.IGNORECASE), text


def test_enough_attack_vectors_are_tested() -> None:
    assert len(VECTORS) >= 60


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
@pytest.mark.parametrize("vector", VECTORS)
def test_attack_vectors_are_neutralized(vector: str, clean: Clean, allowed: Allowed) -> None:
    for text in (vector, f"before {vector} after", f"<b>{vector}</b>", vector + "\n" + vector):
        cleaned = clean(text)
        assert_harmless(cleaned, allowed)
        assert clean(cleaned) == cleaned


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
def test_only_allowed_elements_and_attributes_stay(clean: Clean, allowed: Allowed) -> None:
    for names in ATTRIBUTES:
        values = " ".join(f'{name}="https://example.org/"' for name in sorted(names))
        for element in ELEMENTS:
            for text in (f"<{element} {values}>", f"<{element} {values}>x</{element}>", f"<{element}/onclick=x()>"):
                assert_harmless(clean(text), allowed)


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
def test_exactly_the_allowed_markup_stays(clean: Clean, allowed: Allowed) -> None:
    kept: dict[str, set[str]] = {}
    for element, names in product(ELEMENTS, ATTRIBUTES):
        values = " ".join(f'{name}="https://example.org/"' for name in sorted(names))
        reader = TagCollector()
        reader.feed(clean(PARENTS.get(element, "{}").format(f"<{element} {values}>x</{element}>")))
        for tag, attributes in reader.tags:
            if tag == element:
                kept.setdefault(element, set()).update(attributes)
    assert kept == allowed


@pytest.mark.parametrize(("clean", "_allowed"), CLEANERS)
def test_text_of_scripts_styles_and_frames_is_removed(clean: Clean, _allowed: Allowed) -> None:
    assert {element for element in ELEMENTS if "secret" not in clean(f"<{element}>secret</{element}>")} == DROPPED


@pytest.mark.parametrize(("clean", "allowed"), CLEANERS)
def test_sanitizing_any_tag_soup_is_idempotent(clean: Clean, allowed: Allowed) -> None:
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


@pytest.mark.parametrize("clean", [clean for clean, _ in CLEANERS])
@pytest.mark.parametrize(
    "element",
    sorted(words("iframe math noembed noframes noscript object script style svg template textarea title xmp")),
)
def test_content_of_dropped_elements_is_removed(element: str, clean: Clean) -> None:
    """The text of these elements is no text for readers: style sheets, scripts, replacements."""
    assert clean(f"before <{element}>p {{ color: red }}</{element}>after") == "before after"


@quick_settings
@given(st.text())
def test_text_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(text.upper().lower()) == fold(text.upper())


@quick_settings
@given(st.text(max_size=60))
def test_plain_text_never_gains_markup(text: str) -> None:
    try:
        assert_harmless(clean_plain(text), {})
        assert_harmless(clean_title(text), INLINE)
    except InvalidValue:
        assert not text.isprintable()
