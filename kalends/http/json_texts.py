"""Texts in JSON: messages and descriptions of rules, in the language of the response."""

from collections.abc import Callable

from kalends.core.messages import Message
from kalends.core.recurrence.sentences import RuleText
from kalends.http.language import translator
from kalends.http.rule_texts import describe_sentence


def json_default(language: str) -> Callable[[object], str]:
    """Return the `default` function of orjson that renders texts in a language."""
    translate = translator(language)

    def encode(value: object) -> str:
        if isinstance(value, Message):
            return value.render(translate)
        if isinstance(value, RuleText):
            return describe_sentence(value.sentence, language)
        raise TypeError(f"{type(value).__name__} is not JSON serializable")

    return encode
