"""What runs beside a container's command: hooks at its start and end, and probes of its own address. Real processes."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubelet.world import LONG, World, processes_with, shell, terminated, world
from tests.support.ports import free_port
from vcbatch.api.resources import PODS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")

UNTIL_TERM = "trap 'echo asked to end; exit 0' TERM; echo up; while :; do sleep 0.02; done"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def run(script: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", script]}}


async def test_a_hook_runs_in_its_container_after_the_start(node: World) -> None:
    hook = run('echo "$WHO" > greeting')
    script = "until [ -s greeting ]; do sleep 0.02; done; cat greeting"
    container = shell(script, lifecycle={"postStart": hook}, env=[{"name": "WHO", "value": "me"}])
    assert await node.output("a", container) == "me\n"


async def test_a_failed_hook_at_the_start_ends_the_container(node: World) -> None:
    hook = run("echo not today; exit 1")
    await node.pod("a", shell(f"exec sleep {LONG}2001", lifecycle={"postStart": hook}))

    pod = await node.over("a")

    assert (pod["status"]["phase"], terminated(pod)["exitCode"]) == ("Failed", 143)
    assert (await node.event("a", "FailedPostStartHook"))["message"] == "PostStartHook failed: not today"
    assert processes_with(f"sleep {LONG}2001") == []


async def test_a_hook_at_the_end_runs_before_the_command_is_asked_to_end(node: World) -> None:
    hook = run("echo hook > order; sleep 0.1")
    script = f"trap 'echo asked >> order; exit 0' TERM; echo up; while :; do sleep 0.02; done; : {LONG}2002"
    await node.pod("a", shell(script, lifecycle={"preStop": hook}))
    await node.log_has("a", "up")

    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")

    assert (node.root / "order").read_text() == "hook\nasked\n"


async def test_a_failed_hook_at_the_end_is_told_and_holds_nothing_up(node: World) -> None:
    await node.pod("a", shell(UNTIL_TERM, lifecycle={"preStop": run("echo no; exit 1")}))
    await node.log_has("a", "up")

    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")

    assert (await node.event("a", "FailedPreStopHook"))["message"] == "PreStopHook failed: no"


async def test_the_grace_period_includes_the_hook(node: World) -> None:
    hook = run(f"exec sleep {LONG}2003")
    await node.pod("a", shell(UNTIL_TERM, lifecycle={"preStop": hook}), terminationGracePeriodSeconds=1)
    await node.log_has("a", "up")

    await node.api.delete(PODS, "a", namespace="default")
    await node.gone("a")


async def test_probes_over_http_wait_for_the_startup_probe(node: World) -> None:
    # The server answers its startup probe only once `started` is there, and nothing else is asked before.
    port = free_port()
    serve = f"""
import http.server, os, pathlib
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ready" or pathlib.Path("started").exists() else 503)
        self.end_headers()
    def log_message(self, *_):
        print(self.path, flush=True)
http.server.HTTPServer((os.environ["IP"], {port}), Answer).serve_forever()
"""
    container = {
        "name": "main",
        "command": [sys.executable, "-c", serve],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "web", "containerPort": port}],
        "startupProbe": {
            "httpGet": {"path": "/started", "port": "web"},
            "periodSeconds": 1,
            "failureThreshold": 100,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1},
    }
    await node.pod("a", container)
    await node.log_has("a", "/started")
    pod = await node.api.get(PODS, "a", namespace="default")
    assert not pod["status"]["containerStatuses"][0]["ready"]
    assert "/ready" not in await node.logs("a")

    (node.root / "started").touch()

    pod = await node.until("a", lambda o: o["status"]["containerStatuses"][0]["ready"])
    assert pod["status"]["containerStatuses"][0]["started"]


async def test_a_container_is_ready_while_its_port_is_open(node: World) -> None:
    port = free_port()
    listen = f"""
import os, pathlib, socket, time
while not pathlib.Path("close").exists():
    with socket.create_server((os.environ["IP"], {port})):
        while not pathlib.Path("close").exists():
            time.sleep(0.02)
time.sleep(600)
"""
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 1}
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    await node.pod(
        "a", {"name": "main", "command": [sys.executable, "-c", listen], "env": env, "readinessProbe": probe}
    )
    await node.until("a", lambda o: o["status"].get("containerStatuses", [{"ready": False}])[0]["ready"])

    (node.root / "close").touch()

    await node.until("a", lambda o: not o["status"]["containerStatuses"][0]["ready"])
    assert (await node.event("a", "Unhealthy"))["message"].startswith("Readiness probe failed: ")
