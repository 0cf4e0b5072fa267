"""When a job may start and by when it has to end, from its annotations: the jobs that it depends on, its begin time and
its deadline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE
from vcbatch.api.phases import JobPhase
from vcbatch.api.timestamps import parse_time

MOST_DEPENDENCIES: Final = 32
"""The maximum number of jobs that a job may depend on."""

_FORM: Final = re.compile(r"([^/:,]+)(?:/([0-9A-Za-z-]{1,64}))?(?::([a-z]+))?", re.ASCII)
TIME_FORM: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$"
"""The form of a time in an annotation, a regular expression: RFC 3339 with its offset."""
_WANT: Final = "want JOB[/UID][:ok|any|fail], separated by commas"


class Outcome(StrEnum):
    """The outcome of the other job for which this one waits."""

    OK = "ok"
    """It completed."""
    ANY = "any"
    """It ended in any way."""
    FAIL = "fail"
    """It failed or was cancelled."""


class MalformedDependencyError(ValueError):
    """A dependency that can't be parsed; the message has the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another job in the same namespace. `uid` is empty where the job was named without one."""

    name: str
    outcome: Outcome = Outcome.OK
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.name}{f'/{self.uid}' if self.uid else ''}:{self.outcome}"


def parse_dependency(text: str) -> Dependency:
    """Parse `JOB[/UID][:ok|any|fail]`. Raises `MalformedDependencyError`."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise MalformedDependencyError(f"{text!r}: {_WANT}")
    name, uid, outcome = found.groups()
    if errors := dns_subdomain(name):
        raise MalformedDependencyError(f"{name!r} is no name of a job: {errors[0]}")
    if outcome is not None and outcome not in list(Outcome):
        raise MalformedDependencyError(f"{text!r}: unknown outcome {outcome!r}; {_WANT}")
    return Dependency(name, Outcome(outcome or Outcome.OK), uid or "")


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """Parse the value of the annotation. Raises `MalformedDependencyError`, also for a job that is named twice and for
    too many jobs."""
    found = tuple(map(parse_dependency, text.split(",")))
    if len(found) > MOST_DEPENDENCIES:
        raise MalformedDependencyError(f"{len(found)} jobs, want at most {MOST_DEPENDENCIES}")
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MalformedDependencyError(f"job {twice!r} is named twice")
    return found


def dependencies(annotations: Mapping[str, str]) -> tuple[Dependency, ...]:
    """The jobs that the job depends on; none where the annotation is absent or malformed."""
    try:
        return parse_dependencies(annotations[AFTER]) if AFTER in annotations else ()
    except MalformedDependencyError:
        return ()


def meets(wanted: Outcome, ended: str) -> bool:
    """Whether a job that ended in this phase meets a dependency with the outcome `wanted`. Of a job that was deleted
    before its end was seen, the result is unknown."""
    if wanted is Outcome.ANY:
        return True
    return ended == JobPhase.COMPLETED if wanted is Outcome.OK else ended in (JobPhase.FAILED, JobPhase.TERMINATED)


def begin_time(annotations: Mapping[str, str]) -> datetime | None:
    """The earliest time at which the job may start; None where the annotation is absent or malformed."""
    return _time(annotations, BEGIN_TIME)


def deadline(annotations: Mapping[str, str]) -> datetime | None:
    """The time by which the job has to end; None where the annotation is absent or malformed."""
    return _time(annotations, DEADLINE)


def has_start_conditions(annotations: Mapping[str, str]) -> bool:
    """Whether the job's start depends on anything beside its queue and the cluster."""
    return AFTER in annotations or BEGIN_TIME in annotations


def start_condition_errors(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The malformed ones of the annotations: name and error."""
    if AFTER in annotations:
        try:
            parse_dependencies(annotations[AFTER])
        except MalformedDependencyError as error:
            yield AFTER, f"annotation {AFTER} is {annotations[AFTER]!r}: {error}"
    for name in (BEGIN_TIME, DEADLINE):
        if name in annotations and _time(annotations, name) is None:
            want = "want a time with its offset, such as 2026-11-20T12:00:00Z"
            yield name, f"annotation {name} is {annotations[name]!r}, {want}"


def _time(annotations: Mapping[str, str], name: str) -> datetime | None:
    text = annotations.get(name, "")
    try:
        return parse_time(text) if re.fullmatch(TIME_FORM, text) else None
    except (OverflowError, ValueError):
        return None
