"""Kubernetes' own CronJobs follow the rules of ours, in Kubernetes' words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.cronjob import BatchCronJob
from vcbatch.api.resources import BATCH_CRONJOBS, BATCH_JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.core.cronjob import CronJobView, decide
from vcbatch.core.machine import Decision

Json = dict[str, Any]
START = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC)
SLOT = datetime(2026, 11, 22, 12, 1, tzinfo=UTC)
NAME = f"tick-{int(SLOT.timestamp()) // 60}"
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "tick"}, "annotations": {"note": "n"}},
    "spec": {"completions": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}},
}


def reconcile(*jobs: Json, now: datetime = SLOT, status: Json | None = None, **spec: Any) -> Decision:
    cron_job = BatchCronJob.parse(
        {
            "metadata": {
                "name": "tick",
                "namespace": "ns",
                "uid": "cron-uid",
                "resourceVersion": "1",
                "creationTimestamp": format_time(START),
            },
            "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Allow", "jobTemplate": TEMPLATE, **spec},
            "status": status or {},
        }
    )
    view = CronJobView(
        cron_job=cron_job,
        jobs=[BatchJob.parse(job) for job in jobs],
        zones=lambda _name: UTC,
        rescheduled_at=START,
    )
    return decide(view, now=now)


def job(name: str, *, end: str = "", age: int = 0) -> Json:
    """A Job of the CronJob, made so many minutes before the slot."""
    made = format_time(SLOT - timedelta(minutes=age))
    status = {"conditions": [{"type": end, "status": "True", "lastTransitionTime": made}]} if end else {}
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "cron-uid", "controller": True}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "creationTimestamp": made,
        "ownerReferences": [owner],
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": made},
    }
    return {"metadata": metadata, "status": status}


def reported(decision: Decision) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in decision.events]


def test_a_slot_makes_a_job_of_the_template() -> None:
    decision = reconcile()
    (create,) = decision.creates
    assert create.resource == BATCH_JOBS
    assert create.body == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": NAME,
            "namespace": "ns",
            "labels": {"app": "tick"},
            "annotations": {
                "note": "n",
                "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-22T12:01:00Z",
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "name": "tick",
                    "uid": "cron-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": TEMPLATE["spec"],
    }
    assert reported(decision) == [("SuccessfulCreate", f"Created job {NAME}")]
    assert decision.events[0].ref.resource == BATCH_CRONJOBS


def test_the_status_has_what_kubernetes_has_and_nothing_else() -> None:
    written = reconcile(job(NAME)).status
    assert written is not None
    assert written.status == {
        "active": [{"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": NAME, "uid": f"uid-{NAME}",
                    "resourceVersion": ""}],
        "lastScheduleTime": "2026-11-22T12:01:00Z",
    }  # fmt: skip
    again = reconcile(job(NAME), status=written.status)
    assert again.nothing_to_do, "when a schedule was changed has no place in it"


def test_forbid_waits_and_says_so() -> None:
    decision = reconcile(job("tick-1", age=1), concurrencyPolicy="Forbid")
    assert not decision.creates
    assert [reason for reason, _ in reported(decision)] == ["JobAlreadyActive"]


def test_replace_deletes_the_pods_too() -> None:
    decision = reconcile(job("tick-1", age=1), concurrencyPolicy="Replace")
    assert [(delete.ref.name, delete.propagation) for delete in decision.deletes] == [("tick-1", "Background")]
    assert len(decision.creates) == 1


@pytest.mark.parametrize("policy", ["Forbid", "Replace"])
def test_what_somebody_started_at_once_is_left_alone(policy: str) -> None:
    """`kubectl create job --from=cronjob/tick`: no slot waits for it, and none ends it."""
    by_hand = job("now")
    by_hand["metadata"]["annotations"] = {"cronjob.kubernetes.io/instantiate": "manual"}
    decision = reconcile(by_hand, concurrencyPolicy=policy)
    assert [create.body["metadata"]["name"] for create in decision.creates] == [NAME]
    assert not decision.deletes
    after = reconcile(by_hand, job(NAME), concurrencyPolicy=policy)
    assert after.status is not None
    assert [entry["name"] for entry in after.status.status["active"]] == [NAME]


def test_what_somebody_started_at_once_becomes_history() -> None:
    by_hand = job("now", end="Complete", age=1)
    by_hand["metadata"]["annotations"] = {"cronjob.kubernetes.io/instantiate": "manual"}
    decision = reconcile(by_hand, job(NAME), successfulJobsHistoryLimit=0)
    assert [delete.ref.name for delete in decision.deletes] == ["now"]


def test_history_is_cut_by_outcome() -> None:
    jobs = [job(f"tick-{age}", end="Complete", age=age) for age in (3, 2, 1)]
    jobs += [job("tick-9", end="Failed", age=9), job(NAME)]
    decision = reconcile(*jobs, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    assert sorted(delete.ref.name for delete in decision.deletes) == ["tick-2", "tick-3", "tick-9"]
    assert {delete.propagation for delete in decision.deletes} == {"Background"}


def test_a_finished_job_leaves_the_active_list_with_its_outcome() -> None:
    active = [{"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": NAME, "uid": f"uid-{NAME}"}]
    decision = reconcile(job(NAME, end="Failed"), status={"active": active, "lastScheduleTime": format_time(SLOT)})
    assert decision.status is not None
    assert "active" not in decision.status.status
    assert ("SawCompletedJob", f"Saw completed job: {NAME}, condition: Failed") in reported(decision)


def test_one_that_is_suspended_still_counts_as_running() -> None:
    suspended = {**job("tick-1", age=1), "spec": {"suspend": True}}
    decision = reconcile(suspended, concurrencyPolicy="Forbid")
    assert not decision.creates
    assert "is Suspended" in reported(decision)[0][1]
