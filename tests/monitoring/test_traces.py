"""Traces of requests, statements and jobs, in memory; and nothing of all this while they are switched off."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from kalends.adapters.tracing import JobObserver, Tracer
from kalends.bootstrap import database_options, open_tracer
from kalends.core.limits import read_network
from kalends.core.times import utc_now
from kalends.http.telemetry import Telemetry, request_span
from kalends.settings import Settings
from kalends.store.database import Database
from kalends.store.sql import Sql
from kalends.worker import create_queue, register_tasks
from tests.api.running_app import API_PATH, RunningApp, User
from tests.conftest import replace_database, temporary_database
from tests.servers import find_free_port, make_environment
from tests.startup.test_startup import list_modules

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
EVENT = {"title": "Secret concert", "start_date": "2030-05-01 20:00:00", "end_date": "2030-05-01 22:00:00"}


class Memory:
    """A tracer that keeps its spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = Tracer(provider)

    def take(self) -> list[ReadableSpan]:
        spans = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return spans


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


@pytest.fixture(scope="module")
def app(postgres_url: str, user_template: tuple[str, dict[str, User]], memory: Memory) -> Iterator[RunningApp]:
    template, users = user_template
    settings = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1", "KALENDS_PURGE_URLS": "http://127.0.0.1:1/"}
    with (
        temporary_database(postgres_url, template=template) as name,
        RunningApp(replace_database(postgres_url, name), users, settings, tracer=memory.tracer) as running,
    ):
        yield running


def find_span(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    (span,) = [span for span in spans if span.name == name]
    return span


def test_request_and_its_statements_are_one_trace(app: RunningApp, memory: Memory) -> None:
    memory.take()
    response = app.caller().get("/events?search=s3cret")
    assert response.status_code == 200
    spans = memory.take()
    request = find_span(spans, "GET /events")
    assert request.kind is SpanKind.SERVER
    attributes = dict(request.attributes or {})
    assert attributes.pop("kalends.request_id") == response.headers["x-request-id"]
    assert attributes == {
        "http.request.method": "GET",
        "url.path": f"{API_PATH}/events",
        "http.route": "/events",
        "http.response.status_code": 200,
    }
    statements = [span for span in spans if span.kind is SpanKind.CLIENT]
    assert {"BEGIN", "SELECT", "COMMIT"} <= {span.name for span in statements}
    for span in statements:
        assert span.parent is not None
        assert request.context is not None
        assert span.parent.span_id == request.context.span_id
    # Neither the query string nor a value of a statement is in a span.
    assert "s3cret" not in "".join(span.to_json() for span in spans)


def test_only_trusted_proxies_continue_a_trace(app: RunningApp, memory: Memory) -> None:
    memory.take()
    app.caller().get("/tags", headers={"traceparent": TRACEPARENT})
    request = find_span(memory.take(), "GET /tags")
    assert request.context is not None
    assert f"{request.context.trace_id:032x}" == TRACE_ID
    scope = {"client": ("203.0.113.9", 1), "headers": [(b"traceparent", TRACEPARENT.encode())], "method": "GET"}
    with request_span(memory.tracer, {**scope, "path": "/"}, [read_network("127.0.0.1")]):
        pass
    (request,) = memory.take()
    assert request.parent is None


def test_job_belongs_to_the_trace_of_its_request(app: RunningApp, memory: Memory) -> None:
    memory.take()
    assert app.caller("editor").post("/events", EVENT).status_code == 201
    request = find_span(memory.take(), "POST /events")
    settings = Settings(database_url=app.database_url, purge_urls=("http://127.0.0.1:1/",))

    async def run_jobs() -> None:
        database = await Database.open(database_options(settings, memory.tracer))
        queue, _ = create_queue(settings)
        async with queue.open_async():
            register_tasks(queue, database, settings)
            await queue.run_worker_async(
                wait=False, install_signal_handlers=False, worker_middleware=[JobObserver(memory.tracer)]
            )
        await database.close()

    app.run(run_jobs())
    spans = memory.take()
    job = find_span(spans, "job purge")
    assert request.context is not None
    assert job.context is not None
    assert job.parent is not None
    assert (job.context.trace_id, job.parent.span_id) == (request.context.trace_id, request.context.span_id)
    # The cache does not respond, and the span of the job says so.
    assert job.status.status_code is StatusCode.ERROR
    inner = [span for span in spans if span.parent and span.parent.span_id == job.context.span_id]
    assert {"BEGIN", "SELECT", "COMMIT"} <= {span.name for span in inner}


def test_failed_statement_is_marked(app: RunningApp, memory: Memory) -> None:
    memory.take()

    async def fail() -> None:
        database = await Database.open(database_options(Settings(database_url=app.database_url), memory.tracer))
        try:
            with memory.tracer.request_span("GET", "/", ""):
                async with database.transaction(1, utc_now(), writing=False) as tx:
                    await tx.fetch_one(Sql("SELECT 1 / 0"))
        finally:
            await database.close()

    with pytest.raises(Exception, match="division by zero"):
        app.run(fail())
    (failed,) = [span for span in memory.take() if span.kind is SpanKind.CLIENT and not span.status.is_ok]
    assert (failed.attributes or {})["error.type"] == "22012"


def test_without_a_collector_nothing_is_imported_or_traced() -> None:
    assert open_tracer(Settings()) is None
    assert Telemetry().tracer is None
    assert not [name for name in list_modules("import kalends.asgi, kalends.worker") if "opentelemetry" in name]


def test_missing_extra_is_explained() -> None:
    program = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.startswith('opentelemetry'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from kalends.commands import app\napp(['worker'])"
    )
    url = f"postgresql://127.0.0.1:{find_free_port()}/x"
    environment = make_environment(url, {"KALENDS_TRACES_URL": "http://127.0.0.1:4318/v1/traces"})
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "KALENDS_TRACES_URL needs OpenTelemetry: install kalends[otel].\n"
