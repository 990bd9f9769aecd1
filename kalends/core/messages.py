"""Sentences for people: English with named places, and what stands in them.

They are said in the reader's language once, where the answer is made; everything before only carries them.
"""

from collections.abc import Callable

Translate = Callable[[str], str]


def gettext_noop(text: str) -> str:
    """The same text. What stands in this call is found by `just translations`, to be translated later."""
    return text


class Message:
    """`Sentence("There is no user {id}.", id=7)`. A value may be a sentence itself, or several."""

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
        return f"Sentence({str(self)!r})"

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
