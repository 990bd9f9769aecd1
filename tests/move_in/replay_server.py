"""The recorded site as a server of its own: `python -m tests.move_in.replay_server SCRIPT --port 9000 …`.

The script and its options are those of the recording, which has no comments. `--samples` as the last option adds
comments, and the samples of `samples.py` to its events.
"""

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kalends.move_in.rules.exchanges import COMMENTS
from tests.move_in.samples import SAMPLES, Image, Sample, edit_event, edit_tribe_event, make_comments

ADMINISTRATOR = "administrator"
Table = dict[Any, dict[str, Any]]


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("replay", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    edit = module.walk

    def walk(value: Any) -> Any:
        """Edit a response; a description of parameters may have one that is named `id`."""
        if isinstance(value, dict) and isinstance(value.get("id"), dict | list):
            return {name: module.walk(entry) for name, entry in value.items()}
        return edit(value)

    module.walk = walk
    return module


def choose_samples(module: Any, table: Table) -> dict[int, Sample]:
    """Return published events that no other option changes, with their samples."""
    events = [json.loads(exchange["body"]) for exchange in table.values() if _is_event(exchange)]
    public = {entry["id"] for entry in events if entry["status"] == "publish" and not entry["password"]}
    return dict(zip(sorted(public - module.EDITED - {module.DELETED}), SAMPLES, strict=False))


def _is_event(exchange: Mapping[str, Any]) -> bool:
    """Return whether an exchange has an event as wp/v2 describes it, with all fields."""
    path = exchange["path"].removeprefix("/wp-json/wp/v2/tribe_events/")
    is_single = path.partition("?")[0].isdecimal() and path.endswith("?context=edit")
    return is_single and exchange["as_role"] == ADMINISTRATOR and exchange["status"] == 200


def list_images(module: Any, table: Table) -> list[Image]:
    exchange = table[*module.address("/wp-json/wp/v2/media?context=edit&per_page=100"), ADMINISTRATOR]
    return [(entry["id"], entry["source_url"]) for entry in json.loads(exchange["body"])]


def add_samples(module: Any, table: Table) -> Table:
    samples, images = choose_samples(module, table), list_images(module, table)
    for exchange in table.values():
        if exchange["as_role"] == ADMINISTRATOR and "/wp-json/" in exchange["path"] and "events" in exchange["path"]:
            exchange["body"] = json.dumps(_edit(json.loads(exchange["body"]), samples, images))
    return add_comments(module, table, make_comments(list(samples)[:3]))


def add_comments(module: Any, table: Table, comments: Sequence[Mapping[str, Any]] = ()) -> Table:
    path, body = f"/wp-json/{COMMENTS}", json.dumps(list(comments))
    exchange = {"path": path, "as_role": ADMINISTRATOR, "status": 200, "headers": {}, "body": body}
    table[*module.address(path), ADMINISTRATOR] = exchange
    return table


def _edit(value: Any, samples: Mapping[int, Sample], images: Sequence[Image]) -> Any:
    """Put samples into all events of a response."""
    if isinstance(value, list):
        return [_edit(entry, samples, images) for entry in value]
    if not isinstance(value, dict):
        return value
    edited = {name: _edit(entry, samples, images) for name, entry in value.items()}
    sample = samples.get(value["id"]) if isinstance(value.get("id"), int) else None
    if sample and "raw" in (value.get("content") or {}):
        edit_event(edited, sample, images)
    elif sample and "cost_details" in value:
        edit_tribe_event(edited, sample)
    return edited


if __name__ == "__main__":
    module = load(sys.argv.pop(1))
    add = add_samples if sys.argv[-1] == "--samples" else add_comments
    if add is add_samples:
        sys.argv.pop()
    read = module.load
    module.load = lambda: add(module, read())
    module.main()
