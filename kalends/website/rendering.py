"""Rendering of page models by Jinja2. Values are escaped unless they are `Markup`; records are never templates."""

from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from kalends.core.messages import gettext_noop as N_
from kalends.http.language import LANGUAGES
from kalends.http.templates import make_environment
from kalends.website import assets
from kalends.website.models.urls import VIEWS
from kalends.website.pages import Layout, Page

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
VIEW_NAMES: Final = {
    "month": N_("Month"),
    "week": N_("Week"),
    "day": N_("Day"),
    "list": N_("List"),
    "map": N_("Map"),
}
_SELF_TARGET: Final = Markup(' target="_self"')
_ENVIRONMENT: Final = make_environment(TEMPLATES)


def _escape_json(value: str) -> Markup:
    """Escape JSON for a script element, so that nothing in it can end the element."""
    safe = value.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704


_ENVIRONMENT.filters["data_block"] = _escape_json
_ENVIRONMENT.globals.update(
    asset=assets.asset_name, style=assets.style_name, VIEWS=VIEWS, VIEW_NAMES=VIEW_NAMES, LANGUAGES=LANGUAGES
)


def load_templates() -> None:
    """Compile all templates, which otherwise happens when each of them is used for the first time."""
    for name in _ENVIRONMENT.list_templates():
        _ENVIRONMENT.get_template(name)


def render(page: Page, layout: Layout) -> str:
    """Return the HTML of a page."""
    return _ENVIRONMENT.get_template(page.template).render(
        _=layout.locale.gettext,
        # Links of an embedded page leave the frame by default; those with this attribute stay in it.
        self_target=_SELF_TARGET if layout.embedded else "",
        styles=page.styles,
        scripts=page.scripts,
        **_read_fields(layout),
        **_read_fields(page),
    )


def _read_fields(model: Page | Layout) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in fields(model)}
