"""Nobody waits long behind somebody else's images."""

import asyncio
from collections import Counter

from PIL import Image

from tests.api.running_app import Caller, RunningApp
from tests.media.image_fixtures import EXTENSION_URL, encode_image, make_image


def test_many_uploads_of_one_user_do_not_block_others(app: RunningApp) -> None:
    """A few of one author are in hand at a time; others come in between."""
    author, editor = app.caller("author"), app.caller("editor")
    large = encode_image(Image.effect_noise((1500, 1500), 80), "PNG")
    responses: list[tuple[str, int]] = []

    async def upload(caller: Caller, content: bytes, name: str) -> None:
        response = await caller.request_async("POST", f"{EXTENSION_URL}/media", files={"file": ("a.png", content)})
        responses.append((name, response.status_code))

    async def all_at_once() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(30):
                group.create_task(upload(author, large, "author"))
            await asyncio.sleep(0.2)
            group.create_task(upload(editor, make_image(seed=50), "editor"))

    app.run(all_at_once())
    assert Counter(responses) == {("author", 201): 23, ("author", 503): 7, ("editor", 201): 1}
    before = responses[: responses.index(("editor", 201))]
    assert before.count(("author", 201)) <= 6
