"""The gate that pods get at admission, to wait for room in their queue."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request, Settings
from vcbatch.api.model import Json
from vcbatch.api.names import QUEUE_ALLOCATION_GATE
from vcbatch.api.resources import PODS

GATE = {"name": QUEUE_ALLOCATION_GATE}
OTHER = {"name": "example.com/other"}


def gates(*, on: bool = True, asked: Any = "true", operation: Operation = Operation.CREATE, **spec: Any) -> Any:
    """The gates of a pod after admission."""
    pod: Json = {
        "metadata": {"name": "p", "annotations": {QUEUE_ALLOCATION_GATE: asked}},
        "spec": {"schedulerName": "volcano", **spec},
    }
    request = Request(resource=PODS, operation=operation, name="p", namespace="ns", object=pod)
    made = admission.mutate(request, None, Settings(queue_gates=on))  # type: ignore[arg-type] - nothing is looked up
    assert made is not None
    return made["spec"].get("schedulingGates")


def test_a_pod_that_asks_for_it_gets_the_gate_besides_those_it_has() -> None:
    assert gates() == [GATE]
    assert gates(schedulingGates=[OTHER]) == [OTHER, GATE]


def test_it_is_put_on_once() -> None:
    assert gates(schedulingGates=[GATE, OTHER]) == [GATE, OTHER]


@pytest.mark.parametrize(
    "given",
    [
        {"on": False},
        {"asked": "false"},
        {"asked": "True"},
        {"schedulerName": "default-scheduler"},
        {"schedulerName": None},
        {"nodeName": "n"},
        {"operation": Operation.UPDATE},
    ],
)
def test_pods_that_nobody_would_take_it_off_or_that_dont_ask_are_left_alone(given: Any) -> None:
    assert gates(**given) is None
