"""Where scenarios play for real: in one program on this machine, or on a Kubernetes control plane.

Under virtual time each has a world of its own (`simulated`). Here they share: those that don't mind play at the same
time, each in its namespace; those that need the cluster for themselves follow one after another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tests.scenarios.conditions import ScenarioFailed
from tests.scenarios.deeds import node
from tests.scenarios.history import History, Observer
from tests.scenarios.player import Capability, Scenario, play
from tests.scenarios.report import Outcome
from vcbatch.api.resources import EVENTS, JOBS, NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.interfaces import ApiError
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY

Json = dict[str, Any]

_OWN_QUEUES = frozenset({"root", "default"})
_KINDS = (JOBS, PODGROUPS, PODS, NODES, QUEUES)
_LARGE = {"name": "large", "cpu": "64", "memory": "256Gi"}
_CLEAN_SECONDS = 180.0


class Machinery(Protocol):
    """What runs the control plane that the scenarios talk to."""

    kubeconfig: Path

    def kill(self, part: str) -> None:
        """SIGKILL."""
        ...

    def start_again(self, part: str) -> None:
        """What was killed; returns once the part works."""
        ...

    def decide_by(self, policy: str) -> None:
        """Run the scheduler with this policy file, and no other; returns once it works."""
        ...


class LiveWorld:
    """Implements `player.World` on a running control plane."""

    def __init__(self, api: HttpApi, namespace: str, history: History, machinery: Machinery) -> None:
        self.api = api
        self.namespace = namespace
        self.history = history
        self._machinery = machinery

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def restart(self, part: str, *, after: float = 0.0) -> None:
        await asyncio.to_thread(self._machinery.kill, part)
        await self.pass_time(after)
        await asyncio.to_thread(self._machinery.start_again, part)
        # Where the server went down too, connections from before are dead.
        await self.api.close()

    def jump(self, seconds: float) -> None:
        raise ScenarioFailed("the clock of a real machine stays as it is")

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def evict(self, pod: str) -> None:
        resource = Resource(group="", version="v1", plural=f"pods/{pod}/eviction", kind="Eviction")
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        await self.api.create(resource, body, namespace=self.namespace)


@dataclass(kw_only=True)
class Stage:
    """One control plane and what is played on it."""

    machinery: Machinery
    at_once: int
    makes_node: bool = True
    """Whether those that play together need a node made for them."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    _policy: str = DEFAULT_POLICY

    async def play(self, together: Sequence[Scenario], alone: Iterator[Scenario]) -> dict[str, Outcome]:
        """Play them all, and what failed once more; nothing that fails keeps the others from playing. Several stages
        may share out what is to be played alone."""
        async with self._client() as watching, self._client() as api, Observer(watching) as observer:
            room = asyncio.Semaphore(self.at_once)

            async def one(scenario: Scenario) -> None:
                async with room:
                    await self._outcome(scenario, lambda: self._play(scenario, api, observer))

            if together and self.makes_node:
                await api.create(NODES, node(_LARGE, datetime.now(UTC)))
            await asyncio.gather(*map(one, together))
            for scenario in together:
                await self._once_more(scenario, partial(self._play, scenario, api, observer), api)
            for scenario in alone:
                played = partial(self._play_alone, scenario, api, observer)
                await self._outcome(scenario, played)
                await self._once_more(scenario, played, api)
        return self.outcomes

    def _client(self) -> HttpApi:
        return HttpApi(load(self.machinery.kubeconfig), clock=SystemClock(), random=SystemRandom())

    async def _once_more(self, scenario: Scenario, played: Callable[[], Awaitable[None]], api: HttpApi) -> None:
        """Where it failed, play it again as soon as nothing of it is left."""
        first = self.outcomes[scenario.name].failure
        if not first:
            return
        try:
            await _gone(api, scenario.name)
        except (ApiError, ScenarioFailed):
            return
        await self._outcome(scenario, played)
        self.outcomes[scenario.name] = replace(self.outcomes[scenario.name], first_failure=first)

    async def _outcome(self, scenario: Scenario, played: Callable[[], Awaitable[None]]) -> None:
        began = time.monotonic()
        failure = ""
        try:
            await played()
        except ScenarioFailed as trouble:
            failure = str(trouble)
        except (ApiError, AssertionError, OSError, TimeoutError) as trouble:
            failure = f"{scenario.title}: {type(trouble).__name__}: {trouble}"
        self.outcomes[scenario.name] = Outcome(failure=failure, seconds=time.monotonic() - began)

    async def _play(self, scenario: Scenario, api: HttpApi, observer: Observer) -> None:
        await api.create(NAMESPACES, {"metadata": {"name": scenario.name}})
        history = observer.history(scenario.name)
        try:
            await play(scenario, LiveWorld(api, scenario.name, history, self.machinery))
        except ScenarioFailed as failure:
            raise ScenarioFailed(f"{failure}\n  phases {history.phases()}\n  {await _events(api, scenario)}") from None
        finally:
            await api.delete(NAMESPACES, scenario.name)

    async def _play_alone(self, scenario: Scenario, api: HttpApi, observer: Observer) -> None:
        await _clear(api)
        await self._decide_by(scenario.policy or DEFAULT_POLICY, api)
        for short in scenario.nodes or [_LARGE]:
            await api.create(NODES, node(short, datetime.now(UTC)))
        await self._play(scenario, api, observer)

    async def _decide_by(self, policy: str, api: HttpApi) -> None:
        if policy != self._policy:
            await asyncio.to_thread(self.machinery.decide_by, policy)
            self._policy = policy
            # Where the server went down too, connections from before are dead.
            await api.close()


async def _events(api: HttpApi, scenario: Scenario) -> str:
    """What the events of the namespace say, in brief."""
    reported = [
        f"{event['involvedObject'].get('kind')}/{event['involvedObject'].get('name')} {event.get('reason')}: "
        f"{event.get('message')}"
        for event in (await api.list(EVENTS, namespace=scenario.name)).items
        if event["involvedObject"].get("kind") != "Pod"
    ]
    return "events " + "; ".join(reported)[:1500]


async def _gone(api: HttpApi, namespace: str) -> None:
    """Return once there is no such namespace any more."""
    end = time.monotonic() + _CLEAN_SECONDS
    while any(item["metadata"]["name"] == namespace for item in (await api.list(NAMESPACES)).items):
        if time.monotonic() > end:
            raise ScenarioFailed(f"the namespace {namespace} isn't empty yet")
        await asyncio.sleep(0.1)


async def _clear(api: HttpApi) -> None:
    """Nothing of another scenario is left: no pods, no nodes, no queues."""
    end = time.monotonic() + _CLEAN_SECONDS
    while left := await _left(api):
        # Nodes go last: whoever pretends to be their kubelet ends their pods. Queues stay that a scenario couldn't
        # remove in time: they are refused their deletion while groups are in them.
        going = {QUEUES} if any(resource == PODS for resource, _ in left) else {QUEUES, NODES}
        for resource, item in left:
            if resource in going:
                await _delete_quietly(api, resource, item)
        if time.monotonic() > end:
            raise ScenarioFailed(f"left of others: {[(r.plural, i['metadata']['name']) for r, i in left]}")
        await asyncio.sleep(0.1)


async def _left(api: HttpApi) -> list[tuple[Resource, Json]]:
    found = [(resource, item) for resource in _KINDS for item in (await api.list(resource)).items]
    return [each for each in found if each[0] != QUEUES or each[1]["metadata"]["name"] not in _OWN_QUEUES]


async def _delete_quietly(api: HttpApi, resource: Resource, item: Json) -> None:
    try:
        await api.delete(resource, item["metadata"]["name"], namespace=item["metadata"].get("namespace"))
    except ApiError as error:
        if not error.not_found and resource != QUEUES:
            raise


def in_turn(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """Those with the same policy one after the other, since another one takes a new scheduler."""
    return iter(sorted(scenarios, key=lambda scenario: scenario.policy))


def missing(scenario: Scenario, lacks: Mapping[Capability, str]) -> str:
    """Why the scenario can't play where these are lacking; empty where it can."""
    return "; ".join(lacks[need] for need in sorted(scenario.needs) if need in lacks)
