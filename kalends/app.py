"""Composition: settings -> pool -> routes -> ASGI application. One application per process."""

from pathlib import Path

from kalends.core.forwarded import read_network
from kalends.core.outbound import read_permitted
from kalends.operations.fragments import Fragments
from kalends.operations.library import Library
from kalends.outside.files import BucketOptions, DiskFiles, Files, open_bucket
from kalends.settings import Settings, read_settings
from kalends.store.clocks import Clocks
from kalends.store.database import Database, Options
from kalends.store.migrations import newest_revision
from kalends.web.application import Application, Door, Front
from kalends.web.exchange import Service
from kalends.web.observe import Observer
from kalends.web.routes import EXTENSION, INTERFACE
from kalends.web.visit import Look


def create_application() -> Application:
    """What the server calls in each of its processes."""
    settings = read_settings()
    front = Front(
        doors=_doors(settings),
        origins=settings.cors_origins,
        schema=newest_revision(),
        look=Look(settings.tiles_url, settings.tiles_credit),
        shared_seconds=settings.shared_seconds,
        cache_bytes=settings.cache_mb * 1024 * 1024,
        stale_seconds=settings.stale_seconds,
        purges=bool(settings.purge_urls),
    )

    async def open_service() -> Service:
        database = await Database.open(database_options(settings))
        clocks = Clocks(database)
        return Service(
            database,
            clocks,
            Fragments(settings.cache_mb * 1024 * 1024 // 4) if settings.cache_mb else None,
            base_url=settings.base_url,
            body_limit=settings.body_limit,
            trusted_proxies=tuple(read_network(text) for text in settings.trusted_proxies),
            origins=settings.cors_origins,
            library=open_library(settings),
            media_url=settings.media_url,
            daily_records=settings.daily_records,
        )

    return Application(front, open_service, Observer(settings.log_format))


def _doors(settings: Settings) -> tuple[Door, ...]:
    """The interface, the paths under which existing clients look for it, and what is ours beside it."""
    home = f"{settings.api_root}/{INTERFACE.namespace}"
    extension = f"{settings.api_root}/{EXTENSION.namespace}"
    aliases = [Door(path, "/".join(path.split("/")[-3:]), INTERFACE, path) for path in settings.aliases]
    return (
        Door(home, INTERFACE.namespace, INTERFACE, home),
        Door(extension, EXTENSION.namespace, EXTENSION, home),
        *aliases,
    )


def open_library(settings: Settings, *, at_once: int | None = None) -> Library:
    """`at_once` images are worked on at the same time; None: as the settings say."""
    root = Path(settings.media_dir).absolute()
    files: Files = DiskFiles(root)
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
    permitted = [read_permitted(text) for text in settings.fetch_allow]
    return Library(
        files,
        root,
        limit=settings.media_limit,
        at_once=at_once or settings.media_processes,
        permitted=permitted,
    )


def database_options(settings: Settings) -> Options:
    return Options(
        url=settings.database_url,
        size=settings.pool_size,
        wait=settings.pool_wait,
        deadline=settings.statement_deadline,
        public_deadline=settings.public_deadline,
        transaction_deadline=settings.transaction_deadline,
        prepared=settings.prepared_statements,
        purging=bool(settings.purge_urls),
        per_client=settings.client_connections,
    )
