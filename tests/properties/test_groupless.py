"""Pods and PodGroups come and go in any order: who waits for a PodGroup that isn't there says so, and nobody else."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.reasons import WaitReason
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler import CycleResult

STEPS = (
    ("pod", 0),
    ("pod", 1),
    ("no pod", 0),
    ("group", 1),
    ("group", 3),
    ("no group", 0),
    ("cycle", 1),
    ("cycle", 6),
    ("cycle", 6),
)
"""What happens, to which pod, or with which minimum, or after so many seconds."""


class World(Cluster):
    """`said` is what each pod says last, `again` those that said the same twice in a row."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}
        self.again: list[str] = []
        self.node("n", cpu="1")

    def cycle(self, *, after: float = 2.0) -> CycleResult:
        result = super().cycle(after=after)
        for update in result.pod_conditions:
            if self.said.get(update.name) == update.message:
                self.again.append(update.name)
            self.said[update.name] = update.message
        return result

    def do(self, step: str, number: int) -> None:
        pod = f"g-worker-{number}"
        match step:
            case "pod" if pod not in self.pods:
                self.pod("g", number)
            case "no pod" if pod in self.pods:
                self.delete(pod)
                self.said.pop(pod, None)
            case "group" if not self.groups:
                self.gang("g", 0, minimum=number)
            case "no group" if self.groups:
                self.scheduler.apply(PODGROUPS, "DELETED", msgspec.convert(self.groups.pop("g"), PodGroupView))
            case "cycle":
                self.cycle(after=number)
            case _:
                pass


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(STEPS), min_size=5, max_size=20))
def test_who_waits_for_a_podgroup_that_is_not_there_says_so_and_nobody_else(play: list[tuple[str, int]]) -> None:
    world = World()
    for step in play:
        world.do(*step)
    last = [world.cycle(after=6) for _ in range(4)][-1]
    waiting = [name for name, raw in world.pods.items() if not raw["spec"].get("nodeName")]
    for name in waiting:
        missed = world.said.get(name) == "PodGroupMissing: PodGroup ns/g doesn't exist"
        assert missed is not bool(world.groups), world.said.get(name)
    assert set(world.scheduler.strays()) == (set() if world.groups else {f"ns/{name}" for name in waiting})
    counted = world.scheduler.waiting().get(("", WaitReason.POD_GROUP_MISSING), 0)
    assert counted == (1 if waiting and not world.groups else 0)
    assert not world.again
    assert not last.pod_conditions, "it is said once"
