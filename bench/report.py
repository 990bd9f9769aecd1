"""Results as a table in the terminal, and as a page with charts in docs/performance."""

import os
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.load import Samples
from bench.reference_comparison import Comparison
from bench.speed_cases import LIST, Limit
from bench.svg_bars import Row, draw_bars, format_value

COLUMNS = (
    "request",
    "bare: CPU ms",
    "p50",
    "cold: CPU ms (server + db)",
    "× bare",
    "req/s, 16",
    "p50",
    "p99",
    "miss: CPU ms (server + db)",
    "× bare",
    "warm: CPU ms (server + db)",
    "× bare",
    "req/s, 64",
    "p50",
    "p99",
)


@dataclass(frozen=True)
class Report:
    created_at: datetime
    python: str
    events: int
    cases: list[str]
    figures: dict[str, dict[str, Samples]]
    pages: dict[str, dict[str, Samples]]
    limits: list[Limit]
    comparisons: list[Comparison]

    def rows(self) -> list[list[str]]:
        return [_make_row(name, self.figures[name]) for name in self.cases]

    def page_rows(self) -> list[list[str]]:
        return [
            [name, *[cell for mode in ("cold", "warm") for cell in _describe_page(samples[mode])]]
            for name, samples in self.pages.items()
        ]

    def limit_rows(self) -> list[list[str]]:
        return [
            [
                limit.name,
                format_value(limit.figure),
                f"at most {format_value(limit.maximum)}"
                if limit.maximum is not None
                else f"at least {format_value(limit.minimum or 0)}",
                "met" if limit.is_kept() else "EXCEEDED",
            ]
            for limit in self.limits
        ]

    def comparison_rows(self) -> list[list[str]]:
        return [
            [
                f"{row.events:,}",
                row.name,
                row.matches,
                format_value(row.reference),
                format_value(row.cold.cpu),
                f"{row.reference / row.cold.cpu:,.0f}",
                format_value(row.warm.cpu),
                f"{row.reference / row.warm.cpu:,.0f}",
            ]
            for row in self.comparisons
        ]


def _describe_page(samples: Samples) -> list[str]:
    lowest = samples.cheapest
    parts = f"{format_value(lowest.cpu)} ({format_value(lowest.server)} + {format_value(lowest.database)})"
    return [parts, format_value(samples.best.p50)]


PAGE_COLUMNS = ("request", "cold: CPU ms (server + db)", "p50", "warm: CPU ms (server + db)", "p50")
COMPARISON_COLUMNS = (
    "events",
    "request",
    "matches",
    "TEC: CPU ms",
    "cold: CPU ms",
    "TEC / cold",
    "warm: CPU ms",
    "TEC / warm",
)
LIMIT_COLUMNS = ("limit", "measured", "", "")


def _make_row(name: str, figures: dict[str, Samples]) -> list[str]:
    bare = figures["bare"]
    cells = [name, format_value(bare.cpu), format_value(bare.best.p50)]
    for mode, connections in (("cold", 16), ("miss", None), ("warm", 64)):
        cells += _describe_cpu(figures.get(f"{mode} 1"), bare)
        if connections is not None:
            cells += _describe_load(figures.get(f"{mode} {connections}"))
    return cells


def _describe_cpu(samples: Samples | None, bare: Samples) -> list[str]:
    if samples is None:
        return [""] * 2
    parts = f"{format_value(samples.cheapest.server)} + {format_value(samples.cheapest.database)}"
    return [f"{format_value(samples.cpu)} ({parts})", f"{samples.cpu / bare.cpu:.2f}"]


def _describe_load(samples: Samples | None) -> list[str]:
    if samples is None:
        return [""] * 3
    return [format_value(value) for value in (samples.best.rate, samples.best.p50, samples.best.p99)]


def print_report(console: Console, report: Report) -> None:
    tables = [(f"{report.events:,} events", COLUMNS, report.rows()), ("limits", LIMIT_COLUMNS, report.limit_rows())]
    if report.pages:
        tables.append(("pages and feeds", PAGE_COLUMNS, report.page_rows()))
    if report.comparisons:
        tables.append(("comparison with The Events Calendar", COMPARISON_COLUMNS, report.comparison_rows()))
    for title, columns, rows in tables:
        table = Table(title=title)
        for number, heading in enumerate(columns):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def write_report(report: Report, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    measured = f"{report.created_at:%Y-%m-%d}, commit {describe_commit()}"
    note = f"{measured}, {report.events:,} events, CPU of server and database"
    (directory / "cpu.svg").write_text(_draw_cpu(report, note))
    (directory / "rate.svg").write_text(_draw_rate(report, note))
    (directory / "README.md").write_text(_render_page(report))


def _draw_cpu(report: Report, note: str) -> str:
    rows = [
        Row(
            name,
            [
                report.figures[name][mode].cpu if mode in report.figures[name] else None
                for mode in ("bare", "cold 1", "warm 1")
            ],
        )
        for name in report.cases
    ]
    title = "CPU per request: bare SQL, cold server, warm server"
    return draw_bars(title, note, "ms", ("bare SQL by pgbench", "cold", "warm"), rows)


def _draw_rate(report: Report, note: str) -> str:
    rows = [
        Row(name, [None, *[samples[mode].best.rate if mode in samples else None for mode in ("cold 16", "warm 64")]])
        for name, samples in ((name, report.figures[name]) for name in report.cases)
        if "warm 64" in samples
    ]
    title = "Requests per second of one server process, measured with wrk"
    return draw_bars(title, note, "/s", ("", "cold, 16 connections", "warm, 64 connections"), rows)


def _render_page(report: Report) -> str:
    varnish = report.figures.get(LIST, {}).get("varnish 64")
    return f"""# Performance

Measured by `just bench` on {report.created_at:%Y-%m-%d %H:%M} UTC at commit {describe_commit()},
on {os.cpu_count()} cores that PostgreSQL, the server and the load generator share. The servers ran on
{report.python}. The load average at the end was {os.getloadavg()[0]:.1f}.

Each request is measured in five ways, on a site with {report.events:,} events:

- **bare**: pgbench runs the SQL of the request with prepared statements, in one transaction that enters the site.
  This is the CPU time of PostgreSQL alone. A write is rolled back each time.
- **cold**: the request is sent over HTTP to a server without a cache (`KALENDS_CACHE_MB=0`).
- **minimal**: a server of 80 lines on Granian and asyncpg runs the same statements in the same transaction and sends
  the recorded bytes. What a request costs more than that is the work of Kalends.
- **miss**: the same with the default cache, which has the records of the response but not the response: the Host
  header of each request has another port, which is part of the cache key.
- **warm**: the request is sent over HTTP to a server with the response cache (the default).

CPU is the time of the server's and the database's processes, read from /proc, in milliseconds per request at one
connection; the lowest of all runs. Rates are those of the best run, at 16 and at 64 connections. p50 and p99 are in
milliseconds.

{render_table(COLUMNS, report.rows())}

![CPU per request](cpu.svg)

![Requests per second](rate.svg)

{f"Varnish serves the default list {format_value(varnish.best.rate)} times per second." if varnish else ""}

The [cold path](cold-path.md) shows where an uncached request spends its time.

## Pages and feeds

The site has 6,000 more events here: 1,000 in one month and 5,000 in one year. The responses are not compressed.

{render_table(PAGE_COLUMNS, report.page_rows())}

## Limits

{render_table(LIMIT_COLUMNS, report.limit_rows())}

## Comparison with The Events Calendar

The Events Calendar (TEC) 6.17.2 ran on WordPress 7.0 with nginx, php-fpm, opcache and MariaDB, without a page cache.
It was measured on another day on a machine of the same size, so **the ratios are accurate to a factor of about 2.5**.
CPU is in milliseconds per request, the lowest value, at one connection.

{render_table(COMPARISON_COLUMNS, report.comparison_rows())}
"""


def render_table(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    aligned = [":--" if number == 0 else "--:" for number in range(len(columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [list(columns), aligned, *rows])


def describe_commit() -> str:
    completed = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    is_changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "kalends"], check=False).returncode  # noqa: S607
    return (completed.stdout.strip() or "unknown") + (" with changes" if is_changed else "")
