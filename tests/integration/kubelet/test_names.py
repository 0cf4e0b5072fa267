"""Pods of a gang find each other by name, and two gangs never share a port."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.kubelet.world import World, shell, world
from vcbatch.api.names import GROUP_NAME
from vcbatch.local.kubelet import Mode, SandboxUnavailableError
from vcbatch.local.kubelet.processes import probe
from vcbatch.local.kubelet.sandbox import choose

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")

SERVER = (
    "import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('0.0.0.0', int('$(MASTER_PORT)')));"
    "s.listen(); print('listening', flush=True); c, _ = s.accept(); c.sendall(b'hello from $(POD)'); c.close()"
)
CLIENT = """
import socket, time
end = time.monotonic() + 15
while True:
    try:
        print(socket.create_connection(('$(MASTER_ADDR)', int('$(MASTER_PORT)')), 1).recv(99).decode()); break
    except OSError as error:
        if time.monotonic() > end: raise
        time.sleep(0.02)
"""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        if made.sandbox.mode is not Mode.USERNS:
            pytest.skip("needs namespaces")
        yield made


async def possible(mode: Mode) -> bool:
    try:
        await choose(wanted=mode, probe=probe)
    except SandboxUnavailableError:
        return False
    return True


def member(job: str, role: str, program: str, port: str = "23456") -> dict:
    env = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "MASTER_ADDR", "value": f"{job}-master-0.{job}"},
        {"name": "MASTER_PORT", "value": port},
        {"name": "VC_WORKER_HOSTS", "value": f"{job}-worker-0.{job}"},
    ]
    return {"name": "main", "image": "x", "command": [sys.executable, "-c", program], "env": env}


def place(job: str, role: str) -> dict:
    name = f"{job}-{role}-0"
    metadata = {"annotations": {GROUP_NAME: f"{job}-uid"}, "labels": {"job": job}}
    return {"metadata": metadata, "hostname": name, "subdomain": job}


@pytest.mark.parametrize("mode", list(Mode))
async def test_two_gangs_with_the_same_port_each_reach_their_own_master(tmp_path: Path, mode: Mode) -> None:
    if not await possible(mode):
        pytest.skip(f"mode {mode} is not available on this machine")
    async with world(tmp_path, mode=mode) as node:
        for job in ("one", "two"):
            await node.pod(f"{job}-worker-0", member(job, "worker", CLIENT), **place(job, "worker"))
        for job in ("one", "two"):
            await node.pod(f"{job}-master-0", member(job, "master", SERVER), **place(job, "master"))
        for job in ("one", "two"):
            assert (await node.over(f"{job}-worker-0"))["status"]["phase"] == "Succeeded", await node.logs(
                f"{job}-worker-0"
            )
            assert await node.logs(f"{job}-worker-0") == f"hello from {job}-master-0\n"
        event = await node.event("two-worker-0", "PortRemapped")
        assert event["message"].startswith("port 23456 of two-master-0.two is taken on this machine")


async def test_tensorflow_workers_get_a_port_each_and_agree_on_them(node: World) -> None:
    config = {
        "cluster": {"worker": ["tf-worker-0.tf:2222", "tf-worker-1.tf:2222"]},
        "task": {"type": "worker", "index": 0},
    }
    env = [{"name": "TF_CONFIG", "value": json.dumps(config)}]
    for index in (0, 1):
        pod = {"metadata": {"annotations": {GROUP_NAME: "tf-uid"}}, "hostname": f"tf-worker-{index}", "subdomain": "tf"}
        await node.pod(
            f"tf-worker-{index}", shell("echo $TF_CONFIG; until [ -e go ]; do sleep 0.02; done", env=env), **pod
        )
    seen = []
    for index in (0, 1):
        await node.log_has(f"tf-worker-{index}", "worker")
        seen.append(json.loads(await node.logs(f"tf-worker-{index}")))
    (node.root / "go").touch()
    assert seen[0] == seen[1]
    given = [address.rpartition(":") for address in seen[0]["cluster"]["worker"]]
    assert [host for host, _, _ in given] == ["tf-worker-0.tf", "tf-worker-1.tf"]
    assert len({port for _, _, port in given}) == 2
    assert seen[0]["task"] == config["task"]


async def test_every_form_of_a_name_resolves_and_the_host_name_is_ones_own(node: World) -> None:
    await node.pod("j-a-0", "until [ -e go ]; do sleep 0.02; done", **place("j", "a"))
    first = await node.phase("j-a-0", "Running")
    forms = "j-a-0.j j-a-0.j.default j-a-0.j.default.svc.cluster.local $(hostname)"
    program = f"hostname; for n in {forms}; do getent hosts $n; done"
    await node.pod("j-b-0", program, **place("j", "b"))
    second = await node.over("j-b-0")
    lines = [line.split() for line in (await node.logs("j-b-0")).splitlines()]
    (node.root / "go").touch()
    assert lines[0] == ["j-b-0"]
    assert [line[0] for line in lines[1:4]] == [first["status"]["podIP"]] * 3
    assert lines[4][0] == second["status"]["podIP"]
    assert first["status"]["podIP"] != second["status"]["podIP"]


async def test_a_pod_that_comes_later_is_found_without_a_restart(node: World) -> None:
    await node.pod("j-a-0", "echo up; until getent hosts j-late-0.j; do sleep 0.02; done", **place("j", "a"))
    await node.log_has("j-a-0", "up")
    await node.pod("j-late-0", "until [ -e go ]; do sleep 0.02; done", **place("j", "late"))
    assert (await node.over("j-a-0"))["status"]["phase"] == "Succeeded"
    (node.root / "go").touch()


async def test_a_service_is_the_name_of_its_ready_pods(node: World) -> None:
    await node.service("db", job="shop")
    await node.pod("server", "until [ -e go ]; do sleep 0.02; done", metadata={"labels": {"job": "shop"}})
    server = await node.phase("server", "Running")
    await node.pod("client", "until getent hosts db db.default; do sleep 0.02; done")
    await node.over("client")
    (node.root / "go").touch()
    assert (await node.logs("client")).split()[0] == server["status"]["podIP"]
