"""Attacks that held once, repeated: a sample in every run, all of them with `just soak tests/security`.

Hidden records, protected filters, hidden links   test_hidden_records.py; api/test_permissions.py
Permissions by role and status                    lifecycle/test_permission_matrix.py, test_status_transitions.py
Forbidden writes                                  test_forbidden_writes.py
Names of the other site                           test_host_isolation.py; robustness/test_isolation.py
Malformed HTTP                                    test_malformed_http.py
Path traversal                                    test_path_traversal.py
Injection into pages, feeds and headers           test_injection.py; pages/test_hostile_texts.py (Chromium)
Odd reads and malformed writes                    test_hostile_reads.py, test_hostile_writes.py; api/test_hostile_*.py
URLs that must not be fetched                     test_image_url_ssrf.py; unit/media/test_safe_fetch.py
A shared cache in front                           test_shared_cache.py; varnish/test_purge.py
Secrets in the log                                test_log_secrets.py
Hostile images                                    media/test_hostile_files.py
Row-level security                                robustness/test_row_level_security.py
"""

from collections.abc import Callable, Iterator

import pytest

from tests.api.conftest import start_app, start_app_for_module, start_single_site, start_single_site_for_module
from tests.api.running_app import User
from tests.security.instance import Instance, start_instance
from tests.servers import Server
from tests.varnish.conftest import stage

__all__ = ["stage", "start_app", "start_app_for_module", "start_single_site", "start_single_site_for_module"]


@pytest.fixture(scope="module")
def instance(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Instance]:
    """Return the server that the tests of a module share."""
    with start_instance(postgres_url, user_template, start_server) as record:
        yield record
