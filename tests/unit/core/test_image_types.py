"""The type of a file follows from its content, and its name from its hash."""

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.image_types import AVIF, GIF, JPEG, PNG, WEBP, extract_file_name, make_key, read_key, sniff_type

HASH = "ab" + "0123456789abcdef" * 3 + "0123456789abcd"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0 more", JPEG),
        (b"\x89PNG\r\n\x1a\n more", PNG),
        (b"GIF87a more", GIF),
        (b"GIF89a more", GIF),
        (b"RIFF\x10\0\0\0WEBPVP8 ", WEBP),
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", AVIF),
        (b"\0\0\0\x1cftypavis\0\0\0\0avifavismsf1", AVIF),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", AVIF),
    ],
)
def test_type_is_detected_from_first_bytes(head: bytes, kind: object) -> None:
    assert sniff_type(head) is kind


@pytest.mark.parametrize(
    "head",
    [
        b"", b"\xff\xd8", b"\x89PNG\n", b"GIF88a", b"RIFF\x10\0\0\0WAVEfmt ", b"BM\0\0", b"II*\0", b"MM\0*",
        b"%PDF-1.7", b"%!PS-Adobe", b"<html>", b"<?php", b"PK\x03\x04", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        b"#!/bin/sh", b"\0\0\0\x14ftypisom\0\0\0\0isom", b"8BPS", b"\0\0\x01\0", b"<svg xmlns='http://www.w3.org/2000/svg'>",
        b"<?xml version='1.0'?>\n<SVG>", b" \x89PNG\r\n\x1a\n", b"push graphic-context",
        b"\0\0\0\x10ftypisom\0\0\0\0" + b"avif",  # behind the end of its box
    ],
)  # fmt: skip
def test_unsupported_types_are_rejected(head: bytes) -> None:
    with pytest.raises(InvalidValue):
        sniff_type(head)


def test_svg_is_rejected_with_reason() -> None:
    with pytest.raises(InvalidValue, match="scripts"):
        sniff_type(b"<?xml?><svg onload='alert(1)'>")


def test_key_contains_site_and_content_hash() -> None:
    key = make_key(7, f"{HASH}.jpg")
    assert key == f"7/ab/{HASH}.jpg"
    assert read_key(key) == (7, f"{HASH}.jpg")
    assert extract_file_name(f"https://cdn.example/pictures/{key}") == f"{HASH}.jpg"
    assert extract_file_name(f"https://cdn.example/{key}?x=1#y") == f"{HASH}.jpg"


@pytest.mark.parametrize(
    "key",
    ["", "7", f"7/cd/{HASH}.jpg", f"0/ab/{HASH}.jpg", f"07/ab/{HASH}.jpg", f"7/ab/{HASH}.svg", f"7/ab/{HASH}",
     f"../ab/{HASH}.jpg", f"7/../{HASH}.jpg", f"7/ab/../{HASH}.jpg", f"7/ab/{HASH.upper()}.jpg", f"7/ab/{HASH}.jpg\n",
     f"7/ab/{HASH}.jpg/", f"/7/ab/{HASH}.jpg", f"٧/ab/{HASH}.jpg"],
)  # fmt: skip
def test_malformed_keys_are_rejected(key: str) -> None:
    assert read_key(key) is None
