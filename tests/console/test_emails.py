"""E-mails with links: requested in the console, sent by the worker to a real SMTP server."""

import asyncio
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kalends.adapters.smtp_client import Email, Refused, ServerAway, make_message, send_email
from kalends.core.times import utc_now
from tests.api.conftest import StartApp
from tests.api.running_app import HOST, RunningApp
from tests.console.console_client import ConsoleClient, set_passwords
from tests.console.smtp_server import SmtpServer, run_smtp_server
from tests.lifecycle.processes import Worker, wait_until

BASE_URL = f"https://{HOST}"
EMAIL = Email("calendar@example.org", "Kalends", "ada@example.org", "Hello", "A text\n")


@pytest.fixture(scope="module")
def smtp() -> Iterator[SmtpServer]:
    with run_smtp_server() as server:
        yield server


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp, smtp: SmtpServer) -> RunningApp:
    started = start_single_site_for_module({"KALENDS_SMTP_URL": smtp.url, "KALENDS_BASE_URL": BASE_URL})
    set_passwords(started)
    return started


@pytest.fixture(scope="module")
def worker(app: RunningApp, smtp: SmtpServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    log = tmp_path_factory.mktemp("worker") / "log"
    with Worker.start(app.database_url, log, {"KALENDS_SMTP_URL": smtp.url, "KALENDS_BASE_URL": BASE_URL}) as started:
        yield started


def test_reset_by_email(app: RunningApp, smtp: SmtpServer, worker: Worker, visitor: ConsoleClient) -> None:
    app.sql("UPDATE users SET language = 'de' WHERE login = 'editor'")
    page = visitor.page("/console/reset")
    responses = [
        visitor.post("/console/reset", page.form(login=login))
        for login in ("nobody@example.org", "EDITOR@example.org", "subscriber\r\nBcc: x@example.org")
    ]
    assert {(row.status_code, row.text) for row in responses} == {(200, responses[0].text)}
    # The queue contains no link, so a copy of the database cannot be used to sign in.
    jobs = app.sql("SELECT args::text FROM procrastinate_jobs WHERE task_name = 'send_email'")
    assert not any("/console/link/" in row["args"] for row in jobs)
    wait_until(lambda: len(smtp.messages) == 1, 60)
    message = smtp.messages[0]
    assert (smtp.recipients[0], smtp.senders[0]) == (["editor@example.org"], f"calendar@{HOST}")
    assert message["From"] == f"Kalends <calendar@{HOST}>"
    assert message["Auto-Submitted"] == "auto-generated"
    link = re.search(rf"{re.escape(BASE_URL)}(/console/link/[\w-]+)", message.get_content())
    assert link
    assert visitor.post(link[1], {"password": "another password"}).status_code == 303
    assert ConsoleClient(app).sign_in("editor", "another password").status_code == 303
    wait_until(lambda: not app.sql("SELECT FROM procrastinate_jobs WHERE task_name = 'send_email'"), 60)
    assert len(smtp.messages) == 1


def test_all_administrators_learn_of_a_new_address(app: RunningApp, smtp: SmtpServer, worker: Worker) -> None:
    """Each administrator gets an e-mail in their language; links in later ones lead to the new address."""
    app.sql(
        """INSERT INTO users (site_id, id, login, email, role, language, disabled_at) VALUES
            (1, 901, 'zoe', 'zoe@example.org', 'administrator', 'de', NULL),
            (1, 902, 'max', 'max@example.org', 'administrator', '', now()),
            (1, 903, 'eva', 'eva@example.org', 'editor', '', NULL),
            (1, 904, 'ivo', '', 'administrator', '', NULL)"""
    )
    client, known = ConsoleClient.signed_in(app, "administrator"), len(smtp.messages)
    form = client.page("/console/settings").form(base_url=f"{BASE_URL}/new", confirm_base_url="true")
    assert client.post("/console/settings", form).status_code == 303
    wait_until(lambda: len(smtp.messages) == known + 2, 60)
    sent = dict(zip([to for (to,) in smtp.recipients[known:]], smtp.messages[known:], strict=True))
    assert {to: message["Subject"] for to, message in sent.items()} == {
        "administrator@example.org": "New address: Kalends",
        "zoe@example.org": "Neue Adresse: Kalends",
    }
    for message in sent.values():
        assert {BASE_URL, f"{BASE_URL}/new", "administrator"} <= set(message.get_content().split())
    app.set_site("base_url", "")
    app.sql("DELETE FROM users WHERE id > 900")


def test_a_refused_email_is_not_sent_again(
    app: RunningApp, smtp: SmtpServer, worker: Worker, visitor: ConsoleClient
) -> None:
    """The job ends, and no log has the address, which the server's answer contains."""
    tried: list[str] = []

    def refuse(step: str, address: str) -> str:
        if step == "RCPT":
            tried.append(address)
        return f"550 5.1.1 <{address}> unknown" if step == "RCPT" else ""

    smtp.answer = refuse
    assert visitor.post("/console/reset", {"login": "contributor"}).status_code == 200
    wait_until(lambda: bool(tried), 60)
    wait_until(lambda: not app.sql("SELECT FROM procrastinate_jobs WHERE task_name = 'send_email'"), 60)
    smtp.answer = lambda step, address: ""
    assert tried == ["contributor@example.org"]
    log = worker.log.read_text()
    assert "the SMTP server refused an email of site 1: SEND: 5.1.1" in log
    assert "contributor@" not in log


def test_one_account_gets_few_emails(app: RunningApp) -> None:
    for number in range(5):
        client = ConsoleClient(app, client_ip=f"198.51.100.{number}")
        assert client.post("/console/reset", {"login": "author"}).status_code == 200
    count = "SELECT count FROM login_failures WHERE subject = 'emails to ' || $1::text"
    assert app.sql(count, str(app.users["author"].id))[0]["count"] <= 3


def test_reset_is_throttled(app: RunningApp) -> None:
    client = ConsoleClient(app, client_ip="203.0.113.5")
    statuses = [client.post("/console/reset", {"login": "nobody"}).status_code for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert int(client.post("/console/reset", {"login": "nobody"}).headers["retry-after"]) > 0
    # Signing in is not affected.
    assert client.sign_in("author").status_code == 303


def test_link_in_email_never_follows_the_host_header(start_single_site: StartApp, smtp: SmtpServer) -> None:
    app = start_single_site({"KALENDS_SMTP_URL": smtp.url})
    page = ConsoleClient(app, headers={"host": "evil.example"}).post("/console/reset", {"login": "editor"})
    assert "An administrator can create a link" in page.text
    assert not app.sql("SELECT FROM procrastinate_jobs WHERE task_name = 'send_email'")


@pytest.mark.parametrize("text", ["Hello\r\nBcc: x@example.org", "Hello\nBcc: x@example.org", "Hello\r\n\r\nbody"])
def test_header_cannot_be_injected(text: str) -> None:
    message = make_message(Email("calendar@example.org", text, "ada@example.org", text, "A text"), utc_now())
    assert "Bcc" not in message
    assert message["Subject"] == " ".join(text.split())
    for address in (f"{text}@example.org", "ada@example.org\r\nBcc: x@example.org", "a@b.org, c@d.org"):
        with pytest.raises(ValueError, match=r".*"):
            make_message(Email("calendar@example.org", "", address, "", ""), utc_now())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server on 127.0.0.1 and of a client that trusts it."""
    key, path = (tmp_path_factory.mktemp("tls") / name for name in ("key.pem", "certificate.pem"))
    _make_certificate(key, path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path, key)
    return server, ssl.create_default_context(cafile=path)


def _make_certificate(key: Path, path: Path) -> None:
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key), "-days", "2"]
    subprocess.run(
        ["openssl", "req", "-x509", *options, "-out", str(path), *subject], check=True, capture_output=True
    )


async def send(server: SmtpServer, tls_context: ssl.SSLContext | None = None) -> None:
    await send_email(server.url, EMAIL, utc_now(), tls_context)
    await asyncio.sleep(0.2)  # The transport is closed after the last reply.


def test_errors_do_not_contain_the_address() -> None:
    with run_smtp_server() as server:
        server.answer = lambda step, address: f"550 5.1.1 <{address}> unknown" if step == "RCPT" else ""
        with pytest.raises(Refused, match=r"^SEND: 5\.1\.1$"):
            asyncio.run(send(server))
    with pytest.raises(ServerAway, match=r"^SEND: \w+$"):
        asyncio.run(send(server))


def test_connection_is_encrypted_if_possible(certificate: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server_context, client_context = certificate
    with run_smtp_server(tls_context=server_context) as server:
        asyncio.run(send(server, client_context))
        assert server.encrypted == [True]
    with run_smtp_server("smtps", ssl_context=server_context) as server:
        asyncio.run(send(server, client_context))
        assert len(server.messages) == 1
    with run_smtp_server(userinfo="ada:s3cret%2F%40@", auth_require_tls=False) as server:
        asyncio.run(send(server))
        assert server.logins == [(b"ada", b"s3cret/@")]
        assert server.encrypted == [False]
        assert server.messages[0].get_content().splitlines() == ["A text"]
