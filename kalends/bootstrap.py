"""From settings to the database and the media library, for the server, the worker and the commands."""

from pathlib import Path

from kalends.adapters.file_store import BucketOptions, DiskFileStore, FileStore, open_bucket
from kalends.core.egress import read_allowed_network
from kalends.operations.media.library import Library
from kalends.settings import Settings
from kalends.store.database import Options


def open_library(settings: Settings, *, image_workers: int | None = None) -> Library:
    """`at_once` images are worked on at the same time; None: as the settings say."""
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


def database_options(settings: Settings) -> Options:
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
    )
