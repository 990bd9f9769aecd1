"""Nobody waits long behind somebody else's images."""

import asyncio
from collections import Counter

from PIL import Image

from tests.api.running_app import Caller, Interface
from tests.media.image_fixtures import EXTENSION, encoded, picture


def test_many_uploads_of_one_user_do_not_block_others(interface: Interface) -> None:
    """A few of one author are in hand at a time; others come in between."""
    author, editor = interface.caller("author"), interface.caller("editor")
    large = encoded(Image.effect_noise((1500, 1500), 80), "PNG")
    answers: list[tuple[str, int]] = []

    async def upload(caller: Caller, content: bytes, name: str) -> None:
        answer = await caller.ask("POST", f"{EXTENSION}/media", files={"file": ("a.png", content)})
        answers.append((name, answer.status_code))

    async def all_at_once() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(30):
                group.create_task(upload(author, large, "author"))
            await asyncio.sleep(0.2)
            group.create_task(upload(editor, picture(seed=50), "editor"))

    interface.run(all_at_once())
    assert Counter(answers) == {("author", 201): 23, ("author", 503): 7, ("editor", 201): 1}
    before = answers[: answers.index(("editor", 201))]
    assert before.count(("author", 201)) <= 6
