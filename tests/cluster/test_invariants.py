"""The rules that bad luck is judged by find what they are for, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster import invariants
from tests.cluster.history import ADDED, DELETED, JOBS, MODIFIED, NODES, POD_GROUPS, PODS, Change
from vcbatch.api.names import GROUP_NAME

Json = dict[str, Any]


def change(
    path: str, name: str, *, kind: str = MODIFIED, uid: str = "", at: float = 0.0, metadata: Json | None = None,
    **fields: Any,
) -> Change:  # fmt: skip
    meta = {"namespace": "default", "name": name, "uid": uid or name, **(metadata or {})}
    return Change(path=path, type=kind, object={"metadata": meta, **fields}, at=at)


def pod(name: str, *, index: str = "0", node: str = "", phase: str = "Pending", cpu: str = "1", **more: Any) -> Change:
    metadata = {
        "labels": {"volcano.sh/job-name": "a", "volcano.sh/task-spec": "w", "volcano.sh/task-index": index},
        "annotations": {GROUP_NAME: "a"},
        "ownerReferences": [{"uid": "job"}],
    }
    spec: Json = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    if node:
        spec["nodeName"] = node
    return change(PODS, name, metadata=metadata, spec=spec, status={"phase": phase}, **more)


def node(name: str, cpu: str) -> Change:
    return change(NODES, name, status={"allocatable": {"cpu": cpu, "pods": "10"}})


def group(minimum: int) -> Change:
    return change(POD_GROUPS, "a", spec={"minMember": minimum})


def job(phase: str, **more: Any) -> Change:
    return change(JOBS, "a", status={"state": {"phase": phase}}, **more)


def test_two_pods_of_one_index_at_once() -> None:
    twice = [pod("a-w-0", uid="1", kind=ADDED), pod("a-w-0-again", uid="2", kind=ADDED)]
    assert len(invariants.duplicate_pods(twice)) == 1
    one_after_the_other = [pod("a-w-0", uid="1"), pod("a-w-0", uid="1", kind=DELETED), pod("a-w-0", uid="2")]
    assert invariants.duplicate_pods(one_after_the_other) == []
    assert invariants.duplicate_pods([pod("a-w-0"), pod("a-w-1", index="1")]) == []


def test_more_on_a_node_than_it_has() -> None:
    both = [node("n", "1500m"), pod("x", node="n"), pod("y", node="n")]
    assert len(invariants.overcommitted_nodes(both)) == 1
    first_ended = [node("n", "1500m"), pod("x", node="n"), pod("x", node="n", phase="Succeeded"), pod("y", node="n")]
    assert invariants.overcommitted_nodes(first_ended) == []
    first_gone = [node("n", "1500m"), pod("x", node="n"), pod("x", node="n", kind=DELETED), pod("y", node="n")]
    assert invariants.overcommitted_nodes(first_gone) == []
    assert (
        len(invariants.overcommitted_nodes([node("n", "99"), *(pod(str(i), node="n", cpu="0") for i in range(11))]))
        == 1
    )


def test_a_gang_that_starts_by_halves() -> None:
    half = [group(2), pod("x", node="n", at=1), pod("y", at=1)]
    assert len(invariants.half_started_gangs([*half, pod("y", at=100)])) == 1
    assert len(invariants.half_started_gangs([*half, pod("y", node="n", at=100)])) == 1
    assert invariants.half_started_gangs([*half, pod("y", node="n", at=5), pod("x", phase="Failed", at=100)]) == []
    assert invariants.half_started_gangs([*half, pod("x", node="n", kind=DELETED, at=5), pod("y", at=100)]) == []
    winds_down = [group(2), pod("x", node="n"), pod("y", node="n"), pod("x", node="n", phase="Succeeded"),
                  pod("y", node="n", kind=DELETED), pod("x", node="n", phase="Succeeded", at=100)]  # fmt: skip
    assert invariants.half_started_gangs(winds_down) == []


def test_a_job_that_is_lost() -> None:
    assert invariants.lost_jobs([job("Running")], jobs=["default/a"]) == []
    assert len(invariants.lost_jobs([job("Running"), job("Running", kind=DELETED)], jobs=["default/a"])) == 1
    assert len(invariants.lost_jobs([], jobs=["default/a"])) == 1


def test_a_job_that_ends_twice() -> None:
    assert invariants.revived_jobs([job("Running"), job("Completed"), job("Completed")]) == []
    assert len(invariants.revived_jobs([job("Completed"), job("Running")])) == 1
    assert invariants.revived_jobs([job("Completed"), job("Running", uid="another")]) == []


def test_a_message_that_comes_over_and_over(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    lines = [{"level": "warning", "msg": f"watching default/pod-{index} failed after {index} s"} for index in range(30)]
    lines += [{"level": "info", "msg": "all is well"}] * 100
    log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert invariants.noisy_messages(log, most=30) == []
    assert len(invariants.noisy_messages(log, most=29)) == 1
    assert invariants.tracebacks(log) == []
    log.write_text(json.dumps({"level": "error", "msg": "no", "error": "Traceback (most recent call last)"}) + "\n")
    assert len(invariants.tracebacks(log)) == 1
