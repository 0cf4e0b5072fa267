"""Carrying decisions out: in one order, at most once, and harmless to repeat after a crash at any write."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.api import FakeApi
from tests.fakes.faults import Crash, CrashingApi, Fault, FaultyApi, by_chance
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import CONFIGMAPS, EVENTS, JOBS, PODGROUPS, PODS, QUEUES, SECRETS, Resource
from vcbatch.core.machine import (
    Create,
    Decision,
    Delete,
    Emit,
    Ensure,
    EventType,
    FreshKeys,
    Mark,
    ObjectRef,
    WriteStatus,
)
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.apply import Applier, NotAppliedError, StaleError, merge_diff
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.random import SystemRandom

JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "controller": True, "name": "job", "uid": "job-uid"}


class World:
    """A server with one job and a pod of its, and a controller that has just come up and read it all."""

    def __init__(
        self, server: FakeApi, api: Api | None = None, judges: Mapping[Resource, Callable[[dict], str]] | None = None
    ) -> None:
        self.server = server
        self.caches: dict[Resource, Cache] = {JOBS: Cache(), PODGROUPS: Cache(), PODS: Cache(model=Pod)}
        self.unfollowed: dict[Resource, Cache] = {CONFIGMAPS: Cache()}
        clock = VirtualClock()
        self.recorder = Recorder(server, clock=clock, random=SeededRandom(1), component="test")
        self.applier = Applier(
            api or server,
            self.caches | self.unfollowed,
            self.recorder,
            clock=clock,
            random=SeededRandom(1),
            without_status=[PODGROUPS],
            unfollowed=self.unfollowed,
            judges=judges,
        )

    async def read(self) -> None:
        for resource, cache in self.caches.items():
            cache.replace(await self.server.list(resource, model=cache.model))


def pod(name: str, owner: dict | None = JOB) -> dict:
    metadata = {"name": name, "namespace": "ns", "ownerReferences": [owner] if owner else []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def seeded() -> FakeApi:
    server = FakeApi()
    server.seed(JOBS, {"metadata": {"name": "job", "namespace": "ns", "uid": "job-uid"}, "status": {"running": 2}})
    server.seed(PODS, {**pod("old-0"), "metadata": {**pod("old-0")["metadata"], "uid": "old-uid"}})
    return server


def ref(resource: Resource, name: str, uid: str) -> ObjectRef:
    return ObjectRef(resource=resource, namespace="ns", name=name, uid=uid)


def job_ref() -> ObjectRef:
    return ref(JOBS, "job", "job-uid")


def everything(server: FakeApi, pods: int = 5) -> Decision:
    """A restart: remember it, mark the old pod, make what is around the pods, delete, create, tell."""
    stored = server.objects[(JOBS, "ns", "job")]
    old = (PODS, "ns", "old-0") in server.objects
    config = {"metadata": {"name": "job-svc", "namespace": "ns", "ownerReferences": [JOB]}, "data": {"hosts": "a b"}}
    return Decision(
        status=WriteStatus(
            ref=job_ref(),
            resource_version=stored["metadata"]["resourceVersion"],
            status={"retryCount": 1, "pending": 5},
        ),
        marks=[Mark(ref=ref(PODS, "old-0", "old-uid"), patch={"metadata": {"annotations": {"gone": "1"}}})]
        if old
        else [],
        ensures=[Ensure(resource=CONFIGMAPS, body=config, update={"data": {"hosts": "a b"}})],
        deletes=[Delete(ref=ref(PODS, "old-0", "old-uid"))],
        creates=[Create(resource=PODS, body=pod(f"new-{index}")) for index in range(pods)],
        events=[Emit(ref=job_ref(), type=EventType.NORMAL, reason="ExecuteAction", message="restarted")],
    )


def state_of(server: FakeApi) -> dict:
    return {
        "job": server.objects[(JOBS, "ns", "job")]["status"],
        "pods": sorted(name for (resource, _, name) in server.objects if resource == PODS),
        "config": server.objects[(CONFIGMAPS, "ns", "job-svc")]["data"],
    }


def test_the_order_is_status_marks_ensures_deletes_creates_events():
    async def main() -> list[tuple[str, str, str]]:
        server = seeded()
        world = World(server)
        await world.read()
        await world.applier.carry_out(everything(server, pods=2))
        await world.recorder.flush()
        return server.writes

    writes = run(main())
    assert writes[:4] == [
        ("patch", "jobs/status", "job"),
        ("patch", "pods", "old-0"),
        ("create", "configmaps", "job-svc"),
        ("delete", "pods", "old-0"),
    ]
    assert writes[4:6] == [("create", "pods", "new-0"), ("create", "pods", "new-1")]
    assert [write[:2] for write in writes[6:]] == [("create", "events")]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("crash_at", range(10))
def test_a_crash_between_any_two_writes_is_made_good_by_looking_again(crash_at: int, after: bool):
    async def main() -> tuple[dict, dict]:
        smooth = seeded()
        world = World(smooth)
        await world.read()
        await world.applier.carry_out(everything(smooth))

        server = seeded()
        world = World(server, CrashingApi(server, at=crash_at, after=after))
        await world.read()
        try:
            await world.applier.carry_out(everything(server))
        except Crash:
            pass
        # A new program: nothing is known but what the server has.
        world = World(server)
        await world.read()
        await world.applier.carry_out(everything(server))
        return state_of(smooth), state_of(server)

    wanted, found = run(main())
    assert found == wanted


@given(seed=st.integers(0, 2**16), share=st.floats(0, 0.7))
@settings(max_examples=60)
def test_whatever_fails_repeating_ends_in_the_same_world(seed: int, share: float):
    async def main() -> dict:
        server = seeded()
        plan = by_chance(seed, share)
        broken = {"on": True}

        def errors():
            while True:
                yield next(plan) if broken["on"] else Fault.NONE

        world = World(server, FaultyApi(server, errors()))
        await world.read()
        for attempt in range(100):
            broken["on"] = attempt < 60
            try:
                await world.applier.carry_out(everything(server))
            except StaleError:
                await world.read()
            except NotAppliedError as error:
                assert error.error.code in (0, 409, 429, 500)
                await world.read()
            else:
                return state_of(server)
        raise AssertionError("it never succeeded")

    wanted = {
        "job": {"retryCount": 1, "pending": 5},
        "pods": [f"new-{i}" for i in range(5)],
        "config": {"hosts": "a b"},
    }
    assert run(main()) == wanted


def test_a_decision_that_changes_nothing_writes_nothing():
    async def main() -> list:
        server = seeded()
        world = World(server)
        await world.read()
        await world.applier.carry_out(everything(server))
        server.writes.clear()
        stored = server.objects[(JOBS, "ns", "job")]
        again = everything(server)
        await world.applier.carry_out(
            Decision(
                status=WriteStatus(
                    ref=job_ref(), resource_version=stored["metadata"]["resourceVersion"], status=dict(stored["status"])
                ),
                ensures=again.ensures,
            )
        )
        return server.writes

    assert run(main()) == []


def test_a_quota_costs_one_request_and_not_a_thousand():
    async def main() -> tuple[int, NotAppliedError]:
        server = seeded()
        refused = 0

        class Full:
            def __getattr__(self, verb: str):
                return getattr(server, verb)

            async def create(self, *_: object, **__: object) -> None:
                nonlocal refused
                refused += 1
                raise ApiError(403, "Forbidden", 'pods "new-0" is forbidden: exceeded quota')

        world = World(server, Full())  # type: ignore[arg-type]
        await world.read()
        creates = [Create(resource=PODS, body=pod(f"new-{index}")) for index in range(1000)]
        with pytest.raises(NotAppliedError) as caught:
            await world.applier.carry_out(Decision(creates=creates))
        return refused, caught.value

    refused, error = run(main())
    assert refused == 1
    assert "exceeded quota" in str(error)


def test_what_was_done_is_told_although_the_rest_is_refused():
    class Full(FakeApi):
        """Has room for two pods."""

        async def create(self, resource, body, *, namespace=None):
            if resource == PODS and len(self.all(PODS)) == 2:
                raise ApiError(403, "Forbidden", "exceeded quota")
            return await super().create(resource, body, namespace=namespace)

    def reported(message: str, after: WriteStatus | Create | Delete | None) -> Emit:
        return Emit(ref=job_ref(), type=EventType.NORMAL, reason="Told", message=message, after=after)

    async def main() -> list[str]:
        server = Full()
        stored = server.seed(JOBS, {"metadata": {"name": "job", "namespace": "ns", "uid": "job-uid"}})
        server.seed(PODS, {**pod("old-0"), "metadata": {**pod("old-0")["metadata"], "uid": "old-uid"}})
        world = World(server)
        await world.read()
        version = stored["metadata"]["resourceVersion"]
        status = WriteStatus(ref=job_ref(), resource_version=version, status={"running": 1})
        delete = Delete(ref=ref(PODS, "old-0", "old-uid"))
        creates = [Create(resource=PODS, body=pod(f"new-{index}")) for index in range(4)]
        events = [
            reported("all of it", None),
            reported("stored", status),
            reported("stored, too", status),
            reported("deleted", delete),
        ]
        events += [reported(f"created {index}", create) for index, create in enumerate(creates)]
        with pytest.raises(NotAppliedError):
            await world.applier.carry_out(Decision(status=status, deletes=[delete], creates=creates, events=events))
        await world.recorder.flush()
        return sorted(event["message"] for event in server.all(EVENTS))

    assert run(main()) == ["created 0", "created 1", "deleted", "stored", "stored, too"]


def test_what_is_to_be_stored_is_not_told_where_it_is_refused():
    async def main() -> list[dict]:
        server = seeded()
        world = World(server)
        await world.read()
        status = WriteStatus(ref=job_ref(), resource_version="of-before", status={"running": 1})
        event = Emit(ref=job_ref(), type=EventType.NORMAL, reason="Told", message="stored", after=status)
        with pytest.raises(StaleError):
            await world.applier.carry_out(Decision(status=status, events=[event]))
        await world.recorder.flush()
        return server.all(EVENTS)

    assert run(main()) == []


def test_a_turn_begins_when_the_one_before_it_is_made():
    class Full(FakeApi):
        """Takes its time, and has room for five."""

        async def create(self, resource, body, *, namespace=None):
            await asyncio.sleep(0.01 if body["metadata"]["name"].startswith("low") else 1.0)
            if len(self.all(PODS)) == 5:
                raise ApiError(403, "Forbidden", "exceeded quota")
            return await super().create(resource, body, namespace=namespace)

    async def main() -> list[str]:
        server = Full()
        world = World(server)
        high = [Create(resource=PODS, body=pod(f"high-{index}"), turn=-10) for index in range(4)]
        low = [Create(resource=PODS, body=pod(f"low-{index}")) for index in range(4)]
        with pytest.raises(NotAppliedError, match=r"1 failed, 5 done|3 failed, 5 done"):
            await world.applier.carry_out(Decision(creates=[*high, *low]))
        return sorted(stored["metadata"]["name"] for stored in server.all(PODS))

    made = run(main())
    assert made[:4] == [f"high-{index}" for index in range(4)]
    assert len(made) == 5


def test_a_stale_picture_is_noticed_without_a_write():
    async def main() -> list:
        server = seeded()
        world = World(server)
        await world.read()
        decision = everything(server)
        await server.patch(JOBS, "job", {"spec": {"queue": "other"}}, namespace="ns")
        world.caches[JOBS].replace(await server.list(JOBS))
        server.writes.clear()
        with pytest.raises(StaleError):
            await world.applier.carry_out(decision)
        return server.writes

    assert run(main()) == []


def test_a_conflict_brings_the_cache_up_to_date():
    async def main() -> str:
        server = seeded()
        world = World(server)
        await world.read()
        decision = everything(server)
        changed = await server.patch(JOBS, "job", {"spec": {"queue": "other"}}, namespace="ns")
        with pytest.raises(StaleError):
            await world.applier.carry_out(decision)
        assert world.caches[JOBS].get("job-uid") == changed
        return changed["metadata"]["resourceVersion"]

    run(main())


def test_a_name_that_is_somebody_elses_is_an_error_and_stays_theirs():
    async def main() -> tuple[NotAppliedError, dict]:
        server = seeded()
        server.seed(PODS, pod("new-0", owner=None))
        world = World(server)
        await world.read()
        with pytest.raises(NotAppliedError) as caught:
            await world.applier.carry_out(Decision(creates=[Create(resource=PODS, body=pod("new-0"))]))
        return caught.value, server.objects[(PODS, "ns", "new-0")]

    error, stored = run(main())
    assert "name is taken" in str(error)
    assert not stored["metadata"]["ownerReferences"]


def test_a_delete_spares_the_object_that_has_the_name_by_now():
    async def main() -> None:
        server = seeded()
        world = World(server)
        await world.read()
        server.remove(PODS, "old-0", "ns")
        fresh = server.seed(PODS, pod("old-0"))
        await world.applier.carry_out(Decision(deletes=[Delete(ref=ref(PODS, "old-0", "old-uid"))]))
        assert server.objects[(PODS, "ns", "old-0")] == fresh
        assert world.caches[PODS].get("old-uid") is None

    run(main())


def test_an_object_that_is_being_deleted_isnt_brought_up_to_date():
    """It would be gone a moment later, and nobody would make it anew."""

    async def main() -> None:
        server = seeded()
        config = {"metadata": {"name": "job-svc", "namespace": "ns", "ownerReferences": [JOB]}, "data": {"hosts": "a"}}
        ending = {**config["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        server.seed(CONFIGMAPS, {**config, "metadata": ending})
        ensure = Ensure(resource=CONFIGMAPS, body=config, update={"data": {"hosts": "a b"}})
        world = World(server)
        with pytest.raises(StaleError, match="being deleted"):
            await world.applier.carry_out(Decision(ensures=[ensure]))
        (cached,) = world.unfollowed[CONFIGMAPS]
        assert cached["metadata"]["deletionTimestamp"], "the next decision is made on that"
        assert server.objects[(CONFIGMAPS, "ns", "job-svc")]["data"] == {"hosts": "a"}

    run(main())


def test_a_deleted_pod_shows_as_ending_before_any_watch_tells():
    async def main() -> None:
        server = seeded()

        class Graceful:
            def __getattr__(self, verb: str):
                return getattr(server, verb)

            async def delete(self, *_: object, **__: object) -> None:
                return None  # the pod gets a deletion timestamp; the kubelet ends it later

        world = World(server, Graceful())  # type: ignore[arg-type]
        await world.read()
        await world.applier.carry_out(Decision(deletes=[Delete(ref=ref(PODS, "old-0", "old-uid"))]))
        held = world.caches[PODS].get("old-uid")
        assert held.metadata.deletion_timestamp

    run(main())


def test_created_pods_are_in_the_cache_before_any_watch_tells():
    async def main() -> None:
        server = seeded()
        world = World(server)
        await world.read()
        await world.applier.carry_out(everything(server))
        assert {held.metadata.name for held in world.caches[PODS]} >= {f"new-{index}" for index in range(5)}

    run(main())


def test_creates_are_bounded_and_start_slowly():
    batches: list[int] = []

    async def main() -> None:
        server = seeded()
        active = 0
        peak = 0

        class Slow:
            def __getattr__(self, verb: str):
                return getattr(server, verb)

            async def create(self, *args: object, **kwargs: object):
                nonlocal active, peak
                active += 1
                peak = max(peak, active)
                await asyncio.sleep(1)
                active -= 1
                if active == 0:
                    batches.append(peak)
                    peak = 0
                return await server.create(*args, **kwargs)  # type: ignore[arg-type]

        world = World(server, Slow())  # type: ignore[arg-type]
        await world.read()
        creates = [Create(resource=PODS, body=pod(f"new-{index}")) for index in range(200)]
        await world.applier.carry_out(Decision(creates=creates))

    run(main())
    assert batches[:4] == [1, 2, 4, 8]
    assert max(batches) == 16


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


def without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


@given(
    stored=st.dictionaries(st.text(max_size=2), _JSON, max_size=4),
    wanted=st.dictionaries(st.text(max_size=2), _JSON, max_size=4),
)
@settings(max_examples=300)
def test_the_status_patch_turns_what_is_stored_into_exactly_what_was_decided(stored: dict, wanted: dict):
    from tests.fakes.api import merged

    # A null means absence in a merge patch, so neither side can hold one.
    before, after = without_nulls(stored), without_nulls(wanted)
    assert isinstance(before, dict) and isinstance(after, dict)
    patch = merge_diff(before, after)
    assert merged(before, patch) == after
    assert bool(patch) == (before != after)


def test_keys_are_made_with_the_object_and_never_again():
    async def scenario() -> None:
        server = seeded()
        world = World(server)
        await world.read()
        body = {
            "metadata": {"name": "job-ssh", "namespace": "ns", "ownerReferences": [JOB]},
            "data": {"config": "Yw=="},
        }
        keys = FreshKeys(private="id_rsa", public=("id_rsa.pub", "authorized_keys"))
        ensure = Ensure(resource=SECRETS, body=body, update={"data": {"config": "ZA=="}}, keys=keys)
        await world.applier.carry_out(Decision(ensures=[ensure]))
        made = server.objects[(SECRETS, "ns", "job-ssh")]["data"]
        assert base64.b64decode(made["id_rsa"]).startswith(b"private")
        assert base64.b64decode(made["id_rsa.pub"]).startswith(b"public")
        assert made["authorized_keys"] == made["id_rsa.pub"]
        await world.applier.carry_out(Decision(ensures=[ensure]))
        assert server.objects[(SECRETS, "ns", "job-ssh")]["data"] == made | {"config": "ZA=="}

    run(scenario())


async def test_a_key_pair_is_what_ssh_takes():
    pair = await SystemRandom().key_pair()
    key = serialization.load_pem_private_key(pair.private.encode(), password=None)
    public = serialization.load_ssh_public_key(pair.public.encode())
    assert key.public_key() == public
    assert pair.private.startswith("-----BEGIN RSA PRIVATE KEY-----")


def test_what_is_judged_badly_counts_as_refused_and_isnt_asked_for():
    async def main() -> None:
        server = seeded()
        world = World(server, judges={PODS: lambda body: "no" if body["metadata"]["name"] == "bad" else ""})
        await world.read()
        creates = [Create(resource=PODS, body=pod(name)) for name in ("good", "bad")]
        with pytest.raises(NotAppliedError) as refused:
            await world.applier.carry_out(Decision(creates=creates))
        assert (refused.value.part, refused.value.error.code, refused.value.passing) == ("create Pod", 403, False)
        assert refused.value.error.message == "no"
        assert {("create", "pods", "good")} == {write for write in server.writes if write[0] == "create"}

    run(main())


async def test_applied_fields_go_first_under_their_manager_and_the_rest_is_patched() -> None:
    server = _Applies()
    queue = server.seed(QUEUES, {"metadata": {"name": "q"}, "status": {"state": "Open", "pending": 1}})
    world = World(server)
    world.caches[QUEUES] = Cache()
    world.caches[QUEUES].put(queue)
    world.applier = Applier(server, world.caches, world.recorder, clock=VirtualClock(), random=SeededRandom(1))
    ref = ObjectRef(resource=QUEUES, namespace="", name="q", uid=queue["metadata"]["uid"])

    async def write(**status: object) -> None:
        version = server.objects[(QUEUES, "", "q")]["metadata"]["resourceVersion"]
        write = WriteStatus(
            ref=ref, resource_version=version, status=status, applied=("state",), manager="queue-controller"
        )
        await world.applier.carry_out(Decision(status=write))

    await write(state="Closed", pending=2)
    assert server.sent == [("queue-controller", {"state": "Closed"}), ("", {"pending": 2})]
    assert server.objects[(QUEUES, "", "q")]["status"] == {"state": "Closed", "pending": 2}
    server.sent.clear()
    await write(state="Closed", pending=3)
    await write(state="Open", pending=3)
    assert server.sent == [("", {"pending": 3}), ("queue-controller", {"state": "Open"})]


class _Applies(FakeApi):
    """Remembers who wrote which status."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, object]] = []

    async def patch(self, resource, name, patch, **options):  # type: ignore[no-untyped-def, override]
        self.sent.append((options.get("manager", ""), patch["status"]))
        return await super().patch(resource, name, patch, **options)
