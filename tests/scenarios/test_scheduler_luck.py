"""The scheduler while its watches are lost, its binds are refused and another scheduler works beside it, with all other
parts at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.cuts import EXPIRED, CutApi
from tests.scenarios.deeds import node
from tests.scenarios.simulated import SimulatedWorld
from tests.support import virtual_time
from vcbatch.api.resources import JOBS, NODES, PODGROUPS, PODS
from vcbatch.hosting.supervise import Part, Supervisor
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.loop import SchedulerLoop
from vcbatch.scheduler import Scheduler, parse_policy

Json = dict[str, Any]


def job(
    name: str, replicas: int, *, scheduler: str = "volcano", selector: dict[str, str] | None = None, **spec: Any
) -> Json:
    container = {"name": "main", "image": "img", "command": ["sleep", "1000"], "resources": {"requests": {"cpu": "1"}}}
    pod = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {**pod, "nodeSelector": selector or {}}}}
    given = {"minAvailable": replicas, "schedulerName": scheduler, "tasks": [task], **spec}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": given}


class World(SimulatedWorld):
    """What the scheduler sees and does goes through `around`."""

    def __init__(self, around: Callable[[Api], Any], **options: Any) -> None:
        super().__init__(**options)
        self.around = around(self.api)

    def _scheduler(self) -> list[Part]:
        return self._scheduler_of(self.around, Scheduler(self._policy))

    def _scheduler_of(self, api: Api, scheduler: Scheduler) -> list[Part]:
        clock, random = self.clock, self.random
        informers = Informers(api, clock=clock, random=random)
        recorder = Recorder(api, clock=clock, random=random, component="volcano")
        loop = SchedulerLoop(api, scheduler, informers, recorder, clock=clock, random=random)
        return [*informers.parts(), *loop.parts(), Part(name="events", run=recorder.run)]

    def begin(self, name: str, api: Api, scheduler: Scheduler) -> None:
        """Another scheduler starts."""
        parts = self._scheduler_of(api, scheduler)
        self._running[name] = asyncio.create_task(Supervisor(clock=self.clock, random=self.random).run(*parts))

    async def submit(self, name: str, replicas: int, **given: Any) -> None:
        await self.api.create(JOBS, job(name, replicas, **given), namespace=self.namespace)

    async def until(self, name: str, *, running: int, seconds: int = 120) -> None:
        """So many pods of the job run; whatever happens, no node has more than it holds."""
        for _ in range(seconds):
            found = await self.api.get(JOBS, name, namespace=self.namespace)
            await self.check()
            if (found.get("status") or {}).get("running", 0) == running:
                return
            await self.pass_time(1)
        pytest.fail(f"job {name} hasn't {running} running: {found.get('status')}")

    async def pods(self, name: str = "") -> list[Json]:
        every = (await self.api.list(PODS, namespace=self.namespace)).items
        return [pod for pod in every if pod["metadata"]["name"].startswith(f"{name}-" if name else "")]

    async def check(self) -> None:
        sizes = {n["metadata"]["name"]: int(n["status"]["allocatable"]["cpu"]) for n in (await self._nodes())}
        for pod in await self.pods():
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                sizes[pod["spec"]["nodeName"]] -= 1
        assert all(left >= 0 for left in sizes.values()), f"a node is over-committed: {sizes}"

    async def _nodes(self) -> list[Json]:
        return (await self.api.list(NODES)).items


def play(act: Callable[[World], Any], around: Callable[[Api], Any], *nodes: int, **options: Any) -> None:
    async def main() -> None:
        world = World(around, **options)
        await world.start([{"name": f"n{i}", "cpu": str(cpu), "memory": "64Gi"} for i, cpu in enumerate(nodes)])
        try:
            await act(world)
        finally:
            await world.stop()

    virtual_time.run(main())


# Lost watches


@pytest.mark.parametrize("away", [0, 40])
@pytest.mark.parametrize("error", [None, EXPIRED], ids=["ended", "410"])
def test_gangs_that_wait_while_watches_are_lost_start_with_what_became_free(error: ApiError | None, away: int) -> None:
    async def act(world: World) -> None:
        cuts: CutApi = world.around
        await world.submit("first", 2)
        await world.until("first", running=2)
        await world.submit("second", 2)
        await world.pass_time(2)  # ages are told in seconds
        await world.submit("third", 2)
        await world.pass_time(10)
        cuts.away = away > 0
        cuts.cut(error)
        await world.api.delete(JOBS, "first", namespace=world.namespace, propagation="Background")
        await world.pass_time(away)
        lists = cuts.lists
        cuts.away = False
        await world.until("second", running=2)
        assert await world.pods("first") == []
        third = await world.pods("third")
        assert not any(pod["spec"].get("nodeName") for pod in third), "there is room for one of the two"
        assert error is None or away or cuts.lists > lists
        await world.api.delete(JOBS, "second", namespace=world.namespace, propagation="Background")
        await world.until("third", running=2)

    play(act, CutApi, 3)


def test_what_came_and_went_while_the_history_was_lost_is_found_by_comparing() -> None:
    async def act(world: World) -> None:
        cuts: CutApi = world.around
        await world.submit("first", 2)
        await world.until("first", running=2)
        await world.submit("waits", 3)
        await world.pass_time(10)
        cuts.away = True
        cuts.cut()
        await world.api.delete(JOBS, "first", namespace=world.namespace, propagation="Background")
        await world.pass_time(10)
        await world.submit("first", 2, selector={"again": "yes"})  # the same names again, and other pods
        # Of nodes it may hear last: by the label the pods wait until it does.
        changed = {"metadata": {"labels": {"again": "yes"}}, "spec": {"unschedulable": True}}
        await world.api.patch(NODES, "n0", changed)
        await world.api.create(NODES, node({"name": "n1", "cpu": "4", "memory": "64Gi"}, world.now()))
        await world.pass_time(30)
        cuts.forget()
        cuts.away = False
        await world.until("waits", running=3)
        assert {pod["spec"]["nodeName"] for pod in await world.pods("waits")} == {"n1"}
        await world.pass_time(20)
        assert not any(pod["spec"].get("nodeName") for pod in await world.pods("first")), "n0 takes nobody"
        await world.api.patch(NODES, "n0", {"spec": {"unschedulable": None}})
        await world.until("first", running=2)

    play(act, CutApi, 2)


# Refused binds

_GIVE_BACK = """
actions: "enqueue, allocate, backfill, shuffle"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - name: stale-gang
    arguments: {onRefusedBind: true}
"""


class RefusingApi:
    """Binds of pods whose name has `word` are refused for good, until it is emptied."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.word = ""
        self.refused = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._api, verb)

    async def bind(self, *, name: str, **about: Any) -> None:
        if self.word and self.word in name:
            self.refused += 1
            raise ApiError(403, "Forbidden", "the node said no")
        await self._api.bind(name=name, **about)


def test_a_refused_bind_of_one_member_sends_the_whole_gang_back_to_its_queue() -> None:
    async def act(world: World) -> None:
        world.around.word = "g-w-1"
        await world.submit("g", 3, policies=[{"event": "PodEvicted", "action": "RestartPod"}])
        await world.pass_time(5)
        await world.api.patch(NODES, "n0", {"spec": {"unschedulable": True}})  # so no other place is there either
        await world.pass_time(30)
        assert world.around.refused > 0
        held = [pod for pod in await world.pods("g") if pod["spec"].get("nodeName")]
        assert held == [], "places of a gang that can't be whole"
        world.around.word = ""
        await world.api.patch(NODES, "n0", {"spec": {"unschedulable": None}})
        await world.until("g", running=3)

    play(act, RefusingApi, 4, policy=parse_policy(_GIVE_BACK))


def test_a_bind_that_is_refused_for_a_while_is_made_as_soon_as_it_may_be() -> None:
    async def act(world: World) -> None:
        world.around.word = "g-w-1"
        await world.submit("g", 3)
        await world.pass_time(25)
        assert 4 <= world.around.refused <= 7, "at once, and after 1, 2, 4, 8 seconds"
        world.around.word = ""
        await world.until("g", running=3)

    play(act, RefusingApi, 4)


# Two schedulers


class WritingApi:
    """Remembers which PodGroups it was told to write."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.written: set[str] = set()

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._api, verb)
        if verb not in ("replace", "patch"):
            return real

        async def write(resource: Any, body: Any, *args: Any, **kwargs: Any) -> Any:
            if resource == PODGROUPS:
                name = body if isinstance(body, str) else body["metadata"]["name"]
                self.written.add(name.rpartition("-")[0].split("-")[0])
            return await real(resource, body, *args, **kwargs)

        return write


def test_two_schedulers_share_nodes_and_judge_their_own_gangs() -> None:
    async def act(world: World) -> None:
        beside = WritingApi(world.api)
        world.begin("other", beside, Scheduler(scheduler_names=("other",)))  # type: ignore[arg-type]
        await world.submit("ours", 2)
        await world.submit("theirs", 2, scheduler="other")
        await world.until("ours", running=2)
        await world.until("theirs", running=2)
        await world.submit("more", 2)
        await world.submit("third", 2, scheduler="third")
        await world.pass_time(30)
        assert not any(pod["spec"].get("nodeName") for pod in await world.pods("more")), "one of five cores is left"
        await world.api.delete(JOBS, "theirs", namespace=world.namespace, propagation="Background")
        await world.until("more", running=2)
        assert (world.around.written, beside.written) == ({"ours", "more"}, {"theirs"})

    play(act, WritingApi, 5)
