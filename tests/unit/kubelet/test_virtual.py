"""Pretended nodes: pods on them live by the rules of the real kubelet, on any clock."""

import asyncio

import pytest

from tests.support.server import Server
from tests.support.virtual_time import SeededRandom, VirtualClock, VirtualTimeLoop
from vcbatch.api.resources import NODES, PODS
from vcbatch.local.virtual import Pretence, VirtualKubelet, VirtualNode, pretence


@pytest.mark.parametrize(
    ("argv", "want"),
    [
        (["sleep", "5"], Pretence(seconds=5.0)),
        (["sh", "-c", "sleep 2; exit 3"], Pretence(seconds=2.0, exit_code=3)),
        (["bash", "-c", "sleep 1m && exit 0"], Pretence(seconds=60.0)),
        (["/bin/sh", "-c", "false && sleep 9"], Pretence(seconds=0.0, exit_code=1)),
        (["sh", "-c", "false; sleep 9"], Pretence(seconds=9.0)),
        (["true"], Pretence(seconds=0.0)),
        (["false"], Pretence(seconds=0.0, exit_code=1)),
        (["sh", "-c", "exit 7; sleep 9"], Pretence(seconds=0.0, exit_code=7)),
        (["sh", "-c", "echo a && sleep 0.5"], Pretence(seconds=0.5)),
        (["python", "train.py"], Pretence(seconds=None)),
        (["sh", "-c", "false || exit 4"], Pretence(seconds=0.0, exit_code=4)),
        (["sh", "-c", "sleep 'unclosed"], Pretence(seconds=None)),
        ([], Pretence(seconds=None)),
    ],
)
def test_a_command_says_how_long_to_pretend(argv: list[str], want: Pretence) -> None:
    assert pretence({"command": argv}) == want


CAPACITY = {"cpu": "32", "memory": "128Gi"}


def pod(name: str, *command: str, policy: str = "Never") -> dict:
    container = {"name": "main", "image": "any", "command": list(command)}
    spec = {"nodeName": "v0", "restartPolicy": policy, "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec}


def in_virtual_time(story) -> None:
    async def play() -> None:
        clock, random, stop = VirtualClock(), SeededRandom(1), asyncio.Event()
        server = Server(clock, random)
        await server.start()
        kubelet = VirtualKubelet(server.api, clock, random, nodes=[VirtualNode(name="v0", capacity=CAPACITY)])
        running = asyncio.create_task(kubelet.run(stop))
        await kubelet.ready.wait()
        try:
            await story(server, clock)
        finally:
            stop.set()
            await running
            await server.stop()

    loop = VirtualTimeLoop()
    try:
        loop.run_until_complete(play())
    finally:
        loop.close()


def exit_code(obj: dict) -> int:
    return obj["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]


def phase(obj: dict | None) -> str:
    return (obj or {}).get("status", {}).get("phase", "")


def test_an_hour_of_sleep_ends_an_hour_later_with_its_exit_code() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        await server.api.create(PODS, pod("a", "sh", "-c", "sleep 3600; exit 4"), namespace="default")
        await server.until(PODS, "a", lambda o: phase(o) == "Running")
        began = clock.monotonic()
        ended = await server.until(PODS, "a", lambda o: phase(o) == "Failed")
        assert clock.monotonic() - began == pytest.approx(3600, abs=1)
        assert exit_code(ended) == 4
        assert len(server.history(PODS, "a")) == 1 + 2

    in_virtual_time(story)


def test_a_failing_container_is_restarted_with_a_growing_back_off() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        await server.api.create(PODS, pod("a", "false", policy="OnFailure"), namespace="default")

        def restarted(times: int):
            return lambda o: (o["status"].get("containerStatuses") or [{"restartCount": 0}])[0]["restartCount"] >= times

        await server.until(PODS, "a", restarted(3))
        assert clock.monotonic() == pytest.approx(30, abs=1)
        await server.until(PODS, "a", restarted(4))
        assert clock.monotonic() == pytest.approx(70, abs=1)

    in_virtual_time(story)


def test_a_deleted_pod_goes() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        await server.api.create(PODS, pod("a", "python", "train.py"), namespace="default")
        await server.until(PODS, "a", lambda o: phase(o) == "Running")
        await server.api.delete(PODS, "a", namespace="default")
        await server.until(PODS, "a", lambda o: o is None)

    in_virtual_time(story)


def test_pods_of_other_nodes_are_left_alone() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        other = pod("other", "true")
        other["spec"]["nodeName"] = "elsewhere"
        await server.api.create(PODS, other, namespace="default")
        await server.api.create(PODS, pod("mine", "true"), namespace="default")
        await server.until(PODS, "mine", lambda o: phase(o) == "Succeeded")
        assert phase(await server.api.get(PODS, "other", namespace="default")) == "Pending"

    in_virtual_time(story)


def test_so_many_nodes_are_ready_with_what_they_have() -> None:
    async def story() -> None:
        clock, random, stop = VirtualClock(), SeededRandom(1), asyncio.Event()
        server = Server(clock, random)
        await server.start()
        nodes = [VirtualNode(name=f"virtual-{index:02d}", capacity=CAPACITY) for index in range(12)]
        kubelet = VirtualKubelet(server.api, clock, random, nodes=nodes)
        running = asyncio.create_task(kubelet.run(stop))
        await kubelet.ready.wait()
        registered = (await server.api.list(NODES)).items
        assert sorted(node["metadata"]["name"] for node in registered) == [node.name for node in nodes]
        assert all(node["status"]["allocatable"]["cpu"] == "32" for node in registered)
        stop.set()
        await running
        await server.stop()

    loop = VirtualTimeLoop()
    try:
        loop.run_until_complete(story())
    finally:
        loop.close()
