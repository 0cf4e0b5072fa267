"""The policy in a ConfigMap of a real server: changed there, in force here, and what is wrong with it said there."""

from __future__ import annotations

from typing import Any

from tests.support.virtual_time import SeededRandom
from vcbatch.api.resources import CONFIGMAPS, EVENTS, NAMESPACES
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.policy_source import FollowedPolicy, PolicyConfigMap
from vcbatch.scheduler import parse_policy

GOOD = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]"


async def test_a_config_map_is_followed_on_a_server(server: EmbeddedServer):
    clock = SystemClock()
    recorder = Recorder(server.api, clock=clock, random=SeededRandom(1), component="volcano")
    source = PolicyConfigMap.parse(server.api, "ns/policy")
    followed = FollowedPolicy(source, parse_policy, clock=clock, recorder=recorder)
    await server.api.create(NAMESPACES, {"metadata": {"name": "ns"}})

    async def write(text: str) -> None:
        body: Any = {"metadata": {"name": "policy", "namespace": "ns"}, "data": {"volcano-scheduler.conf": text}}
        if followed.policy is None:
            await server.api.create(CONFIGMAPS, body, namespace="ns")
        else:
            await server.api.patch(CONFIGMAPS, "policy", {"data": body["data"]}, namespace="ns")
        await followed.refresh()

    await followed.refresh()
    assert followed.policy is None
    assert "not found" in followed.error
    await write(GOOD)
    assert followed.policy is not None
    assert followed.policy.actions == ("allocate",)
    await write(GOOD.replace("gang", "gagn"))
    assert followed.policy.actions == ("allocate",)
    await write(GOOD.replace("allocate", "enqueue"))
    assert followed.policy.actions == ("enqueue",)
    await recorder.flush()
    reported = [(e["involvedObject"]["name"], e["reason"]) for e in (await server.api.list(EVENTS)).items]
    assert sorted(reported) == [("policy", "PolicyApplied"), ("policy", "PolicyRefused")]
