"""Who holds up whom in a queue that is first in, first out: people are told the same before the scheduler says it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.messages import first_in_line, read_wait
from vcbatch.core.waiting import Surroundings, waiting_of
from vcbatch.scheduler.reasons.said import MESSAGE_EVERY

QUEUES = [{"metadata": {"name": "q"}, "spec": {"dequeueStrategy": "fifo"}}]
GANGS = st.lists(
    st.tuples(
        st.integers(1, 4),  # pods
        st.sampled_from(["1", "3", "9"]),  # cpu of each: nine is more than any node has
        st.sampled_from(["Pending", "Inqueue"]),
        st.booleans(),  # whether all its pods are there
        st.sampled_from(["", "high"]),
    ),
    min_size=2,
    max_size=7,
)


LATER_FIRST = [
    (1, "1", "Pending", False, ""),
    (1, "1", "Pending", False, ""),
    (1, "9", "Inqueue", True, ""),
    (3, "1", "Pending", False, ""),
    (1, "1", "Pending", False, ""),
]
"""The third is found impossible, so that the first two are admitted and the fourth is the first to wait."""


@given(gangs=GANGS, nodes=st.integers(1, 2))
@example(gangs=LATER_FIRST, nodes=1)
@settings(max_examples=examples(150))
def test_who_holds_up_whom_is_what_the_scheduler_says(gangs: list[tuple[int, str, str, bool, str]], nodes: int) -> None:
    cluster = Cluster()
    cluster.queue("q", dequeueStrategy="fifo")
    cluster.priority("high", 10)
    for number in range(nodes):
        cluster.node(f"n{number}", cpu="4")
    for number, (size, cpu, phase, whole, priority) in enumerate(gangs):
        asks = {"cpu": str(int(cpu) * size)}
        members = 0 if phase == "Pending" else size if whole else size - 1
        more: dict[str, Any] = {"priorityClassName": priority} if priority else {}
        cluster.gang(f"g{number}", members, minimum=size, phase=phase, cpu=cpu, queue="q", minResources=asks, **more)
    for _ in range(4):
        cluster.cycle()
    cluster.cycle(after=2 * MESSAGE_EVERY.total_seconds())  # messages whose reason stays are written after a while
    (queue,) = cluster.scheduler.standings(cluster.now).queues or (None,)
    places = {} if queue is None else {gang.uid: place for place, gang in enumerate(queue.gangs)}
    for name, group in cluster.groups.items():
        said = next(iter(group["status"].get("conditions") or ()), {}).get("message", "")
        named = first_in_line(read_wait(said)[1])
        others = [other for other in cluster.groups if other != name]
        mute = copy.deepcopy(group)
        mute["status"].pop("conditions", None)
        mute["metadata"]["ownerReferences"] = [{"kind": "Job", "name": name, "uid": "job", "controller": True}]
        around = Surroundings(
            pod_groups=[mute, *map(cluster.groups.__getitem__, others)],
            queues=QUEUES,
            priorities={"high": 10},
            places=places,
        )
        job: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns", "uid": "job"}, "spec": {"queue": "q"}}
        found = waiting_of(job, around).held_up_by
        if named:
            assert found is not None and found.key == named, said
