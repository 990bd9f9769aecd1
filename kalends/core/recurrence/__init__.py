"""Read, write, expand and change recurrence rules (RFC 5545).

Rules are expanded in local time and produce at most one date per day. A time zone matters only for reading `UNTIL`.
"""

from kalends.core.recurrence.rule_dates import (
    check_start,
    end_before,
    expand,
    pair_by,
    period_of,
    rest_from,
    shift_rule,
)
from kalends.core.recurrence.rule_parts import Rule, Weekday
from kalends.core.recurrence.rule_reading import (
    find_warnings,
    format_rule,
    is_ambiguous,
    read_rule,
    read_rule_object,
    serialize_rule,
)

__all__ = [
    "Rule", "Weekday", "check_start", "end_before", "expand", "find_warnings", "format_rule", "is_ambiguous",
    "pair_by", "period_of", "read_rule", "read_rule_object", "rest_from", "serialize_rule", "shift_rule",
]  # fmt: skip
