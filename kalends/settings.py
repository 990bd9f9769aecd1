"""Settings from environment variables, validated at startup: KALENDS_POOL_SIZE sets `pool_size`, and so on."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator

from kalends.core.egress import read_allowed_network
from kalends.core.limits import read_network
from kalends.core.urls import read_email
from kalends.core.words import suggest

NOT_SETTINGS: Final = frozenset(
    [
        "KALENDS_CHROMIUM",
        "KALENDS_CONFORMANCE_KIT",
        "KALENDS_COVERAGE",
        "KALENDS_FAILOVERS",
        "KALENDS_POSTGRES",
        "KALENDS_RECORDED_SITE",
        "KALENDS_SOAK",
        "KALENDS_TEST_CELLS",
        "KALENDS_TEST_DATABASE_URL",
        "KALENDS_TEST_PLAN_EVENTS",
    ]
)  # fmt: skip

# Former and likely mistaken names, with the names to suggest instead.
SYNONYMS: Final = {
    "kalends_db_url": "KALENDS_DATABASE_URL",
    "kalends_database": "KALENDS_DATABASE_URL",
    "kalends_url": "KALENDS_BASE_URL",
    "kalends_public_url": "KALENDS_BASE_URL",
    "kalends_media_limit": "KALENDS_MAX_UPLOAD_BYTES",
    "kalends_trust_forwarded": "KALENDS_TRUSTED_PROXIES",
    "kalends_log": "KALENDS_LOG_FORMAT",
}

CommaSeparated = tuple[str, ...]
UrlByCell = dict[str, str]

CELL_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
# Matches only a comma before a cell name, because a URL with several hosts also contains commas.
NEXT_CELL: Final = re.compile(r",(?=[^,=/@]*=[^,=]*://)")


class Settings(BaseModel):
    model_config = ConfigDict(validate_default=True)

    database_url: str = Field("postgresql:///kalends", description="PostgreSQL connection URL.")
    migration_url: str = Field(
        "",
        description="Connection URL of the same database with the owner's login, for migrate, seed, the sites in "
        "status, and site list, add, add-host, remove-host, remove, export and import; empty: KALENDS_DATABASE_URL.",
    )
    queue_url: str = Field(
        "",
        description="Connection URL of the same database with the job queue's login, for the worker and job "
        "commands; empty: KALENDS_DATABASE_URL.",
    )
    replica_url: str = Field(
        "",
        description="Connection URL of a standby of the same database, which answers public reads; empty: there is "
        "none.",
    )
    replica_pool_size: int = Field(
        10, ge=1, le=500, description="Maximum number of connections to the replica per process."
    )
    replica_max_lag: float = Field(
        5.0,
        ge=1,
        le=300,
        description="Maximum age of the data of the replica, in seconds; if it is older, the primary answers.",
    )
    replica_outage_seconds: int = Field(
        3600,
        ge=0,
        le=86400,
        description="Seconds for which the replica answers public reads while the primary is away, however old its "
        "data is; 0: only within the maximum age.",
    )
    directory_url: str = Field(
        "",
        description="Connection URL of the directory, which knows the cell of each site; empty: all sites are in "
        "KALENDS_DATABASE_URL. With a directory, KALENDS_DATABASE_URL, KALENDS_MIGRATION_URL and "
        "KALENDS_QUEUE_URL are not used.",
    )
    cells: UrlByCell = Field(
        {},
        description="Connection URLs of the cells with the login of the server, comma-separated, such as "
        "a=postgresql://…,b=postgresql://…",
    )
    cell_owners: UrlByCell = Field(
        {}, description="The same with the owner's login, as KALENDS_MIGRATION_URL; empty: KALENDS_CELLS."
    )
    cell_queues: UrlByCell = Field(
        {}, description="The same with the job queue's login, as KALENDS_QUEUE_URL; empty: KALENDS_CELLS."
    )
    base_url: str = Field("", description="Public URL of the server, without a path; empty: taken from each request.")
    api_root: str = Field("/api", description="Path prefix of the REST API.")
    api_aliases: CommaSeparated = Field(
        (),
        description="Additional path prefixes of the API, comma-separated, such as /wp-json/tribe/events/v1. Beside "
        "a prefix that ends in /tribe/events/v1, the core routes of WordPress are served at wp/v2.",
    )
    cors_origins: CommaSeparated = Field(
        ("*",),
        description="Origins whose scripts may read responses, comma-separated; * allows all, empty allows none.",
    )
    stream_url: str = Field(
        "",
        description="Where `kalends stream` serves live lists: / if the proxy sends requests for them there, or its "
        "URL without a path, such as https://live.example.org; empty: there are none.",
    )
    pool_size: int = Field(
        10,
        ge=1,
        le=500,
        description="Maximum number of database connections per process; public reads use at most 40 % of them.",
    )
    max_connections_per_client: int = Field(
        4,
        ge=0,
        le=500,
        description="Maximum number of database connections that one client IP address may use at the same time "
        "per process, half of them for public reads; further requests wait briefly, then get 503. 0 disables the "
        "limit.",
    )
    pool_timeout: float = Field(
        1.0, gt=0, le=60, description="Seconds to wait for a database connection before responding 503."
    )
    statement_timeout: float = Field(
        10.0, gt=0, le=600, description="Maximum duration of one database statement, in seconds."
    )
    public_statement_timeout: float = Field(
        3.0, gt=0, le=600, description="Maximum duration of one database statement of an anonymous read, in seconds."
    )
    transaction_timeout: float = Field(
        10.0,
        gt=0,
        le=600,
        description="Maximum duration of one write, including a whole batch, in seconds; longer writes are "
        "rolled back and get 503.",
    )
    prepared_statements: bool = Field(
        True, description="Use prepared statements; set to false behind PgBouncer in transaction mode."
    )
    max_body_bytes: int = Field(2 * 1024 * 1024, ge=1024, description="Maximum size of a request body, in bytes.")
    max_records_per_day: int = Field(
        5000,
        ge=0,
        description="Maximum number of records that an account below the role editor may create per day (UTC); 0 "
        "disables the limit.",
    )
    smtp_url: SecretStr = Field(
        SecretStr(""),
        description="SMTP server for invitations and password resets, such as "
        "smtps://user:password@smtp.example.org, or smtp:// with STARTTLS if the server offers it, and always if the "
        "URL has a password. Empty: the console shows links to administrators instead.",
    )
    email_from: str = Field(
        "",
        description="Sender of emails, such as calendar@example.org; empty: calendar@ and the host of the base URL.",
    )
    trash_days: int = Field(30, ge=1, description="Days before trashed records are deleted permanently.")
    history_days: int = Field(
        365, ge=1, description="Days for which the change log and the history of records are kept."
    )
    trusted_proxies: CommaSeparated = Field(
        (),
        description="IP addresses and networks of the proxies in front of the server, comma-separated, such as "
        "127.0.0.1, 10.1.0.0/16. The client is the last address in X-Forwarded-For that is not one "
        "of them; empty: the header is ignored.",
    )
    cache_mb: int = Field(
        64, ge=0, le=65536, description="Size of the response cache per process, in megabytes; 0 disables it."
    )
    shared_cache_seconds: int = Field(
        10, ge=0, description="Seconds a shared cache (Varnish, a CDN) may store a public response."
    )
    stale_if_error_seconds: int = Field(
        60,
        ge=0,
        le=3600,
        description="Seconds for which cached public responses are still served while the database is "
        "unavailable or, up to 60 seconds, while all connections for public reads are in use; 0 disables this.",
    )
    purge_urls: CommaSeparated = Field(
        (), description="Shared caches to purge after each write, comma-separated, such as http://127.0.0.1:6081/."
    )
    tiles_url: str = Field(
        "https://tile.openstreetmap.org/{z}/{x}/{y}.png",
        description="Map tile URL template with {z}, {x}, {y}; empty disables maps. Loaded only after the "
        "visitor consents.",
    )
    tiles_attribution: str = Field("© OpenStreetMap contributors", description="Attribution shown on maps.")
    media_dir: str = Field("media", description="Media directory; also holds uploads in progress when S3 is used.")
    media_url: str = Field(
        "", description="Base URL of image files (CDN or public bucket); empty: served under /media."
    )
    max_upload_bytes: int = Field(
        20 * 1024 * 1024, ge=1024, description="Maximum size of an uploaded image, in bytes."
    )
    image_workers: int = Field(1, ge=1, le=64, description="Images decoded at the same time by one server process.")
    s3_bucket: str = Field("", description="Bucket for image files; empty: stored in the media directory.")
    s3_endpoint: str = Field("https://s3.amazonaws.com", description="URL of the S3-compatible storage service.")
    s3_region: str = Field("", description="Region of the bucket, if the service uses regions.")
    s3_access_key: str = Field("", description="Access key ID.")
    s3_secret_key: SecretStr = Field(SecretStr(""), description="Secret access key.")
    fetch_allowed_networks: CommaSeparated = Field(
        (),
        description="Non-public networks that images and imported files may be fetched from, comma-separated, such "
        "as 10.1.0.0/16 or 10.1.2.3:8080.",
    )
    metrics_port: int = Field(
        0, ge=0, le=65535, description="Port of the Prometheus metrics of the server; 0 disables them."
    )
    worker_metrics_port: int = Field(
        0, ge=0, le=65535, description="Port of the Prometheus metrics of the worker; 0 disables them."
    )
    stream_metrics_port: int = Field(
        0, ge=0, le=65535, description="Port of the Prometheus metrics of `kalends stream`; 0 disables them."
    )
    metrics_host: str = Field("127.0.0.1", description="IP address on which the metrics ports listen.")
    traces_url: str = Field(
        "",
        description="URL of an OpenTelemetry collector for traces (OTLP over HTTP), such as "
        "http://127.0.0.1:4318/v1/traces; needs kalends[otel]. Empty: no traces.",
    )
    traces_ratio: float = Field(
        1.0, ge=0, le=1, description="Share of requests and jobs that are traced, from 0 to 1."
    )
    log_format: str = Field("json", description="Log format: json, or plain for reading in a terminal.")

    @property
    def owner_url(self) -> str:
        return self.migration_url or self.database_url

    @property
    def owner_urls(self) -> UrlByCell:
        return self.cell_owners or self.cells

    @property
    def members(self) -> "Mapping[str, Settings]":
        """Return each database's settings by cell name; a single database has an empty name."""
        return {name: self.for_cell(name) for name in self.cells} or {"": self}

    def for_cell(self, name: str) -> Self:
        """Return the settings for a process that uses only this cell."""
        urls = {
            "database_url": self.cells[name],
            "migration_url": self.cell_owners.get(name, ""),
            "queue_url": self.cell_queues.get(name, ""),
        }
        none = {"directory_url": "", "cells": {}, "cell_owners": {}, "cell_queues": {}}
        return self.model_copy(update={**urls, **none})

    @field_validator("cells", "cell_owners", "cell_queues", mode="before")
    @classmethod
    def _split_cells(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        urls: dict[str, str] = {}
        for entry in NEXT_CELL.split(value) if value.strip() else []:
            name, separator, url = (part.strip() for part in entry.partition("="))
            if not separator or not CELL_NAME.fullmatch(name):
                raise ValueError(
                    "each entry must be NAME=URL, with a name of at most 31 lower-case letters, digits and hyphens "
                    "that begins with a letter"
                )
            if name in urls:
                raise ValueError(f"has the name {name} twice")
            urls[name] = url
        return urls

    @field_validator("cells", "cell_owners", "cell_queues")
    @classmethod
    def _check_cells(cls, value: UrlByCell, info: ValidationInfo) -> UrlByCell:
        for name, url in value.items():
            if not url.startswith(("postgresql://", "postgres://")):
                raise ValueError(f"the URL of {name} must begin with postgresql://")
        if len(set(value.values())) < len(value):
            raise ValueError("has the same URL twice")
        has_directory = bool(info.data.get("directory_url"))
        if value and not has_directory:
            raise ValueError("needs KALENDS_DIRECTORY_URL")
        if info.field_name == "cells" and has_directory and not value:
            raise ValueError("is required if KALENDS_DIRECTORY_URL is set")
        if info.field_name != "cells" and value and value.keys() != info.data.get("cells", {}).keys():
            raise ValueError("must have the same names as KALENDS_CELLS")
        return value

    @field_validator("database_url", "migration_url", "queue_url", "replica_url", "directory_url")
    @classmethod
    def _check_postgresql_url(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "directory_url" and value and info.data.get("replica_url"):
            raise ValueError("cannot be used together with KALENDS_REPLICA_URL")
        if info.field_name != "database_url" and not value:
            return value
        if not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("smtp_url")
    @classmethod
    def _check_smtp_url(cls, value: SecretStr) -> SecretStr:
        parts = urlsplit(value.get_secret_value())
        if value.get_secret_value() and (parts.scheme not in ("smtp", "smtps") or not parts.hostname):
            raise ValueError("must be empty or an smtp:// or smtps:// URL")
        return value

    @field_validator("email_from")
    @classmethod
    def _check_address(cls, value: str) -> str:
        return read_email(value)

    @field_validator("fetch_allowed_networks", "trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for text in value:
            if info.field_name == "trusted_proxies":
                read_network(text)
            else:
                read_allowed_network(text)
        return value

    @field_validator("s3_endpoint")
    @classmethod
    def _check_endpoint(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
            raise ValueError("must be an http:// or https:// URL without a path")
        return value

    @field_validator("s3_access_key", "s3_secret_key")
    @classmethod
    def _require_bucket_key[Key: (str, SecretStr)](cls, value: Key, info: ValidationInfo) -> Key:
        if info.data.get("s3_bucket") and not len(value):
            raise ValueError("is required if KALENDS_S3_BUCKET is set")
        return value

    @field_validator("base_url", "media_url", "traces_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must be empty or an http:// or https:// URL")
        return value.rstrip("/")

    @field_validator("stream_url")
    @classmethod
    def _check_stream_url(cls, value: str) -> str:
        parts = urlsplit(value)
        is_origin = parts.scheme in ("http", "https") and bool(parts.netloc) and value.rstrip("/").count("/") == 2
        if value not in ("", "/") and not is_origin:
            raise ValueError("must be empty, / or an http:// or https:// URL without a path")
        return value if value == "/" else value.rstrip("/")

    @field_validator("tiles_url")
    @classmethod
    def _check_tiles_url(cls, value: str) -> str:
        has_placeholders = all(placeholder in value for placeholder in ("{z}", "{x}", "{y}"))
        if value and not (
            value.startswith(("http://", "https://")) and has_placeholders and not set(value) & set(" ;,'\"")
        ):
            raise ValueError("must be a URL with {z}, {x} and {y}, or empty")
        return value

    @field_validator("api_root")
    @classmethod
    def _check_path(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError("must begin with a slash, such as /api")
        return value.rstrip("/")

    @field_validator(
        "api_aliases", "cors_origins", "purge_urls", "fetch_allowed_networks", "trusted_proxies", mode="before"
    )
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip().rstrip("/") for part in value.split(",") if part.strip())
        return value

    @field_validator("api_aliases")
    @classmethod
    def _check_paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not path.startswith("/") or path.count("/") < 3 for path in value):
            raise ValueError(
                "each entry must be a path with at least three segments, such as /wp-json/tribe/events/v1"
            )
        return value

    @field_validator("purge_urls")
    @classmethod
    def _check_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not url.startswith(("http://", "https://")) for url in value):
            raise ValueError("each entry must be an http:// or https:// URL")
        return value

    @field_validator("log_format")
    @classmethod
    def _check_log_format(cls, value: str) -> str:
        if value not in ("json", "plain"):
            raise ValueError("must be json or plain")
        return value


class InvalidSettings(Exception):
    pass


def read_settings(**overrides: Any) -> Settings:
    """Read the settings from the environment; raise InvalidSettings if a setting is invalid or unknown."""
    if unknown := find_unknown(os.environ):
        raise InvalidSettings("\n".join(unknown))
    try:
        return Settings.model_validate(_read_environment() | overrides)
    except ValidationError as error:
        lines = [
            f"KALENDS_{str(detail['loc'][0]).upper()}{_describe_value(detail)}: {_describe_rule(detail)}."
            for detail in error.errors()
        ]
        raise InvalidSettings("\n".join(lines)) from error


def _read_environment() -> dict[str, str]:
    variables = {name: f"KALENDS_{name.upper()}" for name in Settings.model_fields}
    return {name: os.environ[variable] for name, variable in variables.items() if variable in os.environ}


def find_unknown(environment: Iterable[str]) -> list[str]:
    """Return a message for each unknown variable that starts with the settings prefix."""
    known = {f"KALENDS_{name.upper()}" for name in Settings.model_fields} | NOT_SETTINGS
    messages: list[str] = []
    for name in sorted(environment):
        if name.startswith("KALENDS_") and name not in known:
            similar = suggest(name, sorted(known), SYNONYMS)
            messages.append(f"{name} is not a setting." + (f" Did you mean {similar}?" if similar else ""))
    return messages


def _describe_value(detail: Mapping[str, Any]) -> str:
    """Return the invalid value as it was set; "" if it is a secret."""
    name = str(detail["loc"][0])
    if Settings.model_fields[name].annotation is SecretStr:
        return ""
    return f"={os.environ.get(f'KALENDS_{name.upper()}', detail.get('input'))}"


def _describe_rule(detail: Mapping[str, Any]) -> str:
    """Return the violated rule as a predicate, such as "must be an integer"."""
    if detail["type"] == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ").rstrip(".")
    field = Settings.model_fields[str(detail["loc"][0])]
    types: dict[object, str] = {int: "an integer", float: "a number", bool: "true or false"}
    limits = {type(rule).__name__: rule for rule in field.metadata}
    least = getattr(limits.get("Ge"), "ge", None)
    above, most = getattr(limits.get("Gt"), "gt", None), getattr(limits.get("Le"), "le", None)
    words = ["must be", types.get(field.annotation, "text")]
    if above is not None:
        words.append(f"above {above:g}")
    if least is not None:
        words.append(f"of at least {least}" if most is None else f"from {least} to {most}")
    elif most is not None:
        words.append(f"and at most {most:g}")
    return " ".join(words)
