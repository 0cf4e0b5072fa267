"""What a pod takes of its node, above all while it is being resized in place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from vcbatch.api.pod import Pod
from vcbatch.scheduler.model.classes import ClassTable
from vcbatch.scheduler.model.resources import CPU, MEMORY, Dimensions

Json = dict[str, Any]
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def container(name: str, cpu: str, **more: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def reported(name: str, allocated: str | None, actual: str | None) -> Json:
    status: Json = {"name": name}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    return status


def pod(
    containers: list[Json], statuses: list[Json], *,
    inits: list[Json] | None = None, of_inits: list[Json] | None = None,
    conditions: list[Json] | None = None, whole: Json | None = None, of_whole: Json | None = None,
) -> Pod:  # fmt: skip
    spec: Json = {"containers": containers, "initContainers": inits, "resources": whole}
    status: Json = {"containerStatuses": statuses, "initContainerStatuses": of_inits, "conditions": conditions}
    return msgspec.convert({"spec": spec, "status": {**status, **(of_whole or {})}}, Pod)


def cpu(given: Pod) -> float:
    """In milli-cores."""
    return float(ClassTable(Dimensions()).of(given).request[CPU])


@pytest.mark.parametrize(
    ("asked", "allocated", "actual", "conditions", "expected"),
    [
        pytest.param("2", "2", "2", None, 2000, id="at-rest"),
        pytest.param("2", None, None, None, 2000, id="nothing-reported"),
        pytest.param("2", "4", "4", None, 4000, id="shrinks-and-still-holds"),
        pytest.param("2", "2", "4", None, 4000, id="shrinks-and-still-runs-with-it"),
        pytest.param("4", "2", "2", None, 4000, id="grows"),
        pytest.param("4", "4", "2", None, 4000, id="grows-and-is-reserved"),
        pytest.param("4", "2", "2", DEFERRED, 4000, id="grows-later"),
        pytest.param("64", "2", "2", INFEASIBLE, 2000, id="can-not-grow"),
        pytest.param("64", "2", "3", INFEASIBLE, 3000, id="can-not-grow-and-runs-with-more"),
        pytest.param("2", None, None, INFEASIBLE, 2000, id="infeasible-and-nothing-reported"),
        pytest.param("2", "-4", "-4", None, 2000, id="negative-amounts-count-for-nothing"),
        pytest.param("2", "x", "2", None, 2000, id="no-quantity"),
    ],
)
def test_the_largest_of_spec_allocated_and_actual_counts(
    asked: str, allocated: str | None, actual: str | None, conditions: list[Json] | None, expected: float
) -> None:
    assert cpu(pod([container("c", asked)], [reported("c", allocated, actual)], conditions=conditions)) == expected


def test_each_container_counts_by_itself() -> None:
    given = pod([container("a", "1"), container("b", "3")], [reported("a", "2", "2"), reported("b", "1", "1")])
    assert cpu(given) == 5000


def test_a_container_at_rest_counts_beside_one_that_can_not_grow() -> None:
    given = pod(
        [container("a", "64"), container("b", "3")],
        [reported("a", "2", "2"), reported("b", "3", "3")],
        conditions=INFEASIBLE,
    )
    assert cpu(given) == 5000


def test_side_cars_are_resized_too() -> None:
    given = pod(
        [container("c", "1")],
        [reported("c", "1", "1")],
        inits=[container("s", "1", restartPolicy="Always")],
        of_inits=[reported("s", "3", "3")],
    )
    assert cpu(given) == 4000


def test_the_requests_of_the_pod_as_a_whole_are_resized_too() -> None:
    given = pod(
        [container("c", "1")], [reported("c", "1", "1")],
        whole={"requests": {"cpu": "2"}}, of_whole={"allocatedResources": {"cpu": "5"}},
    )  # fmt: skip
    assert cpu(given) == 5000


def test_resources_that_only_the_kubelet_reports_count() -> None:
    status = {**reported("c", "1", "1"), "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    table = ClassTable(Dimensions())
    assert table.of(pod([container("c", "1")], [status])).request[MEMORY] == 2**30


def test_what_the_kubelet_reports_of_a_pod_at_rest_is_not_kept() -> None:
    """It is reported of every running pod, and would be a third of what is held of it."""
    given = pod([container("c", "2")], [reported("c", "2", "2")])
    assert given.status.container_statuses is not None
    assert [(one.allocated_resources, one.resources) for one in given.status.container_statuses] == [(None, None)]


def test_pods_are_alike_once_they_have_been_resized() -> None:
    table = ClassTable(Dimensions())
    plain = table.of(pod([container("c", "2")], []))
    assert table.of(pod([container("c", "2")], [reported("c", "2", "2")])) is plain
    resizing = table.of(pod([container("c", "2")], [reported("c", "4", "4")]))
    assert resizing is not plain
    assert table.of(pod([container("c", "2")], [reported("c", "4", "4")])) is resizing
    assert table.of(pod([container("c", "2")], [reported("c", "4", "4")], conditions=INFEASIBLE)) is not resizing
