"""Tables as imported records: headers, mapping, cells, rejections and preview."""

import re
from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.messages import LANGUAGES
from kalends.imports.rules.import_records import ImportedRecord
from kalends.imports.rules.table_cells import (
    Cell,
    find_order,
    guard_formula,
    read_flag,
    read_list,
    read_times,
    unguard_formula,
)
from kalends.imports.rules.table_headers import ORDER, TABLE_KINDS, find_field, get_header, guess_kind, guess_language
from kalends.imports.rules.tables import TableReading, read_rows

# The columns that The Events Calendar offers for CSV files, in its order.
TEC_EVENTS = {
    "Event Name": "title",
    "Event Description": "description",
    "Event Excerpt": "excerpt",
    "Event Start Date": "start_date",
    "Event Start Time": "start_time",
    "Event End Date": "end_date",
    "Event End Time": "end_time",
    "Event Time Zone": "timezone",
    "Timezone": "timezone",
    "All Day Event": "all_day",
    "Hide Event From Event Listings": "hide_from_listings",
    "Event Sticky in Month View": "sticky",
    "Feature Event": "featured",
    "Event Venue Name": "venue",
    "Event Organizer Name(s) or ID(s)": "organizer",
    "Event Show Map Link": "show_map_link",
    "Event Show Map": "show_map",
    "Event Cost": "cost",
    "Event Currency Symbol": "currency_symbol",
    "Event Currency Position": "currency_position",
    "Event ISO Currency Code": "currency_code",
    "Event Category": "categories",
    "Event Tags": "tags",
    "Event Website": "website",
    "Event Featured Image": "image",
    "Event Allow Comments": "",
}
TEC_VENUES = {
    "Venue Name": "venue",
    "Venue Description": "description",
    "Venue Country": "country",
    "Venue Address": "address",
    "Venue City": "city",
    "Venue State/Province": "province",
    "Venue Zip": "zip",
    "Venue Phone": "phone",
    "Venue URL": "website",
    "Venue Featured Image": "image",
}
TEC_ORGANIZERS = {
    "Organizer Name": "organizer",
    "Organizer Description": "description",
    "Organizer Email": "email",
    "Organizer Website": "website",
    "Organizer Phone": "phone",
}
# A table as people of each language write it.
TABLES: dict[str, list[list[Cell]]] = {
    "en": [
        ["Event", "Date", "Time", "All day", "Venue", "Category", "Price"],
        ["Concert", "11/16/2026", "7:30 pm", "no", "Town hall", "Music, Jazz", "$5"],
    ],
    "de": [
        ["Veranstaltung", "Datum", "Beginn", "Ganztägig", "Veranstaltungsort", "Kategorie", "Eintritt"],
        ["Concert", "Mo, 16.11.2026", "19:30 Uhr", "nein", "Town hall", "Music; Jazz", "$5"],
    ],
    "fr": [
        ["Événement", "Date", "Heure", "Toute la journée", "Lieu", "Catégorie", "Tarif"],
        ["Concert", "lundi 16 novembre 2026", "19h30", "non", "Town hall", "Music, Jazz", "$5"],
    ],
    "es": [
        ["Evento", "Fecha", "Hora", "Todo el día", "Lugar", "Categoría", "Precio"],
        ["Concert", "16 de noviembre de 2026", "7:30 p. m.", "no", "Town hall", "Music|Jazz", "$5"],
    ],
    "it": [
        ["Evento", "Data", "Ora", "Tutto il giorno", "Luogo", "Categoria", "Prezzo"],
        ["Concert", "16/11/2026", "ore 19.30", "no", "Town hall", "Music, Jazz", "$5"],
    ],
    "pt-BR": [
        ["Evento", "Data", "Horário", "Dia inteiro", "Local", "Categoria", "Preço"],
        ["Concert", "16/11/2026", "19h30", "não", "Town hall", "Music, Jazz", "$5"],
    ],
    "nl": [
        ["Evenement", "Datum", "Tijd", "Hele dag", "Locatie", "Categorie", "Prijs"],
        ["Concert", "ma 16 nov. 2026", "19.30 uur", "nee", "Town hall", "Music, Jazz", "$5"],
    ],
    "ja": [
        ["イベント名", "開催日", "開始時間", "終日", "会場", "カテゴリー", "料金"],
        ["Concert", "2026年11月16日(月)", "午後7時30分", "いいえ", "Town hall", "Music\nJazz", "$5"],
    ],
}


def read_one(header: list[str], *cells: Cell, **defaults: Any) -> dict[str, Any]:
    """Read a table with one row and return its values."""
    reading = read_rows([header, list(cells)], None, defaults)
    assert not reading.source.rejections, reading.source.rejections
    return read_event(reading)


def list_events(rows: list[list[Cell]]) -> list[ImportedRecord]:
    return [record for record in read_rows(rows, None, {}).source.records if not record.is_linked]


def read_event(reading: TableReading) -> dict[str, Any]:
    """Return the values of the only event, with those of the places that it links to."""
    *places, event = reading.source.records
    linked = {
        name: [dict(place.values) for place in places if place.identity in identities]
        for name, identities in event.links.items()
    }
    return {**event.values, **linked}


@pytest.mark.parametrize("language", LANGUAGES)
def test_table_in_each_language_has_the_same_values(language: str) -> None:
    reading = read_rows(TABLES[language], None, {})
    assert read_event(reading) == {
        "title": "Concert",
        "start_date": "2026-11-16 19:30:00",
        "end_date": "2026-11-16 19:30:00",
        "all_day": False,
        "venue": [{"venue": "Town hall"}],
        "categories": ["Music", "Jazz"],
        "cost": "$5",
    }
    assert guess_language("events", [str(cell) for cell in TABLES[language][0]]) == language


def test_languages_of_headers_are_those_of_the_server() -> None:
    assert set(ORDER) == set(LANGUAGES)


@pytest.mark.parametrize("kind", TABLE_KINDS)
def test_headers_of_exports_are_read_as_their_field(kind: str) -> None:
    for language in LANGUAGES:
        headers = [get_header(kind, name, language) for name in TABLE_KINDS[kind]]
        assert [find_field(kind, header)[0] for header in headers] == list(TABLE_KINDS[kind])
        assert len(set(headers)) == len(headers)
        assert guess_kind(headers) == kind


@pytest.mark.parametrize(
    ("kind", "columns"), [("events", TEC_EVENTS), ("venues", TEC_VENUES), ("organizers", TEC_ORGANIZERS)]
)
def test_columns_of_the_events_calendar_are_known(kind: str, columns: dict[str, str]) -> None:
    assert {header: find_field(kind, header)[0] for header in columns} == columns
    assert guess_kind(columns) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-16", "2026-11-16"),
        ("2026-11-16T19:00:00+01:00", "2026-11-16 19:00:00+01:00"),
        ("16.11.26", "2026-11-16"),
        ("16.11.2026, 19:00 Uhr", "2026-11-16 19:00:00"),
        ("2026/11/16 19:30", "2026-11-16 19:30:00"),
        ("16-Nov-2026", "2026-11-16"),
        ("November 16th, 2026 at 7 PM", "2026-11-16 19:00:00"),
        ("1er mai 2026 à 20h", "2026-05-01 20:00:00"),
        ("16 de março de 2026 às 19h", "2026-03-16 19:00:00"),
        ("令和8年11月16日 19:30", "2026-11-16 19:30:00"),
        ("20261116T190000Z", "2026-11-16 19:00:00+00:00"),
        ("46342.8125", "2026-11-16 19:30:00"),
        (46342, "2026-11-16"),
        (46342.8125, "2026-11-16 19:30:00"),
        (date(2026, 11, 16), "2026-11-16"),
        (datetime(2026, 11, 16, 19, 29, 59, 999_999), "2026-11-16 19:30:00"),
    ],
)
def test_dates_are_read_in_common_forms(text: Cell, expected: str) -> None:
    assert read_one(["Title", "Start"], "A", text)["start_date"] == expected


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["1/2/2026", "13/2/2026"], "dmy"),
        (["1/2/2026", "2/13/2026"], "mdy"),
        (["1/2/2026"], "by language"),
        (["13.2.2026", "1.2.2026"], "by language"),
    ],
)
def test_order_of_days_and_months_is_that_of_the_column(cells: list[Cell], order: str) -> None:
    assert find_order(cells, "de") == (order if order != "by language" else "dmy")
    assert find_order(cells, "en") == (order if order != "by language" else "mdy")


def test_date_order_can_be_given() -> None:
    assert read_one(["Title", "Date"], "A", "1/2/2026")["start_date"] == "2026-01-02"
    assert read_one(["Title", "Date"], "A", "1/2/2026", date_order="dmy")["start_date"] == "2026-02-01"
    assert read_one(["Titel", "Datum"], "A", "1/2/2026")["start_date"] == "2026-02-01"


@pytest.mark.parametrize("text", ["31.2.2026", "16.11.", "tomorrow", "heute", "5", "2026", "0.5x", "99999999"])
def test_invalid_dates_are_rejected_with_their_place(text: str) -> None:
    reading = read_rows([["Titel", "Datum"], ["A", "1.1.2026"], ["B", text]], None, {})
    (rejection,) = reading.source.rejections
    problem = reading.preview[1]["cells"][1]["problem"]
    assert (rejection.line, rejection.title) == (3, "B")
    assert str(rejection.reason) == f"Column “Datum”, value “{text}”: {problem}"
    assert "date" in str(problem)
    assert reading.preview[0]["cells"][1]["problem"] is None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("19:00", [time(19)]),
        ("19.30 uur", [time(19, 30)]),
        ("7:30 p.m.", [time(19, 30)]),
        ("12 am", [time(0)]),
        ("19時30分〜21時", [time(19, 30), time(21)]),
        ("19:00 – 21:00 Uhr", [time(19), time(21)]),
        (0.8125, [time(19, 30)]),
        (time(19, 30), [time(19, 30)]),
        ("", []),
    ],
)
def test_times_are_read_in_common_forms(cell: Cell, expected: list[time]) -> None:
    assert [moment.time_of_day for moment in read_times(cell)] == expected


@pytest.mark.parametrize("text", ["25:00", "evening", "19:00 - 20:00 - 21:00", "12:99"])
def test_invalid_times_are_rejected(text: str) -> None:
    with pytest.raises(InvalidValue, match="must be a time"):
        read_times(text)


def test_time_with_an_offset_keeps_it() -> None:
    values = read_one(["Title", "Start date", "Start time"], "A", "2026-10-25", "02:30+01:00")
    assert values["start_date"] == "2026-10-25 02:30:00+01:00"


def test_end_after_midnight_is_on_the_next_day() -> None:
    values = read_one(["Title", "Date", "Start time", "End time"], "A", "2026-11-16", "22:00", "02:00")
    assert values["end_date"] == "2026-11-17 02:00:00"


def test_duration_is_that_of_the_source() -> None:
    values = read_one(["Title", "Date", "Time"], "A", "2026-11-16", "23:30", duration_minutes=60)
    assert values["end_date"] == "2026-11-17 00:30:00"


def test_event_without_times_lasts_all_day() -> None:
    values = read_one(["Title", "Start date", "End date"], "A", "2026-11-16", "2026-11-18")
    assert (values["start_date"], values["end_date"], values["all_day"]) == ("2026-11-16", "2026-11-18", True)


def test_times_of_an_all_day_event_are_left_out() -> None:
    header = ["Title", "Start date", "Start time", "End date", "All day"]
    values = read_one(header, "A", "2026-11-16", "00:00", "2026-11-18", "x")
    assert (values["start_date"], values["end_date"], values["all_day"]) == ("2026-11-16", "2026-11-18", True)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *[("Ja", True), ("nein", False), ("Oui", True), ("Sí", True), ("não", False), ("はい", True), ("x", True)],
        *[(True, True), (0, False), ("", None), (None, None), ("✓", True), ("WAHR", True), ("FALSE", False)],
    ],
)
def test_flags_are_read_in_each_language(word: Cell, expected: bool | None) -> None:
    assert read_flag(word) is expected


def test_unknown_flag_is_rejected() -> None:
    reading = read_rows([["Title", "Date", "Featured"], ["A", "2026-01-01", "perhaps"]], None, {})
    (rejection,) = reading.source.rejections
    assert str(rejection.reason) == "Column “Featured”, value “perhaps”: must be yes or no."


def test_lists_are_split_at_usual_separators() -> None:
    assert read_list("Music, Jazz;Swing|Bop\n Blues ,") == ["Music", "Jazz", "Swing", "Bop", "Blues"]


def test_several_columns_of_categories_are_joined() -> None:
    values = read_one(["Title", "Date", "Category", "Category"], "A", "2026-01-01", "Music", "Jazz, Music")
    assert values["categories"] == ["Music", "Jazz"]


def test_words_for_statuses_are_translated() -> None:
    header = ["Titel", "Datum", "Status", "Veranstaltungsstatus"]
    values = read_one(header, "A", "1.1.2026", "Entwurf", "Abgesagt")
    assert (values["status"], values["event_status"]) == ("draft", "cancelled")


def test_venue_and_organizers_have_their_data() -> None:
    header = ["Title", "Date", "Venue", "Address", "City", "Organizer"]
    values = read_one(header, "A", "2026-01-01", "Hall", "High Street 1", "Ulm", "Smith, Jones & Co.; Club")
    assert values["venue"] == [{"venue": "Hall", "address": "High Street 1", "city": "Ulm"}]
    assert values["organizer"] == [{"organizer": "Smith, Jones & Co."}, {"organizer": "Club"}]


def test_venue_without_a_name_has_that_of_its_address() -> None:
    values = read_one(["Title", "Date", "Address", "City"], "A", "2026-01-01", "High Street 1", "Ulm")
    assert values["venue"] == [{"venue": "High Street 1", "address": "High Street 1", "city": "Ulm"}]


def test_empty_cells_clear_texts_and_keep_flags() -> None:
    values = read_one(["Title", "Date", "Cost", "Venue", "Tags", "Featured", "Status"], "A", "2026-01-01")
    assert values == {
        "title": "A",
        "start_date": "2026-01-01",
        "end_date": "2026-01-01",
        "all_day": True,
        "cost": "",
        "venue": [],
        "tags": [],
    }


def test_time_zone_is_that_of_the_row_or_of_the_source() -> None:
    header = ["Title", "Date", "Time zone"]
    assert read_one(header, "A", "2026-01-01", "Asia/Tokyo", timezone="Europe/Paris")["timezone"] == "Asia/Tokyo"
    assert read_one(header, "A", "2026-01-01", "", timezone="Europe/Paris")["timezone"] == "Europe/Paris"
    assert "timezone" not in read_one(header, "A", "2026-01-01", "")


def test_mapping_replaces_the_guess() -> None:
    rows: list[list[Cell]] = [["Title", "What", "On", "Cost"], ["Code", "Concert", "2026-01-01", "5"]]
    reading = read_rows(rows, {"Title": "uid", "What": "title", "On": "start_date", "Cost": ""}, {})
    (record,) = reading.source.records
    assert (record.identity, record.values["title"]) == ("Code", "Concert")
    assert "cost" not in record.values
    assert [column["field"] for column in reading.columns] == ["uid", "title", "start_date", ""]


def test_unknown_fields_of_a_mapping_are_not_imported() -> None:
    reading = read_rows([["Title", "Date", "X"], ["A", "2026-01-01", "1"]], {"X": "password_hash"}, {})
    assert [column["field"] for column in reading.columns] == ["title", "start_date", ""]


def test_header_may_follow_a_title() -> None:
    rows: list[list[Cell]] = [["Programme 2026"], [], ["Title", "Date"], [], ["A", "2026-01-01"]]
    (record,) = read_rows(rows, None, {}).source.records
    assert (record.values["title"], record.line) == ("A", 5)


def test_identity_is_the_uid_or_a_fingerprint() -> None:
    header: list[Cell] = ["ID", "Title", "Date", "Venue", "Cost"]
    rows = [header, ["7", "A", "2026-01-01", "Hall", "5"], ["", "B", "2026-01-01", "Hall", "5"]]
    first = list_events(rows)
    changed = [header, ["7", "C", "2026-02-01", "", ""], ["", " b ", "2026-01-01", "hall", "6"]]
    second = list_events(changed)
    assert [record.identity for record in first] == [record.identity for record in second]
    assert first[0].identity == "7"
    moved = list_events([header, ["", "B", "2026-01-02", "Hall", "5"]])
    assert moved[0].identity != first[1].identity


def test_repeated_row_is_rejected() -> None:
    reading = read_rows([["Title", "Date"], ["A", "2026-01-01"], ["A", "2026-01-01"]], None, {})
    assert len(reading.source.records) == 1
    assert [(row.line, str(row.reason)) for row in reading.source.rejections] == [(3, "The row repeats row 2.")]
    assert reading.preview[1]["problem"] == reading.source.rejections[0].reason


def test_all_problems_of_a_row_are_in_one_rejection() -> None:
    rows: list[list[Cell]] = [["Title", "Date", "Website"], ["", "x", "not a URL: <>"]]
    (rejection,) = read_rows(rows, None, {}).source.rejections
    date, website, title = re.split(r"(?<=\.) (?=Column “Website”|The title)", str(rejection.reason))
    assert date.startswith("Column “Date”, value “x”: ")
    assert website.startswith("Column “Website”, value “not a URL: <>”: ")
    assert title == "The title is missing."


def test_table_without_dates_says_so() -> None:
    reading = read_rows([["Title", "Venue"], ["A", "Hall"]], None, {"kind": "events"})
    (rejection,) = reading.source.rejections
    assert str(rejection.reason) == str(reading.preview[0]["problem"]) == "The date is missing."


def test_row_with_more_cells_than_the_header_is_rejected() -> None:
    reading = read_rows([["Title", "Date"], ["A", "2026-01-01", "stray"]], None, {})
    assert [str(row.reason) for row in reading.source.rejections] == ["The row has more cells than the header."]


def test_preview_has_at_most_fifty_rows() -> None:
    rows: list[list[Cell]] = [["Title", "Date"], *[[f"A{n}", "2026-01-01"] for n in range(60)]]
    reading = read_rows(rows, None, {})
    assert (len(reading.source.records), len(reading.preview)) == (60, 50)
    assert [cell["text"] for cell in reading.preview[0]["cells"]] == ["A0", "2026-01-01"]


def test_span_covers_the_events() -> None:
    rows: list[list[Cell]] = [
        ["Title", "Start", "End"],
        ["A", "2026-01-02 10:00", "2026-01-05 12:00"],
        ["B", "2026-01-01", ""],
    ]
    span = read_rows(rows, None, {"site_timezone": "Europe/Berlin"}).source.span
    assert span == (datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2026, 1, 5, 11, tzinfo=UTC))


@pytest.mark.parametrize("rows", [[], [[]], [["", None], []]])
def test_empty_table_is_refused(rows: list[list[Cell]]) -> None:
    with pytest.raises(InvalidValue, match="is empty"):
        read_rows(rows, None, {})


def test_too_many_rows_and_columns_are_refused() -> None:
    with pytest.raises(InvalidValue, match="10000 rows"):
        read_rows([["Title", "Date"], *[["A", "2026-01-01"]] * 10_001], None, {})
    with pytest.raises(InvalidValue, match="200 columns"):
        read_rows([[str(n) for n in range(201)]], None, {})


@pytest.mark.parametrize(
    "text", ["=1+1", "+41 44 000", "-2+3", "@SUM(A1)", "'=1", "''=1", "＝1", "plain", "-73.5", "'quoted'", "5-3", ""]
)
def test_guard_against_formulas_is_reversible(text: str) -> None:
    guarded = guard_formula(text)
    assert unguard_formula(guarded) == text
    assert guarded[:1] not in ("=", "+", "@", "＝")
    assert guarded[:1] != "-" or guarded == "-73.5"
