"""Pretended nodes: pods on them live by the rules of the real kubelet, on any clock."""

import asyncio

import pytest

from tests.support.server import Server
from tests.support.virtual_time import SeededRandom, VirtualClock, VirtualTimeLoop
from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.api.resources import NODES, PODS
from vcbatch.local.virtual import PodPretence, VirtualKubelet, VirtualNode


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        (["sleep", "5"], 5.0, 0),
        (["sh", "-c", "sleep 2; exit 3"], 2.0, 3),
        (["bash", "-c", "sleep 1m && exit 0"], 60.0, 0),
        (["/bin/sh", "-c", "false && sleep 9"], 0.0, 1),
        (["sh", "-c", "false; sleep 9"], 9.0, 0),
        (["true"], 0.0, 0),
        (["false"], 0.0, 1),
        (["sh", "-c", "exit 7; sleep 9"], 0.0, 7),
        (["sh", "-c", "exit 300"], 0.0, 44),
        (["sh", "-c", "false; exit"], 0.0, 1),
        (["sh", "-c", "echo a && sleep 0.5"], 0.5, 0),
        (["sh", "-c", "trap '' TERM; sleep 2"], 2.0, 0),
        (["sleep", "inf"], None, 0),
        (["sh", "-c", "sleep 1; sleep infinity"], None, 0),
        (["python", "train.py"], None, 0),
        (["sh", "-c", "false || exit 4"], 0.0, 4),
        (["sh", "-c", "sleep 'unclosed"], None, 0),
        (["sh", "-c", "sleep " + "1" * 5000], None, 0),
        ([], None, 0),
    ],
)
def test_a_command_says_how_long_to_pretend(argv: list[str], seconds: float | None, code: int) -> None:
    made = pod("a", *argv)
    run = PodPretence(made).run(made["spec"]["containers"][0], restarts=0)
    assert (run.seconds, run.exit_code) == (seconds, code)


def test_annotations_win_over_commands_and_the_container_s_over_the_pod_s() -> None:
    made = pod("a", "sleep", "5")
    made["metadata"]["annotations"] = {
        "test.vcbatch.io/run-seconds": "7",
        "test.vcbatch.io/exit-code": "1,2,0",
        "test.vcbatch.io/run-seconds.side": "inf",
        "test.vcbatch.io/end-reason": "OOMKilled",
    }
    main, side = made["spec"]["containers"][0], {"name": "side", "command": ["true"]}
    pretence = PodPretence(made)
    assert not pretence.misunderstood()
    assert [pretence.run(main, restarts=count).exit_code for count in range(5)] == [1, 2, 0, 0, 0]
    assert pretence.run(main, restarts=0).seconds == 7.0
    assert pretence.run(main, restarts=0).reason == "OOMKilled"
    assert pretence.run(main, restarts=2).reason == "Completed"
    assert pretence.run(side, restarts=0).seconds is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run-seconds", "soon"), ("exit-code", "256"), ("exit-code", "1,"), ("start-seconds", "inf"),
        ("end-reason", "out of memory"), ("runseconds", "1"), ("evict-seconds.main", "1"), ("stop-exit-code", ""),
    ],
)  # fmt: skip
def test_an_annotation_that_can_t_be_read_is_named(key: str, value: str) -> None:
    made = pod("a", "true")
    made["metadata"]["annotations"] = {f"test.vcbatch.io/{key}": value}
    assert f"test.vcbatch.io/{key}" in PodPretence(made).misunderstood()


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


def test_a_deleted_pod_ends_in_a_terminal_phase_before_it_goes() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        made = pod("a", "sleep", "inf")
        made["metadata"]["annotations"] = {"test.vcbatch.io/stop-seconds": "5"}
        await server.api.create(PODS, made, namespace="default")
        await server.until(PODS, "a", lambda o: phase(o) == "Running")
        began = clock.monotonic()
        await server.api.delete(PODS, "a", namespace="default")
        ended = await server.until(PODS, "a", lambda o: phase(o) == "Failed")
        assert exit_code(ended) == 143
        assert clock.monotonic() - began == pytest.approx(5, abs=1)
        await server.until(PODS, "a", lambda o: o is None)

    in_virtual_time(story)


def test_an_image_that_can_t_be_had_leaves_the_pod_pending() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        made = pod("a", "true")
        made["spec"]["containers"][0]["image"] = "registry.invalid/train:1"
        await server.api.create(PODS, made, namespace="default")

        def why(obj: dict | None) -> str:
            states = (obj or {}).get("status", {}).get("containerStatuses") or [{"state": {}}]
            return states[0]["state"].get("waiting", {}).get("reason", "")

        stuck = await server.until(PODS, "a", lambda o: why(o) == "ImagePullBackOff")
        assert phase(stuck) == "Pending"
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


def test_a_labelled_node_that_somebody_made_is_pretended_too() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        early = pod("early", "sleep", "5")
        early["spec"]["nodeName"] = "mine"
        await server.api.create(PODS, early, namespace="default")
        await server.api.create(NODES, {"metadata": {"name": "mine", "labels": {VIRTUAL_NODE: "true"}}})
        await server.until(PODS, "early", lambda o: phase(o) == "Succeeded")
        conditions = (await server.api.get(NODES, "mine"))["status"]["conditions"]
        assert [(each["type"], each["status"]) for each in conditions] == [("Ready", "True")]

    in_virtual_time(story)


def test_nobody_pretends_for_a_node_that_is_gone() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        await server.api.create(PODS, pod("a", "sleep", "5"), namespace="default")
        await server.until(PODS, "a", lambda o: phase(o) == "Running")
        await server.api.delete(NODES, "v0")
        await clock.sleep(60)
        assert phase(await server.api.get(PODS, "a", namespace="default")) == "Running"

    in_virtual_time(story)


def test_what_others_say_of_a_pod_stays_in_its_conditions() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        await server.api.create(PODS, pod("a", "sleep", "5"), namespace="default")
        running = await server.until(PODS, "a", lambda o: phase(o) == "Running")
        reported = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        status = {"status": {"conditions": [*running["status"]["conditions"], reported]}}
        await server.api.patch(PODS, "a", status, namespace="default", subresource="status")
        ended = await server.until(PODS, "a", lambda o: phase(o) == "Succeeded")
        assert reported["type"] in [each["type"] for each in ended["status"]["conditions"]]

    in_virtual_time(story)


def test_a_virtual_node_says_what_a_kubelet_says() -> None:
    async def story(server: Server, _: VirtualClock) -> None:
        node = await server.api.get(NODES, "v0")
        status = node["status"]
        assert status["capacity"] == {**CAPACITY, "pods": "110", "ephemeral-storage": "2Ti"}
        assert status["allocatable"] == status["capacity"]
        labels = node["metadata"]["labels"]
        assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
        assert labels["kubernetes.io/hostname"] == "v0"
        assert {one["type"] for one in status["addresses"]} == {"InternalIP", "Hostname"}
        assert (status["nodeInfo"]["operatingSystem"], status["nodeInfo"]["architecture"]) == ("linux", "amd64")

    in_virtual_time(story)


def test_a_node_written_by_hand_gets_what_it_lacks_and_keeps_the_rest() -> None:
    async def story(server: Server, _: VirtualClock) -> None:
        labels = {VIRTUAL_NODE: "true", "kubernetes.io/arch": "arm64"}
        status = {"capacity": {"cpu": "3"}, "addresses": [{"type": "Hostname", "address": "mine"}]}
        await server.api.create(NODES, {"metadata": {"name": "hand", "labels": labels}, "status": status})
        found = await server.until(NODES, "hand", lambda o: bool((o or {}).get("status", {}).get("conditions")))
        assert found["metadata"]["labels"] == {
            **labels, "kubernetes.io/os": "linux", "kubernetes.io/hostname": "hand"
        }  # fmt: skip
        assert found["status"]["allocatable"] == {"cpu": "3"}
        assert found["status"]["addresses"] == status["addresses"]
        assert found["status"]["nodeInfo"]["operatingSystem"] == "linux"

    in_virtual_time(story)


def test_a_node_of_an_earlier_start_gets_the_size_asked_for_now() -> None:
    async def story(server: Server, clock: VirtualClock) -> None:
        smaller = VirtualNode(name="v0", capacity={"cpu": "4"})
        stop = asyncio.Event()
        kubelet = VirtualKubelet(server.api, clock, SeededRandom(2), nodes=[smaller])
        running = asyncio.create_task(kubelet.run(stop))
        await kubelet.ready.wait()
        node = await server.api.get(NODES, "v0")
        assert node["status"]["capacity"] == {"cpu": "4", "pods": "110", "ephemeral-storage": "2Ti"}
        assert node["status"]["allocatable"] == node["status"]["capacity"]
        stop.set()
        await running

    in_virtual_time(story)
