"""The manifest of an archive: what it contains, of which site, and for which schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kalends.adapters.site_archive_file import ArchiveRefused
from kalends.core.errors import InvalidValue
from kalends.core.image_types import is_file_name
from kalends.core.urls import read_website
from kalends.operations.site_archive.export import FORMAT, FORMAT_VERSION
from kalends.store.site_tables import list_tables

# The type of each entry besides those that the reader of the file has checked.
_TYPES: Final[Mapping[str, type]] = {
    "schema": str,
    "accounts": bool,
    "missing_files": list,
    "site": dict,
    "exported_at": str,
}
_SITE_TYPES: Final[Mapping[str, type]] = {"name": str, "hosts": list, "base_url": str}


@dataclass(frozen=True, slots=True)
class Manifest:
    schema: str
    accounts: bool
    missing_files: frozenset[str]
    name: str
    hosts: tuple[str, ...]
    base_url: str

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Check a manifest; raise ArchiveRefused if it is not one of this format."""
        if values.get("format") != FORMAT:
            raise ArchiveRefused("is not an archive of a site.")
        if values.get("format_version") != FORMAT_VERSION or type(values["format_version"]) is not int:
            raise ArchiveRefused(
                "has the format version {found}; this version of Kalends reads {known}. Import it with the version "
                "that wrote it.",
                found=ascii(values.get("format_version"))[:20],
                known=FORMAT_VERSION,
            )
        _check_types(values, _TYPES)
        site: dict[str, Any] = values["site"]
        _check_types(site, _SITE_TYPES)
        missing, hosts = values["missing_files"], site["hosts"]
        if not all(isinstance(name, str) and is_file_name(name) for name in missing):
            raise ArchiveRefused("manifest.json: `missing_files` contains what is not the name of an image file.")
        if not all(isinstance(host, str) for host in hosts):
            raise ArchiveRefused("manifest.json: `hosts` contains what is not a host name.")
        try:
            base_url = read_website(site["base_url"])
        except InvalidValue as error:
            raise ArchiveRefused("manifest.json: `base_url` {problem}", problem=error.message) from None
        expected = {table.name for table in list_tables(accounts=values["accounts"])}
        for name in sorted(expected ^ set(values["tables"])):
            raise ArchiveRefused(
                "{name}.jsonl: is missing." if name in expected else "{name}.jsonl: is not a table of an archive.",
                name=name,
            )
        return cls(values["schema"], values["accounts"], frozenset(missing), site["name"], tuple(hosts), base_url)


def _check_types(values: dict[str, Any], types: Mapping[str, type]) -> None:
    for name, expected in types.items():
        if not isinstance(values.get(name), expected):
            raise ArchiveRefused("manifest.json: `{name}` is missing or has the wrong type.", name=name)


def check_schema(manifest: Manifest, schema: str) -> None:
    """Raise ArchiveRefused unless the archive is of the schema of this database."""
    if manifest.schema == schema:
        return
    found = ascii(manifest.schema)[1:-1][:40]
    if manifest.schema < schema:
        raise ArchiveRefused(
            "has the schema {found}, this database has {schema}. Import it into a database of the version that wrote "
            "it, run `kalends migrate` there, and export it again.",
            found=found,
            schema=schema,
        )
    raise ArchiveRefused(
        "has the schema {found}, this database has {schema}. Upgrade Kalends and run `kalends migrate` first.",
        found=found,
        schema=schema,
    )
