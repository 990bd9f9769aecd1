"""Values that have broken servers: for every field, list parameter and path (reliability.md, S7 and S8)."""

import random
from typing import Any, Final

_rng = random.Random(7)  # the same incompressible text in every run
INCOMPRESSIBLE: Final = "".join(_rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9_000))

EXTREME_DATES: Final = (
    "0001-01-01",
    "0001-01-01 00:00:00",  # The driver takes this instant for minus infinity.
    "0001-01-01 00:00:01",
    "0001-01-01T00:00:00+14:00",
    "9998-12-31T23:59:59-12:00",
    "9998-12-31 23:59:59",
    "9999-12-31 23:59:59",
    "@-62135596800",
)
HOSTILE_DATES: Final = (
    *EXTREME_DATES,
    "0000-00-00 00:00:00",
    "10000-01-01",
    "2027-02-30",
    "2027-01-01 24:00",
    "2027-01-01T00:00:00+99:99",
    "@999999999999",
    "@-999999999999",
    "1806660000",
    "٢٠٢٧-٠١-٠١",
)
HOSTILE_TEXTS: Final = (
    "",
    " ",
    "0",
    "-1",
    ",",
    "1,2,,x",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999999999999999",
    "1" * 5000,
    "1e999",
    "1e-999",
    "NaN",
    "Infinity",
    "½",
    "٣",
    "\x00",
    "a\x00b",
    "http://a.example/\x00",
    "\x1b[31m\r\nSet-Cookie: a=b",
    "\u202e\ufeff\u2028",
    "\U0001f600" * 60,
    "\ufb2c" * 200,  # One character that is three when it is normalised.
    "\ufdfa" * 200,  # One character that is eighteen when it is folded.
    "&" * 200,
    "&lt;b " + "&" * 3_000,
    "& " * 30_000,
    "<" * 3_000,
    "<div>" * 150,
    "<b a=1 " + "b=2 " * 120 + ">",
    "<script>alert(1)</script><svg onload=x>",
    INCOMPRESSIBLE,
    "x" * 70_000,
    "' OR 1=1; DROP TABLE events; --",
    "%' AND pg_sleep(5) --",
    "%s%(a)s{0}$1?",
    "\\\\\\",
    "../../etc/passwd",
    "http://[::1",
    "http://",
    "javascript:alert(1)",
    "a@b@c",
    "UTC+99",
    "Europe/../Paris",
    "trash",
    "any",
    "-" * 500,
    "-2",
    "2027",
)
HOSTILE_NUMBERS: Final = (
    True, False, 0, -1, 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, -0.0, 1e308, 5e-324, 1e22,
)  # fmt: skip


def nest_lists(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


HOSTILE_STRUCTURES: Final = (
    None,
    [],
    [[]],
    [None],
    [True],
    [""],
    [{}],
    ["a\x00"],
    [0],
    [-1],
    [2**63],
    [1.5, "x"],
    nest_lists(200),
    ["a"] * 600,
    list(range(1, 700)),
    [f"name {n}" for n in range(250)],
    {},
    {"": ""},
    {"id": None},
    {"id": 2**70},
    {"id": "x"},
    {"id": [1]},
    {"id": 999999},
    {"rendered": "x"},
    {"venue": "x", "organizer": "x", "name": "x", "description": 5},
    {"venue": "", "organizer": ""},
    {"venue": {"venue": "x"}, "organizer": {"organizer": "x"}},
    {"venue": "\x00", "organizer": "\x00"},
    {"venue": "D", "organizer": "D", "date": "0001-01-01T00:00:00+14:00"},
    {"venue": "I", "organizer": "I", "image": "http://a.example/\x00"},
    [{"venue": "V", "organizer": "O"}] * 60,
)
ALL_VALUES: Final = (*HOSTILE_TEXTS, *HOSTILE_NUMBERS, *HOSTILE_STRUCTURES)
# Values that have caused defects here, and one of each other kind.
WORST_VALUES: Final = (
    None, True, 2**63 - 1, 1e308, "", "0", "1" * 5000, "a\x00b", "http://a.example/\x00", "\ufb2c" * 200,
    "\ufdfa" * 200, "&lt;b " + "&" * 3_000, "<div>" * 150, INCOMPRESSIBLE, "' OR 1=1; --", [], [{}], ["a\x00"], {},
    {"id": 2**70},
    {"venue": "I", "organizer": "I", "image": "http://a.example/\x00"},
)  # fmt: skip
