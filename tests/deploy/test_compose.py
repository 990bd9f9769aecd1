"""The files for containers are consistent: services, commands, settings, variables and files exist."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from kalends.settings import Settings
from tests.docs.page_commands import PROJECT
from tests.unit.docs.test_references import check
from tools import image, postgres

FILES = [PROJECT / "compose.yaml", PROJECT / "deploy" / "compose" / "varnish.yaml"]
SERVICES = {"postgres", "migrate", "server", "stream", "worker", "varnish"}
APPLICATION_SERVICES = {"migrate", "server", "stream", "worker"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Return the services of both files; as Compose does, maps are merged and other values are replaced."""
    merged: dict[str, Any] = {}
    for file in FILES:
        for name, service in yaml.safe_load(file.read_text())["services"].items():
            before = merged.setdefault(name, {})
            environment = {**before.get("environment", {}), **service.get("environment", {})}
            merged[name] = {**before, **service, "environment": environment}
    return merged


def read_dockerfile(path: Path) -> dict[str, str]:
    """Return the instructions of the last stage, by their names; of repeated ones the last."""
    stage = re.split(r"(?m)^FROM ", path.read_text())[-1].replace("\\\n", " ")
    return dict(line.split(" ", 1) for line in stage.splitlines()[1:] if re.match(r"[A-Z]+ ", line))


def test_services_are_complete(services: dict[str, Any]) -> None:
    assert set(services) == SERVICES
    for name in APPLICATION_SERVICES | {"varnish"}:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= SERVICES
        folder = PROJECT / service["build"] if "build" in service else PROJECT
        assert not service.get("build") or (folder / "Dockerfile").exists()


def test_server_waits_for_the_migration_and_the_migration_for_the_database(services: dict[str, Any]) -> None:
    waits = {name: service["depends_on"] for name, service in services.items() if "depends_on" in service}
    migrated = {"migrate": {"condition": "service_completed_successfully"}}
    assert waits == {
        "migrate": {"postgres": {"condition": "service_healthy"}},
        "server": migrated,
        "stream": migrated,
        "worker": migrated,
        "varnish": {"server": {"condition": "service_healthy"}},
    }
    assert services["migrate"]["restart"] == "no"
    checked = {name for name, service in services.items() if "test" in service.get("healthcheck", {})}
    assert checked == {"postgres", "server"}


@pytest.mark.parametrize("name", sorted(APPLICATION_SERVICES))
def test_commands_exist(services: dict[str, Any], name: str) -> None:
    assert list(check([str(word) for word in services[name]["command"]])) == []


def test_environments_are_settings(services: dict[str, Any]) -> None:
    known = {f"KALENDS_{name.upper()}" for name in Settings.model_fields}
    for name in APPLICATION_SERVICES:
        assert set(services[name]["environment"]) <= known
    # Only the migration knows the password of the superuser.
    holders = {name for name, service in services.items() if "POSTGRES_PASSWORD" in str(service)}
    assert holders == {"postgres", "migrate"}


def test_variables_are_in_the_example() -> None:
    example = (PROJECT / ".env.example").read_text()
    named = {name for file in FILES for name in re.findall(r"\$\{([A-Z_]+)", file.read_text())}
    documented = dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", example))
    assert set(documented) == named
    defaults = {match for file in FILES for match in re.findall(r"\$\{([A-Z_]+):-([^}$]+)\}", file.read_text())}
    assert {name: documented[name] for name, _ in defaults} == dict(defaults)
    files = re.search(r"(?m)^#COMPOSE_FILE=(.*)$", example)
    assert files
    assert [PROJECT / name for name in files[1].split(":")] == FILES


def test_mounted_files_exist_and_volumes_are_declared(services: dict[str, Any]) -> None:
    volumes = set(yaml.safe_load(FILES[0].read_text())["volumes"])
    for service in services.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert (PROJECT / source).exists() if source.startswith(".") else source in volumes


def test_image_keeps_its_configuration_on_the_smaller_base() -> None:
    built = image.write_containerfile((PROJECT / "Dockerfile").read_text())
    assert built.count("FROM ") == 2
    assert built.endswith((PROJECT / "Dockerfile").read_text().rpartition("\n\nFROM ")[2].partition("\n")[2])
    configuration = read_dockerfile(PROJECT / "Dockerfile")
    assert configuration["STOPSIGNAL"] == "SIGTERM"
    assert configuration["USER"] == "kalends"
    assert configuration["VOLUME"] == "/var/lib/kalends/media"
    assert "10001" in configuration["RUN"]
    assert list(check(yaml.safe_load(configuration["CMD"]))) == []


def test_logins_are_created() -> None:
    """The script of PostgreSQL's image creates both logins with their passwords."""
    if shutil.which("psql") is None:
        pytest.skip("psql is not on the PATH")
    with postgres.throwaway() as server:
        environment = {
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(server.port),
            "SERVER_PASSWORD": "it's secret",
            "JOBS_PASSWORD": "too",
        }
        script = PROJECT / "deploy" / "compose" / "create-logins.sh"
        subprocess.run([script], env=environment, check=True, stdout=subprocess.DEVNULL)
        with psycopg.connect(server.url) as connection:
            columns = "rolname, rolsuper, rolpassword IS NOT NULL"
            query = f"SELECT {columns} FROM pg_authid WHERE rolname LIKE 'kalends%' ORDER BY 1"
            assert connection.execute(query).fetchall() == [
                ("kalends_jobs", False, True),
                ("kalends_server", False, True),
            ]


def test_varnish_in_a_container_knows_server_and_worker(services: dict[str, Any], tmp_path: Path) -> None:
    if shutil.which("varnishd", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("varnishd is not installed (Debian: varnish, varnish-modules)")
    assert set(services["varnish"]["environment"]) == {"SERVER_HOST", "STREAM_HOST", "WORKER_NETWORK"}
    assert services["varnish"]["environment"]["SERVER_HOST"] == "server"
    port = services["varnish"]["ports"][0].rpartition(":")[2]
    assert services["worker"]["environment"]["KALENDS_PURGE_URLS"] == f"http://varnish:{port}/"
    options = shlex.split(read_dockerfile(PROJECT / "deploy/varnish/Dockerfile")["CMD"].strip("[]").replace(",", " "))
    assert f":{port}" in options
    result = subprocess.run(
        [PROJECT / "deploy/varnish/start.sh", "-j", "none", "-C", "-n", tmp_path / "work"],
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "SERVER_HOST": "127.0.0.2",
             "STREAM_HOST": "127.0.0.3", "WORKER_NETWORK": "10.9.8.0/24", "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "127.0.0.2" in result.stderr + result.stdout
    assert "127.0.0.3" in result.stderr + result.stdout
    assert "10.9.8.0" in result.stderr + result.stdout
