"""The pods and the PodGroup of a job, whole: what is created, and the exact patch where one exists already."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.job_world import Json, job_object, task
from vcbatch.api.job import Job
from vcbatch.api.names import ATTEMPT
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.resources import PODGROUPS, PODS
from vcbatch.core.job import podgroup
from vcbatch.core.job.ledger import read_ledger
from vcbatch.core.job.plan import Plan, plan_of
from vcbatch.core.job.plugins import load
from vcbatch.core.job.pods import creates
from vcbatch.core.machine import Create, Ensure, ObjectRef, ref_of

OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "j",
    "uid": "u",
    "controller": True,
    "blockOwnerDeletion": True,
}


def planned(*tasks: Json, metadata: Json | None = None, status: Json | None = None, **spec: Any) -> Plan:
    job = job_object(tasks=list(tasks), uid="u", **spec)
    job["metadata"] |= metadata or {}
    job["status"] = status or {}
    return plan_of(Job.parse(job))


def small(name: str, replicas: int, *, template: Json | None = None, **spec: Any) -> Json:
    """A task of pods that ask for nothing."""
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [{"name": "main"}]}}, **spec} | (
        {"template": template} if template else {}
    )


# Pods ----------------------------------------------------------------------------------------------------------------


def made(plan: Plan, name: str, *indices: int) -> list[Create]:
    return list(creates(plan, read_ledger(plan), load(plan), task=plan.tasks[name], indices=indices))


def pod_of(index: int) -> Json:
    labels = {
        "volcano.sh/job-name": "j",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": str(index),
        "volcano.sh/queue-name": "default",
    }
    annotations = {
        "scheduling.k8s.io/group-name": "j-u",
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": "w",
        "volcano.sh/task-index": str(index),
        "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "2",
        "volcano.sh/job-retry-count": "3",
        "volcano.sh/template-uid": "j-w",
    }
    metadata = {"name": f"j-w-{index}", "namespace": "ns", "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [OWNER]},
        "spec": {"containers": [{"name": "main"}], "schedulerName": "volcano"},
    }


STATUS = {"version": 2, "retryCount": 3}


def test_pods_are_made_lowest_index_first() -> None:
    plan = planned(small("w", 12), status=STATUS)
    assert made(plan, "w", 11, 2) == [Create(resource=PODS, body=pod_of(2)), Create(resource=PODS, body=pod_of(11))]


@pytest.mark.parametrize(("index", "partition"), [(0, "0"), (1, "0"), (2, "1"), (5, "2")])
def test_a_pod_knows_its_partition(index: int, partition: str) -> None:
    policy = {"totalPartitions": 3, "partitionSize": 2}
    (create,) = made(planned(small("w", 6, partitionPolicy=policy), status=STATUS), "w", index)
    wanted = pod_of(index)
    wanted["metadata"]["labels"]["volcano.sh/partition-id"] = partition
    assert create.body == wanted


def test_partitions_of_one_pod() -> None:
    (create,) = made(planned(small("w", 2, partitionPolicy={"totalPartitions": 2, "partitionSize": 1})), "w", 1)
    assert create.body["metadata"]["labels"]["volcano.sh/partition-id"] == "1"


def test_which_scheduler_pods_are_for() -> None:
    own: Json = {"spec": {"containers": [{"name": "main"}], "schedulerName": "own"}}
    plan = planned(small("a", 1), small("b", 1, template=own), schedulerName="job-s")
    (a,), (b,) = made(plan, "a", 0), made(plan, "b", 0)
    assert (a.body["spec"]["schedulerName"], b.body["spec"]["schedulerName"]) == ("job-s", "own")
    ensured = podgroup.ensure(plan, None, {}, out={})
    assert ensured is not None
    assert ensured.body["metadata"]["annotations"] == {"vcbatch.dev/schedulers": "job-s,own"}


def test_pods_carry_the_marks_of_their_job_that_the_scheduler_reads() -> None:
    marks = {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5s", "volcano.sh/revocable-zone": "z"}
    budget = {"volcano.sh/jdb-max-unavailable": "1"}
    metadata = {"annotations": {**marks, **budget, "mine": "a"}, "labels": {**marks, "mine": "b"}}
    (create,) = made(planned(small("w", 1), metadata=metadata, status=STATUS), "w", 0)
    wanted = pod_of(0)
    wanted["metadata"]["annotations"] |= {**marks, **budget}
    wanted["metadata"]["labels"] |= {key: marks[key] for key in ("volcano.sh/preemptable", "volcano.sh/cooldown-time")}
    assert create.body == wanted


@pytest.mark.parametrize(
    ("queue", "labelled"), [("q" * 63, True), ("q" * 64, False), ("a.b_C-9", True), ("q-", False), ("q", True)]
)
def test_a_queue_is_a_label_where_it_can_be_one(queue: str, labelled: bool) -> None:
    (create,) = made(planned(small("w", 1), queue=queue), "w", 0)
    assert create.body["metadata"]["labels"].get("volcano.sh/queue-name") == (queue if labelled else None)
    assert create.body["metadata"]["annotations"]["volcano.sh/queue-name"] == queue


# The PodGroup --------------------------------------------------------------------------------------------------------


def group_of(spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "j-u", "namespace": "ns", "ownerReferences": [OWNER], **metadata},
        "spec": spec,
    }


def stored(plan: Plan, *, metadata: Json | None = None, phase: str = "", **spec: Any) -> PodGroup:
    """The group as it would be made, with these fields of its spec changed (None: removed)."""
    made_now = podgroup.ensure(plan, None, {}, out={})
    assert made_now is not None
    body = dict(made_now.body)
    changed = {**body["spec"], **spec}
    body["spec"] = {key: value for key, value in changed.items() if value is not None}
    body["metadata"] = {**body["metadata"], "uid": "group", **(metadata or {})}
    body["status"] = {"phase": phase}
    return PodGroup.parse(body)


def patch_of(plan: Plan, group: PodGroup, *, out: dict[str, int] | None = None) -> Json:
    found = podgroup.ensure(plan, group, {}, out=out or {})
    return found.update if found is not None else {}


def test_a_plain_group() -> None:
    assert podgroup.ensure(planned(small("w", 2)), None, {}, out={}) == Ensure(
        resource=PODGROUPS,
        body=group_of(
            {
                "queue": "default",
                "minMember": 2,
                "minTaskMember": {"w": 2},
                "minResources": {"count/pods": "2", "pods": "2"},
            }
        ),
    )


def test_a_group_with_everything() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    rack = {"mode": "hard", "highestTierName": "rack"}
    plan = planned(
        small("p", 4, partitionPolicy=policy),
        small("t", 4, partitionPolicy={**policy, "networkTopology": rack}),
        small("x", 3, minAvailable=1),
        metadata={"labels": {"a": "1"}, "annotations": {"b": "2"}},
        queue="q",
        priorityClassName="high",
        networkTopology={"mode": "soft", "highestTierAllowed": 0},
    )

    def sub_group(name: str) -> Json:
        return {
            "name": name,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": name}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "subGroupSize": 2,
            "minSubGroups": 1,
        }

    ensured = podgroup.ensure(plan, None, {}, out={"x": 3, "p": 1})
    assert ensured is not None
    assert ensured.body == group_of(
        {
            "queue": "q",
            "minMember": 5,
            "minTaskMember": {"p": 2, "t": 2, "x": 0},
            "minResources": {"count/pods": "5", "pods": "5"},
            "priorityClassName": "high",
            "networkTopology": {"mode": "soft", "highestTierAllowed": 0},
            "subGroupPolicy": [sub_group("p"), {**sub_group("t"), "networkTopology": rack}],
        },
        labels={"a": "1"},
        annotations={"b": "2"},
    )


@pytest.mark.parametrize(
    ("given", "topology"),
    [
        ({"mode": "hard", "highestTierName": "rack"}, {"mode": "hard", "highestTierName": "rack"}),
        ({"highestTierAllowed": 2, "highestTierName": "rack"}, {"highestTierAllowed": 2}),
        ({"mode": "soft"}, {"mode": "soft"}),
        ({}, {}),
    ],
)
def test_a_topology_names_its_highest_tier_in_one_way(given: Json, topology: Json) -> None:
    ensured = podgroup.ensure(planned(small("w", 1), networkTopology=given), None, {}, out={})
    assert ensured is not None
    assert ensured.body["spec"]["networkTopology"] == topology


@pytest.mark.parametrize(
    ("out", "member", "members"),
    [
        ({}, 3, {"a": 2, "b": 1}),
        ({"a": 1}, 3, {"a": 2, "b": 1}),
        ({"a": 2}, 3, {"a": 1, "b": 1}),
        ({"a": 3, "b": 1}, 1, {"a": 0, "b": 1}),
        ({"a": 3, "b": 2}, 0, {"a": 0, "b": 0}),
    ],
)
def test_a_gang_asks_for_no_more_than_it_can_have(out: dict[str, int], member: int, members: dict[str, int]) -> None:
    plan = planned(small("a", 3, minAvailable=2), small("b", 2, minAvailable=1))
    ensured = podgroup.ensure(plan, None, {}, out=out)
    assert ensured is not None
    assert (ensured.body["spec"]["minMember"], ensured.body["spec"]["minTaskMember"]) == (member, members)


def test_a_group_that_is_as_it_should_be_is_left_alone() -> None:
    plan = planned(task("w", 2), metadata={"labels": {"a": "1"}}, networkTopology={"mode": "soft"})
    assert podgroup.ensure(plan, stored(plan), {}, out={}) is None
    assert podgroup.ensure(plan, stored(plan, queue="of-the-namespace"), {}, out={}) is None


CHANGES: dict[str, tuple[Json, Json, Json]] = {
    "more members": ({}, {"minMember": 1}, {"minMember": 2}),
    "a task's minimum": ({}, {"minTaskMember": {"w": 1}}, {"minTaskMember": {"w": 2}}),
    "a task that is new": ({}, {"minTaskMember": {}}, {"minTaskMember": {"w": 2}}),
    "a task that is no more": ({}, {"minTaskMember": {"w": 2, "old": 1}}, {"minTaskMember": {"old": None}}),
    "resources": (
        {},
        {"minResources": {"count/pods": "1", "pods": "2", "gpu": "1"}},
        {"minResources": {"count/pods": "2", "pods": "2", "gpu": None}},
    ),
    "no resources": ({}, {"minResources": None}, {"minResources": {"count/pods": "2", "pods": "2"}}),
    "a priority": ({"priorityClassName": "high"}, {"priorityClassName": None}, {"priorityClassName": "high"}),
    "no priority": ({}, {"priorityClassName": "high"}, {"priorityClassName": None}),
    "a topology": (
        {"networkTopology": {"mode": "hard"}},
        {"networkTopology": None},
        {"networkTopology": {"mode": "hard"}},
    ),
    "no topology": ({}, {"networkTopology": {"mode": "hard"}}, {"networkTopology": None}),
    "another topology": (
        {"networkTopology": {"mode": "hard", "highestTierName": "rack"}},
        {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}},
        {"networkTopology": {"mode": "hard", "highestTierName": "rack", "highestTierAllowed": None}},
    ),
    "no groups in the gang": ({}, {"subGroupPolicy": [{"name": "w"}]}, {"subGroupPolicy": None}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_the_patch_says_what_changed_and_no_more(case: str) -> None:
    wanted, found, patch = CHANGES[case]
    plan = planned(small("w", 2), **wanted)
    assert patch_of(plan, stored(plan, **found)) == {"spec": patch}


def test_groups_in_the_gang_are_replaced_whole() -> None:
    plan = planned(small("w", 2, partitionPolicy={"totalPartitions": 1, "partitionSize": 2, "minPartitions": 1}))
    assert patch_of(plan, stored(plan)) == {}
    (policy,) = stored(plan).spec.sub_group_policy
    assert policy.sub_group_size == 2
    assert patch_of(plan, stored(plan, subGroupPolicy=None)) == {"spec": {"subGroupPolicy": [policy.dump()]}}


def test_labels_and_annotations_of_others_stay() -> None:
    plan = planned(small("w", 1), metadata={"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}})
    foreign = {"foreign": "f"}
    group = stored(plan, metadata={"labels": {"a": "1", "b": "x", **foreign}, "annotations": foreign})
    assert patch_of(plan, group) == {"metadata": {"labels": {"b": "2"}, "annotations": {"c": "3"}}}
    group = stored(plan, metadata={"annotations": foreign})
    assert patch_of(plan, group) == {"metadata": {"annotations": {"c": "3"}}}


def test_an_update_comes_with_the_whole_object() -> None:
    """For the one who finds it gone."""
    plan = planned(small("w", 2))
    made_now = podgroup.ensure(plan, None, {}, out={})
    assert made_now is not None
    assert podgroup.ensure(plan, stored(plan, minMember=1), {}, out={}) == Ensure(
        resource=PODGROUPS, body=made_now.body, update={"spec": {"minMember": 2}}
    )


def test_a_group_is_referred_to_by_all_that_names_it() -> None:
    group = stored(planned(small("w", 1)))
    expected = ObjectRef(resource=PODGROUPS, namespace="ns", name="j-u", uid="group")
    assert ref_of(PODGROUPS, group) == ref_of(PODGROUPS, group.metadata) == expected


@pytest.mark.parametrize(
    ("phase", "lets"),
    [(None, False), ("", False), ("Pending", False), ("Inqueue", True), ("Running", True), ("Unknown", True)],
)
def test_a_gang_that_was_let_in(phase: str | None, lets: bool) -> None:
    group = None if phase is None else stored(planned(small("w", 1)), phase=phase)
    assert podgroup.lets_create(group) is lets


# What a gang needs ---------------------------------------------------------------------------------------------------


def sized(name: str, replicas: int, cpu: str, *, priority: str = "", **spec: Any) -> Json:
    pod: Json = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    if priority:
        pod["priorityClassName"] = priority
    return small(name, replicas, template={"spec": pod}, **spec)


NEEDS: dict[str, tuple[list[Json], int, str, str]] = {
    "as many as the tasks' minimums": (
        [sized("a", 3, "1", minAvailable=2), sized("b", 3, "10", minAvailable=3)],
        5,
        "5",
        "32",
    ),
    "as many as the tasks' minimums, named or not": (
        [sized("a", 3, "1", minAvailable=2), sized("b", 3, "10")],
        5,
        "5",
        "23",
    ),
    "one more": ([sized("a", 3, "1", minAvailable=2), sized("b", 3, "10", minAvailable=1)], 4, "4", "13"),
    "more than one task has": ([sized("a", 2, "1", minAvailable=1), sized("b", 4, "10", minAvailable=1)], 5, "5", "32"),
    "one less": ([sized("a", 3, "1", minAvailable=2), sized("b", 3, "10", minAvailable=2)], 3, "3", "3"),
    "less than the first has": ([sized("a", 3, "1"), sized("b", 3, "10")], 2, "2", "2"),
    "the important first": ([sized("a", 3, "1", minAvailable=1), sized("b", 3, "10", priority="high")], 5, "5", "32"),
    "no minimum named": ([sized("a", 3, "1"), sized("b", 1, "10")], 4, "4", "13"),
    "a minimum above the replicas": (
        [sized("a", 2, "1", minAvailable=3), sized("b", 2, "10", minAvailable=0)],
        4,
        "4",
        "13",
    ),
    "more than there are": ([sized("a", 2, "1", minAvailable=1), sized("b", 1, "10", minAvailable=1)], 9, "3", "12"),
}


@pytest.mark.parametrize("case", NEEDS)
def test_what_the_least_pods_of_a_gang_need(case: str) -> None:
    tasks, minimum, pods, cpu = NEEDS[case]
    plan = planned(*tasks, minAvailable=minimum)
    assert podgroup.min_resources(plan, {"high": 5}) == {
        "count/pods": pods,
        "pods": pods,
        "cpu": cpu,
        "requests.cpu": cpu,
    }


@pytest.mark.parametrize(("closing", "retries", "marked"), [(False, 1, None), (True, 0, None), (True, 2, "2")])
def test_the_group_of_a_later_attempt_says_so_to_a_closing_queue(
    closing: bool, retries: int, marked: str | None
) -> None:
    status = {"retryCount": retries}
    plan = planned(small("a", 1), metadata={"annotations": {ATTEMPT: "9"}}, status=status)
    made = podgroup.ensure(plan, None, {}, out={}, closing=closing)
    assert made is not None
    annotations = made.body["metadata"].get("annotations") or {}
    assert annotations.get(ATTEMPT) == marked, "what the job's author wrote doesn't count"
    opened = podgroup.ensure(plan, None, {}, out={})
    assert opened is not None
    stored = PodGroup.parse(opened.body)
    later = podgroup.ensure(plan, stored, {}, out={}, closing=closing)
    wanted = None if marked is None else {"metadata": {"annotations": {ATTEMPT: marked}}}
    assert (later.update if later is not None else None) == wanted
