"""Restarts that meet each other, and starts that have to wait."""

from __future__ import annotations

from typing import Any

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.names import pod_group_name
from vcbatch.api.resources import JOBS, PODGROUPS


def running(*tasks: Json, **spec: Any) -> World:
    world = World()
    world.submit(job_object(tasks=list(tasks) or None, **spec))
    world.run(until=lambda: world.phase() == "Running")
    world.settle()
    return world


def attempt(world: World) -> tuple[str, int, int]:
    status = world.job()["status"]
    return status["state"]["phase"], status.get("version", 0), status.get("retryCount", 0)


def ask(world: World, action: str) -> None:
    world.command(action, target=world.job())
    world.settle()


def test_a_job_that_is_being_restarted_is_not_restarted_again() -> None:
    world = running()
    ask(world, "RestartJob")
    phase, version, _ = attempt(world)
    assert (phase, version) == ("Restarting", 1)
    ask(world, "RestartJob")
    assert attempt(world)[:2] == ("Restarting", 1)
    assert world.job()["status"]["ledger"]["restartingJob"]
    world.run(until=lambda: world.phase() == "Running")
    assert attempt(world)[1] == 1
    assert "restartingJob" not in world.job()["status"]["ledger"]


def test_a_restart_that_is_called_off_ends_its_attempt() -> None:
    world = running()
    ask(world, "RestartJob")
    ask(world, "AbortJob")
    assert attempt(world)[:2] == ("Aborting", 2)


def test_a_restart_of_a_part_gives_way_to_one_of_the_whole() -> None:
    policies = [{"exitCode": 3, "action": "RestartTask"}]
    world = running(task("a", 2), task("b", 1), policies=policies, maxRetry=9)
    world.end_pod("j-a-0", 3)
    world.settle()
    assert attempt(world) == ("Restarting", 0, 1)
    ask(world, "RestartJob")
    assert attempt(world)[:2] == ("Restarting", 1)
    assert world.pods()["j-b-0"]["metadata"]["deletionTimestamp"]
    world.run(until=lambda: world.phase() == "Running")
    assert {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in world.pods().values()} == {"1"}


def waiting() -> World:
    """A job that the infrastructure took twice, before its next start."""
    world = running(policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    for phase in ("Running", "Pending"):
        world.evict("j-w-0")
        world.run(until=lambda: world.phase() == "Restarting")
        world.run(until=lambda phase=phase: world.phase() == phase)
    assert "notBefore" in world.job()["status"]["ledger"]
    return world


def test_a_job_that_waits_asks_for_no_gang() -> None:
    world = waiting()
    world.settle()
    assert not world.all(PODGROUPS)
    assert world.reconcile().requeue_at is not None
    world.run(until=lambda: world.phase() == "Running")
    assert "notBefore" not in world.job()["status"]["ledger"]


def test_a_job_that_waits_makes_no_pods_for_a_gang_that_is_let_in() -> None:
    world = waiting()
    job = world.job()
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
    name = pod_group_name("j", job["metadata"]["uid"])
    metadata = {"name": name, "ownerReferences": [{**owner, "controller": True}]}
    world.put(PODGROUPS, {"metadata": metadata, "spec": {}, "status": {"phase": "Inqueue"}})
    world.settle()
    assert not world.pods()
    (group,) = world.all(PODGROUPS)
    assert group["spec"]["minMember"] == 2, "it is kept up to date meanwhile"
    world.run(until=lambda: world.phase() == "Running")
    assert len(world.pods()) == 2


def test_a_refusal_of_claims_holds_up_nobody_who_needs_none() -> None:
    world = World()
    world.submit(job_object())
    world.claim_refusal = "exceeded quota: storage"
    world.run(until=lambda: world.phase() == "Running")
    assert "reason" not in world.job()["status"]["state"]
