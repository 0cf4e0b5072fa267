"""A pod isn't resized beyond what its queue, and those above, may use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.admission_world import World, queue
from vcbatch.api.admission import RESIZE, Operation, Request, review
from vcbatch.api.model import Json
from vcbatch.api.resources import PODS


def pod(*cpus: str, sidecar: str = "", scheduler: str = "volcano", node: str = "n", **status: Any) -> Json:
    """A pod of gang `g` with a container for each of these amounts."""
    containers = [{"name": f"c{i}", "resources": {"requests": {"cpu": cpu}}} for i, cpu in enumerate(cpus)]
    beside = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": sidecar}}}
    return {
        "metadata": {"name": "p", "namespace": "ns", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "schedulerName": scheduler,
            "nodeName": node,
            "containers": containers,
            **({"initContainers": [beside]} if sidecar else {}),
        },
        "status": {"phase": "Running", **status},
    }


def world(*, used: str = "6", group: bool = True, **capability: str) -> World:
    """Queue `low` of the gang, below `high`; both use the same."""
    return World(
        known=[
            queue("low", parent="high", capability=capability or {"cpu": "8"}, allocated={"cpu": used}),
            queue("high", parent="root", capability={"cpu": "10"}, allocated={"cpu": used}),
        ],
        groups={("ns", "g"): {"spec": {"queue": "low"}}} if group else {},
    )


def refusal(new: Json, old: Json, known: World | None = None) -> str:
    asked = Request(
        resource=PODS, operation=Operation.UPDATE, name="p", namespace="ns", object=new, old=old, subresource=RESIZE
    )
    return review(asked, known or world()).message


def test_what_is_asked_and_what_is_left_are_named() -> None:
    assert refusal(pod("1", "4"), pod("1", "1")) == (
        'spec.containers[1].resources.requests[cpu]: Invalid value: "4": pod ns/p would use 3 more cpu, and queue low '
        "has 2 left of 8 (spec.capability): want at most 2 more"
    )
    assert refusal(pod("1", "3"), pod("1", "1")) == ""


def test_queues_above_limit_it_too() -> None:
    known = world(cpu="20")
    assert refusal(pod("5"), pod("1"), known) == ""
    assert "queue high has 4 left of 10" in refusal(pod("6"), pod("1"), known)


def test_a_side_car_counts() -> None:
    message = refusal(pod("1", sidecar="4"), pod("1", sidecar="1"))
    assert message.startswith('spec.initContainers[0].resources.requests[cpu]: Invalid value: "4"')


@pytest.mark.parametrize(
    ("new", "old", "known"),
    [
        pytest.param(pod("1"), pod("4"), world(used="9"), id="it is lowered in a queue that uses too much"),
        pytest.param(pod("1", "4"), pod("4", "1"), world(used="9"), id="one container has of another"),
        pytest.param(
            pod("9", scheduler="default-scheduler"), pod("1", scheduler="default-scheduler"), None, id="other"
        ),
        pytest.param(pod("9", node=""), pod("1", node=""), None, id="it has no node, so it isn't counted"),
        pytest.param(pod("9", phase="Succeeded"), pod("1", phase="Succeeded"), None, id="it has ended"),
        pytest.param(pod("9"), pod("1"), world(group=False), id="it has no PodGroup"),
        pytest.param(pod("4"), pod("1"), world(memory="8Gi"), id="the limit is of something else"),
        pytest.param(pod("4"), pod("1"), world(cpu="0"), id="zero cpus are no limit"),
    ],
)
def test_it_is_let_through(new: Json, old: Json, known: World | None) -> None:
    assert refusal(new, old, known) == ""


def test_what_the_kubelet_has_not_given_yet_is_counted_already() -> None:
    """A first resize to 3 is deferred: its queue counts 3, so that another one to 5 adds 2."""
    deferred: Json = {"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "1"}}]}
    assert refusal(pod("5", **deferred), pod("3", **deferred)) == ""
    assert "3 more cpu" in refusal(pod("6", **deferred), pod("3", **deferred))


def test_a_resize_that_is_infeasible_is_not_counted() -> None:
    """The queue counts 1 for it, so that 4 are 3 more."""
    status: Json = {
        "containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "1"}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert "3 more cpu" in refusal(pod("4", **status), pod("8", **status))
    assert refusal(pod("3", **status), pod("8", **status)) == ""
