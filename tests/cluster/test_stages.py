"""Simulated nodes do with every pod what the list says, kwok's on the real control plane and ours alike."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.conftest import MakeControlPlane
from tests.cluster.controlplane import ControlPlane, Options
from tests.cluster.history import DELETED, PODS, Recorder
from tests.cluster.processes import wait_until
from tests.cluster.stages.samples import SAMPLES, SETTLED_SECONDS, Sample, outcome
from tests.support.server import Server
from tests.support.virtual_time import SeededRandom, VirtualClock, VirtualTimeLoop
from vcbatch.api import resources
from vcbatch.local.virtual import VirtualKubelet, VirtualNode

Json = dict[str, Any]
PATH = "/api/v1/namespaces/default/pods"
GRACE = 2
WITH_DELETION = [sample for sample in SAMPLES if sample.deleted]


class Played(dict[str, str]):
    """The outcomes by name: settled, and `NAME deleted` as last seen after the deletion."""


@pytest.fixture(scope="module")
def on_kwok(control_plane: ControlPlane) -> Played:
    """All samples at once on the real control plane."""
    node = control_plane.add_nodes(1, pods="500")[0]
    played = Played()
    with Recorder(control_plane, PODS) as recorder, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda sample: control_plane.call("POST", PATH, sample.pod(node)), SAMPLES))

        def settled() -> bool:
            pods = recorder.latest(PODS)
            played.update({sample.name: outcome(pods.get(f"default/{sample.name}", {})) for sample in SAMPLES})
            return all(played[sample.name] == sample.settled for sample in SAMPLES)

        _unless_late("all pods settle", settled)
        for sample in WITH_DELETION:
            control_plane.call("DELETE", f"{PATH}/{sample.name}?gracePeriodSeconds={GRACE}")

        def gone() -> bool:
            last = {c.object["metadata"]["name"]: c.object for c in recorder.changes(PODS) if c.type == DELETED}
            played.update({f"{name} deleted": outcome(pod) for name, pod in last.items()})
            return len(last) == len(WITH_DELETION)

        _unless_late("all deleted pods are gone", gone)
    return played


def _unless_late(what: str, condition: Any) -> None:
    """What isn't as it should be shows in each sample's own test."""
    try:
        wait_until(what, condition)
    except AssertionError:
        pass


@pytest.fixture(scope="module")
def on_virtual_nodes() -> Played:
    """All samples at once on the embedded server, in virtual time."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(_play_virtually(SAMPLES))
    finally:
        loop.close()


async def _play_virtually(samples: Sequence[Sample]) -> Played:
    clock, random, stop = VirtualClock(), SeededRandom(1), asyncio.Event()
    server = Server(clock, random)
    await server.start()
    node = VirtualNode(name="virtual", capacity={"cpu": "32", "memory": "128Gi"})
    kubelet = VirtualKubelet(server.api, clock, random, nodes=[node])
    running = asyncio.create_task(kubelet.run(stop))
    await kubelet.ready.wait()
    played = Played()
    for sample in samples:
        await server.api.create(resources.PODS, sample.pod(node.name), namespace="default")
    await clock.sleep(SETTLED_SECONDS)
    for sample in samples:
        pod = await server.api.get(resources.PODS, sample.name, namespace="default")
        played[sample.name] = outcome(pod)
        if sample.deleted:
            await server.api.delete(resources.PODS, sample.name, namespace="default", grace_seconds=GRACE)
    await clock.sleep(GRACE + 5)
    for sample in samples:
        if sample.deleted:
            played[f"{sample.name} deleted"] = outcome(server.history(resources.PODS, sample.name)[-1])
    stop.set()
    await running
    await server.stop()
    return played


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_pod_settles_as_listed(sample: Sample, on_kwok: Played, on_virtual_nodes: Played) -> None:
    assert {"kwok": on_kwok[sample.name], "virtual": on_virtual_nodes[sample.name]} == {
        "kwok": sample.settled,
        "virtual": sample.settled,
    }


@pytest.mark.parametrize("sample", WITH_DELETION, ids=lambda sample: sample.name)
def test_a_deleted_pod_reaches_a_terminal_phase_first(
    sample: Sample, on_kwok: Played, on_virtual_nodes: Played
) -> None:
    key = f"{sample.name} deleted"
    assert {"kwok": on_kwok.get(key), "virtual": on_virtual_nodes.get(key)} == {
        "kwok": sample.deleted,
        "virtual": sample.deleted,
    }


def test_kubelets_for_measurements_start_a_pod_as_the_others_do(make_control_plane: MakeControlPlane) -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "endless")
    plane = make_control_plane(Options(scheduler=False, starts_only=True))
    plane.call("POST", PATH, sample.pod(plane.add_nodes(1)[0]))
    path = f"{PATH}/{sample.name}"
    wait_until("it runs", lambda: outcome(plane.call("GET", path)) == sample.settled)
    status = plane.call("GET", path)["status"]
    assert {condition["type"]: condition["status"] for condition in status["conditions"]} == {
        "PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "True", "ContainersReady": "True",
    }  # fmt: skip
    assert status["podIP"] and status["startTime"]
    plane.call("DELETE", f"{path}?gracePeriodSeconds={GRACE}")
    wait_until("it is gone", lambda: plane.request("GET", path)[0] == 404)
