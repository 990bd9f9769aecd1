"""Templates. Everything in them is escaped unless it is known to be markup; nothing of a record is a template."""

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kalends.core.messages import gettext_noop as N_
from kalends.website import assets
from kalends.website.models.urls import VIEWS

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
VIEW_NAMES: Final = {
    "month": N_("Month"),
    "week": N_("Week"),
    "day": N_("Day"),
    "list": N_("List"),
    "map": N_("Map"),
}
_SELF_TARGET: Final = Markup(' target="_self"')
_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def _json(value: str) -> Markup:
    """JSON for a data block: no letter in it can end the element."""
    safe = value.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704


_ENVIRONMENT.filters["data_block"] = _json
_ENVIRONMENT.globals.update(asset=assets.asset_name, style=assets.style_name, VIEWS=VIEWS, VIEW_NAMES=VIEW_NAMES)


def render(template: str, **model: Any) -> str:
    """The model has `speech`, `links`, `site`, `embedded` and what the template shows."""
    # In a frame, links lead out of it; these stay.
    self_target = _SELF_TARGET if model["embedded"] else ""
    return _ENVIRONMENT.get_template(template).render(_=model["speech"].gettext, here=self_target, **model)
