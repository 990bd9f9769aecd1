"""A small typed client: its models are generated from /doc, the rest is this page."""

from collections.abc import Mapping
from typing import Any, Self

import httpx
from pydantic import BaseModel

from tests.description.client import models

Value = str | int | float | bool


class ApiError(Exception):
    """An answer other than success; `code` is for programs, `str()` for people."""

    def __init__(self, response: httpx.Response) -> None:
        body = response.json()
        super().__init__(body["message"])
        self.status = response.status_code
        self.code: str = body["code"]
        self.data: dict[str, Any] = body["data"]


class Kind[Record: BaseModel, Page: BaseModel, New: BaseModel, Changes: BaseModel]:
    """The five verbs of one kind of record."""

    def __init__(self, http: httpx.AsyncClient, path: str, record: type[Record], page: type[Page]) -> None:
        self._http, self._path, self._record, self._page = http, path, record, page

    async def list(self, **filters: Value) -> Page:
        return self._page.model_validate(await self._request("GET", self._path, params=filters))

    async def read(self, record_id: int, **query: Value) -> Record:
        return self._record.model_validate(await self._request("GET", f"{self._path}/{record_id}", params=query))

    async def create(self, new: New, *, key: str | None = None) -> Record:
        """With a `key` the request can be repeated without doing it twice."""
        headers = {"Idempotency-Key": key} if key else {}
        body = new.model_dump(mode="json", exclude_unset=True)
        return self._record.model_validate(await self._request("POST", self._path, json=body, headers=headers))

    async def update(self, record_id: int, changes: Changes) -> Record:
        """Only what was set changes."""
        body = changes.model_dump(mode="json", exclude_unset=True)
        return self._record.model_validate(await self._request("PATCH", f"{self._path}/{record_id}", json=body))

    async def delete(self, record_id: int) -> Record:
        return self._record.model_validate(await self._request("DELETE", f"{self._path}/{record_id}"))

    async def _request(self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any) -> Any:
        response = await self._http.request(method, path, headers=headers, **options)
        if not response.is_success:
            raise ApiError(response)
        return response.json()


class Client:
    """`async with Client("https://…/api/calendar/events/v1", ("anna", "…")) as client:`"""

    def __init__(self, api_url: str, auth: tuple[str, str] | None = None, **options: Any) -> None:
        http = httpx.AsyncClient(base_url=api_url, auth=auth, **options)
        self._http = http
        self.events = Kind[models.Event, models.EventList, models.EventNew, models.EventChanges](
            http, "/events", models.Event, models.EventList
        )
        self.venues = Kind[models.Venue, models.VenueList, models.VenueNew, models.VenueChanges](
            http, "/venues", models.Venue, models.VenueList
        )
        self.organizers = Kind[models.Organizer, models.OrganizerList, models.OrganizerNew, models.OrganizerChanges](
            http, "/organizers", models.Organizer, models.OrganizerList
        )
        self.categories = Kind[models.Category, models.CategoryList, models.CategoryNew, models.CategoryChanges](
            http, "/categories", models.Category, models.CategoryList
        )
        self.tags = Kind[models.Tag, models.TagList, models.TagNew, models.TagChanges](
            http, "/tags", models.Tag, models.TagList
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()
