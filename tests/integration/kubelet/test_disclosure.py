"""What is kept from others, and what is said where a pod asks for more than it gets. Real processes."""

import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubelet.world import LONG, World, shell, world

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")

SECRET = "kept-from-the-disk"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def holding(root: Path, text: str) -> list[str]:
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path) for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("command", [["sh", "-c", f"echo up; exec sleep {LONG}3001"], ["no-such-program"]])
async def test_an_environment_is_not_on_disk_once_the_container_has_started(node: World, command: list[str]) -> None:
    container = {"name": "main", "command": command, "env": [{"name": "TOKEN", "value": SECRET}]}
    await node.pod("a", container)
    await node.phase("a", "Running", "Failed")
    assert holding(node.root, SECRET) == []


async def test_a_command_run_in_a_container_leaves_no_environment_either(node: World) -> None:
    probe = {"exec": {"command": ["sh", "-c", 'test "$TOKEN" && touch asked']}, "periodSeconds": 1}
    container = shell(f"exec sleep {LONG}3002", readinessProbe=probe, env=[{"name": "TOKEN", "value": SECRET}])
    await node.pod("a", container)
    await node.until("a", lambda o: (o["status"].get("containerStatuses") or [{"ready": False}])[0]["ready"])
    assert (node.root / "asked").exists()
    assert holding(node.root, SECRET) == []


async def test_the_records_are_their_owners_alone(node: World) -> None:
    await node.output("a", "true")
    assert stat.S_IMODE((node.root / "kubelet").stat().st_mode) == 0o700
    (record,) = (node.root / "kubelet" / "pods").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o700
    logs = list(record.rglob("log"))
    assert logs and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in logs)


@pytest.mark.parametrize(
    ("container", "pod", "words"),
    [
        ({"securityContext": {"runAsUser": 12345}}, {}, "containers run as user "),
        ({"securityContext": {"readOnlyRootFilesystem": True}}, {}, "securityContext restricts nothing here"),
        (
            {},
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]},
            "emptyDir.sizeLimit is not enforced",
        ),
    ],
)
async def test_what_has_no_effect_is_said(
    node: World, container: dict[str, Any], pod: dict[str, Any], words: str
) -> None:
    await node.pod("a", shell("true", **container), **pod)
    assert words in (await node.event("a", "NotIsolated"))["message"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"livenessProbe": {"grpc": {"port": 1}, "periodSeconds": 1}},
            "livenessProbe of container 'main': grpc probes",
        ),
        ({"lifecycle": {"preStop": {"grpc": {"port": 1}}}}, "lifecycle.preStop of container 'main': grpc hooks"),
    ],
)
async def test_a_probe_that_cannot_be_had_is_refused_by_name(node: World, fields: dict[str, Any], words: str) -> None:
    node.planted("a", shell("true", **fields))

    def waiting(pod: dict[str, Any]) -> dict[str, Any]:
        statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
        return statuses[0]["state"].get("waiting") or {}

    pod = await node.until("a", lambda o: waiting(o).get("reason") == "CreateContainerConfigError")
    assert words in waiting(pod)["message"]
