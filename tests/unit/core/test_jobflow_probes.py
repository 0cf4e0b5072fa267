"""When a probe lets a job start before what it depends on is completed, and what is asked for that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.flow_world import FlowWorld, entry
from vcbatch.api.names import TASK_SPEC
from vcbatch.api.pod import Pod
from vcbatch.core.jobflow import Probe, ProbeKind
from vcbatch.core.jobflow.probing import MOST_PODS, MOST_PROBES

Json = dict[str, Any]


def _world(probe: Json, *, replicas: int = 2, targets: tuple[str, ...] = ("a",)) -> FlowWorld:
    """The jobs that `b` depends on run, each with so many pods of a task `w`."""
    world = FlowWorld(*(entry(name) for name in targets), entry("b", *targets, probe=probe))
    for name in targets:
        world.template(name, tasks=[{"name": "w", "replicas": replicas, "minAvailable": replicas}])
    world.settle()
    for number, name in enumerate(targets):
        world.job_is(f"f-{name}", "Running", taskStatusCount={"w": {"phase": {"Running": replicas}}})
        uid = world.jobs[f"f-{name}"]["metadata"]["uid"]
        world.pods[uid] = [_pod(f"{name}-{index}", f"10.0.{number}.{index}") for index in range(replicas)]
    world.settle()
    return world


def _pod(name: str, address: str, *, phase: str = "Running", task: str = "w", host: bool = False) -> Pod:
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {TASK_SPEC: task}},
        "spec": {"hostNetwork": host},
        "status": {"phase": phase, "podIP": address},
    }
    return msgspec.convert(body, Pod)


def _answer(world: FlowWorld, *pods: str) -> None:
    world.view()
    world.answers = {probe: probe.pod in pods for probe in world.asked}
    world.settle()


TCP = {"tcpSocketList": [{"taskName": "w", "port": 80}]}


def test_as_many_pods_answer_as_the_task_needs() -> None:
    world = _world(TCP)
    assert [probe.address for probe in world.asked] == ["10.0.0.0", "10.0.0.1"]
    _answer(world, "a-0")
    assert world.message == "b waits until task w of f-a listens at port 80"
    _answer(world, "a-0", "a-1")
    assert world.made == ["f-a", "f-b"]
    assert world.asked == []


def test_without_a_task_one_pod_is_enough() -> None:
    world = _world({"tcpSocketList": [{"port": 80}]})
    _answer(world, "a-1")
    assert world.made == ["f-a", "f-b"]


def test_every_probe_has_to_hold() -> None:
    world = _world({**TCP, "httpGetList": [{"taskName": "w", "port": 81, "path": "/x"}]})
    world.answers = {probe: probe.kind is ProbeKind.TCP for probe in world.asked}
    world.settle()
    assert world.message == "b waits until task w of f-a answers GET /x at port 81"


def test_each_target_has_to_be_satisfied() -> None:
    world = _world(TCP, replicas=1, targets=("a", "c"))
    _answer(world, "a-0")
    assert "f-b" not in world.jobs
    world.finish("f-c")
    assert "f-b" in world.jobs


@pytest.mark.parametrize(
    "probe", [TCP, {"tcpSocketList": [{"taskName": "none", "port": 80}]}, {}], ids=["closed", "no such task", "empty"]
)
def test_a_completed_target_is_enough(probe: Json) -> None:
    world = _world(probe)
    assert "f-b" not in world.jobs
    world.finish("f-a")
    assert "f-b" in world.jobs


@pytest.mark.parametrize(
    ("phase", "counts", "holds"),
    [
        ("Running", {"Running": 2}, True),
        ("Running", {"Running": 1, "Succeeded": 1}, True),
        ("Running", {"Running": 1, "Failed": 1}, False),
        ("Succeeded", {"Succeeded": 1, "Running": 1}, False),
        ("Failed", {"Failed": 2}, True),
        ("Pending", {"Pending": 2}, True),
        ("Done", {"Running": 2}, False),
    ],
)
@pytest.mark.parametrize("task", ["w", ""])
def test_a_task_is_in_a_phase(phase: str, counts: dict[str, int], holds: bool, task: str) -> None:
    world = _world({"taskStatusList": [{"taskName": task, "phase": phase}]}, replicas=0)
    world.jobs["f-a"]["spec"]["tasks"][0] |= {"replicas": 2, "minAvailable": 2}
    world.job_is("f-a", "Running", taskStatusCount={"w": {"phase": counts}})
    world.settle()
    assert ("f-b" in world.jobs) is holds


def test_only_pods_that_run_at_an_address_of_their_own_are_asked() -> None:
    world = _world(TCP)
    uid = world.jobs["f-a"]["metadata"]["uid"]
    world.pods[uid] = [
        _pod("own", "10.0.0.1"),
        _pod("of-its-node", "10.0.0.2", host=True),
        _pod("pending", "10.0.0.3", phase="Pending"),
        _pod("of-another-task", "10.0.0.4", task="v"),
        _pod("nowhere", ""),
    ]
    world.view()
    assert [probe.pod for probe in world.asked] == ["own"]


def test_nothing_is_asked_while_suspended_or_over() -> None:
    world = _world(TCP)
    world.command("AbortJob")
    world.settle()
    assert world.asked == []
    world.command("TerminateJob")
    world.settle()
    assert world.asked == []


def test_what_is_asked_is_bounded() -> None:
    world = _world(TCP, replicas=MOST_PODS + 10)
    assert len(world.asked) == MOST_PODS
    _answer(world, *(probe.pod for probe in world.asked))
    assert "f-b" in world.jobs
    many = _world({"tcpSocketList": [{"taskName": "w", "port": port} for port in range(1, 300)]}, replicas=2)
    assert len(many.asked) == MOST_PROBES


def test_a_question_says_all_that_is_needed_to_ask_it() -> None:
    header = {"name": "X", "value": "y"}
    world = _world({"httpGetList": [{"taskName": "w", "port": 8080, "httpHeader": header}]}, replicas=1)
    assert world.asked == [
        Probe("a-0", "ns", "a-0", "10.0.0.0", kind=ProbeKind.HTTP, port=8080, path="/", header=("X", "y"))
    ]
