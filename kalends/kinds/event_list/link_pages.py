"""A page of a list that is filtered by one venue, organizer, category or tag: the first events of its link index."""

from typing import LiteralString

from kalends.kinds.event_list.order import cursor_condition, read_order
from kalends.kinds.event_list.window import Window, link_limits, listed_conditions, split_window
from kalends.kinds.kind import Clause, LinkCondition, ListQuery, PasswordCondition, has_condition, row_conditions
from kalends.store.sql import Sql, and_


def find_single_link(clauses: list[Clause]) -> LinkCondition | None:
    """Return the link to one record, if the clauses contain no other condition except that on passwords."""
    conditions = [clause for clause in clauses if has_condition(clause)]
    links = [clause for clause in conditions if isinstance(clause, LinkCondition)]
    passwords = [clause for clause in conditions if isinstance(clause, PasswordCondition)]
    is_single = len(links) == 1 and len(set(links[0].ids)) == 1
    return links[0] if is_single and len(passwords) + 1 == len(conditions) else None


def plan_link_page(query: ListQuery, window: Window, clauses: list[Clause], count: int) -> tuple[Sql, Sql] | None:
    """Return the branch of the events that start in the window, if the link index has them in the order of the list.

    The index has no further keys of the order, so all events that start together with the last one are read, too.
    OFFSET 0 forces one lookup per link. The planner would otherwise read all events of the record.
    """
    link = find_single_link(clauses)
    orderby, order = read_order(query)
    if link is None or orderby != "start_date":
        return None
    starting, _ = split_window(window)
    conditions = [*listed_conditions(query), *starting.clauses(), *_passwords(clauses)]
    limits = link_limits(query, starting)
    if "cursor" in query.values:
        conditions.append(cursor_condition(query))
        sign: LiteralString = "<=" if order == "desc" else ">="
        limits += Sql("AND l.start_utc " + sign + " ?", query.values["cursor"].keys[0])
    direction: LiteralString = " DESC" if order == "desc" else ""
    source = (
        Sql("(SELECT r.* FROM " + link.table + " l CROSS JOIN LATERAL (")
        + Sql("SELECT * FROM events r WHERE r.id = l.event_id AND")
        + and_(conditions)
        + Sql("OFFSET 0) r WHERE l.site_id = ? AND l." + link.column + " = ?", query.site.id, link.ids[0])
        + limits
        + Sql("ORDER BY l.start_utc" + direction + " FETCH FIRST (?) ROWS WITH TIES) r", count)
    )
    return source, Sql("true")


def _passwords(clauses: list[Clause]) -> list[Sql]:
    return row_conditions([clause for clause in clauses if isinstance(clause, PasswordCondition)])
