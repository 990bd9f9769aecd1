"""Descriptions on pages. They were sanitized on write; here they are adapted to the page that shows them.

Images of other hosts would disclose visitors to these hosts, so they become links. Headings are moved below the
heading of the page.
"""

import re
from html import escape, unescape
from typing import Final
from urllib.parse import urlsplit

from markupsafe import Markup

_TAG: Final = re.compile(r"<(?P<slash>/?)(?P<name>a|img|h[1-6])(?P<rest>(?:\s[^<>]*)?)>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r'([a-z]+)="([^"]*)"', re.IGNORECASE)
MAX_HEADING_LEVEL: Final = 6


def adapt(html: str, own_hosts: frozenset[str]) -> Markup:
    """Adapt headings, links and images. Headings start at level 2 and never skip a level."""
    inside_link = False
    open_levels: list[int] = []
    last_level = 1

    def replace(tag: re.Match[str]) -> str:
        nonlocal inside_link, last_level
        name = tag["name"].lower()
        if name == "a":
            inside_link = not tag["slash"]
            return tag[0] if tag["slash"] else f'<a rel="nofollow noopener"{tag["rest"]}>'
        if name == "img":
            return _adapt_image(tag[0], own_hosts, inside_link=inside_link)
        if tag["slash"]:
            return f"</h{open_levels.pop() if open_levels else last_level}>"
        last_level = min(MAX_HEADING_LEVEL, int(name[1]) + 1, last_level + 1)
        open_levels.append(last_level)
        return f"<h{last_level}{tag['rest']}>"

    return Markup(_TAG.sub(replace, html))  # noqa: S704  Sanitized with an allow-list on write.


def _adapt_image(tag: str, own_hosts: frozenset[str], *, inside_link: bool) -> str:
    attributes = {name.lower(): value for name, value in _ATTRIBUTE.findall(tag)}
    source = unescape(attributes.get("src", ""))
    host = urlsplit(source).netloc.lower() if "//" in source else ""
    if not host or host in own_hosts:
        alt = attributes.get("alt", "")
        sizes = "".join(f' {side}="{attributes[side]}"' for side in ("width", "height") if side in attributes)
        return f'<img loading="lazy" src="{attributes.get("src", "")}" alt="{alt}"{sizes}>'
    text = attributes.get("alt") or escape(host)
    if inside_link:
        return text
    return f'<a rel="nofollow noopener" class="picture" href="{attributes["src"]}">{text}</a>'
