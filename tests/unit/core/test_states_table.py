"""The job's machine against a table of its own, written by hand from the description of Volcano's machine
(Volcano `pkg/controllers/job/state`) and not from our code: every phase, every action, whoever asks for it, with the
pods and the budget that decide what comes of it.

`PHASES` says what Volcano does. Where vcbatch does something else on purpose, `ON_PURPOSE` says what, and which row of
`docs/differences-jobs.md` tells users so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api import names
from vcbatch.api.job import Job
from vcbatch.api.model import owner_of
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS
from vcbatch.core.job import decide
from vcbatch.core.machine import Decision

DIFFERENCES = Path(__file__).resolve().parents[3] / "docs" / "differences-jobs.md"

RESTART_PARTS = ("RestartTask", "RestartPod", "RestartPartition")
RESTARTS = ("RestartJob", *RESTART_PARTS)
BY_COMMAND = ("RestartJob", "AbortJob", "CompleteJob", "TerminateJob", "ResumeJob", "SyncJob")
BY_POLICY = (*RESTARTS, "AbortJob", "CompleteJob", "TerminateJob")
WITHOUT_MEANING = ("SyncJob", "ResumeJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue", "Explode", "")
"""What a policy may say, and Volcano does as SyncJob."""

REPLICAS = {"a": 4, "b": 2}
TOTAL = sum(REPLICAS.values())
MIN_AVAILABLE = 4
MAX_RETRY = 3
PARTITION = 2


# The table -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one look does: `kills` says which pods (see `chosen`), `group` whether the PodGroup is deleted too, `next`
    the phase that follows, `retry` what is added to retryCount. `by_counts` instead of a phase: see `synced`."""

    kills: str
    next: str
    retry: int = 0
    group: bool = True


BY_COUNTS = "by counts"
SYNC = Outcome("nothing", BY_COUNTS, group=False)
LIVE = {
    "RestartJob": Outcome("all", "Restarting", retry=1),
    "RestartTask": Outcome("task", "Restarting", retry=1, group=False),
    "RestartPod": Outcome("pod", "Restarting", retry=1, group=False),
    "RestartPartition": Outcome("partition", "Restarting", retry=1, group=False),
    "AbortJob": Outcome("unfinished", "Aborting"),
    "CompleteJob": Outcome("unfinished", "Completing"),
    "TerminateJob": Outcome("unfinished", "Terminating"),
    "*": SYNC,
}
RESUME = Outcome("unfinished", "Restarting", retry=1)

PHASES: Mapping[str, Mapping[str, Outcome]] = {
    "": LIVE,
    "Pending": LIVE,
    "Running": LIVE,
    "Aborting": {"ResumeJob": RESUME, "*": Outcome("unfinished", BY_COUNTS)},
    "Aborted": {"ResumeJob": RESUME, "*": Outcome("unfinished", "Aborted")},
    "Completing": {"*": Outcome("unfinished", BY_COUNTS)},
    "Terminating": {"*": Outcome("unfinished", BY_COUNTS)},
    "Completed": {"*": Outcome("unfinished", "Completed")},
    "Failed": {"*": Outcome("unfinished", "Failed")},
    "Terminated": {"*": Outcome("unfinished", "Terminated")},
}
"""Phase, action (`*`: any other) → outcome. Restarting has a table of its own below."""

WHEN_GONE = {"Aborting": "Aborted", "Completing": "Completed", "Terminating": "Terminated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A job in a phase, and what is asked of it: by a Command, by a policy that answers a failed pod (`a-0`), or by one
    that answers its eviction."""

    phase: str
    action: str
    via: str
    people: str
    retries: int = 0
    infrastructure: int = 0

    @property
    def pods(self) -> dict[str, str]:
        return POPULATIONS[self.people]


@dataclass(frozen=True, slots=True)
class OnPurpose:
    """`holds` where we differ, `ours` what we do instead, `reported` the beginning of the row that says so."""

    reported: str
    holds: Any
    ours: Any


ON_PURPOSE = (
    OnPurpose(
        "A restart that the budget doesn't allow is begun",
        lambda s, o: (
            o.retry and s.action in RESTARTS and s.via != "eviction" and s.retries - s.infrastructure + 1 >= MAX_RETRY
        ),
        lambda s, o: Outcome("unfinished", "Failed", retry=1),
    ),
    OnPurpose(
        "Evictions, preemptions and lost nodes use up `maxRetry`",
        lambda s, o: o.retry and s.action in RESTARTS and s.via == "eviction" and s.infrastructure + 1 >= 32,
        lambda s, o: Outcome("unfinished", "Failed", retry=1),
    ),
    OnPurpose(
        "A resumed job keeps the pods that failed",
        lambda s, o: s.action == "ResumeJob" and o == RESUME,
        lambda s, o: replace(o, kills="not succeeded"),
    ),
)

POPULATIONS = {
    "all sorts": {
        "a-0": "Failed",
        "a-1": "Running",
        "a-2": "Pending",
        "a-3": "Running",
        "b-0": "Succeeded",
        "b-1": "Failed",
    },
    "one on its way out": {
        "a-0": "Failed",
        "a-1": "Running",
        "a-2": "Running",
        "a-3": "Running leaving",
        "b-0": "Succeeded",
        "b-1": "Running",
    },
    "one of no phase that is known": {
        "a-0": "Failed",
        "a-1": "Unknown",
        "a-2": "Running",
        "a-3": "Running",
        "b-0": "Running",
        "b-1": "Running",
    },
    "only the finished": {
        "a-0": "Failed",
        "a-1": "Succeeded",
        "a-2": "Succeeded",
        "a-3": "Succeeded",
        "b-0": "Succeeded",
        "b-1": "Failed",
    },
    "too few succeeded": {
        "a-0": "Failed",
        "a-1": "Failed",
        "a-2": "Succeeded",
        "a-3": "Succeeded",
        "b-0": "Succeeded",
        "b-1": "Failed",
    },
    "some not made yet": {"a-0": "Failed", "a-1": "Running", "a-3": "Pending", "b-0": "Running"},
    "nearly none made yet": {"a-0": "Failed"},
}


def chosen(which: str, pods: Mapping[str, str]) -> set[str]:
    """The pods that an outcome's `kills` means. Those on their way out aren't asked to go again."""
    staying = {name: phase for name, phase in pods.items() if "leaving" not in phase}
    match which:
        case "nothing":
            return set()
        case "all":
            return set(staying)
        case "unfinished":
            return {name for name, phase in staying.items() if phase not in ("Succeeded", "Failed")}
        case "not succeeded":
            return {name for name, phase in staying.items() if phase != "Succeeded"}
        case "task":
            return {name for name in staying if name.startswith("a-")}
        case "partition":
            return staying.keys() & {"a-0", "a-1"}
        case "pod":
            return staying.keys() & {"a-0"}
        case _:
            raise AssertionError(which)


def synced(phase: str, pods: Mapping[str, str]) -> str:
    """The phase after SyncJob (2.6, callbacks of Pending and Running) or after a kill that waits for pods to be gone.
    Pods that aren't made yet are made now, and are pending then."""
    having = [phase for phase in pods.values() if "leaving" not in phase]
    running, succeeded, failed = (having.count(each) for each in ("Running", "Succeeded", "Failed"))
    pending = having.count("Pending") + TOTAL - len(pods)
    match phase:
        case "" | "Pending":
            return "Running" if running + succeeded + failed >= MIN_AVAILABLE else "Pending"
        case "Running":
            if succeeded + failed == TOTAL:
                return "Completed" if succeeded >= MIN_AVAILABLE else "Failed"
            return "Pending" if pending > TOTAL - MIN_AVAILABLE else "Running"
        case _:
            alive = [phase for phase in pods.values() if phase not in ("Succeeded", "Failed")]
            return phase if alive else WHEN_GONE[phase]


# Situations ----------------------------------------------------------------------------------------------------------


def situations(phase: str) -> Iterator[Situation]:
    """All that are possible in this phase."""
    facts = list(product(POPULATIONS, range(MAX_RETRY)))
    for action, (people, retries) in product(BY_COMMAND, facts):
        yield Situation(phase=phase, action=action, via="command", people=people, retries=retries)
    for action, (people, retries) in product((*BY_POLICY, *WITHOUT_MEANING), facts):
        yield Situation(phase=phase, action=action, via="failure", people=people, retries=retries)
    for action, people, infrastructure in product(BY_POLICY, POPULATIONS, (0, 2, 30, 31)):
        yield Situation(
            phase=phase,
            action=action,
            via="eviction",
            people=people,
            retries=infrastructure + 1,
            infrastructure=infrastructure,
        )


def expected(situation: Situation) -> Outcome:
    """Volcano's outcome, or ours where it is another on purpose. Policies move live jobs only: in all other phases an
    event of a pod leads to a sync, as every action of a policy would."""
    row = PHASES[situation.phase]
    answers = situation.via == "command" or row is LIVE
    outcome = row.get(situation.action, row["*"]) if answers else row["*"]
    if situation.via != "command" and situation.action in WITHOUT_MEANING:
        outcome = row["*"]
    for purpose in ON_PURPOSE:
        if purpose.holds(situation, outcome):
            return purpose.ours(situation, outcome)
    return outcome


def base() -> World:
    """A job whose PodGroup is let in, before its pods are made."""
    world = World()
    tasks = [
        task("a", 4, minAvailable=1, partitionPolicy={"totalPartitions": 2, "partitionSize": PARTITION}),
        task("b", 2, minAvailable=1),
    ]
    world.submit(job_object(tasks=tasks, minAvailable=MIN_AVAILABLE, maxRetry=MAX_RETRY))
    world.reconcile()
    world.schedule()
    return world


BASE = base()


def world_of(situation: Situation) -> World:
    """The job in its phase with its pods, as the controller left it at its last look, and what happened since."""
    world = copy.deepcopy(BASE)
    job = world.job()
    answers = {"failure": "PodFailed", "eviction": "PodEvicted"}.get(situation.via)
    if answers:
        job["spec"]["policies"] = [{"event": answers, "action": situation.action}]
    status: Json = {
        "state": {"phase": situation.phase, "lastTransitionTime": "2026-11-20T11:00:00Z"},
        "conditions": [{"status": situation.phase, "lastTransitionTime": "2026-11-20T11:00:00Z"}],
        "minAvailable": MIN_AVAILABLE,
        "retryCount": situation.retries,
        "ledger": {"tasks": _records(situation), "infrastructureRetries": situation.infrastructure},
    }
    if not situation.phase:
        del status["state"], status["conditions"]
    job["status"] = status
    for name, phase in situation.pods.items():
        put_pod(world, name, phase)
    if situation.via == "eviction":
        world.evict("j-a-0")
    if situation.via == "command":
        world.command(situation.action, target=job, name="order")
    return world


def _records(situation: Situation) -> Json:
    """What the controller has seen: everything but what is to be answered now."""
    records: Json = {}
    for name in REPLICAS:
        mine = {pod.removeprefix(f"{name}-"): phase for pod, phase in situation.pods.items() if pod[0] == name}
        news = {"0"} if name == "a" and situation.via != "command" else set[str]()
        records[name] = {
            "seen": ",".join(sorted(mine)),
            "succeeded": ",".join(sorted(index for index, phase in mine.items() if phase == "Succeeded")),
            "failed": ",".join(
                sorted(index for index, phase in mine.items() if phase == "Failed" and index not in news)
            ),
        }
    return records


def put_pod(world: World, name: str, phase: str, *, version: int = 0, retry_count: int = 0) -> None:
    job = Job.parse(world.job())
    own, _, index = name.rpartition("-")
    annotations = {
        names.TASK_SPEC: own,
        names.TASK_INDEX: index,
        names.JOB_VERSION: str(version),
        names.JOB_RETRY_COUNT: str(retry_count),
        names.GROUP_NAME: names.pod_group_name(job.name, job.uid),
    }
    stored = world.put(
        PODS,
        {
            "metadata": {
                "name": f"j-{name}",
                "annotations": annotations,
                "ownerReferences": [owner_of(job, JOBS)],
            },
            "spec": {"nodeName": "node-1"},
            "status": {"phase": phase.split()[0]},
        },
    )
    if phase == "Failed":
        world.end_pod(f"j-{name}", 1)
    if "leaving" in phase:
        world.delete_pod(stored["metadata"]["name"])


def killed(decision: Decision) -> set[str]:
    return {delete.ref.name.removeprefix("j-") for delete in decision.deletes if delete.ref.resource is PODS}


def created(decision: Decision) -> set[str]:
    return {create.body["metadata"]["name"].removeprefix("j-") for create in decision.creates}


def takes_group(decision: Decision) -> bool:
    return any(delete.ref.resource is PODGROUPS for delete in decision.deletes)


# What holds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_every_action_does_in_every_phase_what_the_table_says(phase: str) -> None:
    for situation in situations(phase):
        wanted = expected(situation)
        world = world_of(situation)
        pods = dict(situation.pods)
        if situation.via == "eviction":
            pods["a-0"] = "Failed leaving"
        decision = world.reconcile()
        after = world.job()["status"]
        follows = synced(situation.phase, pods) if wanted.next == BY_COUNTS else wanted.next
        over = follows in ("Completed", "Failed") and wanted is SYNC
        kills, group = ("unfinished", True) if over else (wanted.kills, wanted.group)
        got = (after["state"]["phase"], killed(decision), takes_group(decision), after.get("retryCount", 0))
        assert got == (follows, chosen(kills, pods), group, situation.retries + wanted.retry), situation
        if wanted is SYNC and not over:
            absent = {f"{name}-{index}" for name, count in REPLICAS.items() for index in range(count)} - pods.keys()
            assert created(decision) == absent, situation
        else:
            assert not created(decision), situation
        assert not world.all(COMMANDS), situation


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase])
def test_a_job_that_is_at_rest_costs_no_write(phase: str) -> None:
    """Volcano bumps `status.version` and writes the status with every pass through these."""
    for people in POPULATIONS:
        world = world_of(Situation(phase=phase, action="SyncJob", via="nobody", people=people))
        world.settle()
        before = world.writes
        assert not world.reconcile().events
        assert world.writes == before


def test_differences_are_told() -> None:
    page = DIFFERENCES.read_text(encoding="utf-8")
    for purpose in (*ON_PURPOSE, *RESTARTING_ON_PURPOSE):
        assert f"\n| {purpose.reported}" in page, f"docs/differences-jobs.md has no row {purpose.reported!r}"


def test_no_difference_is_told_in_vain() -> None:
    """Each entry of `ON_PURPOSE` decides some situation, and what it says there isn't what Volcano does."""
    idle = set(ON_PURPOSE)
    for phase in PHASES:
        for situation in situations(phase):
            row = PHASES[situation.phase]
            outcome = row.get(situation.action, row["*"])
            for purpose in list(idle):
                if purpose.holds(situation, outcome) and purpose.ours(situation, outcome) != outcome:
                    idle.discard(purpose)
    assert not idle


# Restarting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A restart under way: of the whole job, or of pod `a-0`. `pods` are those that are left of all of them."""

    whole: bool
    pods: Mapping[str, str]
    group: bool
    action: str
    via: str = "command"

    @property
    def terminating(self) -> int:
        """After a kill of what is being restarted."""
        going = set(self.pods) if self.whole else {"a-0"} & set(self.pods)
        return len(going | {name for name, phase in self.pods.items() if "leaving" in phase})


ALL = [f"{name}-{index}" for name, count in REPLICAS.items() for index in range(count)]
LEFT = {
    "none has gone": dict.fromkeys(ALL, "Running"),
    "all are going": dict.fromkeys(ALL, "Running leaving"),
    "one is going": {**dict.fromkeys(ALL, "Running"), "a-0": "Running leaving"},
    "one has gone": dict.fromkeys(ALL[1:], "Running"),
    "three are going": {**dict.fromkeys(ALL, "Running"), **dict.fromkeys(("a-0", "a-1", "b-1"), "Running leaving")},
    "all have gone": {},
}

CANCELS = {"AbortJob": "Aborting", "CompleteJob": "Completing", "TerminateJob": "Terminating"}


def volcano_restarting(restart: Restart) -> Outcome:
    """Every action kills what it is about and ends with the same callback (retries not used up): Pending as soon as
    replicas − terminating ≥ minAvailable."""
    if restart.action == "RestartJob" or restart.action in CANCELS:
        going = set(restart.pods)
        enough = TOTAL - len(going) >= MIN_AVAILABLE
        return Outcome("all", "Pending" if enough else "Restarting")
    enough = TOTAL - restart.terminating >= MIN_AVAILABLE
    return Outcome("old", "Pending" if enough else "Restarting", group=False)


RESTARTING_ON_PURPOSE = (
    OnPurpose(
        "Abort, Complete and Terminate are swallowed while a job restarts",
        lambda r, o: r.action in CANCELS,
        lambda r, o: Outcome("unfinished", CANCELS[r.action]),
    ),
    OnPurpose(
        "A new attempt may start while pods of the old one are still terminating",
        lambda r, o: r.whole,
        lambda r, o: Outcome(
            "all", "Pending" if not r.pods and not r.group and r.action != "RestartJob" else "Restarting"
        ),
    ),
    OnPurpose(
        "A new attempt may start while pods of the old one are still terminating",
        lambda r, o: r.action == "RestartJob",
        lambda r, o: Outcome("all", "Restarting"),
    ),
)


def restarting(restart: Restart) -> World:
    world = copy.deepcopy(BASE)
    job = world.job()
    ledger: Json = {"restartingJob": True} if restart.whole else {}
    if not restart.whole:
        ledger["restarting"] = [{"task": "a", "indices": "0", "retryCount": 1}]
        indices = {name: [pod[2:] for pod in restart.pods if pod[0] == name and pod != "a-0"] for name in REPLICAS}
        ledger["tasks"] = {name: {"seen": ",".join(sorted(seen))} for name, seen in indices.items()}
    job["status"] = {
        "state": {"phase": "Restarting", "lastTransitionTime": "2026-11-20T11:00:00Z"},
        "conditions": [{"status": "Restarting"}],
        "minAvailable": MIN_AVAILABLE,
        "retryCount": 1,
        "version": 1 if restart.whole else 0,
        "ledger": ledger,
    }
    for name, phase in restart.pods.items():
        put_pod(world, name, phase)
    if not restart.group:
        world.remove(PODGROUPS, world.all(PODGROUPS)[0]["metadata"]["name"])
    if restart.via == "command" and restart.action:
        world.command(restart.action, target=job, name="order")
    return world


def restarts() -> Iterator[Restart]:
    for whole, left, group, action in product((True, False), LEFT, (True, False), (*BY_COMMAND, "")):
        yield Restart(whole=whole, pods=LEFT[left], group=group, action=action)


def test_every_action_does_what_the_table_says_while_a_job_restarts() -> None:
    for restart in restarts():
        wanted = volcano_restarting(restart)
        wanted = next((p.ours(restart, wanted) for p in RESTARTING_ON_PURPOSE if p.holds(restart, wanted)), wanted)
        world = restarting(restart)
        decision = world.reconcile()
        after = world.job()["status"]
        old = {"a-0": restart.pods["a-0"]} if "a-0" in restart.pods else {}
        kills = chosen("all", old) if wanted.kills == "old" else chosen(wanted.kills, restart.pods)
        phase = after["state"]["phase"]
        assert (phase, killed(decision), after["retryCount"]) == (wanted.next, kills, 1), restart
        assert takes_group(decision) == (wanted.group and restart.group), restart
        assert not created(decision), restart


PARTS = {"RestartTask": "task", "RestartPod": "pod", "RestartPartition": "partition"}


@pytest.mark.parametrize("action", [*RESTARTS, *CANCELS])
def test_a_loss_beside_a_part_that_is_restarted_is_answered(action: str) -> None:
    """KillTarget in Restarting costs no further retry: neither in Volcano nor here."""
    restart = Restart(
        whole=False,
        pods={**dict.fromkeys(ALL, "Running"), "b-1": "Running leaving"},
        group=True,
        action=action,
        via="failure",
    )
    world = restarting(restart)
    world.job()["spec"]["policies"] = [{"event": "PodFailed", "action": action}]
    world.job()["status"]["ledger"]["restarting"] = [{"task": "b", "indices": "1", "retryCount": 1}]
    world.job()["status"]["ledger"]["tasks"] = {"a": {"seen": "0-3"}, "b": {"seen": "0"}}
    world.end_pod("j-a-0", 1)
    pods = {**restart.pods, "a-0": "Failed"}
    decision = world.reconcile()
    kills = {"RestartJob": "all"}.get(action) or PARTS.get(action) or "unfinished"
    phase = CANCELS.get(action, "Restarting")
    assert (world.phase(), killed(decision)) == (phase, chosen(kills, pods))
    assert world.job()["status"]["retryCount"] == 1


@pytest.mark.parametrize("action", BY_POLICY)
def test_pods_of_an_attempt_that_is_over_concern_no_policy(action: str) -> None:
    """Their events carry an older version (2.4.1, row 4)."""
    world = restarting(Restart(whole=True, pods=LEFT["none has gone"], group=True, action=action, via="failure"))
    world.job()["spec"]["policies"] = [{"event": "*", "action": action}]
    world.end_pod("j-a-0", 1)
    world.remove(PODS, "j-a-1")
    decision = world.reconcile()
    assert world.phase() == "Restarting"
    assert killed(decision) == set(ALL) - {"a-1"}
    assert world.job()["status"]["retryCount"] == 1


# The rules of SyncJob, count by count --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Two tasks, `a` of two pods and `b` of one, with or without minimums of their own; the phase of each pod."""

    phases: tuple[str, ...]
    min_available: int
    min_success: int | None
    minimums: tuple[int | None, int | None]


def syncs(start: str) -> Iterator[Sync]:
    kinds = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Running leaving")
    minimums = ((None, None), (1, None), (2, 1), (1, 0))
    successes = (None, 1, 2, 3)
    if start == "Pending":  # decides by minAvailable alone
        minimums, successes = minimums[:2], successes[:2]
    for a0, a1, b0 in product(kinds, repeat=3):
        if a0 > a1:
            continue  # the order inside a task decides nothing
        for min_available, min_success, own in product((1, 2, 3), successes, minimums):
            yield Sync(phases=(a0, a1, b0), min_available=min_available, min_success=min_success, minimums=own)


def running_by_the_rules(sync: Sync) -> str:
    """2.6, Running + Sync, in order."""
    a, b = sync.phases[:2], sync.phases[2:]
    succeeded, failed = sync.phases.count("Succeeded"), sync.phases.count("Failed")
    least = [replicas if own is None else own for own, replicas in zip(sync.minimums, (2, 1), strict=True)]
    if sync.min_success is not None and succeeded >= sync.min_success:  # 2
        return "Completed"
    if succeeded + failed == 3:
        if sync.min_available >= sum(least):  # 3a
            for own, phases in zip(sync.minimums, (a, b), strict=True):
                if own is not None and phases.count("Succeeded") < own:
                    return "Failed"
        if sync.min_success is not None:  # 3b
            return "Failed"
        return "Completed" if succeeded >= sync.min_available else "Failed"  # 3c, 3d
    if sync.phases.count("Pending") > 3 - sync.min_available:  # 4
        return "Pending"
    return "Running"  # 5


def pending_by_the_rules(sync: Sync) -> str:
    started = sum(sync.phases.count(phase) for phase in ("Running", "Succeeded", "Failed"))
    return "Running" if sync.min_available <= started else "Pending"


def sync_world() -> World:
    world = World()
    world.submit(job_object(tasks=[task("a", 2), task("b", 1)]))
    world.reconcile()
    world.schedule()
    return world


@pytest.mark.parametrize(("start", "rules"), [("Running", running_by_the_rules), ("Pending", pending_by_the_rules)])
def test_what_follows_from_the_counts(start: str, rules: Any) -> None:
    world = sync_world()
    tasks = world.job()["spec"]["tasks"]
    for sync in syncs(start):
        for name in list(world.pods()):
            world.remove(PODS, name)
        for name, phase in zip(("a-0", "a-1", "b-0"), sync.phases, strict=True):
            put_pod(world, name, phase)
        world.job()["spec"] |= {"minAvailable": sync.min_available, "minSuccess": sync.min_success}
        for spec, own in zip(tasks, sync.minimums, strict=True):
            spec["minAvailable"] = own
        world.job()["status"] = {"state": {"phase": start}, "conditions": [{"status": start}]}
        decision = _decided(world)
        a, b = sync.minimums
        filled = replace(sync, minimums=(2 if a is None else a, 1 if b is None else b))  # by default all replicas
        assert decision == rules(filled), sync


def _decided(world: World) -> str:
    status = decide(world.view(), now=world.now).status
    assert status is not None
    return status.status["state"]["phase"]


def test_a_job_without_pods_goes_on() -> None:
    """2.6, Running + Sync, row 1."""
    world = World()
    world.submit(job_object(tasks=[task("a", 1)]))
    world.run(until=lambda: world.phase() == "Running")
    world.change(JOBS, "j", lambda job: job["spec"]["tasks"][0].update(replicas=0, minAvailable=0))
    world.settle()
    assert world.phase() == "Running"


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_a_gang_that_isnt_let_in_has_no_pods(phase: str) -> None:
    for state in ("", "Pending"):
        world = world_of(Situation(phase=phase, action="", via="nobody", people="all sorts"))
        for name in world.pods():
            world.remove(PODS, name)
        world.job()["status"].pop("ledger", None)
        group = world.all(PODGROUPS)[0]
        group["status"] = {"phase": state}
        decision = world.reconcile()
        assert not created(decision)
        assert world.phase() == "Pending"
        for let_in in ("Inqueue", "Running", "Unknown"):
            group["status"] = {"phase": let_in}
            again = copy.deepcopy(world)
            assert created(again.reconcile()) == set(ALL)
