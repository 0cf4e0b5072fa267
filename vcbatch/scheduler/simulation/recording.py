"""Objects and cycles as lines of JSON: the inputs and the decisions of a scheduler, for an exact replay.

The first line describes the file; then come the objects, and after them, if cycles were recorded, all inputs of the
scheduler in order, each cycle with its time and the digest of its decisions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import msgspec

from vcbatch.api.names import DEFAULT_SCHEDULER, LAST_APPLIED
from vcbatch.api.resources import Resource
from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.framework.policy import BUILT_IN, Extensions, Policy
from vcbatch.scheduler.model.reads import MEASURED, READS, Read
from vcbatch.scheduler.model.result import CycleResult
from vcbatch.scheduler.model.share import ShardingMode, Share
from vcbatch.scheduler.policy.reader import default_policy, parse_policy
from vcbatch.scheduler.scheduler import Scheduler
from vcbatch.scheduler.simulation.world import WorldError
from vcbatch.scheduler.snapshot.assumed import Assumed

_FORMAT = "vcbatch-snapshot"
VERSION = 2
"""The version of the format: incremented with every change by which earlier files can't be read, or decide
otherwise."""
Json = dict[str, Any]

_READ: Mapping[type[msgspec.Struct], Read] = {read.struct: read for read in (*READS, *MEASURED)}
_BY_KEY: Mapping[str, Read] = {read.key: read for read in (*READS, *MEASURED)}


class OtherVersionError(WorldError):
    """The file was written by another version: the message has its version and the supported one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the recorded scheduler. `policy` is the text of its scheduler configuration, None for the
    built-in one; `cycles` is the number of cycles that it had run; `assumed` are its unconfirmed decisions."""

    taken: datetime
    policy: str | None = None
    scheduler_names: Sequence[str] = (DEFAULT_SCHEDULER,)
    default_queue: str = "default"
    share: Share = field(default_factory=Share)
    queue_gates: bool = False
    cycles: int = 0
    assumed: Assumed = field(default_factory=Assumed)

    def scheduler(self, policy: Policy | None) -> Scheduler:
        """A scheduler with these settings and without objects."""
        return Scheduler(
            policy,
            scheduler_names=self.scheduler_names,
            default_queue=self.default_queue,
            share=self.share,
            queue_gates=self.queue_gates,
        )

    def line(self) -> Json:
        """The first line of a file. Raises `ValueError` for a share that can't be recorded."""
        if self.share.ring is not None:
            raise ValueError("a scheduler that is one of several by hashing can't be recorded")
        return {
            "format": f"{_FORMAT}/{VERSION}",
            "taken": self.taken.isoformat(),
            "policy": self.policy,
            "schedulerNames": list(self.scheduler_names),
            "defaultQueue": self.default_queue,
            "nodeLabels": sorted(map(list, self.share.node_labels)),
            "shardingMode": self.share.mode.value,
            "shard": self.share.shard,
            "queueGates": self.queue_gates,
            "cycles": self.cycles,
            "binds": dict(self.assumed.binds),
            "evictions": list(self.assumed.evictions),
            "phases": dict(self.assumed.phases),
            "nominations": dict(self.assumed.nominations),
            "promises": {key: until.isoformat() for key, until in self.assumed.promises.items()},
            "lacking": {key: since.isoformat() for key, since in self.assumed.lacking.items()},
        }

    @staticmethod
    def read(line: Mapping[str, Any]) -> Settings:
        """The settings of a first line. Raises `WorldError`, and `OtherVersionError` for a file of another version."""
        if not Recording.recognises(line):
            raise WorldError(f"its first line must name the format {_FORMAT}/{VERSION}, got {line.get('format')!r}")
        version = str(line["format"]).removeprefix(f"{_FORMAT}/")
        if version != str(VERSION):
            raise OtherVersionError(f"it is of version {version[:20]} of the format, and only {VERSION} is read here")
        try:
            pairs = frozenset((str(key), str(value)) for key, value in line["nodeLabels"])
            assumed = Assumed(
                binds=line["binds"],
                evictions=line["evictions"],
                phases=line["phases"],
                nominations=line["nominations"],
                promises={key: parse_time(until) for key, until in line["promises"].items()},
                lacking={key: parse_time(since) for key, since in line.get("lacking", {}).items()},
            )
            return Settings(
                taken=parse_time(line["taken"]),
                policy=line["policy"],
                scheduler_names=tuple(line["schedulerNames"]),
                default_queue=line["defaultQueue"],
                share=Share(node_labels=pairs, mode=ShardingMode(line["shardingMode"]), shard=line["shard"]),
                queue_gates=bool(line["queueGates"]),
                cycles=int(line["cycles"]),
                assumed=assumed,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WorldError(f"the first line is incomplete: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Step:
    """One event after the objects: its kind and its arguments."""

    kind: str
    line: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording as read."""

    settings: Settings
    lists: Mapping[str, Sequence[Json]]
    """Objects by the key of their kind."""
    steps: Sequence[Step]

    @staticmethod
    def recognises(document: Mapping[str, Any]) -> bool:
        """Whether the document is the first line of such a file, of any version."""
        return str(document.get("format")).startswith(f"{_FORMAT}/")

    @staticmethod
    def read(lines: Iterable[Mapping[str, Any]]) -> Recording:
        """Read a recording. Raises `WorldError` if the lines aren't one, `OtherVersionError` if another version wrote
        it."""
        rest = iter(lines)
        first = next(rest, None)
        if first is None:
            raise WorldError("it has no whole line")
        settings = Settings.read(first)
        lists: dict[str, list[Json]] = {}
        steps: list[Step] = []
        for line in rest:
            kind = str(line.get("is", ""))
            if kind == "object":
                lists.setdefault(str(line.get("of")), []).append(cast("Json", line.get("object")))
            else:
                steps.append(Step(kind, line))
        return Recording(settings=settings, lists=lists, steps=steps)

    def _objects(self) -> Iterator[tuple[Resource, msgspec.Struct]]:
        for read in _BY_KEY.values():
            for raw in self.lists.get(read.key, ()):
                try:
                    yield read.resource, msgspec.convert(raw, read.struct)
                except msgspec.ValidationError as error:
                    raise WorldError(f"an object among {read.key} can't be read: {error}") from error

    def world_at_end(self, scheduler: Scheduler) -> Mapping[str, Sequence[Json]]:
        """The objects at the end of the recording, by the key of their kind, with the decisions of `scheduler`, which
        replayed it, that weren't confirmed."""
        lists: dict[str, dict[str, Json]] = {}
        for key, objects in self.lists.items():
            lists[key] = {_uid(obj): obj for obj in objects}
        for step in self.steps:
            if step.kind == "event":
                known = lists.setdefault(str(step.line["of"]), {})
                obj = cast("Json", step.line["object"])
                known.pop(_uid(obj), None)
                if step.line["event"] != "DELETED":
                    known[_uid(obj)] = obj
        what = scheduler.assumed()
        pods, groups = lists.get("pods", {}), lists.get("podGroups", {})
        for uid, node in what.binds.items():
            if uid in pods:
                pods[uid] = {**pods[uid], "spec": {**pods[uid].get("spec", {}), "nodeName": node}}
        for uid, node in what.nominations.items():
            if uid in pods:
                pods[uid] = {**pods[uid], "status": {**pods[uid].get("status", {}), "nominatedNodeName": node}}
        for uid in what.evictions:
            pods.pop(uid, None)
        for uid, group in groups.items():
            meta = group["metadata"]
            phase = what.phases.get(f"{meta.get('namespace', '')}/{meta['name']}")
            if phase is not None:
                groups[uid] = {**group, "status": {**group.get("status", {}), "phase": phase}}
        return {key: list(known.values()) for key, known in lists.items()}

    @property
    def cycles(self) -> int:
        """The number of recorded cycles."""
        return sum(step.kind == "cycle" for step in self.steps)

    def policy(self, extensions: Extensions = BUILT_IN) -> Policy:
        """The scheduler configuration of the recording. Raises `PolicyError`."""
        text = self.settings.policy
        return default_policy() if text is None else parse_policy(text, extensions=extensions)

    def scheduler(self, policy: Policy) -> Scheduler:
        """A scheduler in the state when the objects were recorded. Raises `WorldError`."""
        settings = self.settings
        made = settings.scheduler(policy)
        for resource, obj in self._objects():
            made.apply(resource, "ADDED", obj)
        made.resume(settings.assumed, cycles=settings.cycles)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One replayed cycle."""

    number: int
    at: datetime
    result: CycleResult
    same: bool
    """Whether its decisions equal the recorded ones."""


def _uid(obj: Json) -> str:
    meta = obj["metadata"]
    return str(meta.get("uid") or f"{meta.get('namespace', '')}/{meta.get('name', '')}")


def replay(recording: Recording, scheduler: Scheduler) -> Iterator[Replayed]:
    """Replay every recorded cycle in order, with a scheduler that the recording created. Raises `WorldError`."""
    number = recording.settings.cycles
    for step in recording.steps:
        line = step.line
        try:
            if step.kind != "cycle":
                _do(scheduler, step)
                continue
            number += 1
            at = parse_time(line["at"])
            result = scheduler.cycle(at)
            yield Replayed(number=number, at=at, result=result, same=digest(result) == line["digest"])
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise WorldError(f"a line of kind {step.kind!r} can't be read: {error!r}") from error


def _do(scheduler: Scheduler, step: Step) -> None:
    line = step.line
    match step.kind:
        case "event":
            read = _BY_KEY[line["of"]]
            scheduler.apply(read.resource, line["event"], msgspec.convert(line["object"], read.struct))
        case "bindFailed":
            scheduler.bind_failed(line["uid"], line["error"])
        case "evictionFailed":
            scheduler.eviction_failed(line["uid"], line["error"])
        case "gateRemovalFailed":
            scheduler.gate_removal_failed(line["uid"])
        case "podGroupFailed":
            scheduler.podgroup_write_failed(line["uid"])
        case "shardFailed":
            scheduler.shard_write_failed(line["uid"])
        case _:
            raise WorldError(f"a line of unknown kind {step.kind!r}")


def object_line(obj: msgspec.Struct) -> bytes:
    """The line of an existing object."""
    return _line({"is": "object", "of": _READ[type(obj)].key, "object": _bare(obj)})


def event_line(event: str, obj: msgspec.Struct) -> bytes:
    """The line of a watch event."""
    return _line({"is": "event", "event": event, "of": _READ[type(obj)].key, "object": _bare(obj)})


def cycle_line(at: datetime, result: CycleResult) -> bytes:
    """The line of a cycle and its decisions."""
    return _line({"is": "cycle", "at": at.isoformat(), "digest": digest(result)})


def other_line(kind: str, **arguments: str) -> bytes:
    """The line of any other input of the scheduler; see `_do`."""
    return _line({"is": kind, **arguments})


def first_line(settings: Settings) -> bytes:
    """The first line of a file."""
    return _line(settings.line())


def _line(content: object) -> bytes:
    return msgspec.json.encode(content) + b"\n"


def _bare(obj: msgspec.Struct) -> Any:
    """The object without its last-applied annotation, which repeats it with fields that aren't read, such as
    environments."""
    meta = cast("Any", obj).metadata
    notes = meta.annotations
    if notes and LAST_APPLIED in notes:
        kept = {key: value for key, value in notes.items() if key != LAST_APPLIED}
        meta = msgspec.structs.replace(meta, annotations=kept or None)
        return msgspec.structs.replace(obj, metadata=meta)
    return obj


def digest(result: CycleResult) -> str:
    """A digest that is equal for cycles with the same binds, evictions, gate removals and held placements in the same
    order."""
    decisions = [
        [[b.namespace, b.name, b.uid, b.node, sorted((b.annotations or {}).items())] for b in result.binds],
        [[e.namespace, e.name, e.uid, e.reason] for e in result.evictions],
        [[g.namespace, g.name, g.uid] for g in result.gate_removals],
        [[h.namespace, h.name, h.uid, h.node, h.promised] for h in result.held],
    ]
    return hashlib.sha256(json.dumps(decisions, separators=(",", ":")).encode()).hexdigest()
