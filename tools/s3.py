"""A throw-away S3-compatible server (moto) for tests. `just setup-s3` installs it into .local."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from minio import Minio

from tests.servers import find_free_port

LOCAL: Final = Path(__file__).resolve().parent.parent / ".local" / "moto" / "bin" / "moto_server"
PROGRAM: Final = shutil.which("moto_server") or (str(LOCAL) if LOCAL.exists() else "")
REGION: Final = "us-east-1"
POLICY: Final = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
# Requests without a signature check, for creating an account and a bucket; all later signatures are verified.
UNSIGNED_REQUESTS: Final = 4


@dataclass(frozen=True)
class Bucket:
    endpoint: str
    access_key: str = "nobody"
    secret_key: str = "nothing"  # noqa: S105
    name: str = "pictures"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "KALENDS_S3_BUCKET": self.name,
            "KALENDS_S3_ENDPOINT": self.endpoint,
            "KALENDS_S3_REGION": REGION,
            "KALENDS_S3_ACCESS_KEY": self.access_key,
            "KALENDS_S3_SECRET_KEY": self.secret_key,
        }

    @property
    def client(self) -> Minio:
        host = self.endpoint.partition("://")[2]
        return Minio(host, access_key=self.access_key, secret_key=self.secret_key, secure=False, region=REGION)


@contextmanager
def bucket(log: Path) -> Iterator[tuple[Bucket, "subprocess.Popen[bytes]"]]:
    """Yield a bucket and the process that serves it."""
    port = find_free_port()
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(UNSIGNED_REQUESTS)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PROGRAM, "-H", "127.0.0.1", "-p", str(port)], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield _make_bucket(f"http://127.0.0.1:{port}"), process
    finally:
        process.terminate()
        process.wait(30)


def _make_bucket(endpoint: str) -> Bucket:
    _wait_until_ready(endpoint)
    _call_iam(endpoint, "CreateUser")
    key = _call_iam(endpoint, "CreateAccessKey")
    _call_iam(endpoint, "PutUserPolicy", PolicyName="all", PolicyDocument=POLICY)
    bucket = Bucket(endpoint, _read_element(key, "AccessKeyId"), _read_element(key, "SecretAccessKey"))
    bucket.client.make_bucket(bucket.name)
    return bucket


def _call_iam(endpoint: str, action: str, **more: str) -> str:
    """Call IAM, a different service at the same URL, which the header selects."""
    credential = (
        f"AWS4-HMAC-SHA256 Credential=any/20260101/{REGION}/iam/aws4_request, SignedHeaders=host, Signature=0"
    )
    fields = {"Version": "2010-05-08", "Action": action, "UserName": "kalends", **more}
    response = httpx.post(endpoint, data=fields, headers={"Authorization": credential})
    response.raise_for_status()
    return response.text


def _read_element(text: str, element: str) -> str:
    match = re.search(f"<{element}>([^<]+)<", text)
    if match is None:
        raise AssertionError(f"no {element} in {text}")
    return match[1]


def _wait_until_ready(endpoint: str, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            httpx.get(f"{endpoint}/moto-api/", timeout=5)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
