"""Each alert rule fires on the series that it is for, and stays silent on healthy ones."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kalends.adapters.metrics import METRICS, OPTIONAL_METRICS
from tests.monitoring.scraped_site import check_with_promtool
from tests.monitoring.test_metrics import PAGE, list_samples

RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/kalends.rules.yml"
EVALUATED_MINUTES = 40

pytestmark = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian: prometheus)")


@dataclass(frozen=True)
class Case:
    """The series of a metric that let an alert fire and that do not, one value per minute; and what it says."""

    alert: str
    series: str
    firing: str
    silent: str
    labels: dict[str, str]
    summary: str


SERVER = {"instance": "a"}
CASES = [
    Case("KalendsDown", 'up{job="kalends-server",instance="a"}', "1x36 0 0 0 0", "1x38 0 1",
         {"job": "kalends-server", **SERVER}, "a does not respond"),
    Case("KalendsDatabaseDown", 'kalends_database_up{instance="a"}', "1x36 0x4", "0x30 1x10", SERVER,
         "a cannot use its database"),
    Case("KalendsDirectoryDown", 'kalends_directory_up{instance="a"}', "1x36 0x4", "0x30 1x10", SERVER,
         "a cannot reach the directory of cells"),
    Case("KalendsSchemaUnusable", 'kalends_schema_usable{instance="a"}', "0x40", "1x36 0x4", SERVER,
         "a cannot use the schema of its database"),
    Case("KalendsDiskFull", 'kalends_unavailable_total{cause="disk_full",instance="a"}', "0x38 1 1", "0x20 7x20",
         {"cause": "disk_full", **SERVER}, "A disk of a or of its database is full"),
    Case("KalendsNoWorker", 'kalends_worker_heartbeat_age_seconds{instance="a"}', "3x30" + 10 * " +Inf",
         "3 4 59x38", SERVER, "No worker runs"),
    Case("KalendsJobsLate", 'kalends_oldest_due_job_seconds{queue="default",instance="a"}', "0x36 120x4",
         "0x38 120 0", {"queue": "default", **SERVER}, "The oldest due job of the queue default waits for 2m 0s"),
    Case("KalendsJobsFailed", 'kalends_queue_jobs{task="publish",status="failed",instance="a"}', "0x30 2x10", "0x40",
         {"task": "publish"}, "2 jobs of the task publish have failed for the last time"),
    Case("KalendsPurgeFailed", 'kalends_jobs_total{task="purge",outcome="failed",instance="a"}', "0x35 1x5",
         "5x40", {"task": "purge", "outcome": "failed", **SERVER}, "A shared cache did not accept a purge"),
    Case("KalendsMediaQueueGrows", 'kalends_queue_jobs{task="make_sizes",status="waiting",instance="a"}', "0+5x40",
         "0 90-5x39", {"task": "make_sizes", "status": "waiting", **SERVER},
         "Images arrive faster than their sizes are made"),
    Case("KalendsRequestsWaiting", 'kalends_pool_waiting{instance="a"}', "0x30 3x10", "3x36 0 3x4", SERVER,
         "3 requests of a wait for a database connection"),
    Case("KalendsUnavailable", 'kalends_unavailable_total{cause="pool_exhausted",instance="a"}', "0+60x40", "0+3x40",
         {"cause": "pool_exhausted", **SERVER}, "Requests get 503 because of pool_exhausted"),
    Case("KalendsStaleResponses", 'kalends_stale_responses_total{instance="a"}', "0x37 1x3", "0x20 9x20", SERVER,
         "a serves cached responses while its database is unavailable"),
    Case("KalendsErrors", 'kalends_requests_total{status="500",route="/events",method="GET",instance="a"}',
         "_x37 1 1 1", "1x40", {"route": "/events", **SERVER}, "/events responded with 500"),
    Case("KalendsSlow", 'kalends_request_seconds_bucket{le="LE",instance="a"}', "2.5:0+60x40 1:0+6x40",
         "2.5:0+60x40 1:0+60x40", SERVER, "One of twenty requests of a takes longer than a second"),
    Case("KalendsMarksMissing", 'kalends_leakproof_marks_missing{instance="a"}', "5x40", "5x30 0x10", SERVER,
         "Searches are slow, because functions lack the mark LEAKPROOF"),
    Case("KalendsSiteMoveInterrupted", 'kalends_site_move_age_seconds{state="interrupted",instance="a"}',
         "0x30 60+60x9", "0x30 60 120 0x8", {}, "A move of a site that began 10m 0s ago was interrupted"),
    Case("KalendsSiteUnrouted", 'kalends_routing_total{event="wait",instance="a"}', "0x20 0+3x20", "0x20 5x20",
         SERVER, "Requests to a wait for a site that no cell serves"),
    Case("KalendsReplicaLag", 'kalends_replica_lag_seconds{instance="a"}', "1x30" + 10 * " +Inf", "1x36 90x4", SERVER,
         "The replica of a is old or does not respond; the primary answers its reads"),
    Case("KalendsBackupOld", 'kalends_backup_age_seconds{stanza="kalends",instance="a"}', "93000+60x40",
         "80000+60x40", {"stanza": "kalends"}, "kalends has no backup of the last 26 hours"),
]  # fmt: skip


def read_rules() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def make_series(case: Case, values: str) -> list[dict[str, str]]:
    if "LE" not in case.series:
        return [{"series": case.series, "values": values}]
    buckets = [part.split(":") for part in values.split()]
    infinite = ("+Inf", buckets[0][1])
    return [{"series": case.series.replace("LE", le), "values": text} for le, text in [*buckets, infinite]]


def make_test(case: Case, values: str, rule: dict[str, Any], *, fires: bool) -> dict[str, Any]:
    expected = {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {"summary": case.summary, "action": rule["annotations"]["action"]},
    }
    evaluation = {
        "eval_time": f"{EVALUATED_MINUTES}m",
        "alertname": case.alert,
        "exp_alerts": [expected] if fires else [],
    }
    return {"interval": "1m", "input_series": make_series(case, values), "alert_rule_test": [evaluation]}


def test_every_alert_fires_and_stays_silent(tmp_path: Path) -> None:
    rules = read_rules()
    assert [case.alert for case in CASES] == list(rules)
    tests = [
        make_test(case, values, rules[case.alert], fires=fires)
        for case in CASES
        for fires, values in ((True, case.firing), (False, case.silent))
    ]
    path = tmp_path / "alerts.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    check_with_promtool("test", "rules", str(path))


def test_rules_and_configuration_are_valid() -> None:
    check_with_promtool("check", "rules", str(RULES))
    check_with_promtool("check", "config", str(RULES.with_name("prometheus.yml")))


def test_documentation_has_every_alert() -> None:
    lines = PAGE.read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| Kalends")] == list(read_rules())


@pytest.mark.parametrize("alert", read_rules())
def test_alert_names_metrics_that_exist(alert: str) -> None:
    named = set(re.findall(r"\bkalends_[a-z_]+", read_rules()[alert]["expr"]))
    assert named <= {name for metric in (*METRICS, *OPTIONAL_METRICS) for name in list_samples(metric)}
