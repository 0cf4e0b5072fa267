"""Scenarios as data: what is done to a cluster, what is waited for, and what must be true.

A scenario is a file of `cases/`; its name is the namespace that it plays in, on every backend.

    why:    what a user is promised, in a sentence
    shows:  [A.1-4, ask-20]    which of `promises.yaml` it shows
    nodes:  [{name: n1, cpu: "4", memory: 8Gi, labels: {}, taints: [], nvidia.com/gpu: "8"}]
            exactly these nodes, and the cluster for itself
    alone:  true    the cluster for itself, with one large node
    needs:  [patience]    what a backend has to offer, where the steps don't tell (`Capability`)
    policy: |             the scheduler's policy file; the cluster for itself
    never:  [condition]   none of these may hold at any moment, as watches saw it
    steps:  one key each naming what is done

Without `nodes` and `alone` a scenario shares its cluster with others that play at the same time; keep its pods small
and few. What it makes outside of its namespace (queues, priority classes) is always named after it: `SCENARIO` or
`SCENARIO-x`. Containers run for real on one of the backends: let them last 1 to 3 seconds, or until they are deleted,
and 8 seconds where others are submitted meanwhile, for which a busy machine takes some.

Doing

    job:       {name: a, minAvailable: 2, policies: [], tasks: {w: {replicas: 2, run: sleep 1; exit 3}}}
               a Job in short: keys are those of its spec, and of its tasks; `run` is a shell command, `requests` what
               each pod asks for, `pod` and `labels` and `annotations` go into the pod template. Anything else: `apply`.
    cronJob:   {name: c, schedule: "@every 2s", job: {tasks: {w: {run: sleep 1}}}}
               a CronJob in short: keys are those of its spec, and `job` is what it makes, as in `job`
    jobTemplate: {name: a, tasks: {w: {run: sleep 1}}}    a JobTemplate, written as a `job`
    flow:      {name: f, jobRetainPolicy: delete, jobs: {a: {}, b: {after: [a], patch: {queue: q}, probe: {}}}}
               a JobFlow in short: `jobs` are its entries by the names of their templates
    apply:     [objects]              create, or merge-patch what exists
    delete:    KIND/NAME
    patch:     KIND/NAME              with `body`: a merge patch, and `subresource` (status)
    jsonpatch: KIND/NAME              with `body`: the operations
    refused:   {apply: object, with: TEXT}, or {job: as above, with: TEXT}, or {cronJob: as above, with: TEXT},
               or {flow: as above, with: TEXT},
               or {patch: KIND/NAME, body:, with: TEXT}, or {delete: KIND/NAME, with: TEXT}
    command:   {job: NAME, action: ACTION} or {queue: NAME, action: ACTION} or {flow: NAME, action: ACTION}
               as `vcctl job suspend` and others do
    evict:     pods/NAME              as `kubectl drain` does
    ends:      pods/NAME              with {exit: 137, reason: OOMKilled, message:, pod: Evicted}: what a kubelet would
               write of a pod that otherwise runs until it is deleted; `pod` is the status's own reason
    hold:      KIND/NAME              by a finalizer: it can be deleted, and isn't gone before `release: KIND/NAME`
    node:      {name: n3, cpu: "4"}   one more, written as in `nodes`
    cordon:    NODE                   and `uncordon`, `unready`, `ready`; `lose: NODE` deletes the Node and its pods
    restart:   controllers | scheduler     kill that part wherever it is, and start it again, `after: 10` seconds
    clock:     seconds                the wall clock jumps by so much (also back) while no time passes
    sleep:     seconds                let so much time pass

Watching

    until:     condition              wait (at most `timeout: 60` seconds) until it holds
    expect:    condition              it holds now
    saw:       {get: KIND/NAME, path: P, is: [values]}    all values that were ever seen there, in order;
                                      `includes` instead of `is`: these in this order, with others between;
                                      `at_most: N`: no more than so many
    event:     {on: Job/a, reason: R, type: Warning, contains: TEXT, count: 2}    waits for it (at most `timeout: 60`
               seconds); `absent: true` for none
               so far; `count` sums up repetitions, and without it one is enough
    settles:   seconds                nothing in the namespace changes for so long (within `timeout: 60`)

A condition is {get: KIND/NAME, path: P, and one or more checks}. A `*` in NAME takes the first that matches; without
NAME it is about the list of all, which `where: {path: value}` and `labels: {key: value}` narrow down. Checks:

    is: value, or [one of these]      equals: value (for lists)      contains: TEXT
    absent: true                      gone, or nothing at that path
    count: N, at_least: N, at_most: N of a list       names: [exactly these, in any order]
    each: {path: value}               every one of a list that isn't empty
    differ: path                      not all of the list have the same there

Paths are `a.b[0].c`, `[key=value]` for the first element that has it, `[*]` for all, `[example.com/key]` for a key with
dots. Values with several alternatives are lists, also in `where` and `each`; null is what isn't there.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.scenarios import deeds
from tests.scenarios.conditions import Condition, ScenarioFailed, as_list, dig
from tests.scenarios.history import History
from vcbatch.api.resources import EVENTS
from vcbatch.interfaces import Api

Json = dict[str, Any]

CASES = Path(__file__).parent / "cases"
_PATIENCE_SECONDS = 60.0
_EVENT_SECONDS = 60.0
_OF_WHAT_WAS_SEEN = frozenset({"is", "includes", "at_most"})
_LONELY = frozenset({"node", "cordon", "unready", "lose", "restart", "clock"})


class Capability(StrEnum):
    """What a backend may lack. A scenario that needs one isn't played there, and the report says why."""

    CLOCK = "clock"
    """The wall clock can be moved."""
    RESTART = "restart"
    """One part can be killed while the others go on."""
    PATIENCE = "patience"
    """Minutes cost nothing."""
    PRETENDED = "pretended"
    """Nobody but the scenario writes what became of a container."""
    SOCKETS = "sockets"
    """The pods answer at the ports that their commands listen at."""
    KUBERNETES = "kubernetes"
    """Kubernetes' own controllers, admission plugins and scheduler run: those of Deployments, Jobs, RuntimeClasses."""


class World(Protocol):
    """A running control plane: embedded under virtual time, embedded as a process, or a real kube-apiserver."""

    api: Api
    namespace: str
    history: History

    async def pass_time(self, seconds: float) -> None: ...

    async def restart(self, part: str, *, after: float = 0.0) -> None: ...

    def jump(self, seconds: float) -> None: ...

    def now(self) -> datetime: ...

    async def evict(self, pod: str) -> None: ...


_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):
    """YAML 1.2's booleans: `on`, `yes` and `no` are words."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in _Parser.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    steps: Sequence[Json]
    nodes: Sequence[Json] = ()
    policy: str = ""
    why: str = ""
    group: str = ""
    digest: str = ""
    apart: bool = False
    declared: frozenset[Capability] = frozenset()
    never: Sequence[Json] = field(default_factory=tuple)
    shows: Sequence[str] = ()

    @classmethod
    def load(cls, path: Path) -> Scenario:
        text = path.read_text(encoding="utf-8")
        data = yaml.load(text, _Loader)
        group = "" if path.parent == CASES else path.parent.name
        unknown = data.keys() - {"why", "shows", "nodes", "policy", "alone", "needs", "never", "steps"}
        if unknown or not data.get("why") or not data.get("steps"):
            raise ScenarioFailed(f"{path.name}: a scenario has why and steps, and not {sorted(unknown)}")
        return cls(
            name=path.stem, steps=data["steps"], nodes=data.get("nodes", ()), why=data["why"],
            policy=data.get("policy", ""),
            group=group, digest=hashlib.sha256(text.encode()).hexdigest()[:16],
            apart=bool(data.get("alone")), declared=frozenset(map(Capability, data.get("needs", ()))),
            never=data.get("never", ()), shows=tuple(data.get("shows", ())),
        )  # fmt: skip

    @property
    def title(self) -> str:
        return f"{self.group}/{self.name}" if self.group else self.name

    @property
    def needs(self) -> frozenset[Capability]:
        """What was declared, and what the steps need."""
        found = set(self.declared)
        for step in self.steps:
            if "clock" in step:
                found.add(Capability.CLOCK)
            if "restart" in step:
                found.add(Capability.RESTART)
            if "ends" in step:
                found.add(Capability.PRETENDED)
        return frozenset(found)

    @property
    def alone(self) -> bool:
        """Whether it must have the cluster for itself."""
        return bool(self.apart or self.nodes or self.policy or any(step.keys() & _LONELY for step in self.steps))


@cache
def scenarios() -> Sequence[Scenario]:
    """All there are, by name; a name is used once, since it is a namespace. Read once per process."""
    found = [Scenario.load(path) for path in sorted(CASES.rglob("*.yaml"))]
    names = [scenario.name for scenario in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ScenarioFailed(f"names of more than one scenario: {sorted(twice)}")
    return tuple(found)


async def play(scenario: Scenario, world: World) -> None:
    """Do every step; raises `ScenarioFailed` at the first that doesn't come out as it says.

    The world gets a copy: a scenario is read once per process and played by several tests.
    """
    scenario = copy.deepcopy(scenario)
    async with _tidied(scenario, world) as owned:
        for number, step in enumerate(scenario.steps, start=1):
            try:
                await _step(step, world, owned)
                world.history.check()
            except ScenarioFailed as failure:
                raise ScenarioFailed(f"{scenario.title}, step {number}: {failure}") from None


@asynccontextmanager
async def _tidied(scenario: Scenario, world: World) -> AsyncIterator[deeds.Owned]:
    owned = deeds.Owned(scenario=scenario.name, nodes=scenario.alone)
    world.history.forbid(scenario.never)
    try:
        yield owned
    finally:
        await owned.remove(world)


async def _step(step: Json, world: World, owned: deeds.Owned) -> None:
    timeout = float(step.get("timeout", 60))
    match step:
        case {"until": condition}:
            await _until(Condition(condition), world, timeout)
        case {"expect": condition}:
            wanted = Condition(condition)
            if trouble := wanted.unmet(await wanted.read(world)):
                raise ScenarioFailed(trouble)
        case {"saw": wanted}:
            await _saw(wanted, world)
        case {"event": wanted}:
            await _event(wanted, world, float(step.get("timeout", _EVENT_SECONDS)))
        case {"settles": seconds}:
            await _settles(float(seconds), world, timeout)
        case {"sleep": seconds}:
            await world.pass_time(float(seconds))
        case {"clock": seconds}:
            world.jump(float(seconds))
        case {"restart": part}:
            await world.restart(part, after=float(step.get("after", 0)))
        case _:
            if not await deeds.do(step, world, owned):
                raise ScenarioFailed(f"no such step: {step}")


async def _until(condition: Condition, world: World, timeout: float) -> None:
    seen: list[Any] = []

    async def check() -> str:
        value = await condition.check(world)
        found = dig(value, condition.path) if isinstance(value, Mapping) else None
        if found is not None and (not seen or seen[-1] != found):
            seen.append(found)
        return condition.unmet(value)

    try:
        await _wait(check, world, timeout)
    except ScenarioFailed as failure:
        raise ScenarioFailed(f"{failure}; saw {str(seen)[-600:]}") from None


async def _saw(wanted: Json, world: World) -> None:
    if len(wanted.keys() & _OF_WHAT_WAS_SEEN) != 1 or wanted.keys() - {"get", "path", *_OF_WHAT_WAS_SEEN}:
        raise ScenarioFailed(
            f"{wanted}: what was seen has get, path, and one of {', '.join(sorted(_OF_WHAT_WAS_SEEN))}"
        )

    def check() -> str:
        values = world.history.values(wanted["get"], wanted.get("path", ""))
        if "includes" in wanted:
            rest = iter(values)
            met = all(any(value == each for each in rest) for value in wanted["includes"])
        elif "at_most" in wanted:
            met = 0 < len(values) <= wanted["at_most"]
        else:
            met = values == as_list(wanted["is"])
        return "" if met else f"{wanted['get']} {wanted.get('path', '')} had the values {values}, not {wanted}"

    await _wait(check, world, _PATIENCE_SECONDS)


async def _event(wanted: Json, world: World, timeout: float) -> None:
    unknown = wanted.keys() - {"on", "reason", "type", "contains", "count", "absent"}
    if unknown or "on" not in wanted:
        raise ScenarioFailed(f"an event has on, reason, type, contains, count, absent; not {sorted(unknown)}")
    kind, _, name = wanted["on"].partition("/")
    place = world.namespace if kind not in ("Queue", "Node") else "default"

    async def check() -> str:
        items: Sequence[Json] = (await world.api.list(EVENTS, namespace=place)).items
        about = [
            event for event in items
            if event["involvedObject"].get("kind") == kind and _matches(name, event["involvedObject"].get("name", ""))
        ]  # fmt: skip
        found = [
            event for event in about
            if event.get("reason") == wanted.get("reason", event.get("reason"))
            and event.get("type") == wanted.get("type", event.get("type"))
            and wanted.get("contains", "") in (event.get("message") or event.get("note") or "")
        ]  # fmt: skip
        times = sum(_repetitions(event) for event in found)
        expected = 0 if wanted.get("absent") else wanted.get("count")
        if times == expected or (expected is None and times):
            return ""
        return f"{times} events are {wanted}; on {wanted['on']} there are {[_reported(event) for event in about]}"

    if wanted.get("absent"):
        if trouble := await check():
            raise ScenarioFailed(trouble)
        return
    await _wait(check, world, timeout, often=0.2)


def _reported(event: Json) -> str:
    return f"{_repetitions(event)}x {event.get('type')} {event.get('reason')}: {event.get('message')}"


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _repetitions(event: Json) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


async def _settles(seconds: float, world: World, timeout: float) -> None:
    waited = 0.0
    while (quiet := world.history.quiet()) < seconds:
        if waited >= timeout:
            raise ScenarioFailed(f"something changes all the time: {world.history.latest(5)}")
        pause = max(seconds - quiet, 0.01)  # or rounding would leave a rest too small for a clock
        await world.pass_time(pause)
        waited += pause


async def _wait(check: Any, world: World, timeout: float, *, often: float = 1.0) -> None:
    """Until `check` has nothing to complain of: asked again after every change, and every `often` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    while True:
        change = world.history.next_change()
        trouble = check()
        if not isinstance(trouble, str):
            trouble = await trouble
        if not trouble:
            return
        world.history.check()
        left = end - loop.time()
        if left <= 0:
            raise ScenarioFailed(f"not within {timeout:.0f} s: {trouble}")
        await asyncio.wait({change}, timeout=min(left, often))
        await world.pass_time(0)
