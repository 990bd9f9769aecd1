"""Rules that make naive expanders slow: rare or impossible dates, large intervals and long lists."""

from itertools import chain, product

ALL_WEEKDAYS = "MO,TU,WE,TH,FR,SA,SU"
ALL_MONTH_DAYS = ",".join(map(str, range(1, 32)))
ALL_POSITIONS = ",".join(map(str, [*range(1, 60), *range(-1, -40, -1)]))
ORDINALS = ",".join(f"{number}{day}" for number in (1, -1, 5, -5) for day in ALL_WEEKDAYS.split(","))
YEAR_ORDINALS = ",".join(f"{number}SU" for number in [*range(1, 54), *range(-1, -30, -1)])

DAILY = [
    *("", "BYMONTH=2;BYMONTHDAY=30", "BYMONTH=2;BYMONTHDAY=29", "BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "BYMONTHDAY=31"),
    *("BYMONTHDAY=31;BYDAY=MO", f"BYMONTHDAY={ALL_MONTH_DAYS}", f"BYMONTHDAY={ALL_MONTH_DAYS};BYDAY=TU", "BYDAY=TU"),
    *("BYDAY=SU;BYSETPOS=2", "BYMONTHDAY=-31,-30;BYMONTH=2,4", f"BYDAY={ALL_WEEKDAYS};BYSETPOS=-1"),
]
WEEKLY = [
    *("", "BYDAY=TU;BYSETPOS=2", "BYMONTH=2", f"BYMONTH=2;BYDAY={ALL_WEEKDAYS};BYSETPOS=7", "BYMONTH=2;BYDAY=MO"),
    *(
        f"BYDAY={ALL_WEEKDAYS};BYSETPOS={ALL_POSITIONS}",
        "BYDAY=MO,SU;BYSETPOS=-7",
        "BYMONTH=2;BYDAY=MO,SU;BYSETPOS=-2",
    ),
]
MONTHLY = [
    *("", "BYMONTH=2;BYMONTHDAY=30", "BYMONTHDAY=31;BYMONTH=2,4,6,9,11", "BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"),
    *("BYDAY=5MO;BYMONTH=2", "BYDAY=5MO,-5MO;BYMONTHDAY=15", f"BYDAY={ORDINALS};BYSETPOS={ALL_POSITIONS}"),
    *(f"BYMONTHDAY={ALL_MONTH_DAYS};BYDAY={ORDINALS}", "BYDAY=MO;BYSETPOS=6", "BYMONTHDAY=31;BYDAY=1MO"),
    *("BYMONTHDAY=31;BYDAY=MO", "BYMONTHDAY=-31;BYDAY=FR", f"BYMONTHDAY={ALL_MONTH_DAYS};BYSETPOS=366"),
]
YEARLY = [
    *("", "BYMONTH=2;BYMONTHDAY=30", "BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "BYDAY=53MO", "BYDAY=53MO;BYMONTHDAY=1"),
    *(f"BYDAY={YEAR_ORDINALS}", f"BYMONTHDAY={ALL_MONTH_DAYS};BYSETPOS=366", f"BYDAY={ALL_WEEKDAYS};BYSETPOS=-366"),
    *("BYMONTH=2;BYDAY=6MO", f"BYMONTHDAY={ALL_MONTH_DAYS};BYDAY={ALL_WEEKDAYS};BYSETPOS={ALL_POSITIONS}"),
]
ENDS = ["", "COUNT=1000"]


def make_rules() -> list[str]:
    kinds = {"DAILY": (DAILY, (1, 2, 7, 28, 30, 999)), "WEEKLY": (WEEKLY, (1, 3, 773))}
    kinds |= {"MONTHLY": (MONTHLY, (1, 11, 12)), "YEARLY": (YEARLY, (1, 4))}
    rules = chain.from_iterable(
        (
            ";".join(filter(None, [f"FREQ={frequency};INTERVAL={interval}", limits, end]))
            for limits, interval, end in product(parts, intervals, ENDS)
        )
        for frequency, (parts, intervals) in kinds.items()
    )
    return [*rules]


HOSTILE_RULES = make_rules()
