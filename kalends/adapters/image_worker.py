"""Starts the process that decodes an image (image_process.py), and reads its answer. Decodes nothing itself."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from kalends.core import errors
from kalends.core.errors import Invalid
from kalends.core.image_types import FULL, LONGEST_EDGE, MOST_PIXELS, SIZES, WEBP, PictureType

PROGRAM: Final = Path(__file__).with_name("image_worker_main.py")
MEGABYTES: Final = 1024
SECONDS_OF_CPU: Final = 20
SECONDS: Final = 60.0
# Images that may wait for their turn; whoever comes then is asked to come again.
MOST_WAITING: Final = 20


@dataclass(frozen=True, slots=True)
class Version:
    """A file that was made. `name` is that of its size."""

    name: str
    kind: PictureType
    path: Path
    width: int
    height: int


class Images:
    """`at_once` images are worked on at the same time; the others wait, but not many."""

    def __init__(self, at_once: int = 1) -> None:
        self._threads = ThreadPoolExecutor(at_once, "images")
        self._most = at_once + MOST_WAITING
        self._in_hand = 0

    async def rewrite(self, source: Path, kind: PictureType, directory: Path) -> Version:
        """The image itself, written anew in its own type: upright, without metadata, not too large."""
        row = {"name": FULL, "edge": 0, "cut": False, "codecs": [kind.codec]}
        return (await self._order(source, kind, directory, [row], (0.5, 0.5)))[0]

    async def make_sizes(
        self,
        source: Path,
        kind: PictureType,
        directory: Path,
        dimensions: tuple[int, int],
        focus: tuple[float, float],
    ) -> list[Version]:
        """All sizes that are smaller than the image, in its type and as WebP; and itself as WebP."""
        codecs = list(dict.fromkeys([kind.codec, WEBP.codec]))
        rows: list[dict[str, object]] = [
            {"name": size.name, "edge": size.edge, "cut": size.cut, "codecs": codecs}
            for size in SIZES
            if max(dimensions) > size.edge
        ]
        if kind is not WEBP:
            rows.append({"name": FULL, "edge": 0, "cut": False, "codecs": [WEBP.codec]})
        return await self._order(source, kind, directory, rows, focus) if rows else []

    async def _order(
        self,
        source: Path,
        kind: PictureType,
        directory: Path,
        rows: Sequence[dict[str, object]],
        focus: tuple[float, float],
    ) -> list[Version]:
        order = {
            "source": str(source),
            "codec": kind.codec,
            "directory": str(directory),
            "versions": rows,
            "focus": focus,
            "most_pixels": MOST_PIXELS,
            "longest_edge": LONGEST_EDGE,
            "megabytes": MEGABYTES,
            "seconds": SECONDS_OF_CPU,
        }
        if self._in_hand >= self._most:
            raise errors.unavailable()
        self._in_hand += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, _run, orjson.dumps(order))
        finally:
            self._in_hand -= 1
        if "refused" in answer:
            raise _refusal(answer["refused"])
        by_codec = {kind.codec: kind, WEBP.codec: WEBP}
        return [
            Version(row["name"], by_codec[row["codec"]], Path(row["path"]), row["width"], row["height"])
            for row in answer["made"]
        ]


def _run(order: bytes) -> dict[str, Any]:
    """One process for one image. It is given no environment: there are secrets in ours.

    In a thread and not by the loop: that of uvloop stands still for ten milliseconds while it forks.
    """
    command = [sys.executable, "-I", str(PROGRAM)]
    try:
        done = subprocess.run(  # noqa: S603
            command, input=order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, timeout=SECONDS,
            start_new_session=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"refused": "too_costly"}
    if done.returncode != 0 or not done.stdout:
        return {"refused": "too_costly"}  # It was ended by one of its limits.
    answer: dict[str, Any] = orjson.loads(done.stdout)
    return answer


def _refusal(code: str) -> Invalid:
    if code == "too_many_pixels":
        return Invalid("the image has more than {most} million pixels.", most=MOST_PIXELS // 1_000_000)
    if code == "too_costly":
        return Invalid("the image takes too much memory or time to read.")
    return Invalid("the file is damaged or incomplete: it cannot be read as an image.")
