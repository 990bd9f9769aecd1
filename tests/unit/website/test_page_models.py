"""The page models have exactly the variables that their templates read."""

from dataclasses import fields
from functools import cache

import pytest
from jinja2 import Environment, meta, nodes

from kalends.follow.pages.follow_form import FollowPage
from kalends.follow.pages.follow_links import ManagePage
from kalends.proposals.pages.status_page import StatusPage
from kalends.proposals.pages.submission_frame import SubmissionFormPage
from kalends.push.pages.hall_display import DisplayPage
from kalends.website import pages
from kalends.website.context import TEMPLATES
from kalends.website.form_visits import NotePage
from kalends.website.pages import Layout, Page

MODELS: list[type[Page]] = [
    *[value for value in vars(pages).values() if isinstance(value, type) and issubclass(value, Page)],
    *(NotePage, SubmissionFormPage, StatusPage, FollowPage, ManagePage, DisplayPage),
]
GLOBALS = {
    *("_", "LANGUAGES", "VIEWS", "VIEW_NAMES", "asset", "list_preloads", "scripts", "self_target", "style", "styles")
}
MACROS = ("filters.html", "follow_parts.html", "parts.html")
SHARED = {field.name for field in fields(Layout)} | GLOBALS


@cache
def parse(template: str) -> nodes.Template:
    # The filter is registered by kalends.website.context; only its name matters here.
    environment = Environment(autoescape=True)
    environment.filters["data_block"] = str
    return environment.parse((TEMPLATES / template).read_text())


@cache
def list_variables(template: str) -> set[str]:
    """Return the variables of a template and of the templates that it extends or imports."""
    tree = parse(template)
    # Blocks report the macros that their template has or imports as undeclared.
    macros = {macro.name for name in (*MACROS, template) for macro in parse(name).find_all(nodes.Macro)}
    variables = set(meta.find_undeclared_variables(tree)) - macros
    return variables.union(*[list_variables(name) for name in meta.find_referenced_templates(tree) if name])


def test_every_template_has_a_model() -> None:
    names = [model.template for model in MODELS]
    assert sorted([*names, *MACROS]) == sorted(path.name for path in TEMPLATES.iterdir())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_fields_of_a_model_are_the_variables_of_its_template(model: type[Page]) -> None:
    names = {field.name for field in fields(model)}
    assert names - list_variables(model.template) == set()
    assert list_variables(model.template) - names - SHARED == set()
