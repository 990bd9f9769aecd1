"""Parser of multipart forms with one file, whose content it passes on piece by piece."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from python_multipart.multipart import MultipartParser, parse_options_header

from kalends.core import errors
from kalends.core.messages import Message

MAX_FILES: Final = 1
MAX_FIELDS: Final = 50
MAX_FIELD_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 100  # enough for the last boundary and some white space after it


@dataclass(frozen=True, slots=True)
class FormLimits:
    """How many text fields a form may have, and their size."""

    fields: int = MAX_FIELDS
    field_bytes: int = MAX_FIELD_BYTES
    total_bytes: int = 256 * 1024  # of a form in addition to its file


UPLOAD_LIMITS: Final = FormLimits()


class FormParser:
    """An incremental parser: `feed` every chunk, then `finish`.

    `fields` are the text fields in order. `file_name` is the name of the file in the field `file_field`, or None if
    the form has no such file; a file in another field is ignored.
    """

    def __init__(self, content_type: str, file_field: str, limits: FormLimits = UPLOAD_LIMITS) -> None:
        self._limits = limits
        self.fields: list[tuple[str, str]] = []
        self.file_name: str | None = None
        self._file_field = file_field
        self._file_count = 0
        self._tail = b""
        self._file_data = bytearray()
        _, options = parse_options_header(content_type)
        self._charset = _find_charset(options.get(b"charset", b"utf-8"))
        if b"boundary" not in options:
            raise errors.invalid_form("the boundary is missing.")
        with _translate_parser_errors():
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_header_name,
                    "on_header_value": self._add_header_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                },
            )
        self._begin_part()

    def feed(self, chunk: bytes) -> bytes:
        """Parse a chunk of the body and return the bytes of the file in it."""
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        self._file_data = bytearray()
        with _translate_parser_errors():
            self._parser.write(chunk)
        return bytes(self._file_data)

    def finish(self) -> None:
        """Check that the form is complete."""
        with _translate_parser_errors():
            self._parser.finalize()
        # The parser accepts a body that ends within a part.
        if not self._tail.rstrip().endswith(b"--"):
            raise errors.invalid_form(Message("the closing boundary is missing."))

    def _begin_part(self) -> None:
        self._header_name, self._header_value, self._disposition = bytearray(), bytearray(), b""
        self._field_name, self._field_data = "", bytearray()
        self._is_file = self._is_wanted_file = False

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise errors.invalid_form("a part has no name.")
        self._field_name = self._decode(options[b"name"])
        self._is_file = b"filename" in options
        if not self._is_file:
            return
        self._file_count += 1
        if self._file_count > MAX_FILES:
            raise errors.invalid_form(f"it has more than {MAX_FILES} file.")
        if self._field_name == self._file_field:
            self._is_wanted_file = True
            self.file_name = self._decode(options[b"filename"])

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_wanted_file:
            self._file_data += data[start:end]
        elif not self._is_file:
            if len(self._field_data) + end - start > self._limits.field_bytes:
                raise errors.invalid_form(f"a field has more than {self._limits.field_bytes // 1024} KB.")
            self._field_data += data[start:end]

    def _end_part(self) -> None:
        if self._is_file:
            return
        if len(self.fields) >= self._limits.fields:
            raise errors.too_many_fields(self._limits.fields)
        self.fields.append((self._field_name, self._decode(bytes(self._field_data))))

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode(self._charset)
        except (UnicodeDecodeError, LookupError):
            return text.decode("latin-1")


def _find_charset(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode("latin-1")).name
    except (LookupError, ValueError):
        return "latin-1"


@contextmanager
def _translate_parser_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # The base class of all errors of the parser.
        raise errors.invalid_form("it is not valid multipart data.") from error
