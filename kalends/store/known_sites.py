"""The cells of recently used sites in little memory: about 170 bytes for a host, and nothing for unused ones."""

from typing import Final

from kalends.store.directory import Location, SiteKey

# Entries in each of two generations. When the new one is full, it replaces the old one.
GENERATION_SIZE: Final = 50_000
# Bits of an entry: seconds, the number of the cell, and the site ID above them.
SECONDS_BITS: Final = 32
CELL_BITS: Final = 12


class KnownSites:
    """Where sites were according to the directory, and when that was.

    An entry is one integer, because an object with three attributes would double the memory. A move in progress is
    not part of it: whoever needs to know asks the directory.
    """

    def __init__(self) -> None:
        self._new: dict[SiteKey, int] = {}
        self._old: dict[SiteKey, int] = {}
        self._cells: list[str] = []

    def get(self, key: SiteKey) -> tuple[Location, int] | None:
        """Return the location of a site and the second in which it was known."""
        entry = self._new.get(key)
        if entry is None:
            entry = self._old.pop(key, None)
            if entry is None:
                return None
            self._store(key, entry)
        rest, second = entry >> SECONDS_BITS, entry & ((1 << SECONDS_BITS) - 1)
        cell = self._cells[rest & ((1 << CELL_BITS) - 1)]
        return Location(rest >> CELL_BITS, cell), second

    def put(self, key: SiteKey, location: Location, second: int) -> None:
        if location.cell not in self._cells:
            self._cells.append(location.cell)
        number = self._cells.index(location.cell)
        self._store(key, ((location.site_id << CELL_BITS | number) << SECONDS_BITS) | second)

    def discard(self, key: SiteKey) -> None:
        self._new.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def _store(self, key: SiteKey, entry: int) -> None:
        if len(self._new) >= GENERATION_SIZE:
            self._old, self._new = self._new, {}
        self._new[key] = entry
