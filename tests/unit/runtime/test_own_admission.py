"""Pods and PodGroups of Jobs, which nobody else is asked about, are judged before they are created."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api import names
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.own_admission import OwnAdmission

OWNER: Json = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": "j", "uid": "u", "controller": True}


def judged(*queues: Json, job: Json | None = None) -> OwnAdmission:
    known: Cache[Json] = Cache()
    for number, queue in enumerate(queues):
        known.put({**queue, "metadata": {"uid": f"q-{number}", "resourceVersion": "1", **queue["metadata"]}})
    jobs: Cache[Json] = Cache()
    if job is not None:
        jobs.put(job)
    return OwnAdmission(known, jobs, schedulers=("volcano",))


def queue(name: str, *, state: str = "Open", allowed: str | None = None, parent: str = "root") -> Json:
    notes = {} if allowed is None else {names.ALLOWED_NAMESPACES: allowed}
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"parent": parent}, "status": {"state": state}}


def group(owner: Json | None = OWNER, **spec: Any) -> Json:
    owners = [owner] if owner is not None else []
    metadata = {"name": "j-u", "namespace": "team-a", "ownerReferences": owners}
    return {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": metadata,
            "spec": {"queue": "q", **spec}}  # fmt: skip


def pod(budget: str, *, owner: Json | None = OWNER, scheduler: str = "volcano") -> Json:
    owners = [owner] if owner is not None else []
    metadata = {"name": "p", "annotations": {names.JDB_MIN_AVAILABLE: budget}, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": PODS.kind, "metadata": metadata, "spec": {"schedulerName": scheduler}}


@pytest.mark.parametrize(
    ("known", "refused"),
    [
        (queue("q"), ""),
        (queue("q", state=""), ""),
        (queue("q", allowed="team-*"), ""),
        (queue("q", allowed="others"), "namespace `team-a` may not submit to queue `q`"),
        (queue("q", state="Closed"), "can only submit PodGroup to queue with state `Open`"),
        (queue("q", state="Closing"), "can only submit PodGroup to queue with state `Open`"),
        (queue("other"), ""),
    ],
)
def test_the_queue_takes_the_pod_group_now(known: Json, refused: str) -> None:
    said = judged(known).of_pod_group(group())
    assert said.startswith(refused) and bool(said) is bool(refused)
    assert judged(known).of_pod_group(group(None)) == "", "the service is asked about it"


def test_the_queues_above_allow_the_namespace_too() -> None:
    said = judged(queue("q", parent="p"), queue("p", allowed="others")).of_pod_group(group())
    assert "may not submit to queue `p`" in said


def test_a_closing_queue_takes_the_next_attempt_of_a_job_that_it_took() -> None:
    job = {
        "metadata": {"name": "j", "namespace": "team-a", "uid": "u", "resourceVersion": "1"},
        "spec": {"queue": "q"},
        "status": {"state": {"phase": "Restarting"}, "retryCount": 1},
    }
    assert judged(queue("q", state="Closing"), job=job).of_pod_group(group()) == ""
    gone = {**job, "status": {"state": {"phase": "Completed"}}}
    assert judged(queue("q", state="Closing"), job=gone).of_pod_group(group()) != ""


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (pod("2"), False),
        (pod("0"), True),
        (pod("0", scheduler="other"), False),
        (pod("0", owner=None), False),
        (pod("0", owner={**OWNER, "apiVersion": "batch/v1"}), False),
    ],
)
def test_a_plugin_that_writes_a_budget_on_pods_writes_one(body: Json, refused: bool) -> None:
    assert bool(judged().of_pod(body)) is refused
