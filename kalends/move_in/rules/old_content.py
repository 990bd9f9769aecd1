"""Converts WordPress descriptions: blocks, captions, shortcodes, images and links become plain HTML.

This module does not sanitize anything, and it leaves the wording unchanged.
"""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

from kalends.core.html_text import TAG
from kalends.core.sanitize import DROPPED_ELEMENTS
from kalends.move_in.rules.old_links import ImageIndex
from kalends.move_in.rules.old_records import last_segment

PLAYERS: Final = frozenset(("iframe", "audio", "video", "object", "embed"))
# Patterns for video URLs, without the scheme and any `www.` or `m.`, and the corresponding page URLs.
VIDEO_PAGES: Final = tuple(
    (re.compile(pattern), page)
    for pattern, page in (
        (
            r"youtube(?:-nocookie)?\.com/(?:embed|shorts|live|v)/(?!videoseries)([\w-]{6,})",
            r"https://www.youtube.com/watch?v=\1",
        ),
        (r"youtube\.com/watch\?(?:.*&)?v=([\w-]{6,})", r"https://www.youtube.com/watch?v=\1"),
        (r"youtu\.be/([\w-]{6,})", r"https://www.youtube.com/watch?v=\1"),
        (
            r"youtube(?:-nocookie)?\.com/(?:embed/videoseries|playlist)\?(?:.*&)?list=([\w-]+)",
            r"https://www.youtube.com/playlist?list=\1",
        ),
        (r"player\.vimeo\.com/video/(\d+)\?(?:.*&)?h=(\w+)", r"https://vimeo.com/\1/\2"),
        (r"vimeo\.com/(\d+)/(\w+)", r"https://vimeo.com/\1/\2"),
        (r"(?:player\.)?vimeo\.com/(?:[\w/]*/)?(\d+)", r"https://vimeo.com/\1"),
        (r"dailymotion\.com/(?:embed/)?video/(\w+)", r"https://www.dailymotion.com/video/\1"),
        (r"geo\.dailymotion\.com/player[\w./]*\?(?:.*&)?video=(\w+)", r"https://www.dailymotion.com/video/\1"),
        (r"dai\.ly/(\w+)", r"https://www.dailymotion.com/video/\1"),
        (r"player\.twitch\.tv/\?(?:.*&)?channel=(\w+)", r"https://www.twitch.tv/\1"),
        (r"player\.twitch\.tv/\?(?:.*&)?video=v?(\d+)", r"https://www.twitch.tv/videos/\1"),
        (r"(?:embed\.|embed-ssl\.)?ted\.com/talks/([\w/]+)", r"https://www.ted.com/talks/\1"),
        (r"(facebook\.com/\w[\w.]*/videos/\d+/?)", r"https://www.\1"),
    )
)

_TAG = re.compile(TAG)
_ATTRIBUTE = re.compile(r"([a-zA-Z][\w-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_END: Final = {name: re.compile(f"</{name}[^>]*>?", re.IGNORECASE) for name in PLAYERS}
_FACEBOOK_PLAYER: Final = "facebook.com/plugins/video.php?"


def find_video(address: str) -> str | None:
    """Return a video's page if its site is known, or None for any other address."""
    try:
        parts = urlsplit(address.strip(), "https")
        host = (parts.hostname or "").removeprefix("www.").removeprefix("m.")
    except ValueError:
        return None
    if parts.scheme not in ("http", "https"):
        return None
    text = f"{host}{parts.path}?{parts.query}"
    if text.startswith(_FACEBOOK_PLAYER):
        target = dict(parse_qsl(parts.query)).get("href", "")
        return find_video(target) if _FACEBOOK_PLAYER not in target else None
    for pattern, page in VIDEO_PAGES:
        if match := pattern.match(text):
            return match.expand(page)
    return None


def find_titles(rendered: str) -> dict[str, str]:
    """Return the titles of videos in rendered HTML, by the address of the video's page."""
    titles: dict[str, str] = {}
    for tag in _TAG.finditer(rendered) if "iframe" in rendered else ():
        attributes = read_attributes(tag["rest"]) if tag["name"].lower() == "iframe" else {}
        page = find_video(html.unescape(attributes.get("src", "")))
        if page and attributes.get("title", "").strip():
            titles.setdefault(page, html.unescape(attributes["title"]).strip())
    return titles


def replace_players(text: str, replace: Callable[[str, Mapping[str, str]], str]) -> str:
    """Replace each player with the result of `replace`, which gets the player's name and attributes.

    The attribute `src` is the source that the player plays.
    """
    parts: list[str] = []
    position = 0
    without_end = {"embed"}
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if name not in PLAYERS or tag["slash"] or tag.start() < position:
            continue
        ending = None if name in without_end else _END[name].search(text, tag.end())
        if ending is None:
            without_end.add(name)
        inner = text[tag.end() : ending.start()] if ending else ""
        attributes = read_attributes(tag["rest"])
        source = _find_source(attributes) or next(
            filter(None, (_find_source(read_attributes(entry["rest"])) for entry in _TAG.finditer(inner))), ""
        )
        parts += [text[position : tag.start()], replace(name, {**attributes, "src": source})]
        position = ending.end() if ending else tag.end()
    return "".join([*parts, text[position:]])


def _find_source(attributes: Mapping[str, str]) -> str:
    return html.unescape(attributes.get("src") or attributes.get("data") or "").strip()


def make_link(address: str, text: str = "") -> str:
    """Return a link. Its default text is the file name or the page address."""
    name = unquote(last_segment(address)) if "/wp-content/" in address else address
    return f'<a href="{html.escape(address)}">{html.escape(text or name)}</a>'


def read_attributes(text: str) -> dict[str, str]:
    """Return a tag's or shortcode's attributes as written."""
    return {
        match[1].lower(): next(value for value in (*match.group(2, 3, 4), "") if value is not None).replace(
            '"', "&quot;"
        )
        for match in _ATTRIBUTE.finditer(text)
    }


# Empty blocks for facts that every event page shows anyway.
SHOWN_BLOCKS: Final = frozenset(
    f"tribe/{name}"
    for name in (
        *("event-datetime", "event-venue", "event-organizer", "event-links", "event-price", "event-website"),
        *("event-tags", "event-category", "featured-image", "classic-event-details", "event-status", "sharing"),
    )
) | {"more", "nextpage", "spacer", "separator"}
# Elements that the sanitizer removes although they have a function. Players are excluded, because they become links.
LOST_ELEMENTS: Final = frozenset(name.removeprefix("x-") for name in DROPPED_ELEMENTS) - PLAYERS | {
    *("form", "canvas", "input", "select")
}
# `audio` and `video` shortcode attributes that name a file.
MEDIA_ATTRIBUTES: Final = ("src", "mp3", "m4a", "ogg", "wav", "mp4", "m4v", "webm", "ogv", "flv")

_BLOCK = re.compile(r"<!--\s+wp:([a-z][a-z0-9/-]*)\s+(?:\{.*?\}\s+)?/-->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CAPTION = re.compile(r"\[(wp_caption|caption)\b([^\]]*)\](.*?)\[/\1\]", re.DOTALL)
_CAPTION_TEXT = re.compile(r"\bcaption=(\"[^\"]*\"|'[^']*')")
_CAPTION_IMAGE = re.compile(r"\s*((?:<a\b[^>]*>\s*)?<img\b[^>]*>(?:\s*</a>)?)(.*)", re.DOTALL | re.IGNORECASE)
_SHORTCODE = re.compile(r"(?<!\[)\[(?P<slash>/?)(?P<name>[A-Za-z][\w-]*)(?P<rest>(?:[\s=/][^\[\]]*)?)\](?!\])")
_ESCAPED_SHORTCODE = re.compile(r"\[(\[/?[A-Za-z][\w-]*(?:[\s=/][^\[\]]*)?\])\]")

_GALLERY_BLOCK = re.compile(r"<!--\s+wp:gallery\b[^>]*-->(.*?)<!--\s+/wp:gallery\s+-->", re.DOTALL)
_GALLERY_ITEM = re.compile(
    r"((?:<a\b[^>]*>\s*)?<img\b[^>]*>(?:\s*</a>)?)(?:\s*<figcaption\b[^>]*>(.*?)</figcaption>)?", re.DOTALL
)
_GALLERY_CAPTION = re.compile(r"<figcaption\b[^>]*\bblocks-gallery-caption\b[^>]*>(.*?)</figcaption>", re.DOTALL)
_EMBED = re.compile(r"\[embed\b[^\]]*\]\s*(https?://[^\s\[<]+)\s*\[/embed\]")
# WordPress replaces an address with an embed if it is alone on a line or in a paragraph.
_LONE_ADDRESS = re.compile(
    r"(?P<before>^[ \t]*|<p(?: [^<>]*)?>\s*|<div class=\"wp-block-embed__wrapper\">\s*)"
    r"(?P<address>https?://[^\s<>\"\[\]]+)(?=[ \t]*$|\s*</p>|\s*</div>)",
    re.MULTILINE,
)
_BACKGROUND = re.compile(r"background(?:-image)?\s*:[^;]*url\(\s*(?:&quot;|&#0?39;|')?([^'\s)&]+)")
_BLANK_LINES = re.compile(r"[ \t]*\n(?:[ \t]*\n){2,}")
_KEPT_ATTRIBUTES: Final = ("alt", "title", "width", "height")


@dataclass(slots=True)
class Converted:
    """The converted content, and the parts of the original that have no equivalent in Kalends."""

    html: str
    shortcodes: list[str] = field(default_factory=list[str])
    blocks: list[str] = field(default_factory=list[str])
    elements: list[str] = field(default_factory=list[str])
    frames: list[str] = field(default_factory=list[str])  # hosts of the pages in frames
    files: list[str] = field(default_factory=list[str])  # linked site files that are not images
    missing: list[str] = field(default_factory=list[str])  # missing gallery images
    has_players: bool = False  # whether players became links


@dataclass(frozen=True, slots=True)
class Converter:
    images: ImageIndex
    base_url: str = ""  # the new site's URL; if empty, links stay unchanged
    keeps_shortcodes: bool = False

    def convert(self, raw: str, rendered: str = "", post_id: int = 0) -> Converted:
        """Convert content.

        The rendered form shows which brackets are plain text, and contains the titles of videos.
        """
        result, titles = Converted(""), find_titles(rendered)
        result.blocks = sorted({name for name in _BLOCK.findall(raw) if name not in SHOWN_BLOCKS})
        text = _GALLERY_BLOCK.sub(_convert_gallery_block, raw.replace("\r\n", "\n"))
        text = _CAPTION.sub(_convert_caption, _COMMENT.sub("", text))
        if not self.keeps_shortcodes:
            text = _EMBED.sub(lambda match: _link_player(match[1], titles, result), text)
            text = _SHORTCODE.sub(self._replace_shortcodes(result, text, rendered, post_id), text)
            text = _ESCAPED_SHORTCODE.sub(r"\1", text)
        text = _LONE_ADDRESS.sub(lambda match: _convert_address(match, titles, rendered, result), text)
        text = replace_players(
            text, lambda name, attributes: self._convert_player(name, attributes, titles, text, result)
        )
        text = _TAG.sub(lambda tag: self._convert_tag(tag, result), text)
        result.html = _BLANK_LINES.sub("\n\n", text).strip()
        return result

    # Shortcodes ---------------------------------------------------------------------------------

    def _replace_shortcodes(
        self, result: Converted, raw: str, rendered: str, post_id: int
    ) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            if not _is_shortcode(match, raw, rendered):
                return match[0]
            if match["slash"]:
                return ""
            converted = self._convert_shortcode(match["name"], read_attributes(match["rest"]), post_id, result)
            if converted is None:
                result.shortcodes.append(match["name"])
            return converted or ""

        return replace

    def _convert_shortcode(
        self, name: str, attributes: Mapping[str, str], post_id: int, result: Converted
    ) -> str | None:
        """Convert a built-in WordPress shortcode; return None for any other."""
        if name == "gallery":
            attached = self.images.attached.get(attributes.get("id", str(post_id)), ())
            listed = _read_list(attributes.get("ids") or attributes.get("include") or "")
            excluded = _read_list(attributes.get("exclude", ""))
            shown = [entry for entry in listed or attached if entry not in excluded]
            result.missing += [entry for entry in shown if entry not in self.images.texts]
            return _make_list(
                (f'<img src="media:{entry}" alt="{html.escape(text.alt)}">', text.caption)
                for entry in shown
                if (text := self.images.texts.get(entry))
            )
        if name == "playlist":
            files = [self.images.files.get(entry) for entry in _read_list(attributes.get("ids", ""))]
            return _make_list((make_link(*file), "") for file in files if file) if all(files) and files else None
        if name in ("audio", "video"):
            address = next(filter(None, map(attributes.get, MEDIA_ATTRIBUTES)), None)
            return make_link(html.unescape(address)) if address else None
        return None

    # Elements -----------------------------------------------------------------------------------

    def _convert_player(
        self, name: str, attributes: Mapping[str, str], titles: Mapping[str, str], text: str, result: Converted
    ) -> str:
        """Return a link to a player's source. Frames with other pages are removed, but listed in the result."""
        address, home = attributes["src"], self.images.home
        if find_video(address):
            return _link_player(address, titles, result, html.unescape(attributes.get("title", "")))
        path = home.find_path(address) or ""
        if address and (name in ("audio", "video") or "/wp-content/" in path):
            is_linked = f'href="{html.escape(address)}"' in text or f'href="{address}"' in text
            return "" if is_linked else make_link(address)
        if name == "iframe" and address:
            host = urlsplit(urljoin(home.url + "/", address)).hostname or ""
            result.frames += [host] if host not in result.frames else []
        elif name not in result.elements:
            result.elements.append(name)
        return ""

    def _convert_tag(self, tag: re.Match[str], result: Converted) -> str:
        name = tag["name"].lower()
        if tag["slash"]:
            return tag[0]
        if name in LOST_ELEMENTS and name not in result.elements:
            result.elements.append(name)
        if name == "img":
            return self._convert_image(tag)
        if background := _BACKGROUND.search(read_attributes(tag["rest"]).get("style", "")):
            picture = _TAG.fullmatch(f'<img src="{background[1]}">')
            return tag[0] + (self._convert_image(picture) if picture else "")
        return self._convert_link(tag, result) if name == "a" else tag[0]

    def _convert_image(self, tag: re.Match[str]) -> str:
        """Refer to the image by its identity, because the address of its file can change."""
        attributes = read_attributes(tag["rest"])
        identity = self.images.find(html.unescape(attributes.get("src", "")), attributes.get("class", ""))
        if identity is None:
            return tag[0]
        kept = "".join(f' {name}="{attributes[name]}"' for name in _KEPT_ATTRIBUTES if name in attributes)
        return f'<img src="media:{identity}"{kept}>'

    def _convert_link(self, tag: re.Match[str], result: Converted) -> str:
        written = read_attributes(tag["rest"]).get("href", "")
        url, home = html.unescape(written), self.images.home
        path = home.find_path(url)
        if path is None:
            return tag[0]
        if "/wp-content/" in path and self.images.find(url) is None:
            result.files.append(url)
        moved = html.escape(home.move(url, self.base_url))
        return tag[0].replace(written, moved, 1) if moved != html.escape(url) else tag[0]


def _convert_caption(match: re.Match[str]) -> str:
    """Return a figure for `[caption …]<img> text[/caption]`; the text can also be an attribute."""
    attribute = _CAPTION_TEXT.search(match[2])
    image = _CAPTION_IMAGE.fullmatch(match[3])
    if image is None:
        return match[3]
    text = image[2].strip() or (attribute[1][1:-1].strip() if attribute else "")
    caption = f"<figcaption>{text}</figcaption>" if text else ""
    return f"\n\n<figure>{image[1]}{caption}</figure>\n\n"


def _convert_gallery_block(match: re.Match[str]) -> str:
    content = _COMMENT.sub("", match[1])
    items = [(item[1], (item[2] or "").strip()) for item in _GALLERY_ITEM.finditer(content)]
    caption = _GALLERY_CAPTION.search(content)
    return _make_list(items) + (f"<p>{caption[1]}</p>\n\n" if caption else "") if items else content


def _make_list(items: Iterable[tuple[str, str]]) -> str:
    lines = [
        f"<li><figure>{item}<figcaption>{caption}</figcaption></figure></li>" if caption else f"<li>{item}</li>"
        for item, caption in items
    ]
    return "\n\n<ul>\n{}\n</ul>\n".format("\n".join(lines)) if lines else ""


def _read_list(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _convert_address(match: re.Match[str], titles: Mapping[str, str], rendered: str, result: Converted) -> str:
    """Return a link for an address that WordPress would replace with an embed."""
    address = html.unescape(match["address"])
    is_embed = match["before"].startswith("<div") or (rendered.strip() and address not in html.unescape(rendered))
    if not is_embed and not find_video(address):
        return match[0]
    return match["before"] + _link_player(address, titles, result)


def _link_player(address: str, titles: Mapping[str, str], result: Converted, title: str = "") -> str:
    result.has_players = True
    page = find_video(address) or address
    return make_link(page, title.strip() or titles.get(page, ""))


def _is_shortcode(match: re.Match[str], raw: str, rendered: str) -> bool:
    """Return whether WordPress replaces this text in brackets. For example, WordPress renders `[sic]` unchanged."""
    name = match["name"]
    if rendered.strip():
        return f"[{match['slash']}{name}" not in rendered
    return "=" in match["rest"] or f"[/{name}]" in raw or "_" in name
