"""Identifiers, docstrings and comments use the terms of docs/glossary.md, and messages avoid translated wording."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import translations

PACKAGE = Path(__file__).resolve().parents[3] / "kalends"
BANNED_WORDS = re.compile(r"\b(told|said|asked|clocks?|ours|anew|for good)\b|\bmost_", re.IGNORECASE)
BANNED_PARTS = {"told", "said", "asked", "clock", "clocks", "ours", "anew"}
# Every file with a banned word matches this; the others need not be parsed.
SUSPECT = re.compile(r"told|said|asked|clock|(?<!h)ours|anew|for good|most_|most(?-i:[A-Z])", re.IGNORECASE)
# The module that reads the system clock, and the function of PostgreSQL.
ALLOWED = re.compile(r"\bcore[./]clock\b|\bclock_timestamp\b|\bsystem clock\b", re.IGNORECASE)


def find_banned_words(source: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and the banned words of identifiers, comments and docstrings."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.NAME and not ALLOWED.search(lines[line - 1]):
            yield from ((line, part) for part in find_banned_parts(token.string))
        elif token.type == tokenize.COMMENT:
            yield from ((line, word) for word in find_in_text(token.string))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            yield from ((node.body[0].lineno, word) for word in find_in_text(docstring or ""))


def find_banned_parts(identifier: str) -> list[str]:
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]
    return [
        *[part for part in parts if part in BANNED_PARTS],
        *["most_" for part in parts[:-1] if part == "most"],
    ]


def find_in_text(text: str) -> list[str]:
    return [match.group().lower() for match in BANNED_WORDS.finditer(ALLOWED.sub("", text))]


def test_modules_use_established_terms() -> None:
    banned = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {word}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if SUSPECT.search(source := path.read_text())
        for line, word in find_banned_words(source)
    ]
    assert banned == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("told = 1", ["told"]),
        ("class SiteClock: ...", ["clock"]),
        ("MOST_PIXELS = 1", ["most_"]),
        ("# Deleted for good.", ["for good"]),
        ('def f():\n    """Encode it anew."""', ["anew"]),
        ("almost_done, hours, utmost = 1, 2, 3", []),
        ("from kalends.core.times import utc_now  # Reads the system clock.", []),
        ('query = "SELECT clock_timestamp(), said"', []),
    ],
)
def test_banned_words_are_found(source: str, expected: list[str]) -> None:
    assert [word for _, word in find_banned_words(source)] == expected
    assert SUSPECT.search(source) or not expected


@pytest.mark.parametrize(
    ("text", "is_rejected"),
    [
        ("Without a day: on the day of the start.", True),
        ("For featured events. Empty: the accent colour.", True),
        ("The URL of the source; empty: files are uploaded", True),
        ("Not set: pages link to the address that the visitor used.", True),
        ("We send you a link with which you choose a new password.", True),
        ("Was linked to an event that exists.", True),
        ("Invite somebody", True),
        ("Undo nevertheless", True),
        ("Somebody else has changed other fields meanwhile.", True),
        ("Its contrast is {used}:1; that of your colour is {chosen}:1.", True),
        ("You can add one on the page of your account.", True),
        ("These dates have changes of their own and keep them:", True),
        ("E-mail address", True),
        ("If empty, the event ends on the day it starts.", False),
        ("is empty: a table has a header and rows.", False),
        ("Linked to an existing event.", False),
        ("Email address", False),
    ],
)
def test_translated_wording_is_reported(text: str, is_rejected: bool) -> None:
    assert bool(translations.find_wording([text])) == is_rejected


def test_messages_avoid_translated_wording() -> None:
    assert translations.find_wording(translations.find_texts()) == []
