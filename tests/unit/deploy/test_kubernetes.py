"""The manifests of deploy/kubernetes are consistent; kubectl renders them where it is installed."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kalends import __version__
from kalends.settings import Settings
from tests.docs.page_commands import PROJECT
from tests.unit.docs.test_references import check

FOLDER = PROJECT / "deploy" / "kubernetes"
BASE = FOLDER / "base"
OVERLAYS = sorted((FOLDER / "overlays").iterdir())
KUSTOMIZATIONS = [BASE / "kustomization.yaml", *[overlay / "kustomization.yaml" for overlay in OVERLAYS]]
MANIFESTS = [path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml"]
SETTINGS_NAMES = {f"KALENDS_{name.upper()}" for name in Settings.model_fields}


def read_manifests() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text()) for path in MANIFESTS]


def find_pods() -> list[dict[str, Any]]:
    """Return the templates of pods in the base."""
    manifests = [yaml.safe_load(path.read_text()) for path in BASE.glob("*.yaml")]
    return [manifest["spec"]["template"] for manifest in manifests if "template" in manifest.get("spec", {})]


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_kustomization_names_existing_files(path: Path) -> None:
    kustomization = yaml.safe_load(path.read_text())
    files = list(kustomization["resources"])
    files += [patch["path"] for patch in kustomization.get("patches", []) if "path" in patch]
    files += [name for generator in kustomization.get("configMapGenerator", []) for name in generator["envs"]]
    assert [name for name in files if not (path.parent / name).exists()] == []
    # Each manifest in the folder is used.
    unused = {file.name for file in path.parent.glob("*.yaml")} - set(files) - {path.name}
    assert unused == set()


def test_image_has_the_version_of_the_project() -> None:
    images = yaml.safe_load(KUSTOMIZATIONS[0].read_text())["images"]
    assert images == [{"name": "kalends", "newTag": __version__}]


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.env")), ids=lambda path: path.name)
def test_configured_settings_exist(path: Path) -> None:
    named = {line.partition("=")[0] for line in path.read_text().splitlines()}
    assert named
    assert named - SETTINGS_NAMES == set()


def test_pods_run_commands_of_the_image_with_few_rights() -> None:
    pods = find_pods()
    commands = sorted(pod["spec"]["containers"][0]["args"][0] for pod in pods)
    assert commands == ["migrate", "serve", "stream", "worker"]
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert list(check([str(word) for word in container["args"]])) == []
        assert pod["spec"]["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
        assert {entry["name"] for entry in container.get("env", [])} <= SETTINGS_NAMES
        # Only the migration gets the login of the owner.
        overridden = {entry["name"]: entry["value"] for entry in container.get("env", [])}
        assert (overridden == {"KALENDS_MIGRATION_URL": ""}) == (container["name"] != "migrate")


def test_selectors_match_the_labels_of_pods() -> None:
    labels = [pod["metadata"]["labels"] for pod in find_pods()]
    selectors = [
        selector.get("matchLabels", selector)
        for manifest in read_manifests()
        if (selector := manifest["spec"].get("selector"))
    ]
    assert len(selectors) == 6
    assert [selector for selector in selectors if selector not in labels] == []


def test_ingress_leads_to_the_service_and_admits_uploads() -> None:
    manifests = read_manifests()
    services = {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == "Service"}
    (ingress,) = [manifest for manifest in manifests if manifest["kind"] == "Ingress"]
    backends = [rule["http"]["paths"][0]["backend"]["service"] for rule in ingress["spec"]["rules"]]
    assert [backend["name"] for backend in backends] == ["kalends", "kalends-stream"]
    for backend in backends:
        assert backend["port"]["name"] in {port["name"] for port in services[backend["name"]]["spec"]["ports"]}
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"] for rule in ingress["spec"]["rules"]]
    limit = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    assert int(limit.removesuffix("m")) * 1024 * 1024 > Settings.model_fields["max_upload_bytes"].default


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda overlay: overlay.name)
def test_overlay_is_rendered(overlay: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed (Debian 13: kubectl)")
    result = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rendered = list(yaml.safe_load_all(result.stdout))
    assert {manifest["metadata"]["namespace"] for manifest in rendered} == {"kalends"}
    assert re.findall(r"image: (.*)", result.stdout) == [f"kalends:{__version__}"] * 4
    claims = result.stdout.count("claimName: kalends-media")
    assert claims == (3 if overlay.name == "one-node" else 0)
