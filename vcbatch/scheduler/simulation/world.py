"""Kubernetes objects as mappings, decoded as the runtime decodes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.resources import PODS, Resource
from vcbatch.scheduler.model.reads import MEASURED, READS, Read
from vcbatch.scheduler.simulation.amounts import no_amount

Json = Mapping[str, Any]

BY_KEY: Mapping[str, Read] = {read.key: read for read in (*READS, *MEASURED)}
BY_KIND: Mapping[tuple[str, str], Read] = {(read.resource.group, read.resource.kind): read for read in READS}
"""By API group and kind, whatever the version."""


class WorldError(ValueError):
    """An invalid object: the message says which one, which field, the given value and the allowed ones.

    `key` and `index` are its position among the lists, empty and -1 if it isn't about one of them; `field` is the path
    of the error in it, as far as it is known.
    """

    def __init__(self, text: str, *, key: str = "", index: int = -1, field: str = "") -> None:
        super().__init__(text)
        self.key = key
        self.index = index
        self.field = field


@dataclass(frozen=True, slots=True)
class World:
    """Objects with their resources, in the order in which a scheduler receives them."""

    objects: tuple[tuple[Resource, msgspec.Struct], ...]

    @staticmethod
    def read(lists: Mapping[str, Iterable[Json]], *, scheduler_name: str = DEFAULT_SCHEDULER) -> World:
        """Decode lists of objects, each under its kind's key (`nodes`, `podGroups`, …).

        Fields that an API server always sets and a hand-written object may lack are filled in: a UID derived from the
        name, and `scheduler_name` for pods that name no scheduler.

        Raises:
            WorldError: a kind that the scheduler doesn't read, or an object that doesn't fit its kind.
        """
        for key in lists:
            if key not in BY_KEY:
                raise WorldError(f"{key}: the scheduler doesn't read these; allowed: {', '.join(sorted(BY_KEY))}")
        return World(
            tuple(
                (read.resource, _decoded(read, raw, i, scheduler_name))
                for read in BY_KEY.values()
                for i, raw in enumerate(lists.get(read.key, ()))
            )
        )


def _decoded(read: Read, raw: object, index: int, scheduler_name: str) -> msgspec.Struct:
    where = f"{read.key}[{index}]"
    if not isinstance(raw, Mapping):
        raise WorldError(f"{where}: must be a mapping, got {_short(raw)}", key=read.key, index=index)
    where = f"{where} {_name(cast('Json', raw))}"
    try:
        made = msgspec.convert(_filled(read, cast("Json", raw), scheduler_name), read.struct)
    except msgspec.ValidationError as error:
        raise WorldError(f"{where}: {error}", key=read.key, index=index, field=_field(str(error))) from error
    malformed = no_amount(read.key, cast("Json", raw))
    if malformed is not None:
        field, said = malformed
        raise WorldError(f"{where}: {field}: {said}", key=read.key, index=index, field=field)
    return made


def _field(said: str) -> str:
    """The path that msgspec's message ends with, up to a list for which it doesn't give the index."""
    path = re.search(r"`\$([^`]*)`$", said)
    return path[1].partition("[...]")[0].lstrip(".") if path is not None else ""


def _filled(read: Read, raw: Json, scheduler_name: str) -> dict[str, Any]:
    filled = dict(raw)
    meta = raw.get("metadata")
    if meta is None or isinstance(meta, Mapping):
        known = dict(cast("Json", meta or {}))
        known.setdefault("uid", f"{read.key}/{known.get('namespace', '')}/{known.get('name', '')}")
        filled["metadata"] = known
    spec = raw.get("spec")
    if read.resource is PODS and (spec is None or isinstance(spec, Mapping)):
        filled["spec"] = {"schedulerName": scheduler_name, **cast("Json", spec or {})}
    return filled


def _name(raw: Json) -> str:
    """The object's name for messages, as far as it has one."""
    meta = raw.get("metadata")
    if not isinstance(meta, Mapping):
        return "(no name)"
    known = cast("Json", meta)
    parts = [str(known[key]) for key in ("namespace", "name") if known.get(key)]
    return "/".join(parts) or "(no name)"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
