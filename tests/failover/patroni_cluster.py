"""Three members of etcd, two nodes of Patroni and HAProxy on loopback addresses, from the files in deploy/patroni."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.lifecycle.processes import kill_postgres
from tests.servers import find_free_port
from tools import postgres

DEPLOY = Path(__file__).parents[2] / "deploy" / "patroni"
TIMEOUT = 120.0
ETCD = [f"127.0.0.{number}" for number in (121, 122, 123)]
NODES = {"pg1": "127.0.0.111", "pg2": "127.0.0.112"}
SUPERUSER = "postgres:change-me-superuser"
PROGRAMS = ("etcd", "patroni", "haproxy")


def find_missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]


def wait_for(condition: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.2)


@dataclass
class Node:
    """One machine with Patroni and PostgreSQL."""

    name: str
    host: str
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def start(self) -> None:
        configuration = self.directory / "patroni.yml"
        text = (DEPLOY / "patroni.yml").read_text()
        for old, new in {
            "name: pg1": f"name: {self.name}",
            "10.0.0.11": self.host,
            "10.0.0.21:2379,10.0.0.22:2379,10.0.0.23:2379": ",".join(f"{host}:2379" for host in ETCD),
            "10.0.0.0/24": "127.0.0.0/8",
            "/var/lib/postgresql/kalends": str(self.data),
            "/var/run/postgresql": str(self.directory),
        }.items():
            assert old in text
            text = text.replace(old, new)
        configuration.write_text(text)
        with (self.directory / "patroni.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["patroni", str(configuration)],
                stdout=log,
                stderr=log,
                user=postgres.find_other_user(),
                cwd="/",
                env={**os.environ, "HOME": str(self.directory)},  # Patroni writes a file with passwords there.
            )

    def request(self, path: str) -> int:
        try:
            return httpx.get(f"http://{self.host}:8008{path}", timeout=2, trust_env=False).status_code
        except httpx.TransportError:
            return 0

    def kill(self) -> None:
        """Kill Patroni and PostgreSQL at once, as if the machine had stopped."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        server = postgres.Server(self.data, 5432, int((self.data / "postmaster.pid").read_text().split()[0]))
        kill_postgres(server)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()


@dataclass
class Cluster:
    nodes: list[Node]
    haproxy_ports: tuple[int, int] = (0, 0)
    roles: dict[str, tuple[str, int] | None] = field(default_factory=dict)

    @property
    def leader(self) -> Node:
        leaders = [node for node in self.nodes if node.request("/primary") == 200]
        assert len(leaders) == 1, leaders
        return leaders[0]

    @property
    def standby(self) -> Node:
        leader = self.leader
        return next(node for node in self.nodes if node is not leader)

    @property
    def superuser_url(self) -> str:
        return f"postgresql://{SUPERUSER}@{self.leader.host}:5432/kalends"

    def wait_until_synchronous(self) -> None:
        """Wait until the standby has to confirm each commit."""

        def is_synchronous() -> bool:
            leaders = [node for node in self.nodes if node.request("/primary") == 200]
            others = [node for node in self.nodes if node.request("/synchronous") == 200]
            return len(leaders) == 1 and len(others) == 1

        wait_for(is_synchronous, "no synchronous standby")

    def find(self, path: str) -> tuple[str, int] | None:
        """Return the address of the node that has a role, as Patroni says."""
        return next(((node.host, 5432) for node in self.nodes if node.request(path) == 200), None)

    def switch_over(self) -> None:
        leader, standby = self.leader, self.standby
        body = {"leader": leader.name, "candidate": standby.name}
        response = httpx.post(f"http://{leader.host}:8008/switchover", json=body, timeout=60, trust_env=False)
        assert response.status_code == 200, response.text


@contextmanager
def run_etcd(directory: Path) -> Iterator[None]:
    members = ",".join(f"m{number}=http://{host}:2380" for number, host in enumerate(ETCD))
    with ExitStack() as stack:
        for number, host in enumerate(ETCD):
            log = stack.enter_context((directory / f"etcd-{number}.log").open("wb"))
            client, peer = f"http://{host}:2379", f"http://{host}:2380"
            options = {
                "name": f"m{number}",
                "data-dir": str(directory / f"etcd-{number}"),
                "listen-client-urls": client,
                "advertise-client-urls": client,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": members,
                "heartbeat-interval": "500",
                "election-timeout": "5000",
            }
            arguments = [f"--{name}={value}" for name, value in options.items()]
            process = subprocess.Popen(["etcd", *arguments], stdout=log, stderr=log)
            stack.callback(_end, process)
        wait_for(lambda: _is_healthy(f"http://{ETCD[0]}:2379/health"), "etcd is not healthy")
        yield


@contextmanager
def run_cluster(directory: Path) -> Iterator[Cluster]:
    """Start everything; the first node that starts becomes the primary."""
    directory.chmod(0o755)
    with ExitStack() as stack:
        stack.enter_context(run_etcd(directory))
        cluster = Cluster([])
        for name, host in NODES.items():
            place = directory / name
            place.mkdir()
            if user := postgres.find_other_user():
                shutil.chown(place, user)
            node = Node(name, host, place)
            stack.callback(node.stop)
            cluster.nodes.append(node)
            node.start()
            wait_for(lambda: any(node.request("/primary") == 200 for node in cluster.nodes), "no primary")
        cluster.wait_until_synchronous()
        stack.enter_context(run_haproxy(directory, cluster))
        yield cluster


@contextmanager
def run_haproxy(directory: Path, cluster: Cluster) -> Iterator[None]:
    cluster.haproxy_ports = (find_free_port(), find_free_port())
    text = (DEPLOY / "haproxy.cfg").read_text()
    for number, port in enumerate(cluster.haproxy_ports):
        text = text.replace(f"127.0.0.1:{5000 + number}", f"127.0.0.1:{port}")
    for node, address in zip(cluster.nodes, ("10.0.0.11", "10.0.0.12"), strict=True):
        text = text.replace(address, node.host)
    configuration = directory / "haproxy.cfg"
    configuration.write_text(text)
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    with (directory / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([str(program), "-f", str(configuration)], stdout=log, stderr=log)
    try:
        yield
    finally:
        _end(process)


def _is_healthy(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, timeout=2, trust_env=False).json().get("health") in ("true", True)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
