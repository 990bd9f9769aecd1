"""Rules as text: which sentence is chosen, and complete sentences in every language."""

from datetime import date

import pytest

from kalends.core.messages import LANGUAGES
from kalends.core.recurrence import read_rule
from kalends.core.recurrence.rule_sentences import NUMBERED_WEEKDAYS, WEEKLY
from kalends.rendering.rule_texts import describe_rule

FRIDAY = date(2027, 1, 8)


def describe(text: str, language: str = "en", locale: str | None = None) -> str | None:
    return describe_rule(read_rule(f"FREQ={text}", "UTC"), FRIDAY, language, locale)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DAILY", "Every day"),
        ("DAILY;INTERVAL=2", "Every second day"),
        ("DAILY;INTERVAL=10;COUNT=5", "Every 10 days, 5 times"),
        ("DAILY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR,SA,SU", "Every second day"),
        ("DAILY;BYDAY=MO,TU,WE,TH,FR", "Every day from Monday to Friday"),
        ("DAILY;BYDAY=MO", "Every Monday"),
        ("WEEKLY", "Every Friday"),
        ("WEEKLY;BYDAY=TU;UNTIL=20270503", "Every Tuesday, until May 3, 2027"),
        ("WEEKLY;BYDAY=TU;COUNT=1", "Every Tuesday, once"),
        ("WEEKLY;INTERVAL=2;WKST=SU", "Every second week on Friday"),
        ("WEEKLY;INTERVAL=3;BYDAY=SU", "Every 3 weeks on Sunday"),
        ("WEEKLY;BYDAY=SU,MO", "Weekly: Monday and Sunday"),
        ("WEEKLY;BYDAY=MO,WE,FR", "Weekly: Monday, Wednesday, and Friday"),
        ("WEEKLY;INTERVAL=2;BYDAY=SA,SU", "Every second week: Saturday and Sunday"),
        ("WEEKLY;INTERVAL=4;BYDAY=MO,TU,WE,TH,FR", "Every 4 weeks: Monday, Tuesday, Wednesday, Thursday, and Friday"),
        ("WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU", "Every day"),
        ("MONTHLY", "On day 8 of every month"),
        ("MONTHLY;INTERVAL=2", "Every second month on day 8"),
        ("MONTHLY;BYMONTHDAY=1;INTERVAL=3", "Every 3 months on the first day"),
        ("MONTHLY;BYMONTHDAY=-1", "On the last day of every month"),
        ("MONTHLY;BYMONTHDAY=1,15", "Every month on these days: 1 and 15"),
        ("YEARLY;BYMONTHDAY=9,24", "Every month on these days: 9 and 24"),
        ("MONTHLY;BYDAY=1TU", "On the first Tuesday of every month"),
        ("MONTHLY;BYDAY=TU;BYSETPOS=1", "On the first Tuesday of every month"),
        ("MONTHLY;BYDAY=2WE,4WE", "On the second and fourth Wednesday of every month"),
        ("MONTHLY;BYDAY=TU;BYSETPOS=1,3", "On the first and third Tuesday of every month"),
        ("MONTHLY;INTERVAL=6;BYDAY=-1FR", "Every 6 months on the last Friday"),
        ("MONTHLY;BYDAY=MO,TH", "Weekly: Monday and Thursday"),
        ("YEARLY", "Every year on January 8"),
        ("YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29", "Every second year on February 29"),
        ("YEARLY;BYMONTH=5", "Every year on May 8"),
        ("MONTHLY;BYMONTH=5;BYMONTHDAY=3", "Every year on May 3"),
        ("YEARLY;BYMONTH=5;BYDAY=2SU", "Every year on the second Sunday of May"),
        ("YEARLY;INTERVAL=4;BYMONTH=5;BYDAY=SU;BYSETPOS=-1", "Every 4 years on the last Sunday of May"),
        ("YEARLY;BYMONTH=2;BYMONTHDAY=-1", "Every year on the last day of February"),
        ("YEARLY;BYDAY=FR", "Every Friday"),
    ],
)
def test_rule_is_described(text: str, expected: str) -> None:
    assert describe(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "DAILY;BYMONTH=5",
        "DAILY;BYMONTHDAY=5",
        "DAILY;INTERVAL=2;BYDAY=MO",
        "WEEKLY;BYMONTH=5",
        "WEEKLY;BYDAY=MO,TU;BYSETPOS=1",
        "MONTHLY;BYDAY=5MO",
        "MONTHLY;BYDAY=-2MO",
        "MONTHLY;BYDAY=1MO,3TU",
        "MONTHLY;BYDAY=1MO,TU",
        "MONTHLY;BYDAY=1MO,2MO",
        "MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "MONTHLY;INTERVAL=2;BYDAY=MO",
        "MONTHLY;INTERVAL=2;BYMONTHDAY=1,15",
        "MONTHLY;BYMONTHDAY=1,-1",
        "MONTHLY;BYMONTHDAY=-2",
        "MONTHLY;BYMONTHDAY=15;BYSETPOS=1",
        "MONTHLY;BYMONTH=3,6",
        "YEARLY;BYMONTH=3,6",
        "YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "YEARLY;BYMONTH=5;BYDAY=SU",
        "YEARLY;BYMONTH=5;BYMONTHDAY=1,2",
        "YEARLY;BYDAY=1MO",
        "YEARLY;INTERVAL=2;BYMONTHDAY=5",
    ],
)
def test_rule_without_a_sentence_has_no_text(text: str) -> None:
    assert describe(text) is None


def test_dates_follow_the_region() -> None:
    assert describe("WEEKLY;UNTIL=20270503", "en", "en_GB") == "Every Friday, until 3 May 2027"


def test_every_weekday_has_its_sentences() -> None:
    assert len(WEEKLY) == 7
    assert {len(names) for names in NUMBERED_WEEKDAYS.values()} == {7}


RULES = [
    "WEEKLY;BYDAY=TU;UNTIL=20270503",
    "WEEKLY;INTERVAL=2;BYDAY=SU;COUNT=10",
    "WEEKLY;BYDAY=MO,WE",
    "MONTHLY;BYDAY=-1FR",
    "MONTHLY;INTERVAL=2;BYDAY=1SA,3SA",
    "MONTHLY;INTERVAL=3;BYMONTHDAY=15",
    "YEARLY;BYMONTH=5;BYMONTHDAY=1",
    "YEARLY;BYMONTH=4;BYDAY=2SU",
]
SENTENCES = {
    "de": [
        "Jeden Dienstag, bis zum 3. Mai 2027",
        "Alle zwei Wochen am Sonntag, 10-mal",
        "Wöchentlich: Montag und Mittwoch",
        "Am letzten Freitag jedes Monats",
        "Alle zwei Monate am ersten und dritten Samstag",
        "Alle 3 Monate am 15.",
        "Jedes Jahr am 1. Mai",
        "Jedes Jahr am zweiten Sonntag im April",
    ],
    "es": [
        "Todos los martes, hasta el 3 de mayo de 2027",
        "Cada dos semanas, el domingo, 10 veces",
        "Cada semana: lunes y miércoles",
        "El último viernes de cada mes",
        "Cada dos meses, el primer y el tercer sábado",
        "Cada 3 meses, el día 15",
        "Cada año, el 1 de mayo",
        "Cada año, el segundo domingo de abril",
    ],
    "fr": [
        "Tous les mardis, jusqu’au 3 mai 2027",
        "Toutes les deux semaines, le dimanche, 10 fois",
        "Chaque semaine : lundi et mercredi",
        "Le dernier vendredi de chaque mois",
        "Tous les deux mois, le premier et le troisième samedi",
        "Tous les 3 mois, le 15",
        "Chaque année, le 1er mai",
        "Chaque année en avril, le deuxième dimanche",
    ],
    "it": [
        "Ogni martedì, fino al giorno 3 maggio 2027",
        "Ogni due settimane, di domenica, 10 volte",
        "Ogni settimana: lunedì e mercoledì",
        "L’ultimo venerdì di ogni mese",
        "Ogni due mesi, il primo e il terzo sabato",
        "Ogni 3 mesi, il giorno 15",
        "Ogni anno, il giorno 1º maggio",
        "Ogni anno, la seconda domenica di aprile",
    ],
    "nl": [
        "Elke dinsdag, tot en met 3 mei 2027",
        "Elke twee weken op zondag, 10 keer",
        "Wekelijks: maandag en woensdag",
        "Op de laatste vrijdag van elke maand",
        "Elke twee maanden op de eerste en derde zaterdag",
        "Elke 3 maanden op de 15e",
        "Elk jaar op 1 mei",
        "Elk jaar op de tweede zondag van april",
    ],
    "pt-BR": [
        "Toda terça-feira, até 3 de maio de 2027",
        "A cada duas semanas, no domingo, 10 vezes",
        "Toda semana: segunda-feira e quarta-feira",
        "Na última sexta-feira de cada mês",
        "A cada dois meses, no primeiro e no terceiro sábado",
        "A cada 3 meses, no dia 15",
        "Todos os anos, em 1º de maio",
        "Todos os anos, no segundo domingo de abril",
    ],
    "ja": [
        "毎週火曜日、2027年5月3日まで",
        "隔週日曜日、全10回",
        "毎週：月曜日、水曜日",
        "毎月最終金曜日",
        "隔月の第1・第3土曜日",
        "3か月ごとの15日",
        "毎年5月1日",
        "毎年4月の第2日曜日",
    ],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_complete_in_every_language(language: str) -> None:
    assert [describe(text, language) for text in RULES] == SENTENCES[language]


def test_every_language_is_tested() -> None:
    assert {*SENTENCES, "en"} == {*LANGUAGES}
