"""Rules with their dates: the examples of RFC 5545, section 3.8.5.3, and cases worked out with a calendar.

Dates are written as "1997 Sep 2 4 Oct 2 1998 Jan 1"; the first one of the first column is the start.
"""

from collections.abc import Iterator
from datetime import datetime

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def read_dates(text: str) -> Iterator[datetime]:
    year, month = 0, 0
    for word in text.split():
        if word in MONTHS:
            month = MONTHS.index(word) + 1
        elif len(word) == 4:
            year = int(word)
        else:
            yield datetime(year, month, int(word), 9)


# Start, rule, first dates. In New York; a rule with an end gives exactly these dates.
RFC_CASES = [
    ("1997 Sep 2", "FREQ=DAILY;COUNT=10", "1997 Sep 2 3 4 5 6 7 8 9 10 11"),
    ("1997 Dec 20", "FREQ=DAILY;UNTIL=19971224T000000Z", "1997 Dec 20 21 22 23"),
    ("1997 Sep 2", "FREQ=DAILY;INTERVAL=2", "1997 Sep 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 Oct 2 4"),
    ("1997 Sep 2", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 Sep 2 12 22 Oct 2 12"),
    ("1998 Jan 30", "FREQ=DAILY;UNTIL=19990103T140000Z;BYMONTH=1", "1998 Jan 30 31 1999 Jan 1 2 3"),
    (
        "1998 Jan 30",
        "FREQ=YEARLY;UNTIL=19990103T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
        "1998 Jan 30 31 1999 Jan 1 2 3",
    ),
    ("1997 Sep 2", "FREQ=WEEKLY;COUNT=10", "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4"),
    (
        "1997 Sep 2",
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4 11 18 25 Dec 2 9 16 23",
    ),
    (
        "1997 Sep 2",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        "1997 Sep 2 16 30 Oct 14 28 Nov 11 25 Dec 9 23 1998 Jan 6 20 Feb 3 17",
    ),
    (
        "1997 Sep 2",
        "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
        "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2",
    ),
    ("1997 Sep 2", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2"),
    (
        "1997 Sep 1",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        "1997 Sep 1 3 5 15 17 19 29 Oct 1 3 13 15 17 27 29 31 Nov 10 12 14 24 26 28 Dec 8 10 12 22",
    ),
    ("1997 Sep 2", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 16 18 30 Oct 2 14 16"),
    (
        "1997 Sep 5",
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        "1997 Sep 5 Oct 3 Nov 7 Dec 5 1998 Jan 2 Feb 6 Mar 6 Apr 3 May 1 Jun 5",
    ),
    ("1997 Sep 5", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997 Sep 5 Oct 3 Nov 7 Dec 5"),
    (
        "1997 Sep 7",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        "1997 Sep 7 28 Nov 2 30 1998 Jan 4 25 Mar 1 29 May 3 31",
    ),
    ("1997 Sep 22", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997 Sep 22 Oct 20 Nov 17 Dec 22 1998 Jan 19 Feb 16"),
    ("1997 Sep 28", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997 Sep 28 Oct 29 Nov 28 Dec 29 1998 Jan 29 Feb 26"),
    ("1997 Sep 2", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "1997 Sep 2 15 Oct 2 15 Nov 2 15 Dec 2 15 1998 Jan 2 15"),
    (
        "1997 Sep 30",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        "1997 Sep 30 Oct 1 31 Nov 1 30 Dec 1 31 1998 Jan 1 31 Feb 1",
    ),
    (
        "1997 Sep 10",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997 Sep 10 11 12 13 14 15 1999 Mar 10 11 12 13",
    ),
    (
        "1997 Sep 2",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "1997 Sep 2 9 16 23 30 Nov 4 11 18 25 1998 Jan 6 13 20 27 Mar 3 10 17 24 31",
    ),
    (
        "1997 Jun 10",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "1997 Jun 10 Jul 10 1998 Jun 10 Jul 10 1999 Jun 10 Jul 10 2000 Jun 10 Jul 10 2001 Jun 10 Jul 10",
    ),
    (
        "1997 Mar 10",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        "1997 Mar 10 1999 Jan 10 Feb 10 Mar 10 2001 Jan 10 Feb 10 Mar 10 2003 Jan 10 Feb 10 Mar 10",
    ),
    ("1997 May 19", "FREQ=YEARLY;BYDAY=20MO", "1997 May 19 1998 May 18 1999 May 17"),
    ("1997 Mar 13", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997 Mar 13 20 27 1998 Mar 5 12 19 26 1999 Mar 4 11 18 25"),
    (
        "1997 Jun 5",
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "1997 Jun 5 12 19 26 Jul 3 10 17 24 31 Aug 7 14 21 28 1998 Jun 4 11 18 25 Jul 2",
    ),
    ("1997 Sep 2", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998 Feb 13 Mar 13 Nov 13 1999 Aug 13 2000 Oct 13"),
    (
        "1997 Sep 13",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997 Sep 13 Oct 11 Nov 8 Dec 13 1998 Jan 10 Feb 7 Mar 7 Apr 11 May 9 Jun 13",
    ),
    (
        "1996 Nov 5",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996 Nov 5 2000 Nov 7 2004 Nov 2",
    ),
    ("1997 Sep 4", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997 Sep 4 Oct 7 Nov 6"),
    (
        "1997 Sep 29",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "1997 Sep 29 Oct 30 Nov 27 Dec 30 1998 Jan 29 Feb 26 Mar 30",
    ),
    ("1997 Aug 5", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997 Aug 5 10 19 24"),
    ("1997 Aug 5", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997 Aug 5 17 19 31"),
    ("2007 Jan 15", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007 Jan 15 30 Feb 15 Mar 15 30"),
]

# 1 January 2027 is a Friday, 1 February and 1 March are Mondays.
MIXED_WEEKDAYS = [
    ("2027 Jan 1", "FREQ=MONTHLY;BYDAY=3SU,TH", "2027 Jan 7 14 17 21 28 Feb 4 11 18 21 25"),
    ("2027 Feb 1", "FREQ=MONTHLY;BYDAY=1MO,FR", "2027 Feb 1 5 12 19 26 Mar 1 5 12 19 26"),
    ("2027 Feb 2", "FREQ=MONTHLY;BYDAY=TU,-1TU", "2027 Feb 2 9 16 23 Mar 2 9 16 23 30"),
    ("2027 Feb 3", "FREQ=MONTHLY;BYDAY=5MO,WE", "2027 Feb 3 10 17 24 Mar 3 10 17 24 29 31"),
    ("2027 Jun 1", "FREQ=YEARLY;BYMONTH=6;BYDAY=2SU,WE", "2027 Jun 2 9 13 16 23 30"),
    ("2027 Jan 1", "FREQ=YEARLY;BYDAY=1SU,MO", "2027 Jan 3 4 11 18 25 Feb 1"),
    ("2027 Feb 1", "FREQ=MONTHLY;BYDAY=MO,2MO;BYSETPOS=2", "2027 Feb 8 Mar 8"),
    ("2027 Feb 1", "FREQ=MONTHLY;BYDAY=FR,1MO;BYMONTHDAY=1,2,3,4,5", "2027 Feb 1 5 Mar 1 5 Apr 2 5"),
]
# The set is that of the whole week, including days before the start, which then are left out.
WEEKLY_POSITIONS = [
    ("2027 Jan 6", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1", "2027 Jan 11 18 25"),
    ("2027 Jan 6", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1;COUNT=2", "2027 Jan 11 18"),
    ("2027 Jan 4", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1", "2027 Jan 8 15 22"),
    ("2027 Jan 8", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", "2027 Jan 13 20 27"),
    ("2027 Jan 4", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1,-1", "2027 Jan 4 8 11 15"),
    ("2027 Jan 4", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1,-3", "2027 Jan 4 11 18"),
    ("2027 Jan 2", "FREQ=WEEKLY;BYDAY=SU,SA;BYSETPOS=1;WKST=SU", "2027 Jan 3 10 17"),
    ("2027 Jan 2", "FREQ=WEEKLY;BYDAY=SU,SA;BYSETPOS=1", "2027 Jan 2 9 16"),
    ("2027 Jan 5", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;BYSETPOS=-1", "2027 Jan 7 21 Feb 4"),
    ("2026 Jan 26", "FREQ=WEEKLY;BYMONTH=2;BYDAY=MO,SU;BYSETPOS=1", "2026 Feb 1 2 9 16 23 2027 Feb 1 8"),
    ("2027 Jan 5", "FREQ=WEEKLY;BYDAY=TU;BYSETPOS=2", ""),
]
OTHER_CASES = [
    ("2027 Jan 9", "FREQ=YEARLY;BYMONTHDAY=9,24", "2027 Jan 9 24 Feb 9 24 Mar 9 24"),
    ("2027 Mar 10", "FREQ=MONTHLY;INTERVAL=5;BYMONTH=3,4", "2027 Mar 10 2029 Apr 10 2032 Mar 10"),
    ("2027 Jun 15", "FREQ=YEARLY;BYMONTH=1,6;BYSETPOS=-1", "2027 Jun 15 2028 Jun 15"),
    ("2027 Jan 1", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1", "2027 Jan 1 29 Feb 1 26 Mar 1 31"),
    ("2027 Feb 3", "FREQ=MONTHLY;BYDAY=WE;BYSETPOS=1,-4", "2027 Feb 3 Mar 3 10"),
    ("2027 Jan 31", "FREQ=MONTHLY", "2027 Jan 31 Mar 31 May 31 Jul 31 Aug 31 Oct 31 Dec 31"),
    ("2027 Dec 31", "FREQ=MONTHLY;BYMONTHDAY=-1", "2027 Dec 31 2028 Jan 31 Feb 29 Mar 31 Apr 30"),
    ("2096 Feb 29", "FREQ=YEARLY", "2096 Feb 29 2104 Feb 29 2108 Feb 29"),
    ("2028 Feb 29", "FREQ=YEARLY;INTERVAL=3", "2028 Feb 29 2040 Feb 29 2052 Feb 29"),
    ("2027 Jan 29", "FREQ=MONTHLY;BYDAY=5FR", "2027 Jan 29 Apr 30 Jul 30 Oct 29 Dec 31"),
    ("2027 Jan 1", "FREQ=MONTHLY;BYDAY=-5FR", "2027 Jan 1 Apr 2 Jul 2 Oct 1 Dec 3"),
    ("2027 Jan 4", "FREQ=DAILY;INTERVAL=3;BYDAY=MO", "2027 Jan 4 25 Feb 15"),
    ("2027 Jan 31", "FREQ=DAILY;BYMONTH=1;BYMONTHDAY=-1", "2027 Jan 31 2028 Jan 31"),
    ("2027 Jan 4", "FREQ=DAILY;BYDAY=MO;BYSETPOS=-1", "2027 Jan 4 11 18"),
    ("2027 Jan 4", "FREQ=DAILY;BYDAY=MO;BYSETPOS=2", ""),
    ("2027 Mar 31", "FREQ=MONTHLY;BYMONTH=2,3;BYMONTHDAY=31", "2027 Mar 31 2028 Mar 31"),
    ("2027 Dec 31", "FREQ=YEARLY;BYDAY=53FR", "2027 Dec 31 2032 Dec 31"),
    ("2027 Jan 4", "FREQ=YEARLY;BYDAY=1MO,-1FR", "2027 Jan 4 Dec 31 2028 Jan 3 Dec 29"),
    ("2023 Jan 13", "FREQ=YEARLY;BYDAY=2FR;BYMONTHDAY=13", "2023 Jan 13 2034 Jan 13"),
    ("2027 Jan 3", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO", "2027 Jan 3 11 17 25 31"),
    ("2027 Jan 3", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU", "2027 Jan 3 4 17 18 31 Feb 1"),
    ("2027 Apr 26", "FREQ=WEEKLY;UNTIL=20270503", "2027 Apr 26 May 3"),
    ("2027 Apr 26", "FREQ=WEEKLY;UNTIL=20270503T080000", "2027 Apr 26 May 3"),
    ("2027 Apr 26", "FREQ=WEEKLY;UNTIL=20270503T035959Z", "2027 Apr 26"),
    ("2027 Apr 26", "FREQ=WEEKLY;UNTIL=20270503T040000Z", "2027 Apr 26 May 3"),
]
CASES = [*RFC_CASES, *MIXED_WEEKDAYS, *WEEKLY_POSITIONS, *OTHER_CASES]
