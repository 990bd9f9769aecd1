"""Escaping of the values that templates write."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup, escape

from kalends.rendering.templates import escape_output, make_environment


class Trusted:
    def __html__(self) -> str:
        return "<b>"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value", ["", "plain", "é", "&", "<", ">", "'", '"', "a&amp;<b>'c'", Text("<"), Markup("<i>"), Trusted(), 7, None]
)
def test_output_is_escaped_as_by_markupsafe(value: object) -> None:
    assert escape_output(value) == str(escape(value))


@pytest.mark.parametrize(
    ("template", "html"),
    [
        ("{{ x }}", "&lt;&#39;"),
        ("{{ x|safe }}", "<'"),
        ("{{ x ~ x|safe }}", "&lt;&#39;<'"),
        ("{% set y %}<p>{{ x }}{% endset %}{{ y }}", "<p>&lt;&#39;"),
        ("{% macro m(a) %}<p>{{ a }}{% endmacro %}{{ m(x) }}", "<p>&lt;&#39;"),
        ("{% autoescape false %}{{ x }}{% endautoescape %}{{ x }}", "<'&lt;&#39;"),
        ("{% filter upper %}{{ x }}a{% endfilter %}", "&LT;&#39;A"),
    ],
)
def test_templates_escape_each_value_once(tmp_path: Path, template: str, html: str) -> None:
    assert make_environment(tmp_path).from_string(template).render(x="<'") == html


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UndefinedError):
        make_environment(tmp_path).from_string("{{ unknown }}").render()
