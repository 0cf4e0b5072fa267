"""What follows from one look at a Deployment: sizes, conditions, revisions, and what is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from vcbatch.api.apps import Deployment, ReplicaSet
from vcbatch.api.names import DESIRED_REPLICAS, MAX_REPLICAS, REVISION, REVISION_HISTORY
from vcbatch.api.resources import DEPLOYMENTS, REPLICASETS
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Decision
from vcbatch.core.workload.deployment import DeploymentView, decide

Json = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web-uid", "controller": True}


def template(version: int) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": f"v{version}"}]}}


def deployment(
    replicas: int, *, version: int = 2, revision: str = "2", status: Json | None = None, **spec: Any
) -> Json:
    return {
        "metadata": {
            "name": "web",
            "namespace": "ns",
            "uid": "web-uid",
            "generation": 7,
            "resourceVersion": "100",
            "annotations": {REVISION: revision, "team": "a"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(version),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "progressDeadlineSeconds": 600,
            **spec,
        },
        "status": status or {},
    }


def replica_set(
    version: int, size: int, *, available: int | None = None, desired: int | None = None, most: int = 0, **notes: str
) -> Json:
    """Of that revision, `size` pods asked for and there."""
    shares = {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)} if desired is not None else {}
    ready = size if available is None else available
    return {
        "metadata": {
            "name": f"web-{version}",
            "namespace": "ns",
            "uid": f"web-{version}-uid",
            "generation": 1,
            "resourceVersion": str(version),
            "creationTimestamp": f"2026-11-21T11:00:0{version}Z",
            "labels": {"app": "web"},
            "annotations": {REVISION: str(version), "team": "a", **shares, **notes},
            "ownerReferences": [OWNER],
        },
        "spec": {"replicas": size, "selector": {"matchLabels": {"app": "web"}}, "template": template(version)},
        "status": {"replicas": size, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1},
    }


def reconcile(stored: Json, *sets: Json, now: datetime = NOW, **view: Any) -> Decision:
    return decide(
        DeploymentView(
            deployment=msgspec.convert(stored, Deployment),
            status=stored["status"],
            replica_sets=[msgspec.convert(each, ReplicaSet) for each in sets],
            **view,
        ),
        now=now,
    )


def sizes(decision: Decision) -> dict[str, int]:
    """The new sizes by ReplicaSet; `new` is one that is made."""
    found = {
        mark.ref.name: mark.patch["spec"]["replicas"]
        for mark in decision.marks
        if "replicas" in mark.patch.get("spec", {})
    }
    made = [create.body["spec"]["replicas"] for create in decision.creates]
    assert len(made) <= 1
    return found | ({"new": made[0]} if made else {})


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "sets", "expected"),
    [
        # the new one is made as large as the surge allows, and at most as large as is wanted
        (4, 1, 1, [replica_set(1, 4)], {"new": 1}),
        (4, "100%", 0, [replica_set(1, 4)], {"new": 4}),
        (4, 0, 1, [replica_set(1, 4)], {"new": 0}),
        (3, 0, 0, [], {"new": 3}),
        # the old one gives up what may be missing, and no more while the new pods don't serve
        (4, 1, 1, [replica_set(1, 4), replica_set(2, 1, available=0)], {"web-1": 3}),
        (4, 1, 1, [replica_set(1, 3), replica_set(2, 2, available=0)], {}),
        (4, 1, 1, [replica_set(1, 3), replica_set(2, 2)], {"web-1": 1}),
        (4, 0, 0, [replica_set(1, 4), replica_set(2, 0)], {"web-1": 3}),
        (4, 0, "25%", [replica_set(1, 3), replica_set(2, 0)], {"web-2": 1}),
        (4, "10%", "10%", [replica_set(1, 4), replica_set(2, 0)], {"web-2": 1}),
        # what serves nobody anyway goes first, from the oldest on
        (4, 1, 1, [replica_set(1, 2, available=0), replica_set(3, 3), replica_set(2, 0)], {"web-1": 0}),
        # a new one that is too large
        (2, 1, 1, [replica_set(2, 4)], {"web-2": 2}),
        (2, 1, 1, [replica_set(2, 2)], {}),
    ],
)  # fmt: skip
def test_a_rollout_goes_step_by_step(
    replicas: int, surge: Any, unavailable: Any, sets: list[Json], expected: dict[str, int]
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    assert sizes(reconcile(deployment(replicas, strategy=rolling), *sets)) == expected


@pytest.mark.parametrize(
    ("replicas", "sets", "expected"),
    [
        # one alone takes it all, in one step
        (9, [replica_set(2, 3, desired=3, most=4)], {"web-2": 9}),
        (0, [replica_set(1, 3, desired=4, most=5), replica_set(2, 2, desired=4, most=5)], {"web-1": 0, "web-2": 0}),
        # in the middle of a rollout each keeps its share, and the largest has what rounding leaves
        (8, [replica_set(1, 3, desired=4, most=5), replica_set(2, 2, desired=4, most=5)], {"web-1": 5, "web-2": 4}),
        (2, [replica_set(1, 3, desired=4, most=5), replica_set(2, 2, desired=4, most=5)], {"web-1": 2, "web-2": 1}),
    ],
)  # fmt: skip
def test_a_new_size_is_shared_out(replicas: int, sets: list[Json], expected: dict[str, int]) -> None:
    decision = reconcile(deployment(replicas), *sets)
    assert sizes(decision) == expected
    shares = [mark.patch["metadata"]["annotations"][DESIRED_REPLICAS] for mark in decision.marks]
    assert shares == [str(replicas)] * len(sets)


def test_recreate_waits_for_the_last_old_pod() -> None:
    stored = deployment(2, strategy={"type": "Recreate"})
    assert sizes(reconcile(stored, replica_set(1, 2))) == {"web-1": 0}
    emptied = replica_set(1, 0)
    assert sizes(reconcile(stored, emptied, pods={"web-1-uid": 1})) == {}
    assert sizes(reconcile(stored, emptied, pods={"web-1-uid": 0})) == {"new": 2}


def condition(decision: Decision, kind: str = "Progressing") -> tuple[str, str]:
    assert decision.status is not None
    found = next(each for each in decision.status.status["conditions"] if each["type"] == kind)
    return found["status"], found["reason"]


def held(reason: str, status: str = "True", *, seconds: float = 0, **counts: int) -> Json:
    moment = format_time(NOW - timedelta(seconds=seconds))
    entry = {"type": "Progressing", "status": status, "reason": reason, "lastUpdateTime": moment}
    return {"conditions": [entry | {"lastTransitionTime": moment}], **counts}


STUCK = [replica_set(1, 1), replica_set(2, 2, available=0)]
COUNTS = {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("stored", "sets", "expected"),
    [
        (deployment(2, revision="1"), STUCK, ("True", "NewReplicaSetCreated")),
        (deployment(2, version=1, revision="2"), STUCK, ("True", "FoundNewReplicaSet")),
        (deployment(2, status=held("NewReplicaSetCreated")), STUCK, ("True", "ReplicaSetUpdated")),
        (deployment(2, status=held("ReplicaSetUpdated", seconds=599, **COUNTS)), STUCK, ("True", "ReplicaSetUpdated")),
        (
            deployment(2, status=held("ReplicaSetUpdated", seconds=601, **COUNTS)),
            STUCK,
            ("False", "ProgressDeadlineExceeded"),
        ),
        (
            deployment(2, status=held("ProgressDeadlineExceeded", "False", seconds=900, **COUNTS)),
            STUCK,
            ("False", "ProgressDeadlineExceeded"),
        ),
        (deployment(2, status=held("ReplicaSetUpdated")), [replica_set(2, 2)], ("True", "NewReplicaSetAvailable")),
        (
            deployment(2, status=held("NewReplicaSetAvailable", seconds=9000)),
            [replica_set(2, 2, available=0)],
            ("True", "NewReplicaSetAvailable"),
        ),
        (deployment(2, paused=True), STUCK, ("Unknown", "DeploymentPaused")),
        (deployment(2, status=held("DeploymentPaused", "Unknown")), STUCK, ("Unknown", "DeploymentResumed")),
    ],
)  # fmt: skip
def test_progress_is_told(stored: Json, sets: list[Json], expected: tuple[str, str]) -> None:
    assert condition(reconcile(stored, *sets)) == expected


def test_a_rollout_is_looked_at_again_when_its_time_is_over() -> None:
    decision = reconcile(deployment(2, status=held("ReplicaSetUpdated", seconds=100, **COUNTS)), *STUCK)
    assert decision.requeue_at == NOW + timedelta(seconds=501)
    assert reconcile(deployment(2, status=held("NewReplicaSetAvailable")), replica_set(2, 2)).requeue_at is None


def test_without_a_deadline_nothing_is_told_of_progress() -> None:
    decision = reconcile(deployment(2, progressDeadlineSeconds=2**31 - 1, status=held("ReplicaSetUpdated")), *STUCK)
    assert decision.status is not None
    assert [each["type"] for each in decision.status.status["conditions"]] == ["Available"]


def test_what_keeps_pods_or_replica_sets_from_being_made_is_repeated() -> None:
    failing = replica_set(2, 2, available=0)
    failing["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    ]
    assert condition(reconcile(deployment(2), failing), "ReplicaFailure") == ("True", "FailedCreate")
    assert condition(reconcile(deployment(2), refusal="no more of these")) == ("False", "ReplicaSetCreateError")


def test_a_template_that_comes_back_gets_the_next_number() -> None:
    decision = reconcile(deployment(2, version=1), replica_set(1, 0), replica_set(2, 2))
    notes = {mark.ref.name: mark.patch["metadata"]["annotations"] for mark in decision.marks}
    assert notes["web-1"][REVISION] == "3"
    assert notes["web-1"][REVISION_HISTORY] == "1"
    assert notes["web"] == {REVISION: "3"}
    own = next(mark for mark in decision.marks if mark.ref.resource == DEPLOYMENTS)
    assert own.subresource == "status"


def test_a_name_that_is_taken_makes_another_one() -> None:
    first = reconcile(deployment(2)).creates[0].body["metadata"]["name"]
    taken = reconcile(deployment(2), taken=lambda name: name == first)
    assert not taken.creates
    assert taken.status is not None
    assert taken.status.status["collisionCount"] == 1
    second = reconcile(deployment(2, status={"collisionCount": 1}), taken=lambda name: name == first)
    assert second.creates[0].body["metadata"]["name"] != first


def test_old_replica_sets_are_kept_up_to_the_limit() -> None:
    olds = [replica_set(number, 0) for number in (1, 3, 4)]
    full = replica_set(5, 1, available=0)
    decision = reconcile(deployment(1, revisionHistoryLimit=1), *olds, replica_set(2, 1))
    assert [delete.ref.name for delete in decision.deletes] == ["web-1", "web-3"]
    assert not reconcile(deployment(1, revisionHistoryLimit=1), *olds, full, replica_set(2, 1)).deletes
    assert not reconcile(deployment(1), *olds, replica_set(2, 1)).deletes


def test_the_new_replica_set_carries_what_the_deployment_says() -> None:
    body = reconcile(deployment(3)).creates[0].body
    digest = body["metadata"]["labels"]["pod-template-hash"]
    assert body["metadata"]["name"] == f"web-{digest}"
    assert body["metadata"]["annotations"] == {"team": "a", REVISION: "1", DESIRED_REPLICAS: "3", MAX_REPLICAS: "4"}
    assert body["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": digest}}
    assert body["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": digest}


def test_one_that_is_being_deleted_is_only_counted() -> None:
    stored = deployment(5)
    stored["metadata"]["deletionTimestamp"] = format_time(NOW)
    decision = reconcile(stored, replica_set(2, 2))
    assert decision.status is not None
    assert decision.status.status["replicas"] == 2
    assert not (decision.marks or decision.creates or decision.deletes)


def test_replica_sets_are_adopted_and_let_go() -> None:
    orphan, stray = replica_set(2, 2), replica_set(1, 0)
    orphan["metadata"]["ownerReferences"] = []
    stray["metadata"]["labels"] = {"app": "other"}
    marks = {
        mark.ref.name: mark
        for mark in reconcile(deployment(2), orphan, stray).marks
        if mark.ref.resource == REPLICASETS
    }
    assert [each["uid"] for each in marks["web-2"].patch["metadata"]["ownerReferences"]] == ["web-uid"]
    assert marks["web-1"].patch == {"metadata": {"ownerReferences": []}}
    assert {mark.version for mark in marks.values()} == {"1", "2"}
