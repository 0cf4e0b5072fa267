"""The conditions of `vcbatch wait`, and when they can no longer be met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vcbatch.api.jsonpath import MalformedPath, parse_path, shown
from vcbatch.api.phases import JobFlowPhase, JobPhase, PodGroupPhase, QueueState
from vcbatch.api.pod import PodPhase
from vcbatch.api.resources import (
    COMMANDS,
    CRONJOBS,
    HYPERNODES,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    PODGROUPS,
    PODS,
    QUEUES,
    Resource,
)
from vcbatch.api.spelling import did_you_mean
from vcbatch.cli.base.fields import objects, text

Json = dict[str, Any]


class MalformedCondition(ValueError):
    """The text isn't a valid condition; the message suggests a similar one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind as it is typed, with the path of its phase and all phases; `last` are the final ones."""

    resource: Resource
    words: tuple[str, ...]
    path: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    last: frozenset[str] = frozenset()

    def phase(self, obj: Json) -> str:
        return text(obj, *self.path) if self.path else ""


_STATE: Final = ("status", "state", "phase")
_POD_PHASES: Final = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)

KINDS: Final = (
    Kind(
        resource=JOBS,
        words=("job", "jobs", "vcjob", "vj"),
        path=_STATE,
        phases=tuple(JobPhase),
        last=frozenset(phase for phase in JobPhase if phase.finished),
    ),
    Kind(
        resource=JOBFLOWS,
        words=("jobflow", "jobflows", "jf"),
        path=_STATE,
        phases=tuple(JobFlowPhase),
        last=frozenset({JobFlowPhase.SUCCEED, JobFlowPhase.FAILED}),
    ),
    Kind(resource=QUEUES, words=("queue", "queues", "q"), path=("status", "state"), phases=tuple(QueueState)),
    Kind(
        resource=PODGROUPS,
        words=("podgroup", "podgroups", "pg"),
        path=("status", "phase"),
        phases=tuple(PodGroupPhase),
        last=frozenset({PodGroupPhase.COMPLETED}),
    ),
    Kind(
        resource=PODS,
        words=("pod", "pods", "po"),
        path=("status", "phase"),
        phases=_POD_PHASES,
        last=frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED}),
    ),
    Kind(resource=CRONJOBS, words=("cronjob", "cronjobs", "cronvcjob", "cronvj")),
    Kind(resource=JOBTEMPLATES, words=("jobtemplate", "jobtemplates", "jt")),
    Kind(resource=HYPERNODES, words=("hypernode", "hypernodes", "hn")),
    Kind(resource=COMMANDS, words=("command", "commands")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """`holds` evaluates it for an object, or for None, an object that doesn't exist. `hopeless` returns why it can no
    longer be met for an object in this state; empty where it can. `said` names the condition in messages."""

    said: str
    holds: Callable[[Json | None], bool]
    hopeless: Callable[[Json], str] = lambda obj: ""
    without: bool = False
    """It may be met although the object doesn't exist, or doesn't exist yet."""


def condition(given: str, kind: Kind) -> Condition:
    """The condition of `--for` for an object of this kind. Raises `MalformedCondition`."""
    word, equals, rest = given.partition("=")
    match word.lower():
        case "delete" | "deleted":
            return Condition(said="deleted", holds=lambda obj: obj is None, without=True)
        case "create" | "created":
            return Condition(said="created", holds=lambda obj: obj is not None, without=True)
        case "condition" if rest:
            return _of_condition(rest)
        case "jsonpath" if rest:
            return _of_path(rest)
        case "phase" if rest:
            return _of_phase(rest, given, kind)
        case _ if not equals:
            return _of_phase(given, given, kind)
        case _:
            raise MalformedCondition(_unknown(given, kind))


def _choices(kind: Kind) -> list[str]:
    return [*(["finished"] if kind.last else []), *(phase.lower() for phase in kind.phases), "created", "deleted"]


def _unknown(given: str, kind: Kind) -> str:
    """The error for an invalid condition, with the most similar one or all valid ones."""
    words = _choices(kind)
    valid = (
        did_you_mean(given.lower(), words)
        or f"; must be {', '.join(words)}, condition=NAME[=STATUS] or jsonpath=PATH[=VALUE]"
    )
    return f"invalid condition {given!r}{valid}"


def _of_phase(word: str, given: str, kind: Kind) -> Condition:
    if kind.last and word.lower() == "finished":
        return Condition(said="finished", holds=lambda obj: obj is not None and kind.phase(obj) in kind.last)
    wanted = next((phase for phase in kind.phases if phase.lower() == word.lower()), None)
    if wanted is None:
        raise MalformedCondition(_unknown(given, kind))

    def hopeless(obj: Json) -> str:
        phase = kind.phase(obj)
        return f"is {phase} and can no longer be {wanted}" if phase in kind.last and phase != wanted else ""

    return Condition(said=wanted, holds=lambda obj: obj is not None and kind.phase(obj) == wanted, hopeless=hopeless)


def _of_condition(rest: str) -> Condition:
    name, _, status = rest.partition("=")
    wanted = (status or "True").lower()

    def holds(obj: Json | None) -> bool:
        found = objects(obj or {}, "status", "conditions")
        return any(text(one, "type").lower() == name.lower() and text(one, "status").lower() == wanted for one in found)

    return Condition(said=f"{name}={wanted}", holds=holds)


def _of_path(rest: str) -> Condition:
    """The condition `{.status.running}=3`, or a path alone, for any value at it."""
    end = rest.rfind("}=")
    path_text, value = (rest[: end + 1], rest[end + 2 :]) if end >= 0 else (rest, None)
    if end < 0 and not rest.endswith("}") and "=" in rest:
        path_text, _, value = rest.rpartition("=")
    try:
        path = parse_path(path_text)
    except MalformedPath as error:
        raise MalformedCondition(f"jsonpath={rest}: {error}") from error

    def holds(obj: Json | None) -> bool:
        # An element that doesn't exist yet may be added.
        found = path.find_or_none(obj) if obj is not None else []
        return bool(found) if value is None else any(shown(one) == value for one in found)

    said = path_text if value is None else f"{path_text}={value}"
    return Condition(said=said, holds=holds)


def kind_of(word: str) -> Kind:
    """The kind of a word, e.g. `job`, `vcjob` or `job.batch.volcano.sh`. Raises `MalformedCondition` for any other."""
    name, _, group = word.lower().partition(".")
    found = next((kind for kind in KINDS if name in kind.words and group in ("", kind.resource.group)), None)
    if found is None:
        known = [kind.words[0] for kind in KINDS]
        valid = f"; must be {', '.join(known)}"
        raise MalformedCondition(f"unknown kind {word!r}{did_you_mean(word.lower(), known) or valid}")
    return found


DEFAULTS: Final[Mapping[Resource, str]] = {JOBS: "finished", JOBFLOWS: "finished", QUEUES: "open", PODS: "finished"}
"""The default conditions."""
