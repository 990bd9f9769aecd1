"""Images inside of descriptions that refer to the media library: `<img src="media:ID">`.

The file of an image may change, and the address of the files is a setting, so descriptions store the ID. The address
is filled in when a description is rendered; an image that has been deleted is left out.
"""

import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from typing import Final

from kalends.core.html.limits import TAG

SCHEME: Final = "media"
REFERENCE: Final = re.compile(r"media:([1-9][0-9]{0,15})", re.ASCII)
_MARK: Final = f'src="{SCHEME}:'
_TAG: Final = re.compile(TAG)
_SOURCE: Final = re.compile(r'(?<=\ssrc=")[^"]*(?=")')
_URL_ATTRIBUTES: Final = ("href", "src", "cite")


def has_references(html: str) -> bool:
    return _MARK in html


def find_image_ids(html: str) -> list[int]:
    """Return the IDs of the images that sanitized HTML refers to."""
    references = [REFERENCE.fullmatch(source) for source in find_sources(html)] if has_references(html) else []
    return [int(reference[1]) for reference in references if reference]


def find_sources(html: str) -> list[str]:
    """Return the addresses of all images in sanitized HTML."""
    if "<img" not in html:
        return []
    sources = [_SOURCE.search(tag[0]) for tag in _TAG.finditer(html) if tag["name"] == "img"]
    return [unescape(source[0]) for source in sources if source]


def resolve_references(html: str, urls: Mapping[int, str]) -> str:
    """Replace references by addresses; leave images without one out."""
    if not has_references(html):
        return html

    def resolve(source: str) -> str | None:
        reference = REFERENCE.fullmatch(source)
        return urls.get(int(reference[1])) if reference else source

    return replace_sources(html, resolve)


def replace_sources(html: str, replace: Callable[[str], str | None]) -> str:
    """Replace the addresses of images in sanitized HTML; leave an image out if `replace` returns None."""

    def replace_tag(tag: re.Match[str]) -> str:
        source = _SOURCE.search(tag[0]) if tag["name"] == "img" else None
        if source is None:
            return tag[0]
        new = replace(unescape(source[0]))
        return "" if new is None else tag[0][: source.start()] + escape(new) + tag[0][source.end() :]

    return _TAG.sub(replace_tag, html)


def filter_attribute(element: str, name: str, value: str) -> str | None:
    """Return the value of an attribute if the sanitizer may keep it: only images refer to images."""
    if name not in _URL_ATTRIBUTES or not re.sub(r"[\x00-\x20]", "", value).lower().startswith(f"{SCHEME}:"):
        return value
    return value if element == "img" and name == "src" and REFERENCE.fullmatch(value) else None
