"""A separate program that decodes and re-encodes images within memory and time limits.

The job and the result are JSON. The program imports no server module except `sandboxed`, so a malicious image can
compromise only this process.
"""

import errno
import io
import json
import os
from typing import Any

from kalends.adapters.sandboxed import finish, read_job

HUE_STEPS = 24
GRAY = -1
HUE_EDGE = 64  # width and height of the copy whose pixels are counted
MIN_COLORFULNESS = 0.04  # mean product of saturation and brightness
# Pillow options for writing each type. Metadata is never written.
QUALITY: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 86, "optimize": True, "progressive": True},
    "PNG": {"optimize": False, "compress_level": 7},
    "WEBP": {"quality": 82, "method": 4},
    "AVIF": {"quality": 65, "speed": 8, "max_threads": 1},
    "GIF": {"optimize": False},
}


class UnreadableImage(Exception):
    """Raised if the image is rejected. The text is a code that the server maps to a message."""


def main() -> None:
    job = read_job()
    try:
        result = verify_images(job) if "files" in job else process_image(job)
    except UnreadableImage as error:
        result = {"refused": str(error)}
    except MemoryError:
        result = {"refused": "too_costly"}
    except Exception as error:  # Apart from a full disk, any exception is caused by the file.
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        result = {"refused": "disk_full" if is_full else "damaged"}
    finish(json.dumps(result).encode())


def process_image(job: dict[str, Any]) -> dict[str, Any]:
    image = read_image(job["source"], job["codec"], job["most_pixels"], job["longest_edge"])
    files: list[dict[str, Any]] = []
    for row in job["versions"]:
        resized = crop(image, row["edge"], job["focus"]) if row["cut"] else fit(image, row["edge"])
        for codec in row["codecs"]:
            path = os.path.join(job["directory"], f"{row['name']}.{codec.lower()}")  # noqa: PTH118
            write_image(resized, path, codec)
            files.append(
                {"name": row["name"], "codec": codec, "path": path, "width": resized.width, "height": resized.height}
            )
    result = {"width": image.width, "height": image.height, "made": files}
    return {**result, "hue": find_hue(image)} if job.get("finds_hue") else result


def find_hue(image: Any) -> int:
    """Return the dominant hue in `HUE_STEPS` steps, beginning at red, or `GRAY` if the image is almost gray."""
    if image.mode == "L":
        return GRAY
    small = image.resize((HUE_EDGE, HUE_EDGE), reducing_gap=2.0)
    opacity = small.getchannel("A").tobytes() if small.mode == "RGBA" else bytes([255]) * HUE_EDGE**2
    pixels = small.convert("RGB").convert("HSV").tobytes()
    weights = [0.0] * HUE_STEPS
    for hue, saturation, value, alpha in zip(pixels[::3], pixels[1::3], pixels[2::3], opacity, strict=True):
        weights[round(hue * HUE_STEPS / 256) % HUE_STEPS] += saturation * value * alpha / 255**3
    if sum(weights) <= MIN_COLORFULNESS * sum(opacity) / 255:
        return GRAY
    # Neighbors count half, because one color of a photo spreads over several steps.
    return max(
        range(HUE_STEPS),
        key=lambda step: weights[step - 1] / 2 + weights[step] + weights[(step + 1) % HUE_STEPS] / 2,
    )


def verify_images(job: dict[str, Any]) -> dict[str, Any]:
    """Decode all of a job's files, and report the first one that cannot be decoded."""
    for source, codec in job["files"]:
        try:
            read_image(source, codec, job["most_pixels"], job["longest_edge"])
        except UnreadableImage as error:
            return {"refused": str(error), "source": source}
        except MemoryError:
            return {"refused": "too_costly", "source": source}
        except Exception:
            return {"refused": "damaged", "source": source}
    return {}


def read_image(source: str, codec: str, max_pixels: int, max_edge: int) -> Any:
    """Return the file's first frame, rotated upright, in sRGB, and scaled down to `max_edge`."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # The limit is checked below, before anything is decoded.
    image: Any = Image.open(source, formats=[codec])
    if image.width * image.height > max_pixels:
        raise UnreadableImage("too_many_pixels")
    profile = image.info.get("icc_profile")
    image.draft(None, (max_edge, max_edge))
    image.load()
    image = ImageOps.exif_transpose(image)
    image = to_srgb(fit(to_web_mode(image), max_edge), profile)
    image.info = {}
    return image


def to_web_mode(image: Any) -> Any:
    """Convert to gray or RGB, with transparency if present.

    Leave CMYK to `to_srgb`, which needs the image's profile.
    """
    if image.mode.startswith("I"):  # 16-bit gray
        image = image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode in ("1", "L"):
        return image.convert("L")
    return image if image.mode == "CMYK" else image.convert("RGB")


def to_srgb(image: Any, profile: bytes | None) -> Any:
    """Convert the colors from the embedded profile to sRGB; keep the transparency."""
    from PIL import ImageCms

    opaque = image.convert("RGB") if image.mode == "RGBA" else image
    plain = opaque.convert("RGB") if opaque.mode == "CMYK" else opaque
    if profile:
        try:
            source_profile = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(
                opaque, source_profile, ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
            plain = converted.convert(plain.mode) if converted else plain
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # Ignore an unreadable profile.
    if image.mode == "RGBA":
        plain.putalpha(image.getchannel("A"))
    return plain


def fit(image: Any, edge: int) -> Any:
    """Scale down, never up, to fit a square with this edge; 0 keeps the size."""
    if not edge or max(image.size) <= edge:
        return image
    scale = edge / max(image.size)
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), reducing_gap=3.0)


def crop(image: Any, edge: int, focus: list[float]) -> Any:
    """Crop to a square with this edge around the focus point, or a smaller square if the image is smaller."""
    scale = max(edge / image.width, edge / image.height)
    if scale >= 1:
        width, height = min(edge, image.width), min(edge, image.height)
    else:
        width, height = edge / scale, edge / scale
    left = min(max(focus[0] * image.width - width / 2, 0), image.width - width)
    top = min(max(focus[1] * image.height - height / 2, 0), image.height - height)
    size = (min(edge, round(width)), min(edge, round(height)))
    return image.resize(size, box=(left, top, left + width, top + height), reducing_gap=3.0)


def write_image(image: Any, path: str, codec: str) -> None:
    if codec == "JPEG" and image.mode == "RGBA":
        image = image.convert("RGB")
    if codec in ("WEBP", "AVIF") and image.mode == "L":
        image = image.convert("RGB")
    with io.BufferedWriter(OutputFile(path, "wb")) as file:
        image.save(file, codec, **QUALITY[codec])


class OutputFile(io.FileIO):
    """A file that hides its descriptor.

    Given one, Pillow would write to it directly, without reporting a full disk.
    """

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


if __name__ == "__main__":
    main()
