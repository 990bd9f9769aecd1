"""Custom CSS of a site: checked when it is stored, so that no style of a page loads anything from another host."""

import re
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_

MAX_BYTES: Final = 16_384
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Syntax that loads other style sheets, ends the style element, or hides an address from this check.
_FORBIDDEN: Final = {
    "@import": "@import",
    "expression(": N_("expressions"),
    "\\": N_("backslashes"),
    "<": N_("the character <"),
}
# The addresses and texts of a style sheet, as browsers find them: a text ends at its quotation mark or with its line,
# an address without quotation marks at the parenthesis.
_TOKEN: Final = re.compile(
    r"""(?P<url>url\([ \t\n]*)?(?:"(?P<double>[^"\n]*)|'(?P<single>[^'\n]*))["'\n]?|url\((?P<bare>[^)]*)""",
    re.IGNORECASE | re.ASCII,
)
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_IMAGE: Final = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE | re.ASCII)
# Schemes that load something or run a script. Browsers read `http:host` and `http:/host` like `http://host`.
_LOADED: Final = frozenset(["blob", "file", "filesystem", "ftp", "http", "https", "javascript", "ws", "wss"])


def read_custom_css(value: str) -> str:
    """Return the CSS without its comments. Raises InvalidValue if it is too long or has something forbidden."""
    css, rest = "", value.replace("\r\n", "\n").strip()
    while css != rest:  # The parts around a comment may form another one.
        css, rest = rest, _COMMENT.sub("", rest).strip()
    if len(css.encode()) > MAX_BYTES:
        raise InvalidValue("must have at most {limit} bytes.", limit=MAX_BYTES)
    lowered = css.lower()
    found = [name for part, name in _FORBIDDEN.items() if part in lowered]
    found += [N_("control characters")] if _CONTROL.search(css) else []
    if found:
        raise InvalidValue("must not contain {part}.", part=Message(found[0]))
    for token in _TOKEN.finditer(css):
        _check_address(token)
    return css


def _check_address(token: re.Match[str]) -> None:
    """Raise InvalidValue unless an address is relative or an image in itself.

    A text is an address in functions such as `image-set()`, also through a custom property, so it must not name
    another host anywhere.
    """
    is_url = token["url"] is not None or token["bare"] is not None
    text = next(part for part in (token["double"], token["single"], token["bare"]) if part is not None)
    # Browsers ignore these characters in addresses.
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
