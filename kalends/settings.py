"""Settings from the environment, checked at start. Each is named KALENDS_ and its name in capitals."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kalends.core.egress import read_allowed_network
from kalends.core.forwarded import read_network

CommaSeparated = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="KALENDS_", extra="ignore")

    database_url: str = Field(default="postgresql:///kalends", description="Address of the PostgreSQL database.")
    migration_url: str = Field(
        default="",
        description="Address of the same database with the login of its owner, for migrate, seed and site add; "
        "empty: that of KALENDS_DATABASE_URL.",
    )
    queue_url: str = Field(
        default="",
        description="Address of the same database with the login of the job queue, for the worker and jobs; "
        "empty: that of KALENDS_DATABASE_URL.",
    )
    base_url: str = Field(
        default="",
        description="Address under which clients reach the server, without a path; "
        "empty: the one that each request names.",
    )
    api_root: str = Field(default="/api", description="Path of the REST root.")
    aliases: CommaSeparated = Field(
        default=(),
        description="Further paths of the namespace, separated by commas, such as /wp-json/tribe/events/v1.",
    )
    cors_origins: CommaSeparated = Field(
        default=("*",),
        description="Origins whose scripts may read answers, separated by commas; * is all, empty is none.",
    )
    pool_size: int = Field(default=10, ge=1, le=500, description="Database connections of one process.")
    client_connections: int = Field(
        default=4,
        ge=0,
        le=500,
        description="Database connections that one client address may use at a time in one process; further requests "
        "wait a moment, then get 503. 0: no limit.",
    )
    pool_wait: float = Field(
        default=1.0, gt=0, le=60, description="Seconds a request waits for a connection before it gets 503."
    )
    statement_deadline: float = Field(
        default=10.0, gt=0, le=600, description="Seconds that one database statement may take."
    )
    public_deadline: float = Field(
        default=3.0,
        gt=0,
        le=600,
        description="Seconds that one database statement may take for a read without credentials.",
    )
    transaction_deadline: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="Seconds that one write may take as a whole, a batch included; "
        "a longer one is rolled back and gets 503.",
    )
    prepared_statements: bool = Field(default=True, description="Set to false behind PgBouncer in transaction mode.")
    body_limit: int = Field(default=2 * 1024 * 1024, ge=1024, description="Most bytes of a request's body.")
    daily_records: int = Field(
        default=5000,
        ge=0,
        description="Maximum number of records that an account below the role editor may create per day (UTC); "
        "0: no limit.",
    )
    trash_days: int = Field(
        default=30, ge=1, description="Days after which a record in the trash is removed for good."
    )
    history_days: int = Field(
        default=365, ge=1, description="Days for which the change log, and with it history, is kept."
    )
    trusted_proxies: CommaSeparated = Field(
        default=(),
        description="Addresses and networks of the proxies in front of the server, separated by commas, such as "
        "127.0.0.1, 10.1.0.0/16. The client is the last address in X-Forwarded-For that is not one of them; "
        "empty: the header is ignored.",
    )
    cache_mb: int = Field(
        default=64, ge=0, le=65536, description="Megabytes of answers that one process keeps; 0: none."
    )
    shared_seconds: int = Field(
        default=10, ge=0, description="Seconds for which a shared cache (Varnish, a CDN) may keep a public answer."
    )
    stale_seconds: int = Field(
        default=60,
        ge=0,
        le=3600,
        description="Seconds for which public responses in memory are still served while the database is away; "
        "0: they are not.",
    )
    purge_urls: CommaSeparated = Field(
        default=(),
        description="Shared caches that are told of every write, separated by commas, such as http://127.0.0.1:6081/.",
    )
    tiles_url: str = Field(
        default="https://tile.openstreetmap.org/{z}/{x}/{y}.png",
        description="Pictures of the maps on public pages, with {z}, {x} and {y} in the address; empty: no maps. "
        "A visitor's browser asks for them only after the visitor agrees.",
    )
    tiles_credit: str = Field(default="© OpenStreetMap contributors", description="Whom a map names as its source.")
    media_dir: str = Field(
        default="media", description="Directory of the media library; images on their way are there with S3, too."
    )
    media_url: str = Field(
        default="",
        description="Address in front of the files of images, of a CDN or a public bucket; "
        "empty: the server itself gives them out, under /media.",
    )
    media_limit: int = Field(default=20 * 1024 * 1024, ge=1024, description="Most bytes of an image that is sent.")
    media_processes: int = Field(
        default=1, ge=1, le=64, description="Images that one process of the server works on at the same time."
    )
    s3_bucket: str = Field(
        default="", description="Bucket that keeps the files of images; empty: they are kept in the directory."
    )
    s3_endpoint: str = Field(
        default="https://s3.amazonaws.com", description="Address of the server with the interface of S3."
    )
    s3_region: str = Field(default="", description="Region of the bucket, where the server has regions.")
    s3_access_key: str = Field(default="", description="Name of the key to the bucket.")
    s3_secret_key: SecretStr = Field(default=SecretStr(""), description="The key to the bucket.")
    fetch_allow: CommaSeparated = Field(
        default=(),
        description="Networks that images may be fetched from although they are not public, separated by commas, "
        "such as 10.1.0.0/16 or 10.1.2.3:8080.",
    )
    metrics_port: int = Field(default=0, ge=0, le=65535, description="Port of the Prometheus metrics; 0: none.")
    metrics_host: str = Field(default="127.0.0.1", description="Address that the metrics port listens on.")
    log_format: str = Field(default="json", description="json, or plain for reading at a terminal.")

    @property
    def owner_url(self) -> str:
        return self.migration_url or self.database_url

    @field_validator("database_url", "migration_url", "queue_url")
    @classmethod
    def _check_postgresql_url(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name != "database_url" and not value:
            return value
        if not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("fetch_allow")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            read_allowed_network(text)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            read_network(text)
        return value

    @field_validator("s3_endpoint")
    @classmethod
    def _check_endpoint(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
            raise ValueError("must be http:// or https:// and a host, without a path")
        return value

    @field_validator("s3_access_key", "s3_secret_key")
    @classmethod
    def _require_bucket_key[Key: (str, SecretStr)](cls, value: Key, info: ValidationInfo) -> Key:
        if info.data.get("s3_bucket") and not len(value):
            raise ValueError("is needed, since KALENDS_S3_BUCKET is set")
        return value

    @field_validator("base_url", "media_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://, or be empty")
        return value.rstrip("/")

    @field_validator("tiles_url")
    @classmethod
    def _check_tiles_url(cls, value: str) -> str:
        has_placeholders = all(placeholder in value for placeholder in ("{z}", "{x}", "{y}"))
        if value and not (
            value.startswith(("http://", "https://")) and has_placeholders and not set(value) & set(" ;,'\"")
        ):
            raise ValueError("must be an address with {z}, {x} and {y} in it, or be empty")
        return value

    @field_validator("api_root")
    @classmethod
    def _check_path(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError("must begin with a slash, such as /api")
        return value.rstrip("/")

    @field_validator("aliases", "cors_origins", "purge_urls", "fetch_allow", "trusted_proxies", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip().rstrip("/") for part in value.split(",") if part.strip())
        return value

    @field_validator("aliases")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not path.startswith("/") or path.count("/") < 3 for path in value):
            raise ValueError("each must be a path of at least three parts, such as /wp-json/tribe/events/v1")
        return value

    @field_validator("purge_urls")
    @classmethod
    def _check_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not url.startswith(("http://", "https://")) for url in value):
            raise ValueError("each must begin with http:// or https://")
        return value

    @field_validator("log_format")
    @classmethod
    def _check_log_format(cls, value: str) -> str:
        if value not in ("json", "plain"):
            raise ValueError("must be json or plain")
        return value


class InvalidSettings(Exception):
    """Says for each wrong setting what would be right."""


def read_settings(**overrides: Any) -> Settings:
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = [
            f"KALENDS_{str(detail['loc'][0]).upper()}={detail.get('input')!r}: "
            + str(detail["msg"]).removeprefix("Value error, ")
            for detail in error.errors()
        ]
        raise InvalidSettings("\n".join(lines)) from error
