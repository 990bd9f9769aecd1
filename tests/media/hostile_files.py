"""Files that are sent to do harm: bombs, polyglots, fragments, false types, enormous and endless ones."""

import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from PIL import Image

from tests.media.image_fixtures import encode_image, make_image

MEGABYTE: Final = 1024 * 1024
# Files that take seconds each, even on an idle machine.
SLOW_FILES: Final = ("1 x 50,000,000", "50,000,000 x 1", "16 bits and 49 million")


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def build_png(
    width: int, height: int, content: bytes = b"", *, depth: int = 8, colour: int = 2, extra_chunks: bytes = b""
) -> bytes:
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + extra_chunks + png_chunk(b"IDAT", content) + png_chunk(b"IEND", b"")


@cache
def compressed_zeros(megabytes: int) -> bytes:
    """So many megabytes of nothing, packed a thousand times smaller."""
    compressor = zlib.compressobj(1)
    block = b"\0" * MEGABYTE
    return b"".join([compressor.compress(block) for _ in range(megabytes)]) + compressor.flush()


def jpeg_with_size(width: int, height: int) -> bytes:
    """A small picture that says it is this large."""
    content = bytearray(make_image())
    at = content.index(b"\xff\xc0")
    content[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def gif_with_size(width: int, height: int, frames: int = 1, frame: tuple[int, int] = (1, 1)) -> bytes:
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    one = b"\x21\xf9\x04\0\x01\0\0\0" + b"\x2c\0\0\0\0" + struct.pack("<HH", *frame) + b"\0\x02\x02\x4c\x01\0"
    return head + one * frames + b"\x3b"


def webp_with_size(width: int, height: int) -> bytes:
    """A canvas of this size with a small picture on it."""
    inner = make_image("WEBP")[12:]
    canvas = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + canvas + inner
    return b"RIFF" + struct.pack("<I", len(body)) + body


def avif_with_size(width: int, height: int) -> bytes:
    """A small picture whose box says that it is this large."""
    content = bytearray(make_image("AVIF"))
    at = content.index(b"ispe")
    content[at + 8 : at + 16] = struct.pack(">II", width, height)
    return bytes(content)


def animation(codec: str, frames: int, edge: int) -> bytes:
    images = [Image.new("RGB", (edge, edge), (n % 256, n // 256, 9)) for n in range(frames)]
    return encode_image(images[0], codec, save_all=True, append_images=images[1:], duration=20)


def corrupt(content: bytes, seed: int, count: int = 20) -> bytes:
    numbers, corrupted = random.Random(seed), bytearray(content)
    for _ in range(count):
        corrupted[numbers.randrange(20, len(corrupted))] = numbers.randrange(256)
    return bytes(corrupted)


def add_comments(content: bytes, comment: bytes, times: int) -> bytes:
    return content[:2] + (b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment) * times + content[2:]


def exif_bomb() -> bytes:
    """Directories that point at each other."""
    loop = b"Exif\0\0II*\0\x08\0\0\0" + b"\x01\0" + struct.pack("<HHII", 0x8769, 4, 1, 8) + struct.pack("<I", 8)
    content = make_image()
    return content[:2] + b"\xff\xe1" + struct.pack(">H", len(loop) + 2) + loop + content[2:]


def icc_bomb() -> bytes:
    packed = b"profile\0\0" + compressed_zeros(200)
    return build_png(4, 4, zlib.compress(b"\0" * 52), extra_chunks=png_chunk(b"iCCP", packed))


def text_bomb() -> bytes:
    return build_png(
        4, 4, zlib.compress(b"\0" * 52), extra_chunks=png_chunk(b"zTXt", b"Comment\0\0" + compressed_zeros(100)) * 9
    )


def iter_hostile_files() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name and content of each; made when it is its turn, because some are large."""
    valid_files: Mapping[str, bytes] = {
        codec: make_image(codec, 320, 240) for codec in ("JPEG", "PNG", "WEBP", "AVIF", "GIF")
    }
    yield "png bomb, 7,000 x 7,000, packed to kilobytes", lambda: build_png(7000, 7000, compressed_zeros(142))
    yield "png bomb, 30,000 x 30,000", lambda: build_png(30000, 30000, compressed_zeros(200))
    yield "png bomb, 2^31 x 2^31", lambda: build_png(2**31 - 1, 2**31 - 1, compressed_zeros(10))
    yield "png bomb, 1 x 50,000,000", lambda: build_png(1, 50_000_000, compressed_zeros(200))
    yield "png bomb, 50,000,000 x 1", lambda: build_png(50_000_000, 1, compressed_zeros(200))
    yield (
        "png of 16 bits and 49 million pixels",
        lambda: build_png(7000, 7000, compressed_zeros(400), depth=16, colour=6),
    )
    yield "png with more content than its size", lambda: build_png(10, 10, compressed_zeros(400))
    yield "png of no size", lambda: build_png(0, 0, zlib.compress(b""))
    yield "png with a profile of 200 MB", icc_bomb
    yield "png with texts of 900 MB", text_bomb
    yield "png that ends in its head", lambda: valid_files["PNG"][:20]
    yield "png with a false checksum", lambda: valid_files["PNG"][:29] + b"xxxx" + valid_files["PNG"][33:]
    yield "png with an endless chunk", lambda: valid_files["PNG"][:33] + b"\x7f\xff\xff\xffIDAT" + b"x" * 1000
    yield "jpeg that says 65,535 x 65,535", lambda: jpeg_with_size(65535, 65535)
    yield "jpeg that says 8,000 x 6,000", lambda: jpeg_with_size(8000, 6000)
    yield "jpeg of no height", lambda: jpeg_with_size(100, 0)
    yield "jpeg with directories in a circle", exif_bomb
    yield "jpeg that is only its first bytes", lambda: b"\xff\xd8\xff"
    yield (
        "jpeg of a thousand comments",
        lambda: add_comments(valid_files["JPEG"], b"comment comment" * 9, 5000),
    )
    yield "jpeg without an end", lambda: valid_files["JPEG"][:-2]
    yield "gif of 65,535 x 65,535", lambda: gif_with_size(65535, 65535)
    yield "gif whose frame is larger than itself", lambda: gif_with_size(10, 10, frame=(60000, 60000))
    yield "gif of 100,000 frames", lambda: gif_with_size(100, 100, frames=100_000)
    yield (
        "gif with codes of nonsense",
        lambda: gif_with_size(2000, 2000, frame=(2000, 2000))[:-4] + b"\x07\x02\xff" * 50,
    )
    yield "webp of 16,384 x 16,384", lambda: webp_with_size(16384, 16384)
    yield "webp that is only a riff", lambda: b"RIFF\xff\xff\xff\x7fWEBP"
    yield "webp that says another length", lambda: b"RIFF\x01\0\0\0" + valid_files["WEBP"][8:]
    yield "avif of 65,000 x 65,000", lambda: avif_with_size(65000, 65000)
    yield "avif of 2^32-1 x 2^32-1", lambda: avif_with_size(2**32 - 1, 2**32 - 1)
    yield "avif without a picture", lambda: valid_files["AVIF"][:200]
    yield "animated gif, 300 frames", lambda: animation("GIF", 300, 200)
    yield "animated webp, 200 frames", lambda: animation("WEBP", 200, 200)
    yield "animated png, 100 frames", lambda: animation("PNG", 100, 200)
    yield "animated avif, 30 frames", lambda: animation("AVIF", 30, 100)
    yield "49 million pixels, honest", lambda: encode_image(Image.new("RGB", (7000, 7000), "teal"), "JPEG")
    yield "gif and javascript at once", lambda: b"GIF89a/*" + b"x" * 50 + b"*/=1;alert(1)"
    yield "jpeg and php at once", lambda: valid_files["JPEG"] + b"<?php system($_GET['c']); ?>"
    yield "png and zip at once", lambda: valid_files["PNG"] + b"PK\x03\x04" + b"x" * 100 + b"PK\x05\x06" + b"\0" * 18
    yield (
        "jpeg and html at once",
        lambda: add_comments(valid_files["JPEG"], b"<html><script>alert(1)</script>", 1),
    )
    yield "svg with a script", lambda: b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    yield "svg behind a long comment", lambda: b"<!--" + b"x" * 2000 + b"--><svg onload='alert(1)'/>"
    yield "xml with a billion laughs", lambda: b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'ha'>]><svg>&a;</svg>"
    yield "html with the name of an image", lambda: b"<!doctype html><script>alert(1)</script>"
    yield "pdf", lambda: b"%PDF-1.7\n1 0 obj<</OpenAction 2 0 R>>"
    yield "postscript", lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n{ loop } loop"
    yield "imagemagick script", lambda: b"push graphic-context\nfill 'url(https://127.0.0.1/)'\npop graphic-context"
    yield "zip", lambda: b"PK\x03\x04" + b"\0" * 100
    yield "program", lambda: b"\x7fELF" + b"\0" * 100
    yield "tiff", lambda: make_image("TIFF")
    yield "bmp", lambda: make_image("BMP")
    yield "icon", lambda: encode_image(Image.new("RGB", (16, 16)), "ICO")
    yield "jpeg 2000", lambda: make_image("JPEG2000")
    yield "nothing", lambda: b""
    yield "one byte", lambda: b"\xff"
    yield "noise", lambda: random.Random(1).randbytes(100_000)
    yield "noise behind a png head", lambda: valid_files["PNG"][:8] + random.Random(2).randbytes(100_000)
    yield "noise behind a webp head", lambda: valid_files["WEBP"][:16] + random.Random(3).randbytes(100_000)
    for codec, content in valid_files.items():
        yield f"{codec.lower()} cut in half", lambda content=content: content[: len(content) // 2]
        yield f"{codec.lower()} with wrong bytes", lambda content=content: corrupt(content, 7)
