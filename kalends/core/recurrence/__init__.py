"""Recurrence rules (RFC 5545): reading, writing, expansion to dates, and changes of rules.

A rule is expanded in the local time of its zone and gives at most one date a day. Nothing here depends on the
current time, the time zone of a series or the database.
"""

from kalends.core.recurrence.advice import find_warnings, is_ambiguous
from kalends.core.recurrence.changes import end_before, rest_from, shift_rule
from kalends.core.recurrence.expansion import check_start, expand, period_of
from kalends.core.recurrence.formats import format_rule, serialize_rule
from kalends.core.recurrence.objects import read_rule_object
from kalends.core.recurrence.reading import read_rule
from kalends.core.recurrence.rules import Rule, Weekday

__all__ = [
    "Rule",
    "Weekday",
    "check_start",
    "end_before",
    "expand",
    "find_warnings",
    "format_rule",
    "is_ambiguous",
    "period_of",
    "read_rule",
    "read_rule_object",
    "rest_from",
    "serialize_rule",
    "shift_rule",
]
