"""Describes recurrence rules in the reader's language, such as "Every Tuesday, until May 3, 2027"."""

from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache

from babel import Locale
from babel.dates import format_date, format_skeleton, get_day_names, get_month_names
from babel.lists import format_list

from kalends.core.messages import Message, Translate, translator
from kalends.core.recurrence import Rule
from kalends.core.recurrence.rule_sentences import DayOfYear, MonthName, Numbers, WeekdayNames, find_sentence

_LEAP_YEAR = 2000
# CLDR formats the first of the month like other days, but these languages use an ordinal number.
_FIRST_DAY = {"fr": "1er", "it": "1º", "pt": "1º"}


def describe_sentence(sentence: Message, language: str) -> str:
    return _render(sentence, translator(language), _parse(language))


def describe_rule(rule: Rule, start: date, language: str, locale: str | None = None) -> str | None:
    """Describe a rule with this start day, or return None if no sentence covers it.

    If the result is None, show the next dates instead. `locale` determines the date format, as in `en_GB`; the
    default is the language.
    """
    sentence = find_sentence(rule, start)
    return None if sentence is None else _render(sentence, translator(language), _parse(locale or language))


def _render(sentence: Message, translate: Translate, locale: Locale) -> str:
    text = _Renderer(translate, locale).render(sentence)
    return text[0].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class _Renderer:
    translate: Translate
    locale: Locale

    def render(self, message: Message) -> str:
        values = {name: self._format(value) for name, value in message.values.items()}
        return self.translate(message.text).format(**values)

    def _format(self, value: object) -> str:
        match value:
            case Message():
                return self.render(value)
            case date():
                return self._name_first(value.day, format_date(value, "long", self.locale))
            case DayOfYear(month, day):
                moment = datetime.combine(date(_LEAP_YEAR, month, day), time())
                return self._name_first(day, format_skeleton("MMMMd", moment, locale=self.locale))
            case MonthName(number):
                return str(get_month_names("wide", "format", self.locale)[number])
            case WeekdayNames(days):
                names = get_day_names("wide", "format", self.locale)
                return format_list([str(names[day]) for day in days], locale=self.locale)
            case Numbers(numbers):
                return format_list([str(number) for number in numbers], locale=self.locale)
            case _:
                return str(value)

    def _name_first(self, day: int, text: str) -> str:
        first = _FIRST_DAY.get(self.locale.language)
        return f"{first} {text[2:]}" if first and day == 1 and text.startswith("1 ") else text


@lru_cache(maxsize=64)
def _parse(tag: str) -> Locale:
    return Locale.parse(tag.replace("_", "-"), sep="-")
