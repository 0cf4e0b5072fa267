"""dependsOn: who waits for whom, what that does to the gang, and what becomes of a job that waits in vain."""

from __future__ import annotations

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import PODGROUPS, PODS


def world_of(*tasks: Json, **spec: object) -> World:
    world = World()
    world.submit(job_object(tasks=list(tasks), **spec))
    world.settle()
    world.schedule()
    world.settle()
    return world


def go_on(world: World) -> None:
    """Bind and start what there is, and let the controller look."""
    world.schedule()
    world.run_nodes()
    world.settle()


def gang(world: World) -> tuple[int, dict[str, int]]:
    (group,) = world.all(PODGROUPS)
    return group["spec"]["minMember"], group["spec"]["minTaskMember"]


def test_a_task_waits_until_what_it_depends_on_is_ready() -> None:
    world = world_of(task("ps", 1), task("w", 2, dependsOn={"name": ["ps"]}))
    assert set(world.pods()) == {"j-ps-0"}
    assert gang(world) == (1, {"ps": 1, "w": 0})
    assert world.job()["status"]["state"]["reason"] == "DependencyNotReady"
    assert world.job()["status"]["state"]["message"] == "task w waits for ps"
    go_on(world)
    assert set(world.pods()) == {"j-ps-0", "j-w-0", "j-w-1"}
    assert gang(world) == (3, {"ps": 1, "w": 2})
    go_on(world)
    assert world.phase() == "Running"
    assert not world.job()["status"]["state"].get("reason")


def test_running_is_not_enough_while_a_container_is_not_ready() -> None:
    world = world_of(task("ps", 1), task("w", 1, dependsOn={"name": ["ps"]}))
    world.schedule()
    world.run_nodes()

    def ready(value: bool) -> None:
        def change(pod: Json) -> None:
            pod["status"]["containerStatuses"] = [{"name": "main", "ready": value}]

        world.change(PODS, "j-ps-0", change)
        world.settle()

    ready(False)
    assert "j-w-0" not in world.pods()
    ready(True)
    assert "j-w-0" in world.pods()


def test_a_finished_task_is_there_too() -> None:
    world = world_of(task("prep", 1), task("w", 1, dependsOn={"name": ["prep"]}), minAvailable=1)
    world.run_nodes()
    world.end_pod("j-prep-0", 0)
    world.settle()
    assert "j-w-0" in world.pods()
    world.remove(PODS, "j-prep-0")
    world.settle()
    assert set(world.pods()) == {"j-w-0"}


def test_as_many_as_its_min_available_are_a_task() -> None:
    world = world_of(task("ps", 2, minAvailable=1), task("w", 1, dependsOn={"name": ["ps"]}), minAvailable=2)
    world.start_pod(world.pods()["j-ps-1"])
    world.settle()
    assert "j-w-0" in world.pods()


def test_any_of_several_is_enough_where_that_is_asked_for() -> None:
    def waits(iteration: str) -> bool:
        depends = {"name": ["a", "b"], "iteration": iteration}
        world = world_of(task("a", 1), task("b", 1), task("w", 1, dependsOn=depends))
        world.start_pod(world.pods()["j-b-0"])
        world.settle()
        return "j-w-0" not in world.pods()

    assert waits("all")
    assert not waits("any")


def test_a_chain_starts_link_by_link() -> None:
    world = world_of(
        task("a", 1), task("b", 1, dependsOn={"name": ["a"]}), task("c", 1, dependsOn={"name": ["b"]}), minAvailable=3
    )
    seen = [set(world.pods())]
    for _ in range(2):
        go_on(world)
        seen.append(set(world.pods()))
    assert seen == [{"j-a-0"}, {"j-a-0", "j-b-0"}, {"j-a-0", "j-b-0", "j-c-0"}]


def test_waiting_in_vain_is_a_failed_job_that_says_so() -> None:
    world = world_of(
        task("a", 1), task("b", 2, dependsOn={"name": ["a"]}), task("c", 1, dependsOn={"name": ["b"]}), minAvailable=4
    )
    world.run_nodes()
    world.end_pod("j-a-0", 1)
    world.settle()
    assert world.phase() == "Failed"
    message = world.job()["status"]["state"]["message"]
    assert message.startswith(
        "pod j-a-0 exited with code 1; 0 of 4 pods succeeded and 1 failed, 3 could never start (b"
    )
    assert set(world.pods()) == {"j-a-0"}


def test_one_of_any_that_is_left_keeps_the_hope_up() -> None:
    depends = {"name": ["a", "b"], "iteration": "any"}
    world = world_of(task("a", 1), task("b", 1), task("w", 1, dependsOn=depends), minAvailable=1)
    world.end_pod("j-a-0", 1)
    world.settle()
    assert world.phase() == "Running"
    world.start_pod(world.pods()["j-b-0"])
    world.settle()
    assert "j-w-0" in world.pods()


def test_a_restart_begins_with_the_first_task_again() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world = world_of(task("ps", 1), task("w", 1, dependsOn={"name": ["ps"]}), policies=policies)
    go_on(world)
    go_on(world)
    world.end_pod("j-w-0", 1)
    world.run(until=lambda: world.phase() == "Pending" and bool(world.pods()))
    assert world.job()["status"]["retryCount"] == 1
    assert set(world.pods()) == {"j-ps-0"}
    world.run(until=lambda: world.phase() == "Running")
    assert set(world.pods()) == {"j-ps-0", "j-w-0"}


def test_a_dependency_that_is_restarted_leaves_those_that_run_alone() -> None:
    world = world_of(
        task("ps", 1, policies=[{"event": "PodFailed", "action": "RestartTask"}]),
        task("w", 1, dependsOn={"name": ["ps"]}),
    )
    go_on(world)
    go_on(world)
    before = world.pods()["j-w-0"]["metadata"]["uid"]
    world.end_pod("j-ps-0", 1)
    world.run(until=lambda: world.phase() == "Running" and "j-ps-0" in world.pods())
    assert world.pods()["j-w-0"]["metadata"]["uid"] == before
