"""The settings of the former site, some of them derived from its events."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.core.languages import find_language
from kalends.core.tec.addresses import Home
from kalends.core.tec.exchanges import (
    DEFAULT_LIST,
    INDEX,
    SETTINGS,
    Exchange,
    Exchanges,
    JsonObject,
    count_pages,
    read_items,
    read_object,
)
from kalends.core.tec.fields import find_prevalent, read_meta, read_number, read_text
from kalends.core.tec.move_in import SiteFacts
from kalends.core.zones import read_zone

MONDAY, SUNDAY = 1, 7

_AMOUNT: Final = re.compile(r"\d+(?:[.,]\d+)?")


def read_site_facts(
    exchanges: Exchanges,
    events: Mapping[int, JsonObject],
    tribe_events: Mapping[int, JsonObject],
    ids: dict[str, int],
) -> SiteFacts:
    index, settings = _read_object(exchanges, INDEX), _read_object(exchanges, SETTINGS)
    home = Home.read(str(index.get("home") or index.get("url") or exchanges.read_fact("url", "")))
    symbol, position = find_currency(events, tribe_events)
    return SiteFacts(
        url=home.url,
        host=home.host,
        name=str(settings.get("title") or index.get("name") or ""),
        timezone=_find_zone(index, settings),
        language=find_language(str(settings.get("language") or "en")) or "",
        first_weekday=_read_weekday(settings.get("start_of_week")),
        per_page=_count_default_page(exchanges.find(DEFAULT_LIST)),
        currency_symbol=symbol,
        currency_position=position,
        currency_code=find_currency_code(events, tribe_events),
        namespaces=tuple(index.get("namespaces") or ()),
        highest_post_id=ids.get("posts", 0),
        highest_term_id=ids.get("terms", 0),
        highest_user_id=ids.get("users", 0),
    )


def find_currency(events: Mapping[int, JsonObject], tribe_events: Mapping[int, JsonObject]) -> tuple[str, str]:
    """Return the symbol that the site adds to a bare amount, and its position."""
    found: list[tuple[str, str]] = []
    for record_id, event in events.items():
        meta, shown = read_meta(event), str(tribe_events.get(record_id, {}).get("cost") or "")
        cost = read_text(meta, "_EventCost").strip()
        if read_text(meta, "_EventCurrencySymbol") or not _AMOUNT.fullmatch(cost) or cost not in shown:
            continue
        before, _, after = shown.partition(cost)
        if bool(before.strip()) != bool(after.strip()) and len(before + after) <= 16:
            found.append(((before + after).strip(), "prefix" if before.strip() else "postfix"))
    return find_prevalent(found) or ("", "")


def find_currency_code(events: Mapping[int, JsonObject], tribe_events: Mapping[int, JsonObject]) -> str:
    codes = (
        code
        for record_id, event in events.items()
        if not read_text(read_meta(event), "_EventCurrencyCode")
        for code in _list_codes(tribe_events.get(record_id, {}).get("json_ld"))
    )
    return find_prevalent(codes) or ""


def _list_codes(json_ld: Any) -> Iterable[str]:
    offers = json_ld.get("offers") if isinstance(json_ld, dict) else None  # pyright: ignore
    for offer in offers if isinstance(offers, list) else [offers]:  # pyright: ignore
        code = offer.get("priceCurrency") if isinstance(offer, dict) else None  # pyright: ignore
        if isinstance(code, str) and re.fullmatch(r"[A-Z]{3}", code):
            yield code


def _find_zone(index: JsonObject, settings: JsonObject) -> str:
    """Return the name of the zone; a site may have an offset instead."""
    for name in (index.get("timezone_string"), settings.get("timezone")):
        if isinstance(name, str) and name and (zone := _read_zone(name)):
            return zone
    hours = read_number(str(index.get("gmt_offset") or 0)) or 0.0
    minutes = round(abs(hours) * 60)
    sign = "-" if hours < 0 else "+"
    return _read_zone(f"UTC{sign}{minutes // 60}:{minutes % 60:02}") or "UTC"


def _read_zone(name: str) -> str:
    try:
        return read_zone(name)
    except InvalidValue:
        return ""


def _read_weekday(value: object) -> int:
    """Convert the number of WordPress, where Sunday is 0."""
    return int(value) or SUNDAY if isinstance(value, int | str) and str(value) in tuple("0123456") else MONDAY


def _count_default_page(exchange: Exchange | None) -> int | None:
    """Return the events per page; a single page does not tell."""
    if exchange is None or exchange.status != 200 or count_pages(exchange.headers) < 2:
        return None
    return len(read_items(exchange)) or None


def _read_object(exchanges: Exchanges, address: str) -> JsonObject:
    exchange = exchanges.find(address)
    return read_object(exchange) if exchange is not None and exchange.status == 200 else {}
