"""A gang for pods that come without one, and Commands that nothing takes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import START
from vcbatch.api.command import Command
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.timestamps import format_time
from vcbatch.core.command import decide as decide_command
from vcbatch.core.podgroup import GroupView, decide, generated_name

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


def test_a_bare_pod_gets_a_group_of_its_own_and_then_its_name() -> None:
    pod = _pod(annotations={"scheduling.volcano.sh/queue-name": "q", "volcano.sh/preemptable": "true"})
    first = decide(GroupView(pod=pod), now=START)
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
    second = decide(GroupView(pod=pod, pod_group=PodGroup.parse(body)), now=START)
    assert not second.ensures
    assert [mark.patch for mark in second.marks] == [
        {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "podgroup-u1"}}}
    ]


def test_pods_of_a_controller_share_a_group() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2", "controller": True}
    pod = _pod(owner=owner)
    (ensure,) = decide(GroupView(pod=pod), now=START).ensures
    assert generated_name(pod) == ensure.body["metadata"]["name"] == "podgroup-u2"
    assert ensure.body["metadata"]["ownerReferences"] == [owner]
    assert "queue" not in ensure.body["spec"]


def test_network_topology_by_annotation() -> None:
    annotations = {"volcano.sh/network-topology-mode": "Soft", "volcano.sh/network-topology-highest-tier": "2"}
    (ensure,) = decide(GroupView(pod=_pod(annotations=annotations)), now=START).ensures
    assert ensure.body["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}


@pytest.mark.parametrize(
    "pod",
    [
        _pod(annotations={"scheduling.k8s.io/group-name": "mine"}),
        _pod(schedulerName="default-scheduler"),
        _pod(phase="Succeeded"),
    ],
)
def test_pods_that_are_left_alone(pod: Json) -> None:
    decision = decide(GroupView(pod=pod), now=START)
    assert (decision.ensures, decision.marks) == ((), ())


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
    assert waits.look_again_at == START + timedelta(minutes=1)
    assert not decide_command(command, taken=True, now=START + timedelta(hours=1)).deletes
    (delete,) = decide_command(command, taken=False, now=START + timedelta(minutes=1)).deletes
    assert (delete.ref.name, delete.ref.uid) == ("c", "u")
