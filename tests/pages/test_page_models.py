"""The page models have exactly the variables that their templates read."""

from collections.abc import Iterator
from dataclasses import fields

import pytest
from jinja2 import Environment, meta

from kalends.website import pages
from kalends.website.pages import Layout, Page
from kalends.website.rendering import TEMPLATES

GLOBALS = {"_", "VIEWS", "VIEW_NAMES", "asset", "self_target", "style"}
SHARED = {field.name for field in fields(Layout)} | GLOBALS


def list_models(model: type[Page] = Page) -> Iterator[type[Page]]:
    yield model
    for child in model.__subclasses__():
        yield from list_models(child)


def list_variables(template: str) -> set[str]:
    """Return the variables of a template and of the templates that it extends or imports."""
    # The filter is registered by kalends.website.rendering; only its name matters here.
    environment = Environment(autoescape=True)
    environment.filters["data_block"] = str
    tree = environment.parse((TEMPLATES / template).read_text())
    variables = set(meta.find_undeclared_variables(tree))
    return variables.union(*[list_variables(name) for name in meta.find_referenced_templates(tree) if name])


def test_every_template_has_a_model() -> None:
    names = [model.template for model in list_models()]
    assert sorted([*names, "parts.html"]) == sorted(path.name for path in TEMPLATES.iterdir())
    assert {model.__module__ for model in list_models()} == {pages.__name__}


@pytest.mark.parametrize("model", list_models(), ids=lambda model: model.__name__)
def test_the_fields_of_a_model_are_the_variables_of_its_template(model: type[Page]) -> None:
    assert {field.name for field in fields(model)} - list_variables(model.template) == set()
    assert list_variables(model.template) - {field.name for field in fields(model)} - SHARED == set()
