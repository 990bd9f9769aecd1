"""Words for days and prices, in all languages, as visitors type them into the search field."""

from datetime import date

import pytest

from kalends.core.messages import LANGUAGES
from kalends.core.search_words import DAY_MEANINGS, MEANINGS, PHRASES, complete, find_days, find_weekend, split_text

WORDS = {
    "en": "today tonight tomorrow weekend free",
    "de": "heute heute_Abend morgen Wochenende kostenlos",
    "fr": "aujourd’hui ce_soir demain week-end gratuit",
    "es": "hoy esta_noche mañana fin_de_semana gratis",
    "it": "oggi stasera domani fine_settimana gratis",
    "nl": "vandaag vanavond morgen weekend gratis",
    "pt-BR": "hoje hoje_à_noite amanhã fim_de_semana grátis",
    "ja": "今日 今夜 明日 週末 無料",
}


def split(text: str) -> tuple[dict[str, str], str]:
    result = split_text(text)
    return {word.meaning: word.text for word in result.found}, result.rest


def test_every_language_has_every_word() -> None:
    assert set(PHRASES) == set(WORDS) == set(LANGUAGES)
    for language, text in WORDS.items():
        for meaning, word in zip(MEANINGS, text.replace("_", "\xa0").split(" "), strict=True):
            written = word.replace("\xa0", " ")
            assert split(f"Jazz {written.upper()}") == ({meaning: written.upper()}, "Jazz"), (language, written)
            assert meaning in complete(f"Jazz {written}", language)[0]


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        ("free jazz tonight", {"free": "free", "tonight": "tonight"}, "jazz"),
        ("Konzert, heute Abend!", {"tonight": "heute Abend"}, "Konzert,"),
        ("heute, Abendmusik", {"today": "heute"}, "Abendmusik"),
        ("este fin de semana en Soria", {"weekend": "este fin de semana"}, "en Soria"),
        ("manana", {"tomorrow": "manana"}, ""),
        ("今日のコンサート", {"today": "今日"}, "コンサート"),
        ("今週末　無料", {"weekend": "今週末", "free": "無料"}, ""),
        # Only whole words count.
        ("freedom todays weekender Morgenstern", {}, "freedom todays weekender Morgenstern"),
        # What is in quotation marks or excluded is text.
        ('"free" jazz', {}, '"free" jazz'),
        ("jazz -free", {}, "jazz -free"),
        ("“this weekend” jazz today", {"today": "today"}, "“this weekend” jazz"),
        # One day and one price; the others remain.
        ("today tomorrow free gratis", {"today": "today", "free": "free"}, "tomorrow gratis"),
        ("", {}, ""),
        ('"', {}, '"'),
    ],
)  # fmt: skip
def test_words_are_split_from_the_text(text: str, found: dict[str, str], rest: str) -> None:
    assert split(text) == (found, rest)


def test_restored_word_is_searched() -> None:
    words = split_text("free jazz tonight")
    assert [words.restore(word) for word in words.found] == ['"free" jazz', '"tonight" jazz']
    assert split(words.restore(words.found[0])) == ({}, '"free" jazz')


@pytest.mark.parametrize(
    ("text", "language", "meanings", "rest"),
    [
        ("to", "en", ("today", "tonight", "tomorrow"), ""),
        ("jazz ton", "en", ("tonight",), "jazz"),
        ("jazz this week", "en", ("weekend",), "jazz"),
        ("heute a", "de", ("tonight",), ""),
        ("今", "ja", ("today", "tonight", "weekend"), ""),
        ("jazz", "en", (), "jazz"),
        ("to", "de", (), "to"),
        ("", "en", (), ""),
    ],
)
def test_begun_words_are_completed(text: str, language: str, meanings: tuple[str, ...], rest: str) -> None:
    assert complete(text, language) == (meanings, rest)


@pytest.mark.parametrize(
    ("today", "first", "last"), [(10, 15, 16), (14, 15, 16), (15, 15, 16), (16, 16, 16), (17, 22, 23)]
)
def test_weekend_is_the_current_or_the_next_one(today: int, first: int, last: int) -> None:
    # March 15, 2031 is a Saturday.
    assert find_weekend(date(2031, 3, today)) == (date(2031, 3, first), date(2031, 3, last))


def test_days_of_words() -> None:
    wednesday = date(2031, 3, 12)
    spans = [find_days(meaning, wednesday) for meaning in DAY_MEANINGS]
    assert spans == [
        (wednesday,) * 2,
        (wednesday,) * 2,
        (date(2031, 3, 13),) * 2,
        (date(2031, 3, 15), date(2031, 3, 16)),
    ]
    assert find_days("free", wednesday) is None
