"""How a job's pods are sorted, counted and written into its status: whole values for small casts of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.support.job_world import Json, job_object
from vcbatch.api.job import Job, JobPhase
from vcbatch.api.pod import Pod
from vcbatch.api.pod_usage import pod_usage, read_of_spec
from vcbatch.core.job import kill
from vcbatch.core.job.counts import Counts, count
from vcbatch.core.job.indices import format_indices, parse_indices
from vcbatch.core.job.ledger import read_ledger
from vcbatch.core.job.plan import Plan, plan_of
from vcbatch.core.job.roster import Member, Roster, roster_of
from vcbatch.core.job.states import Retain
from vcbatch.core.job.status import Explanation, build, trimmed
from vcbatch.core.job.sync import Difference, compare

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
EARLIER = "2026-11-20T11:00:00Z"
DELETED: Json = {"deletionTimestamp": "2026-11-20T12:00:00Z"}


def planned(status: Json | None = None, *, metadata: Json | None = None, **replicas: int) -> Plan:
    tasks = [{"name": name, "replicas": number, "template": {"spec": {}}} for name, number in replicas.items()]
    job = job_object(tasks=tasks, uid="u")
    job["metadata"] |= metadata or {}
    job["status"] = status or {}
    return plan_of(Job.parse(job))


def pod(
    task: str, index: int, phase: str = "Running", *, version: int = 0, retries: int = 0, uid: str = "", **metadata: Any
) -> Pod:
    annotations = {
        "volcano.sh/task-spec": task,
        "volcano.sh/task-index": str(index),
        "volcano.sh/job-version": str(version),
        "volcano.sh/job-retry-count": str(retries),
    }
    name = f"j-{task}-{index}"
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    whole = {
        "name": name,
        "namespace": "ns",
        "uid": uid or name,
        "annotations": annotations,
        "ownerReferences": [owner],
    }
    return msgspec.convert({"metadata": whole | metadata, "spec": {}, "status": {"phase": phase}}, Pod)


def taken(given: Pod) -> Pod:
    """Failed, and about to be deleted by who made it fail."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    raw = msgspec.to_builtins(given)
    raw["status"] = {"phase": "Failed", "conditions": [condition]}
    return msgspec.convert(raw, Pod)


def names_of(roster: Roster) -> tuple[dict[str, list[int]], list[str]]:
    return {task: list(members) for task, members in roster.places.items()}, [each.name for each in roster.surplus]


# Who is who ----------------------------------------------------------------------------------------------------------


def test_pods_are_sorted_into_their_places() -> None:
    pods = [pod("b", 0), pod("a", 2), pod("a", 0), pod("b", 3), pod("a", 9), pod("a", 5)]
    assert names_of(roster_of(planned(a=3, b=1), pods)) == (
        {"a": [0, 2], "b": [0]},
        ["j-a-5", "j-a-9", "j-b-3"],
    )


def test_a_pod_whose_name_is_not_that_of_its_place_is_too_many() -> None:
    pods = [pod("a", 0, name="z"), pod("a", 0), pod("a", 0, name="b")]
    assert names_of(roster_of(planned(a=1), pods)) == ({"a": [0]}, ["b", "z"])


@pytest.mark.parametrize(
    "stranger",
    [
        pod("other", 0),
        pod("a", 0, ownerReferences=[]),
        pod("a", 0, ownerReferences=[{"kind": "Job", "name": "j", "uid": "x", "controller": True}]),
        pod("a", 0, annotations={}),
        pod("a", 0, annotations={"volcano.sh/task-spec": "a", "volcano.sh/task-index": "0"}),
        pod("a", 0, annotations={"volcano.sh/task-index": "0", "volcano.sh/job-version": "0"}),
        pod("a", 0, name="j-a-x", annotations={"volcano.sh/task-spec": "a", "volcano.sh/job-version": "0"}),
    ],
)
def test_strangers_are_left_alone(stranger: Pod) -> None:
    assert names_of(roster_of(planned(a=2), [stranger, pod("a", 1)])) == ({"a": [1]}, [])


@pytest.mark.parametrize(
    ("annotations", "member"),
    [
        ({"task-index": "1", "job-version": "2", "job-retry-count": "3"}, (1, 2, 3)),
        ({"job-version": "2"}, (1, 2, 0)),  # Volcano 1.8 has the index in the name only
        ({"task-index": "x", "job-version": "123456789", "job-retry-count": "x"}, (1, 123456789, 0)),
        ({"task-index": "1", "job-version": "1234567890"}, None),
        ({"task-index": "1", "job-version": "-1"}, None),
        ({"task-index": "1", "job-version": "\u0661"}, None),
    ],
)
def test_what_a_pod_says_of_itself(annotations: Json, member: tuple[int, int, int] | None) -> None:
    given = {"volcano.sh/task-spec": "a", **{f"volcano.sh/{key}": value for key, value in annotations.items()}}
    roster = roster_of(planned(a=2), [pod("a", 1, annotations=given)])
    assert [(each.index, each.version, each.retry_count) for each in roster.all()] == ([member] if member else [])


def test_all_members_are_those_in_a_place_and_those_beyond() -> None:
    roster = roster_of(planned(a=1, b=1), [pod("a", 0), pod("b", 0), pod("a", 1)])
    assert [member.name for member in roster.all()] == ["j-a-0", "j-b-0", "j-a-1"]
    assert [member.name for member in roster.placed()] == ["j-a-0", "j-b-0"]


def test_a_pod_without_a_phase_is_pending() -> None:
    member = Member(pod("a", 0, ""), "a", 0, 0, 0)
    assert (member.phase, member.finished, member.terminating) == ("Pending", False, False)


# Counting ------------------------------------------------------------------------------------------------------------


def counted(plan: Plan, *pods: Pod, deleting: tuple[str, ...] = (), never: tuple[str, ...] = (), **more: Any) -> Counts:
    return count(plan, roster_of(plan, pods), read_ledger(plan), deleting=deleting, creating=more, never=never)


def test_every_pod_is_counted_once() -> None:
    pods = [
        *(
            pod("a", index, phase)
            for index, phase in enumerate(("Pending", "Running", "Succeeded", "Failed", "Odd", "Odd"))
        ),
        pod("b", 0, "Pending"),
        pod("b", 1, "Pending"),
    ]
    assert counted(planned(a=6, b=2), *pods) == Counts(
        pending=3,
        running=1,
        succeeded=1,
        failed=1,
        unknown=2,
        tasks={
            "a": {"Pending": 1, "Running": 1, "Succeeded": 1, "Failed": 1, "Unknown": 2},
            "b": {"Pending": 2},
        },
    )


def test_what_is_done_stays_done_while_its_pod_goes_and_afterwards() -> None:
    plan = planned({"ledger": {"tasks": {"a": {"succeeded": "0,4", "failed": "1,5"}}}}, a=6)
    pods = [pod("a", index, phase, **DELETED) for index, phase in enumerate(("Succeeded", "Failed", "Running"))]
    assert counted(plan, *pods) == Counts(
        succeeded=2, failed=2, terminating=1, tasks={"a": {"Succeeded": 2, "Failed": 2}}
    )


def test_a_pod_that_is_about_to_be_taken_is_on_its_way_out() -> None:
    assert counted(planned(a=1), taken(pod("a", 0))) == Counts(terminating=1)


def test_what_is_about_to_be_deleted_and_made() -> None:
    plan = planned({"ledger": {"tasks": {"a": {"succeeded": "0"}}}}, a=4, b=1)
    pods = [pod("a", 0, "Succeeded"), pod("a", 1), pod("a", 2)]
    assert counted(plan, *pods, deleting=("j-a-0", "j-a-1"), a=[3], b=[0]) == Counts(
        pending=2, running=1, terminating=2, tasks={"a": {"Running": 1, "Pending": 1}, "b": {"Pending": 1}}
    )


def test_pods_beyond_the_replicas_are_counted_until_they_go() -> None:
    pods = [pod("a", 1), pod("a", 2, **DELETED), pod("a", 3), pod("a", 4, "Failed")]
    assert counted(planned(a=0), *pods, deleting=("j-a-3",)) == Counts(
        running=1, failed=1, terminating=2, tasks={"a": {"Running": 1, "Failed": 1}}
    )


def test_pods_that_are_never_made_are_blocked() -> None:
    plan = planned({"ledger": {"tasks": {"a": {"succeeded": "0-1", "failed": "2"}}}}, a=9, b=2, c=3)
    counts = counted(plan, pod("a", 0, "Succeeded"), pod("a", 3), never=("a", "b"))
    assert (counts.blocked, counts.succeeded, counts.failed, counts.running) == (7, 2, 1, 1)
    assert counts.succeeded_of("a") == 2
    assert counts.succeeded_of("c") == 0


def test_what_holds_resources_is_alive() -> None:
    assert Counts(pending=1, running=10, succeeded=100, failed=1000, unknown=10000, terminating=100000).alive == 110011


# What is made and deleted --------------------------------------------------------------------------------------------


def difference(plan: Plan, *pods: Pod, held: tuple[str, ...] = ()) -> tuple[dict[str, list[int]], list[str]]:
    found: Difference = compare(plan, roster_of(plan, pods), read_ledger(plan), held=held)
    return found.missing, [member.name for member in found.superfluous]


def test_what_is_missing_and_what_is_too_many() -> None:
    plan = planned({"ledger": {"tasks": {"a": {"succeeded": "1", "failed": "2"}}}}, a=5, b=2, c=1)
    pods = [pod("a", 0), pod("a", 7), pod("a", 8, **DELETED), pod("b", 0), pod("b", 1)]
    assert difference(plan, *pods, held=("c",)) == ({"a": [3, 4]}, ["j-a-7"])


@pytest.mark.parametrize("last", ["Succeeded", "Failed"])
def test_nothing_is_made_while_a_pod_of_an_older_attempt_is_alive(last: str) -> None:
    plan = planned({"version": 2}, a=3)
    assert difference(plan, pod("a", 0, version=1)) == ({}, ["j-a-0"])
    assert difference(plan, pod("a", 0, version=1, **DELETED)) == ({}, [])
    # One that ended keeps its own name alone.
    assert difference(plan, pod("a", 0, last, version=1), pod("a", 1, version=2)) == ({"a": [2]}, ["j-a-0"])


def test_a_part_that_is_restarted_bars_nobody_else() -> None:
    plan = planned({"retryCount": 1, "ledger": {"restarting": [{"task": "a", "retryCount": 1}]}}, a=1, b=2)
    pods = [pod("a", 0, retries=0), pod("b", 0, retries=0)]
    assert difference(plan, *pods) == ({"b": [1]}, ["j-a-0"])


@pytest.mark.parametrize(
    ("retain", "names"),
    [
        (Retain.NOTHING, ["j-a-0", "j-a-1", "j-a-2", "j-a-3"]),
        (Retain.SUCCEEDED, ["j-a-0", "j-a-2", "j-a-3"]),
        (Retain.FINISHED, ["j-a-0", "j-a-3"]),
    ],
)
def test_whom_a_kill_spares(retain: Retain, names: list[str]) -> None:
    plan = planned(a=5)
    phases = ("Running", "Succeeded", "Failed", "Pending")
    pods = [*(pod("a", index, phase) for index, phase in enumerate(phases)), pod("a", 4, **DELETED)]
    assert [member.name for member in kill.whole_job(roster_of(plan, pods), retain=retain)] == names


def test_whom_a_restart_of_a_part_takes() -> None:
    plan = planned({"retryCount": 2, "ledger": {"restarting": [{"task": "a", "retryCount": 2, "indices": "1-2"}]}}, a=4)
    pods = [pod("a", 0), pod("a", 1, retries=1), pod("a", 2, **DELETED)]
    roster, ledger = roster_of(plan, pods), read_ledger(plan)
    assert [member.name for member in kill.doomed(roster, ledger)] == ["j-a-1"]
    assert not kill.drained(roster, ledger)
    assert not kill.drained(roster_of(plan, pods[2:]), ledger)
    assert kill.drained(roster_of(plan, [pods[0], pod("a", 1, retries=2)]), ledger)


# The status ----------------------------------------------------------------------------------------------------------


def status(
    plan: Plan, phase: JobPhase, *, entered: bool, counts: Counts | None = None, explanation: Explanation | None = None
) -> Json:
    return trimmed(
        build(
            plan,
            phase=phase,
            entered=entered,
            counts=counts or Counts(),
            ledger=read_ledger(plan),
            explanation=explanation or Explanation(),
            controlled={},
            stored=plan.job.status.dump(),
            now=NOW,
        )
    )


def test_a_status_says_everything_once() -> None:
    plan = planned(
        {"foreign": "stays", "version": 2, "retryCount": 3, "ledger": {"restartingJob": True}},
        metadata={"creationTimestamp": EARLIER},
        a=5,
    )
    counts = Counts(1, 2, 3, 4, 5, 6, 7, tasks={"a": {"Running": 2, "Pending": 1}})
    whole = build(
        plan,
        phase=JobPhase.FAILED,
        entered=True,
        counts=counts,
        ledger=read_ledger(plan),
        explanation=Explanation("PodFailed", "why"),
        controlled={"plugin-svc": "svc"},
        stored=plan.job.status.dump(),
        now=NOW,
    )
    now = "2026-11-20T12:00:00Z"
    assert whole == {
        "foreign": "stays",
        "state": {"phase": "Failed", "reason": "PodFailed", "message": "why", "lastTransitionTime": now},
        "conditions": [
            {"status": "Pending", "lastTransitionTime": EARLIER},
            {"status": "Failed", "lastTransitionTime": now},
        ],
        "minAvailable": 5,
        "taskStatusCount": {"a": {"phase": {"Pending": 1, "Running": 2}}},
        "pending": 1,
        "running": 2,
        "succeeded": 3,
        "failed": 4,
        "unknown": 5,
        "terminating": 6,
        "version": 2,
        "retryCount": 3,
        "runningDuration": "1h0m0s",
        "controlledResources": {"plugin-svc": "svc"},
        "ledger": {"restartingJob": True},
    }


@pytest.mark.parametrize("nothing", [None, 0, "", {}, []])
def test_what_says_nothing_is_left_out(nothing: object) -> None:
    assert trimmed({"a": nothing, "b": 1}) == {"b": 1}


LOG = [{"status": "Pending", "lastTransitionTime": "t1"}, {"status": "Running", "lastTransitionTime": "t2"}]


@pytest.mark.parametrize(
    ("state", "log", "phase", "entered", "since", "logged"),
    [
        ({}, LOG, JobPhase.RUNNING, False, "t2", ["Pending t1", "Running t2"]),
        ({"lastTransitionTime": "x"}, LOG, JobPhase.RUNNING, False, "t2", ["Pending t1", "Running t2"]),
        ({"lastTransitionTime": "x"}, LOG, JobPhase.PENDING, False, "x", ["Pending t1", "Running t2"]),
        ({"lastTransitionTime": "x"}, [], JobPhase.RUNNING, False, "x", ["Running x"]),
        ({"lastTransitionTime": "x"}, [{"status": "Running"}], JobPhase.RUNNING, False, "x", ["Running None"]),
        ({}, LOG, JobPhase.PENDING, True, "now", ["Running t2", "Pending now"]),
        ({}, LOG, JobPhase.FAILED, True, "now", ["Pending t1", "Running t2", "Failed now"]),
    ],
)
def test_the_log_of_phases(
    state: Json, log: list[Json], phase: JobPhase, entered: bool, since: str, logged: list[str]
) -> None:
    reported = status(planned({"state": state, "conditions": log}, a=1), phase, entered=entered)
    now = "2026-11-20T12:00:00Z"
    assert reported["state"] == {"phase": str(phase), "lastTransitionTime": since.replace("now", now)}
    assert [f"{each['status']} {each.get('lastTransitionTime')}" for each in reported["conditions"]] == [
        line.replace("now", now) for line in logged
    ]


@pytest.mark.parametrize(
    ("created", "phase", "entered", "duration"),
    [
        (EARLIER, JobPhase.COMPLETED, True, "1h0m0s"),
        (EARLIER, JobPhase.ABORTED, True, "1h0m0s"),
        (EARLIER, JobPhase.TERMINATED, True, "1h0m0s"),
        (EARLIER, JobPhase.COMPLETED, False, "stored"),
        (EARLIER, JobPhase.RUNNING, True, None),
        (EARLIER, JobPhase.TERMINATING, False, None),
        ("2026-11-20T13:00:00Z", JobPhase.COMPLETED, True, "0s"),
        ("some day", JobPhase.COMPLETED, True, None),
        (None, JobPhase.COMPLETED, True, None),
    ],
)
def test_how_long_a_job_took(created: str | None, phase: JobPhase, entered: bool, duration: str | None) -> None:
    plan = planned({"runningDuration": "stored"}, metadata={"creationTimestamp": created}, a=1)
    assert status(plan, phase, entered=entered).get("runningDuration") == duration


# Index sets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("0-1,3", {0, 1, 3}),
        ("2-5", {2, 3}),
        ("3", {3}),
        ("4", set()),
        ("1-", set()),
        ("-1", set()),
        ("1,,2", {1, 2}),
        ("x,3,1-y", {3}),
        ("0000000001", {1}),
        ("00000000001", set()),
        ("0-9999999999", {0, 1, 2, 3}),
        ("0-99999999999", set()),
        ("2-2", {2}),
    ],
)
def test_reading_index_sets(text: str, indices: set[int]) -> None:
    assert parse_indices(text, below=4) == indices


def test_writing_index_sets() -> None:
    assert format_indices([10, 0, 2, 3, 9, 5, 11]) == "0,2-3,5,9-11"
    assert format_indices(iter(())) == ""


def test_a_long_time_ago() -> None:
    """A duration is in Go's words, whatever its length."""
    created = (NOW - timedelta(days=2, seconds=61)).isoformat().replace("+00:00", "Z")
    plan = planned(metadata={"creationTimestamp": created}, a=1)
    assert status(plan, JobPhase.COMPLETED, entered=True)["runningDuration"] == "48h1m1s"


@pytest.mark.parametrize("which", ["requests", "limits"])
def test_of_a_spec_counts_what_its_usage_reads(which: str) -> None:
    sidecar: Json = {"name": "s", "restartPolicy": "Always", "resources": {which: {"cpu": "1", "nvidia.com/gpu": 1}}}
    first: Json = {"name": "i", "image": "a", "resources": {which: {"memory": "4Gi"}}}
    main: Json = {"name": "m", "env": [{"name": "A"}], "resources": {which: {"cpu": "250m", "memory": "1Gi"}}}
    spec: Json = {"containers": [main], "initContainers": [first, sidecar], "overhead": {"cpu": "10m", "memory": "1"}}
    assert pod_usage(msgspec.json.decode(read_of_spec(spec))) == pod_usage(spec)
    assert read_of_spec(spec) == read_of_spec({**spec, "containers": [{**main, "env": []}], "nodeName": "n"})
    without = [read_of_spec({**spec, key: []}) for key in ("containers", "initContainers", "overhead")]
    assert len({read_of_spec(spec), *without}) == 4
    assert read_of_spec({}) == read_of_spec({"containers": []})
