"""A follower's address, key and search stay in two tables, and leave them when everything is erased."""

import logging
import zipfile
from pathlib import Path

import pytest

from kalends.bootstrap import JsonFormatter
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import FOLLOW, Reader, add_event, find_follows, send_due
from tests.lifecycle.processes import run_command
from tests.proposals.test_canaries import find_tables

FOREIGN = ("mail.log", "httpx")  # the SMTP server and the client of the tests
ADDRESS, SEARCH = "canary-xq7@example.org", "canary-xq7-search"


def test_addresses_and_searches_stay_in_their_tables(
    site: RunningApp, smtp: SmtpServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reader = Reader(site)
    add_event(site, SEARCH.replace("-", " ").replace("canary xq7", "canary"))
    path = f"{FOLLOW}?search={SEARCH}"
    assert reader.follow(path, email=ADDRESS).status_code == 200
    assert find_tables(site) == {"followers", "follows"}
    [email] = reader.receive()
    assert SEARCH not in email.text
    [row] = find_follows(site)
    reader.press(email.link, "confirm", follow=row["id"])
    site.sql("UPDATE follows SET next_at = date_trunc('hour', now()), query = 'search=canary'")
    smtp.answer = lambda step, address: f"451 {address} later" if step == "RCPT" else ""
    send_due(site, smtp.url)
    smtp.answer = lambda step, address: f"550 5.1.1 {address} unknown" if step == "RCPT" else ""
    site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
    send_due(site, smtp.url)
    site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
    send_due(site, smtp.url)
    assert find_tables(site) == {"followers"}
    logged = "\n".join(JsonFormatter().format(record) for record in caplog.records if record.name not in FOREIGN)
    assert ADDRESS not in logged
    assert email.link.strip("/").rpartition("/")[2] not in logged
    for accounts, is_included in ((False, False), (True, True)):
        archive = tmp_path / f"{accounts}.zip"
        option = ["--accounts"] if accounts else []
        done = run_command(site.database_url, "site", "export", "1", "--to", str(archive), *option)
        assert done.exit_code == 0, done.output
        with zipfile.ZipFile(archive) as opened:
            content = b"".join(opened.read(name) for name in opened.namelist())
        assert (ADDRESS.encode() in content) is is_included
    reader.press(email.link, "erase")
    assert find_tables(site) == set()
