"""What rules look up: caches that follow, and no refusal that rests on a cache alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.admission_http import answer_of, review_of
from tests.support.virtual_time import VirtualClock
from vcbatch.api.admission import Operation, Request, Settings
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, NAMESPACES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES, Resource
from vcbatch.api.validate import QueueRules
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.metrics.meter import NoMeter
from vcbatch.runtime.random import SystemRandom
from webhooks.app import build
from webhooks.service import AdmissionService
from webhooks.world import World

TASK: Json = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}


class CountingApi(FakeApi):
    """Counts reads of single objects, and fails every read where `down`."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, str]] = []
        self.down = False

    async def get(self, resource: Any, name: str, **more: Any) -> Any:
        self.reads.append((resource.plural, name))
        if self.down:
            raise ApiError(0, "", "no answer")
        return await super().get(resource, name, **more)

    async def list(self, resource: Any, **more: Any) -> Any:
        if self.down:
            raise ApiError(0, "", "no answer")
        return await super().list(resource, **more)


@contextlib.asynccontextmanager
async def service_on(api: CountingApi, *, following: bool = True) -> AsyncIterator[Any]:
    clock, meter = VirtualClock(), NoMeter()
    informers = Informers(api, clock=clock, random=SystemRandom(), meter=meter)
    world = World(api, informers)
    tasks = [asyncio.create_task(part.run()) for part in informers.parts()]
    await world.synced()
    if not following:
        await _end(tasks)
    try:
        service = AdmissionService(world=world, clock=clock, meter=meter)
        yield build(service, meter=meter, exposition=lambda: ("text/plain", b""))
    finally:
        await _end(tasks)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def queue(name: str, *, state: str = "Open", parent: str = "root") -> Json:
    return {"metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": state}}


def submitted(**spec: Any) -> Json:
    body = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": [TASK], "minAvailable": 1, **spec}}
    return review_of(Request(resource=JOBS, operation=Operation.CREATE, name="j", namespace="ns", object=body))


async def verdict(app: Any, review: Json, path: str = "/jobs/validate") -> str:
    answer = await answer_of(app, path, review)
    return "" if answer["allowed"] else str(answer["status"]["message"])


async def test_what_is_followed_needs_no_read() -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("q"))
    async with service_on(api) as app:
        assert await verdict(app, submitted(queue="q")) == ""
    assert api.reads == []


async def test_a_queue_made_a_moment_ago_is_found() -> None:
    api = CountingApi()
    async with service_on(api, following=False) as app:
        api.seed(QUEUES, queue("fresh"))
        assert await verdict(app, submitted(queue="fresh")) == ""
        assert await verdict(app, submitted(queue="fresh")) == ""
    assert api.reads == [("queues", "fresh")], "what was read is remembered"


async def test_a_queue_that_the_watch_tells_of_while_it_is_read_is_found() -> None:
    class Overtaking(CountingApi):
        """The answer to a read comes after the watch has told the same."""

        async def get(self, resource: Any, name: str, **more: Any) -> Any:
            self.seed(QUEUES, queue("fresh"))
            await asyncio.sleep(1)
            return await super().get(resource, name, **more)

    async with service_on(Overtaking()) as app:
        assert await verdict(app, submitted(queue="fresh")) == ""


def around(name: str, *, parent: str = "parent", cpu: str = "2") -> Json:
    made = queue(name, parent=parent)
    return {**made, "spec": {"parent": parent, "weight": 1, "deserved": {"cpu": cpu}, "guarantee": {}}}


def asked_of_queue(operation: Operation, new: Json | None, old: Json | None = None) -> Json:
    name = (new or old or {})["metadata"]["name"]
    return review_of(Request(resource=QUEUES, operation=operation, name=name, namespace="", object=new, old=old))


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
async def test_a_sibling_made_a_moment_ago_is_added_up(operation: Operation) -> None:
    api = CountingApi()
    api.seed(QUEUES, around("parent", parent="root", cpu="3"))
    old = around("late", cpu="1") if operation is Operation.UPDATE else None
    async with service_on(api, following=False) as app:
        api.seed(QUEUES, around("early"))
        refused = await verdict(app, asked_of_queue(operation, around("late"), old), "/queues/validate")
    assert "sum of children's deserved" in refused


async def test_a_child_made_a_moment_ago_keeps_its_parent() -> None:
    api = CountingApi()
    api.seed(QUEUES, around("parent", parent="root"))
    async with service_on(api, following=False) as app:
        api.seed(QUEUES, around("child"))
        gone = asked_of_queue(Operation.DELETE, None, around("parent", parent="root"))
        assert "it has 1 child queues: child" in await verdict(app, gone, "/queues/validate")


def job(name: str, phase: str = "Running", *, queue_name: str = "q") -> Json:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"queue": queue_name}, "status": {"state": {"phase": phase}}}


def group(name: str, phase: str, *, of: str = "", queue_name: str = "q") -> Json:
    metadata: Json = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    if of:
        owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": of, "uid": f"uid-{of}", "controller": True}
        metadata["ownerReferences"] = [owner]
    return {"metadata": metadata, "spec": {"queue": queue_name, "minMember": 1}, "status": {"phase": phase}}


def pod_of(name: str) -> Json:
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": name, "uid": f"uid-{name}", "controller": True}
    annotations = {"volcano.sh/queue-name": "q", "scheduling.k8s.io/group-name": "g"}
    metadata = {"name": "p", "namespace": "ns", "uid": "uid-p", "annotations": annotations, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}


def counted(name: str, **counts: Any) -> Json:
    made = queue(name)
    return {**made, "status": {"state": "Closed", **counts}}


async def deletion(api: CountingApi, stored: Json, *, namespace: Json | None = None) -> Json:
    api.seed(QUEUES, stored)
    if namespace is not None:
        api.seed(NAMESPACES, namespace)
    async with service_on(api) as app:
        return await answer_of(app, "/queues/validate", asked_of_queue(Operation.DELETE, None, stored))


async def test_counts_that_are_late_keep_no_queue() -> None:
    api = CountingApi()
    api.seed(JOBS, job("done", "Completed"))
    api.seed(PODGROUPS, group("other", "Running", queue_name="other"))
    answer = await deletion(api, counted("q", running=1, pending=2, inqueue=1, unknown=1, allocated={"pods": "3"}))
    assert answer["allowed"]


@pytest.mark.parametrize(
    ("resource", "inside", "said"),
    [
        (PODGROUPS, group("g", "Running"), "because it has 1 PodGroups (1 Running)"),
        (PODGROUPS, group("g", ""), "because it has 1 PodGroups (1 Pending)"),
        (JOBS, job("j", "Restarting"), "because it has 1 unfinished Jobs (ns/j Restarting)"),
        (JOBS, job("j", "Aborted"), "because it has 1 unfinished Jobs (ns/j Aborted)"),
        (JOBS, job("j", ""), "because it has 1 unfinished Jobs (ns/j Pending)"),
    ],
)
async def test_what_was_made_a_moment_ago_keeps_its_queue(resource: Resource, inside: Json, said: str) -> None:
    api = CountingApi()
    api.seed(resource, inside)
    answer = await deletion(api, counted("q"))
    assert not answer["allowed"]
    assert said in answer["status"]["message"]
    leaving = {"metadata": {"name": "ns", "uid": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert (await deletion(api, counted("q"), namespace=leaving))["allowed"]


@pytest.mark.parametrize("gone", [False, True])
async def test_pods_on_nodes_keep_the_queue_of_a_job_that_is_deleted(gone: bool) -> None:
    api = CountingApi()
    if not gone:
        leaving = job("j")
        leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
        api.seed(JOBS, leaving)
        api.seed(PODGROUPS, group("g", "Running", of="j"))
    api.seed(PODS, pod_of("j"))
    answer = await deletion(api, counted("q"))
    assert not answer["allowed"]
    assert "because it has 1 Pods that still hold nodes (1 of Job ns/j)" in answer["status"]["message"]
    api.seed(PODS, {**pod_of("j"), "status": {"phase": "Succeeded"}})
    assert (await deletion(api, counted("q")))["allowed"]


async def test_a_queue_isnt_deleted_where_its_work_cant_be_read() -> None:
    class Deaf(CountingApi):
        async def list(self, resource: Any, **more: Any) -> Any:
            if resource == JOBS:
                raise ApiError(403, "Forbidden", "jobs.batch.volcano.sh is forbidden")
            return await super().list(resource, **more)

    answer = await deletion(Deaf(), counted("q"))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 503)
    text = "Queue q isn't judged yet; admission couldn't make sure, since jobs.batch.volcano.sh is forbidden"
    assert answer["status"]["message"] == text


async def test_a_parent_is_judged_by_its_podgroups() -> None:
    api = CountingApi()
    api.seed(QUEUES, counted("parent", allocated={"pods": "3"}))
    asked = asked_of_queue(Operation.CREATE, {**queue("q"), "spec": {"parent": "parent"}})
    async with service_on(api) as app:
        assert await verdict(app, asked, "/queues/validate") == ""
        api.seed(
            PODGROUPS, {**group("g", "Running", queue_name="parent"), "status": {"phase": "Running", "running": 2}}
        )
        refused = await verdict(app, asked, "/queues/validate")
    assert refused == "queue parent cannot be the parent queue of queue q because it has allocated Pods: 2"


async def test_pods_are_counted_beside_podgroups_where_that_is_asked_for() -> None:
    api, clock, meter = CountingApi(), VirtualClock(), NoMeter()
    stored = counted("q")
    api.seed(QUEUES, stored)
    informers = Informers(api, clock=clock, random=SystemRandom(), meter=meter)
    world = World(api, informers, with_pods=True)
    tasks = [asyncio.create_task(part.run()) for part in informers.parts()]
    await world.synced()
    settings = Settings(queues=QueueRules(keep_allocated=True))
    service = AdmissionService(world=world, clock=clock, meter=meter, settings=lambda: settings)
    app = build(service, meter=meter, exposition=lambda: ("text/plain", b""))
    asked = asked_of_queue(Operation.DELETE, None, stored)
    try:
        assert await verdict(app, asked, "/queues/validate") == ""
        api.seed(PODGROUPS, group("g", "Inqueue"))
        api.seed(PODS, pod_of("j"))
        refused = await verdict(app, asked, "/queues/validate")
    finally:
        await _end(tasks)
    assert "because it has 1 PodGroups (1 Inqueue): PodGroup ns/g" in refused
    assert "queue q can not be deleted because it has allocated Pods: 1" in refused


@pytest.mark.parametrize(
    ("stored", "state", "name", "taken"),
    [
        (job("j"), "Closing", "j-uid-j", True),
        (job("j", "Aborted"), "Closing", "j-uid-j", True),
        (job("j", "Pending"), "Closing", "j-uid-j", True),
        (job("j", "Completed"), "Closing", "j-uid-j", False),
        (job("j"), "Closed", "j-uid-j", False),
        (job("j"), "Closing", "another", False),
        (job("j", queue_name="other"), "Closing", "j-uid-j", False),
        ({**job("j"), "metadata": {"name": "j", "namespace": "ns", "uid": "newer"}}, "Closing", "j-uid-j", False),
        (None, "Closing", "j-uid-j", False),
    ],
)
async def test_a_closing_queue_takes_the_group_of_a_job_that_it_took(
    stored: Json | None, state: str, name: str, taken: bool
) -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("q", state=state))
    if stored is not None:
        api.seed(JOBS, stored)
    made = group(name, "", of="j")
    asked = review_of(Request(resource=PODGROUPS, operation=Operation.CREATE, name=name, namespace="ns", object=made))
    async with service_on(api) as app:
        refused = await verdict(app, asked, "/podgroups/validate")
    text = f"can only submit PodGroup to queue with state `Open`, queue `q` status is `{state}`"
    assert refused == ("" if taken else text)


@pytest.mark.parametrize(
    ("retries", "attempt", "taken"),
    [(2, "2", True), (2, "1", False), (0, "0", False), (0, "1", False), (None, "1", False)],
)
async def test_only_a_later_attempt_of_a_job_is_marked_as_one(retries: int | None, attempt: str, taken: bool) -> None:
    """The mark lets a PodGroup start in a Closing queue."""
    api = CountingApi()
    api.seed(QUEUES, queue("q", state="Closing"))
    if retries is not None:
        stored = job("j")
        api.seed(JOBS, {**stored, "status": {**stored["status"], "retryCount": retries}})
    before = group("j-uid-j", "", of="j")
    marked = {**before, "metadata": {**before["metadata"], "annotations": {"vcbatch.dev/attempt": attempt}}}
    update = Request(
        resource=PODGROUPS, operation=Operation.UPDATE, name="j-uid-j", namespace="ns", object=marked, old=before
    )
    async with service_on(api) as app:
        refused = await verdict(app, review_of(update), "/podgroups/validate")
    assert ("isn't the number of retries" in refused) is not taken
    assert bool(refused) is not taken


async def test_a_sibling_deleted_a_moment_ago_isnt_added_up() -> None:
    api = CountingApi()
    api.seed(QUEUES, around("parent", parent="root", cpu="3"))
    api.seed(QUEUES, around("early"))
    async with service_on(api, following=False) as app:
        await api.delete(QUEUES, "early")
        assert await verdict(app, asked_of_queue(Operation.CREATE, around("late")), "/queues/validate") == ""


async def test_queues_that_rest_on_no_other_are_judged_without_a_read() -> None:
    api = CountingApi()
    async with service_on(api) as app:
        new = around("q", parent="root")
        asked = asked_of_queue(Operation.CREATE, new)
        labelled = {**new, "metadata": {**new["metadata"], "labels": {"team": "a"}}}
        api.down = True
        assert await verdict(app, asked, "/queues/validate") == ""
        assert await verdict(app, asked_of_queue(Operation.UPDATE, labelled, new), "/queues/validate") == ""


async def test_a_tree_that_cant_be_read_lets_nothing_through() -> None:
    api = CountingApi()
    api.seed(QUEUES, around("parent", parent="root"))
    async with service_on(api, following=False) as app:
        api.down = True
        answer = await answer_of(app, "/queues/validate", asked_of_queue(Operation.CREATE, around("q")))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 503)
    assert answer["status"]["message"].startswith("Queue q isn't judged yet; admission couldn't make sure")


async def test_a_queue_opened_a_moment_ago_is_open() -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("q", state="Closed"))
    async with service_on(api, following=False) as app:
        await api.patch(QUEUES, "q", {"status": {"state": "Open"}})
        assert await verdict(app, submitted(queue="q")) == ""


async def test_a_queue_whose_child_was_deleted_a_moment_ago_takes_jobs() -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("upper"))
    api.seed(QUEUES, queue("lower", parent="upper"))
    async with service_on(api, following=False) as app:
        assert "has child queues: lower" in await verdict(app, submitted(queue="upper"))
        await api.delete(QUEUES, "lower")
        assert await verdict(app, submitted(queue="upper")) == ""


async def test_a_namespace_that_was_allowed_a_moment_ago_further_up_may_submit() -> None:
    api = CountingApi()
    closed = queue("top")
    api.seed(QUEUES, {**closed, "metadata": {"name": "top", "annotations": {"vcbatch.dev/allowed-namespaces": "x"}}})
    api.seed(QUEUES, queue("middle", parent="top"))
    api.seed(QUEUES, queue("leaf", parent="middle"))
    async with service_on(api, following=False) as app:
        assert "namespace `ns` may not submit to queue `top`" in await verdict(app, submitted(queue="leaf"))
        await api.patch(QUEUES, "top", {"metadata": {"annotations": {"vcbatch.dev/allowed-namespaces": "ns"}}})
        assert await verdict(app, submitted(queue="leaf")) == ""


async def test_a_queue_that_doesnt_exist_is_refused_after_one_look() -> None:
    api = CountingApi()
    async with service_on(api) as app:
        assert "unable to find job queue" in await verdict(app, submitted(queue="nowhere"))
    assert api.reads == [("queues", "nowhere")]


async def test_names_that_no_object_can_have_arent_asked_for() -> None:
    api = CountingApi()
    async with service_on(api) as app:
        assert await verdict(app, submitted(queue="../../api", priorityClassName="a b"))
    assert api.reads == []


async def test_the_classes_of_jobs_and_their_pods_are_looked_up() -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("default"))
    task = {**TASK, "template": {"spec": {**TASK["template"]["spec"], "priorityClassName": "late"}}}
    async with service_on(api, following=False) as app:
        review = submitted(queue="default", tasks=[task], priorityClassName="never")
        answer = await answer_of(app, "/jobs/validate", review)
        reported = " ".join(text for text in answer["warnings"] if "PriorityClass" in text)
        assert (answer["allowed"], "never" in reported, "late" in reported) == (True, True, True)
        for name in ("late", "never"):
            api.seed(PRIORITYCLASSES, {"metadata": {"name": name}, "value": 1})
        answer = await answer_of(app, "/jobs/validate", review)
        assert not any("PriorityClass" in text for text in answer["warnings"]), "each is read before it is warned of"


async def test_a_class_that_cannot_be_looked_up_is_warned_of_and_the_job_is_let_through() -> None:
    api = CountingApi()
    api.seed(QUEUES, queue("default"))
    async with service_on(api) as app:
        api.down = True
        answer = await answer_of(app, "/jobs/validate", submitted(queue="default", priorityClassName="never"))
    assert answer["allowed"]
    assert any("no PriorityClass with name never was found" in text for text in answer["warnings"])


async def test_without_an_answer_of_the_api_server_nothing_is_refused_for_good() -> None:
    api = CountingApi()
    async with service_on(api) as app:
        api.down = True
        answer = await answer_of(app, "/jobs/validate", submitted(queue="nowhere"))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 503)
    assert "couldn't make sure" in answer["status"]["message"]


async def test_a_podgroup_gets_the_queue_of_its_namespace() -> None:
    api = CountingApi()
    annotations = {"scheduling.volcano.sh/queue-name": "q"}
    api.seed(NAMESPACES, {"metadata": {"name": "ns", "annotations": annotations}})
    group = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "default"}}
    asked = Request(resource=PODGROUPS, operation=Operation.CREATE, name="g", namespace="ns", object=group)
    async with service_on(api) as app:
        answer = await answer_of(app, "/podgroups/mutate", review_of(asked))
    assert answer["patch"] == [{"op": "replace", "path": "/spec/queue", "value": "q"}]


async def test_one_queue_that_cant_be_read_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    api = CountingApi()
    api.seed(QUEUES, {"metadata": {"name": "odd"}, "spec": {"weight": "heavy"}})
    api.seed(QUEUES, queue("q"))
    async with service_on(api) as app:
        assert await verdict(app, submitted(queue="q")) == ""
        assert "unable to find job queue" in await verdict(app, submitted(queue="odd"))
    assert "odd" in caplog.text


def resized(cpu: str, *, before: str = "1") -> Json:
    """The review of a running pod of gang `g` that is to have so many cpus."""

    def pod(amount: str) -> Json:
        return {
            "metadata": {"name": "p", "namespace": "ns", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {
                "schedulerName": "volcano",
                "nodeName": "n",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": amount}}}],
            },
            "status": {"phase": "Running"},
        }

    asked = Request(
        resource=PODS, operation=Operation.UPDATE, name="p", namespace="ns", object=pod(cpu), old=pod(before),
        subresource="resize",
    )  # fmt: skip
    return review_of(asked)


def limited(name: str, most: str, *, used: str, parent: str = "root") -> Json:
    made = queue(name, parent=parent)
    return {**made, "spec": {**made["spec"], "capability": {"cpu": most}}, "status": {"allocated": {"cpu": used}}}


async def test_a_resize_is_judged_by_the_pod_group_and_the_queues_as_they_are_now() -> None:
    api = CountingApi()
    api.seed(PODGROUPS, {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"queue": "q"}})
    api.seed(QUEUES, limited("q", "8", used="2", parent="above"))
    api.seed(QUEUES, limited("above", "16", used="2"))
    async with service_on(api, following=False) as app:
        assert await verdict(app, resized("7"), "/pods/validate") == ""
        api.seed(QUEUES, limited("q", "8", used="4", parent="above"))
        assert "queue q has 4 left of 8" in await verdict(app, resized("7"), "/pods/validate")
        api.seed(QUEUES, limited("q", "8", used="2", parent="above"))
        api.seed(QUEUES, limited("above", "16", used="12"))
        assert "queue above has 4 left of 16" in await verdict(app, resized("7"), "/pods/validate")
        api.down = True
        answer = await answer_of(app, "/pods/validate", resized("2"))
        assert answer["status"]["code"] == 503


async def test_a_resize_of_a_pod_without_a_gang_is_let_through() -> None:
    async with service_on(CountingApi()) as app:
        assert await verdict(app, resized("70"), "/pods/validate") == ""
