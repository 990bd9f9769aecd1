"""Error messages of commands begin with the name of the argument."""

from collections.abc import Callable

import pytest

from kalends.accounts.operations.user_accounts import parse_argument
from kalends.calendar.operations.site_options import SITE_KEYS
from kalends.core.errors import InvalidValue
from kalends.core.sanitize import clean_plain
from kalends.core.urls import read_email


def test_valid_value_is_returned() -> None:
    assert parse_argument("timezone", SITE_KEYS["timezone"], "europe/berlin") == "Europe/Berlin"


@pytest.mark.parametrize(
    ("name", "parse", "value"),
    [
        ("--email", read_email, "nobody"),
        ("NAME", lambda text: clean_plain(text, 3), "abcd"),
        *[(key, SITE_KEYS[key], "\N{BULLET}") for key in ("timezone", "base_url", "logo_url", "accent", "per_page")],
    ],
)
def test_message_begins_with_the_name_of_the_argument(name: str, parse: Callable[[str], object], value: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        parse(value)
    with pytest.raises(InvalidValue) as prefixed:
        parse_argument(name, parse, value)
    assert prefixed.value.text == f"{name} {raised.value.text}"
