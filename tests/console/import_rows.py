"""A source and runs whose texts are all hostile, for the tests of all pages."""

from typing import Any

import psycopg

from kalends.core.messages import Message
from kalends.imports.operations.requests import ACTIONS
from kalends.imports.storage.import_tables import encode, encode_message

Connection = psycopg.Connection[tuple[object, ...]]


def fill_imports(connection: Connection, owner_id: int, text: str) -> None:
    """Add a source with a plan (1), a run that is being applied (2) and one that has failed (3)."""
    connection.execute(
        "INSERT INTO import_sources (site_id, id, kind, name, url, owner_id, created_at, failures, columns) "
        "VALUES (1, 1, 'table', left(%s, 200), %s, %s, now(), 2, %s)",
        [text, f"https://x.example/?{text}", owner_id, encode({text: "title"})],
    )
    connection.execute("INSERT INTO import_files VALUES (1, 1, left(%s, 255), 'x', now())", [text])
    warning = encode([encode_message(Message("{text}", text=text))])
    failure = encode(encode_message(Message("{text}", text=text)))
    for number, state in enumerate(("planned", "applying", "failed"), 1):
        connection.execute(
            "INSERT INTO import_runs (site_id, id, source_id, user_id, state, started_at, warnings, failure, "
            "preview, progress, counts, first_revision) VALUES (1, %s, 1, %s, %s, now(), %s, %s, %s, %s, %s, 1)",
            [
                *(number, owner_id, state, warning, failure if state == "failed" else None),
                *(encode(_make_preview(text)), encode({"done": 3, "total": 9}), encode({"new": 1, "same": 5})),
            ],
        )
    for number, action in enumerate(ACTIONS, 1):
        _add_row(connection, number, action, text)


def _add_row(connection: Connection, number: int, action: str, text: str) -> None:
    states = {"rejected": "skipped", "unchanged": "skipped", "duplicate": "waiting"}
    changes = {
        "title": {"stored": f"Before {text}", "before": "", "now": f"After {text}", "decision": "source"},
        "cost": {"stored": text, "before": text, "now": f"{text} 2", "decision": "local"},
        "website": {"stored": text, "before": text, "now": f"{text} 2", "decision": "other_source"},
    }
    connection.execute(
        "INSERT INTO import_rows (site_id, run_id, number, action, kind, title, record_id, imported, changes, "
        "reasons, line, state) VALUES (1, 1, %s, %s, 'events', %s, 1, %s, %s, %s, 7, %s)",
        [
            *(number, action, text, encode({"values": {"start_date": "2031-01-01 10:00:00"}})),
            encode(changes if action == "changed" else {}),
            encode([encode_message(Message("{text}", text=text))]),
            states.get(action, "pending"),
        ],
    )


def _make_preview(text: str) -> dict[str, Any]:
    columns = [{"header": text, "field": "title", "samples": []}, {"header": "B", "field": "", "samples": []}]
    problem = encode_message(Message("{text}", text=text))
    cells = [{"text": text, "problem": problem}, {"text": text, "problem": None}]
    return {"columns": columns, "rows": [{"row": 2, "cells": cells, "problem": problem}]}
