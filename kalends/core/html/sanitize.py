"""User-supplied text: limited, normalized and sanitized before it is stored; folded for search.

Sanitizing is idempotent. Nothing is decorated and nothing harmless is lost: quotes, dashes, smileys and backslashes
stay as written.
"""

import html
import re
import unicodedata
from collections.abc import Mapping, Set
from typing import Any, Final

import nh3

from kalends.core.errors import InvalidValue
from kalends.core.html.inline_images import SCHEME, filter_attribute
from kalends.core.html.limits import element_set, enforce_html_limits
from kalends.core.html.text import to_paragraphs, to_plain_text
from kalends.core.messages import gettext_noop as N_

__all__ = [
    "clean_html",
    "clean_name",
    "clean_plain",
    "clean_term_description",
    "clean_text",
    "clean_title",
    "fold",
    "to_paragraphs",
    "to_plain_text",
]

INLINE_ELEMENTS: Final = element_set("abbr b bdi cite code del em i ins mark q s small strong sub sup u")
TERM_ELEMENTS: Final = element_set("a abbr b blockquote cite code del em i ins q s strike strong sub sup")
DESCRIPTION_ELEMENTS: Final = INLINE_ELEMENTS | element_set(
    "a address article aside blockquote br caption center col colgroup dd details dfn div dl dt figcaption "
    "figure footer h1 h2 h3 h4 h5 h6 header hr img kbd li ol p pre rp rt ruby samp section span strike "
    "summary table tbody td tfoot th thead time tr tt ul var wbr"
)
ATTRIBUTES: Final[Mapping[str, Set[str]]] = {
    "*": {"dir", "lang", "title"},
    "a": {"href", "hreflang"},
    "col": {"span"},
    "colgroup": {"span"},
    "del": {"datetime"},
    "details": {"open"},
    "img": {"alt", "height", "src", "width"},
    "ins": {"datetime"},
    "li": {"value"},
    "ol": {"reversed", "start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
# Removed together with their content; of all other elements that are not allowed the text is kept.
DROPPED_ELEMENTS: Final = element_set("iframe noembed noframes object script style textarea title xmp") | {
    f"x-{name}"
    for name in ("math", "noscript", "svg", "template")  # renamed by enforce_html_limits
}
URL_SCHEMES: Final = frozenset(["http", "https", "mailto"])
# References to images of the media library need a function per attribute, which is slow.
NO_REFERENCE_OPTIONS: Final[Mapping[str, Any]] = {"url_schemes": {*URL_SCHEMES}}
REFERENCE_OPTIONS: Final[Mapping[str, Any]] = {
    "url_schemes": {*URL_SCHEMES, SCHEME},
    "attribute_filter": filter_attribute,
}

# Sanitizing is repeated until nothing changes; text that needs more rounds than this is rejected.
MAX_ROUNDS: Final = 6
MALFORMED_HTML: Final = N_("contains malformed HTML; close all tags in order.")

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE_END = re.compile(r"\r\n?|[\u2028\u2029]")
_SPACE = re.compile(r"\s+")
_PRE_START = re.compile(r"(<pre(?: [^>]*)?>)\n+")
_OUTER_SPACE = re.compile(r"\A(?:\s|&nbsp;)++|(?:(?<!\s)(?<!&nbsp;)(?:\s|&nbsp;)++)\Z")
_LOOSE_AMPERSAND = re.compile(r"&(?!(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);)")
_REPEATED_AMPERSAND = re.compile(r"&(?:amp;)+", re.IGNORECASE)
_MARKUP_CHARACTER = re.compile(r"[<>&\xa0]")
_LOOKS_LIKE_TAG = re.compile(r"&lt;\s*[a-zA-Z/!?]")


def clean_text(text: str, limit: int) -> str:
    """Limit and normalize any text: NFC, line ends \\n, no other control characters except tabs."""
    _check_length(text, limit)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("contains an unpaired surrogate, which is not a valid character.") from None
    return _check_length(_normalize(text).strip(), limit)


def _check_length(text: str, limit: int) -> str:
    """Return the text; raise InvalidValue if it is too long. Sanitizing may lengthen it, so this is checked twice."""
    if len(text) > limit:
        raise InvalidValue("must have at most {limit} characters; it has {length}.", limit=limit, length=len(text))
    return text


def clean_html(text: str, limit: int = 256_000) -> str:
    """Sanitize the HTML of a description: an allow-list of elements, and links to http, https and mailto."""
    escaped = _escape_loose_ampersands(clean_text(text, limit))
    return _check_length(_sanitize(escaped, DESCRIPTION_ELEMENTS, ATTRIBUTES), limit)


def clean_term_description(text: str, limit: int = 20_000) -> str:
    """Sanitize the HTML of a term description: links and emphasis, no blocks (behaviour 4.8)."""
    escaped = _escape_loose_ampersands(clean_text(text, limit))
    return _check_length(_sanitize(escaped, TERM_ELEMENTS, {"a": {"href", "title"}, "abbr": {"title"}}), limit)


def clean_title(text: str, limit: int = 10_000) -> str:
    """Sanitize a title: one line with inline markup; characters are escaped only if they would be read as markup."""
    line = _replace_line_breaks(clean_text(text, limit))
    if "<" not in line and "&" not in line:
        return line
    # An entity (`&NewLine;`) can reintroduce a line end.
    escaped = _replace_line_breaks(_sanitize(_escape_loose_ampersands(line), INLINE_ELEMENTS, {}))
    plain = html.unescape(escaped)
    if _LOOKS_LIKE_TAG.search(escaped) or _sanitize(plain, INLINE_ELEMENTS, {}) != escaped:
        return _check_length(escaped, limit)
    return _check_length(plain, limit)


def clean_name(text: str, limit: int = 200) -> str:
    """Sanitize the name of a term: plain text."""
    return clean_plain(text, limit)


def clean_plain(text: str, limit: int = 1000) -> str:
    """Sanitize plain text on one line: no markup, entities decoded; safe even if it is interpreted as HTML."""
    current = _to_single_line(clean_text(text, limit))
    for _ in range(MAX_ROUNDS):
        if "<" not in current and "&" not in current:
            return _check_length(current, limit)
        # Removing a tag may join the surrounding text to another tag, so this is repeated until nothing changes.
        cleaned = _to_single_line(_sanitize(_escape_loose_ampersands(current), frozenset(), {}))
        if cleaned == current:
            return _check_length(current, limit)
        current = cleaned
    raise InvalidValue(MALFORMED_HTML)


def _replace_line_breaks(text: str) -> str:
    return text.replace("\n", " ").replace("\t", " ")


def _to_single_line(text: str) -> str:
    return _SPACE.sub(" ", _normalize(_resolve_entities(text))).strip()


def _resolve_entities(text: str) -> str:
    """Decode entities, including those that were escaped several times (`&amp;amp;lt;`)."""
    if "&" not in text:
        return text
    text = _REPEATED_AMPERSAND.sub("&", text)
    for _ in range(MAX_ROUNDS):
        resolved = _REPEATED_AMPERSAND.sub("&", html.unescape(_escape_loose_ampersands(text)))
        if resolved == text:
            return text
        text = resolved
    raise InvalidValue(MALFORMED_HTML)


def fold(text: str) -> str:
    """Return the form in which stored text and queries are compared: no case, no accents, single spaces."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(character for character in decomposed if not _is_accent(character))
    return " ".join(unicodedata.normalize("NFC", bare.translate(_PLAIN_LETTERS)).split())


# Letters and marks that Unicode does not decompose, as typed on a plain keyboard.
_PLAIN_LETTERS: Final = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "þ": "th", "ŧ": "t",
        "‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-", "–": "-", "—": "-",
    }
)  # fmt: skip


def _is_accent(character: str) -> bool:
    """Return whether a character is an accent or a Hebrew or Arabic vowel point; Indic vowel signs are not."""
    combining = unicodedata.combining(character)
    return combining >= 200 or 10 <= combining <= 35


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", _CONTROL.sub("", _LINE_END.sub("\n", text)))


def _escape_loose_ampersands(text: str) -> str:
    """Escape ampersands that do not begin an entity: browsers would read `&sect` in `Food&section` as §."""
    return _LOOSE_AMPERSAND.sub("&amp;", text)


def _sanitize(text: str, tags: Set[str], attributes: Mapping[str, Set[str]]) -> str:
    """Sanitize until nothing changes: removing an element can change how the surrounding text is parsed."""
    if not _MARKUP_CHARACTER.search(text):
        return text
    current = text
    for _ in range(MAX_ROUNDS):
        cleaned = nh3.clean(
            enforce_html_limits(current),
            tags=set(tags),
            clean_content_tags=set(DROPPED_ELEMENTS),
            attributes={tag: set(names) for tag, names in attributes.items()},
            link_rel=None,
            **(REFERENCE_OPTIONS if f"{SCHEME}:" in current else NO_REFERENCE_OPTIONS),
        )
        # A numeric entity can reintroduce characters that clean_text removed; browsers skip a line end after <pre>.
        cleaned = _OUTER_SPACE.sub("", _PRE_START.sub(r"\1", _normalize(cleaned)))
        if cleaned == current:
            return cleaned
        current = cleaned
    raise InvalidValue(MALFORMED_HTML)
