"""Jinja2 settings for every HTML page: values are escaped, and an unknown name is an error."""

import re
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.compiler import CodeGenerator
from markupsafe import Markup, escape

_SPECIAL: Final = re.compile("[&<>'\"]")


def make_environment(directory: Path) -> Environment:
    return PageEnvironment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def escape_output(value: object) -> str:
    """Escape a value in a template's output.

    This is faster than Jinja, which would wrap each value in `Markup` only to join the output into a string. A month
    page has more than a thousand values.
    """
    if type(value) is str:
        return str(escape(value)) if _SPECIAL.search(value) else value
    return value if type(value) is Markup else escape(value)


class _OutputGenerator(CodeGenerator):
    """Compiles templates that escape their output with `escape_output`."""

    def _output_child_pre(self, node: Any, frame: Any, finalize: Any) -> None:
        if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
            super()._output_child_pre(node, frame, finalize)
        else:
            self.write("environment.escape_output(")


class PageEnvironment(Environment):
    code_generator_class = _OutputGenerator
    escape_output = staticmethod(escape_output)
