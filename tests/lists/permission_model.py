"""Who sees which post in a list (behaviour 2.2 and 8.6, decision unpublished-in-lists)."""

from tests.lists.dataset import ROLES, STATUSES, USERS, Post, Query, RejectedQuery


def may_edit(role: str, post: Post) -> bool:
    rank = ROLES.index(role)
    if rank >= ROLES.index("editor"):
        return True
    if rank < ROLES.index("contributor") or post.author != USERS[role]:
        return False
    # Contributors cannot edit records that are published or scheduled, or were so before they were trashed.
    status = post.status_before_trash if post.status == "trash" else post.status
    return role == "author" or status not in ("publish", "future")


def may_read(role: str, post: Post) -> bool:
    if post.status == "publish" or role in ("editor", "administrator"):
        return True
    if post.status == "trash":
        return may_edit(role, post)
    return role != "anonymous" and post.author == USERS[role]


def requested_statuses(query: Query) -> list[str]:
    """Return the requested statuses. The default is all except trash; readers may request only `publish`."""
    values = query.all_values("status")
    if values is None:
        return [status for status in STATUSES if status != "trash"]
    statuses = ["publish", "private"] if values == [""] else values
    if any(status not in STATUSES for status in statuses):
        raise RejectedQuery("status")
    if query.role in ("anonymous", "subscriber") and set(statuses) != {"publish"}:
        raise RejectedQuery("status")
    return statuses


def is_listed(query: Query, post: Post) -> bool:
    return post.status in requested_statuses(query) and may_read(query.role, post)
