"""Use the settings to set up the database, media library and logging for the server, worker and commands."""

import logging
import logging.config
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kalends.settings import Settings

if TYPE_CHECKING:
    from kalends.adapters.tracing import Tracer
    from kalends.fleet.storage.replica import Replica
    from kalends.imports.operations.page_reader import PageReader
    from kalends.imports.operations.sources import Tools
    from kalends.media.adapters.library import Library
    from kalends.store.database import Options
    from kalends.store.site_database import SiteDatabase


def open_library(settings: Settings, *, image_workers: int | None = None) -> "Library":
    """Open the media library; `image_workers` overrides the number in the settings."""
    # Functions in this module import what they need, because most commands need only some of it and should start
    # fast.
    from kalends.core.egress import read_allowed_network
    from kalends.media.adapters.file_store import BucketOptions, DiskFileStore, FileStore, open_bucket
    from kalends.media.adapters.library import Library

    root = Path(settings.media_dir).absolute()
    files: FileStore = DiskFileStore(root)
    if settings.s3_bucket:
        files = open_bucket(
            BucketOptions(
                endpoint=settings.s3_endpoint,
                bucket=settings.s3_bucket,
                region=settings.s3_region,
                access_key=settings.s3_access_key,
                secret_key=settings.s3_secret_key.get_secret_value(),
            )
        )
    allowed_networks = [read_allowed_network(text) for text in settings.fetch_allowed_networks]
    return Library(
        files,
        root,
        max_bytes=settings.max_upload_bytes,
        image_workers=image_workers or settings.image_workers,
        allowed_networks=allowed_networks,
    )


def open_import_tools(settings: Settings, library: "Library | None" = None) -> "Tools":
    """Return what imports need: the file-parsing process, an HTTP client, and the media library."""
    from kalends.calendar.operations.duplicates import find_candidates
    from kalends.core.egress import read_allowed_network
    from kalends.imports.adapters.import_worker import ImportWorker
    from kalends.imports.operations.sources import Tools, make_fetcher

    fetcher = make_fetcher([read_allowed_network(text) for text in settings.fetch_allowed_networks])
    return Tools(ImportWorker(), fetcher, library, find_candidates)


def open_page_reader(settings: Settings) -> "PageReader":
    from kalends.core.egress import read_allowed_network
    from kalends.imports.operations.page_reader import PageReader

    return PageReader([read_allowed_network(text) for text in settings.fetch_allowed_networks])


def open_tracer(settings: Settings) -> "Tracer | None":
    if not settings.traces_url:
        return None
    from kalends.adapters import tracing

    return tracing.open_tracer(settings.traces_url, settings.traces_ratio)


def database_options(settings: Settings, tracer: "Tracer | None" = None) -> "Options":
    from kalends.store.database import Options

    return Options(
        url=settings.database_url,
        size=settings.pool_size,
        pool_timeout=settings.pool_timeout,
        statement_timeout=settings.statement_timeout,
        public_statement_timeout=settings.public_statement_timeout,
        transaction_timeout=settings.transaction_timeout,
        prepared=settings.prepared_statements,
        enqueue_purges=bool(settings.purge_urls),
        max_per_client=settings.max_connections_per_client,
        tracer=tracer,
    )


async def open_database(
    settings: Settings, tracer: "Tracer | None" = None, *, min_pool_timeout: float = 0.0
) -> "SiteDatabase":
    """Open the database, or all cells if there is a directory, without connecting yet."""
    from kalends.fleet.storage.cell_router import CellRouter
    from kalends.fleet.storage.cells import Cells
    from kalends.fleet.storage.directory import Directory
    from kalends.store.database import Database

    options = database_options(settings, tracer)
    options = replace(options, pool_timeout=max(options.pool_timeout, min_pool_timeout))
    if not settings.directory_url:
        return await Database.open(options)
    directory = await Directory.open(replace(options, url=settings.directory_url, enqueue_purges=False))
    databases = {name: await Database.open(replace(options, url=url)) for name, url in settings.cells.items()}
    return Cells(databases, CellRouter(directory))


async def open_replica(settings: Settings, primary: "SiteDatabase") -> "Replica | None":
    """Open the replica with a connection pool separate from the primary's; return None if there is no replica."""
    from kalends.fleet.storage.replica import Replica, ReplicaLimits
    from kalends.store.database import Database

    if not settings.replica_url:
        return None
    options = replace(
        database_options(settings),
        url=settings.replica_url,
        size=settings.replica_pool_size,
        enqueue_purges=False,
        is_standby=True,
    )
    limits = ReplicaLimits(settings.replica_max_lag, settings.replica_outage_seconds)
    return Replica(await Database.open(options), primary.by_cell[""], limits)


def configure_logging(log_format: str) -> None:
    """Send this process's log to standard error, as JSON lines or, if `log_format` is "plain", as text."""
    logging.config.dictConfig(logging_config(log_format))


def logging_config(log_format: str) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`; Granian applies it in each server process."""
    formatter = PlainFormatter if log_format == "plain" else JsonFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": f"{formatter.__module__}.{formatter.__qualname__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
        # Libraries such as Alembic and Procrastinate log routine work at INFO level.
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"kalends": {"level": "INFO"}, "_granian": {"level": "INFO", "propagate": True}},
    }


class JsonFormatter(logging.Formatter):
    """Formats a record as one line or, if it contains several requests, as one line per request."""

    def format(self, record: logging.LogRecord) -> str:
        requests: list[tuple[float, dict[str, object]]] | None = getattr(record, "events", None)
        if requests is None:
            return self._write_line(self._read_fields(record))
        event = record.getMessage()
        lines = ({"timestamp": _write_time(ended), "event": event, **fields} for ended, fields in requests)
        return "\n".join(map(self._write_line, lines))

    def _write_line(self, fields: dict[str, object]) -> str:
        return orjson.dumps(fields).decode()

    def _read_fields(self, record: logging.LogRecord) -> dict[str, object]:
        fields: dict[str, object] = {"timestamp": _write_time(record.created)}
        # Events such as requests have named fields; all other records have only a message.
        event_fields: dict[str, object] | None = getattr(record, "fields", None)
        if event_fields is not None:
            fields |= {"event": record.getMessage(), **event_fields}
        else:
            fields |= {"level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return fields


class PlainFormatter(JsonFormatter):
    """Formats a record as one line of text for reading in a terminal."""

    def _write_line(self, fields: dict[str, object]) -> str:
        timestamp = fields.pop("timestamp")
        return " ".join([str(timestamp), *[f"{name}={_escape(value)}" for name, value in fields.items()]])


def _write_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _escape(value: object) -> str:
    """Format a value on one line; escape control characters, which could forge a line or control a terminal."""
    text = str(value)
    return text if text.isprintable() else repr(text)
