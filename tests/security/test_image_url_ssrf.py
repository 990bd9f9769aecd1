"""No address of an image makes the server ask this machine or its network. Redirects, names that change their
meaning and the guarded client by itself: media/test_safe_fetch.py, media/test_dns_rebinding.py."""

import asyncio
from itertools import cycle

import pytest

from tests.api.sample_records import POSTS
from tests.media.image_fixtures import listening
from tests.media.ssrf_attempts import ADDRESSES, HOSTS, NAMES
from tests.security.instance import Place, Tell, first, some
from tests.security.wire_client import NS, ask, send


def attempts(port: int) -> list[str]:
    """Names that an attacker's name server would answer are left to the tests of the client."""
    hosts = [host for host in HOSTS if host not in NAMES]
    urls = [f"http://{host}:{port}/x.png" for host in hosts] + [f"http://{host}/x.png" for host in hosts]
    return urls + [text.format(port=port) for text in ADDRESSES]


@pytest.mark.slow
async def test_image_urls_do_not_reach_internal_addresses(place: Place, tell: Tell) -> None:
    reached: list[str] = []

    async def forbidden(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(str(writer.get_extra_info("sockname")))

    async with listening(forbidden, "0.0.0.0") as port, listening(forbidden, "::1", port):
        urls = some(attempts(port), 31)
        login = place.logins["editor"]
        asks = [
            send("POST", f"{NS}/{post.kind}", post.body(image=url)).by(login)
            for url, post in zip(urls, cycle(POSTS), strict=False)
        ]
        answers = [await asyncio.to_thread(ask, place.server.address, one) for one in asks]
    wrong = [
        (url, got.status, got.body[:200])
        for url, got in zip(urls, answers, strict=True)
        if got.status != 400 or list(got.json()["data"]["params"]) != ["image"]
    ]
    assert wrong == [], first(wrong)
    assert reached == []
    tell(f"{len(urls)} of {len(attempts(0))} addresses that must not be fetched, {len(urls)} refused, none asked")
