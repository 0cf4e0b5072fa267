"""`vcbatch controllers` and `vcbatch scheduler` as processes of their own, as on a cluster."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.integration.up.manifests import job
from tests.support.ports import free_port
from vcbatch.api.resources import EVENTS, JOBS, LEASES, NAMESPACES, NODESHARDS, PODS, QUEUES
from vcbatch.cli.whatif.recording_files import read_recording
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.local.virtual import VirtualKubelet, VirtualNode
from vcbatch.runtime.client.wire import decode_json
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.scheduler.simulation.recording import replay

Json = dict[str, Any]


@contextmanager
def component(name: str, server: EmbeddedServer, log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "vcbatch", name, "--kubeconfig", str(server.kubeconfig), *arguments],
            stdout=output,
            stderr=output,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
async def cluster(server: EmbeddedServer) -> AsyncIterator[EmbeddedServer]:
    """The server with a node that pretends, and the namespace of the Leases."""
    await server.api.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    nodes = [VirtualNode(name="n1", capacity={"cpu": "8", "memory": "32Gi"})]
    stop = asyncio.Event()
    kubelet = asyncio.create_task(VirtualKubelet(server.api, SystemClock(), SystemRandom(), nodes=nodes).run(stop))
    yield server
    stop.set()
    await kubelet


async def until(read: Callable[[], Any], condition: Callable[[Any], bool], seconds: float = 120.0) -> Any:
    async with asyncio.timeout(seconds):
        while True:
            found = await read()
            if condition(found):
                return found
            await asyncio.sleep(0.05)


async def submit(server: EmbeddedServer, manifest: str) -> None:
    async def state() -> str:
        for queue in (await server.api.list(QUEUES)).items:
            if queue["metadata"]["name"] == "default":
                return (queue.get("status") or {}).get("state", "")
        return ""

    await until(state, lambda found: found == "Open")
    await server.api.create(JOBS, decode_json(manifest.encode()), namespace="default")


def phase_of(server: EmbeddedServer, name: str) -> Callable[[], Any]:
    async def read() -> str:
        stored = await server.api.get(JOBS, name, namespace="default")
        return ((stored.get("status") or {}).get("state") or {}).get("phase", "")

    return read


@dataclass(frozen=True, slots=True)
class Places:
    """Where a component tells how it is."""

    health: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    metrics: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--healthz-address", self.health, "--listen-address", self.metrics)


async def test_a_job_completes_and_the_parts_tell_how_they_are(cluster: EmbeddedServer, tmp_path: Path):
    places = Places()
    policy = tmp_path / "scheduler.yaml"
    policy.write_text(
        'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
    )
    with (
        component("controllers", cluster, tmp_path / "c.log", *places.flags) as controllers,
        component(
            "scheduler",
            cluster,
            tmp_path / "s.log",
            *("--scheduler-conf", str(policy), "--record-cycles", str(tmp_path / "cycles")),
        ) as scheduler,
    ):
        await submit(cluster, job("plain", "sleep 1", replicas=3))
        await until(phase_of(cluster, "plain"), lambda phase: phase == "Completed")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{places.health}/readyz") as answer:
                assert answer.status == 200
            async with session.get(f"http://{places.metrics}/metrics") as answer:
                text = await answer.text()
        assert 'vcbatch_reconcile_total{controller="job-controller",result="done"}' in text
        assert "vcbatch_leader 1.0" in text
        for process in (controllers, scheduler):
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 60) == 0
    recordings = [read_recording(path) for path in (tmp_path / "cycles").glob("*.gz")]
    cycles = [done for one in recordings for done in replay(one, one.scheduler(one.policy()))]
    assert sum(len(done.result.binds) for done in cycles) == 3
    assert all(done.same for done in cycles)
    leases = {lease["metadata"]["name"]: lease["spec"] for lease in (await cluster.api.list(LEASES)).items}
    # Given back, so that the next needn't wait.
    assert leases["vcbatch-controllers"]["holderIdentity"] == ""
    assert leases["vcbatch-scheduler"]["holderIdentity"] == ""


async def test_controllers_killed_at_work_are_succeeded_by_others_that_finish_it(
    cluster: EmbeddedServer, tmp_path: Path
):
    log = tmp_path / "log"
    restart = {"policies": [{"event": "PodFailed", "action": "RestartJob"}], "maxRetry": 3}
    with component("scheduler", cluster, log, "--leader-elect=false"):
        with component("controllers", cluster, log, "--leader-elect=false") as first:
            await submit(cluster, job("restarts", "sleep 1 && exit 1", replicas=4, **restart))

            async def pods() -> int:
                return len((await cluster.api.list(PODS)).items)

            await until(pods, lambda count: count > 0)
            first.kill()
            first.wait()
        with component("controllers", cluster, log, "--leader-elect=false"):
            await until(phase_of(cluster, "restarts"), lambda phase: phase == "Failed")
    stored = await cluster.api.get(JOBS, "restarts", namespace="default")
    assert stored["status"]["retryCount"] <= 4
    assert "no retries left (maxRetry 3)" in stored["status"]["state"]["message"]


async def test_of_two_replicas_one_works_and_the_other_takes_over(cluster: EmbeddedServer, tmp_path: Path):
    log = tmp_path / "log"
    places = [Places(), Places()]
    with (
        component("scheduler", cluster, log),
        component("controllers", cluster, log, *places[0].flags) as first,
        component("controllers", cluster, log, *places[1].flags) as second,
    ):
        await submit(cluster, job("one", "true"))
        await until(phase_of(cluster, "one"), lambda phase: phase == "Completed")
        leading = [await until(lambda one=one: leads(one), lambda reported: reported is not None) for one in places]
        assert sorted(leading) == [False, True]
        (first if leading[0] else second).send_signal(signal.SIGTERM)
        await submit(cluster, job("two", "true"))
        await until(phase_of(cluster, "two"), lambda phase: phase == "Completed")
        other = places[1 if leading[0] else 0]
        await until(lambda: leads(other), lambda reported: reported is True)
    (lease,) = [
        lease["spec"]
        for lease in (await cluster.api.list(LEASES)).items
        if lease["metadata"]["name"] == "vcbatch-controllers"
    ]
    assert lease["leaseTransitions"] >= 1


async def leads(places: Places) -> bool | None:
    """Whether the replica says so; one that stands by is ready too. None while it doesn't say that it is ready."""
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{places.health}/readyz") as answer:
                if answer.status != 200:
                    return None
            async with session.get(f"http://{places.metrics}/metrics") as answer:
                return "vcbatch_leader 1.0" in await answer.text()
    except aiohttp.ClientConnectorError:
        return None


async def test_the_scheduler_works_in_its_context_and_for_the_names_it_is_given(
    cluster: EmbeddedServer, tmp_path: Path
):
    log = tmp_path / "log"
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    (context,) = config["contexts"]
    nowhere = {"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}
    config["clusters"].append(nowhere)
    config["contexts"].append({"name": "nowhere", "context": {**context["context"], "cluster": "nowhere"}})
    config["current-context"] = "nowhere"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    chosen = ["--kubeconfig", str(kubeconfig), "--context", context["name"]]
    names = ["--scheduler-name", "one", "--scheduler-name", "two"]
    with (
        component("controllers", cluster, log, *chosen),
        component("scheduler", cluster, log, *chosen, *names, "--schedule-period", "0.1"),
    ):
        await submit(cluster, job("ours", "true", schedulerName="two"))
        await submit(cluster, job("theirs", "true", schedulerName="three"))
        await until(phase_of(cluster, "ours"), lambda phase: phase == "Completed")
        await until(phase_of(cluster, "theirs"), lambda phase: phase == "Pending")


async def test_a_configuration_that_cant_be_used_is_told_on_the_lease(cluster: EmbeddedServer, tmp_path: Path):
    sharding = tmp_path / "sharding.yaml"
    sharding.write_text("schedulerConfigs: [{name: volcano}]\n")

    async def shards() -> list[str]:
        return [each["metadata"]["name"] for each in (await cluster.api.list(NODESHARDS)).items]

    async def refusals() -> list[str]:
        events = (await cluster.api.list(EVENTS, namespace="volcano-system")).items
        return [event["message"] for event in events if event["reason"] == "ConfigurationRefused"]

    with component("controllers", cluster, tmp_path / "log", "--sharding-conf", str(sharding)):
        await until(shards, lambda found: found == ["volcano"])
        sharding.write_text("schedulerConfigs: []\n")
        (reported,) = await until(refusals, lambda found: found != [])
        assert reported.startswith(f"keeping the last valid configuration: {sharding}: schedulerConfigs: nothing there")
        assert await shards() == ["volcano"]


async def test_a_server_that_comes_back_is_followed_again(server: EmbeddedServer, tmp_path: Path):
    log = tmp_path / "log"
    await server.api.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    nodes = [VirtualNode(name="n1", capacity={"cpu": "8", "memory": "32Gi"})]
    with component("scheduler", server, log), component("controllers", server, log):
        await submit(server, job("before", "true"))
        for round_ in range(2):
            await server.stop()
            await server.start()
            stop = asyncio.Event()
            kubelet = asyncio.create_task(
                VirtualKubelet(server.api, SystemClock(), SystemRandom(), nodes=nodes).run(stop)
            )
            await submit(server, job(f"after-{round_}", "true", replicas=2))
            for name in ("before", f"after-{round_}"):
                await until(phase_of(server, name), lambda phase: phase == "Completed")
            stop.set()
            await kubelet


def test_a_policy_file_that_cant_be_read_is_refused_with_the_reason(tmp_path: Path):
    policy = tmp_path / "scheduler.yaml"
    policy.write_text("actions: teleport\n")
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", "scheduler", "--scheduler-conf", str(policy)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "teleport" in done.stderr and "Traceback" not in done.stderr


def test_an_address_that_is_none_is_wrong_usage():
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", "controllers", "--listen-address", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "HOST:PORT" in done.stderr
