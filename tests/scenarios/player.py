"""Scenarios as data: what is done to a cluster, what is waited for, and what must be true in the end.

A scenario is a list of steps, one key naming what is done:

    apply:     [objects]              create, or merge-patch what exists
    delete:    KIND/NAME
    jsonpatch: KIND/NAME              with `body`: the operations
    until:     {get, path, is}        wait (at most `timeout` seconds) until the path has one of these values
    sleep:     seconds                let so much time pass
    expect:    {get, path, is}        now; `count: N` counts a list, `contains: TEXT` looks into a text,
                                      `absent: true` means that the object is gone
    refused:   {apply: object, with: TEXT}
    command:   {job: NAME, action: ACTION}    as `vcctl job suspend` and its like send it
    restart:   controllers | scheduler     kill that part wherever it is, and start it again
    clock:     seconds                the wall clock jumps by so much (also back) while no time passes

KIND/NAME is `jobs.batch.volcano.sh/a` or `pods/x`; a `*` in NAME takes the first that matches; KIND alone is a list.
The first steps are in the format of the recordings in the conformance data, so that those play here too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from vcbatch.api import resources
from vcbatch.api.resources import Resource
from vcbatch.seams import Api, ApiError, PatchKind

Json = dict[str, Any]

_ALL = [value for value in vars(resources).values() if isinstance(value, Resource)]
BY_NAME = {(f"{r.plural}.{r.group}" if r.group else r.plural): r for r in _ALL}
BY_NAME |= {"pod": resources.PODS, "node": resources.NODES}
BY_KIND = {(r.api_version, r.kind): r for r in _ALL}


class World(Protocol):
    """A running control plane: embedded under virtual time, embedded as a process, or a real kube-apiserver."""

    api: Api
    namespace: str

    async def pass_time(self, seconds: float) -> None: ...

    async def restart(self, part: str) -> None: ...

    def jump(self, seconds: float) -> None: ...


class ScenarioFailed(AssertionError):
    """A step whose outcome is another than the scenario says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    steps: Sequence[Json]
    nodes: Sequence[Json] = ()
    why: str = ""

    @classmethod
    def load(cls, path: Path) -> Scenario:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return cls(name=path.stem, steps=data["steps"], nodes=data.get("nodes", ()), why=data.get("why", ""))


@dataclass(frozen=True, slots=True)
class Seen:
    """What an `until` saw, in the order in which the values appeared."""

    values: list[Any] = field(default_factory=list)
    reached: bool = False


async def play(scenario: Scenario, world: World) -> list[Seen]:
    """Do every step; raises `ScenarioFailed` at the first that doesn't come out as it says."""
    seen: list[Seen] = []
    for number, step in enumerate(scenario.steps, start=1):
        try:
            if (outcome := await _step(step, world)) is not None:
                seen.append(outcome)
        except ScenarioFailed as failure:
            raise ScenarioFailed(f"{scenario.name}, step {number}: {failure}") from None
    return seen


async def _step(step: Json, world: World) -> Seen | None:
    match step:
        case {"apply": objects}:
            for body in objects:
                await _apply(body, world)
        case {"delete": target}:
            resource, name = _target(target)
            await world.api.delete(resource, name, namespace=_namespace(resource, world))
        case {"jsonpatch": target, "body": operations}:
            resource, name = _target(target)
            namespace = _namespace(resource, world)
            await world.api.patch(resource, name, operations, namespace=namespace, kind=PatchKind.JSON)
        case {"until": condition}:
            return await _until(condition, world, timeout=float(step.get("timeout", 60)))
        case {"sleep": seconds}:
            await world.pass_time(float(seconds))
        case {"expect": condition}:
            _check(condition, await _read(condition["get"], world))
        case {"refused": {"apply": body, "with": text}}:
            await _refused(body, text, world)
        case {"command": {"job": name, "action": action}}:
            await _command(name, action, world)
        case {"clock": seconds}:
            world.jump(float(seconds))
        case {"restart": part}:
            await world.restart(part)
        case _:
            raise ScenarioFailed(f"no such step: {step}")
    return None


async def _apply(body: Json, world: World) -> None:
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    namespace = _namespace(resource, world)
    try:
        await world.api.create(resource, body, namespace=namespace)
    except ApiError as error:
        if not error.already_exists:
            raise ScenarioFailed(f"apply {body['kind']}/{body['metadata']['name']}: {error.message}") from None
        await world.api.patch(resource, body["metadata"]["name"], body, namespace=namespace)


async def _refused(body: Json, text: str, world: World) -> None:
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    try:
        await world.api.create(resource, body, namespace=_namespace(resource, world))
    except ApiError as error:
        if text not in error.message:
            raise ScenarioFailed(f"refused with {error.message!r}, which doesn't say {text!r}") from None
        return
    raise ScenarioFailed(f"{body['kind']}/{body['metadata']['name']} was accepted")


async def _command(name: str, action: str, world: World) -> None:
    job = await world.api.get(resources.JOBS, name, namespace=world.namespace)
    target = {"apiVersion": job["apiVersion"], "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
    body = {
        "apiVersion": resources.COMMANDS.api_version,
        "kind": resources.COMMANDS.kind,
        "metadata": {"generateName": f"{name}-", "ownerReferences": [{**target, "controller": True}]},
        "action": action,
        "target": target,
    }
    await world.api.create(resources.COMMANDS, body, namespace=world.namespace)


async def _until(condition: Json, world: World, *, timeout: float) -> Seen:
    seen: list[Any] = []
    waited = 0.0
    while True:
        value = await _value(condition, world)
        if value is not None and (not seen or seen[-1] != value):
            seen.append(value)
        if value in condition["is"]:
            return Seen(seen, True)
        if waited >= timeout:
            raise ScenarioFailed(f"{condition} not reached in {timeout:.0f} s; saw {seen}")
        await world.pass_time(0.05)
        waited += 0.05


async def _value(condition: Json, world: World) -> Any:
    try:
        return _dig(await _read(condition["get"], world), condition.get("path", ""))
    except ApiError as error:
        if error.not_found:
            return None
        raise


async def _read(target: str, world: World) -> Any:
    resource, name = _target(target)
    namespace = _namespace(resource, world)
    if not name:
        return list((await world.api.list(resource, namespace=namespace)).items)
    if "*" not in name:
        try:
            return await world.api.get(resource, name, namespace=namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise
    pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
    found = (await world.api.list(resource, namespace=namespace)).items
    matching = [item for item in found if pattern.fullmatch(item["metadata"]["name"])]
    return matching[0] if matching else None


_CHECKS = frozenset({"is", "count", "contains", "absent"})


def _check(condition: Json, value: Any) -> None:
    unknown = condition.keys() - _CHECKS - {"get", "path"}
    if unknown or not condition.keys() & _CHECKS:
        raise ScenarioFailed(f"{condition} expects nothing that can fail; known: {', '.join(sorted(_CHECKS))}")
    if condition.get("absent"):
        if value is not None:
            raise ScenarioFailed(f"{condition['get']} is still there")
        return
    if value is None:
        raise ScenarioFailed(f"{condition['get']} isn't there")
    found = _dig(value, condition.get("path", ""))
    if "count" in condition and len(found or []) != condition["count"]:
        names = [item["metadata"]["name"] for item in found or [] if isinstance(item, dict) and "metadata" in item]
        raise ScenarioFailed(f"{condition['get']} has {len(found or [])} {names}, not {condition['count']}")
    if "is" in condition and found not in _as_list(condition["is"]):
        raise ScenarioFailed(f"{condition['get']} {condition.get('path', '')} is {found!r}, not {condition['is']!r}")
    if "contains" in condition and condition["contains"] not in str(found):
        raise ScenarioFailed(
            f"{condition['get']} {condition.get('path', '')} is {found!r}: no {condition['contains']!r}"
        )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _dig(value: Any, path: str) -> Any:
    """`a.b[0].c`; `[key=value]` picks the first element that has it."""
    for part in re.findall(r"[^.\[\]]+(?:\\\.[^.\[\]]+)*|\[[^\]]*\]", path):
        if value is None:
            return None
        if part.startswith("[") and "=" in part:
            key, _, wanted = part[1:-1].partition("=")
            value = next((item for item in value if str(item.get(key)) == wanted), None)
        elif part.startswith("["):
            index = int(part[1:-1])
            value = value[index] if -len(value) <= index < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _target(text: str) -> tuple[Resource, str]:
    kind, _, name = text.partition("/")
    if kind not in BY_NAME:
        raise ScenarioFailed(f"no such kind: {kind} (known: {', '.join(sorted(BY_NAME))})")
    return BY_NAME[kind], name


def _namespace(resource: Resource, world: World) -> str | None:
    return world.namespace if resource.namespaced else None
