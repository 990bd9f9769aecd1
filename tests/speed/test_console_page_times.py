"""The CPU time of pages of the console is far below the limits of their elapsed time (`just bench-console-pages`)."""

from collections.abc import Callable

from bench.console_pages import filled_queue, find_event_ids, make_cases, measure, open_client
from bench.cpu_time import cpu_seconds, list_process_tree, list_session_pids
from bench.seeded_sites import fill_site
from tests.servers import Server
from tests.soak import scaled


def test_pages_of_the_console_are_quick(
    database_url: str, start_server: Callable[..., Server], report: Callable[[object], None]
) -> None:
    site = fill_site(database_url, scaled(3_000, 20_000))
    server = start_server(database_url)

    def read_cpu() -> tuple[float, float]:
        own = sum(map(cpu_seconds, list_process_tree(server.process.pid)))
        return own, sum(map(cpu_seconds, list_session_pids(site.url)))

    ids = find_event_ids(site.url, scaled(10, 40))
    with filled_queue(site.url) as proposal_ids, open_client(server.base_url, site.url) as client:
        results = [measure(case, client, ids, read_cpu) for case in make_cases(proposal_ids)]
    server.stop()
    for row in results:
        report(f"{row.case.name}: {row.server_cpu + row.database_cpu:.0f} ms of CPU, p50 {row.p50:.0f} ms")
    slow = [row.case.name for row in results if row.server_cpu + row.database_cpu > row.case.max_ms]
    assert slow == []
