"""The job controller may die between any two writes, at any moment of a job's life, and nothing comes of it.

Each scenario is played once undisturbed; then again for every single write that its decisions make, dying instead of
that write. The job must end alike: same phase, counts, retries, attempts, and the same pods created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.resources import COMMANDS, CONFIGMAPS, JOBS, PODGROUPS, SERVICES

Script = Callable[[World], None]


def _until(world: World, *phases: str) -> None:
    world.run(until=lambda: world.phase() in phases)


def _completes(world: World) -> None:
    world.submit(job_object(tasks=[task("w", 3, "sleep 2")], plugins={"svc": [], "env": []}))
    _until(world, "Completed")


def _restarts_by_failure(world: World) -> None:
    world.submit(
        job_object(
            tasks=[task("ok", 2), task("bad", 1, "sleep 3 && exit 3")],
            policies=[{"event": "PodFailed", "action": "RestartJob"}],
            maxRetry=3,
        )
    )
    _until(world, "Failed")


def _restarts_by_loss(world: World) -> None:
    world.submit(job_object(policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    _until(world, "Running")
    world.delete_pod("j-w-0")
    _until(world, "Restarting")
    _until(world, "Running")


def _restarts_one_pod(world: World) -> None:
    world.submit(
        job_object(
            tasks=[task("ok", 2), task("bad", 2, "sleep 3 && exit 3")],
            policies=[{"event": "PodFailed", "action": "RestartPod"}],
            maxRetry=3,
        )
    )
    _until(world, "Failed")


def _restarts_a_task(world: World) -> None:
    world.submit(
        job_object(tasks=[task("ok", 1), task("w", 3, policies=[{"event": "PodFailed", "action": "RestartTask"}])])
    )
    _until(world, "Running")
    world.end_pod("j-w-1", 1)
    _until(world, "Restarting")
    _until(world, "Running")


def _suspends_and_resumes(world: World) -> None:
    job = world.submit(job_object(tasks=[task("w", 2), task("done", 1, "sleep 1")], plugins={"svc": []}))
    _until(world, "Running")
    for _ in range(4):
        world.settle()
        world.step()
    world.command("AbortJob", target=job)
    _until(world, "Aborted")
    world.command("ResumeJob", target=job)
    _until(world, "Running")


def _restarts_by_command(world: World) -> None:
    job = world.submit(job_object(plugins={"svc": []}))
    _until(world, "Running")
    world.command("RestartJob", target=job)
    _until(world, "Restarting", "Pending")
    _until(world, "Running")


def _is_terminated_while_restarting(world: World) -> None:
    job = world.submit(job_object(policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    _until(world, "Running")
    world.end_pod("j-w-0", 1)
    _until(world, "Restarting")
    world.command("TerminateJob", target=job)
    _until(world, "Terminated")


def _completes_early(world: World) -> None:
    world.submit(job_object(tasks=[task("w", 2, "sleep 2"), task("long", 2)], minSuccess=1, minAvailable=2))
    _until(world, "Completed")


def _scales(world: World) -> None:
    world.submit(
        job_object(
            tasks=[task("w", 4)],
            minAvailable=1,
            plugins={"svc": []},
            policies=[{"event": "PodEvicted", "action": "TerminateJob"}],
        )
    )
    _until(world, "Running")

    def fewer(job: Json) -> None:
        job["spec"]["tasks"][0] |= {"replicas": 2, "minAvailable": 1}

    world.change(JOBS, "j", fewer)
    for _ in range(4):
        world.settle()
        world.step()


SCENARIOS: dict[str, Script] = {
    script.__name__.strip("_"): script
    for script in (
        _completes,
        _restarts_by_failure,
        _restarts_by_loss,
        _restarts_one_pod,
        _restarts_a_task,
        _suspends_and_resumes,
        _restarts_by_command,
        _is_terminated_while_restarting,
        _completes_early,
        _scales,
    )
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_dying_between_any_two_writes_changes_nothing(name: str) -> None:
    reference = _play(SCENARIOS[name], crash_at=None)
    assert reference.writes > 3
    for write in range(reference.writes):
        world = _play(SCENARIOS[name], crash_at=write)
        assert world.crashes == 1
        assert _outcome(world) == _outcome(reference), f"dying instead of write {write}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_dying_all_the_time_changes_nothing(name: str) -> None:
    """A controller that never gets further than one write per life."""
    reference = _play(SCENARIOS[name], crash_at=None)
    world = _play(SCENARIOS[name], crash_at=None, one_write_per_reconcile=True)
    assert _outcome(world) == _outcome(reference)


class _Mortal(World):
    """Looks that end after their first write that has an effect."""

    def reconcile(self, name: str = "j", *, writes: int | None = None):
        from vcbatch.core.job import decide

        decision = decide(self.view(name), now=self.now)
        for write in self.writes_of(decision):
            before = self.writes
            write()
            if self.writes > before:
                break
        return decision


def _play(script: Script, *, crash_at: int | None, one_write_per_reconcile: bool = False) -> World:
    world = _Mortal() if one_write_per_reconcile else World(crash_at=crash_at)
    script(world)
    for _ in range(3):
        world.settle(most=200)
        world.step(seconds=0)
    world.settle(most=200)
    return world


def _outcome(world: World) -> object:
    status = world.job()["status"]
    numbers = ("pending", "running", "succeeded", "failed", "terminating", "version", "retryCount", "taskStatusCount")
    return (
        [status.get(key) for key in (*numbers, "controlledResources")],
        [entry["status"] for entry in status["conditions"]],
        {key: value for key, value in status["ledger"].items() if key not in ("losses", "commands")},
        Counter(pod["metadata"]["name"] for pod in world.created),
        sorted((name, pod["status"]["phase"], _version(pod)) for name, pod in world.pods().items()),
        [len(world.all(resource)) for resource in (PODGROUPS, SERVICES, CONFIGMAPS, COMMANDS)],
    )


def _version(pod: Json) -> str:
    return pod["metadata"]["annotations"]["volcano.sh/job-version"]
