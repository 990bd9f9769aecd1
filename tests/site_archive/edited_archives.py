"""Archives that somebody has changed by hand."""

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson


@dataclass
class Archive:
    """The members of an archive. Saving it makes the hashes of the manifest right again, unless told otherwise."""

    members: dict[str, bytes]
    manifest: dict[str, Any]
    extra: list[tuple[zipfile.ZipInfo, bytes]] = field(default_factory=list[tuple[zipfile.ZipInfo, bytes]])
    keeps_hashes: bool = False
    compression: int = zipfile.ZIP_DEFLATED

    @classmethod
    def load(cls, path: Path) -> "Archive":
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        return cls(members, orjson.loads(members.pop("manifest.json")))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.members[f"{table}.jsonl"].splitlines()]

    def set_rows(self, table: str, rows: list[Any]) -> None:
        self.members[f"{table}.jsonl"] = b"".join(orjson.dumps(row) + b"\n" for row in rows)

    def edit(
        self, table: str, column: str, value: object, *, where: Callable[[dict[str, Any]], bool] | None = None
    ) -> None:
        """Set a column of the first row, or of the first that a condition selects."""
        rows = self.rows(table)
        row = next(row for row in rows if where is None or where(row))
        row[column] = value
        self.set_rows(table, rows)

    def save(self, path: Path) -> Path:
        if not self.keeps_hashes:
            self._update_manifest()
        with zipfile.ZipFile(path, "w", self.compression) as file:
            for name, content in self.members.items():
                file.writestr(name, content)
            for info, content in self.extra:
                file.writestr(info, content)
            file.writestr("manifest.json", orjson.dumps(self.manifest))
        return path

    def _update_manifest(self) -> None:
        tables = self.manifest["tables"]
        for name, content in self.members.items():
            table = name.removesuffix(".jsonl")
            if name.endswith(".jsonl") and table in tables:
                tables[table] = {"rows": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}
        self.manifest["files"] = sum(name.startswith("media/") for name in self.members)
