"""Translatable messages: an English text with named placeholders, and their values.

A message is translated once, when the response is rendered; until then it is passed on untranslated.
"""

from collections.abc import Callable

Translate = Callable[[str], str]


def gettext_noop(text: str) -> str:
    """Return the text unchanged; the call marks it for extraction by `just translations`."""
    return text


class Message:
    """A message such as `Message("There is no user {id}.", id=7)`. Values may be messages or lists of messages."""

    __slots__ = ("text", "values")

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    def render(self, translate: Translate) -> str:
        text = translate(self.text)
        if not self.values:
            return text
        return text.format(**{name: _render_value(value, translate) for name, value in self.values.items()})

    def __str__(self) -> str:
        return self.render(gettext_noop)

    def __repr__(self) -> str:
        return f"Message({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.text, self.values) == (other.text, other.values)

    def __hash__(self) -> int:
        return hash(self.text)


def _render_value(value: object, translate: Translate) -> object:
    if isinstance(value, Message):
        return value.render(translate)
    if isinstance(value, list | tuple):
        return " ".join(str(_render_value(entry, translate)) for entry in value)  # pyright: ignore[reportUnknownVariableType]
    return value
