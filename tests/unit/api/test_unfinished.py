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
    assert work_in("q", jobs=jobs, groups=groups).text == "2 PodGroups (1 Running, 1 Pending)"
    assert work_in("q", jobs=jobs, groups=groups, leaving=lambda name: name == "ns") == QueueWork()


def test_the_text_names_some_jobs() -> None:
    jobs = [{**_job(uid=str(n)), "metadata": {"name": f"j{n}", "namespace": "ns", "uid": str(n)}} for n in range(7)]
    work = work_in("q", jobs=jobs, groups=[_group("Running", running=3)])
    named = ", ".join(f"ns/j{n} Running" for n in range(5))
    assert work.text == f"1 PodGroups (1 Running) and 7 unfinished Jobs ({named}, 2 more)"
    assert work.placed == 3
    assert names_work(f"queue q can not be deleted because it has {work.text}")
    assert not names_work("queue q can not be deleted because it has 1 child queues: a")


def test_no_shape_of_an_object_is_presumed() -> None:
    odd: list[Any] = [None, 7, "x", [], [7], {}, {"phase": 7}]
    for metadata, spec, status in itertools.product(odd, repeat=3):
        thing: Json = {"metadata": metadata, "spec": spec, "status": status}
        work_in("default", jobs=[thing], groups=[thing], batch_jobs=[thing]).text.strip()
    owned: Json = {"metadata": {"ownerReferences": [7, {"controller": True}]}, "status": {"conditions": [7]}}
    work_in("default", jobs=[owned], groups=[owned], batch_jobs=[owned])
