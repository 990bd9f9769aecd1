"""Addresses in the order of their country."""

import pytest

from kalends.core.addresses import format_lines


@pytest.mark.parametrize(
    ("address", "lines"),
    [
        (("3 Mill Lane", "LF1 2AB", "Larkford", "", "United Kingdom"), ("3 Mill Lane", "Larkford LF1 2AB")),
        (("1 Quay St", "T12 X70A", "Cork", "Co. Cork", "Ireland"), ("1 Quay St", "Cork T12 X70A", "Co. Cork")),
        (("350 5th Ave", "10118", "New York", "NY", "USA"), ("350 5th Ave", "New York, NY 10118")),
        (("100 Queen St", "K1P 1J9", "Ottawa", "ON", "Canada"), ("100 Queen St", "Ottawa, ON K1P 1J9")),
        (("2 George St", "2000", "Sydney", "NSW", "Australia"), ("2 George St", "Sydney NSW 2000")),
        (("9 Cuba St", "6011", "Wellington", "", "New Zealand"), ("9 Cuba St", "Wellington 6011")),
        (("5 Janpath", "110001", "New Delhi", "Delhi", "India"), ("5 Janpath", "New Delhi 110001", "Delhi")),
        (("Rua A, 1", "01310-100", "São Paulo", "SP", "Brasil"), ("Rua A, 1", "São Paulo - SP", "01310-100")),
        (("Via Roma 1", "10121", "Torino", "TO", "Italia"), ("Via Roma 1", "10121 Torino TO")),
        (("千代田1-1", "100-0001", "千代田区", "東京都", "日本"), ("〒100-0001", "東京都千代田区千代田1-1")),
        (("Am Markt 1", "12345", "Lindenstadt", "", "Germany"), ("Am Markt 1", "12345 Lindenstadt")),
        (("1 rue A", "75001", "Paris", "Île-de-France", "FR"), ("1 rue A", "75001 Paris", "Île-de-France")),
    ],
)
def test_the_end_of_an_address_follows_the_country(address: tuple[str, ...], lines: tuple[str, ...]) -> None:
    assert format_lines(*address) == (*lines, address[-1])


@pytest.mark.parametrize("country", ["GB", "gb", " uk ", "Vereinigtes Königreich", "イギリス", "Scotland"])
def test_a_country_may_have_its_code_or_a_name_in_many_languages(country: str) -> None:
    assert format_lines("", "LF1 2AB", "Larkford", "", country)[0] == "Larkford LF1 2AB"


@pytest.mark.parametrize(
    ("address", "lines"),
    [
        (("", "", "", "", ""), ()),
        (("", "62701", "Springfield", "", "US"), ("Springfield 62701", "US")),
        (("", "62701", "", "IL", "US"), ("IL 62701", "US")),
        (("", "", "São Paulo", "", "BR"), ("São Paulo", "BR")),
        (("", "", "", "SP", "BR"), ("SP", "BR")),
        (("", "1010", "Wien", "Wien", "Österreich"), ("1010 Wien", "Österreich")),
        (("", "", "Singapore", "", "Singapore"), ("Singapore",)),
        (("1-1 Chiyoda", "〒100-0001", "Chiyoda", "Tokyo", "Japan"),
         ("〒100-0001", "1-1 Chiyoda", "Chiyoda, Tokyo", "Japan")),
        (("1-1 Ōtemachi", "", "Chiyoda", "Tōkyō", "Japan"), ("1-1 Ōtemachi", "Chiyoda, Tōkyō", "Japan")),
        (("{city}", "{code}", "{0}", "", "US"), ("{city}", "{0} {code}", "US")),
    ],
)  # fmt: skip
def test_missing_and_equal_parts_leave_no_trace(address: tuple[str, ...], lines: tuple[str, ...]) -> None:
    assert format_lines(*address) == lines
