"""The examples for nginx and Caddy: TLS, addresses of clients, limits, slow clients and faults behind the proxy."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO

import httpx
import psycopg
import pytest
from PIL import Image

from kalends.settings import Settings
from tests.api.running_app import User, add_users
from tests.conftest import replace_database, temporary_database
from tests.proxies.certificates import Authority
from tests.proxies.fragile_server import EVENT, FragileServer
from tests.proxies.proxy_processes import HOST, INTERNAL_HOST, Proxy, Setup, is_installed
from tests.servers import Server

NS = "/api/calendar/events/v1"
MEDIA = "/api/kalends/v1/media"
MAX_UPLOAD_BYTES: int = Settings.model_fields["max_upload_bytes"].default
TOMORROW = datetime.now(UTC) + timedelta(days=1)
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
# Source addresses of clients, so that each use of a password is recorded.
CLIENTS = {"nginx": "127.0.1.1", "caddy": "127.0.2.1"}
FORGERS = {"nginx": "127.0.1.2", "caddy": "127.0.2.2"}


@dataclass(frozen=True)
class Backend:
    server: Server
    database_url: str
    editor: User


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def backend(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[Backend]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        users = asyncio.run(add_users(url))
        settings = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1", "KALENDS_BASE_URL": f"https://{HOST}"}
        server = start_server(url, environment=settings, timeout=120)
        yield Backend(server, url, users["editor"])
        server.stop()


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def program(request: pytest.FixtureRequest) -> str:
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture(scope="module")
def proxy(
    program: str, backend: Backend, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """Start the proxy in front of the server."""
    certificate = authority.issue(HOST, valid_until=TOMORROW)
    port = httpx.URL(backend.server.base_url).port
    assert port
    setup = Setup(tmp_path_factory.mktemp(program) / "proxy", certificate, port)
    with Proxy.run(program, setup) as running:
        uploads = setup.old_site / "wp-content" / "uploads" / "2026"
        uploads.mkdir(parents=True)
        for name in ("programme.pdf", "Talk 2.MP3", "page.html", "shell.php", "drawing.svg", "hall.jpg"):
            (uploads / name).write_text(name)
        yield running


@pytest.fixture(scope="module")
def fragile_server() -> Iterator[FragileServer]:
    with FragileServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.proceed.set()
        server.shutdown()


@pytest.fixture(scope="module")
def relay(
    program: str, fragile_server: FragileServer, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """Start the proxy in front of a server with TLS."""
    certificate = authority.issue(HOST, valid_until=TOMORROW)
    fragile_server.context = authority.issue(INTERNAL_HOST, valid_until=TOMORROW).serving_context()
    setup = Setup(tmp_path_factory.mktemp(program) / "relay", certificate, fragile_server.port, authority)
    with Proxy.run(program, setup) as running:
        yield running


@contextmanager
def open_client(
    proxy: Proxy, authority: Authority, user: User | None = None, source: str = "127.0.0.1"
) -> Iterator[httpx.Client]:
    """Open a client that knows the proxy by its public name, from an IP address of this machine."""
    transport = httpx.HTTPTransport(verify=authority.trusting_context(), local_address=source)

    def use_public_name(request: httpx.Request) -> None:
        request.headers["Host"] = HOST
        request.extensions = {**request.extensions, "sni_hostname": HOST}

    with httpx.Client(
        base_url=f"https://127.0.0.1:{proxy.port}",
        transport=transport,
        auth=(user.login, user.password) if user else None,
        event_hooks={"request": [use_public_name]},
        timeout=60,
    ) as client:
        yield client


@pytest.fixture
def visitor(proxy: Proxy, authority: Authority) -> Iterator[httpx.Client]:
    with open_client(proxy, authority) as client:
        yield client


@pytest.fixture
def editor(proxy: Proxy, authority: Authority, backend: Backend) -> Iterator[httpx.Client]:
    with open_client(proxy, authority, backend.editor) as client:
        yield client


def test_pages_and_api_are_served_with_tls(visitor: httpx.Client) -> None:
    assert visitor.get("/").status_code == 200
    assert visitor.get(f"{NS}/events").json()["rest_url"].startswith(f"https://{HOST}/")


def test_certificate_is_verified(proxy: Proxy) -> None:
    with httpx.Client() as stranger, pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        stranger.get(f"https://127.0.0.1:{proxy.port}/", extensions={"sni_hostname": HOST})


def test_plain_http_is_redirected(proxy: Proxy) -> None:
    if proxy.plain_port is None:
        pytest.skip("Caddy redirects by itself, on port 80")
    response = httpx.get(f"http://127.0.0.1:{proxy.plain_port}/list/?page=2", headers={"Host": HOST})
    assert (response.status_code, response.headers["location"]) == (308, f"https://{HOST}/list/?page=2")


def test_server_sees_the_address_of_the_client(proxy: Proxy, backend: Backend, authority: Authority) -> None:
    source = CLIENTS[proxy.name]
    with open_client(proxy, authority, backend.editor, source) as client:
        assert client.get(f"{NS}/events").status_code == 200
    wait_for_use(backend.database_url, source)


def test_forged_address_is_not_trusted(proxy: Proxy, backend: Backend, authority: Authority) -> None:
    source, forged = FORGERS[proxy.name], "203.0.113.9"
    with open_client(proxy, authority, backend.editor, source) as client:
        assert client.get(f"{NS}/events", headers={"X-Forwarded-For": forged}).status_code == 200
    assert forged not in wait_for_use(backend.database_url, source)


def wait_for_use(database_url: str, client_ip: str) -> set[str]:
    """Wait until the use of a password from an IP address is recorded; return all recorded addresses."""
    deadline = time.monotonic() + 60
    with psycopg.connect(database_url, autocommit=True) as connection:
        while True:
            rows = connection.execute("SELECT client_ip FROM application_password_uses").fetchall()
            addresses = {row[0] for row in rows}
            if client_ip in addresses:
                return addresses
            assert time.monotonic() < deadline, addresses
            time.sleep(0.05)


@pytest.mark.parametrize("name", ["programme.pdf", "Talk 2.MP3"])
def test_files_of_an_old_site_come_from_its_uploads_folder(visitor: httpx.Client, name: str) -> None:
    response = visitor.get(f"/wp-content/uploads/2026/{name}")
    assert (response.status_code, response.text) == (200, name)
    assert response.headers["x-content-type-options"] == "nosniff"
    assert visitor.get(f"/wp-content/uploads/2026/missing-{name}").status_code == 404


@pytest.mark.parametrize("name", ["page.html", "shell.php", "drawing.svg", "hall.jpg", "../../../../etc/hosts"])
def test_other_files_of_an_old_site_are_not_served(visitor: httpx.Client, name: str) -> None:
    """The server answers for them: it redirects images that it knows."""
    response = visitor.get(f"/wp-content/uploads/2026/{name}")
    assert (response.status_code, response.json()["code"]) == (404, "rest_no_route")


def test_purge_is_refused(visitor: httpx.Client, backend: Backend) -> None:
    response = visitor.request("PURGE", "/", headers={"xkey": "s1"})
    assert response.status_code == 405
    assert '"method":"PURGE"' not in backend.server.read_log()


def test_image_of_the_maximum_size_is_accepted(editor: httpx.Client) -> None:
    response = upload(editor, MAX_UPLOAD_BYTES)
    assert response.status_code == 201, response.text


def test_larger_image_is_rejected(editor: httpx.Client) -> None:
    assert {upload(editor, MAX_UPLOAD_BYTES + 1).status_code for _ in range(3)} == {413}


def test_image_of_a_stranger_is_rejected(visitor: httpx.Client) -> None:
    assert {upload(visitor, MAX_UPLOAD_BYTES).status_code for _ in range(3)} == {401}


def test_larger_body_is_rejected_by_the_proxy(proxy: Proxy) -> None:
    if proxy.name == "caddy":
        pytest.skip("Caddy passes the head on, and the server rejects the announced length")
    lines = [f"POST {MEDIA} HTTP/1.1", f"Host: {HOST}", f"Content-Length: {MAX_UPLOAD_BYTES + 4_000_000}", "", ""]
    with open_connection(proxy) as connection:
        connection.sendall("\r\n".join(lines).encode())
        assert connection.recv(64).split(b" ")[1] == b"413"


def upload(client: httpx.Client, size: int) -> httpx.Response:
    """Upload an image that has been filled up to a number of bytes."""
    picture = BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "PNG")
    content = picture.getvalue().ljust(size, b"\0")
    headers = {"Content-Disposition": 'attachment; filename="filled.png"', "Content-Length": str(size)}
    # In parts: the client copies what remains of a part after each record of TLS.
    parts = (content[start : start + 65536] for start in range(0, size, 65536))
    return client.post(MEDIA, content=parts, headers={"Content-Type": "image/png", **headers})


@contextmanager
def open_connection(proxy: Proxy) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        yield connection


@pytest.mark.parametrize(
    "part",
    [f"GET / HTTP/1.1\r\nHost: {HOST}\r\n", f"POST /x HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\n{{"],
    ids=["head", "body"],
)
def test_slow_client_is_disconnected(proxy: Proxy, part: str) -> None:
    with open_connection(proxy) as connection:
        connection.sendall(part.encode())
        while received := read_or_nothing(connection):
            assert received.startswith(b"HTTP/1.1 4") or b"HTTP/1.1" not in received


def read_or_nothing(connection: ssl.SSLSocket) -> bytes:
    """Read a part of the response; nothing at the end, also if the connection was reset. Fail after 60 s."""
    try:
        return connection.recv(4096)
    except (ConnectionResetError, ssl.SSLError):
        return b""


def test_stream_is_not_buffered(relay: Proxy, fragile_server: FragileServer, authority: Authority) -> None:
    fragile_server.proceed.clear()
    with open_client(relay, authority) as client, client.stream("GET", "/stream") as response:
        parts = response.iter_raw()
        # The server sends the second part only after the first one has arrived.
        assert next(parts) == EVENT
        fragile_server.proceed.set()
        assert b"".join(parts) == EVENT


def test_hanging_server_gets_504_until_it_responds_again(
    relay: Proxy, fragile_server: FragileServer, authority: Authority
) -> None:
    fragile_server.proceed.clear()
    with open_client(relay, authority) as client:
        assert client.get("/hang").status_code == 504
        assert ("upstream timed out" if relay.name == "nginx" else "timeout awaiting response") in relay.read_log()
        fragile_server.proceed.set()
        assert client.get("/").status_code == 200


def test_expired_certificate_of_the_server_gets_502_until_it_is_renewed(
    relay: Proxy, fragile_server: FragileServer, authority: Authority
) -> None:
    valid = fragile_server.context
    with open_client(relay, authority) as client:
        fragile_server.context = authority.issue(INTERNAL_HOST, valid_until=YESTERDAY, name="old").serving_context()
        assert client.get("/").status_code == 502
        assert "certificate has expired" in relay.read_log()
        fragile_server.context = valid
        assert client.get("/").status_code == 200
