"""Objects of job plugins that others delete or edit: how soon that is found out, and what it costs."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, SECRETS, SERVICES
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.runtime.controllers.children import Children, ChildrenCheck

WANTED = ((CONFIGMAPS, "j-svc"), (SERVICES, "j"))


class Counting(FakeApi):
    """Counts reads, and refuses them with `refused`."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.refused: ApiError | None = None
        self.forbidden = ""

    async def get(self, resource: Any, name: str, *, namespace: str | None = None, model: Any = dict) -> Any:
        self.reads.append(name)
        if self.refused is not None:
            raise self.refused
        if name == self.forbidden:
            raise ApiError(403, "Forbidden", f"{name} is forbidden")
        return await super().get(resource, name, namespace=namespace, model=model)


class World:
    """Jobs whose objects are read, and a check of those that run."""

    def __init__(self, jobs: int = 1) -> None:
        self.api = Counting()
        self.children = Children(self.api, clock=VirtualClock())
        self.running = [(f"uid-of-job-{number}", "ns") for number in range(jobs)]
        self.changed: list[str] = []
        for uid, _ in self.running:
            for resource, name in self.wanted(uid):
                self.api.seed(resource, owned(name, uid))

    def wanted(self, uid: str) -> list[Any]:
        return [(resource, f"{name}-{uid}") for resource, name in WANTED]

    async def read(self) -> None:
        for uid, namespace in self.running:
            await self.children.of(uid, namespace, self.wanted(uid))
        self.api.reads.clear()

    async def check_for(self, seconds: float) -> None:
        check = ChildrenCheck(
            self.children, running=lambda: self.running, changed=self.changed.append, clock=VirtualClock()
        )
        task = asyncio.ensure_future(check.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def owned(name: str, uid: str, **metadata: Any) -> Json:
    owner = {"kind": "Job", "name": "j", "uid": uid, "controller": True}
    return {"metadata": {"name": name, "namespace": "ns", "ownerReferences": [owner], **metadata}}


def test_objects_of_running_jobs_are_compared_every_45_seconds_and_nothing_is_written_or_listed() -> None:
    async def main() -> None:
        world = World()
        await world.read()
        await world.check_for(451)
        assert len(world.api.reads) == 2 * 10
        assert not world.changed
        assert not world.api.writes
        assert not world.api.lists

    run(main())


def test_without_running_jobs_nothing_is_read() -> None:
    async def main() -> None:
        world = World()
        await world.read()
        world.running = []
        await world.check_for(3600)
        assert not world.api.reads

    run(main())


def test_each_of_a_thousand_jobs_is_compared_within_a_minute() -> None:
    async def main() -> None:
        world = World(1000)
        await world.read()
        for uid, _ in world.running:
            world.api.remove(SERVICES, f"j-{uid}", "ns")
        await world.check_for(95)
        assert sorted(world.changed) == sorted(uid for uid, _ in world.running)

    run(main())


def test_a_change_is_told_once_and_all_is_read_again() -> None:
    async def main() -> None:
        for change in ("deleted", "edited", "replaced"):
            world = World()
            await world.read()
            (uid, _), name = world.running[0], f"j-svc-{world.running[0][0]}"
            if change == "edited":
                await world.api.patch(CONFIGMAPS, name, {"data": {"a": "b"}}, namespace="ns")
            else:
                world.api.remove(CONFIGMAPS, name, "ns")
            if change == "replaced":
                world.api.seed(CONFIGMAPS, {"metadata": {"name": name, "namespace": "ns"}})
            await world.check_for(60)
            assert world.changed == [uid], change
            found = await world.children.of(uid, "ns", world.wanted(uid))
            assert len(found) == (1 if change == "deleted" else 2), change

    run(main())


def test_a_server_that_does_not_answer_is_asked_again() -> None:
    async def main() -> None:
        world = World()
        await world.read()
        world.api.remove(SERVICES, f"j-{world.running[0][0]}", "ns")
        world.api.refused = ApiError(0, "ConnectionLost", "no answer")
        await world.check_for(100)
        assert not world.changed
        world.api.refused = None
        await world.check_for(60)
        assert world.changed == [world.running[0][0]]

    run(main())


def test_one_that_may_not_be_read_holds_up_no_other_job() -> None:
    async def main() -> None:
        world = World(2)
        await world.read()
        first, second = (uid for uid, _ in world.running)
        world.api.forbidden = f"j-svc-{first}"
        for uid in (first, second):
            world.api.remove(SERVICES, f"j-{uid}", "ns")
        await world.check_for(60)
        assert sorted(world.changed) == [first, second]

    run(main())


def test_what_may_not_be_read_counts_as_absent() -> None:
    async def main() -> None:
        world = World()
        world.api.refused = ApiError(403, "Forbidden", "secrets is forbidden")
        assert await world.children.of("uid", "ns", [(SECRETS, "j-ssh")]) == {}

    run(main())


def test_one_that_belongs_to_another_or_is_being_deleted_is_read_each_time() -> None:
    async def main() -> None:
        world = World()
        world.api.seed(CONFIGMAPS, owned("other", "somebody"))
        world.api.seed(CONFIGMAPS, owned("going", "mine", deletionTimestamp="2026-01-01T00:00:00Z"))
        world.api.seed(CONFIGMAPS, owned("stays", "mine"))
        wanted = [(CONFIGMAPS, name) for name in ("other", "going", "stays", "absent")]
        for _ in range(3):
            found = await world.children.of("mine", "ns", wanted)
            assert [name for _, name in found] == ["other", "going", "stays"]
        assert sorted(world.api.reads) == ["absent", *["going"] * 3, *["other"] * 3, "stays"]

    run(main())


def test_objects_of_another_kind_of_a_users_plugin_are_read_each_time() -> None:
    async def main() -> None:
        world = World()
        wanted = [(PERSISTENTVOLUMECLAIMS, "scratch")]
        assert await world.children.of("mine", "ns", wanted) == {}
        world.api.seed(PERSISTENTVOLUMECLAIMS, owned("scratch", "mine"))
        assert list(await world.children.of("mine", "ns", wanted)) == wanted
        world.children.forget("mine", "ns")

    run(main())


def test_the_next_job_of_a_name_sees_what_the_previous_one_left() -> None:
    async def main() -> None:
        world = World()
        world.api.seed(CONFIGMAPS, owned("a-svc", "first"))
        wanted = [(CONFIGMAPS, "a-svc")]
        await world.children.of("first", "ns", wanted)
        await world.children.of("second", "ns", wanted)
        world.children.forget("first", "ns")
        world.children.read_again("second")
        assert len(await world.children.of("second", "ns", wanted)) == 1

    run(main())


def test_an_attempt_of_its_own_asks_for_a_new_read() -> None:
    async def main() -> None:
        world = World()
        uid = world.running[0][0]
        await world.read()
        assert world.children.is_fresh(uid, attempt=(0, 0))
        assert not world.children.is_fresh(uid, attempt=(1, 1))
        world.children.read_again(uid)
        await world.read()
        assert world.children.is_fresh(uid, attempt=(1, 1))
        await asyncio.sleep(11)
        assert not world.children.is_fresh(uid, attempt=(1, 1))

    run(main())
