"""Partitions: what the scheduler is told of them, and that they are restarted together."""

from __future__ import annotations

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import JOBS, PODGROUPS

POLICY = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
RESTART = [{"event": "PodFailed", "action": "RestartPartition"}]


def running(*tasks: Json, **spec: object) -> World:
    world = World()
    world.submit(job_object(tasks=list(tasks), **spec))
    world.run(until=lambda: world.phase() == "Running")
    return world


def uids(world: World) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in world.pods().items()}


def replaced(world: World, before: dict[str, str]) -> set[str]:
    """Play until every pod runs again; the names of those that are others than before."""

    def whole() -> bool:
        pods = world.pods().values()
        running = [
            pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]
        return len(running) == len(before)

    world.settle()
    world.run(until=whole)
    return {name for name, uid in uids(world).items() if before[name] != uid}


def group(world: World) -> Json:
    (stored,) = world.all(PODGROUPS)
    return stored["spec"]


def test_pods_know_their_partition_and_the_pod_group_asks_for_whole_ones() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    world = running(task("w", 4, partitionPolicy=POLICY | {"networkTopology": topology}), task("x", 1))
    labels = {name: pod["metadata"]["labels"].get("volcano.sh/partition-id") for name, pod in world.pods().items()}
    assert labels == {"j-w-0": "0", "j-w-1": "0", "j-w-2": "1", "j-w-3": "1", "j-x-0": None}
    assert group(world)["minTaskMember"] == {"w": 2, "x": 1}
    assert group(world)["subGroupPolicy"] == [
        {
            "name": "w",
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "subGroupSize": 2,
            "minSubGroups": 1,
            "networkTopology": topology,
        }
    ]
    assert not world.reconcile().ensures


def test_the_pod_group_gets_back_what_somebody_took_from_it() -> None:
    world = running(task("w", 4, partitionPolicy=POLICY), networkTopology={"mode": "soft", "highestTierAllowed": 2})
    before = dict(group(world))

    def spoil(stored: Json) -> None:
        stored["spec"]["subGroupPolicy"] = [{"name": "mine"}]
        stored["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": "x"}

    (stored,) = world.all(PODGROUPS)
    world.change(PODGROUPS, stored["metadata"]["name"], spoil)
    world.settle()
    assert group(world) == before


def test_a_partition_is_restarted_whole_and_alone() -> None:
    world = running(task("w", 4, partitionPolicy=POLICY), task("x", 1), policies=RESTART)
    before = uids(world)
    world.end_pod("j-w-2", 1)
    assert replaced(world, before) == {"j-w-2", "j-w-3"}
    assert world.job()["status"]["retryCount"] == 1


def test_two_partitions_that_break_at_once_cost_one_retry() -> None:
    world = running(task("w", 4, partitionPolicy=POLICY), task("x", 1), policies=RESTART)
    before = uids(world)
    world.end_pod("j-w-0", 1)
    world.end_pod("j-w-3", 1)
    assert replaced(world, before) == before.keys() - {"j-x-0"}
    assert world.job()["status"]["retryCount"] == 1


def test_without_partitions_a_pod_is_one_by_itself() -> None:
    world = running(task("w", 3), policies=RESTART)
    before = uids(world)
    world.end_pod("j-w-1", 1)
    assert replaced(world, before) == {"j-w-1"}


def test_a_restart_under_way_is_remembered_by_index() -> None:
    world = running(task("w", 4, partitionPolicy=POLICY), task("x", 1), policies=RESTART)
    world.end_pod("j-w-2", 1)
    world.reconcile()
    assert world.job()["status"]["ledger"]["restarting"] == [{"task": "w", "indices": "2-3", "retryCount": 1}]

    def fewer(job: Json) -> None:
        job["spec"]["tasks"][0]["replicas"] = 2
        job["spec"]["minAvailable"] = 1

    world.change(JOBS, "j", fewer)
    world.run(until=lambda: world.phase() == "Running" and len(world.pods()) == 3)
    assert set(world.pods()) == {"j-w-0", "j-w-1", "j-x-0"}
