"""Descriptions of WordPress: blocks, captions, shortcodes, images and links become plain HTML.

Nothing is sanitized here. The text itself stays as it was written.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kalends.core.html.limits import TAG
from kalends.core.tec.images import ImageIndex

# Blocks without content whose facts the page of an event shows anyway.
SHOWN_BLOCKS: Final = frozenset(
    f"tribe/{name}"
    for name in (
        *("event-datetime", "event-venue", "event-organizer", "event-links", "event-price", "event-website"),
        *("event-tags", "event-category", "featured-image", "classic-event-details", "event-status", "sharing"),
    )
) | {"more", "nextpage", "spacer", "separator"}
# Elements that the sanitizer removes with what they do.
LOST_ELEMENTS: Final = ("script", "style", "iframe", "form", "object", "embed", "video", "audio", "svg", "canvas")

_BLOCK = re.compile(r"<!--\s+wp:([a-z][a-z0-9/-]*)\s+(?:\{.*?\}\s+)?/-->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CAPTION = re.compile(r"\[(wp_caption|caption)\b([^\]]*)\](.*?)\[/\1\]", re.DOTALL)
_CAPTION_TEXT = re.compile(r"\bcaption=(\"[^\"]*\"|'[^']*')")
_CAPTION_IMAGE = re.compile(r"\s*((?:<a\b[^>]*>\s*)?<img\b[^>]*>(?:\s*</a>)?)(.*)", re.DOTALL | re.IGNORECASE)
_SHORTCODE = re.compile(r"(?<!\[)\[(?P<slash>/?)(?P<name>[A-Za-z][\w-]*)(?P<rest>(?:[\s=/][^\[\]]*)?)\](?!\])")
_ESCAPED_SHORTCODE = re.compile(r"\[(\[/?[A-Za-z][\w-]*(?:[\s=/][^\[\]]*)?\])\]")
_TAG = re.compile(TAG)
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_BLANK_LINES = re.compile(r"[ \t]*\n(?:[ \t]*\n){2,}")
_KEPT_ATTRIBUTES: Final = ("alt", "title", "width", "height")


@dataclass(slots=True)
class Converted:
    """A converted text, and what it had that has no equivalent here."""

    html: str
    shortcodes: list[str] = field(default_factory=list[str])
    blocks: list[str] = field(default_factory=list[str])
    elements: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])  # linked files of the site that are no images


@dataclass(frozen=True, slots=True)
class Converter:
    images: ImageIndex
    base_url: str = ""  # of the new site; empty: links stay as they are
    keeps_shortcodes: bool = False

    def convert(self, raw: str, rendered: str = "") -> Converted:
        """Convert a text. The rendered form tells which brackets WordPress shows as text."""
        result = Converted("")
        result.blocks = sorted({name for name in _BLOCK.findall(raw) if name not in SHOWN_BLOCKS})
        text = _CAPTION.sub(_convert_caption, _COMMENT.sub("", raw.replace("\r\n", "\n")))
        if not self.keeps_shortcodes:
            text = _SHORTCODE.sub(_remove_shortcodes(result, text, rendered), text)
            text = _ESCAPED_SHORTCODE.sub(r"\1", text)
        text = _TAG.sub(lambda tag: self._convert_tag(tag, result), text)
        result.html = _BLANK_LINES.sub("\n\n", text).strip()
        return result

    def _convert_tag(self, tag: re.Match[str], result: Converted) -> str:
        name = tag["name"].lower()
        if tag["slash"]:
            return tag[0]
        if name in LOST_ELEMENTS and name not in result.elements:
            result.elements.append(name)
        if name == "img":
            return self._convert_image(tag)
        return self._convert_link(tag, result) if name == "a" else tag[0]

    def _convert_image(self, tag: re.Match[str]) -> str:
        """Refer to the image by its identity, so that the address of its file can change."""
        attributes = _read_attributes(tag["rest"])
        identity = self.images.find(html.unescape(attributes.get("src", "")), attributes.get("class", ""))
        if identity is None:
            return tag[0]
        kept = "".join(f' {name}="{attributes[name]}"' for name in _KEPT_ATTRIBUTES if name in attributes)
        return f'<img src="media:{identity}"{kept}>'

    def _convert_link(self, tag: re.Match[str], result: Converted) -> str:
        written = _read_attributes(tag["rest"]).get("href", "")
        url, home = html.unescape(written), self.images.home
        path = home.find_path(url)
        if path is None:
            return tag[0]
        if "/wp-content/" in path and self.images.find(url) is None:
            result.files.append(url)
        moved = html.escape(home.move(url, self.base_url))
        return tag[0].replace(written, moved, 1) if moved != html.escape(url) else tag[0]


def _convert_caption(match: re.Match[str]) -> str:
    """Return a figure for `[caption …]<img> text[/caption]`; the text may also be an attribute."""
    attribute = _CAPTION_TEXT.search(match[2])
    image = _CAPTION_IMAGE.fullmatch(match[3])
    if image is None:
        return match[3]
    text = image[2].strip() or (attribute[1][1:-1].strip() if attribute else "")
    caption = f"<figcaption>{text}</figcaption>" if text else ""
    return f"\n\n<figure>{image[1]}{caption}</figure>\n\n"


def _remove_shortcodes(result: Converted, raw: str, rendered: str) -> Callable[[re.Match[str]], str]:
    def remove(match: re.Match[str]) -> str:
        if not _is_shortcode(match, raw, rendered):
            return match[0]
        if not match["slash"]:
            result.shortcodes.append(match["name"])
        return ""

    return remove


def _is_shortcode(match: re.Match[str], raw: str, rendered: str) -> bool:
    """Return whether WordPress replaces text in brackets. `[sic]` is text, because it shows it as it is."""
    name = match["name"]
    if rendered.strip():
        return f"[{match['slash']}{name}" not in rendered
    return "=" in match["rest"] or f"[/{name}]" in raw or "_" in name


def _read_attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag as they are written."""
    return {
        match[1].lower(): next(value for value in (*match.group(2, 3, 4), "") if value is not None).replace(
            '"', "&quot;"
        )
        for match in _ATTRIBUTE.finditer(text)
    }
