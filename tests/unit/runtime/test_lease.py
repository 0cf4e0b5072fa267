"""Leader election: at most one works, and when it stops another does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.api import FakeApi
from tests.fakes.faults import Fault, FaultyApi, by_chance
from tests.support.metrics import Scrape
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import FAILING_TASKS
from vcbatch.api.resources import LEASES
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.leader.lease import LeaderElector, LeadershipLostError, LeaseConfig


def elector(api: Api, identity: str, seed: int = 1) -> LeaderElector:
    config = LeaseConfig(namespace="ns", name="lease", identity=identity)
    return LeaderElector(api, config, clock=VirtualClock(), random=SeededRandom(seed))


def holder(server: FakeApi) -> str:
    return server.objects[(LEASES, "ns", "lease")]["spec"]["holderIdentity"]


async def forever() -> None:
    await asyncio.Event().wait()


@given(seed=st.integers(0, 2**16), share=st.floats(0, 0.8), replicas=st.integers(2, 4))
@settings(max_examples=40)
def test_two_never_work_at_once_whatever_the_server_does(seed: int, share: float, replicas: int):
    async def main() -> int:
        server = FakeApi()
        working: set[int] = set()
        terms = 0

        async def replica(number: int) -> None:
            nonlocal terms
            errors = by_chance(seed + number, share)
            api = FaultyApi(server, errors, verbs=("get", "create", "replace"))

            async def work() -> None:
                nonlocal terms
                terms += 1
                assert not working
                working.add(number)
                try:
                    await forever()
                finally:
                    working.discard(number)

            while True:
                try:
                    await elector(api, f"replica-{number}", seed + number).run(work)  # type: ignore[arg-type]
                except LeadershipLostError:
                    await asyncio.sleep(1)

        tasks = [asyncio.ensure_future(replica(number)) for number in range(replicas)]
        await asyncio.sleep(600)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError)
        return terms

    terms = run(main())
    if share < 0.3:
        assert terms >= 1


def test_a_leader_that_stops_lets_the_next_begin_at_once():
    async def main() -> float:
        server = FakeApi()
        loop = asyncio.get_running_loop()
        began: list[float] = []

        async def second() -> None:
            began.append(loop.time())
            await forever()

        first = asyncio.ensure_future(elector(server, "first").run(forever))
        await asyncio.sleep(5)
        other = asyncio.ensure_future(elector(server, "second").run(second))
        await asyncio.sleep(30)
        assert holder(server) == "first"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        stopped = loop.time()
        await asyncio.sleep(30)
        assert holder(server) == "second"
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert holder(server) == ""
        return began[0] - stopped

    assert run(main()) < 3


def test_replicas_export_who_holds_the_lease_and_how_often_it_moved():
    async def main() -> list[Scrape]:
        server, meters = FakeApi(), [PrometheusMeter(programs=("scheduler",)) for _ in range(2)]
        running = []
        for number, meter in enumerate(meters):
            config = LeaseConfig(namespace="ns", name="lease", identity=str(number))
            elector = LeaderElector(server, config, clock=VirtualClock(), random=SeededRandom(number), meter=meter)
            running.append(asyncio.ensure_future(elector.run(forever)))
            await asyncio.sleep(10)
        seen = [Scrape(meter) for meter in meters]
        running[0].cancel()
        await asyncio.sleep(10)
        seen += [Scrape(meter) for meter in meters]
        running[1].cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return seen

    seen = run(main())
    assert [one.value("vcbatch_lease_held", lease="lease") for one in seen] == [1, 0, 0, 1]
    assert [one.value("vcbatch_lease_transitions", lease="lease") for one in seen] == [0, 0, 0, 1]


def test_a_leader_that_dies_is_replaced_after_the_duration():
    async def main() -> float:
        server = FakeApi()
        loop = asyncio.get_running_loop()
        began: list[float] = []

        async def second() -> None:
            began.append(loop.time())
            await forever()

        dead = elector(server, "dead")
        assert await dead._try()  # it takes the Lease and is never heard of again
        died = loop.time()
        other = asyncio.ensure_future(elector(server, "second").run(second))
        await asyncio.sleep(60)
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert server.objects[(LEASES, "ns", "lease")]["spec"]["leaseTransitions"] == 1
        return began[0] - died

    assert 15 <= run(main()) <= 18


def test_a_leader_that_cant_renew_stops_before_another_may_begin():
    async def main() -> float:
        server = FakeApi()
        loop = asyncio.get_running_loop()
        on = {"fault": Fault.NONE}

        def plan():
            while True:
                yield on["fault"]

        api = FaultyApi(server, plan(), verbs=("get", "create", "replace"))
        task = asyncio.ensure_future(elector(api, "first").run(forever))  # type: ignore[arg-type]
        await asyncio.sleep(20)
        cut = loop.time()
        on["fault"] = Fault.REFUSED
        with pytest.raises(LeadershipLostError):
            await task
        return loop.time() - cut

    assert run(main()) < 15


def test_the_time_that_an_answer_takes_counts_against_the_leader():
    """Others count from the moment at which the server wrote the renewal, not from when the leader heard of it."""

    async def main() -> float:
        server = FakeApi()
        loop = asyncio.get_running_loop()
        renewals: list[float] = []

        class Slow:
            def __getattr__(self, verb: str) -> Any:
                return getattr(server, verb)

            async def replace(self, *args: Any, **kwargs: Any) -> Any:
                if renewals:
                    raise ApiError(0, "ConnectionLost", "connection refused")
                answer = await server.replace(*args, **kwargs)
                renewals.append(loop.time())
                await asyncio.sleep(8)
                return answer

        with pytest.raises(LeadershipLostError):
            await elector(Slow(), "first").run(forever)  # type: ignore[arg-type]
        return loop.time() - renewals[0]

    assert run(main()) < 15


@pytest.mark.parametrize("stops", [tenth / 10 for tenth in range(28)])
def test_a_leader_that_stops_gives_the_lease_back_whatever_is_under_way(stops: float):
    """A renewal that the server has stored and not yet answered, for instance."""

    async def main() -> str:
        server = FakeApi()

        class Slow:
            def __getattr__(self, verb: str) -> Any:
                real = getattr(server, verb)

                async def call(*args: Any, **kwargs: Any) -> Any:
                    await asyncio.sleep(0.15)
                    answer = await real(*args, **kwargs)
                    await asyncio.sleep(0.25)
                    return answer

                return call

        first = asyncio.ensure_future(elector(Slow(), "first").run(forever))  # type: ignore[arg-type]
        await asyncio.sleep(10 + stops)
        assert holder(server) == "first"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return holder(server)

    assert run(main()) == ""


def test_work_that_ends_gives_the_lease_back():
    async def main() -> str:
        server = FakeApi()

        async def work() -> None:
            await asyncio.sleep(1)

        await elector(server, "first").run(work)
        return holder(server)

    assert run(main()) == ""


def test_writes_are_barred_from_the_deadline_on_though_nobody_has_told_the_work():
    async def main() -> list[tuple[bool, str]]:
        server = FakeApi()
        clock = VirtualClock()
        first = LeaderElector(
            server, LeaseConfig(namespace="ns", name="lease", identity="first"), clock=clock, random=SeededRandom(1)
        )
        found = [(first.may_write(), first.error())]
        assert await first._try()
        first.leading = True  # as in the moment after a process was frozen: no timer has been looked at yet
        for seconds in (9.9, 0.2, 5.0):
            await asyncio.sleep(seconds)
            found.append((first.may_write(), first.error()))
        return found

    assert run(main()) == [(False, ""), (True, ""), (False, ""), (False, "lease lease was renewed 15s ago")]


@pytest.mark.parametrize(
    ("times", "error"),
    [
        ({"duration": 10.0}, "renew deadline"),
        ({"duration": 0.0}, "lease duration"),
        ({"duration": 15.5}, "whole seconds"),
        ({"retry_period": 9.0}, "retry period"),
        ({"retry_period": 0.0}, "retry period"),
    ],
)
def test_times_with_which_two_could_lead_are_refused(times: dict[str, float], error: str):
    with pytest.raises(ValueError, match=error):
        LeaseConfig(namespace="ns", name="lease", identity="me", **times)


def test_a_follower_is_there_when_the_lease_runs_out():
    async def main() -> float:
        server = FakeApi()
        assert await elector(server, "dead")._try()
        loop = asyncio.get_running_loop()
        died, began = loop.time(), list[float]()

        async def work() -> None:
            began.append(loop.time())
            await forever()

        other = asyncio.ensure_future(elector(server, "second").run(work))
        await asyncio.sleep(60)
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        return began[0] - died

    assert 15 <= run(main()) < 15.2


def test_a_follower_that_may_read_the_lease_and_not_take_it_says_so_once_it_would_have_to():
    async def main() -> tuple[set[bool], set[bool]]:
        server = FakeApi()
        assert await elector(server, "dead")._try()

        class ReadOnly:
            def __getattr__(self, verb: str) -> Any:
                return getattr(server, verb)

            async def replace(self, *_: Any, **__: Any) -> Any:
                await asyncio.sleep(0.05)
                raise ApiError(403, "Forbidden", "leases may be read only")

        follower = elector(ReadOnly(), "second")  # type: ignore[arg-type]
        following = asyncio.ensure_future(follower.run(forever))

        async def seen(seconds: float) -> set[bool]:
            found = set[bool]()
            for _ in range(int(seconds * 100)):
                await asyncio.sleep(0.01)
                found.add(follower.in_touch)
            return found

        await asyncio.sleep(1)
        fresh = await seen(13)
        await asyncio.sleep(2)
        old = await seen(30)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return fresh, old

    assert run(main()) == ({True}, {False})


def test_what_the_leader_says_goes_with_its_renewals_and_stays():
    async def main() -> list[dict[str, str]]:
        server = FakeApi()
        found: list[dict[str, str]] = []

        def carried() -> None:
            metadata = server.objects[(LEASES, "ns", "lease")]["metadata"]
            found.append({**(metadata.get("annotations") or {})})

        first, second = elector(server, "first"), elector(server, "second", 2)
        leader = asyncio.ensure_future(first.run(forever))
        await asyncio.sleep(1)
        standby = asyncio.ensure_future(second.run(forever))
        second.say({"said": "by the second"})
        first.say({"said": "by the first"})
        carried()
        await asyncio.sleep(2.5)
        carried()
        await server.patch(LEASES, "lease", {"metadata": {"annotations": {"others": "kept"}}}, namespace="ns")
        await asyncio.sleep(5)
        first.say({"said": "anew"})
        await asyncio.sleep(2.5)
        carried()
        leader.cancel()
        await asyncio.gather(leader, return_exceptions=True)
        carried()
        await asyncio.sleep(10)
        assert holder(server) == "second"
        carried()
        standby.cancel()
        await asyncio.gather(standby, return_exceptions=True)
        return found

    assert run(main()) == [
        {},
        {"said": "by the first"},
        {"said": "anew", "others": "kept"},
        {"said": "anew", "others": "kept"},
        {"said": "by the second", "others": "kept"},
    ]


def test_the_lease_carries_what_fails_for_as_long_as_it_does():
    async def main() -> list[str | None]:
        server = FakeApi()
        leader = elector(server, "first")
        found: list[str | None] = []

        def carried() -> None:
            annotations = server.objects[(LEASES, "ns", "lease")]["metadata"].get("annotations") or {}
            found.append(annotations.get(FAILING_TASKS))

        task = asyncio.ensure_future(leader.run(forever))
        await asyncio.sleep(5)
        carried()
        leader.errors = lambda: "a task: RuntimeError: no luck"
        await asyncio.sleep(5)
        carried()
        leader.errors = lambda: ""
        await asyncio.sleep(5)
        carried()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    assert run(main()) == [None, "a task: RuntimeError: no luck", None]


def test_saying_something_costs_no_write():
    async def main(words: dict[str, str]) -> list[str]:
        server = FakeApi()
        leader = elector(server, "first")

        async def work() -> None:
            leader.say(words)
            await asyncio.sleep(30)

        await leader.run(work)
        return [verb for verb, _, _ in server.writes]

    assert run(main({"said": "something"})) == run(main({}))


@pytest.mark.parametrize("code", [400, 403, 413, 422])
def test_what_the_server_does_not_take_is_not_in_the_way(code: int):
    async def main() -> tuple[str, dict[str, str]]:
        server = FakeApi()

        class Strict:
            def __getattr__(self, verb: str) -> Any:
                return getattr(server, verb)

            async def replace(self, resource: Any, body: Any, **kwargs: Any) -> Any:
                if "too much" in (body["metadata"].get("annotations") or {}).values():
                    raise ApiError(code, "Refused", "too much")
                return await server.replace(resource, body, **kwargs)

        leader = elector(Strict(), "first")  # type: ignore[arg-type]
        task = asyncio.ensure_future(leader.run(forever))
        await asyncio.sleep(1)
        leader.say({"said": "little"})
        await asyncio.sleep(5)
        leader.say({"said": "too much"})
        await asyncio.sleep(60)
        assert not task.done(), "it leads on"
        found = holder(server), server.objects[(LEASES, "ns", "lease")]["metadata"]["annotations"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    assert run(main()) == ("first", {"said": "little"})


def test_a_lease_that_was_deleted_says_it_again():
    async def main() -> dict[str, str]:
        server = FakeApi()
        leader = elector(server, "first")
        task = asyncio.ensure_future(leader.run(forever))
        await asyncio.sleep(1)
        leader.say({"said": "something"})
        await asyncio.sleep(5)
        await server.delete(LEASES, "lease", namespace="ns")
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return server.objects[(LEASES, "ns", "lease")]["metadata"]["annotations"]

    assert run(main()) == {"said": "something"}


def test_work_that_fails_because_the_lease_ran_out_is_a_lost_lease():
    async def main() -> None:
        server = FakeApi()
        leader = elector(server, "first")

        async def work() -> None:
            # As after a process was frozen: what it waited for has failed before the keeper's timer is looked at.
            leader._renewed_at -= 60
            raise OSError("connection reset")

        with pytest.raises(LeadershipLostError, match="has run out") as lost:
            await leader.run(work)
        assert isinstance(lost.value.__cause__, OSError)
        assert holder(server) == "first", "what may be another's is not given back"

    run(main())


def test_a_lost_lease_isnt_held_up_by_work_that_doesnt_end():
    async def main() -> float:
        server = FakeApi()
        loop = asyncio.get_running_loop()
        leader = elector(server, "first")

        async def stubborn() -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(1000)

        task = asyncio.ensure_future(leader.run(stubborn))
        await asyncio.sleep(1)
        lease = server.objects[(LEASES, "ns", "lease")]
        await server.replace(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "second"}}, namespace="ns")
        leader._renewed_at -= 60
        began = loop.time()
        with pytest.raises(LeadershipLostError):
            await task
        return loop.time() - began

    assert run(main()) < 10
