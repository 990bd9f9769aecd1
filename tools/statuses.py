"""Generates docs/statuses.md and docs/statuses.svg from the tables of statuses; `--check` only compares."""

import sys
from dataclasses import dataclass
from pathlib import Path

from kalends.core.statuses import DELETED, NEW, STATUSES, TABLE, TRANSITIONS, Right

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, DIAGRAM = DOCS / "statuses.md", DOCS / "statuses.svg"

LABELS: dict[Right, str] = {"edit": "edit", "publish": "publish", "schedule": "time"}


def render_page() -> str:
    lines = [
        "# Statuses",
        "",
        "`just statuses` generates this page and its diagram from `kalends/core/statuses.py`.",
        "",
        "Events, venues and organizers have a status. Categories and tags have none: they are public until they "
        "are deleted.",
        "",
        "![The statuses and the transitions between them](statuses.svg)",
        "",
        "## Meaning",
        "",
        "| Status | Meaning | Single read by | In lists for | In linked events for | Counted | Slug |",
        "|---|---|---|---|---|---|---|",
    ]
    for status in TABLE:
        counts = "yes" if status.is_public else "no"
        cells = [status.meaning, status.read, status.lists, status.embedded, counts, status.slug]
        lines.append(f"| `{status.name}` | {' | '.join(cells)} |")
    non_contributor = ", ".join(f"`{status.name}`" for status in TABLE if not status.contributor_may_edit)
    lines += [
        "",
        "- Counts are the `count` of categories and tags, `has_events` and `only_with_upcoming`. Protected events "
        "are included: a count reveals that such an event has the term, venue or organizer, but not which event. Use "
        "terms for protected events only if their names are not confidential.",
        "- `changes` contains the records that the caller may read, and reports those that the caller can no longer "
        "see as deleted; to the public, only if they were public before. Feeds show the records that lists show.",
        "- An event with `hide_from_listings` is in no list, whatever its status; a single read returns it.",
        "- A protected event is shown without its content in lists and in `changes`, whatever its status; a single "
        "read requires its password, or `context=edit` and the right to edit.",
        "",
        "## Permissions",
        "",
        "Editors and administrators have the right to **edit** every record, authors their own records, and "
        f"contributors their own unless these are {non_contributor.replace(', ', ' or ')}, or were before they "
        "were moved to the trash. Authors, editors and administrators have the right to **publish**. Users without "
        "the right to publish get `pending` instead.",
        "",
        "| from \\ to | " + " | ".join(f"`{name}`" for name in (*STATUSES, DELETED)) + " |",
        "|---|" + "---|" * (len(STATUSES) + 1),
    ]
    for origin in (NEW, *STATUSES):
        cells = [_list_rights(origin, to) for to in (*STATUSES, DELETED)]
        lines.append(f"| `{origin}` | {' | '.join(cells)} |")
    lines += ["", "| Target | Requires | Condition |", "|---|---|---|"]
    lines += [f"| `{move.target}` | {LABELS[move.right]} | {move.when} |" for move in TRANSITIONS]
    lines += [
        "",
        "An update without a status keeps it, except that a new date publishes or schedules a record that is "
        "`publish` or `future`. `POST …/restore` without a revision moves a record from the trash to its previous "
        "status, by the same rules.",
        "",
        "## Venues and organizers of an event",
        "",
        "When a public event is saved, its linked venues and organizers that are `draft`, `pending` or `future` are "
        "published in the same transaction, with entries of their own in the history: by single writes, in a "
        "`batch`, by `restore`, and by the worker when a scheduled event is due. `private` records and those in the "
        "trash stay as they are, and nothing is reversed when the event is withdrawn.",
        "",
        "The caller must have the right to publish the linked record: authors publish their own, editors all. When "
        "an event is scheduled, the drafts are scheduled for the same date, so contributors can no longer change "
        "them; a record that is moved back to `draft` stays a draft.",
    ]
    return "\n".join(lines) + "\n"


def _list_rights(origin: str, to: str) -> str:
    rights = [
        LABELS[move.right] for move in TRANSITIONS if origin in move.sources and move.target == to and origin != to
    ]
    return " or ".join(rights) or "–"


# The diagram ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrow:
    """An arrow between boxes, by its corners, with the transitions that it represents."""

    origins: tuple[str, ...]
    to: tuple[str, ...]
    right: Right
    points: tuple[tuple[int, int], ...]
    label: tuple[int, int, str] | None = None  # x, y, anchor
    both_ways: bool = False


WIDTH, HEIGHT = 830, 420
DRAFT_STATUSES, FINISHED_STATUSES = ("draft", "pending"), ("private", "future", "publish")
# Boxes: left, top, width, height.
GROUPS = {"in progress": (150, 40, 170, 220), "finished": (500, 40, 310, 220)}
BOXES = {
    "draft": (175, 80, 120, 54),
    "pending": (175, 180, 120, 54),
    "private": (595, 180, 120, 54),
    "future": (525, 80, 110, 54),
    "publish": (675, 80, 110, 54),
    "trash": (350, 320, 120, 54),
}
# Every status of a group leads to every status of the other group, so one arrow represents all of them.
ARROWS = (
    Arrow((NEW,), DRAFT_STATUSES, "edit", ((40, 190), (150, 190)), (95, 181, "middle")),
    Arrow((NEW,), FINISHED_STATUSES, "publish", ((30, 180), (30, 20), (655, 20), (655, 40)), (340, 14, "middle")),
    Arrow(DRAFT_STATUSES, FINISHED_STATUSES, "publish", ((320, 110), (500, 110)), (410, 101, "middle")),
    Arrow(FINISHED_STATUSES, DRAFT_STATUSES, "edit", ((500, 190), (320, 190)), (410, 181, "middle")),
    Arrow(("draft",), ("pending",), "edit", ((235, 134), (235, 180)), (245, 162, "start"), both_ways=True),
    Arrow(("future",), ("publish",), "schedule", ((635, 98), (675, 98)), (655, 90, "middle")),
    Arrow(("future",), ("publish",), "publish", ((635, 117), (675, 117)), both_ways=True),
    Arrow(("future",), ("private",), "publish", ((590, 134), (630, 180)), (598, 166, "end"), both_ways=True),
    Arrow(("publish",), ("private",), "publish", ((720, 134), (680, 180)), (712, 166, "start"), both_ways=True),
    Arrow(DRAFT_STATUSES, ("trash",), "edit", ((215, 260), (215, 338), (350, 338)), (226, 290, "start")),
    Arrow(FINISHED_STATUSES, ("trash",), "edit", ((700, 260), (700, 338), (470, 338)), (689, 290, "end")),
    Arrow(("trash",), DRAFT_STATUSES, "edit", ((350, 358), (185, 358), (185, 260)), (174, 290, "end")),
    Arrow(("trash",), FINISHED_STATUSES, "publish", ((470, 358), (730, 358), (730, 260)), (741, 290, "start")),
    Arrow(("trash",), (DELETED,), "schedule", ((410, 320), (410, 282)), (421, 306, "start")),
)
LEGEND = "edit: requires the right to edit  ·  publish: requires the right to publish  ·  time: automatic"


def list_drawn_moves() -> set[tuple[str, str, str]]:
    """Return the transitions that the arrows represent."""
    moves = {(origin, to, arrow.right) for arrow in ARROWS for origin in arrow.origins for to in arrow.to}
    return moves | {
        (to, origin, arrow.right)
        for arrow in ARROWS
        if arrow.both_ways
        for origin in arrow.origins
        for to in arrow.to
    }


STYLE = """
    text { font: 15px system-ui, sans-serif; fill: #1f2328; }
    .name { font-weight: 600; text-anchor: middle; }
    .small { font-size: 13px; fill: #57606a; }
    .group { fill: #8881; stroke: #8c959f; stroke-dasharray: 2 4; }
    .box { fill: #fff; stroke: #57606a; stroke-width: 1.5; }
    .public { fill: #dafbe1; stroke: #1a7f37; }
    .trash { fill: #f6f8fa; stroke: #8c959f; }
    .arrow { fill: none; stroke: #57606a; stroke-width: 1.5; }
    .publish { stroke: #1a7f37; }
    .schedule { stroke: #0969da; stroke-dasharray: 5 4; }
    .dot { fill: #57606a; }
    .ring { fill: none; stroke: #57606a; stroke-width: 1.5; }
    text.publish { fill: #1a7f37; stroke: none; }
    text.schedule { fill: #0969da; stroke: none; }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3; }
        .small { fill: #9198a1; }
        .box { fill: #161b22; stroke: #9198a1; }
        .public { fill: #12261e; stroke: #3fb950; }
        .trash { fill: #21262d; stroke: #6e7681; }
        .arrow, .ring { stroke: #9198a1; }
        .dot { fill: #9198a1; }
        .publish { stroke: #3fb950; }
        .schedule { stroke: #58a6ff; }
        text.publish { fill: #3fb950; }
        text.schedule { fill: #58a6ff; }
    }"""


def render_diagram() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The statuses of a record and the rights that its transitions require</title>",
        f"<style>{STYLE}\n</style>",
        "<defs>",
        *[_arrow_head(right) for right in LABELS],
        "</defs>",
    ]
    for name, (left, top, width, height) in GROUPS.items():
        parts.append(f'<rect class="group" x="{left}" y="{top}" width="{width}" height="{height}" rx="14"/>')
        parts.append(f'<text class="small" x="{left + 14}" y="{top + 24}">{name}</text>')
    for arrow in ARROWS:
        corners = " L".join(f"{x},{y}" for x, y in arrow.points)
        heads = f'marker-end="url(#{arrow.right})"' + f' marker-start="url(#{arrow.right})"' * arrow.both_ways
        parts.append(f'<path class="arrow {arrow.right}" d="M{corners}" {heads}/>')
        if arrow.label:
            x, y, anchor = arrow.label
            label = f'<text class="small {arrow.right}" x="{x}" y="{y}" text-anchor="{anchor}">'
            parts.append(f"{label}{LABELS[arrow.right]}</text>")
    for status in TABLE:
        left, top, width, height = BOXES[status.name]
        box_class = "public" if status.is_public else "trash" if not status.is_listed else ""
        parts.append(f'<rect class="box {box_class}" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>')
        middle = left + width // 2
        parts.append(f'<text class="name" x="{middle}" y="{top + height // 2 + 5}">{status.name}</text>')
    parts += [
        '<circle class="dot" cx="30" cy="190" r="9"/>',
        '<text class="small" x="30" y="222" text-anchor="middle">new</text>',
        '<circle class="ring" cx="410" cy="272" r="9"/><circle class="dot" cx="410" cy="272" r="5"/>',
        '<text class="small" x="410" y="252" text-anchor="middle">deleted</text>',
        f'<text class="small" x="{WIDTH // 2}" y="{HEIGHT - 12}" text-anchor="middle">{LEGEND}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _arrow_head(right: Right) -> str:
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"'
    line = f'<path class="arrow {right}" style="stroke-dasharray: none" d="M1,1 L9,5 L1,9"/>'
    return f'<marker id="{right}" {size}>{line}</marker>'


def main() -> int:
    files = {PAGE: render_page(), DIAGRAM: render_diagram()}
    if "--check" in sys.argv:
        return 0 if all(path.exists() and path.read_text() == text for path, text in files.items()) else 1
    for path, text in files.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
