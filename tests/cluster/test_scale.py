"""Following a large cluster: started cold, left alone, and after the API server was restarted."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from tests.cluster import loading, usage
from tests.cluster.binaries.build import Binaries
from tests.cluster.components import CONTROLLERS, SCHEDULER, Component, Components
from tests.cluster.controlplane import APISERVER, ControlPlane, Options
from tests.cluster.gangs import gang, submit
from tests.cluster.processes import wait_until
from tests.cluster.requests import counted
from vcbatch.api.resources import PODS

NODES, PODS_PER_NODE = 500, 6
CPUS = 8
FREE = CPUS - PODS_PER_NODE
# Some five times what these objects need, so that a copy kept of everything is found, and a busy machine is not.
MOST_MIB = 250


class Large:
    """A control plane whose nodes are three quarters full, and the components that follow it."""

    def __init__(self, plane: ControlPlane, components: Components) -> None:
        self.plane = plane
        self.components = components

    def component(self, part: str) -> Component:
        return next(one for one in self.components.running if one.program.name == f"vcbatch-{part}")

    def placed(self, group: str, members: int) -> bool:
        """Whether all pods of a gang have a node."""
        path = f"{PODS.path(namespace='default')}?labelSelector=volcano.sh/job-name%3D{group}"
        pods = self.plane.call("GET", path)["items"]
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods) == members


@pytest.fixture(scope="module")
def large(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    options = Options(kwok=False, scheduler=False, unlimited=True)
    with ControlPlane(tmp_path_factory.mktemp("large"), binaries, options) as plane:
        plane.install_crds()

        async def fill() -> None:
            async with loading.administrator(plane) as api:
                names = await loading.add_nodes(api, NODES, cpu=str(CPUS), run=False)
                await loading.add_bound_pods(api, NODES * PODS_PER_NODE, names)

        asyncio.run(fill())
        with Components(plane) as components:
            for part in (CONTROLLERS, SCHEDULER):
                components.start(part, "--leader-elect=false").wait_ready()
            yield Large(plane, components)


def test_a_cold_start_lists_neither_pods_nor_nodes(large: Large) -> None:
    """The server streams what exists; a second scheduler is started, so that nobody else's lists are counted."""
    before = counted(large.plane)
    follower = large.components.start(SCHEDULER, "--leader-elect=false", "--scheduler-name=nobodys", replica="second")
    follower.wait_ready()
    large.components.running.remove(follower)
    follower.program.stop()
    lists = {
        request.resource
        for request, number in (counted(large.plane) - before).items()
        if request.verb == "LIST" and number
    }
    assert not lists & {"pods", "nodes"}


def test_what_is_held_of_each_object_is_small(large: Large) -> None:
    for part in (CONTROLLERS, SCHEDULER):
        held = usage.of(large.component(part).program.pid)
        assert held.resident < MOST_MIB, (part, held)


def test_the_picture_is_whole(large: Large) -> None:
    """A gang that fits exactly into what is left is placed, and one that needs a single CPU more is not."""
    left = NODES * FREE
    submit(large.plane, gang("too-large", PODS_PER_NODE, command="sleep 36000", cpu=str(FREE + 1)))
    submit(large.plane, gang("exact", left // FREE, command="sleep 36000", cpu=str(FREE)))
    wait_until("the gang is placed", lambda: large.placed("exact", left // FREE), timeout=120)
    assert not any(large.placed("too-large", number) for number in range(1, PODS_PER_NODE + 1))


def test_what_was_deleted_while_nobody_looked_is_found_after_a_restart(large: Large) -> None:
    """The scheduler stands still while a node is emptied and the API server forgets its history; then there is room."""
    scheduler = large.component(SCHEDULER)
    victims = [number for number in range(NODES * PODS_PER_NODE) if number % NODES == 0]
    scheduler.program.send(signal.SIGSTOP)
    try:
        for number in victims:
            path = PODS.path(namespace="default", name=f"pod-{number}")
            large.plane.call("DELETE", path, {"gracePeriodSeconds": 0})
        large.plane.programs[APISERVER].restart()
        large.plane.wait_ready()
    finally:
        scheduler.program.send(signal.SIGCONT)
    submit(large.plane, gang("after", 1, command="sleep 36000", cpu=str(PODS_PER_NODE)))
    wait_until("the room that came is used", lambda: large.placed("after", 1), timeout=120)
    for part in (CONTROLLERS, SCHEDULER):
        large.component(part).wait_ready()
