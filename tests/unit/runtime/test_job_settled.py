"""A job that a look found settled is looked at again when something in its picture changes, or time does its part:
then, and not before, however often a look is asked for."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.perf.bench_jobs import controller_of, running
from tests.support.job_world import World
from vcbatch.api.names import pod_group_name
from vcbatch.api.pod import Pod
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS
from vcbatch.core.machine import Decision
from vcbatch.interfaces.api import Json
from vcbatch.runtime.controllers.job import JobController, JobSources


class Settled:
    """A job of three pods that run, and its controller."""

    def __init__(self, **spec: Any) -> None:
        self.world: World = running(3, **spec)
        controller, self.sources, self.api = controller_of(
            having=[{key: copy.deepcopy(stored) for key, stored in self.world.objects.items()}]
        )
        self.controller: JobController = controller
        self.uid: str = self.world.job()["metadata"]["uid"]

    def decide(self, at: datetime | None = None) -> Decision:
        decision = asyncio.run(self.controller.decide(self.uid, at or self.world.now))
        assert decision is not None
        return decision


def _put_pod(world: World, sources: JobSources) -> None:
    pod = world.objects[PODS, "j-w-1"]
    pod["metadata"]["resourceVersion"] = "1000000"
    sources.pods.put(msgspec.convert(pod, Pod))


def _fail(world: World, sources: JobSources) -> None:
    world.end_pod("j-w-1", 1)
    _put_pod(world, sources)


def _lose(world: World, sources: JobSources) -> None:
    sources.pods.discard(world.pods()["j-w-1"]["metadata"]["uid"])


def _lose_group(world: World, sources: JobSources) -> None:
    group = world.objects[PODGROUPS, pod_group_name("j", world.job()["metadata"]["uid"])]
    sources.podgroups.discard(group["metadata"]["uid"])


def _command(world: World, sources: JobSources) -> None:
    sources.commands.put(copy.deepcopy(world.command("AbortJob", target=world.job())))
    assert world.all(COMMANDS)


def _scale(world: World, sources: JobSources) -> None:
    world.change(JOBS, "j", lambda job: job["spec"]["tasks"][0].update(replicas=4))
    sources.jobs.put(copy.deepcopy(world.job()))


def _put_group(world: World, sources: JobSources, change: Callable[[Json], object]) -> None:
    group = copy.deepcopy(world.objects[PODGROUPS, pod_group_name("j", world.job()["metadata"]["uid"])])
    change(group)
    group["metadata"]["resourceVersion"] = "1000000"
    sources.podgroups.put(group)


def _resize_group(world: World, sources: JobSources) -> None:
    _put_group(world, sources, lambda group: group["spec"].update(minMember=1))


def _relabel_group(world: World, sources: JobSources) -> None:
    _put_group(world, sources, lambda group: group["metadata"].update(annotations={}))


def _break_up(world: World, sources: JobSources) -> None:
    _put_group(world, sources, lambda group: group["status"].update(phase="Unknown"))


CHANGES: dict[str, Callable[[World, JobSources], None]] = {
    "a pod failed": _fail,
    "a pod is gone": _lose,
    "the PodGroup is gone": _lose_group,
    "somebody changed its PodGroup": _resize_group,
    "somebody took its marks off its PodGroup": _relabel_group,
    "its gang lost a part": _break_up,
    "somebody asks for something": _command,
    "it is scaled": _scale,
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_is_seen(what: str) -> None:
    job = Settled(policies=[{"event": "Unknown", "action": "RestartJob"}], schedulerName="volcano")
    assert job.decide().nothing_to_do
    assert job.decide().nothing_to_do
    CHANGES[what](job.world, job.sources)
    assert not job.decide().nothing_to_do


def test_time_alone_is_enough() -> None:
    job = Settled(policies=[{"event": "PodFailed", "action": "RestartJob", "timeout": "10s"}])
    job.world.end_pod("j-w-1", 1)
    job.world.settle()
    controller, _, _ = controller_of(having=[job.world.objects])
    job.controller = controller
    failed = job.world.now
    for seconds in (0, 3, 9):
        decision = job.decide(failed + timedelta(seconds=seconds))
        assert decision.nothing_to_do
        assert decision.requeue_at == failed + timedelta(seconds=10)
    assert job.decide(failed + timedelta(seconds=10)).deletes


def test_a_look_without_a_change_reads_nothing() -> None:
    """Not even what the job's picture is made of: it costs the same for ten pods and for ten thousand."""
    job = Settled()
    assert job.decide().nothing_to_do
    _spoil_silently(job.sources)
    assert job.decide().nothing_to_do
    assert not job.decide(job.world.now - timedelta(seconds=1)).nothing_to_do, (
        "a clock that was set back proves nothing"
    )


def _spoil_silently(sources: JobSources) -> None:
    """Change a picture in the cache behind everybody's back."""
    for pod in sources.pods:
        msgspec.structs.force_setattr(pod.status, "phase", "Failed")
