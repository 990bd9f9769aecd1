"""No address of an image makes the server ask this machine or its network. Redirects, names that change their
meaning and the guarded client by itself: media/test_safe_fetch.py, media/test_dns_rebinding.py."""

import asyncio
from itertools import cycle

from tests.api.sample_records import POSTS
from tests.media.image_fixtures import start_listener
from tests.media.ssrf_attempts import HOSTILE_HOSTS, HOSTILE_NAMES, HOSTILE_URLS
from tests.security.instance import Instance, Report, sample_evenly, take_first
from tests.security.wire_client import API_PATH, json_request, send_one


def attack_urls(port: int) -> list[str]:
    """Names that an attacker's name server would answer are left to the tests of the client."""
    hosts = [host for host in HOSTILE_HOSTS if host not in HOSTILE_NAMES]
    urls = [f"http://{host}:{port}/x.png" for host in hosts] + [f"http://{host}/x.png" for host in hosts]
    return urls + [text.format(port=port) for text in HOSTILE_URLS]


async def test_image_urls_do_not_reach_internal_addresses(instance: Instance, report: Report) -> None:
    reached: list[str] = []

    async def forbidden(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(str(writer.get_extra_info("sockname")))

    async with start_listener(forbidden, "0.0.0.0") as port, start_listener(forbidden, "::1", port):
        urls = sample_evenly(attack_urls(port), 31)
        login = instance.logins["editor"]
        requests = [
            json_request("POST", f"{API_PATH}/{post.kind}", post.body(image=url)).with_login(login)
            for url, post in zip(urls, cycle(POSTS), strict=False)
        ]
        responses = [await asyncio.to_thread(send_one, instance.server.base_url, one) for one in requests]
    wrong = [
        (url, response.status, response.body[:200])
        for url, response in zip(urls, responses, strict=True)
        if response.status != 400 or list(response.json()["data"]["params"]) != ["image"]
    ]
    assert wrong == [], take_first(wrong)
    assert reached == []
    report(f"{len(urls)} of {len(attack_urls(0))} forbidden URLs, {len(urls)} rejected, none requested")
