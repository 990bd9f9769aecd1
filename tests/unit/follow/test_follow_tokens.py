"""Tokens in links: each opens one thing, for the right key only, and one of them expires."""

from datetime import UTC, datetime, timedelta

import pytest

from kalends.core.credentials import new_uid
from kalends.follow.rules.follow_limits import ends_emails, is_credible
from kalends.follow.rules.follow_tokens import (
    MANAGE_PERIOD,
    make_end_token,
    make_manage_token,
    make_message_id,
    mask_email,
    read_end_token,
    read_manage_token,
)

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
KEY, OTHER_KEY = b"k" * 16, b"o" * 16


def test_tokens_name_what_they_were_made_for() -> None:
    uid = new_uid()
    end, manage = read_end_token(make_end_token(KEY, uid)), read_manage_token(make_manage_token(KEY, uid, NOW))
    assert end is not None
    assert manage is not None
    assert (end.id, manage.id, manage.expires_at) == (uid, uid, NOW + MANAGE_PERIOD)
    assert [token.is_made_with(key) for token in (end, manage) for key in (KEY, OTHER_KEY)] == [True, False] * 2


def test_a_token_opens_no_other_page() -> None:
    uid = new_uid()
    assert read_manage_token(make_end_token(KEY, uid)) is None
    assert read_end_token(make_manage_token(KEY, uid, NOW)) is None


@pytest.mark.parametrize("text", ["", "x", "é", "a" * 43, "a" * 50, "=" * 43, "a b", "A" * 10_000])
def test_other_texts_are_no_tokens(text: str) -> None:
    for token in (read_end_token(text), read_manage_token(text)):
        assert token is None or not token.is_made_with(KEY)


def test_changed_tokens_are_rejected() -> None:
    text = make_manage_token(KEY, new_uid(), NOW)
    for position in range(0, len(text), 3):
        letter = "A" if text[position] != "A" else "B"
        token = read_manage_token(text[:position] + letter + text[position + 1 :])
        assert token is None or not token.is_made_with(KEY)


def test_message_ids_repeat_for_the_same_purpose_only() -> None:
    assert make_message_id(KEY, "a") == make_message_id(KEY, "a") != make_message_id(KEY, "b")
    assert make_message_id(KEY, "a") != make_message_id(OTHER_KEY, "a")


def test_masked_addresses_show_the_domain_only() -> None:
    assert mask_email("anna.b@example.org") == "a…@example.org"


def test_many_refusals_are_the_relays_fault() -> None:
    assert is_credible(20, 20)
    assert not is_credible(100, 21)
    assert is_credible(105, 21)


@pytest.mark.parametrize(("code", "number"), [("5.1.1", 2), ("5.2.1", 2), ("5.7.1", 3), ("550", 3)])
def test_emails_end_after_several_refusals(code: str, number: int) -> None:
    assert [ends_emails(refusals, code) for refusals in (number - 1, number)] == [False, True]


def test_manage_tokens_expire_after_thirty_days() -> None:
    assert timedelta(days=30) == MANAGE_PERIOD
