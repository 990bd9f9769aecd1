"""Composition: settings -> pool -> routes -> ASGI application. One application per process."""

from kalends.operations.fragments import Fragments
from kalends.settings import Settings, read_settings
from kalends.store.clocks import Clocks
from kalends.store.database import Database, Options
from kalends.store.migrations import newest_revision
from kalends.web.application import Application, Door, Front
from kalends.web.endpoint import Service
from kalends.web.observe import Observer
from kalends.web.routes import EXTENSION, INTERFACE


def create_application() -> Application:
    """What the server calls in each of its processes."""
    settings = read_settings()
    front = Front(
        doors=_doors(settings),
        origins=settings.cors_origins,
        schema=newest_revision(),
        shared_seconds=settings.shared_seconds,
        cache_bytes=settings.cache_mb * 1024 * 1024,
    )

    async def open_service() -> Service:
        database = await Database.open(database_options(settings))
        return Service(
            database,
            Clocks(database),
            Fragments(settings.cache_mb * 1024 * 1024 // 4) if settings.cache_mb else None,
            base_url=settings.base_url,
            body_limit=settings.body_limit,
            trust_forwarded=settings.trust_forwarded,
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


def database_options(settings: Settings) -> Options:
    return Options(
        url=settings.database_url,
        size=settings.pool_size,
        wait=settings.pool_wait,
        deadline=settings.statement_deadline,
        prepared=settings.prepared_statements,
        purging=bool(settings.purge_urls),
    )
