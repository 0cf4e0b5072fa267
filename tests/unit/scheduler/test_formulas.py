"""Worked examples of the formulas: scores of nodes, phases, requests."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.names import ATTEMPT
from vcbatch.api.pod import Pod
from vcbatch.api.scheduling import PodGroupSpecView, PodGroupView, QueueStatusView, QueueView
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.classes import ClassTable
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.model.objects import STATUSES, Job, Phase, Queue, Task, TaskStatus
from vcbatch.scheduler.model.resources import MEMORY, PODS, Dimensions, exceeding, fits
from vcbatch.scheduler.plugins.binpack import Binpack
from vcbatch.scheduler.plugins.nodeorder import NodeOrder, least_allocated, most_allocated
from vcbatch.scheduler.reasons.phases import next_phase


def _columns(policy: str, **used: Any) -> tuple[Any, Columns, Session]:
    cluster = Cluster(parse_policy(policy))
    cluster.node("n", cpu="32", memory="128Gi")
    cluster.gang("old", 1, phase="Running", pod={"nodeName": "n"}, cpu="8")
    raw = cluster.pods["old-worker-0"]
    raw["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8", "memory": "64Gi"}
    cluster.change("old-worker-0", phase="Running")
    cluster.gang("new", 1)
    raw = cluster.pods["new-worker-0"]
    raw["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4", "memory": "8Gi"}
    cluster.change("new-worker-0")
    state = cluster.scheduler._state
    state.settle()
    session = Session(state, parse_policy(policy), StaticCache(), now=cluster.now, uid="s")
    cls = state.tasks["pod-new-worker-0"].cls
    depths = Depths(state.nodes, cls, 0, 1)
    return cls, Columns(state.nodes, cls, np.array([0]), depths, promising=False), session


SCORING = "actions: allocate\ntiers:\n- plugins:\n  - name: nodeorder\n  - name: binpack\n"


def test_node_scores() -> None:
    cls, columns, session = _columns(SCORING)
    assert least_allocated(columns).tolist() == [[52.0]]
    assert most_allocated(columns).tolist() == [[(37 + 56) // 2]]
    nodeorder = next(p for p in session.plugins if isinstance(p, NodeOrder))
    binpack = next(p for p in session.plugins if isinstance(p, Binpack))
    both = nodeorder.scores(cls, columns)
    assert both is not None
    assert both.tolist() == [[52.0 + 76.0]]
    packed = binpack.scores(cls, columns)
    assert packed is not None
    assert packed.tolist() == [[pytest.approx(46.875)]]


@pytest.mark.parametrize(
    ("running", "bound", "succeeded", "failed", "unschedulable", "before", "after"),
    [
        (2, 0, 0, 0, True, Phase.RUNNING, Phase.UNKNOWN),
        (0, 3, 0, 0, False, Phase.INQUEUE, Phase.RUNNING),
        (0, 0, 3, 0, False, Phase.RUNNING, Phase.COMPLETED),
        (1, 0, 2, 0, False, Phase.RUNNING, Phase.RUNNING),
        (0, 0, 1, 2, False, Phase.RUNNING, Phase.COMPLETED),
        (0, 2, 0, 0, False, Phase.INQUEUE, Phase.INQUEUE),
        (0, 2, 0, 0, False, Phase.RUNNING, Phase.PENDING),
        (0, 0, 0, 0, True, Phase.UNKNOWN, Phase.PENDING),
        (0, 0, 0, 0, True, Phase.INQUEUE, Phase.INQUEUE),
        (0, 0, 0, 0, False, Phase.COMPLETED, Phase.COMPLETED),
        (0, 0, 1, 0, False, Phase.COMPLETED, Phase.COMPLETED),
        (0, 2, 1, 0, False, Phase.COMPLETED, Phase.RUNNING),
        (0, 1, 1, 0, False, Phase.COMPLETED, Phase.PENDING),
    ],
)
def test_phases(
    running: int, bound: int, succeeded: int, failed: int, unschedulable: bool, before: Phase, after: Phase
) -> None:
    job = Job("ns/g", 0)
    job.group = PodGroupView(spec=PodGroupSpecView(min_member=3))
    job.phase = before
    for status, count in (
        (TaskStatus.RUNNING, running),
        (TaskStatus.BOUND, bound),
        (TaskStatus.SUCCEEDED, succeeded),
        (TaskStatus.FAILED, failed),
    ):
        job.counts[status] = count
    assert len(job.counts) == STATUSES
    assert next_phase(job, unschedulable=unschedulable) is after


@pytest.mark.parametrize("waiting", [TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Phase.PENDING, Phase.PENDING),
        (Phase.INQUEUE, Phase.INQUEUE),
        (Phase.RUNNING, Phase.INQUEUE),
        (Phase.UNKNOWN, Phase.INQUEUE),
        (Phase.COMPLETED, Phase.INQUEUE),
    ],
)
def test_a_gang_with_a_member_without_a_node_is_not_completed(waiting: TaskStatus, before: Phase, after: Phase) -> None:
    job = Job("ns/g", 0)
    job.group = PodGroupView(spec=PodGroupSpecView(min_member=1))
    job.phase = before
    job.counts[TaskStatus.SUCCEEDED] = 1
    assert next_phase(job, unschedulable=False) is Phase.COMPLETED
    job.counts[waiting] = 1
    assert next_phase(job, unschedulable=False) is after
    job.counts[TaskStatus.RUNNING] = 1
    assert next_phase(job, unschedulable=False) is Phase.RUNNING


@pytest.mark.parametrize("state", ["", "Open", "Closing", "Closed", "Unknown"])
def test_a_closing_queue_takes_the_gangs_that_it_took_before(state: str) -> None:
    queue = Queue(QueueView(metadata=ObjectMeta(name="q"), status=QueueStatusView(state=state)), 0)

    def takes(phase: Phase = Phase.PENDING, counted: TaskStatus | None = None, **annotations: str) -> bool:
        job = Job("ns/g", 0)
        job.queue, job.phase = queue, phase
        job.group = PodGroupView(metadata=ObjectMeta(annotations=annotations))
        if counted is not None:
            job.counts[counted] = 1
        return job.queue_takes

    is_open, closing = state in ("", "Open"), state == "Closing"
    assert takes() is is_open
    assert takes(counted=TaskStatus.PENDING) is is_open
    assert takes(**{ATTEMPT: "1"}) is (is_open or closing)
    for phase in (Phase.INQUEUE, Phase.RUNNING, Phase.UNKNOWN):
        assert takes(phase) is (is_open or closing)
    for status in (TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED):
        assert takes(counted=status) is (is_open or closing)
    assert Job("ns/g", 0).queue_takes is False


def test_the_gang_of_a_job_is_admitted_anew_for_its_next_attempt() -> None:
    job = Job("ns/g", 0)
    owner = OwnerReference(api_version="batch.volcano.sh/v1alpha1", kind="Job", name="g", uid="j", controller=True)
    job.group = PodGroupView(metadata=ObjectMeta(owner_references=[owner]), spec=PodGroupSpecView(min_member=3))
    job.phase = Phase.COMPLETED
    assert next_phase(job, unschedulable=False) is Phase.PENDING


def test_an_ending_member_still_counts_for_the_phase() -> None:
    cluster = Cluster()
    cluster.node("n")
    cluster.gang("g", 3)
    cluster.cycle()
    cluster.run("g")
    cluster.change("g-worker-0", deleting=True)
    cluster.cycle()
    assert cluster.groups["g"]["status"]["phase"] == "Running"
    condition = cluster.condition("g", "Unschedulable")
    assert condition is None


def _request(**spec: Any) -> dict[str, float]:
    dims = Dimensions()
    pod = msgspec.convert({"spec": spec}, Pod)
    cls = ClassTable(dims).of(pod)
    return {name: float(v) for name, v in zip(dims.names, cls.request, strict=True) if v}


def _container(restart: str | None = None, **amounts: str) -> dict[str, Any]:
    return {"restartPolicy": restart, "resources": {"requests": amounts}}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [_container(cpu="1"), _container(cpu="500m")]}, 1500),
        ({"containers": [_container(cpu="1")], "initContainers": [_container(cpu="3")]}, 3000),
        ({"containers": [_container(cpu="1")], "initContainers": [_container("Always", cpu="2")]}, 3000),
        (
            {
                "containers": [_container(cpu="1")],
                "initContainers": [_container("Always", cpu="2"), _container(cpu="4"), _container("Always", cpu="1")],
            },
            6000,
        ),
        ({"containers": [_container(cpu="1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [_container(cpu="1")], "resources": {"requests": {"cpu": "5"}}}, 5000),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]}, 1000),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, Any], cpu: float) -> None:
    assert _request(**spec) == {"cpu": cpu, "pods": 1.0}


def test_quota_names_and_unknown_ones_are_no_amounts() -> None:
    given = _request(
        containers=[_container(**{"count/jobs": "1", "gpus": "2", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"})]
    )
    assert given == {"nvidia.com/gpu": 2000.0, "hugepages-2Mi": 4.0 * 1024 * 1024, "pods": 1.0}


def test_comparisons() -> None:
    assert fits(np.array([1.05, 0, 0]), np.array([1.0, 0, 0]))
    assert not fits(np.array([1.2, 0, 0]), np.array([1.0, 0, 0]))
    request = np.array([1.0, 0.0, 1.0])
    assert exceeding(np.array([1.05, 9, 9]), np.array([1.0, 0, 0]), request) == [0]
    assert PODS not in exceeding(np.array([0, 9, 9]), np.array([1.0, 0, 0]), request)
    assert MEMORY not in exceeding(np.array([0, 9, 9]), np.array([1.0, 0, 0]), request)


def test_tasks_have_an_order_of_their_own() -> None:
    """By priority, then index, then creation."""
    cluster = Cluster()
    cluster.node("n")
    cluster.gang("g", 0, minimum=1)
    for index, priority in ((10, 1), (2, 1), (0, 5)):
        cluster.pod("g", index, priority=priority)
    state = cluster.scheduler._state
    state.settle()
    policy = parse_policy("actions: allocate\ntiers:\n- plugins:\n  - name: priority\n")
    session = Session(state, policy, StaticCache(), now=cluster.now, uid="s")
    tasks: list[Task] = session.ordered(list(state.tasks.values()))
    assert [t.name for t in tasks] == ["g-worker-0", "g-worker-2", "g-worker-10"]
