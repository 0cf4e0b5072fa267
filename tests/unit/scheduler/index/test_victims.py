"""The table of who could be evicted: whatever happens to pods and nodes, it says what a look at every pod would."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import build_policy, default_policy
from vcbatch.scheduler.index.victims import VICTIM_STATUSES
from vcbatch.scheduler.snapshot.cluster_events import ClusterEvents
from vcbatch.scheduler.snapshot.snapshot import Snapshot

POLICY = build_policy({"actions": "allocate, preempt", "tiers": [{"plugins": [{"name": "gang"}]}]})

deeds = st.lists(
    st.tuples(
        st.sampled_from(["pod", "run", "end", "delete", "node", "unnode", "evict", "fail", "cycle"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=25,
)


def agrees(state: Snapshot) -> None:
    """Everybody that is there, and nobody else, with what they take of which node."""
    table = state.victims
    assert table is not None
    state.settle()
    everybody = np.ones(len(state.jobs_table.queue), dtype=bool)
    expected = {
        task.uid: (info.row, task.job.row, task.priority, tuple(task.cls.request))
        for info in state.nodes.infos
        for task in info.tasks.values()
        if task.job is not None and task.preemptable and task.status in VICTIM_STATUSES
    }
    found = table.candidates(running=False, jobs=everybody)
    tasks = [table.tasks[seat] for seat in found.seats]
    rows = zip(found.nodes, found.jobs, found.priority, found.requests[found.classes], strict=True)
    seen = {task.uid: (n, j, p, tuple(r)) for task, (n, j, p, r) in zip(tasks, rows, strict=True) if task is not None}
    assert seen == expected
    total = found.amounts(np.array([0]), len(state.nodes))[0]
    for info in state.nodes.infos:
        assert total[info.row] == sum(r[0] for row, _, _, r in expected.values() if row == info.row)
    for job in state.jobs.values():
        counted = state.jobs_table.ready_count[job.row], state.jobs_table.pending_best_effort[job.row]
        assert counted == (job.ready_count, job.pending_best_effort)
    running = table.candidates(running=True, jobs=everybody)
    assert {table.tasks[seat].status.name for seat in running.seats if table.tasks[seat]} <= {"RUNNING"}  # type: ignore[union-attr]


@settings(max_examples=60)
@given(deeds)
def test_deltas_leave_what_a_new_look_finds(given_deeds: list[tuple[str, int, int]]) -> None:
    found = Cluster(POLICY)
    state = found.scheduler._state
    for i in range(2):
        found.gang(f"g{i}", 0, minimum=1)
        found.node(f"n{i}")
    for deed, which, where in given_deeds:
        name = f"g{which % 2}-worker-{which}"
        known = state.tasks.get(f"pod-{name}") if name in found.pods else None
        match deed:
            case "pod" if name not in found.pods and where == 2:
                found.pod(f"g{which % 2}", which, cpu=None)
            case "pod" if name not in found.pods:
                kept = {"notes": {"volcano.sh/preemptable": "false"}} if where == 3 else {}
                found.pod(f"g{which % 2}", which, cpu=str(1 + where), nodeName=f"n{where}", priority=where, **kept)
            case "run" | "end" if name in found.pods:
                found.change(name, phase="Running" if deed == "run" else "Succeeded")
            case "delete" if name in found.pods:
                found.delete(name)
            case "node":
                found.node(f"n{where}")
            case "unnode":
                ClusterEvents(state).delete_node(f"n{where}")
            case "evict" if known is not None and known.status in VICTIM_STATUSES and known.node:
                state.settle()
                before = state.evict(known)
                if where % 2:
                    state.spare(known, before)
                else:
                    state.evicted(known)
            case "fail" if known is not None:
                state.eviction_failed(known.uid)
            case "cycle":
                found.cycle()
            case _:
                pass
        agrees(state)


def test_a_policy_that_evicts_nobody_keeps_no_table() -> None:
    found = Cluster()
    assert found.scheduler._state.victims is None
    found.node("n0")
    found.gang("one", 2)
    found.cycle()
    found.scheduler.set_policy(POLICY)
    assert len(found.scheduler._state.victims) == 2
    found.scheduler.set_policy(default_policy())
    assert found.scheduler._state.victims is None
