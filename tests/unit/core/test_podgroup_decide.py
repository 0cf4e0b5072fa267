"""A gang for pods that come without one, and Commands that nothing takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.support.job_world import START
from vcbatch.api.command import Command
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.resources import PODS
from vcbatch.api.timestamps import format_time
from vcbatch.api.workload import Workload
from vcbatch.core.command import decide as decide_command
from vcbatch.core.machine import Decision, ObjectRef
from vcbatch.core.podgroup import GroupView, decide, generated_name, needs_sample

Json = dict[str, Any]


def _pod(*, annotations: Json | None = None, owner: Json | None = None, phase: str = "Pending", **spec: Any) -> Json:
    metadata: Json = {"name": "p", "namespace": "ns", "uid": "u1", "annotations": annotations or {}}
    if owner:
        metadata["ownerReferences"] = [owner]
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": metadata,
        "spec": {"schedulerName": "volcano", "containers": [container], **spec},
        "status": {"phase": phase},
    }


def _ref(name: str = "p", uid: str = "u1") -> ObjectRef:
    return ObjectRef(resource=PODS, namespace="ns", name=name, uid=uid)


def _alone(pod: Json) -> GroupView:
    return GroupView(waiting=[_ref()], members=1, sample=pod)


def _group(body: Json) -> PodGroup:
    return PodGroup.parse({**body, "metadata": {**body["metadata"], "uid": "g"}})


REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2", "controller": True}


def _replica_set(annotations: Json, *, replicas: int = 3) -> Workload:
    raw = {"metadata": {"name": "r", "uid": "u2", "annotations": annotations}, "spec": {"replicas": replicas}}
    return msgspec.convert(raw, Workload)


def test_a_bare_pod_gets_a_group_of_its_own_and_then_its_name() -> None:
    pod = _pod(annotations={"scheduling.volcano.sh/queue-name": "q", "volcano.sh/preemptable": "true"})
    first = decide(_alone(pod), now=START)
    (ensure,) = first.ensures
    assert not first.marks
    body = ensure.body
    assert body["metadata"]["name"] == "podgroup-u1"
    assert body["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert body["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert body["spec"] == {
        "minMember": 1,
        "minResources": {"count/pods": "1", "cpu": "100m", "pods": "1", "requests.cpu": "100m"},
        "queue": "q",
    }
    second = decide(GroupView(waiting=[_ref()], members=1, pod_group=_group(body)), now=START)
    assert not second.ensures
    assert [mark.patch for mark in second.marks] == [
        {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "podgroup-u1"}}}
    ]


def test_pods_of_a_controller_share_a_group() -> None:
    pod = _pod(owner=REPLICA_SET)
    (ensure,) = decide(_alone(pod), now=START).ensures
    assert ensure.body["metadata"]["name"] == generated_name("u2") == "podgroup-u2"
    assert ensure.body["metadata"]["ownerReferences"] == [REPLICA_SET]
    assert "queue" not in ensure.body["spec"]
    waiting = [_ref("p", "u1"), _ref("q", "u3")]
    marks = decide(GroupView(waiting=waiting, members=3, pod_group=_group(ensure.body)), now=START).marks
    assert [mark.ref.name for mark in marks] == ["p", "q"]


def test_network_topology_by_annotation() -> None:
    annotations = {"volcano.sh/network-topology-mode": "Soft", "volcano.sh/network-topology-highest-tier": "2"}
    (ensure,) = decide(_alone(_pod(annotations=annotations)), now=START).ensures
    assert ensure.body["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}


def test_a_workload_says_how_many_pods_make_its_gang() -> None:
    workload = _replica_set({"scheduling.volcano.sh/group-min-member": "3", "volcano.sh/preemptable": "true", "a": "b"})
    view = replace(_alone(_pod(owner=REPLICA_SET)), workload=workload)
    (ensure,) = decide(view, now=START).ensures
    assert ensure.body["spec"] == {
        "minMember": 3,
        "minResources": {"count/pods": "3", "cpu": "300m", "pods": "3", "requests.cpu": "300m"},
    }
    assert ensure.body["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}


@pytest.mark.parametrize("text", ["0", "-1", "", "many", "3.5", "\u0663", "1" * 40])
def test_a_number_of_members_that_is_none_is_one(text: str) -> None:
    view = replace(
        _alone(_pod(owner=REPLICA_SET)), workload=_replica_set({"scheduling.volcano.sh/group-min-member": text})
    )
    (ensure,) = decide(view, now=START).ensures
    assert ensure.body["spec"]["minMember"] == 1


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ('{"cpu": "2", "nvidia.com/gpu": 8}', {"cpu": "2", "nvidia.com/gpu": "8"}),
        ('{"cpu": "lots"}', {"count/pods": "1", "cpu": "100m", "pods": "1", "requests.cpu": "100m"}),
        ("[1]", {"count/pods": "1", "cpu": "100m", "pods": "1", "requests.cpu": "100m"}),
        ("[" * 4000, {"count/pods": "1", "cpu": "100m", "pods": "1", "requests.cpu": "100m"}),
    ],
)
def test_resources_of_the_gang_by_annotation(text: str, resources: Json) -> None:
    workload = _replica_set({"scheduling.volcano.sh/group-min-resources": text})
    (ensure,) = decide(replace(_alone(_pod(owner=REPLICA_SET)), workload=workload), now=START).ensures
    assert ensure.body["spec"]["minResources"] == resources


def test_what_a_pod_says_of_its_preemption_goes_before_its_workload() -> None:
    pod = _pod(owner=REPLICA_SET, annotations={"volcano.sh/preemptable": "false", "volcano.sh/jdb-min-available": "1"})
    workload = _replica_set(
        {"volcano.sh/preemptable": "true", "volcano.sh/jdb-max-unavailable": "2", "volcano.sh/cooldown-time": "10s"}
    )
    (ensure,) = decide(replace(_alone(pod), workload=workload), now=START).ensures
    assert ensure.body["metadata"]["annotations"] == {
        "volcano.sh/cooldown-time": "10s",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/preemptable": "false",
    }


def test_an_edited_workload_changes_what_its_group_has_from_it_and_nothing_else() -> None:
    pod = _pod(owner=REPLICA_SET)
    (made,) = decide(_alone(pod), now=START).ensures
    group = _group({**made.body, "spec": {**made.body["spec"], "queue": "of-the-namespace"}})
    workload = _replica_set({"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/network-topology-mode": "soft"})
    view = GroupView(members=2, workload=workload, pod_group=group)
    assert needs_sample(view)
    (ensure,) = decide(replace(view, sample=pod), now=START).ensures
    assert ensure.update == {
        "metadata": {"annotations": {"volcano.sh/network-topology-mode": "soft"}},
        "spec": {
            "minMember": 2,
            "minResources": {"count/pods": "2", "cpu": "200m", "pods": "2", "requests.cpu": "200m"},
        },
    }
    stored = {
        **made.body,
        "metadata": {**made.body["metadata"], **ensure.update["metadata"]},
        "spec": ensure.update["spec"],
    }
    assert not needs_sample(replace(view, pod_group=_group(stored)))


def _job(members: int, *, completions: int | None, parallelism: int | None, **status: Any) -> Workload:
    return msgspec.convert(
        {
            "metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": str(members)}},
            "spec": {"completions": completions, "parallelism": parallelism},
            "status": status,
        },
        Workload,
    )


@pytest.mark.parametrize(
    ("job", "succeeded_pods", "asks_for"),
    [
        (_job(4, completions=4, parallelism=4), 0, 4),
        (_job(4, completions=4, parallelism=4, succeeded=1), 1, 4),
        (_job(4, completions=4, parallelism=4, succeeded=1), 0, 3),
        (_job(4, completions=4, parallelism=4, succeeded=3), 1, 2),
        (_job(4, completions=4, parallelism=4, succeeded=4), 0, 4),
        (_job(2, completions=9, parallelism=3, succeeded=5), 0, 2),
        (_job(3, completions=9, parallelism=3, succeeded=8), 0, 1),
        (_job(3, completions=9, parallelism=None, succeeded=8), 1, 2),
        (_job(5, completions=4, parallelism=4), 0, 5),
        (_job(4, completions=4, parallelism=4, failedIndexes="1"), 0, 3),
        (_job(4, completions=4, parallelism=4, succeeded=1, failedIndexes="1-2"), 1, 2),
        (_job(4, completions=4, parallelism=4, succeeded=1, failedIndexes="1-99"), 1, 4),
        (_job(4, completions=None, parallelism=4, succeeded=1), 0, 4),
    ],
)
def test_a_gang_asks_for_no_member_that_gets_no_pod_any_more(job: Workload, succeeded_pods: int, asks_for: int) -> None:
    pod = _pod(owner=REPLICA_SET)
    (made,) = decide(replace(_alone(pod), workload=job, succeeded=succeeded_pods), now=START).ensures
    assert made.body["spec"]["minMember"] == asks_for
    assert made.body["spec"]["minResources"]["pods"] == str(asks_for)
    view = GroupView(members=1, workload=job, succeeded=succeeded_pods, pod_group=_group(made.body))
    assert not needs_sample(view)


def test_a_workload_of_none_has_no_group_once_its_pods_are_gone() -> None:
    (made,) = decide(_alone(_pod(owner=REPLICA_SET)), now=START).ensures
    none = GroupView(workload=_replica_set({}, replicas=0), pod_group=_group(made.body))
    assert not decide(replace(none, members=1), now=START).deletes
    (delete,) = decide(none, now=START).deletes
    assert (delete.ref.name, delete.ref.uid) == ("podgroup-u2", "g")
    assert not decide(replace(none, workload=_replica_set({})), now=START).deletes, "its pods are still to come"
    assert not decide(replace(none, workload=None), now=START).deletes


def test_a_group_that_somebody_deleted_is_made_again_for_pods_that_are_in_it() -> None:
    pod = _pod(owner=REPLICA_SET, annotations={"scheduling.k8s.io/group-name": "podgroup-u2"})
    view = GroupView(members=2, workload=_replica_set({}))
    assert needs_sample(view)
    (ensure,) = decide(replace(view, sample=pod), now=START).ensures
    assert ensure.body["metadata"]["name"] == "podgroup-u2"
    # The garbage collector took it with its owner: its pods go as well.
    assert decide(replace(view, workload=None), now=START) == Decision(ensures=[])


def test_a_command_that_nothing_takes_goes_after_a_while() -> None:
    command = Command.parse(
        {
            "metadata": {"name": "c", "namespace": "ns", "uid": "u", "creationTimestamp": format_time(START)},
            "action": "AbortJob",
            "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "gone", "uid": "x"},
        }
    )
    waits = decide_command(command, taken=False, now=START)
    assert not waits.deletes
    assert waits.requeue_at == START + timedelta(minutes=1)
    assert not decide_command(command, taken=True, now=START + timedelta(hours=1)).deletes
    (delete,) = decide_command(command, taken=False, now=START + timedelta(minutes=1)).deletes
    assert (delete.ref.name, delete.ref.uid) == ("c", "u")
