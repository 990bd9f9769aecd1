"""The similarity of two events: the score on labelled pairs, and its rules."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kalends.calendar.rules.similarity import (
    SAME_SCORE,
    SIMILAR_SCORE,
    EventFacts,
    compare_starts,
    compare_titles,
    compute_score,
)
from tests.unit.imports.labelled_pairs import START, Pair, list_pairs, make_handwritten, make_held_out


def rate(threshold: float, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return precision and recall of a threshold on labelled pairs."""
    labels = [(compute_score(first, second) >= threshold, is_same) for first, second, is_same in pairs]
    found = labels.count((True, True))
    return found / sum(proposed for proposed, _ in labels), found / sum(is_same for _, is_same in labels)


def test_links_are_certain() -> None:
    assert len(list_pairs()) == 643
    precision, recall = rate(SAME_SCORE, list_pairs())
    assert precision >= 0.98
    assert recall >= 0.95


def test_links_and_questions_find_most_duplicates() -> None:
    """A question may be wrong now and then: titles that differ only in the audience need a person."""
    precision, recall = rate(SIMILAR_SCORE, list_pairs())
    assert precision >= 0.97
    assert recall >= 0.96


def test_links_of_pairs_that_were_held_out() -> None:
    """The score was not tuned on these; they tell what to expect of other calendars."""
    assert len(make_held_out()) == 63
    precision, recall = rate(SAME_SCORE, make_held_out())
    assert precision >= 0.98
    assert recall >= 0.75


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("CANCELLED: Choir of the harbour", "Choir of the harbour"),
        ("Live: Choir of the harbour", "Choir of the harbour in the Town Hall"),
        ("AGM", "Annual General Meeting"),
        ("Vide-grenier", "Vide-grenier du 14 juillet"),
        ("Silvesterkonzert", "Silvester-Konzert der Philharmonie"),
        ("Flohmarkt", "Floh- und Trödelmarkt"),
        ("Vernissage: Karin Holt", "Ausstellungseröffnung Karin Holt"),
        ("Film: Nosferatu", "Nosferatu (OmU)"),
        ("Morris dancing", "Morris dancers at the fair"),
    ],
)
def test_title_that_says_more_is_linked_at_the_same_place_and_time(first: str, second: str) -> None:
    event = EventFacts(first, START, venue_names=("Town Hall",))
    assert compute_score(event, EventFacts(second, START, venue_names=("The Town Hall",))) >= SAME_SCORE
    later = START.replace(hour=START.hour + 2)
    assert compute_score(event, EventFacts(second, later, venue_names=("The Town Hall",))) < SAME_SCORE
    assert compute_score(event, EventFacts(second, START, venue_names=("Stadium",))) < SAME_SCORE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Guided tour of the castle", "Guided tour of the castle for children"),
        ("Gottesdienst", "Kindergottesdienst"),
        ("TSV Neustadt gegen FC Altdorf", "TSV Neustadt II gegen FC Altdorf II"),
        ("Versammlung Turnverein", "Versammlung Schützenverein"),
        ("Vernissage Karin Holt", "Finissage Karin Holt"),
    ],
)
def test_title_that_names_another_audience_number_or_group_is_not_linked(first: str, second: str) -> None:
    events = [EventFacts(title, START, venue_names=("Town Hall",)) for title in (first, second)]
    assert compute_score(*events) < SAME_SCORE
    clubs = ("Turnverein", "Schützenverein")
    events = [replace(event, organizer_names=(club,)) for event, club in zip(events, clubs, strict=True)]
    assert compute_score(*events) < SAME_SCORE


def test_title_that_names_the_other_place_makes_up_for_its_name() -> None:
    first = EventFacts("Dämmerschoppen", START, venue_names=("Feuerwehrhaus",))
    second = EventFacts("Feuerwehr-Dämmerschoppen", START, venue_names=("Gerätehaus",))
    assert compute_score(first, second) >= SAME_SCORE
    far = replace(first, coordinates=((48.4, 9.99),)), replace(second, coordinates=((49.4, 9.99),))
    assert compute_score(*far) < SIMILAR_SCORE


def test_score_does_not_depend_on_the_order() -> None:
    for first, second, _ in make_handwritten():
        assert compute_score(first, second) == pytest.approx(compute_score(second, first), abs=0.02)


def test_score_of_an_event_with_itself_is_one() -> None:
    event = EventFacts("Concert", START, venue_names=("Hall",), organizer_names=("Club",))
    assert compute_score(event, event) == pytest.approx(1.0)


def test_same_page_outweighs_another_title() -> None:
    first = EventFacts("Jazz im Park", START, website="https://www.example.org/events/jazz/")
    longer = EventFacts("Jazz im Park: Trio Alba", START, website="http://example.org/events/jazz")
    assert compute_score(first, longer) >= SAME_SCORE
    other = EventFacts("Jazz Night", START, website="http://example.org/events/jazz")
    assert SIMILAR_SCORE <= compute_score(first, other) < SAME_SCORE
    home_page = EventFacts("Jazz Night", START, website="https://www.example.org/")
    assert compute_score(first, home_page) < SIMILAR_SCORE


@pytest.mark.parametrize(
    ("first", "second"), [("Faust I", "Faust II"), ("Workshop 1", "Workshop 2"), ("U12 gegen Ulm", "U14 gegen Ulm")]
)
def test_other_numbers_are_other_events(first: str, second: str) -> None:
    assert compare_titles(first, second) <= 0.3


def test_year_and_markup_do_not_matter() -> None:
    assert compare_titles("Jazz im Park 2027", "<b>Jazz im Park</b>") == 1.0


def test_start_counts_less_the_further_it_is() -> None:
    event = EventFacts("A", START)
    scores = [compare_starts(event, EventFacts("A", START.replace(minute=START.minute - n))) for n in (0, 10, 30)]
    assert scores == sorted(scores, reverse=True)
    assert compare_starts(event, EventFacts("A", START.replace(hour=14))) == 0.0
