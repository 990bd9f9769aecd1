"""Translations: extracts the messages, updates the catalogues and compiles them.

`--check` changes nothing and reports untranslated and outdated messages. Messages of commands stay English. English
messages with wording that reads as if it had been translated are reported, too.
"""

import io
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from kalends.core.messages import CATALOGUES, DEFAULT, LANGUAGES

PACKAGE = CATALOGUES.parent
# Functions with translatable arguments, and the positions of these.
KEYWORDS = {
    "Message": None,
    "InvalidValue": None,
    "N_": None,
    "ApiError": (3,),
    "param": (3,),
    "_date": (2,),
    "invalid": (2,),
}
# Modules whose messages only operators see.
ENGLISH_ONLY = {
    "calendar/operations/record_history.py",
    "fleet/operations/site_archive.py",
    "fleet/operations/archive_rows.py",
    "demo/seed.py",
    "demo/demo_records.py",
}
FIXED_DATE = datetime(2000, 1, 1, tzinfo=UTC)
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Wording that English messages avoid, with what to write instead.
WORDING = {
    re.compile(pattern, re.IGNORECASE): advice
    for pattern, advice in {
        r"(?:^|[.;] )(?:without [^.:,]*|empty|not set):": "begin the condition with “If”",
        r"\b(?:with|from|since) which\b": "use “to”, “where” or two sentences",
        r"\bthat exists?\b": "write “existing”",
        r"\b(?:somebody|nobody|everybody|whoever)\b": "write “someone”, “no one” or “anyone”",
        r"\bnevertheless\b": "write “anyway”",
        r"\b(?:meanwhile|in the meantime)\b": "leave it out, or write “since”",
        r"\b(?:that|those|the one) of\b": "repeat the noun, or use a possessive",
        r"\bthe \w+ of your\b": "write “your …”",
        r"\bof (?:its|their) own\b|\bown changes\b": "write “separate” or “overrides”",
        r"\be-mail": "write “email”",
    }.items()
}


def find_texts() -> dict[str, list[str]]:
    """Return all messages with the files that contain them."""
    texts: dict[str, list[str]] = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html")]):
        name = path.relative_to(PACKAGE).as_posix()
        if name in ENGLISH_ONLY:
            continue
        for text in _extract_template(path) if path.suffix == ".html" else _extract_module(path):
            if text and name not in texts.setdefault(text, []):
                texts[text].append(name)
    return texts


def _extract_module(path: Path) -> Iterator[str]:
    for _, message, _, _ in extract_from_file("python", path, keywords=KEYWORDS):
        yield message if isinstance(message, str) else message[0]


def _extract_template(path: Path) -> Iterator[str]:
    with path.open("rb") as source:
        for _, _, message, _ in babel_extract(source, ("_", "gettext"), (), {}):
            text = message[0] if isinstance(message, tuple) else message
            if text is not None:  # None stands for an expression, whose messages are marked elsewhere.
                yield text


def list_languages() -> list[str]:
    return [language for language in LANGUAGES if language != DEFAULT]


def find_catalogue(language: str) -> Path:
    return CATALOGUES / language.replace("-", "_") / "LC_MESSAGES" / "messages.po"


def read_catalogue(language: str) -> dict[str, str]:
    path = find_catalogue(language)
    if not path.exists():
        return {}
    with path.open("rb") as source:
        return {str(row.id): str(row.string) for row in read_po(source) if row.id and row.string}


def make_catalogue(language: str, texts: dict[str, list[str]], known: dict[str, str]) -> Catalog:
    """Return a catalogue with exactly the messages of the code, in alphabetical order."""
    catalogue = Catalog(
        locale=language.replace("-", "_"),
        project="kalends",
        charset="utf-8",
        fuzzy=False,
        header_comment="# The texts of Kalends. `just translations` maintains the list; edit only the translations.",
    )
    for text in sorted(texts, key=lambda text: (text.lower(), text)):
        catalogue.add(text, known.get(text, ""), locations=[(name, 0) for name in texts[text]])
    return catalogue


def render(catalogue: Catalog) -> str:
    target = io.BytesIO()
    write_po(target, catalogue, width=110, omit_header=False)
    lines = [line for line in target.getvalue().decode().splitlines() if not line.startswith(VOLATILE)]
    return "\n".join(line.replace(":0", "") if line.startswith("#: ") else line for line in lines) + "\n"


VOLATILE = (
    '"POT-Creation-Date',
    '"PO-Revision-Date',
    '"Generated-By',
    '"Report-Msgid-Bugs-To',
    '"Last-Translator',
    '"Language-Team',
    '"Project-Id-Version',
)


def compile_catalogue(po: str) -> bytes:
    catalogue, target = read_po(io.BytesIO(po.encode())), io.BytesIO()
    catalogue.creation_date = catalogue.revision_date = FIXED_DATE  # Keeps the output reproducible.
    write_mo(target, catalogue)
    return target.getvalue()


def find_problems(language: str, texts: dict[str, list[str]], known: dict[str, str]) -> list[str]:
    """Return a description of each message that is untranslated or has different placeholders."""
    messages = [f"{language}: untranslated: {text}" for text in texts if text not in known]
    for text, translation in known.items():
        if sorted(PLACEHOLDER.findall(text)) != sorted(PLACEHOLDER.findall(translation)):
            messages.append(f"{language}: other places: {text}")
        if sorted(re.findall(r"`[^`]+`", text)) != sorted(re.findall(r"`[^`]+`", translation)):
            messages.append(f"{language}: other code words: {text}")
    return messages


def find_wording(texts: Iterable[str]) -> list[str]:
    """Return a description of each English message with wording to avoid."""
    return [f"en: {advice}: {text}" for text in texts for pattern, advice in WORDING.items() if pattern.search(text)]


def main() -> int:
    check = "--check" in sys.argv
    texts = find_texts()
    messages = find_wording(texts)
    for language in list_languages():
        known = read_catalogue(language)
        po = render(make_catalogue(language, texts, known))
        path = find_catalogue(language)
        compiled = path.with_suffix(".mo")
        if check:
            current = path.exists() and path.read_text() == po and compiled.read_bytes() == compile_catalogue(po)
            messages += [] if current else [f"{language}: out of date, run `just translations`"]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(po)
            compiled.write_bytes(compile_catalogue(po))
        messages += find_problems(language, texts, {text: known[text] for text in texts if text in known})
    print("\n".join(messages) or f"{len(texts)} texts in {len(LANGUAGES)} languages.")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
