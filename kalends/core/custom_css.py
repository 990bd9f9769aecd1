"""Custom CSS of a site: checked when it is stored, so that no style of a page loads anything from another host."""

import re
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_

MAX_BYTES: Final = 16_384
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Syntax that reaches other hosts, ends the style element, or hides either of them from this check.
_FORBIDDEN: Final = {
    "@import": "@import",
    "//": N_("addresses of other hosts"),
    "javascript:": N_("addresses of scripts"),
    "expression(": N_("expressions"),
    "\\": N_("backslashes"),
    "<": N_("the character <"),
}


def read_custom_css(value: str) -> str:
    """Return the CSS without its comments. Raises InvalidValue if it is too long or has something forbidden."""
    css = _COMMENT.sub("", value.replace("\r\n", "\n")).strip()
    if len(css.encode()) > MAX_BYTES:
        raise InvalidValue("must have at most {limit} bytes.", limit=MAX_BYTES)
    lowered = css.lower()
    found = [name for part, name in _FORBIDDEN.items() if part in lowered]
    found += [N_("control characters")] if _CONTROL.search(css) else []
    if found:
        raise InvalidValue("must not contain {part}.", part=Message(found[0]))
    return css
