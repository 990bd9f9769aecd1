"""The structure of an iCalendar file: its lines and the components they form.

Limits stop hostile files before anything is parsed. Components and properties that imports do not use are dropped.
Lines are unfolded as bytes, because some programs fold lines in the middle of a character.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kalends.core.errors import InvalidValue

MAX_BYTES: Final = 10_000_000
MAX_LINES: Final = 400_000
MAX_LINE_BYTES: Final = 250_000  # after unfolding; only embedded files are longer, and imports ignore them
MAX_COMPONENTS: Final = 40_000
MAX_EVENTS: Final = 15_000
MAX_DEPTH: Final = 8
MAX_CONTINUED: Final = 300  # maximum number of lines in a multiline text without folding
MAX_PROPERTIES: Final = 5_000  # per component
KEPT_COMPONENTS: Final = frozenset({"VCALENDAR", "VEVENT", "VTIMEZONE", "STANDARD", "DAYLIGHT"})
KEPT_PROPERTIES: Final = frozenset(
    {
        *("METHOD", "NAME", "X-WR-CALNAME", "X-WR-TIMEZONE", "TIMEZONE-ID"),
        *("TZID", "X-LIC-LOCATION", "TZOFFSETFROM", "TZOFFSETTO"),
        *("UID", "RECURRENCE-ID", "SEQUENCE", "LAST-MODIFIED", "DTSTAMP", "STATUS", "CLASS"),
        *("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "EXRULE", "X-MICROSOFT-CDO-ALLDAYEVENT"),
        *("SUMMARY", "DESCRIPTION", "X-ALT-DESC", "STYLED-DESCRIPTION", "URL", "CATEGORIES", "ATTACH", "IMAGE"),
        *("LOCATION", "GEO", "X-APPLE-STRUCTURED-LOCATION", "ORGANIZER", "CONFERENCE", "X-GOOGLE-CONFERENCE"),
    }
)
# A name with an optional group, followed by parameters. Quoted parameter values may contain colons. The pattern is
# unambiguous, so matching takes linear time.
_CONTENT: Final = re.compile(
    r"\s{0,20}(?:[A-Za-z0-9-]{1,80}\.)?([A-Za-z0-9-]{1,80})[ \t]{0,20}((?:;(?:[^\":]|\"[^\"]*\")*)?):(.*)", re.DOTALL
)
# Most lines have names that imports do not use. This faster pattern is enough to skip them.
_NAME: Final = re.compile(rb"([A-Za-z0-9-]{1,80})[;:]")
_READ_NAMES: Final = frozenset({b"BEGIN", b"END", *(name.encode() for name in KEPT_PROPERTIES)})
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Properties that some programs write on several lines without folding them.
_MULTILINE: Final = frozenset({"DESCRIPTION", "X-ALT-DESC", "STYLED-DESCRIPTION", "LOCATION", "SUMMARY"})
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(slots=True)
class Property:
    """A property with its value still escaped. If the line was too long, the value is None."""

    name: str
    params: str
    value: str | None
    line: int


@dataclass(slots=True)
class Component:
    name: str
    line: int
    properties: dict[str, list[Property]] = field(default_factory=dict[str, list[Property]])
    children: list["Component"] = field(default_factory=list["Component"])
    size: int = 0  # number of properties

    def all(self, name: str) -> list[Property]:
        return self.properties.get(name, [])

    def first(self, name: str) -> Property | None:
        return next(iter(self.all(name)), None)

    def text(self, name: str) -> str:
        """Return the first value of a property, still escaped, or an empty string."""
        found = self.first(name)
        return (found.value or "").strip() if found else ""


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    content: bytes
    is_too_long: bool = False


def read_components(data: bytes) -> list[Component]:
    """Return a file's calendars. Raise InvalidValue if it is not a complete iCalendar file within the limits."""
    if len(data) > MAX_BYTES:
        raise InvalidValue("exceeds {limit} bytes.", limit=MAX_BYTES)
    tree = _Tree()
    for line in _unfold(_normalize(data)):
        tree.add(line)
    return tree.finish()


class _Tree:
    def __init__(self) -> None:
        self._calendars: list[Component] = []
        self._open: list[Component] = []
        self._last: Property | None = None
        self._count = self._events = self._continued = 0

    def add(self, line: Line) -> None:
        if self._is_skipped(line):
            return
        text = _decode(line.content)
        match = _CONTENT.fullmatch(text)
        if match is None:
            self._continue(text)
            return
        name, params, value = match[1].upper(), match[2], match[3]
        if name == "BEGIN":
            self._begin(value.strip().upper(), line.number)
        elif name == "END":
            self._end(value.strip().upper())
        elif self._open:
            self._add_property(Property(name, params, None if line.is_too_long else value, line.number))

    def _is_skipped(self, line: Line) -> bool:
        """Return whether a line is unused. Most lines need only this check."""
        match = _NAME.match(line.content)
        if match is None:
            return self._continued > MAX_CONTINUED
        name = match[1].upper()
        if name in (b"BEGIN", b"END"):
            return False
        is_full = bool(self._open) and self._open[-1].size > MAX_PROPERTIES
        if name not in _READ_NAMES or is_full:
            self._last = None
            return True
        return False

    def finish(self) -> list[Component]:
        if not self._calendars:
            raise InvalidValue("is not an iCalendar file: it has no line BEGIN:VCALENDAR.")
        if self._open:
            raise InvalidValue(
                "is incomplete: the component that begins in line {line} has no end. The file was probably cut off.",
                line=self._open[-1].line,
            )
        return self._calendars

    def _begin(self, name: str, line: int) -> None:
        self._last = None
        if not self._open and name != "VCALENDAR":
            return
        if name == "VEVENT":
            self._close_event()
        self._check_limits(name, line)
        component = Component(name, line)
        if not self._open:
            self._calendars.append(component)
        elif name in KEPT_COMPONENTS:
            self._open[-1].children.append(component)
        self._open.append(component)

    def _close_event(self) -> None:
        """Close an event that has no END line when the next event begins."""
        names = [component.name for component in self._open]
        if "VEVENT" in names:
            del self._open[names.index("VEVENT") :]

    def _check_limits(self, name: str, line: int) -> None:
        self._count += 1
        self._events += name == "VEVENT"
        if self._events > MAX_EVENTS:
            raise InvalidValue("has more than {maximum} events.", maximum=MAX_EVENTS)
        if self._count > MAX_COMPONENTS:
            raise InvalidValue("has more than {maximum} components.", maximum=MAX_COMPONENTS)
        if len(self._open) >= MAX_DEPTH:
            raise InvalidValue(
                "has components at more than {maximum} levels, in line {line}.", maximum=MAX_DEPTH, line=line
            )

    def _end(self, name: str) -> None:
        self._last = None
        names = [component.name for component in self._open]
        if name in names:
            del self._open[len(names) - 1 - names[::-1].index(name) :]

    def _add_property(self, added: Property) -> None:
        component = self._open[-1]
        self._last, self._continued = added, 0
        if added.name not in KEPT_PROPERTIES or component.name not in KEPT_COMPONENTS:
            return
        component.size += 1
        if component.size <= MAX_PROPERTIES:
            component.properties.setdefault(added.name, []).append(added)

    def _continue(self, text: str) -> None:
        """Append a line without a property name to the multiline property before it, or ignore the line."""
        last = self._last
        self._continued += 1
        if (
            last is not None
            and last.value is not None
            and last.name in _MULTILINE
            and self._continued <= MAX_CONTINUED
        ):
            joined = f"{last.value}\\n{text}"
            last.value = joined if len(joined) <= MAX_LINE_BYTES else last.value


def _normalize(data: bytes) -> bytes:
    """Return the file as UTF-8 with line feeds, without a byte order mark."""
    encoding = next((encoding for bom, encoding in _BOMS if data.startswith(bom)), None)
    if encoding is not None:
        data = data.decode(encoding, "replace").encode()
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _unfold(data: bytes) -> Iterator[Line]:
    parts: list[bytes] = []
    first, size = 1, 0
    for number, raw in enumerate(io.BytesIO(data), 1):
        if number > MAX_LINES:
            raise InvalidValue("has more than {maximum} lines.", maximum=MAX_LINES)
        row = raw.rstrip(b"\r\n")
        if row[:1] in (b" ", b"\t") and parts:
            row = row[1:]
        elif row:
            if parts:
                yield _join(first, parts, size)
            parts, first, size = [], number, 0
        size += len(row)
        if row and (not parts or size <= MAX_LINE_BYTES):
            parts.append(row)
    if parts:
        yield _join(first, parts, size)


def _join(number: int, parts: list[bytes], size: int) -> Line:
    """Return an unfolded line. Truncate it if it is too long."""
    return Line(number, b"".join(parts)[: min(size, MAX_LINE_BYTES)], size > MAX_LINE_BYTES)


def _decode(line: bytes) -> str:
    """Decode a line as UTF-8 or, if that fails, as Windows-1252."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode("cp1252", "replace")
    return _CONTROL.sub("", text)
