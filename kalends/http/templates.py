"""Jinja2 with the settings of every HTML page: values are escaped, and an unknown name is an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def make_environment(directory: Path) -> Environment:
    """Return the environment of the templates in a directory."""
    return Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
