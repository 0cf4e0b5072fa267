"""Which events make the job controller look, and how often."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.pod import Pod, PodCondition, PodStatus
from vcbatch.api.quota import Quota, QuotaStatus
from vcbatch.api.resources import COMMANDS, EVENTS, JOBS, PERSISTENTVOLUMECLAIMS, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.children import Children
from vcbatch.runtime.controllers.claims import Claims
from vcbatch.runtime.controllers.job import JobController, JobSources
from vcbatch.runtime.controllers.references import References
from vcbatch.runtime.events.recorder import Recorder

JOB = OwnerReference(api_version=JOBS.api_version, kind=JOBS.kind, name="j", uid="job-uid", controller=True)


class Reconciles:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        if name == "reconcile":
            self.counted[labels["result"]] += 1

    def gauge(self, name: str, value: float, **labels: str) -> None: ...

    def duration(self, name: str, value: float, **labels: str) -> None: ...

    @property
    def total(self) -> int:
        return self.counted.total()


class World:
    def __init__(self, api: Any = None) -> None:
        self.server = FakeApi()
        self.reconciles = Reconciles()
        clock, random = VirtualClock(), SeededRandom(1)
        api = api or self.server
        children = Children(api, clock=clock)
        claims = Claims(api, Cache(model=Claim))
        priority_classes: Cache[PriorityClassView] = Cache(model=PriorityClassView)
        self.sources = JobSources(
            jobs=Cache(),
            pods=Cache(model=Pod),
            podgroups=Cache(),
            queues=Cache(),
            commands=Cache(),
            priority_classes=priority_classes,
            children=children,
            claims=claims,
            references=References(api, claims, priority_classes, clock=clock),
            quotas=Cache(model=Quota),
        )
        caches = {JOBS: self.sources.jobs, PODS: self.sources.pods, PODGROUPS: self.sources.podgroups}
        caches |= {PERSISTENTVOLUMECLAIMS: self.sources.claims.cache}
        self.recorder = Recorder(self.server, clock=clock, random=random, component="test")
        applier = Applier(
            api, caches | children.caches, self.recorder,
            clock=clock, random=SeededRandom(1), without_status=[PODGROUPS], unfollowed=children.caches,
        )  # fmt: skip
        self.controller = JobController(
            self.sources, applier, self.recorder, clock=clock, random=random, meter=self.reconciles
        )
        queue = self.server.seed(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
        self.sources.queues.put(queue)

    def add_job(self, replicas: int = 3, **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": "j", "namespace": "ns", "uid": "job-uid", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"minAvailable": replicas, "queue": "default", "tasks": [task], **spec},
        }
        self.sources.jobs.put(self.server.seed(JOBS, body))

    def pod_event(self, number: int, version: int, phase: str = "Pending", owner: OwnerReference = JOB) -> None:
        metadata = ObjectMeta(
            name=f"j-w-{number}", namespace="ns", uid=f"pod-{number}", resource_version=str(1000 + version),
            owner_references=[owner],
        )  # fmt: skip
        self.sources.pods.put(Pod(metadata=metadata, status=PodStatus(phase=phase)))

    async def admit(self) -> None:
        """What the scheduler does with a PodGroup that there is room for."""
        (group,) = self.server.all(PODGROUPS)
        name = group["metadata"]["name"]
        self.sources.podgroups.put(
            await self.server.patch(PODGROUPS, name, {"status": {"phase": "Inqueue"}}, namespace="ns")
        )

    async def run_for(self, seconds: float) -> None:
        task = asyncio.ensure_future(self.controller.part().run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_new_job_gets_its_podgroup_and_a_status_and_then_waits():
    async def main() -> None:
        world = World()
        world.add_job()
        await world.run_for(60)
        (group,) = world.server.all(PODGROUPS)
        assert group["spec"]["minMember"] == 3
        assert world.server.all(JOBS)[0]["status"]["state"]["phase"] == "Pending"
        before = world.reconciles.total
        await world.run_for(3600)
        assert world.reconciles.total == before, "nothing changed, so nothing is looked at"

    run(main())


def test_a_burst_of_pod_events_is_a_few_looks():
    async def main() -> None:
        world = World()
        world.add_job(replicas=200)
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(10)
        await world.admit()
        await asyncio.sleep(10)
        pods = world.server.all(PODS)
        assert len(pods) == 200
        reconciles, writes = world.reconciles.total, len(world.server.writes)
        for pod in pods:
            name = pod["metadata"]["name"]
            running = await world.server.patch(PODS, name, {"status": {"phase": "Running"}}, namespace="ns")
            world.sources.pods.put(msgspec.convert(running, Pod))
            await asyncio.sleep(0.005)  # one second in all
        await asyncio.sleep(5)
        assert world.server.all(JOBS)[0]["status"]["running"] == 200
        statuses = [write for write in world.server.writes[writes:] if write[1] == "jobs/status"]
        assert len(statuses) <= 12
        assert world.reconciles.total - reconciles <= 25
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_pods_that_end_one_after_the_other_are_counted_less_and_less_often_and_the_last_at_once():
    async def main() -> None:
        world = World()
        world.add_job(replicas=200)
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(10)
        await world.admit()
        await asyncio.sleep(10)
        pods = world.server.all(PODS)
        writes = len(world.server.writes)
        for phase in ("Running", "Succeeded"):
            for pod in pods:
                name = pod["metadata"]["name"]
                changed = await world.server.patch(PODS, name, {"status": {"phase": phase}}, namespace="ns")
                world.sources.pods.put(msgspec.convert(changed, Pod))
                await asyncio.sleep(0.1)  # twenty seconds in all
        await asyncio.sleep(0.2)
        assert world.server.all(JOBS)[0]["status"]["state"]["phase"] == "Completed"
        statuses = [write for write in world.server.writes[writes:] if write[1] == "jobs/status"]
        assert len(statuses) <= 40
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_name_that_is_just_free_is_not_taken_at_once():
    async def main() -> None:
        world = World()
        world.add_job()
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(10)
        await world.admit()
        await asyncio.sleep(10)
        gone = next(pod for pod in world.server.all(PODS) if pod["metadata"]["name"] == "j-w-1")
        await world.server.delete(PODS, "j-w-1", namespace="ns")
        world.sources.pods.discard(gone["metadata"]["uid"])
        await asyncio.sleep(0.2)
        assert len(world.server.all(PODS)) == 2
        await asyncio.sleep(0.3)
        assert {pod["metadata"]["name"] for pod in world.server.all(PODS)} == {"j-w-0", "j-w-1", "j-w-2"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_pods_of_somebody_else_are_nobodys_business():
    async def main() -> None:
        world = World()
        world.add_job()
        await world.run_for(60)
        before = world.reconciles.total
        world.pod_event(1, 1, owner=OwnerReference(api_version="apps/v1", kind="ReplicaSet", uid="x", controller=True))
        await world.run_for(60)
        assert world.reconciles.total == before

    run(main())


def test_that_a_scheduler_places_a_pod_is_no_reason_to_look_and_what_its_kubelet_says_is():
    async def main() -> None:
        world = World()
        world.add_job()
        world.pod_event(0, version=1)
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(60)
        before = world.reconciles.total
        (pod,) = world.sources.pods
        for version, conditions, news in (
            (1010, [PodCondition(type="PodScheduled", status="False", reason="Unschedulable")], False),
            (1011, [PodCondition(type="PodScheduled", status="True")], False),
            (1012, [PodCondition(type="PodScheduled", status="True"), PodCondition(type="Ready")], True),
        ):
            pod = msgspec.structs.replace(
                pod,
                metadata=msgspec.structs.replace(pod.metadata, resource_version=str(version)),
                spec=msgspec.structs.replace(pod.spec, node_name="n" if version > 1010 else ""),
                status=msgspec.structs.replace(pod.status, conditions=conditions),
            )
            world.sources.pods.put(pod)
            await asyncio.sleep(60)
            assert (world.reconciles.total > before) is news
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_that_its_gang_starts_is_no_reason_to_look_and_that_it_is_let_in_or_waits_is():
    async def main() -> None:
        world = World()
        world.add_job()
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(60)
        (group,) = world.server.all(PODGROUPS)
        scheduled = {"type": "Scheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
        waits = {"type": "Unschedulable", "status": "True", "lastTransitionTime": "2026-01-01T00:00:02Z"}
        for status, news in (
            ({"phase": "Pending"}, False),
            ({"phase": "Inqueue"}, True),
            ({"phase": "Inqueue", "conditions": [scheduled]}, False),
            ({"phase": "Running", "running": 3, "conditions": [scheduled]}, False),
            ({"phase": "Running", "running": 2, "conditions": [scheduled, waits]}, True),
            ({"phase": "Unknown", "running": 2, "conditions": [scheduled, waits]}, True),
        ):
            before = world.reconciles.total
            patch = {"status": status}
            changed = await world.server.patch(PODGROUPS, group["metadata"]["name"], patch, namespace="ns")
            world.sources.podgroups.put(changed)
            await asyncio.sleep(60)
            assert (world.reconciles.total > before) is news, status
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_queues_counts_are_no_reason_to_look_and_its_state_is():
    async def main() -> None:
        world = World()
        world.add_job()
        await world.run_for(60)
        before = world.reconciles.total
        patched = await world.server.patch(QUEUES, "default", {"status": {"running": 7}}, subresource="status")
        world.sources.queues.put(patched)
        await world.run_for(60)
        assert world.reconciles.total == before
        patched = await world.server.patch(QUEUES, "default", {"status": {"state": "Closed"}}, subresource="status")
        world.sources.queues.put(patched)
        await world.run_for(60)
        assert world.reconciles.total == before + 1

    run(main())


def test_a_command_makes_its_job_be_looked_at_and_is_taken_once():
    async def main() -> None:
        world = World()
        world.add_job()
        await world.run_for(60)
        command = world.server.seed(
            COMMANDS,
            {
                "metadata": {"name": "stop", "namespace": "ns"},
                "action": "AbortJob",
                "target": {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": "j", "uid": "job-uid"},
            },
        )
        world.sources.commands.put(command)
        await world.run_for(60)
        assert world.server.all(JOBS)[0]["status"]["state"]["phase"] in ("Aborting", "Aborted")
        assert world.server.all(COMMANDS) == []

    run(main())


def test_a_quota_is_told_on_the_job():
    class Full(FakeApi):
        full = True

        async def create(self, resource: Any, body: Any, *, namespace: str | None = None) -> Any:
            if resource == PODS and self.full:
                raise ApiError(403, "Forbidden", 'pods "j-w-0" is forbidden: exceeded quota: small')
            return await super().create(resource, body, namespace=namespace)

    async def main() -> None:
        api = Full()
        world = World(api)
        world.server = api
        world.add_job()
        await world.run_for(5)
        (group,) = api.all(PODGROUPS)
        inqueue = await api.patch(
            PODGROUPS, group["metadata"]["name"], {"status": {"phase": "Inqueue"}}, namespace="ns"
        )
        world.sources.podgroups.put(inqueue)
        await world.run_for(60)
        world.recorder._api = api
        await world.recorder.flush()
        reported = [event for event in api.all(EVENTS) if event["reason"] == "FailedCreate"]
        assert reported and "exceeded quota" in reported[0]["message"]
        assert len(reported) == 1, "counted, not repeated"
        status = api.all(JOBS)[0]["status"]
        assert (status["state"]["reason"], status.get("pending")) == ("FailedCreate", None)
        api.full = False
        await world.run_for(60)
        status = api.all(JOBS)[0]["status"]
        assert "reason" not in status["state"]
        assert status["pending"] == len(api.all(PODS)) == 3

    run(main())


class _Refusing(FakeApi):
    """Creates no pods while `why` says something."""

    why = ""
    tries = 0

    async def create(self, resource: Any, body: Any, *, namespace: str | None = None) -> Any:
        if resource == PODS:
            self.tries += 1
            if self.why:
                raise ApiError(403, "Forbidden", self.why)
        return await super().create(resource, body, namespace=namespace)


def _quota(version: int, *, used: str, hard: str = "10") -> Quota:
    metadata = ObjectMeta(name="q", namespace="ns", uid="quota-uid", resource_version=str(version))
    return Quota(metadata=metadata, status=QuotaStatus(hard={"pods": hard}, used={"pods": used}))


def _class(version: int, name: str) -> PriorityClassView:
    return PriorityClassView(metadata=ObjectMeta(name=name, uid=f"class-{name}", resource_version=str(version)))


async def _refused(why: str, **spec: Any) -> tuple[World, _Refusing, asyncio.Future[None]]:
    """A job that was refused its pods for so long that the next try is a minute away."""
    api = _Refusing()
    api.why = why
    world = World(api)
    world.server = world.recorder._api = api
    world.sources.quotas.put(_quota(1, used="10"))
    world.sources.priority_classes.put(_class(2, "other"))
    world.add_job(replicas=40, **spec)
    task = asyncio.ensure_future(world.controller.part().run())
    await asyncio.sleep(10)
    await world.admit()
    await asyncio.sleep(600)
    return world, api, task


async def _end(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_quota_costs_one_request_at_a_time_and_one_event():
    async def main() -> None:
        world, api, task = await _refused("exceeded quota: q")
        assert api.tries <= 30, "one at each try, later each time"
        await world.recorder.flush()
        (reported,) = (event for event in api.all(EVENTS) if event["reason"] == "FailedCreate")
        assert reported.get("count", 1) == 1
        await _end(task)

    run(main())


def test_a_job_goes_on_as_soon_as_its_quota_has_room():
    async def main() -> None:
        world, api, task = await _refused("exceeded quota: q")
        api.why, tries = "", api.tries
        world.sources.quotas.put(_quota(2, used="10", hard="9"))
        await asyncio.sleep(0.5)
        assert api.tries == tries, "less room is no reason to try again"
        world.sources.quotas.put(_quota(3, used="0", hard="9"))
        await asyncio.sleep(0.5)
        assert len(api.all(PODS)) == 40
        await _end(task)

    run(main())


def test_a_job_goes_on_as_soon_as_its_priority_class_is_there():
    async def main() -> None:
        world, api, task = await _refused("no PriorityClass with name high was found", priorityClassName="high")
        api.why, tries = "", api.tries
        world.sources.priority_classes.observe("DELETED", _class(9, "other"))
        await asyncio.sleep(0.5)
        assert api.tries == tries
        world.sources.priority_classes.put(_class(10, "high"))
        await asyncio.sleep(0.5)
        assert len(api.all(PODS)) == 40
        await _end(task)

    run(main())


def test_a_job_that_cant_be_read_stops_no_other():
    async def main() -> None:
        world = World()
        world.add_job()
        broken = {"metadata": {"name": "broken", "namespace": "ns", "uid": "b"}, "spec": {"minAvailable": ["three"]}}
        world.sources.jobs.put(world.server.seed(JOBS, broken))
        await world.run_for(60)
        assert len(world.server.all(PODGROUPS)) == 1

    run(main())


def test_the_last_words_of_a_pod_outlive_a_write_that_is_refused():
    """A pod that is evicted and gone is told of once; where that look comes to nothing, the next one knows it too."""

    async def main() -> None:
        world = World()
        world.add_job(policies=[{"event": "PodEvicted", "action": "RestartJob"}])
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(10)
        await world.admit()
        await asyncio.sleep(10)
        for pod in world.server.all(PODS):
            pod["status"] = {"phase": "Running"}
            world.sources.pods.put(msgspec.convert(pod, Pod))
        await asyncio.sleep(10)
        last = world.sources.pods.by_key("ns/j-w-0")
        condition = PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")
        gone = msgspec.structs.replace(
            last,
            metadata=msgspec.structs.replace(last.metadata, resource_version="100000"),
            status=PodStatus(phase="Failed", conditions=[condition]),
        )
        # Somebody writes to the job meanwhile, of which no watch has told yet: the first answer is a conflict.
        await world.server.patch(JOBS, "j", {"metadata": {"labels": {"by": "another"}}}, namespace="ns")
        world.sources.pods.put(gone)
        world.sources.pods.observe("DELETED", gone)
        await asyncio.sleep(10)
        (job,) = world.server.all(JOBS)
        assert [loss["cause"] for loss in job["status"]["ledger"]["losses"]] == ["Evicted"]
        assert job["status"]["retryCount"] == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_what_a_job_does_is_told_although_its_pods_cant_be_deleted():
    class Keeping(FakeApi):
        async def delete(self, resource: Any, name: str, **more: Any) -> Any:
            if resource == PODS:
                raise ApiError(403, "Forbidden", "a policy of the cluster keeps this pod")
            return await super().delete(resource, name, **more)

    async def main() -> None:
        api = Keeping()
        world = World(api)
        world.server = world.recorder._api = api
        world.add_job(policies=[{"event": "PodFailed", "action": "RestartJob"}])
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(10)
        await world.admit()
        await asyncio.sleep(10)
        for number, pod in enumerate(api.all(PODS)):
            status = {"status": {"phase": "Running" if number else "Failed"}}
            seen = await api.patch(PODS, pod["metadata"]["name"], status, namespace="ns", subresource="status")
            world.sources.pods.put(msgspec.convert(seen, Pod))
        await asyncio.sleep(60)
        await world.recorder.flush()
        reported = [event for event in api.all(EVENTS) if event["reason"] == "ExecuteAction"]
        assert [event.get("count", 1) for event in reported] == [1]
        await _end(task)

    run(main())


def test_a_job_that_can_not_be_read_says_why_in_its_status_once():
    async def main() -> None:
        world = World()
        world.add_job(minAvailable="many")
        await world.run_for(60)
        (job,) = world.server.all(JOBS)
        state = job["status"]["state"]
        assert state["reason"] == "Unsupported"
        assert "minAvailable" in state["message"]
        writes = len(world.server.writes)
        world.sources.jobs.put(
            await world.server.patch(JOBS, "j", {"metadata": {"labels": {"a": "b"}}}, namespace="ns")
        )
        await world.run_for(60)
        assert len(world.server.writes) == writes + 1, "the label, and nothing else"
        world.sources.jobs.put(await world.server.patch(JOBS, "j", {"spec": {"minAvailable": 3}}, namespace="ns"))
        await world.run_for(60)
        assert world.server.all(JOBS)[0]["status"]["state"] == {
            "phase": "Pending",
            "lastTransitionTime": world.server.all(JOBS)[0]["status"]["state"]["lastTransitionTime"],
        }

    run(main())


def test_objects_of_plugins_are_read_before_a_new_attempt_creates_pods():
    async def main() -> None:
        world = World()
        world.add_job(plugins={"svc": []}, policies=[{"event": "PodFailed", "action": "RestartJob"}])
        task = asyncio.ensure_future(world.controller.part().run())
        await asyncio.sleep(5)
        await world.admit()
        await asyncio.sleep(1)
        for plural in ("configmaps", "services", "networkpolicies"):
            kind = next(kind for kind, _, _ in world.server.objects if kind.plural == plural)
            for stored in world.server.all(kind):
                world.server.remove(kind, stored["metadata"]["name"], "ns")
        pods = world.server.all(PODS)
        assert len(pods) == 3
        failed = await world.server.patch(PODS, "j-w-0", {"status": {"phase": "Failed"}}, namespace="ns")
        world.sources.pods.put(msgspec.convert(failed, Pod))
        await asyncio.sleep(1)
        for stored in pods:
            world.sources.pods.discard(stored["metadata"]["uid"])
        for group in list(world.sources.podgroups):
            world.sources.podgroups.discard(group["metadata"]["uid"])
        await asyncio.sleep(5)
        await world.admit()
        await asyncio.sleep(2)
        made = [(verb, plural) for verb, plural, _ in world.server.writes if verb == "create"]
        assert made.count(("create", "configmaps")) == 2
        assert made.count(("create", "services")) == 2
        assert made.count(("create", "networkpolicies")) == 2
        last_pod = max(place for place, one in enumerate(made) if one == ("create", "pods"))
        assert max(place for place, one in enumerate(made) if one == ("create", "configmaps")) < last_pod
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
