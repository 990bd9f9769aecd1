"""A throw-away server with the interface of S3 (moto), for tests. `just s3-server` installs it into .local."""

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
# So many requests are free, to make an account and a bucket; from then on each signature is compared.
FREE: Final = 4


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
        place = self.endpoint.partition("://")[2]
        return Minio(place, access_key=self.access_key, secret_key=self.secret_key, secure=False, region=REGION)


@contextmanager
def bucket(log: Path) -> Iterator[tuple[Bucket, "subprocess.Popen[bytes]"]]:
    """A bucket, and the process that serves it."""
    port = find_free_port()
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(FREE)}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [PROGRAM, "-H", "127.0.0.1", "-p", str(port)], env=environment, stdout=said, stderr=subprocess.STDOUT
        )
    try:
        yield _make_bucket(f"http://127.0.0.1:{port}"), process
    finally:
        process.terminate()
        process.wait(30)


def _make_bucket(endpoint: str) -> Bucket:
    _wait_until_answering(endpoint)
    _manage(endpoint, "CreateUser")
    key = _manage(endpoint, "CreateAccessKey")
    _manage(endpoint, "PutUserPolicy", PolicyName="all", PolicyDocument=POLICY)
    made = Bucket(endpoint, _within(key, "AccessKeyId"), _within(key, "SecretAccessKey"))
    made.client.make_bucket(made.name)
    return made


def _manage(endpoint: str, action: str, **more: str) -> str:
    """Accounts are another service at the same address; the header says which."""
    credential = (
        f"AWS4-HMAC-SHA256 Credential=any/20260101/{REGION}/iam/aws4_request, SignedHeaders=host, Signature=0"
    )
    fields = {"Version": "2010-05-08", "Action": action, "UserName": "kalends", **more}
    answer = httpx.post(endpoint, data=fields, headers={"Authorization": credential})
    answer.raise_for_status()
    return answer.text


def _within(text: str, element: str) -> str:
    found = re.search(f"<{element}>([^<]+)<", text)
    if found is None:
        raise AssertionError(f"no {element} in {text}")
    return found[1]


def _wait_until_answering(endpoint: str, patience: float = 60) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            httpx.get(f"{endpoint}/moto-api/", timeout=5)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return
