"""Frames and players inside of texts of WordPress: videos and sounds become links."""

import html
import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from kalends.core.html.limits import TAG
from kalends.core.tec.addresses import last_segment

PLAYERS: Final = frozenset(("iframe", "audio", "video", "object", "embed"))
# Addresses of videos without scheme, `www.` and `m.`, and the pages that show them.
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
    """Return the page of a video on a known site; None for any other address."""
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
    """Return the titles of the videos that a text shows, by their pages."""
    titles: dict[str, str] = {}
    for tag in _TAG.finditer(rendered) if "iframe" in rendered else ():
        attributes = read_attributes(tag["rest"]) if tag["name"].lower() == "iframe" else {}
        page = find_video(html.unescape(attributes.get("src", "")))
        if page and attributes.get("title", "").strip():
            titles.setdefault(page, html.unescape(attributes["title"]).strip())
    return titles


def replace_players(text: str, replace: Callable[[str, Mapping[str, str]], str]) -> str:
    """Replace players by what `replace` returns for the name and the attributes of each; its `src` is the source."""
    parts: list[str] = []
    position = 0
    without_end = {"embed"}
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if name not in PLAYERS or tag["slash"] or tag.start() < position:
            continue
        ending = (
            None if name in without_end else re.compile(f"</{name}[^>]*>?", re.IGNORECASE).search(text, tag.end())
        )
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
    """Return a link. Without a text, it shows the name of a file or the address of a page."""
    name = unquote(last_segment(address)) if "/wp-content/" in address else address
    return f'<a href="{html.escape(address)}">{html.escape(text or name)}</a>'


def read_attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag or a shortcode as they are written."""
    return {
        match[1].lower(): next(value for value in (*match.group(2, 3, 4), "") if value is not None).replace(
            '"', "&quot;"
        )
        for match in _ATTRIBUTE.finditer(text)
    }
