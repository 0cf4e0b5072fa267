"""What policies answer, as whole verdicts: which action, for what, about which parts, now or when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.support.job_world import Json, job_object
from vcbatch.api.job import Action, Event, Job
from vcbatch.api.pod import Pod
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.reasons import LossCause
from vcbatch.core.job.causes import Failure
from vcbatch.core.job.ledger import DelayKey, Loss, Part, read_ledger
from vcbatch.core.job.plan import plan_of
from vcbatch.core.job.policies import Order, Verdict, judge
from vcbatch.core.job.roster import roster_of

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def some(name: str, replicas: int, *policies: Json, **spec: Any) -> Json:
    return {"name": name, "replicas": replicas, "policies": list(policies), "template": {"spec": {}}, **spec}


def on(event: str | int, action: str, timeout: str = "") -> Json:
    asked: Json = {"exitCode": event} if isinstance(event, int) else {"event": event}
    return {**asked, "action": action} | ({"timeout": timeout} if timeout else {})


def loss(
    task: str, index: int, cause: LossCause = LossCause.EXITED, *codes: int, gone: bool = False, **more: Any
) -> Loss:
    failure = Failure(cause=cause, exit_codes=codes, **more)
    return Loss(task=task, index=index, pod=f"j-{task}-{index}", uid="", node="", failure=failure, gone=gone)


def pod(task: str, index: int, phase: str = "Running", *, created: str | None = None, **more: Any) -> Pod:
    said = {"task-spec": task, "task-index": str(index), "job-version": "0"}
    metadata = {
        "name": f"j-{task}-{index}",
        "uid": f"{task}{index}",
        "annotations": {f"volcano.sh/{key}": value for key, value in said.items()},
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}],
        "creationTimestamp": created,
        "deletionTimestamp": more.pop("deleted", None),
    }
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {"phase": phase, **more}}, Pod)


class Case:
    """A job whose tasks and policies are given, and the ledger that a judgement leaves behind."""

    def __init__(self, tasks: list[Json], *policies: Json, ledger: Json | None = None) -> None:
        job = job_object(tasks=tasks, uid="u", policies=list(policies))
        job["status"] = {"ledger": ledger or {}}
        self.plan = plan_of(Job.parse(job))
        self.ledger = read_ledger(self.plan)

    def verdict(self, *losses: Loss, pods: tuple[Pod, ...] = (), group: str = "Running") -> Verdict:
        pod_group = PodGroup.parse({"metadata": {"name": "j-u"}, "status": {"phase": group}})
        return judge(self.plan, roster_of(self.plan, pods), self.ledger, losses, pod_group, now=NOW)


def ordered(action: Action, event: Event, cause: str, *targets: Part, infrastructure: bool = False) -> Verdict:
    return Verdict(order=Order(action=action, event=event, cause=cause, infrastructure=infrastructure, targets=targets))


# Which policy --------------------------------------------------------------------------------------------------------

FAILED, EVICTED, ANY = on("PodFailed", "AbortJob"), on("PodEvicted", "RestartJob"), on("*", "TerminateJob")
CODE = on(3, "CompleteJob")
EXITED_3 = "pod j-a-0 exited with code 3"


@pytest.mark.parametrize(
    ("of_task", "of_job", "action"),
    [
        ([FAILED], [], Action.ABORT_JOB),
        ([], [FAILED, CODE], Action.ABORT_JOB),
        ([], [CODE, FAILED], Action.COMPLETE_JOB),
        ([CODE], [FAILED], Action.COMPLETE_JOB),
        ([EVICTED], [ANY], Action.TERMINATE_JOB),
        ([on(4, "RestartJob")], [], None),
        ([EVICTED], [], None),
        ([on("PodFailed", "SyncJob")], [FAILED], None),  # the first that answers decides, also for nothing
        ([on("PodFailed", "Explode")], [FAILED], None),
        ([on("PodFailed", "AbortJob", "soon")], [], Action.ABORT_JOB),
        ([], [], None),
    ],
)
def test_which_policy_answers_a_failure(of_task: list[Json], of_job: list[Json], action: Action | None) -> None:
    verdict = Case([some("a", 2, *of_task)], *of_job).verdict(loss("a", 0, LossCause.EXITED, 3))
    assert verdict == (ordered(action, Event.POD_FAILED, EXITED_3) if action else Verdict())


def test_a_cause_says_where() -> None:
    lost = replace(loss("a", 0), node="n")
    verdict = Case([some("a", 1, FAILED)]).verdict(lost)
    assert verdict == ordered(Action.ABORT_JOB, Event.POD_FAILED, "pod j-a-0 exited on node n")


def test_another_task_s_policies_answer_nothing() -> None:
    case = Case([some("a", 1), some("b", 1, FAILED)])
    assert case.verdict(loss("a", 0, LossCause.EXITED, 3)) == Verdict()


@pytest.mark.parametrize(
    ("policies", "gone", "action", "event"),
    [
        ([FAILED, EVICTED], False, Action.RESTART_JOB, Event.POD_EVICTED),
        ([FAILED], False, Action.ABORT_JOB, Event.POD_FAILED),
        ([FAILED, EVICTED], True, Action.RESTART_JOB, Event.POD_EVICTED),
        ([FAILED], True, None, Event.POD_FAILED),
        ([CODE], False, Action.COMPLETE_JOB, Event.POD_FAILED),
        ([CODE], True, None, Event.POD_FAILED),
    ],
)
def test_which_policy_answers_an_eviction(
    policies: list[Json], gone: bool, action: Action | None, event: Event
) -> None:
    taken = loss("a", 0, LossCause.EVICTED, 3, gone=gone)
    verdict = Case([some("a", 2)], *policies).verdict(taken)
    assert verdict == (ordered(action, event, "pod j-a-0 was evicted", infrastructure=True) if action else Verdict())


def test_a_pod_that_somebody_deleted_is_evicted_and_not_the_infrastructure_s_doing() -> None:
    verdict = Case([some("a", 1)], EVICTED).verdict(loss("a", 0, LossCause.DELETED, gone=True))
    assert verdict == ordered(
        Action.RESTART_JOB,
        Event.POD_EVICTED,
        "pod j-a-0 was deleted",
        infrastructure=LossCause.DELETED.infrastructure,
    )


# Several at once -----------------------------------------------------------------------------------------------------


def test_the_earliest_loss_is_the_cause() -> None:
    losses = [
        loss("a", 0),
        loss("a", 1, at=NOW),
        loss("b", 3, at=NOW - MINUTE),
        loss("b", 2, at=NOW - MINUTE),
        loss("a", 3, at=NOW - MINUTE),
    ]
    case = Case([some("a", 4), some("b", 4)], FAILED)
    assert case.verdict(*losses) == ordered(Action.ABORT_JOB, Event.POD_FAILED, "pod j-a-3 exited")
    assert case.verdict(*losses[:4]) == ordered(Action.ABORT_JOB, Event.POD_FAILED, "pod j-b-2 exited")
    assert case.verdict(*losses[:2]) == ordered(Action.ABORT_JOB, Event.POD_FAILED, "pod j-a-1 exited")


def test_what_concerns_the_whole_job_comes_before_what_concerns_a_part() -> None:
    case = Case([some("a", 2, on(3, "RestartPod"), on(4, "AbortJob"), on(5, "RestartJob"))])
    losses = [loss("a", 0, LossCause.EXITED, 3, at=NOW - MINUTE), loss("a", 1, LossCause.EXITED, 4, at=NOW)]
    assert case.verdict(*losses) == ordered(Action.ABORT_JOB, Event.POD_FAILED, "pod j-a-1 exited with code 4")


def test_parts_are_restarted_together() -> None:
    restart = on("*", "RestartPod"), on("*", "RestartTask"), on("*", "RestartPartition")
    partitioned = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}
    tasks = [some("a", 3, restart[0]), some("b", 2, restart[1]), some("c", 5, restart[2], **partitioned)]
    tasks.append(some("d", 3, restart[2]))
    losses = [
        loss("a", 1, LossCause.EVICTED, at=NOW - 2 * MINUTE),
        *(loss(name, 1) for name in ("b", "c", "d")),
        loss("c", 0),
        loss("c", 4),
        loss("b", 0),
    ]
    parts = (
        Part("a", frozenset({1})),
        Part("b"),
        Part("c", frozenset({0, 1})),
        Part("c", frozenset({4})),
        Part("d", frozenset({1})),
    )
    verdict = Case(tasks).verdict(*losses)
    assert verdict == ordered(Action.RESTART_POD, Event.POD_EVICTED, "pod j-a-1 was evicted", *parts)
    alone = Case(tasks).verdict(losses[0])
    assert alone == ordered(
        Action.RESTART_POD, Event.POD_EVICTED, "pod j-a-1 was evicted", parts[0], infrastructure=True
    )


# What holds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "record", "is_done"),
    [
        (2, {"succeeded": "0-1"}, True),
        (1, {"succeeded": "0"}, True),
        (2, {"succeeded": "1", "carried": "0"}, True),
        (2, {"succeeded": "0"}, False),
        (2, {"carried": "0-1"}, False),  # that was an earlier attempt's
        (0, {}, False),
    ],
)
def test_a_task_that_is_done(replicas: int, record: Json, is_done: bool) -> None:
    case = Case([some("a", replicas, on("TaskCompleted", "CompleteJob"))], ledger={"tasks": {"a": record}})
    done = ordered(Action.COMPLETE_JOB, Event.TASK_COMPLETED, "task a is completed")
    assert case.verdict() == (done if is_done else Verdict())


def restarted(index: int, *counts: int, phase: str = "Running") -> Pod:
    first, *others = ({"name": str(position), "restartCount": count} for position, count in enumerate(counts))
    return pod("a", index, phase, initContainerStatuses=[first], containerStatuses=others)


@pytest.mark.parametrize(
    ("pods", "most", "too_often"),
    [
        ((restarted(0, 1, 2, 1),), 4, True),
        ((restarted(0, 1, 2),), 4, False),
        ((restarted(0, 1, 1), restarted(1, 0, 2, phase="Pending")), 4, True),
        ((restarted(0, 3, 0), restarted(1, 3, 3, phase="Failed"), restarted(2, 9, phase="Succeeded")), 4, False),
        ((restarted(0, 9, 9),), -1, False),
        ((restarted(0, 1, 1),), 0, False),
        ((restarted(0, 1, 2),), 0, True),
    ],
)
def test_a_task_whose_containers_restart_too_often(pods: tuple[Pod, ...], most: int, too_often: bool) -> None:
    case = Case([some("a", 3, on("TaskFailed", "RestartTask"), maxRetry=most)])
    cause = f"containers of task a restarted {most or 3} times or more"
    failed = ordered(Action.RESTART_TASK, Event.TASK_FAILED, cause, Part("a"))
    assert case.verdict(pods=pods) == (failed if too_often else Verdict())


def test_a_task_of_one_pod_whose_container_restarts_too_often() -> None:
    case = Case([some("a", 1, on("TaskFailed", "AbortJob"))])
    cause = "containers of task a restarted 3 times or more"
    assert case.verdict(pods=(restarted(0, 3),)) == ordered(Action.ABORT_JOB, Event.TASK_FAILED, cause)


def test_a_gang_that_lost_a_part() -> None:
    case = Case([some("a", 1)], on("Unknown", "RestartJob"))
    assert case.verdict(group="Unknown") == ordered(
        Action.RESTART_JOB, Event.JOB_UNKNOWN, "pod group j-u lost part of its gang"
    )
    assert case.verdict(group="Running") == Verdict()
    # There is no part of the job that this is about.
    assert Case([some("a", 1)], on("Unknown", "RestartTask")).verdict(group="Unknown") == Verdict()


# Timeouts ------------------------------------------------------------------------------------------------------------

SINCE = "2026-11-20T11:59:30Z"
WAITING = {"delayed": [{"event": "PodFailed", "task": "a", "index": 0, "since": SINCE}]}
KEY = DelayKey("PodFailed", "a", 0)


def test_a_policy_with_a_timeout_begins_to_wait() -> None:
    case = Case([some("a", 2, on("PodFailed", "AbortJob", "2m"), on("PodEvicted", "RestartJob", "90s"))])
    lost = [loss("a", 0, at=NOW - MINUTE), loss("a", 1, LossCause.EVICTED, gone=True)]
    assert case.verdict(*lost) == Verdict(
        due=NOW + MINUTE,
        delayed=(
            (Action.ABORT_JOB, timedelta(minutes=2), "pod j-a-0 exited"),
            (Action.RESTART_JOB, timedelta(seconds=90), "pod j-a-1 was evicted"),
        ),
    )
    assert case.ledger.delayed == {KEY: NOW - MINUTE, DelayKey("PodEvicted", "a", 1): NOW}


@pytest.mark.parametrize(("timeout", "left"), [("31s", 1), ("30s", 0), ("20s", 0)])
def test_a_policy_that_waits_goes_on_waiting_until_its_time_is_over(timeout: str, left: int) -> None:
    case = Case([some("a", 1, on("PodFailed", "AbortJob", timeout))], ledger=WAITING)
    verdict = case.verdict()
    if left:
        assert verdict == Verdict(due=NOW + timedelta(seconds=left))
        assert set(case.ledger.delayed) == {KEY}
    else:
        cause = "pod of task a, index 0, failed"
        assert verdict == ordered(Action.ABORT_JOB, Event.POD_FAILED, cause)
        assert not case.ledger.delayed


@pytest.mark.parametrize(
    ("replacement", "waits"),
    [
        (pod("a", 0, "Running"), False),
        (pod("a", 0, "Succeeded"), False),
        (pod("a", 0, "Pending"), True),
        (pod("a", 0, "Failed"), True),
        (pod("a", 1, "Running"), True),
    ],
)
def test_a_replacement_that_runs_makes_up_for_a_loss(replacement: Pod, waits: bool) -> None:
    case = Case([some("a", 2, on("PodFailed", "AbortJob", "1m"))], ledger=WAITING)
    assert case.verdict(pods=(replacement,)).due == (NOW + MINUTE / 2 if waits else None)
    assert bool(case.ledger.delayed) is waits


def test_timeouts_that_are_over_are_answered_together() -> None:
    waiting = {"delayed": [{"event": "PodFailed", "task": "a", "index": index, "since": SINCE} for index in (0, 1)]}
    verdict = Case([some("a", 2, on("PodFailed", "RestartPod", "10s"))], ledger=waiting).verdict()
    cause, parts = "pod of task a, index 0, failed", (Part("a", frozenset({index})) for index in (0, 1))
    assert verdict == ordered(Action.RESTART_POD, Event.POD_FAILED, cause, *parts)


@pytest.mark.parametrize("of", [{"task": "a"}, {"index": 0}, {}])
def test_a_timeout_that_is_of_no_pod_is_forgotten(of: Json) -> None:
    waiting = {"delayed": [{"event": "PodFailed", "since": SINCE, **of}]}
    case = Case([some("a", 1, on("PodFailed", "AbortJob", "10s"))], ledger=waiting)
    assert case.verdict() == Verdict()
    assert not case.ledger.delayed


def test_the_exit_code_of_a_pod_that_is_still_there_is_answered_when_the_time_is_over() -> None:
    exited = pod("a", 0, "Failed", containerStatuses=[{"name": "m", "state": {"terminated": {"exitCode": 3}}}])
    case = Case([some("a", 1, on(3, "AbortJob", "30s"))], ledger=WAITING)
    assert case.verdict(pods=(exited,)) == ordered(Action.ABORT_JOB, Event.POD_FAILED, EXITED_3)
    case = Case([some("a", 1, on(3, "AbortJob", "30s"))], ledger=WAITING)
    assert case.verdict() == Verdict()


def test_an_eviction_that_is_answered_late_is_still_one() -> None:
    waiting = {"delayed": [{"event": "PodEvicted", "task": "a", "index": 0, "since": SINCE}]}
    case = Case([some("a", 1, on("PodEvicted", "RestartPod", "30s"))], ledger=waiting)
    cause, part = "pod of task a, index 0, was evicted", Part("a", frozenset({0}))
    assert case.verdict() == ordered(Action.RESTART_POD, Event.POD_EVICTED, cause, part, infrastructure=True)


def test_an_eviction_that_is_answered_late_has_no_exit_code() -> None:
    waiting = {"delayed": [{"event": "PodEvicted", "task": "a", "index": 0, "since": SINCE}]}
    exited = pod("a", 0, "Failed", containerStatuses=[{"name": "m", "state": {"terminated": {"exitCode": 3}}}])
    assert Case([some("a", 1, on(3, "AbortJob", "30s"))], ledger=waiting).verdict(pods=(exited,)) == Verdict()


def test_timeouts_that_are_settled_do_not_hide_the_others() -> None:
    waiting: Json = {"delayed": [{"event": "Unknown", "since": SINCE}]}
    waiting["delayed"] += [{"event": "PodFailed", "task": "a", "index": index, "since": SINCE} for index in range(3)]
    case = Case([some("a", 3, on("PodFailed", "RestartPod", "10s"))], ledger=waiting)
    parts = (Part("a", frozenset({index})) for index in (0, 2))
    assert case.verdict(loss("a", 0), pods=(pod("a", 1),)) == ordered(
        Action.RESTART_POD, Event.POD_FAILED, "pod j-a-0 exited", *parts
    )


def test_a_fresh_loss_of_the_same_pod_goes_on_waiting() -> None:
    case = Case([some("a", 1, on("PodFailed", "AbortJob", "1m"))], ledger=WAITING)
    assert case.verdict(loss("a", 0, at=NOW)) == Verdict(due=NOW + MINUTE / 2)
    assert list(case.ledger.delayed) == [KEY]


@pytest.mark.parametrize(
    ("waiting", "due"),
    [
        (pod("a", 0, "Pending", created="2026-11-20T11:59:30Z"), NOW + MINUTE / 2),
        (pod("a", 0, "Running", created="2026-11-20T11:59:30Z"), None),
        (pod("a", 0, "Pending", created="2026-11-20T11:59:30Z", deleted=SINCE), None),
        (pod("a", 0, "Pending"), None),
        (pod("a", 0, "Pending", created="soon"), None),
    ],
)
def test_pods_that_are_pending_are_looked_at_in_time(waiting: Pod, due: datetime | None) -> None:
    case = Case([some("b", 1), some("a", 1, on("PodPending", "AbortJob", "1m"))])
    assert case.verdict(pods=(waiting,)) == Verdict(due=due)
    assert not case.ledger.delayed, "the pod itself says since when"


@pytest.mark.parametrize("event", ["PodPending", "*"])
def test_a_pod_that_was_pending_for_too_long(event: str) -> None:
    created = "2026-11-20T11:59:00Z"
    pending = (pod("a", 0, "Running"), pod("a", 1, "Pending", created=created))
    cause, part = f"pod j-a-1 is pending since {created}", Part("a", frozenset({1}))
    restart = ordered(Action.RESTART_POD, Event.POD_PENDING, cause, part)
    assert Case([some("a", 2)], on(event, "RestartPod", "1m")).verdict(pods=pending) == restart
    assert Case([some("a", 2)], on(event, "RestartPod")).verdict(pods=pending) == Verdict()
    assert Case([some("a", 2)], on("PodFailed", "RestartPod", "1m")).verdict(pods=pending) == Verdict()
    first = on(event, "AbortJob"), on(event, "AbortJob", "soon")
    assert Case([some("a", 2, *first)], on(event, "RestartPod", "1m")).verdict(pods=pending) == restart
