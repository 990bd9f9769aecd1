"""HTML processing: sanitizer limits, paragraphs from line breaks, plain text, and image references.

The sanitizer uses `enforce_html_limits` and `filter_attribute`; all other functions expect sanitized input.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import escape, unescape
from typing import Final

from kalends.core.errors import InvalidValue

MAX_TAGS: Final = 10_000
MAX_DEPTH: Final = 100
MAX_ATTRIBUTES: Final = 100


def element_set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Browsers parse the content of these elements differently, so `enforce_html_limits` renames them to unknown elements.
FOREIGN: Final = element_set("frameset math noscript plaintext select svg template")
# Elements whose content is text up to the end tag.
RAW_TEXT: Final = element_set("iframe noembed noframes script style textarea title xmp")
VOID: Final = element_set(
    "area base basefont bgsound br col embed hr image img input keygen link meta param source track wbr"
)
OPTIONAL_END: Final = element_set("colgroup dd dt li option p tbody td tfoot th thead tr")
# Elements that cannot be inside a paragraph.
BLOCKS: Final = element_set(
    "address article aside blockquote center details div dl fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section summary table ul"
)
# For each start tag, the elements that it implicitly ends if they are innermost, in this order.
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
    """Prepare text for the sanitizer; raise InvalidValue if sanitizing would be too expensive."""
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
    """Yield each tag's name and whether it is an end tag; skip comments and raw text."""
    position = 0
    while (token := _TOKEN.search(html, position)) is not None:
        position = token.end()
        if token["comment"]:
            ending = _COMMENT_END.search(html, position)
            position = ending.end() if ending else len(html)
        elif token["other"]:
            position = html.find(">", position) + 1 or len(html)
        else:
            text = token["rest"]
            if len(text) > MAX_ATTRIBUTES and len(_ATTRIBUTES.findall(text)) > MAX_ATTRIBUTES:
                raise InvalidValue("must have at most {maximum} attributes per HTML tag.", maximum=MAX_ATTRIBUTES)
            name = token["name"].lower() if token["name"].isascii() else token["name"]
            yield name, bool(token["slash"])
            if name in RAW_TEXT and not token["slash"]:
                ending = _raw_text_end(name).search(html, position)
                position = ending.start() if ending else len(html)


@cache
def _raw_text_end(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE | re.ASCII)


def _open(name: str, open_names: list[str]) -> None:
    for implied_end in IMPLIED_ENDS.get(name, ()):
        if open_names and open_names[-1] == implied_end:
            open_names.pop()
    if name not in VOID:
        open_names.append(name)


def _close(name: str, open_names: list[str]) -> None:
    """Close the innermost element with this name if only elements with optional end tags are open inside it."""
    for depth in range(len(open_names) - 1, -1, -1):
        if open_names[depth] == name:
            del open_names[depth:]
            return
        if open_names[depth] not in OPTIONAL_END:
            return


_TAG = re.compile(TAG)
_GAP = re.compile(r"\n[ \t]*+(?:\n[ \t]*+)++")
_TAG_OR_GAP = re.compile(TAG + "|" + _GAP.pattern)
_BLANK_LINES = re.compile(r"\n{3,}")
_SENTENCE_ENDS = frozenset(".,;:!?…。！？、：")
_LINE_END = re.compile(r"(?:<br ?/?>[ \t]*+)?+\n[ \t]*+")


def to_paragraphs(text: str) -> str:
    """Turn text between blank lines into paragraphs, and other newlines into line breaks."""
    if not text:
        return ""
    if "<" not in text:
        return "\n".join(map(_paragraph, filter(None, map(str.strip, _GAP.split(text) if "\n" in text else (text,)))))
    blocks: list[str] = []
    for is_block, part in _parts(text):
        if is_block:
            blocks.append(part.strip())
        else:
            # Split inline text into paragraphs, but never inside an inline element.
            blocks.extend(_paragraph(chunk) for chunk in map(str.strip, _chunks(part)) if chunk)
    return "\n".join(filter(None, blocks))


def to_plain_text(text: str) -> str:
    """Return the text without markup, with entities decoded and whitespace collapsed."""
    bare = _TAG.sub(_space_for_block, text) if "<" in text else text
    return _collapse(unescape(bare))


def to_single_line(text: str) -> str:
    """Return the text on one line. Put a dot between former blocks unless punctuation already separates them."""
    run = ""
    for line in filter(None, (line.removeprefix("- ") for line in to_plain_lines(text).split("\n"))):
        run += (" " if run[-1:] in _SENTENCE_ENDS else " · ") + line if run else line
    return run


def to_plain_lines(text: str) -> str:
    """Return the text without markup, with blank lines between paragraphs and dashes before list entries."""
    bare = _TAG.sub(_line_for_block, _collapse(text)) if "<" in text else text
    lines = "\n".join(map(_collapse, unescape(bare).split("\n")))
    return (_BLANK_LINES.sub("\n\n", lines) if "\n\n\n" in lines else lines).strip()


def _collapse(text: str) -> str:
    # The space is the only printable whitespace, so this fast test finds texts that need no change.
    if "  " not in text and text.isprintable():
        return text.strip(" ")
    return " ".join(text.split())


def _paragraph(text: str) -> str:
    return f"<p>{_LINE_END.sub('<br />\n', text) if '\n' in text else text}</p>"


def _chunks(text: str) -> Iterator[str]:
    begin = depth = 0
    for match in _TAG_OR_GAP.finditer(text):
        if match["name"]:
            depth += _depth_change(match)
        elif depth == 0:
            yield text[begin : match.start()]
            begin = match.end()
    yield text[begin:]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield inline text alternating with complete elements that are or contain blocks."""
    begin = depth = 0
    outermost = 0
    has_block = False
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if depth == 0:
            outermost = tag.start()
        if name in BLOCKS and not has_block:
            has_block = True
            yield False, text[begin:outermost]
            begin = outermost
        depth = max(depth + _depth_change(tag), 0)
        if depth == 0 and has_block:
            yield True, text[begin : tag.end()]
            begin = tag.end()
            has_block = False
    yield has_block, text[begin:]


def _depth_change(tag: re.Match[str]) -> int:
    if tag["name"].lower() in VOID:
        return 0
    return -1 if tag["slash"] else 1


def _line_for_block(tag: re.Match[str]) -> str:
    name, slash = tag["name"].lower(), tag["slash"]
    return _START_TAGS.get(name, "") if not slash else _END_TAGS.get(name, "")


# Replacements for tags in plain text; other tags are removed.
_START_TAGS = {**dict.fromkeys(BLOCKS, "\n\n"), **dict.fromkeys(("br", "tr", "dt", "dd", "hr"), "\n"),
               "td": " ", "th": " ", "li": "\n- "}  # fmt: skip
_END_TAGS = {**_START_TAGS, "tr": "", "dt": "", "dd": "", "li": ""}


def _space_for_block(tag: re.Match[str]) -> str:
    name = tag["name"].lower()
    return " " if name in BLOCKS or name in ("br", "li", "dt", "dd", "td", "th", "tr", "caption") else ""


# References to the media library in descriptions: `<img src="media:ID">`.

SCHEME: Final = "media"
REFERENCE: Final = re.compile(r"media:([1-9][0-9]{0,15})", re.ASCII)
_MARK: Final = f'src="{SCHEME}:'
_SOURCE: Final = re.compile(r'(?<=\ssrc=")[^"]*(?=")')
_URL_ATTRIBUTES: Final = ("href", "src", "cite")


def has_references(html: str) -> bool:
    return _MARK in html


def find_image_ids(html: str) -> list[int]:
    references = [REFERENCE.fullmatch(source) for source in find_sources(html)] if has_references(html) else []
    return [int(reference[1]) for reference in references if reference]


def find_sources(html: str) -> list[str]:
    if "<img" not in html:
        return []
    sources = [_SOURCE.search(tag[0]) for tag in _TAG.finditer(html) if tag["name"] == "img"]
    return [unescape(source[0]) for source in sources if source]


def resolve_references(html: str, urls: Mapping[int, str]) -> str:
    """Replace media library references with URLs; remove images without a URL."""
    if not has_references(html):
        return html

    def resolve(source: str) -> str | None:
        reference = REFERENCE.fullmatch(source)
        return urls.get(int(reference[1])) if reference else source

    return replace_sources(html, resolve)


def replace_sources(html: str, replace: Callable[[str], str | None]) -> str:
    """Replace image URLs in sanitized HTML; remove an image if `replace` returns None."""

    def replace_tag(tag: re.Match[str]) -> str:
        source = _SOURCE.search(tag[0]) if tag["name"] == "img" else None
        if source is None:
            return tag[0]
        new = replace(unescape(source[0]))
        return "" if new is None else tag[0][: source.start()] + escape(new) + tag[0][source.end() :]

    return _TAG.sub(replace_tag, html)


def filter_attribute(element: str, name: str, value: str) -> str | None:
    """Return an attribute's value, or None to remove it. Only images may refer to the media library."""
    if name not in _URL_ATTRIBUTES or not re.sub(r"[\x00-\x20]", "", value).lower().startswith(f"{SCHEME}:"):
        return value
    return value if element == "img" and name == "src" and REFERENCE.fullmatch(value) else None
