"""The words that records are made of, and what a search for them means (behaviour 8.4)."""

import unicodedata

# Accents, case, the wildcards of LIKE, its escape, quotation marks of three sorts, letters without parts.
WORDS = (
    "Café", "CAFE", "cafés", "Straße", "strasse", "Łódź", "lodz", "Ærø", "100%", "100x", "a_b", "aXb",
    "rock’n’roll", "rock'n'roll", 'say"so', "“Wien”", "back\\slash", "-minus", "x", "Ŋoŋo", "ЁЛКА", "елка", "東京",
    "naïve", "Zürich",
)  # fmt: skip
# Search words: whole words, parts of words, and similar words.
SEARCH_WORDS = (
    *WORDS, "cafe", "afé", "STRASS", "ß", "łó", "%", "_", "100_", "a%b", "\\", "'n'", "’", "wien", "-", "--minus",
    "ёлк", "京", "nowhere", "oe", "ae", "ı", "zurich", "ZU\u0308RICH",
)  # fmt: skip

_REPLACEMENTS = str.maketrans({"ł": "l", "æ": "ae", "ø": "o", "ı": "i", "’": "'", "“": '"', "”": '"'})


def fold_text(text: str) -> str:
    """As somebody would type it who has neither accents nor capitals."""
    decomposed = unicodedata.normalize("NFD", text.casefold())
    bare = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    return " ".join(bare.translate(_REPLACEMENTS).split())


def read_search(text: str) -> tuple[list[str], list[str]]:
    """What must occur and what must not, read character by character."""
    rest = text.strip().replace("“", '"').replace("”", '"')
    included: list[str] = []
    excluded: list[str] = []
    while rest := rest.lstrip():
        target = included
        if rest[0] == "-" and rest[1:2].strip():
            target, rest = excluded, rest[1:]
        if rest[0] == '"':
            part, _, rest = rest[1:].partition('"')
        else:
            end = next((n for n, c in enumerate(rest) if c.isspace() or c == '"'), len(rest))
            part, rest = rest[:end], rest[end:]
        if fold_text(part):
            target.append(fold_text(part))
    return included, excluded


def matches_search(search: str, texts: list[str]) -> bool:
    """Every word or phrase is in one of the texts, none of the excluded ones is in any."""
    included, excluded = read_search(search)
    if not included and not excluded:
        included = [fold_text(search)]
    plain_texts = [fold_text(text) for text in texts]
    return all(any(word in text for text in plain_texts) for word in included) and not any(
        word in text for word in excluded for text in plain_texts
    )
