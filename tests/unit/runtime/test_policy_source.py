"""The policy followed: what works is in force within three seconds, what doesn't is told once and changes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import CONFIGMAPS, EVENTS, LEASES
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.policy_source import FollowedPolicy, PolicyConfigMap, PolicyFile
from vcbatch.scheduler import Policy, parse_policy

GOOD = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]"
OTHER = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}]}]"
BAD = "actions: allocate\ntiers: [{plugins: [{name: gagn}]}]"


class Followed:
    """A policy that is followed, and what comes of it."""

    def __init__(self, server: FakeApi, source: Any) -> None:
        self.server = server
        self.meter = PrometheusMeter()
        self.taken: list[Policy] = []
        clock = VirtualClock()
        self.recorder = Recorder(server, clock=clock, random=SeededRandom(1), component="volcano")
        self.policy = FollowedPolicy(source, parse_policy, clock=clock, recorder=self.recorder, meter=self.meter)

    async def run(self) -> None:
        self.taken.append(await self.policy.first())
        await self.policy.follow(self.taken.append)

    async def events(self) -> list[tuple[str, str, str]]:
        await self.recorder.flush()
        found = self.server.all(EVENTS)
        return [(e["involvedObject"]["kind"], e["type"], e["reason"]) for e in found]

    def metric(self, name: str, **labels: str) -> float | None:
        return self.meter.registry.get_sample_value(f"vcbatch_{name}", labels)


def following(source: Any, script: Any, *, server: FakeApi) -> None:
    async def main() -> None:
        followed = Followed(server, source)
        task = asyncio.ensure_future(followed.run())
        try:
            await asyncio.sleep(0.1)
            await script(followed)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(main())


def config_map(server: FakeApi, text: str) -> None:
    if (CONFIGMAPS, "ns", "conf") in server.objects:
        server.remove(CONFIGMAPS, "conf", "ns")
    server.seed(CONFIGMAPS, {"metadata": {"name": "conf", "namespace": "ns"}, "data": {"volcano-scheduler.conf": text}})


def test_a_config_map_is_in_force_within_three_seconds_and_a_bad_one_leaves_the_last_good():
    server = FakeApi()
    config_map(server, GOOD)

    async def script(followed: Followed) -> None:
        assert [p.actions for p in followed.taken] == [("allocate",)]
        config_map(server, OTHER)
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("enqueue", "allocate")
        config_map(server, BAD)
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("enqueue", "allocate")
        assert "line 2, column 27: policy.tiers[0].plugins[0].name: unknown plugin 'gagn'" in followed.policy.error
        assert followed.metric("config_last_reload_successful") == 0
        await asyncio.sleep(60)
        assert followed.metric("config_reloads_total", result="refused") == 1, "told once"
        assert await followed.events() == [
            ("ConfigMap", "Normal", "PolicyApplied"),
            ("ConfigMap", "Warning", "PolicyRefused"),
        ]
        [refused] = [e for e in server.all(EVENTS) if e["reason"] == "PolicyRefused"]
        assert refused["message"].startswith("keeping the last valid configuration: ConfigMap ns/conf: line 2")
        config_map(server, GOOD)
        await asyncio.sleep(3)
        assert (followed.policy.error, followed.metric("config_last_reload_successful")) == ("", 1)
        assert followed.taken[-1].actions == ("allocate",)

    following(PolicyConfigMap.parse(server, "ns/conf"), script, server=server)


def test_nothing_is_scheduled_by_a_policy_that_nobody_asked_for():
    server = FakeApi()

    async def script(followed: Followed) -> None:
        assert followed.taken == []
        assert followed.policy.error.startswith("ConfigMap ns/conf: ")
        config_map(server, BAD)
        await asyncio.sleep(3)
        assert followed.taken == []
        [event] = await followed.events()
        assert event == ("ConfigMap", "Warning", "PolicyRefused")
        config_map(server, GOOD)
        await asyncio.sleep(3)
        assert [p.actions for p in followed.taken] == [("allocate",)]

    following(PolicyConfigMap.parse(server, "ns/conf"), script, server=server)


def test_a_file_is_followed_and_what_is_wrong_with_it_said_on_the_lease(tmp_path: Path):
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    server = FakeApi()
    server.seed(LEASES, {"metadata": {"name": "vcbatch-scheduler", "namespace": "ns"}})
    own = OwnObject(server, LEASES, "ns", "vcbatch-scheduler")

    async def script(followed: Followed) -> None:
        path.write_text(OTHER)
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("enqueue", "allocate")
        path.unlink()
        await asyncio.sleep(10)
        assert followed.policy.error == f"{path}: No such file or directory"
        path.write_bytes(b"\xff")
        await asyncio.sleep(3)
        assert "not UTF-8" in followed.policy.error
        path.write_text(OTHER)
        await asyncio.sleep(3)
        assert followed.policy.error == ""
        assert [kind for kind, _, _ in await followed.events()] == ["Lease"] * 3
        counts = [(event["reason"], event["count"]) for event in server.all(EVENTS)]
        assert counts == [("PolicyApplied", 2), ("PolicyRefused", 1), ("PolicyRefused", 1)]

    following(PolicyFile(path, own=own), script, server=server)


@pytest.mark.parametrize(
    ("data", "key", "said"),
    [
        ({"a": GOOD}, "", ""),
        ({"a": GOOD, "volcano-scheduler.conf": GOOD}, "", ""),
        ({"a": GOOD, "b": GOOD}, "", "has no key 'volcano-scheduler.conf'; its keys: a, b"),
        ({"a": GOOD, "b": BAD}, ":a", ""),
        ({"a": GOOD}, ":b", "has no key 'b'; its keys: a"),
        (None, "", "has no key 'volcano-scheduler.conf'; its keys: none"),
    ],
)
def test_the_key_of_a_config_map(data: Any, key: str, said: str):
    server = FakeApi()
    server.seed(CONFIGMAPS, {"metadata": {"name": "conf", "namespace": "ns"}, "data": data})

    async def script(followed: Followed) -> None:
        assert followed.policy.error.endswith(said) if said else followed.policy.error == ""
        assert bool(followed.taken) is not bool(said)

    following(PolicyConfigMap.parse(server, f"ns/conf{key}"), script, server=server)


@pytest.mark.parametrize("text", ["conf", "/conf", "ns/", "ns/conf/x", "ns/conf:"])
def test_what_names_no_config_map_is_refused(text: str):
    with pytest.raises(ValueError, match="is not of the form"):
        PolicyConfigMap.parse(FakeApi(), text)


def test_a_file_is_followed_however_it_is_replaced(tmp_path: Path):
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)

    async def script(followed: Followed) -> None:
        (tmp_path / "new").write_text(OTHER)
        (tmp_path / "new").rename(path)
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("enqueue", "allocate"), "renamed into its place, as editors do"
        for name, text in (("..1", GOOD), ("..2", OTHER)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "policy.yaml").write_text(text)
        data = tmp_path / "..data"
        data.symlink_to("..1")
        path.unlink()
        path.symlink_to("..data/policy.yaml")
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("allocate",)
        (tmp_path / "..tmp").symlink_to("..2")
        (tmp_path / "..tmp").rename(data)
        await asyncio.sleep(3)
        assert followed.taken[-1].actions == ("enqueue", "allocate"), "a mounted ConfigMap: a link that moves"
        assert followed.metric("config_reloads_total", result="refused") == 0

    following(PolicyFile(path), script, server=FakeApi())


def test_a_config_map_that_goes_leaves_the_last_good_and_may_come_back_as_it_was():
    server = FakeApi()
    config_map(server, GOOD)

    async def script(followed: Followed) -> None:
        server.remove(CONFIGMAPS, "conf", "ns")
        await asyncio.sleep(3)
        assert followed.policy.error.startswith("ConfigMap ns/conf: ")
        assert (followed.metric("config_last_reload_successful"), len(followed.taken)) == (0, 1)
        config_map(server, GOOD)
        await asyncio.sleep(3)
        assert (followed.policy.error, followed.metric("config_last_reload_successful")) == ("", 1)

    following(PolicyConfigMap.parse(server, "ns/conf"), script, server=server)
