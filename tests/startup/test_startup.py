"""Commands and the worker start without the modules that they do not need, and servers are warm when they start.

Metrics count every request, except for those of the warm-up.
"""

import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import httpx
import pytest

from tests.servers import Server, find_free_port, make_environment

WEB = {"starlette", "jinja2", "babel", "kalends.http", "kalends.api", "kalends.website"}
HEAVY = {"alembic", "asyncpg", "granian", "httpcore", "nh3", "procrastinate", "psycopg", "pydantic", "rich"}
# The target is 0.4 s on an idle machine with compiled modules; this bound also holds on a busy one without.
MAX_START_SECONDS = 2.0
# The first response of a server may take so many times the CPU time of later ones. Without a warm-up it takes 30
# times that of a page, and 3.5 times that of a list of the API.
MAX_FIRST_RESPONSE = 2.5


def list_modules(statement: str) -> set[str]:
    """Return the names of all modules that a new interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_worker_loads_no_web_framework() -> None:
    modules = list_modules("import kalends.worker")
    assert {"kalends.worker", "procrastinate"} <= modules
    assert not modules & WEB


def test_help_loads_no_heavy_libraries() -> None:
    modules = list_modules("from kalends.commands import app\napp(['--help'], standalone_mode=False)")
    assert "typer" in modules
    assert not modules & (WEB | HEAVY)


def test_command_loads_only_what_it_uses() -> None:
    statement = (
        "import os\nos.environ['KALENDS_DATABASE_URL'] = 'postgresql://127.0.0.1:1/x'\n"
        "from kalends.commands import app\ntry: app(['user', 'list'], standalone_mode=False)\n"
        "except BaseException: pass"
    )
    modules = list_modules(statement)
    assert "asyncpg" in modules
    assert not modules & (
        WEB | HEAVY - {"asyncpg", "nh3", "pydantic"} | {"kalends.calendar.kinds", "pydantic_settings"}
    )


@pytest.mark.parametrize("arguments", ["--help", "--version", "user list --help", "site list", "job list"])
def test_commands_start_fast(arguments: str) -> None:
    """The last ones read the settings and try to connect."""
    command = [sys.executable, "-m", "kalends", *arguments.split()]
    environment = make_environment(f"postgresql://127.0.0.1:{find_free_port()}/x")

    def measure() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(measure() for _ in range(2)) < MAX_START_SECONDS


def read_metrics(port: int, pattern: re.Pattern[str], expected: int) -> str:
    """Return the metrics once the matching values add up to `expected`: a request is counted after its response."""
    deadline = time.monotonic() + 10
    while True:
        metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        if sum(float(value) for value in pattern.findall(metrics)) == expected or time.monotonic() > deadline:
            return metrics
        time.sleep(0.1)


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_count_every_request(database_url: str, start_server: Callable[..., Server], workers: int) -> None:
    port = find_free_port()
    server = start_server(database_url, workers=workers, environment={"KALENDS_METRICS_PORT": str(port)})
    for _ in range(20):  # Each request has its own connection, so that both processes get some of them.
        assert httpx.get(f"{server.base_url}/events/list/").status_code == 200
    pattern = re.compile(r'^kalends_requests_total\{.*method="GET",route="/events/list/",status="200"\} (.*)$', re.M)
    metrics = read_metrics(port, pattern, 20)
    assert sum(float(value) for value in pattern.findall(metrics)) == 20, metrics
    assert 'kalends_request_seconds_count{method="GET",route="/events/list/"} 20.0\n' in metrics
    if promtool := shutil.which("promtool"):
        command = [promtool, "check", "metrics"]
        checked = subprocess.run(command, input=metrics, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def read_cpu_seconds(server: Server) -> float:
    """Return the CPU time of all threads of a server and its processes."""
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    threads = [thread for pid in (parent, *children) for thread in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@pytest.mark.parametrize("path", ["/events/month/2027-{:02}/", "/api/calendar/events/v1/events?search={}"])
def test_first_response_of_a_new_server(
    database_url: str, start_server: Callable[..., Server], path: str, report: Callable[[object], None]
) -> None:
    server = start_server(database_url)
    with server.client() as client:

        def measure(number: int) -> float:
            before = read_cpu_seconds(server)
            assert client.get(path.format(number)).status_code == 200
            return read_cpu_seconds(server) - before

        first, *others = [measure(number) for number in range(1, 10)]
    report(f"{path}: first {first * 1000:.0f} ms, later ones {median(others) * 1000:.1f} ms of CPU time")
    assert first <= MAX_FIRST_RESPONSE * median(others)
