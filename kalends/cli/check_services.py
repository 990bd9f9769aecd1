"""Checks of what server and worker use besides the database: storage, e-mail, caches, proxies, extras."""

import asyncio
import shutil
from typing import TYPE_CHECKING

from kalends.cli.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from kalends.adapters.file_store import FileStore
    from kalends.settings import Settings

# Bytes of free space below which uploads will soon fail.
MIN_FREE_BYTES = 500 * 1024 * 1024
TIMEOUT = 10.0


async def check_storage(settings: "Settings") -> list[Finding]:
    """Write and remove a file in the media directory, and ask the bucket for a file."""
    from kalends.adapters import file_store
    from kalends.bootstrap import open_library
    from kalends.core.errors import ApiError
    from kalends.operations.media.library import translate_storage_errors

    library = open_library(settings)
    try:
        with translate_storage_errors():
            directory = file_store.create_work_directory(library.root)
            (directory / "check").write_bytes(bytes(1024))
            file_store.remove_work_directory(directory)
    except ApiError as error:
        reason = file_store.describe_storage_error(error.__cause__ or error)
        cure = "Create the directory of `KALENDS_MEDIA_DIR` with rights for the user of the server, or make room."
        return [Finding("Storage", "error", f"{library.root}: {reason}", cure)]
    findings = [judge_free_space(library.root)]
    if settings.s3_bucket:
        findings.append(await _check_bucket(library.files, settings.s3_bucket))
    return findings


def judge_free_space(directory: "Path") -> Finding:
    """Return the finding about the free space of a directory."""
    free = shutil.disk_usage(directory).free
    text = f"{directory} is writable, {free / 1024**3:.1f} GB are free."
    if free < MIN_FREE_BYTES:
        return Finding("Storage", "warning", text, "Make room, or move `KALENDS_MEDIA_DIR` to another disk.")
    return Finding("Storage", "ok", text)


async def _check_bucket(files: "FileStore", bucket: str) -> Finding:
    from kalends.adapters.file_store import describe_storage_error

    try:
        await asyncio.to_thread(files.modified, "1/00/check")
    except Exception as error:  # The library for buckets has no common class of errors.
        cure = "Check `KALENDS_S3_ENDPOINT`, `KALENDS_S3_BUCKET` and the keys."
        reason = describe_storage_error(error)
        return Finding("Storage", "error", f"The bucket {bucket} does not respond: {reason}", cure)
    return Finding("Storage", "ok", f"The bucket {bucket} responds.")


async def check_email(settings: "Settings") -> list[Finding]:
    """Sign in to the SMTP server without sending anything."""
    url = settings.smtp_url.get_secret_value()
    if not url:
        return [Finding("E-mail", "ok", "Not configured; the console shows links to administrators instead.")]
    from kalends.adapters.smtp_client import check_server

    try:
        await asyncio.wait_for(check_server(url), TIMEOUT)
    except Exception as error:  # Errors of the network, of TLS and of the dialogue.
        text = f"The SMTP server does not respond: {str(error) or type(error).__name__}"
        return [Finding("E-mail", "error", text, "Check `KALENDS_SMTP_URL`.")]
    return [Finding("E-mail", "ok", "The SMTP server responds.")]


async def check_caches(settings: "Settings") -> list[Finding]:
    """Purge a tag that no response has from each shared cache."""
    from kalends.adapters.purge_client import send_purges

    findings: list[Finding] = []
    for url in settings.purge_urls:
        try:
            await asyncio.wait_for(send_purges(url, ["kalends-check"]), TIMEOUT)
        except Exception as error:  # Errors of the network and of the protocol.
            text = f"{url} does not accept purges: {str(error) or type(error).__name__}"
            cure = "Check `KALENDS_PURGE_URLS` and the list of machines that may purge (deploy/varnish/default.vcl)."
            findings.append(Finding("Cache", "error", text, cure))
        else:
            findings.append(Finding("Cache", "ok", f"{url} accepts purges."))
    return findings


def check_proxies(settings: "Settings") -> list[Finding]:
    """Judge whether the addresses of clients and the links can be right."""
    from kalends.core.forwarded import read_network

    findings: list[Finding] = []
    if not settings.base_url:
        cure = "Set `KALENDS_BASE_URL`, unless each site has its own `base_url`."
        findings.append(Finding("Address", "warning", "Links use the Host header of each request.", cure))
    else:
        findings.append(Finding("Address", "ok", settings.base_url))
    everybody = [text for text in settings.trusted_proxies if read_network(text).prefixlen == 0]
    if everybody:
        cure = "Name the addresses of your proxies only; otherwise every client can choose its own IP address."
        findings.append(Finding("Proxies", "error", f"KALENDS_TRUSTED_PROXIES has {everybody[0]}.", cure))
    elif settings.base_url.startswith("https://") and not settings.trusted_proxies:
        text = "X-Forwarded-For is ignored, so all visitors behind a proxy share the limits of one client."
        findings.append(Finding("Proxies", "warning", text, "Set `KALENDS_TRUSTED_PROXIES`."))
    else:
        names = ", ".join(settings.trusted_proxies)
        findings.append(Finding("Proxies", "ok", f"Trusted: {names}." if names else "None."))
    return findings


def check_extras(settings: "Settings") -> list[Finding]:
    """Report settings that need an extra."""
    from kalends.adapters.tracing import is_installed

    if settings.traces_url and not is_installed():
        return [Finding("Traces", "error", "OpenTelemetry is not installed.", "Install kalends[otel].")]
    return []
