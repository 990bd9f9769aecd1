"""Two sites whose records have the same IDs and slugs, and the requests to one for records of the other."""

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import psycopg
from psycopg import sql

from kalends.http.router import Route
from kalends.routes import EXTENSION, INTERFACE
from kalends.store.sites import add_host, add_site
from tests.console.console_rows import add_console_rows
from tests.robustness.follow_rows import FOREIGN_FOLLOWER, SHARED_FOLLOWER, add_follow_rows
from tests.robustness.import_rows import FOREIGN_IMPORT, SHARED_IMPORT, add_import_rows
from tests.robustness.proposal_rows import FOREIGN_PROPOSAL, SHARED_PROPOSAL, add_proposal_rows
from tests.robustness.site_fixtures import DATES, Login, add_users, run_application
from tests.robustness.webhook_rows import FOREIGN_WEBHOOK, SHARED_WEBHOOK, add_webhook_rows

API_PATH = f"/api/{INTERFACE.namespace}"
EXTENSION_PATH = f"/api/{EXTENSION.namespace}"
# Kinds in the order in which they are filled, with the parameter that names a record.
TITLE_PARAMS = {"venues": "venue", "organizers": "organizer", "categories": "name", "tags": "name", "events": "title"}
ALL_TITLE_PARAMS = TITLE_PARAMS | {"series": "title"}
RULE = {"rule": "FREQ=WEEKLY;COUNT=3"}
# The parameters that actions and previews require, by the end of their path.
ACTION_PARAMS: dict[str, dict[str, Any]] = {
    "preview": {**DATES, **RULE},
    "series": RULE,  # of the action that makes an event the first date of a new series
    "dates": {"add": ["2099-01-01 19:00:00"]},
    "split": {"from": "2099-01-01 19:00:00"},
    "merge": {"series": 1},
    "not-duplicates": {"other": 1},
    "dissolve": {},
    "detach": {},
    "decide": {"row": 1, "same": True},
    "follow": {},
    "proposals": {"values": {"title": "written by betaword", **DATES}},
    "accept": {},
    "return": {"comment": "written by betaword"},
    "reject": {"reason": "other"},
    "webhooks": {"name": "written by betaword", "url": "https://hooks.example/"},
    "replay": {"since": 0},
}
NEW_IMPORT = {"kind": "ical"}
LINKS = (("venue", "venues"), ("organizer", "organizers"), ("categories", "categories"), ("tags", "tags"))
# Site `a` has two accounts and one image more. Only administrators manage webhooks.
USERS_A = {"ed": "administrator", "ann": "editor", "bob": "editor"}
USERS_B = {"ed": "administrator"}
FOREIGN_USER, FOREIGN_IMAGE, SHARED_IMAGE = 2, 77, 78


@dataclass
class IsolatedSite:
    """One of the two. Every text that its people write holds `word`, which nobody else writes."""

    id: int
    host: str
    word: str
    users: dict[str, Login]
    transport: httpx.ASGITransport
    ids: dict[str, int] = field(default_factory=dict)  # kind -> a record that the other site has, too
    own_ids: dict[str, int] = field(default_factory=dict)  # kind -> a record that only this site has
    own_slugs: dict[str, str] = field(default_factory=dict)

    async def request(self, method: str, path: str, login: Login | None = None, **options: Any) -> httpx.Response:
        headers = {"Host": self.host, **options.pop("headers", {})}
        async with httpx.AsyncClient(transport=self.transport, base_url="http://server", trust_env=False) as client:
            return await client.request(method, path, auth=login, headers=headers, **options)

    async def create_shared_records(self) -> None:
        """Return the records that both sites have: one requested by its ID, one by its slug."""
        for kind in ALL_TITLE_PARAMS:
            self.ids[kind] = (await self._create(kind, "Shared")).json()["id"]
            await self._create(kind, "Shared too")

    async def create_own_records(self) -> None:
        """Return the records that the other site does not have."""
        for kind in ALL_TITLE_PARAMS:
            response = await self._create(kind, "Own")
            self.own_ids[kind], self.own_slugs[kind] = response.json()["id"], response.json()["slug"]

    async def _create(self, kind: str, name: str) -> httpx.Response:
        body: dict[str, Any] = {ALL_TITLE_PARAMS[kind]: name, "description": f"written by {self.word}"}
        if kind in ("events", "series"):
            body |= {**DATES, **{param: [self.ids[of]] for param, of in LINKS}}
        if kind == "series":
            body |= RULE
        path, key = kind_path(kind), {"Idempotency-Key": f"{kind} {name}"}
        reply = await self.request("POST", path, self.users["ed"], json=body, headers=key)
        assert reply.status_code == 201, reply.text
        return reply


def kind_path(kind: str) -> str:
    """Return the path of the list of a kind."""
    return f"{EXTENSION_PATH if kind == 'series' else API_PATH}/{kind}"


@dataclass
class SitePair:
    """Two sites. Some records exist only in site `a`, and are requested from site `b`."""

    database_url: str
    a: IsolatedSite
    b: IsolatedSite

    def digest_site_a(self) -> list[tuple[str, str]]:
        """All rows of site `a`, table by table."""
        with psycopg.connect(self.database_url) as connection:
            tables = [
                sql.SQL(
                    "SELECT {name}, md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t WHERE {column} = 1"
                ).format(
                    name=sql.Literal(table),
                    table=sql.Identifier(table),
                    column=sql.Identifier("id" if table == "sites" else "site_id"),
                )
                for table in site_tables(connection)
            ]
            return connection.execute(sql.SQL(" UNION ALL ").join(tables)).fetchall()


def site_tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Every table that holds rows of sites: found, not listed, so that a new one cannot be forgotten."""
    rows = connection.execute(
        "SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t "
        "USING (table_schema, table_name) WHERE c.column_name = 'site_id' AND c.table_schema = 'public' "
        "AND t.table_type = 'BASE TABLE' ORDER BY 1"
    )
    return ["sites", *(name for (name,) in rows)]


async def fill_two_sites(database_url: str) -> SitePair:
    await add_host(database_url, "a.example", 1)
    other = await add_site(database_url, "b.example", "betaword")
    users_a = add_users(database_url, USERS_A, site_id=1)
    users_b = add_users(database_url, USERS_B, site_id=other)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE sites SET name = 'alphaword' WHERE id = 1")
        images = ((1, FOREIGN_IMAGE, "alphaword"), (1, SHARED_IMAGE, "alphaword"), (other, SHARED_IMAGE, "betaword"))
        for site, image, word in images:
            connection.execute(
                "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, title) "
                "VALUES (%s, %s, 0, %s, 'png', 1, 1, 1, %s)",
                [site, image, f"https://{word}.example/{image}.png", word],
            )
            name = f"{image:064x}.png"
            connection.execute("INSERT INTO media_files VALUES (%s, %s, %s, 'full')", [site, name, image])
            connection.execute("INSERT INTO orphan_files VALUES (%s, %s, now())", [site, name])
            connection.execute("INSERT INTO slug_redirects VALUES (%s, 'events', %s, 1)", [site, f"{word}-{image}"])
        for site, word in ((1, "alphaword"), (other, "betaword")):
            connection.execute("INSERT INTO site_styles VALUES (%s, %s)", [site, f".{word} {{ color: red }}"])
            add_console_rows(connection, site, 1, word)
            add_import_rows(connection, site, SHARED_IMPORT, word)
            add_proposal_rows(connection, site, SHARED_PROPOSAL, word)
            add_follow_rows(connection, site, SHARED_FOLLOWER, word)
            add_webhook_rows(connection, site, SHARED_WEBHOOK, word)
        add_import_rows(connection, 1, FOREIGN_IMPORT, "alphaword")
        add_proposal_rows(connection, 1, FOREIGN_PROPOSAL, "alphaword")
        add_follow_rows(connection, 1, FOREIGN_FOLLOWER, "alphaword")
        add_webhook_rows(connection, 1, FOREIGN_WEBHOOK, "alphaword")
    async with run_application(database_url, pool_size=2) as transport:
        a = IsolatedSite(1, "a.example", "alphaword", users_a, transport)
        b = IsolatedSite(other, "b.example", "betaword", users_b, transport)
        await a.create_shared_records()
        await b.create_shared_records()
        assert a.ids == b.ids
        with psycopg.connect(database_url) as connection:
            # Far from any number that the other site will give out.
            connection.execute("UPDATE sites SET last_post_id = 1000, last_term_id = 1000 WHERE id = 1")
        await a.create_own_records()
    return SitePair(database_url, a, b)


@asynccontextmanager
async def copy_sites(pair: SitePair, database_url: str) -> AsyncIterator[SitePair]:
    """Open an application on a copy of the database of both sites."""
    async with run_application(database_url, pool_size=2) as transport:
        yield SitePair(database_url, replace(pair.a, transport=transport), replace(pair.b, transport=transport))


@dataclass(frozen=True)
class IsolationRequest:
    """One request that is put to site `b`. `foreign` says that it names what only `a` has."""

    method: str
    path: str
    is_foreign: bool

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def body(self) -> dict[str, Any] | None:
        """What is written: an update of the record that the path names, or a new one."""
        if not self.is_write or self.method == "DELETE" or self.path.endswith("/restore"):
            return None
        directory, _, name = self.path.rpartition("/")
        if name in ACTION_PARAMS and (directory != EXTENSION_PATH or name in ("proposals", "webhooks")):
            return ACTION_PARAMS[name]
        if "/webhooks" in self.path:
            return {"name": f"written by betaword at {self.path}"}
        if "/imports" in self.path:
            return {"name": f"written by betaword at {self.path}", **(NEW_IMPORT if name == "sources" else {})}
        field = "caption" if "/media" in self.path else "description"
        changes: dict[str, Any] = {field: f"written by betaword at {self.path}"}
        if name in ALL_TITLE_PARAMS:
            changes[ALL_TITLE_PARAMS[name]] = "New"
        if name in ("events", "series"):
            changes |= {**DATES, **(RULE if name == "series" else {})}
        return changes

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def all_requests(pair: SitePair) -> list[IsolationRequest]:
    """Every route with every method, for a record that both have and for one that only `a` has."""
    requests: list[IsolationRequest] = []
    for interface in (INTERFACE, EXTENSION):
        root = f"/api/{interface.namespace}"
        requests += [IsolationRequest("GET", root, False), IsolationRequest("GET", f"{root}/doc", False)]
        for route in interface.routes:
            requests += _route_requests(route, root, pair)
    # Deletions come last: a deleted record is indistinguishable from one that never existed.
    return sorted(requests, key=lambda one: one.method == "DELETE")


def _route_requests(route: Route, root: str, pair: SitePair) -> Iterator[IsolationRequest]:
    kind = route.pattern.split("/")[1]
    for foreign in (False, True):
        record_id: Any = pair.a.own_ids.get(kind) if foreign else pair.a.ids.get(kind)
        if kind == "imports":
            record_id = FOREIGN_IMPORT if foreign else SHARED_IMPORT
        if kind == "proposals":
            record_id = FOREIGN_PROPOSAL if foreign else SHARED_PROPOSAL
        if kind == "webhooks":
            record_id = FOREIGN_WEBHOOK if foreign else SHARED_WEBHOOK
        if kind == "media":
            record_id = FOREIGN_IMAGE if foreign else SHARED_IMAGE
        slug = pair.a.own_slugs.get(kind) if foreign else "shared-too"
        path = re.sub(r"\(\?P<slug>.*?\)", str(slug), re.sub(r"\(\?P<id>.*?\)", str(record_id), route.pattern))
        if foreign and path == route.pattern:
            continue  # A collection names no record.
        for method in (*route.methods, *(["HEAD"] if "GET" in route.methods else []), "OPTIONS"):
            yield IsolationRequest(method, root + path, foreign)


def foreign_batch(pair: SitePair) -> dict[str, Any]:
    """Return a batch of independent writes to all records that only `a` has."""
    writes = [one for one in all_requests(pair) if one.is_foreign and one.is_write]
    paths = [one.path.removeprefix(API_PATH).removeprefix(EXTENSION_PATH) for one in writes]
    operations = [
        {"method": one.method, "path": path, "body": one.body or {}} for one, path in zip(writes, paths, strict=True)
    ]
    return {"operations": operations, "atomic": False}


def foreign_bodies(pair: SitePair) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return writes to site `b` that name users and records of `a` only, as kind and body."""
    own = pair.a.own_ids
    event = {"title": "Linked", **DATES}
    for param, kind in LINKS:
        yield "events", {**event, param: [own[kind]]}
    yield "events", {**event, "venue": [{"id": own["venues"]}]}
    yield "categories", {"name": "Child", "parent": own["categories"]}
    yield "events", {**event, "image": FOREIGN_IMAGE}
    yield "venues", {"venue": "Imaged", "image": FOREIGN_IMAGE}
    yield "events", {**event, "author": FOREIGN_USER}
    yield "series", {**event, **RULE, "venue": [own["venues"]]}
    yield "series", {**event, **RULE, "image": FOREIGN_IMAGE}


def foreign_queries(pair: SitePair) -> Iterator[tuple[str, dict[str, str]]]:
    """Lists of site `b` that ask for records of `a`: kind and query."""
    own = {kind: str(record_id) for kind, record_id in pair.a.own_ids.items()}
    for kind in TITLE_PARAMS:
        yield kind, {"search": pair.a.word[:-1]}  # Responses repeat the parameters, so this is not the whole word.
    for param, kind in LINKS:
        yield "events", {param: own[kind]}
    yield "events", {"include": own["events"]}
    yield "events", {"post_parent": own["events"]}
    yield "events", {"series": own["series"]}
    for kind in ("venues", "organizers", "categories", "tags"):
        yield kind, {"event": own["events"]}
    for kind in ("categories", "tags"):
        yield kind, {"include": own[kind], "hide_empty": "false"}
        yield kind, {"exclude": own[kind], "hide_empty": "false"}
        yield kind, {"slug": pair.a.own_slugs[kind], "hide_empty": "false"}
    yield "categories", {"parent": own["categories"], "hide_empty": "false"}


SITE_A_SELECTORS: tuple[dict[str, Any], ...] = tuple(
    itertools.chain(
        [{"params": {name: "1"}} for name in ("site", "site_id", "blog_id")],
        [{"params": {"host": "a.example"}}],
        [{"headers": {name: "a.example"}} for name in ("X-Forwarded-Host", "X-Host", "X-Original-Host")],
        [{"headers": {"Forwarded": "host=a.example"}}, {"headers": {"X-Site-Id": "1"}}],
    )
)
