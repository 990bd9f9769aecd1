"""Limit, normalize and sanitize user-supplied text before it is stored; read search queries; check custom CSS.

Sanitizing is idempotent and keeps all harmless text: quotes, dashes, smileys and backslashes stay as written.
"""

import html
import re
import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

import nh3

from kalends.core.errors import InvalidValue
from kalends.core.html_text import SCHEME, element_set, enforce_html_limits, filter_attribute
from kalends.core.messages import Message, gettext_noop as N_

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
# Elements removed with their content. Other disallowed elements keep their text.
DROPPED_ELEMENTS: Final = element_set("iframe noembed noframes object script style textarea title xmp") | {
    f"x-{name}"
    for name in ("math", "noscript", "svg", "template")  # renamed by enforce_html_limits
}
URL_SCHEMES: Final = frozenset(["http", "https", "mailto"])
# Options for text without media library references. Filtering references is slow, because it runs for each attribute.
NO_REFERENCE_OPTIONS: Final[Mapping[str, Any]] = {"url_schemes": {*URL_SCHEMES}}
REFERENCE_OPTIONS: Final[Mapping[str, Any]] = {
    "url_schemes": {*URL_SCHEMES, SCHEME},
    "attribute_filter": filter_attribute,
}

# Sanitizing repeats until nothing changes. A text that needs more rounds than this is rejected.
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
    """Limit and normalize any text: NFC, LF line endings, no other control characters except tabs."""
    _check_length(text, limit)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("contains an unpaired surrogate, which is not a valid character.") from None
    return _check_length(_normalize(text).strip(), limit)


def _check_length(text: str, limit: int) -> str:
    """Check the length. Callers do this before and after sanitizing, because sanitizing can make text longer."""
    if len(text) > limit:
        raise InvalidValue("must have at most {limit} characters; it has {length}.", limit=limit, length=len(text))
    return text


def clean_html(text: str, limit: int = 256_000) -> str:
    """Sanitize a description's HTML: allow-listed elements, and links to http, https and mailto."""
    escaped = _escape_loose_ampersands(clean_text(text, limit))
    return _check_length(_sanitize(escaped, DESCRIPTION_ELEMENTS, ATTRIBUTES), limit)


def clean_term_description(text: str, limit: int = 20_000) -> str:
    """Sanitize a term description's HTML: links and emphasis, no blocks (behaviour 4.8)."""
    escaped = _escape_loose_ampersands(clean_text(text, limit))
    return _check_length(_sanitize(escaped, TERM_ELEMENTS, {"a": {"href", "title"}, "abbr": {"title"}}), limit)


def clean_title(text: str, limit: int = 10_000) -> str:
    """Sanitize a title: one line with inline markup. Escape characters only if they would be read as markup."""
    line = _replace_line_breaks(clean_text(text, limit))
    if "<" not in line and "&" not in line:
        return line
    # An entity such as `&NewLine;` can bring back a newline.
    escaped = _replace_line_breaks(_sanitize(_escape_loose_ampersands(line), INLINE_ELEMENTS, {}))
    plain = html.unescape(escaped)
    if _LOOKS_LIKE_TAG.search(escaped) or _sanitize(plain, INLINE_ELEMENTS, {}) != escaped:
        return _check_length(escaped, limit)
    return _check_length(plain, limit)


def clean_name(text: str, limit: int = 200) -> str:
    """Sanitize a term name as plain text."""
    return clean_plain(text, limit)


def clean_plain(text: str, limit: int = 1000) -> str:
    """Sanitize one line of plain text: no markup, entities decoded; safe even if interpreted as HTML."""
    current = _to_single_line(clean_text(text, limit))
    for _ in range(MAX_ROUNDS):
        if "<" not in current and "&" not in current:
            return _check_length(current, limit)
        # Removing a tag can join the text around it into another tag, so repeat until nothing changes.
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
    """Decode entities, even if they were escaped several times (`&amp;amp;lt;`)."""
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
    """Fold text for comparison: ignore case and accents, and use single spaces."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(character for character in decomposed if not _is_accent(character))
    return " ".join(unicodedata.normalize("NFC", bare.translate(_PLAIN_LETTERS)).split())


# Plain-keyboard equivalents for letters and marks that Unicode does not decompose.
_PLAIN_LETTERS: Final = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ł": "l", "þ": "th", "ŧ": "t",
        "‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-", "–": "-", "—": "-",
    }
)  # fmt: skip


def _is_accent(character: str) -> bool:
    """Return whether a character is an accent or a Hebrew or Arabic vowel point, but not an Indic vowel sign."""
    combining = unicodedata.combining(character)
    return combining >= 200 or 10 <= combining <= 35


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", _CONTROL.sub("", _LINE_END.sub("\n", text)))


def _escape_loose_ampersands(text: str) -> str:
    """Escape ampersands that do not begin an entity: browsers would read `&sect` in `Food&section` as §."""
    return _LOOSE_AMPERSAND.sub("&amp;", text)


def _sanitize(text: str, tags: Set[str], attributes: Mapping[str, Set[str]]) -> str:
    """Sanitize until nothing changes, because removing an element can change how the rest is parsed."""
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
        # A numeric entity can bring back characters that clean_text removed. Browsers skip a newline after <pre>.
        cleaned = _OUTER_SPACE.sub("", _PRE_START.sub(r"\1", _normalize(cleaned)))
        if cleaned == current:
            return cleaned
        current = cleaned
    raise InvalidValue(MALFORMED_HTML)


# Custom CSS is checked when it is stored, so pages never load anything from other hosts.

MAX_BYTES: Final = 16_384
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CSS_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Syntax that loads other style sheets, ends the style element, or hides a URL from this check.
_FORBIDDEN: Final = {
    "@import": "@import",
    "expression(": N_("expressions"),
    "\\": N_("backslashes"),
    "<": N_("the character <"),
}
# Matches URLs and strings in a style sheet as browsers parse them: a string ends at its closing quotation mark or at
# the end of the line, an unquoted URL at the closing parenthesis.
_TOKEN: Final = re.compile(
    r"""(?P<url>url\([ \t\n]*)?(?:"(?P<double>[^"\n]*)|'(?P<single>[^'\n]*))["'\n]?|url\((?P<bare>[^)]*)""",
    re.IGNORECASE | re.ASCII,
)
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_IMAGE: Final = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE | re.ASCII)
# Schemes that load something or run a script. Browsers treat `http:host` and `http:/host` like `http://host`.
_LOADED: Final = frozenset(["blob", "file", "filesystem", "ftp", "http", "https", "javascript", "ws", "wss"])


def read_custom_css(value: str) -> str:
    """Return the CSS without comments. Raise InvalidValue if it is too long or contains anything forbidden."""
    css, rest = "", value.replace("\r\n", "\n").strip()
    while css != rest:  # removing a comment can create another one
        css, rest = rest, _COMMENT.sub("", rest).strip()
    if len(css.encode()) > MAX_BYTES:
        raise InvalidValue("must have at most {limit} bytes.", limit=MAX_BYTES)
    lowered = css.lower()
    found = [name for part, name in _FORBIDDEN.items() if part in lowered]
    found += [N_("control characters")] if _CSS_CONTROL.search(css) else []
    if found:
        raise InvalidValue("must not contain {part}.", part=Message(found[0]))
    for token in _TOKEN.finditer(css):
        _check_address(token)
    return css


def _check_address(token: re.Match[str]) -> None:
    """Raise InvalidValue unless a URL is relative or a `data:` image.

    Functions such as `image-set()` accept a string as a URL, even through a custom property. Therefore, also reject
    strings that contain the URL of another host.
    """
    is_url = token["url"] is not None or token["bare"] is not None
    text = next(part for part in (token["double"], token["single"], token["bare"]) if part is not None)
    # Browsers ignore these characters in URLs.
    address = re.sub(r"[\t\n]", "", text).strip(" ")
    if token["bare"] is not None:
        address = address.strip("\"'")
    scheme = _SCHEME.match(address)
    is_foreign = address.startswith("//") or (scheme and (is_url or scheme[1].lower() in _LOADED))
    if is_foreign and not _IMAGE.match(address):
        raise InvalidValue(
            "must not contain the address {address}: only relative addresses and `data:` images are allowed.",
            address=address[:100],
        )


MAX_SEARCH_LENGTH: Final = 200
MAX_SEARCH_WORDS: Final = 20

# A quoted phrase (the closing quotation mark may be missing) or a word, optionally after a minus sign.
_WORD = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class SearchWords:
    """Required and excluded words, folded like the stored text."""

    required: tuple[str, ...]
    excluded: tuple[str, ...]


def read_search(text: str, limit: int = MAX_SEARCH_LENGTH) -> SearchWords:
    """Parse a query: every word and `"phrase"` must occur, a `-word` must not (behaviour 8.4)."""
    cleaned = clean_text(text, limit)
    required: list[str] = []
    excluded: list[str] = []
    for match in _WORD.finditer(cleaned.replace("“", '"').replace("”", '"')):
        word = fold(match["phrase"] or match["word"] or "")
        if word:
            (excluded if match["minus"] else required).append(word)
    if not required and not excluded and fold(cleaned):
        required.append(fold(cleaned))
    if not required and not excluded:
        raise InvalidValue("must contain at least one word.")
    if len(required) + len(excluded) > MAX_SEARCH_WORDS:
        raise InvalidValue("must contain at most {maximum} words.", maximum=MAX_SEARCH_WORDS)
    return SearchWords(tuple(dict.fromkeys(required)), tuple(dict.fromkeys(excluded)))


def like_pattern(word: str) -> str:
    """Return the LIKE pattern that finds a word anywhere, with % and _ escaped."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def has_trigram(word: str) -> bool:
    """Return whether the word has three consecutive letters or digits, as a trigram index requires."""
    return re.search(r"[^\W_]{3}", word) is not None
