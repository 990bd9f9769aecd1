"""Limits on HTML: the number of tags, their nesting depth, the number of attributes per tag.

The cost of sanitizing grows with the square of the last two, so these limits are checked first, in linear time. Tags
are parsed as browsers parse them; in doubtful cases the count is too high, never too low. Nothing is sanitized here.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from kalends.core.errors import InvalidValue

MAX_TAGS: Final = 10_000
MAX_DEPTH: Final = 100
MAX_ATTRIBUTES: Final = 100


def element_set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Browsers parse the content of these elements by other rules. They are renamed to elements unknown to browsers.
FOREIGN: Final = element_set("frameset math noscript plaintext select svg template")
# The content of these is text up to their end tag.
RAW_TEXT: Final = element_set("iframe noembed noframes script style textarea title xmp")
# Elements without content, including obsolete ones.
VOID: Final = element_set(
    "area base basefont bgsound br col embed hr image img input keygen link meta param source track wbr"
)
# Elements whose end tag is optional.
OPTIONAL_END: Final = element_set("colgroup dd dt li option p tbody td tfoot th thead tr")
# Block elements, which cannot be inside a paragraph.
BLOCKS: Final = element_set(
    "address article aside blockquote center details div dl fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section summary table ul"
)
# Start tags that implicitly end these elements, in this order, if they are the innermost ones.
IMPLIED_ENDS: Final = dict.fromkeys(BLOCKS - {"table"}, ("p",)) | {
    "a": ("a",),
    "dd": ("p", "dt", "dd"),
    "dt": ("p", "dt", "dd"),
    "li": ("p", "li"),
    "option": ("option",),
    "tbody": ("p", "td", "th", "tr", "tbody", "thead"),
    "td": ("p", "td", "th"),
    "th": ("p", "td", "th"),
    "tr": ("p", "td", "th", "tr"),
}

# A tag as browsers parse it: only these characters separate attributes, a quotation mark counts only after an equals
# sign, and an unterminated tag extends to the end of the text. The possessive quantifiers (*+) never backtrack, which
# keeps the search linear.
_ATTRIBUTE = (
    r"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    r"(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+"
    r"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>\"'][^ \t\n\f\r>]*+)?+)?+"
)
TAG: Final = rf"<(?P<slash>/?)(?P<name>[a-zA-Z][^ \t\n\f\r/>]*+)(?P<rest>(?:[ \t\n\f\r/]++|{_ATTRIBUTE})*+)(?:>|\Z)"
_TOKEN = re.compile(TAG + r"|(?P<comment><!--)|(?P<other><[!?/])")
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_COMMENT_END = re.compile(r"(?<=<!--)-?>|--!?>")
_START = re.compile(r"<[a-zA-Z]")
_FOREIGN_TAG = re.compile(rf"<(/?)({'|'.join(sorted(FOREIGN))})(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII)


def enforce_html_limits(html: str) -> str:
    """Return the text prepared for the sanitizer; raise InvalidValue if sanitizing would be too expensive."""
    if "<" not in html:
        return html
    if len(_START.findall(html)) > MAX_TAGS:
        raise InvalidValue("must have at most {maximum} HTML tags.", maximum=MAX_TAGS)
    neutralized = _FOREIGN_TAG.sub(r"<\1x-\2", html)
    open_names: list[str] = []
    for name, is_end in _iter_tags(neutralized):
        if is_end:
            _close(name, open_names)
        else:
            _open(name, open_names)
        if len(open_names) > MAX_DEPTH:
            raise InvalidValue(
                "must nest HTML at most {maximum} levels deep; missing or misplaced end tags count too.",
                maximum=MAX_DEPTH,
            )
    return neutralized


def _iter_tags(html: str) -> Iterator[tuple[str, bool]]:
    """Yield the name of each tag and whether it is an end tag; skip comments and raw text."""
    position = 0
    while (token := _TOKEN.search(html, position)) is not None:
        position = token.end()
        if token["comment"]:
            ending = _COMMENT_END.search(html, position)
            position = ending.end() if ending else len(html)
        elif token["other"]:
            position = html.find(">", position) + 1 or len(html)
        else:
            _check_attributes(token["rest"])
            name = token["name"].lower() if token["name"].isascii() else token["name"]
            yield name, bool(token["slash"])
            if name in RAW_TEXT and not token["slash"]:
                ending = _raw_text_end(name).search(html, position)
                position = ending.start() if ending else len(html)


@cache
def _raw_text_end(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII)


def _check_attributes(text: str) -> None:
    if len(text) > MAX_ATTRIBUTES and len(_ATTRIBUTES.findall(text)) > MAX_ATTRIBUTES:
        raise InvalidValue("must have at most {maximum} attributes per HTML tag.", maximum=MAX_ATTRIBUTES)


def _open(name: str, open_names: list[str]) -> None:
    for implied_end in IMPLIED_ENDS.get(name, ()):
        if open_names and open_names[-1] == implied_end:
            open_names.pop()
    if name not in VOID:
        open_names.append(name)


def _close(name: str, open_names: list[str]) -> None:
    """Close the innermost element of this name if only elements with optional end tags are open inside it."""
    for depth in range(len(open_names) - 1, -1, -1):
        if open_names[depth] == name:
            del open_names[depth:]
            return
        if open_names[depth] not in OPTIONAL_END:
            return
