"""How plugins come to one answer: votes on gangs, and victims that several have a say about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.plugin import EvictionKind, Plugin, Vote
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Job, Task

Tier = tuple[Any, ...]
NO, YES, SILENT = Vote.REJECT, Vote.PERMIT, Vote.ABSTAIN


class _Voter(Plugin):
    vote = Vote.ABSTAIN

    def job_pipelined(self, job: Job) -> Vote:
        return self.vote


class _Namer(Plugin):
    names: str | None = ""
    """One letter for each pod; None has no opinion."""

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        return None if self.names is None else [task for task in candidates if task.uid in self.names]

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task] | None:
        return self.preemptable(reclaimer, candidates)


def session_of(base: type[Plugin], attribute: str, tiers: Sequence[Tier]) -> Session:
    """A session in which each answer is that of a plugin of its own."""
    plugins: dict[str, type[Plugin]] = {}
    document: list[dict[str, Any]] = []
    for answers in tiers:
        names = []
        for answer in answers:
            name = f"p{len(plugins)}"
            plugins[name] = type(name, (base,), {attribute: answer})
            names.append({"name": name})
        document.append({"plugins": names})
    policy = build_policy({"actions": "allocate", "tiers": document}, plugins=plugins)
    cluster = Cluster(policy)
    return Session(cluster.scheduler._state, policy, StaticCache(), now=cluster.now, uid="s")


@pytest.mark.parametrize(
    ("tiers", "held"),
    [
        ([(NO, YES)], False),
        ([(YES, NO)], False),
        ([(YES, SILENT), (NO,)], True),
        ([(SILENT,), (NO,)], False),
        ([(SILENT,), (SILENT,)], True),
        ([()], True),
    ],
)
def test_votes(tiers: Sequence[Tier], held: bool) -> None:
    """A rejection ends the count, an acceptance ends it with its tier, and silence is consent."""
    assert session_of(_Voter, "vote", tiers).pipelined(Job("ns/g", 0)) is held


GANG, SLA, PRIORITY = {"name": "gang"}, {"name": "sla"}, {"name": "priority"}
WAITED = {"volcano.sh/sla-waiting-time": "1s"}
QUIET = {**GANG, "enableJobPipelined": False}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("tiers", "notes", "when_whole", "when_not"),
    [
        ([[PRIORITY, GANG, SLA]], {}, True, False),
        ([[PRIORITY, SLA, GANG]], WAITED, True, False),
        ([[PRIORITY, GANG], [SLA]], WAITED, True, False),
        ([[SLA], [GANG]], WAITED, True, True),
        ([[SLA], [GANG]], {}, True, False),
        ([[QUIET, SLA]], {}, True, True),
        ([[QUIET, SLA]], WAITED, True, True),
    ],
    ids=["silent", "same-tier", "later-tier", "earlier-tier", "earlier-tier-silent", "gang-off", "gang-off-waited"],
)
def test_what_gangs_may_hold(
    tiers: list[list[dict[str, Any]]], notes: dict[str, str], when_whole: bool, when_not: bool, whole: bool
) -> None:
    """Who waited too long may hold what it found only where gang has no say, or none before it."""
    policy = build_policy({"actions": "allocate", "tiers": [{"plugins": plugins} for plugins in tiers]})
    cluster = Cluster(policy)
    cluster.node("n")
    cluster.gang("g", 2, minimum=2, annotations=notes)
    for index in range(2 if whole else 1):
        cluster.change(f"g-worker-{index}", phase="Running", node="n")
    state = cluster.scheduler._state
    state.settle()
    session = Session(state, policy, StaticCache(), now=cluster.now, uid="s")
    assert session.pipelined(state.jobs["ns/g"]) is (when_whole if whole else when_not)


@pytest.mark.parametrize(
    ("tiers", "victims", "more"),
    [
        ([("ab", "bc")], "b", False),
        ([("ab", "c"), ("d",)], "d", False),
        ([("ab", "c")], "", False),
        ([("ab", "c", "bd")], "bd", False),
        ([("ab", "")], "", False),
        ([("ab", "", "ab"), ("c",)], "c", False),
        ([("ab", None, "bc"), ("d",)], "b", True),
        ([(None,), ("cd", "d")], "d", False),
        ([("ab",), ("cd",)], "ab", True),
        ([()], "", False),
    ],
)
def test_victims_are_those_on_whom_a_tier_agrees(tiers: Sequence[Tier], victims: str, more: bool) -> None:
    """The first tier that finds any decides. Who names nobody silences its tier; where two have nobody in common, the
    next of the tier starts anew. Whoever has no opinion counts for nothing."""
    session = session_of(_Namer, "names", tiers)
    job = Job("ns/g", 0)
    cluster = Cluster()
    cluster.gang("g", 5, minimum=5)
    pods = list(cluster.scheduler._state.tasks.values())
    for task, uid in zip(pods, "abcdz", strict=True):
        task.uid, task.job = uid, job
    candidates, actor = pods[:4], pods[4]
    assert "".join(task.uid for task in session.preemptable(actor, candidates)) == victims
    assert "".join(task.uid for task in session.reclaimable(actor, candidates)) == victims
    for kind in EvictionKind:
        agreed, others = session.named(kind, actor, candidates)
        assert ("".join(task.uid for task in agreed), others) == (victims, more)
