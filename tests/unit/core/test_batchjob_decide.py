"""What a Job of Kubernetes does, rule by rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.batch_world import LABELS, START, UID, BatchWorld, Stale, is_tracked
from vcbatch.api.batch_job import BatchJob
from vcbatch.api.names import COMPLETION_INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, POD_TRACKING
from vcbatch.core.batchjob.decide import TABLE, Standing, Verb, standing_of
from vcbatch.core.batchjob.indexes import Indexes
from vcbatch.core.batchjob.tries import wait_after

Json = dict[str, Any]


def indexed(count: int, **spec: Any) -> BatchWorld:
    return BatchWorld(completionMode="Indexed", completions=count, **{"parallelism": count, **spec})


def fail_all(world: BatchWorld, **ending: Any) -> None:
    for uid in world.active():
        world.end(uid, "Failed", **ending)
    world.settle()


def finish(world: BatchWorld) -> None:
    """What was deleted ends."""
    for uid in list(world.pods):
        if world.pods[uid]["metadata"].get("deletionTimestamp") and world.pods[uid]["spec"].get("nodeName"):
            world.end(uid, "Failed")
    world.settle()


# Standings


@pytest.mark.parametrize(
    ("job", "standing"),
    [
        ({}, Standing.RUNNING),
        ({"spec": {"suspend": True}}, Standing.SUSPENDED),
        ({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, Standing.FOREIGN),
        ({"spec": {"managedBy": "kubernetes.io/job-controller"}}, Standing.RUNNING),
        ({"status": {"conditions": [{"type": "FailureTarget", "status": "True"}]}}, Standing.FAILING),
        ({"status": {"conditions": [{"type": "FailureTarget", "status": "False"}]}}, Standing.RUNNING),
        ({"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}}, Standing.SUCCEEDING),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, Standing.FINISHED),
        ({"status": {"conditions": [{"type": "Failed", "status": "True"}]}, "spec": {"suspend": True}}, "Finished"),
        ({"metadata": {"deletionTimestamp": "2026-11-22T12:00:00Z"}}, Standing.DELETING),
    ],
)
def test_the_standing_is_read_from_the_job_alone(job: Json, standing: str) -> None:
    assert standing_of(BatchJob.parse(job)) == standing


def test_every_standing_has_its_verb_and_every_verb_a_standing() -> None:
    assert set(TABLE) == set(Standing)
    assert set(TABLE.values()) == set(Verb)


# Running


def test_a_pod_carries_what_the_template_says_and_is_tracked() -> None:
    world = BatchWorld()
    world.settle()
    (pod,) = world.pods.values()
    assert pod["metadata"]["generateName"] == "j-"
    assert pod["metadata"]["labels"] == LABELS
    assert pod["metadata"]["finalizers"] == [POD_TRACKING]
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": UID,
            "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip
    assert world.status["startTime"] == "2026-11-22T12:00:00Z"
    assert world.status["active"] == 1
    assert world.reported("SuccessfulCreate") == [f"Created pod: {world.created[0]}"]


def test_it_completes_when_enough_have_succeeded() -> None:
    world = BatchWorld(parallelism=2, completions=3)
    world.settle()
    for _ in range(3):
        world.end(world.active()[0], "Succeeded")
        world.settle()
    assert world.conditions == ["SuccessCriteriaMet", "Complete"]
    assert world.reason("Complete") == "CompletionsReached"
    assert world.status["succeeded"] == 3
    assert world.status["completionTime"] == "2026-11-22T12:00:00Z"
    assert len(world.created) == 3
    assert world.reported("Completed") == ["Job completed"]


def test_without_completions_one_success_ends_it_when_the_others_have_ended() -> None:
    world = BatchWorld(parallelism=3, completions=None)
    world.settle()
    first, second, third = world.active()
    world.end(first, "Succeeded")
    world.settle()
    assert len(world.active()) == 2
    assert not world.conditions
    world.end(second, "Failed")
    world.end(third, "Succeeded")
    world.settle()
    assert world.finished == "Complete"
    assert (world.status["succeeded"], world.status["failed"]) == (2, 1)


def test_a_job_of_no_completions_is_complete_at_once() -> None:
    world = BatchWorld(completions=0, parallelism=1)
    world.settle()
    assert world.finished == "Complete"
    assert not world.created


def test_more_failures_than_the_limit_fail_it_and_end_the_other_pods() -> None:
    world = BatchWorld(parallelism=2, completions=2, backoffLimit=0)
    world.settle()
    failing, other = world.active()
    world.start(other)
    world.end(failing, "Failed")
    world.settle()
    assert world.conditions == ["FailureTarget"]
    assert world.status["terminating"] == 1
    finish(world)
    assert world.finished == "Failed"
    assert world.reason("Failed") == "BackoffLimitExceeded"
    assert world.status["failed"] == 2
    assert world.reported("BackoffLimitExceeded") == ["Job has reached the specified backoff limit"]


def test_restarts_in_place_count_towards_the_limit() -> None:
    world = BatchWorld(restart_policy="OnFailure", backoffLimit=2)
    world.settle()
    (pod,) = world.active()
    world.start(pod, restarts=1)
    world.settle()
    assert not world.conditions
    world.start(pod, restarts=2)
    world.settle()
    assert world.reason("FailureTarget") == "BackoffLimitExceeded"


def test_each_failure_in_a_row_is_waited_after_for_twice_as_long() -> None:
    world = BatchWorld(backoffLimit=6)
    world.settle()
    for seconds in (10, 20, 40):
        fail_all(world)
        assert not world.active()
        world.pass_time(seconds=seconds - 1)
        assert not world.active()
        world.pass_time(seconds=1)
        assert len(world.active()) == 1


def test_a_success_ends_the_row() -> None:
    world = BatchWorld(parallelism=1, completions=3)
    world.settle()
    fail_all(world)
    world.pass_time(seconds=10)
    world.now += timedelta(seconds=1)
    world.end(world.active()[0], "Succeeded")
    world.settle()
    assert len(world.active()) == 1


@pytest.mark.parametrize(("failures", "seconds"), [(1, 10), (2, 20), (6, 320), (7, 600), (8, 600), (2**31, 600)])
def test_the_wait_grows_to_ten_minutes(failures: int, seconds: int) -> None:
    assert wait_after(failures) == timedelta(seconds=seconds)


def test_a_deadline_ends_it() -> None:
    world = BatchWorld(activeDeadlineSeconds=30)
    assert world.settle().requeue_at == START + timedelta(seconds=30)
    world.pass_time(seconds=29)
    assert not world.conditions
    world.pass_time(seconds=1)
    assert world.reason("Failed") == "DeadlineExceeded"


def test_fewer_are_wanted_the_least_useful_go_uncounted() -> None:
    world = BatchWorld(parallelism=3, completions=9)
    world.settle()
    running, *pending = world.active()
    world.start(running)
    world.change(parallelism=1)
    world.settle()
    assert world.active() == [running]
    assert not any(uid in world.pods for uid in pending)
    assert world.status.get("failed", 0) == 0
    assert len(world.reported("SuccessfulDelete")) == 2


def test_more_are_wanted_more_are_made() -> None:
    world = BatchWorld(parallelism=1, completions=9)
    world.settle()
    world.change(parallelism=4)
    world.settle()
    assert len(world.active()) == 4


def test_a_pod_that_ends_just_when_it_is_to_go_is_counted() -> None:
    world = BatchWorld(parallelism=2, completions=9)
    world.settle()
    for uid in world.active():
        world.start(uid)
        world.report(uid)
    world.change(parallelism=0)
    world.end(world.active()[0], "Succeeded")
    with pytest.raises(Stale):
        world.reconcile()
    world.settle()
    assert world.status["succeeded"] == 1


# Suspension


def test_a_suspended_job_has_no_pods_and_no_start() -> None:
    world = BatchWorld(suspend=True, activeDeadlineSeconds=5)
    world.pass_time(seconds=60)
    assert world.status == {
        "conditions": [
            {
                "type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended",
                "lastProbeTime": "2026-11-22T12:00:00Z", "lastTransitionTime": "2026-11-22T12:00:00Z",
            }
        ],
        "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    }  # fmt: skip
    assert world.reported("Suspended") == ["Job suspended"]


def test_it_is_suspended_and_resumed_without_a_failure_and_with_a_new_deadline() -> None:
    world = BatchWorld(parallelism=2, completions=2, activeDeadlineSeconds=100)
    world.settle()
    world.start(world.active()[0])
    world.pass_time(seconds=90)
    world.change(suspend=True)
    world.settle()
    finish(world)
    assert not world.pods
    assert "startTime" not in world.status
    world.pass_time(seconds=90)
    world.change(suspend=False)
    world.settle()
    assert len(world.active()) == 2
    assert world.status["startTime"] == "2026-11-22T12:03:00Z"
    assert world.status.get("failed", 0) == 0
    assert world.reported("Resumed") == ["Job resumed"]
    world.pass_time(seconds=99)
    assert not world.conditions


# Deleted pods


@pytest.mark.parametrize(("policy", "at_once"), [("TerminatingOrFailed", True), ("Failed", False)])
def test_a_deleted_pod_is_replaced_at_once_or_when_it_has_ended(policy: str, at_once: bool) -> None:
    world = BatchWorld(podReplacementPolicy=policy)
    world.settle()
    (pod,) = world.active()
    world.start(pod)
    world.delete(pod)
    world.pass_time(seconds=10)
    assert bool(world.active()) is at_once
    assert world.status.get("failed", 0) == int(at_once)
    world.end(pod, "Failed")
    world.pass_time(seconds=10)
    assert len(world.active()) == 1
    assert world.status["failed"] == 1


def test_a_deleted_job_holds_no_pod_back() -> None:
    world = BatchWorld(parallelism=2, completions=2)
    world.settle()
    world.end(world.active()[0], "Succeeded")
    world.job["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    world.settle()
    assert world.status["succeeded"] == 1
    assert not any(is_tracked(pod) for pod in world.pods.values())
    assert len(world.created) == 2


# Indexes


def test_each_index_has_its_pod() -> None:
    world = indexed(3, parallelism=2)
    world.settle()
    assert [world.index(uid) for uid in world.active()] == [0, 1]
    pod = world.pods[world.active()[1]]
    assert pod["metadata"]["labels"][COMPLETION_INDEX] == pod["metadata"]["annotations"][COMPLETION_INDEX] == "1"
    assert pod["metadata"]["generateName"] == "j-1-"
    assert pod["spec"]["hostname"] == "j-1"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
    world.end(world.active()[1], "Succeeded")
    world.settle()
    assert [world.index(uid) for uid in world.active()] == [0, 2]
    assert world.status["completedIndexes"] == "1"


def test_an_index_counts_once_and_one_pod_of_two_goes() -> None:
    world = indexed(2)
    world.settle()
    twin = world.add_pod(
        "twin",
        labels=LABELS,
        annotations={COMPLETION_INDEX: "0"},
        finalizers=[POD_TRACKING],
        ownerReferences=[{"kind": "Job", "uid": UID, "controller": True}],
    )
    world.settle()
    assert sorted(world.index(uid) for uid in world.active()) == [0, 1]
    assert (twin in world.pods) != ("pod-1" in world.pods)


def test_a_job_that_shrinks_forgets_the_indexes_beyond() -> None:
    world = indexed(5)
    world.settle()
    world.end(next(uid for uid in world.active() if world.index(uid) == 4), "Succeeded")
    world.settle()
    assert world.status["completedIndexes"] == "4"
    world.change(completions=2, parallelism=2)
    world.settle()
    assert world.status.get("completedIndexes") is None
    assert sorted(world.index(uid) for uid in world.active()) == [0, 1]


def test_an_index_that_fails_too_often_is_given_up_and_the_others_go_on() -> None:
    world = indexed(2, backoffLimitPerIndex=1)
    world.settle()
    world.end(next(uid for uid in world.active() if world.index(uid) == 0), "Failed")
    world.settle()
    held = [pod for pod in world.pods.values() if is_tracked(pod) and pod["status"]["phase"] == "Failed"]
    assert len(held) == 1, "its successor needs its count"
    assert world.status.get("failed", 0) == 0
    world.pass_time(seconds=10)
    second = next(uid for uid in world.active() if world.index(uid) == 0)
    assert world.pods[second]["metadata"]["annotations"][INDEX_FAILURES] == "1"
    assert world.status["failed"] == 1
    world.end(second, "Failed")
    world.settle()
    assert world.status["failedIndexes"] == "0"
    assert not world.conditions
    world.end(world.active()[0], "Succeeded")
    world.settle()
    assert world.finished == "Failed"
    assert world.reason("Failed") == "FailedIndexes"
    assert (world.status["failed"], world.status["succeeded"]) == (2, 1)


def test_an_index_that_waits_does_not_hold_up_the_next() -> None:
    world = indexed(2, parallelism=1, backoffLimitPerIndex=3)
    world.settle()
    fail_all(world)
    assert [world.index(uid) for uid in world.active()] == [1]


def test_too_many_failed_indexes_end_it() -> None:
    world = indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=1)
    world.settle()
    for uid in world.active()[:2]:
        world.end(uid, "Failed")
        world.settle()
    assert world.reason("Failed") == "MaxFailedIndexesExceeded"
    assert world.status["failedIndexes"] == "0,1"


# Policies


def _rule(action: str, *, codes: list[int] | None = None, condition: str = "") -> Json:
    if codes is not None:
        return {"action": action, "onExitCodes": {"operator": "In", "values": codes}}
    return {"action": action, "onPodConditions": [{"type": condition, "status": "True"}]}


def test_an_exit_code_fails_the_job() -> None:
    world = BatchWorld(podFailurePolicy={"rules": [_rule("FailJob", codes=[42])]}, backoffLimit=6)
    world.settle()
    (pod,) = world.active()
    name = world.pods[pod]["metadata"]["name"]
    fail_all(world, code=42)
    assert world.reason("Failed") == "PodFailurePolicy"
    text = f"Container main for pod ns/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert world.reported("PodFailurePolicy") == [text]


def test_an_ignored_failure_counts_for_nothing_and_is_replaced() -> None:
    rules = [_rule("Ignore", condition="DisruptionTarget"), _rule("FailJob", codes=[137])]
    world = BatchWorld(podFailurePolicy={"rules": rules}, backoffLimit=0)
    world.settle()
    fail_all(world, code=137, condition="DisruptionTarget")
    world.pass_time(seconds=10)
    assert len(world.active()) == 1
    assert world.status.get("failed", 0) == 0
    assert not any(is_tracked(pod) for pod in world.pods.values() if pod["status"]["phase"] == "Failed")


def test_a_rule_gives_an_index_up() -> None:
    world = indexed(2, backoffLimitPerIndex=5, podFailurePolicy={"rules": [_rule("FailIndex", codes=[7])]})
    world.settle()
    world.end(world.active()[0], "Failed", code=7)
    world.settle()
    assert world.status["failedIndexes"] == "0"


def test_ignored_failures_of_an_index_are_told_apart() -> None:
    world = indexed(
        1, backoffLimitPerIndex=0, podFailurePolicy={"rules": [_rule("Ignore", condition="DisruptionTarget")]}
    )
    world.settle()
    fail_all(world, condition="DisruptionTarget")
    world.pass_time(seconds=10)
    (pod,) = world.active()
    annotations = world.pods[pod]["metadata"]["annotations"]
    assert (annotations[INDEX_FAILURES], annotations[INDEX_IGNORED_FAILURES]) == ("0", "1")


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ({"succeededIndexes": "0"}, 0),
        ({"succeededCount": 1}, 0),
        ({"succeededIndexes": "0,2-3", "succeededCount": 1}, 0),
        ({"succeededIndexes": "1-3", "succeededCount": 1}, None),
        ({"succeededIndexes": "0,1"}, None),
    ],
)
def test_success_may_be_enough_before_all_have_succeeded(rule: Json, place: int | None) -> None:
    world = indexed(4, successPolicy={"rules": [rule]})
    world.settle()
    world.end(world.active()[0], "Succeeded")
    world.settle()
    assert (world.finished == "Complete") is (place is not None)
    if place is not None:
        assert world.reason("Complete") == "SuccessPolicy"
        assert world.status["succeeded"] == 1
        assert world.status.get("failed", 0) == 0, "what is ended by a success hasn't failed"


# Whose pods


def test_a_pod_that_fits_is_adopted_and_one_that_does_not_any_more_is_let_go() -> None:
    world = BatchWorld(parallelism=1, completions=5)
    orphan = world.add_pod("orphan", labels=LABELS)
    world.settle()
    assert world.active() == [orphan]
    assert not world.created
    assert is_tracked(world.pods[orphan])
    world.pods[orphan]["metadata"]["labels"] = {}
    world.settle()
    assert not is_tracked(world.pods[orphan])
    assert world.pods[orphan]["metadata"]["ownerReferences"] == []
    assert len(world.created) == 1


def test_a_pod_that_lost_its_mark_gets_it_back() -> None:
    world = BatchWorld()
    world.settle()
    (pod,) = world.active()
    del world.pods[pod]["metadata"]["finalizers"]
    world.settle()
    world.end(pod, "Succeeded")
    world.settle()
    assert world.finished == "Complete"


def test_what_another_controller_runs_is_left_alone() -> None:
    world = BatchWorld(managedBy="kueue.x-k8s.io/multikueue")
    world.settle()
    assert not world.status
    assert not world.created


# The end


def test_it_goes_when_its_time_is_over() -> None:
    world = BatchWorld(ttlSecondsAfterFinished=60)
    world.settle()
    world.end(world.active()[0], "Succeeded")
    assert world.settle().requeue_at == START + timedelta(seconds=60)
    world.pass_time(seconds=59)
    assert not world.job_deleted
    world.now += timedelta(seconds=1)
    world.reconcile()
    assert world.job_deleted


@pytest.mark.parametrize(
    ("text", "below", "wanted"),
    [
        ("", 5, ""),
        ("0,1", 5, "0,1"),
        ("0-2", 5, "0-2"),
        ("0-9", 5, "0-4"),
        ("3,x,1-,7", 5, "3"),
        ("2,1,0", 5, "0-2"),
        ("0-2147483646", 2**31, "0-2147483646"),
    ],
)
def test_indexes_are_read_and_written(text: str, below: int, wanted: str) -> None:
    assert str(Indexes.parse(text, below=below)) == wanted
