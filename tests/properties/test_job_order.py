"""A job's status tells what is, and nothing of the way there: whatever the order in which its pods meet their fates,
and however often and when the controller looks, it is the same in the end."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import PODS

FATES = ("goes on", "succeeds", "fails", "is evicted", "is deleted", "vanishes")
SAID = (
    "pending",
    "running",
    "succeeded",
    "failed",
    "terminating",
    "unknown",
    "taskStatusCount",
    "retryCount",
    "version",
)


def meet(world: World, pod: str, fate: str) -> None:
    match fate:
        case "succeeds" | "fails":
            world.end_pod(pod, 0 if fate == "succeeds" else 1)
        case "is evicted":
            world.evict(pod)
        case "is deleted":
            world.delete_pod(pod)
        case "vanishes":
            world.remove(PODS, pod)
        case _:
            pass


def play(replicas: Sequence[int], slack: int, fates: Sequence[tuple[str, str]], reconciles: Sequence[bool]) -> Json:
    """What the status says once all fates are met, in this order, with a look after some of them."""
    world = World()
    tasks = [task(f"t{number}", count) for number, count in enumerate(replicas)]
    world.submit(job_object(tasks=tasks, minAvailable=max(1, sum(replicas) - slack)))
    world.run(until=lambda: world.job()["status"].get("running") == sum(replicas))
    for (pod, fate), reconcile in zip(fates, reconciles, strict=True):
        meet(world, pod, fate)
        if reconcile:
            world.reconcile()
    for _ in range(6):
        world.settle()
        world.step()
    world.settle()
    status = world.job()["status"]
    said = {key: status.get(key) for key in SAID}
    return said | {"phase": status["state"]["phase"], "tasks": status["ledger"].get("tasks")}


@settings(max_examples=examples(60))
@given(replicas=st.lists(st.integers(1, 3), min_size=1, max_size=2), slack=st.integers(0, 2), data=st.data())
def test_the_order_of_events_decides_nothing(replicas: list[int], slack: int, data: st.DataObject) -> None:
    pods = [f"j-t{number}-{index}" for number, count in enumerate(replicas) for index in range(count)]
    fates = [(pod, data.draw(st.sampled_from(FATES), label=pod)) for pod in pods]
    order = data.draw(st.permutations(fates), label="order")
    reconciles = data.draw(st.lists(st.booleans(), min_size=len(pods), max_size=len(pods)), label="looks")
    assert play(replicas, slack, order, reconciles) == play(replicas, slack, fates, [False] * len(pods))
