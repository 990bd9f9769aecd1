"""Starts nginx, Caddy and HAProxy with the examples of deploy/, on 127.0.0.1 and with short time limits."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.docs.page_commands import PROJECT
from tests.proxies.certificates import Authority, IssuedCertificate
from tests.servers import find_free_port

HOST = "calendar.example.org"
INTERNAL_HOST = "kalends.internal"
SHORT = "2s"
SEARCH_PATH = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"


@dataclass(frozen=True)
class Setup:
    """What a proxy stands between: its own certificate, and the server, optionally with TLS."""

    directory: Path
    certificate: IssuedCertificate
    server_port: int
    server_authority: Authority | None = None
    stream_port: int = 8001  # of the process for live lists

    @property
    def old_site(self) -> Path:
        """Return the folder with the uploads of a site that has moved in."""
        return self.directory / "old-site"

    def read_uploads_example(self, name: str) -> str:
        """Return the lines that docs/move-in.md adds for the old uploads folder."""
        page = (PROJECT / "docs" / "move-in.md").read_text()
        block = page.partition(f"\n{name}, ")[2].partition("```\n")[2].partition("```\n")[0]
        return replace(block, ("/srv/old-site", str(self.old_site)))


@dataclass(frozen=True)
class Proxy:
    name: str
    process: subprocess.Popen[bytes]
    port: int
    plain_port: int | None
    log: Path

    @classmethod
    @contextmanager
    def run(cls, name: str, setup: Setup) -> Iterator[Self]:
        """Start a proxy, wait until it listens, and stop it afterwards."""
        setup.directory.mkdir()
        log = setup.directory / "log"
        port, plain_port = find_free_port(), find_free_port()
        prepare = {"nginx": _prepare_nginx, "caddy": _prepare_caddy, "haproxy": _prepare_haproxy}[name]
        command = prepare(setup, port, plain_port)
        environment = {"PATH": SEARCH_PATH, "HOME": str(setup.directory), "XDG_DATA_HOME": str(setup.directory)}
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        proxy = cls(name, process, port, plain_port if name == "nginx" else None, log)
        try:
            proxy._wait_until_listening()
            yield proxy
        finally:
            process.terminate()
            process.wait(60)

    def read_log(self) -> str:
        return self.log.read_text(errors="replace")

    def _wait_until_listening(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not start:\n{self.read_log()}")


def is_installed(name: str) -> bool:
    return shutil.which(name, path=SEARCH_PATH) is not None


def replace(text: str, *replacements: tuple[str, str]) -> str:
    """Replace parts of an example; each of them must be there exactly once."""
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _prepare_nginx(setup: Setup, port: int, plain_port: int) -> list[str]:
    text = replace(
        (PROJECT / "deploy" / "nginx" / "kalends.conf").read_text(),
        ("server 127.0.0.1:8000;", f"server 127.0.0.1:{setup.server_port};"),
        ("server 127.0.0.1:8001;", f"server 127.0.0.1:{setup.stream_port};"),
        ("    listen 80;\n    listen [::]:80;\n", f"    listen 127.0.0.1:{plain_port};\n"),
        ("    listen 443 ssl http2;\n    listen [::]:443 ssl http2;\n", f"    listen 127.0.0.1:{port} ssl http2;\n"),
        (f"/etc/letsencrypt/live/{HOST}/fullchain.pem", str(setup.certificate.certificate)),
        (f"/etc/letsencrypt/live/{HOST}/privkey.pem", str(setup.certificate.key)),
        ("client_header_timeout 10s", f"client_header_timeout {SHORT}"),
        ("client_body_timeout 10s", f"client_body_timeout {SHORT}"),
        ("proxy_read_timeout 60s", "proxy_read_timeout 30s"),
        (
            "    location / {\n        proxy_pass",
            f"{setup.read_uploads_example('nginx')}    location / {{\n        proxy_pass",
        ),
    )
    if setup.server_authority:
        text = replace(
            text,
            ("proxy_pass http://", "proxy_pass https://"),
            ("#proxy_ssl_name", "proxy_ssl_name"),
            ("#proxy_ssl_server_name", "proxy_ssl_server_name"),
            ("#proxy_ssl_trusted_certificate /etc/ssl/kalends-internal.pem",
             f"proxy_ssl_trusted_certificate {setup.server_authority.path}"),
            ("#proxy_ssl_verify", "proxy_ssl_verify"),
            ("proxy_read_timeout 30s", f"proxy_read_timeout {SHORT}"),
        )  # fmt: skip
    folders = "\n".join(
        f"{name}_temp_path {setup.directory / name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    configuration = setup.directory / "nginx.conf"
    configuration.write_text(
        f"{user} daemon off; worker_processes 1; pid {setup.directory / 'pid'}; error_log stderr info;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{folders}\n{text}\n}}\n"
    )
    return ["nginx", "-p", str(setup.directory), "-e", "stderr", "-c", str(configuration)]


def _prepare_caddy(setup: Setup, port: int, _: int) -> list[str]:
    text = replace(
        (PROJECT / "deploy" / "caddy" / "Caddyfile").read_text(),
        ("\n{\n", "\n{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n"),
        (f"\n{HOST} {{", f"\nhttps://{HOST}:{port} {{"),
        (
            f"#tls /etc/ssl/{HOST}/fullchain.pem /etc/ssl/{HOST}/privkey.pem",
            f"tls {setup.certificate.certificate} {setup.certificate.key}",
        ),
        ("reverse_proxy @streams 127.0.0.1:8001", f"reverse_proxy @streams 127.0.0.1:{setup.stream_port}"),
        ("read_header 10s", f"read_header {SHORT}"),
        ("read_body 5m", "read_body 10s"),
        (
            "\treverse_proxy 127.0.0.1:8000",
            f"{setup.read_uploads_example('Caddy')}\treverse_proxy 127.0.0.1:{setup.server_port}",
        ),
    )
    if setup.server_authority:
        text = replace(
            text,
            ("\t#tls\n", "\ttls\n"),
            ("#tls_server_name", "tls_server_name"),
            ("#tls_trusted_ca_certs /etc/ssl/kalends-internal.pem",
             f"tls_trusted_ca_certs {setup.server_authority.path}"),
            ("response_header_timeout 60s", f"response_header_timeout {SHORT}"),
        )  # fmt: skip
    configuration = setup.directory / "Caddyfile"
    configuration.write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(configuration)]


def _prepare_haproxy(setup: Setup, port: int, plain_port: int) -> list[str]:
    both = setup.directory / "both.pem"
    both.write_text(setup.certificate.certificate.read_text() + setup.certificate.key.read_text())
    text = replace(
        (PROJECT / "deploy" / "haproxy" / "kalends.cfg").read_text(),
        ("bind :80\n", f"bind 127.0.0.1:{plain_port}\n"),
        ("bind :443", f"bind 127.0.0.1:{port}"),
        (f"/etc/haproxy/{HOST}.pem", str(both)),
        ("127.0.0.1:8000", f"127.0.0.1:{setup.server_port}"),
        ("127.0.0.1:8001", f"127.0.0.1:{setup.stream_port}"),
    )
    configuration = setup.directory / "haproxy.cfg"
    configuration.write_text(text)
    return ["haproxy", "-db", "-f", str(configuration)]
