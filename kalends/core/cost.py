"""Event costs, stored as written and shown as a range with a currency symbol (behaviour 4.11).

Currencies are never converted, and numbers are never rounded.
"""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import clean_plain
from kalends.core.slugs import make_slug

MAX_LENGTH: Final = 250
MAX_SYMBOL_LENGTH: Final = 16
MAX_AMOUNTS: Final = 50
NUMBER_LIMIT: Final = 10**15  # Comparing with this limit also excludes infinity and NaN.
FREE: Final = "Free"
# Cost texts that mean free, including the texts that The Events Calendar shows.
FREE_COSTS: Final = frozenset(
    [
        *("0", "0.00", "0,00", FREE, "free", "Frei", "frei", "Eintritt frei", "Kostenlos", "kostenlos"),
        *("Gratis", "gratis", "Gratuit", "gratuit", "Gratuito", "gratuito", "Entrée libre", "Entrada libre"),
        *("Ingresso libero", "Entrada franca", "無料"),
    ]
)

type Position = Literal["prefix", "postfix", ""]

# Digits with separators: 10, 10.50, 1,000.50, 1.000,50, 1'000, 1 000. A comma followed by a space separates list
# entries.
_NUMBER = re.compile(r"[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![0-9])|[0-9]+(?:[.,'’][0-9]+)*")
# A minus sign occurs before the first number or after a separator; elsewhere a dash denotes a range.
_MINUS = re.compile(r"(?:\A|[,;/])\s*[^\w\s-]?\s*[-−]\s*[^\w\s]?\s*\Z")
_LETTERS = re.compile(r"[A-Z]{1,4}")
_LETTER_SYMBOLS: Final = frozenset(["kr", "kr.", "zł", "Kč", "Ft", "Fr", "Fr.", "lei", "лв", "лв.", "руб", "руб."])


@dataclass(frozen=True, slots=True)
class Currency:
    """An event's currency. If a field is None, its value comes from the cost text, or else from the site."""

    symbol: str | None = None
    code: str | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """A number as written, and as a plain decimal."""

    written: str
    plain: str

    @property
    def value(self) -> Decimal:
        return Decimal(self.plain)


@dataclass(frozen=True, slots=True)
class Cost:
    """A parsed cost: amounts in ascending order with their currency symbol, or text only."""

    text: str
    amounts: tuple[Amount, ...]
    symbol: str
    position: Position
    has_words: bool


NO_CURRENCY: Final = Currency()


def read_cost(value: object) -> str:
    """Return the text to store, or "" if there is no cost. Lists become comma-separated numbers."""
    if value is None or value is False or value == "":
        return ""
    if isinstance(value, list):
        if len(value) > MAX_AMOUNTS:
            raise InvalidValue("must have at most {maximum} numbers.", maximum=MAX_AMOUNTS)
        texts = filter(None, (_read_one(entry) for entry in value))
        text = ", ".join("0" if text.lower() == "free" else text for text in texts)
    else:
        text = _read_one(value)
    cleaned = clean_plain(text, MAX_LENGTH)
    if any(_MINUS.search(before) for before in _texts_before_numbers(cleaned)):
        raise _invalid_cost()
    return cleaned


def read_currency_symbol(value: object) -> str | None:
    """Return the symbol to store; None means the site's symbol."""
    if not isinstance(value, str):
        raise InvalidValue("must be a string.")
    return clean_plain(value, MAX_SYMBOL_LENGTH) or None


def read_currency_code(value: object) -> str | None:
    """Return the code to store; None means the site's code."""
    if value == "":
        return None
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{3}", value):
        raise InvalidValue("must be three letters, such as EUR.")
    return value.upper()


@lru_cache(maxsize=4096)
def format_cost(
    stored: str, symbol: str, position: Literal["prefix", "postfix"], currency: Currency = NO_CURRENCY
) -> tuple[str, dict[str, object]]:
    """Return `cost` and `cost_details` for the API.

    The event's symbol replaces any symbol in the text. If neither exists, the site's symbol appears in `cost` but not
    in `cost_details`.
    """
    cost = parse_cost(stored)
    own_symbol, own_position = cost.symbol, cost.position
    if len(cost.amounts) > 1 and (own_symbol, own_position) == (symbol, position):
        own_symbol, own_position = "", ""  # For a range, the site's symbol is not reported.
    own_symbol, own_position = currency.symbol or own_symbol, currency.position or own_position
    text = _format(cost, own_symbol or symbol, own_position or position)
    values = [amount.plain for amount in cost.amounts] or [make_slug(cost.text)] * bool(cost.text)
    return text, {
        "currency_symbol": own_symbol,
        "currency_code": currency.code or "",
        "currency_position": own_position,
        "values": values,
    }


@lru_cache(maxsize=4096)
def parse_cost(stored: str) -> Cost:
    matches = list(_NUMBER.finditer(stored))
    if not matches:
        return Cost(stored, (), "", "", has_words=bool(stored))
    amounts = {amount.plain: amount for number in matches for amount in _parse_amounts(number[0])}
    before, after = stored[: matches[0].start()].strip(), stored[matches[-1].end() :].strip()
    symbol, position = _find_symbol(before, after)
    rest = (before + after).replace(symbol, "", 1) if symbol else before + after
    return Cost(
        stored,
        tuple(sorted(amounts.values(), key=lambda amount: amount.value)),
        symbol,
        position,
        has_words=any(character.isalnum() for character in rest),
    )


def _read_one(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < NUMBER_LIMIT:
        raise _invalid_cost()
    text = f"{Decimal(repr(value)):f}"
    return text.removesuffix(".0")


def _texts_before_numbers(text: str) -> list[str]:
    ends = [0, *(number.end() for number in _NUMBER.finditer(text))]
    starts = [number.start() for number in _NUMBER.finditer(text)]
    # The prefix 0 keeps `\A` in _MINUS from matching text between two numbers.
    return [("" if n == 0 else "0") + text[ends[n] : start] for n, start in enumerate(starts)]


def _parse_amounts(written: str) -> list[Amount]:
    """Parse one number, or several if the separators can only separate list entries (10,20,30)."""
    compact = re.sub(r"[ \u00a0\u202f'’]", "", written)
    points, commas = compact.count("."), compact.count(",")
    if points and commas:
        decimal = "." if compact.rindex(".") > compact.rindex(",") else ","
        other = "," if decimal == "." else "."
        return _split(written, compact.replace(other, "").replace(decimal, "."), decimal)
    separator = "." if points else ","
    groups = compact.split(separator)
    is_thousands = all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3
    if (points + commas > 1 or commas == 1) and is_thousands:
        return [Amount(written, "".join(groups))]
    return _split(written, compact.replace(separator, "."), separator)


def _split(written: str, plain: str, separator: str) -> list[Amount]:
    if plain.count(".") <= 1:
        return [Amount(written, plain)]
    return [Amount(part, part) for part in re.sub(r"[^0-9]", separator, written).split(separator)]


def _find_symbol(before: str, after: str) -> tuple[str, Position]:
    if _is_symbol(before):
        return before, "prefix"
    if _is_symbol(after):
        return after, "postfix"
    return "", ""


def _is_symbol(text: str) -> bool:
    """Return whether the text is a currency symbol or code, such as €, CA$, EUR or kr."""
    if not 0 < len(text) <= 5 or " " in text:
        return False
    has_sign = any(unicodedata.category(character) == "Sc" for character in text)
    return has_sign or text in _LETTER_SYMBOLS or _LETTERS.fullmatch(text) is not None


def _format(cost: Cost, symbol: str, position: str) -> str:
    if not cost.amounts or (len(cost.amounts) == 1 and cost.has_words):
        return cost.text
    ends = [_format_amount(amount, symbol, position) for amount in (cost.amounts[0], cost.amounts[-1])]
    return " – ".join(dict.fromkeys(ends))


def _format_amount(amount: Amount, symbol: str, position: str) -> str:
    if amount.value == 0:
        return FREE
    return f"{symbol}{amount.written}" if position == "prefix" else f"{amount.written}{symbol}"


def _invalid_cost() -> InvalidValue:
    return InvalidValue("must be a non-negative number, a list of numbers or text such as $10 - $20.")
