"""The cluster that fails over, and how often it does."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.failover.patroni_cluster import Cluster, run_cluster

# Failovers of each kind and through each proxy.
ROUNDS = int(os.environ.get("KALENDS_FAILOVERS", "10"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # PostgreSQL runs as another user if this one is root, and each run of pytest closes its directory to others.
    with TemporaryDirectory(prefix="kalends-patroni-") as directory, run_cluster(Path(directory)) as cluster:
        yield cluster
