"""Which work keeps a queue: what is counted of Jobs, PodGroups and batch/v1 Jobs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from vcbatch.api.model import Json
from vcbatch.api.unfinished import QueueWork, names_work, work_in

JOB = "batch.volcano.sh/v1alpha1"
PHASES = ("", "Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed", "Terminating",
          "Terminated", "Failed")  # fmt: skip
FINISHED = ("Completed", "Terminated", "Failed")


def _job(phase: str = "Running", *, queue: str = "q", uid: str = "u", deleted: bool = False) -> Json:
    return {"metadata": _metadata("j", uid, deleted), "spec": {"queue": queue}, "status": {"state": {"phase": phase}}}


def _group(phase: str, *, queue: str = "q", owner: str = "", version: str = JOB, **more: Any) -> Json:
    metadata = _metadata("g", f"g-{phase}-{owner}", more.pop("deleted", False))
    if owner:
        reference = {"apiVersion": version, "kind": "Job", "name": "j", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata, "spec": {"queue": queue}, "status": {"phase": phase, **more}}


def _pod(node: str, phase: str, *, owner: str = "", group: str) -> Json:
    metadata = _metadata("p", "p", deleted=True)
    metadata["annotations"] = {"scheduling.k8s.io/group-name": group, "volcano.sh/queue-name": "q"}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": JOB, "kind": "Job", "name": "j", "uid": owner, "controller": True}
        ]
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def _metadata(name: str, uid: str, deleted: bool) -> Json:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    return {"name": name, "namespace": "ns", "uid": uid, **gone}


def _batch(*conditions: str, deleted: bool = False) -> Json:
    said = [{"type": one, "status": "True"} for one in conditions]
    return {"metadata": _metadata("j", "u", deleted), "status": {"conditions": said}}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("group", [None, "", "Pending", "Inqueue", "Running", "Unknown", "Completed"])
def test_a_job_keeps_its_queue_until_it_has_ended(phase: str, deleted: bool, group: str | None) -> None:
    groups = [] if group is None else [_group(group, owner="u")]
    work = work_in("q", jobs=[_job(phase, deleted=deleted)], groups=groups)
    assert bool(work.text) is (phase not in FINISHED and not deleted)
    assert work_in("other", jobs=[_job(phase, deleted=deleted)], groups=groups).text == ""


@pytest.mark.parametrize(
    ("batch", "group", "kept"),
    [
        (_batch(), "Completed", True),
        (_batch("Suspended"), "Completed", True),
        (_batch("SuccessCriteriaMet"), "Running", True),
        (_batch("Complete"), "Completed", False),
        (_batch("Failed"), "Completed", False),
        (_batch(deleted=True), "Running", False),
        (None, "Running", False),
    ],
)
def test_a_batch_job_between_two_pods_keeps_its_queue(batch: Json | None, group: str, kept: bool) -> None:
    owned = _group(group, owner="u", version="batch/v1")
    work = work_in("q", jobs=[], groups=[owned], batch_jobs=[batch] if batch else [])
    assert bool(work.text) is kept


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue", "Running", "Unknown", "Completed"])
def test_a_group_of_nobody_keeps_its_queue_until_it_is_completed(phase: str, deleted: bool) -> None:
    work = work_in("q", jobs=[], groups=[_group(phase, deleted=deleted)])
    assert bool(work.text) is (phase != "Completed" and not deleted)


def test_what_is_in_a_namespace_that_is_deleted_goes_with_it() -> None:
    jobs, groups = [_job()], [_group("Running", owner="u"), _group("Pending")]
    assert work_in("q", jobs=jobs, groups=groups).text == "2 PodGroups (1 Running, 1 Pending): Job ns/j, PodGroup ns/g"
    assert work_in("q", jobs=jobs, groups=groups, leaving=lambda name: name == "ns") == QueueWork()


def test_the_text_names_some_jobs() -> None:
    jobs = [{**_job(uid=str(n)), "metadata": {"name": f"j{n}", "namespace": "ns", "uid": str(n)}} for n in range(7)]
    work = work_in("q", jobs=jobs, groups=[_group("Running", running=3)])
    named = ", ".join(f"ns/j{n} Running" for n in range(5))
    assert work.text == f"1 PodGroups (1 Running): PodGroup ns/g and 7 unfinished Jobs ({named}, 2 more)"
    assert work.placed == 3
    assert names_work(f"queue q can not be deleted because it has {work.text}")
    assert not names_work("queue q can not be deleted because it has 1 child queues: a")


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("phase", ["", "Running", "Completed"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("group", [None, "Running", "Completed"])
@pytest.mark.parametrize(
    ("node", "pod_phase", "holds"),
    [("", "Pending", False), ("n", "Pending", True), ("n", "Running", True), ("n", "Unknown", True),
     ("n", "Succeeded", False), ("n", "Failed", False)],
)  # fmt: skip
def test_pods_on_nodes_keep_their_queue_whatever_has_become_of_their_job(
    deleted: bool, phase: str, stored: bool, group: str | None, node: str, pod_phase: str, holds: bool
) -> None:
    jobs = [_job(phase, deleted=deleted)] if stored else []
    groups = [_group(group, owner="u")] if group is not None else []
    pod = _pod(node, pod_phase, owner="u", group=groups[0]["metadata"]["name"] if groups else "gone")
    work = work_in("q", jobs=jobs, groups=groups, pods=[pod])
    needed = stored and not deleted and phase != "Completed"
    assert work.held == ({"Job ns/j": 1} if holds and not needed else {})
    assert work.placed == holds
    assert bool(work.text) is (holds or needed)
    assert names_work(f"because it has {work.text}") is bool(work.text)
    assert work_in("other", jobs=jobs, groups=groups, pods=[pod]) == QueueWork()
    leaving = work_in("q", jobs=jobs, groups=groups, pods=[pod], leaving=lambda name: True)
    assert bool(leaving.text) is holds


def test_the_group_of_a_pod_says_its_queue_and_else_its_annotations_do() -> None:
    pod = _pod("n", "Running", group="g")
    moved = {**_group("Completed", queue="other"), "metadata": {"name": "g", "namespace": "ns", "uid": "g"}}
    assert work_in("q", jobs=[], groups=[moved], pods=[pod]).text == ""
    assert work_in("q", jobs=[], groups=[], pods=[pod]).text == "1 Pods that still hold nodes (1 of Pod ns/p)"
    pod["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "q"}
    assert work_in("q", jobs=[], groups=[], pods=[pod, pod]).placed == 2
    pod["metadata"]["annotations"] = {}
    assert work_in("q", jobs=[], groups=[], pods=[pod]) == QueueWork()


def test_no_shape_of_an_object_is_presumed() -> None:
    odd: list[Any] = [None, 7, "x", [], [7], {}, {"phase": 7}]
    for metadata, spec, status in itertools.product(odd, repeat=3):
        thing: Json = {"metadata": metadata, "spec": spec, "status": status}
        work_in("default", jobs=[thing], groups=[thing], batch_jobs=[thing], pods=[thing]).text.strip()
    owned: Json = {"metadata": {"ownerReferences": [7, {"controller": True}]}, "status": {"conditions": [7]}}
    work_in("default", jobs=[owned], groups=[owned], batch_jobs=[owned], pods=[owned])
