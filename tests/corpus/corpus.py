"""A corpus of objects and what admission says of each, as data.

`world.yaml` has what exists around them, `bases.yaml` the objects that cases start from, `rules.yaml` every rule with
its source. A file of `cases/` is a list of groups:

    - rule: job/min-available       # of rules.yaml
      base: pair                    # of bases.yaml
      at: /spec/minAvailable        # where each case's `v` goes, a JSON pointer (`~1` for `/`)
      cases:
      - {v: 3}                                                # good
      - {v: 4, says: "job 'minAvailable' should not be ..."}  # bad: the exact message
      - {v: (absent), becomes: {/spec/minAvailable: 3}}       # filled in: exactly this, beside what was sent

A case may also have

* `with`: more changes, pointer to value; `(absent)` removes, `/-` appends
* `old`: changes of the base that make the stored object, of which this case is an UPDATE; what the case changes comes
  on top of it. `old: {}` is the base itself
* `delete`: the name of the stored object that is to be deleted
* `warns`: the warnings, in their order
* `schema: true`: the API server's schema refuses the object before admission sees it; what is said here is what
  admission says to who asks it directly
* `policy: false`: though the rule has a policy, it doesn't see this case
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.admission_world import World
from vcbatch.api import names
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.queue import Queue
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, JOBTEMPLATES, PODGROUPS, PODS, QUEUES
from vcbatch.api.unfinished import work_in

HERE = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ABSENT = "(absent)"
RESOURCES = {
    each.plural: each for each in (JOBS, QUEUES, PODGROUPS, PODS, CRONJOBS, JOBFLOWS, JOBTEMPLATES, HYPERNODES)
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request, and what is to come of it."""

    name: str
    rule: str
    request: Request
    becomes: Mapping[str, Any]
    says: str
    warns: tuple[str, ...]
    by_schema: bool
    by_policy: bool

    @property
    def filled(self) -> Json:
        """The object as it is stored."""
        return changed(self.request.object or {}, self.becomes)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`source`: where the rule comes from (a part of the reference, a Volcano issue). `policy`: why no policy says it;
    empty where one does."""

    name: str
    source: str
    policy: str


@cache
def rules() -> Mapping[str, Rule]:
    """By name."""
    return {
        name: Rule(name=name, source=given["source"], policy=given.get("no policy", ""))
        for name, given in yaml.load((HERE / "rules.yaml").read_text(), _LOADER).items()
    }


@cache
def bases() -> Mapping[str, Json]:
    """By name."""
    loaded: Json = yaml.load((HERE / "bases.yaml").read_text(), _LOADER)
    return loaded


@cache
def surroundings() -> Json:
    """What exists, as plain data."""
    loaded: Json = yaml.load((HERE / "world.yaml").read_text(), _LOADER)
    return loaded


def world() -> World:
    """What exists, as rules look it up."""
    given = surroundings()
    return World(
        known=[Queue.parse(stored) for stored in given["queues"]],
        namespaces=given["namespaces"],
        priority_classes=frozenset([*given["priorityClasses"], *names.SYSTEM_PRIORITY_CLASSES]),
        works={
            queue["metadata"]["name"]: work_in(queue["metadata"]["name"], jobs=(), groups=given["podgroups"])
            for queue in given["queues"]
        },
    )


@cache
def cases() -> tuple[Case, ...]:
    """All of them."""
    return tuple(case for file in sorted((HERE / "cases").glob("*.yaml")) for case in _of_file(file))


def _of_file(file: Path) -> Iterator[Case]:
    seen: Counter[str] = Counter()
    for group in yaml.load(file.read_text(), _LOADER):
        for given in group["cases"]:
            place = f"{file.stem}:{group['rule']}:{group.get('at', '')}"
            name = f"{place}:{given.get('name', seen[place])}"
            seen[place] += 1
            yield case_of(name, group, given)


def case_of(name: str, group: Json, given: Json) -> Case:
    """The case as a request."""
    base = bases()[given.get("base") or group["base"]]
    changes = dict(group.get("with") or {})
    if "v" in given:
        changes[group["at"]] = given["v"]
    changes |= given.get("with") or {}
    old = changed(base["object"], given["old"]) if "old" in given else None
    made: Json | None = changed(old if old is not None else base["object"], changes)
    operation = Operation.CREATE if old is None else Operation.UPDATE
    if "delete" in given:
        operation, made = Operation.DELETE, None
        old = next(
            each
            for each in [*surroundings()["queues"], {}]
            if each.get("metadata", {}).get("name") in (given["delete"], None)
        )
    metadata = (made or old or {}).get("metadata") or {}
    request = Request(
        resource=RESOURCES[base["resource"]],
        operation=operation,
        name=given.get("delete") or metadata.get("name") or "",
        namespace=metadata.get("namespace") or "",
        object=made,
        old=old,
    )
    return Case(
        name=name,
        rule=group["rule"],
        request=request,
        becomes=given.get("becomes") or {},
        says=given.get("says", ""),
        warns=tuple(given.get("warns") or ()),
        by_schema=bool(given.get("schema")),
        by_policy=not rules()[group["rule"]].policy and given.get("policy", True),
    )


def changed(whole: Json, changes: Mapping[str, Any]) -> Json:
    """A copy with what the pointers say."""
    made = copy.deepcopy(whole)
    for pointer, value in changes.items():
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))
        at: Any = made
        for key in path:
            at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
        _put(at, last, copy.deepcopy(value))
    return made


def _put(at: Any, key: str, value: Any) -> None:
    if isinstance(at, list):
        if key == "-":
            at.append(value)
        elif value == ABSENT:
            del at[int(key)]
        else:
            at[int(key)] = value
    elif value == ABSENT:
        at.pop(key, None)
    else:
        at[key] = value
