"""Which jobs are reconciled when a job on which others depend changes."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api.job import Job, JobPhase
from vcbatch.api.names import AFTER
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.jobs_before import JobsBefore

Json = dict[str, Any]


class Jobs:
    """A cache of jobs in one namespace, and the UIDs of the jobs that each change asks to reconcile."""

    def __init__(self) -> None:
        self.cache: Cache[Json] = Cache()
        self.before = JobsBefore(self.cache)
        self.asked: list[str] = []
        self._version = 0
        self.cache.listen(self._on_change)

    def _on_change(self, change: Any) -> None:
        self.before.note(change)
        self.asked += self.before.affected(change)

    def put(self, name: str, phase: str = "Pending", *, after: str = "", namespace: str = "ns", **status: Any) -> Json:
        self._version += 1
        uid = f"uid-{name}" if namespace == "ns" else f"uid-{namespace}-{name}"
        metadata: Json = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self._version)}
        if after:
            metadata["annotations"] = {AFTER: after}
        job: Json = {"metadata": metadata, "spec": {}, "status": {"state": {"phase": phase}, **status}}
        self.cache.put(job)
        return job

    def took(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


def test_the_jobs_behind_one_are_reconciled_when_its_phase_changes(jobs: Jobs) -> None:
    jobs.put("b", after="a")
    jobs.put("c", after="x,a:any")
    jobs.put("b", after="a", namespace="elsewhere")
    jobs.took()
    jobs.put("a")
    assert sorted(jobs.took()) == ["uid-b", "uid-c"]
    jobs.put("a", running=1)
    assert jobs.took() == []
    jobs.put("a", "Completed")
    assert sorted(jobs.took()) == ["uid-b", "uid-c"]
    jobs.put("z", "Completed")
    assert jobs.took() == []


def test_a_finished_job_is_reconciled_when_its_end_is_recorded(jobs: Jobs) -> None:
    finished = Job.parse(jobs.put("a", "Completed"))
    jobs.put("b", after="a")
    assert jobs.before.awaited(finished)
    jobs.took()
    jobs.put("b", after="a", ledger={"dependencies": [{"name": "a", "uid": "uid-a", "outcome": "Completed"}]})
    assert jobs.took() == ["uid-a"]
    jobs.put("b")
    assert jobs.took() == ["uid-a"]
    assert not jobs.before.awaited(finished)


@pytest.mark.parametrize(
    ("phase", "ledger", "awaited"),
    [
        ("Pending", {"dependencies": [{"name": "a", "uid": "uid-a"}]}, True),
        ("Pending", {"dependencies": [{"name": "a", "uid": "uid-of-an-older-one"}]}, False),
        ("Pending", {"released": True}, False),
        ("Terminated", {}, False),
        ("Aborted", {}, True),
    ],
)
def test_whether_the_end_of_a_job_is_awaited(jobs: Jobs, phase: str, ledger: Json, awaited: bool) -> None:
    finished = Job.parse(jobs.put("a", "Failed"))
    jobs.put("b", phase, after="a", ledger=ledger)
    assert jobs.before.awaited(finished) is awaited


def test_the_phase_of_a_deleted_job_is_remembered_for_those_behind_it(jobs: Jobs) -> None:
    dependent = Job.parse(jobs.put("b", after="a"))
    for name in ("a", "z"):
        jobs.put(name, "Completed")
        jobs.took()
        jobs.cache.drop(f"uid-{name}")
    others = jobs.before.others(dependent)
    assert (dict(others.existing), dict(others.deleted)) == ({}, {"uid-a": JobPhase.COMPLETED})


def test_jobs_behind_others_are_found_through_them(jobs: Jobs) -> None:
    jobs.put("a", after="c")
    jobs.put("b", after="a")
    dependent = Job.parse(jobs.put("c", after="b"))
    assert {name: other.waits_for for name, other in jobs.before.others(dependent).existing.items()} == {
        "b": ("a",),
        "a": ("c",),
        "c": ("b",),
    }
    free = Job.parse(jobs.put("free"))
    assert not jobs.before.others(free).existing
