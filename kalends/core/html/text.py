"""Conversions of stored HTML: line breaks to paragraphs, and HTML to plain text.

The input has been sanitized before it was stored; these functions do not sanitize.
"""

import html
import re
from collections.abc import Iterator

from kalends.core.html.limits import BLOCKS, TAG, VOID

_TAG = re.compile(TAG)
_GAP = re.compile(r"\n[ \t]*+(?:\n[ \t]*+)++")
_TAG_OR_GAP = re.compile(TAG + "|" + _GAP.pattern)
_BLANK_LINES = re.compile(r"\n{3,}")
_SENTENCE_ENDS = frozenset(".,;:!?…。！？、：")
_LINE_END = re.compile(r"(?:<br ?/?>[ \t]*+)?+\n[ \t]*+")


def to_paragraphs(text: str) -> str:
    """Return a description as the API shows it: blank lines separate paragraphs, single line ends become breaks."""
    if not text:
        return ""
    if "<" not in text:
        return "\n".join(map(_paragraph, filter(None, map(str.strip, _GAP.split(text) if "\n" in text else (text,)))))
    blocks: list[str] = []
    for is_block, part in _parts(text):
        if is_block:
            blocks.append(part.strip())
        else:
            blocks.extend(_wrap(part))
    return "\n".join(filter(None, blocks))


def to_plain_text(text: str) -> str:
    """Return the text without markup, with entities decoded and whitespace collapsed."""
    bare = _TAG.sub(_space_for_block, text) if "<" in text else text
    return _collapse(html.unescape(bare))


def to_single_line(text: str) -> str:
    """Return the text on one line, for an excerpt, with spaces between the former blocks."""
    run = ""
    for line in filter(None, (line.removeprefix("- ") for line in to_plain_lines(text).split("\n"))):
        run += (" " if run[-1:] in _SENTENCE_ENDS else " · ") + line if run else line
    return run


def to_plain_lines(text: str) -> str:
    """Return the text without markup, with blank lines between paragraphs and dashes before list entries."""
    bare = _TAG.sub(_line_for_block, _collapse(text)) if "<" in text else text
    lines = "\n".join(map(_collapse, html.unescape(bare).split("\n")))
    return (_BLANK_LINES.sub("\n\n", lines) if "\n\n\n" in lines else lines).strip()


def _collapse(text: str) -> str:
    """Return the text with single spaces between its words."""
    # The space is the only printable whitespace. Most texts have nothing to collapse, and testing that is faster.
    if "  " not in text and text.isprintable():
        return text.strip(" ")
    return " ".join(text.split())


def _wrap(text: str) -> Iterator[str]:
    """Yield the paragraphs of inline text; the content of an inline element stays in one paragraph."""
    for chunk in _chunks(text):
        if chunk := chunk.strip():
            yield _paragraph(chunk)


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
    """Yield alternately inline text and complete elements that are or contain blocks."""
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


# Tags in plain text; all others are left out.
_START_TAGS = {**dict.fromkeys(BLOCKS, "\n\n"), **dict.fromkeys(("br", "tr", "dt", "dd", "hr"), "\n"),
               "td": " ", "th": " ", "li": "\n- "}  # fmt: skip
_END_TAGS = {**_START_TAGS, "tr": "", "dt": "", "dd": "", "li": ""}


def _space_for_block(tag: re.Match[str]) -> str:
    name = tag["name"].lower()
    return " " if name in BLOCKS or name in ("br", "li", "dt", "dd", "td", "th", "tr", "caption") else ""
