"""The content of rich-text fields as the editor reads it."""

from markupsafe import Markup

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_html, to_paragraphs


def rich_text_source(value: str) -> Markup | None:
    """Return the sanitized HTML of a field for the page; None if it cannot be sanitized.

    The value may be a draft or a rejected form, which no write has sanitized yet. Without the source, the page keeps
    the textarea.
    """
    try:
        return Markup(to_paragraphs(clean_html(value)))  # noqa: S704  It is sanitized.
    except InvalidValue:
        return None
