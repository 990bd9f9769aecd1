"""A new site in an application in this process, and what of its answers the model knows."""

import asyncio
from typing import Any

import httpx

from tests.robustness.model_records import SINGULAR, Actor
from tests.robustness.site_fixtures import API_PATH, add_tenant

RANKS = ("anonymous", "subscriber", "contributor", "author", "editor")
ROLES = {
    "su": "subscriber",
    "co1": "contributor",
    "co2": "contributor",
    "au1": "author",
    "au2": "author",
    "ed": "editor",
}
ACTORS = {login: Actor(login, RANKS.index(role), n) for n, (login, role) in enumerate(ROLES.items(), 1)}


def revision_from_etag(response: httpx.Response) -> int:
    return int(response.headers["etag"].strip('"').partition("-")[0])


def comparable_fields(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """What of a representation the model knows."""
    if kind in ("categories", "tags"):
        return {name: body[name] for name in ("id", "name", "slug", "count", "parent") if name in body}
    fields = {name: body[name] for name in ("id", "status", "author")}
    fields |= {"title": body["title" if kind == "events" else SINGULAR[kind]], "slug": body.get("slug", "")}
    if kind != "events":
        return fields
    venues = body["venue"] if isinstance(body["venue"], list) else [body["venue"]]
    return fields | {
        "venue": [venue["id"] for venue in venues],
        "organizer": [organizer["id"] for organizer in body["organizer"]],
        "categories": {term["id"]: term["count"] for term in body["categories"]},
        "tags": {term["id"]: term["count"] for term in body["tags"]},
        "hidden": body["hide_from_listings"],
    }


class ComparedSite:
    """A new site in the one database, behind an application in this process."""

    def __init__(
        self, database_url: str, runner: asyncio.Runner, transport: httpx.ASGITransport, path: str = API_PATH
    ) -> None:
        tenant = add_tenant(database_url, ROLES)
        self.id, self.database_url = tenant.id, database_url
        self._users, self._runner = tenant.users, runner
        self._client = httpx.AsyncClient(transport=transport, base_url=f"http://{tenant.host}{path}", trust_env=False)

    def request(self, actor: Actor, method: str, path: str, **options: Any) -> httpx.Response:
        auth = self._users[actor.login] if actor.login else None
        return self._runner.run(self._client.request(method, path, auth=auth, **options))
