"""A client whose models are generated from /doc by a common generator works with the server."""

import httpx
import pytest

from tests.api.conftest import *  # noqa: F403 - the fixtures of an application in this process
from tests.api.running_app import RunningApp
from tests.description.client import ApiError, Client, models
from tools import client as generator


@pytest.mark.process
def test_generated_client_models_are_current() -> None:
    assert generator.MODELS.read_text() == generator.render(), "run `just client`"


def test_client_supports_all_verbs_of_all_kinds(app: RunningApp) -> None:
    user = app.users["administrator"]
    app.run(
        _use_client(Client(app.api_url, (user.login, user.password), transport=httpx.ASGITransport(app=app.asgi)))
    )


async def _use_client(client: Client) -> None:
    async with client:
        venue = await client.venues.create(models.VenueNew(venue="Town hall", city="Bonn"))
        organizer = await client.organizers.create(models.OrganizerNew(organizer="The city"))
        category = await client.categories.create(models.CategoryNew(name="Music"))
        tag = await client.tags.create(models.TagNew(name="Free"))
        new = models.EventNew(
            title="Concert", start_date="2090-05-01 19:00", end_date="2090-05-01 21:00",
            categories=[category.id], tags=[tag.id], venue=[venue.id], organizer=[organizer.id],
        )  # fmt: skip
        event = await client.events.create(new, key="once")
        assert (await client.events.create(new, key="once")).id == event.id
        assert isinstance(event.venue, models.Venue)
        assert (event.venue.city, event.categories[0].name, event.organizer[0].organizer) == (
            "Bonn",
            "Music",
            "The city",
        )
        changed = await client.events.update(event.id, models.EventChanges(featured=True))
        assert (changed.featured, changed.title) == (True, "Concert")
        page = await client.events.list(start_date="2090-01-01", end_date="2091-01-01", featured=True)
        assert (page.total, [row.id for row in page.events]) == (1, [event.id])
        assert (await client.events.read(event.id)).uid == event.uid
        assert (await client.events.delete(event.id)).status == models.Status.trash
        with pytest.raises(ApiError) as error:
            await client.events.delete(event.id)
        assert (error.value.status, error.value.code) == (410, "event-is-in-trash")
        assert (await client.tags.list(hide_empty=False)).total == 1
