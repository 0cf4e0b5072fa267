"""Containers of the image as a restricted pod runs them: no capabilities, a read-only root, nothing to run but Python.
They work for an API server of this machine."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.cluster.processes import Guard, wait_until
from tests.image.containers import UID, Container, Image, container
from tests.integration.runtime.conftest import server as server
from tests.support.ports import free_port
from vcbatch.api.resources import NAMESPACES
from vcbatch.local.apiserver.server import EmbeddedServer

pytestmark = pytest.mark.image

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
async def account(server: EmbeddedServer, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A service account's folder, as the kubelet mounts it, and the variables that name the server."""
    await server.api.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    config = yaml.safe_load(server.kubeconfig.read_text())
    folder = tmp_path / "account"
    folder.mkdir(mode=0o755)
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    for name, content in (
        ("ca.crt", authority),
        ("token", config["users"][0]["user"]["token"].encode()),
        ("namespace", b"volcano-system"),
    ):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)
    host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").rpartition(":")
    return folder, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


class Component:
    """A component of vcbatch in a container, with the addresses that it is given."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.health = free_port()

    def arguments(self) -> list[str]:
        places = ["--healthz-address", f"127.0.0.1:{self.health}"]
        if self.part == "webhooks":
            port = free_port()
            return [self.part, *places, "--port", str(port), "--webhook-url", f"https://127.0.0.1:{port}"]
        return [self.part, *places, "--listen-address", f"127.0.0.1:{free_port()}"]

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.HTTPError, OSError):
            return False


async def meanwhile(act: Callable[[], None]) -> None:
    """Act in a thread: this one's event loop serves the API."""
    await asyncio.to_thread(act)


@contextmanager
def started(
    image: Image, arguments: Sequence[str], tmp_path: Path, guard: Guard, **more: object
) -> Iterator[Container]:
    with container(image, arguments, log=tmp_path / f"{arguments[0].strip('-')}.log", guard=guard, **more) as running:  # type: ignore[arg-type]
        yield running


@pytest.mark.parametrize(
    ("part", "number"),
    [
        ("controllers", signal.SIGTERM),
        ("scheduler", signal.SIGTERM),
        ("webhooks", signal.SIGTERM),
        ("scheduler", signal.SIGINT),
    ],
)
async def test_a_component_gets_ready_and_ends(
    image: Image,
    guard: Guard,
    account: tuple[Path, dict[str, str]],
    tmp_path: Path,
    part: str,
    number: signal.Signals,
):
    component = Component(part)
    folder, env = account

    def play() -> None:
        began = time.monotonic()
        with started(image, component.arguments(), tmp_path, guard, env=env, mounts={_ACCOUNT: folder}) as running:

            def ready() -> bool:
                running.program.check()
                return component.ready()

            wait_until(f"{part} is ready", ready, timeout=300)
            print(f"{part}: ready after {time.monotonic() - began:.2f} s, of which {_cpu(running.process()):.2f} s CPU")
            assert_restricted(running.process())
            assert running.children() == []
            began = time.monotonic()
            assert running.end(number) == 0
            print(f"{part}: ended {time.monotonic() - began:.2f} s after {number.name}")
            assert "Traceback" not in running.program.said()

    await meanwhile(play)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def assert_restricted(pid: int) -> None:
    status = Path(f"/proc/{pid}/status").read_text()
    said = dict(re.findall(r"^(\w+):\s+(.*)$", status, re.MULTILINE))
    assert said["Uid"].split() == [str(UID)] * 4
    assert said["Gid"].split() == [str(UID)] * 4
    assert int(said["CapEff"], 16) == int(said["CapBnd"], 16) == 0
    assert said["NoNewPrivs"] == "1"
    mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    (root,) = [mount for mount in mounts if mount[4] == "/"]
    assert "ro" in root[5].split(",")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_component_that_waits_for_its_server_ends_by_a_signal(
    image: Image, guard: Guard, tmp_path: Path, number: signal.Signals
):
    nowhere = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(free_port())}
    account = tmp_path / "account"
    account.mkdir(mode=0o755)
    (account / "token").write_text("none")
    (account / "token").chmod(0o644)
    with started(image, ["controllers"], tmp_path, guard, env=nowhere, mounts={_ACCOUNT: account}) as running:

        def handles() -> bool:
            running.program.check()
            pid = running.process()
            found = (
                re.search(r"^SigCgt:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) if pid else None
            )
            return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)

        wait_until("it has handlers", handles, timeout=300)
        assert running.end(number) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--version"], 0, "vcbatch "),
        (["scheduler", "--no-such-flag"], 2, "no such option"),
        (["no-such-command"], 2, "unknown command"),
        (["crds"], 0, "kind: CustomResourceDefinition"),
        # No cluster, no kubeconfig: an error that says what to do.
        (["controllers"], 1, "error: "),
    ],
)
def test_commands_end_with_their_status(
    image: Image, guard: Guard, tmp_path: Path, arguments: list[str], status: int, said: str
):
    with started(image, arguments, tmp_path, guard) as running:
        assert running.program.wait_ended(300) == status
        assert said in running.program.said()
        assert "Traceback" not in running.program.said()
