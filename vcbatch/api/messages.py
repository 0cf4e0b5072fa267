"""Messages of events and conditions: built from the numbers that they contain, and parsed back.

A message is bounded in size, and is the same for the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from vcbatch.api.reasons import DisruptionLimit, WaitReason
from vcbatch.api.timestamps import format_time, parse_time

LONGEST_MESSAGE: Final = 1024
"""Events and conditions stay under 1 KiB (Kubernetes refuses longer event messages)."""


def shorten(message: str, *, limit: int = LONGEST_MESSAGE) -> str:
    """The message, cut to `limit` bytes of UTF-8 with an ellipsis where it is longer."""
    encoded = message.encode()
    if len(encoded) <= limit:
        return message
    return encoded[: limit - 3].decode(errors="ignore") + "..."


# Scheduler ----------------------------------------------------------------------------------------------------------


POD_GROUP_READY: Final = "pod group is ready"
POD_GROUP_NOT_READY: Final = "pod group is not ready"
ALL_NODES_UNAVAILABLE: Final = "all nodes are unavailable"


def gang_unschedulable(*, unready: int, total: int, why: str) -> str:
    """The message of the condition Unschedulable: `2/3 tasks in gang unschedulable: …`."""
    return shorten(f"{unready}/{total} tasks in gang unschedulable: {why}")


_ORIGIN: Final = ". Origin reason is "


def with_origin(why: str, origin: str) -> str:
    """Why a gang doesn't start, with the root cause."""
    return f"{why}{_ORIGIN}{origin}"


def origin_of(message: str) -> str:
    """The root cause in a message of `with_origin`; any other message whole."""
    return message.rpartition(_ORIGIN)[2]


def waits_for(reason: WaitReason, sentence: str) -> str:
    """Why a gang waits, with the reason first: `InsufficientResources: …`."""
    return f"{reason}: {sentence}"


def read_wait(message: str) -> tuple[WaitReason | None, str]:
    """The reason and the sentence of a message of `waits_for`, or of a longer one that ends with it (`with_origin`); no
    reason and the whole message where another program wrote it."""
    origin = origin_of(message)
    word, colon, sentence = origin.partition(": ")
    reason = next((reason for reason in WaitReason if reason == word), None) if colon else None
    return (reason, sentence) if reason is not None else (None, origin)


def no_pod_group(key: str) -> str:
    """The message on pods whose PodGroup, given as `namespace/name`, doesn't exist."""
    return f"PodGroup {key} doesn't exist"


def pod_group_found(key: str) -> str:
    """The message on pods whose missing PodGroup now exists, before anything else is known about them."""
    return f"PodGroup {key} exists now"


_STARTS_BY: Final = "it is expected to start by "


def expected_to_start(when: datetime) -> str:
    """The message on a gang for which resources are reserved."""
    return f"{_STARTS_BY}{format_time(when)}"


def expected_start(message: str) -> datetime | None:
    """The latest time of the gang's start, where the scheduler's message has it."""
    return _time_after(_STARTS_BY, message)


_IN_LINE: Final = " is first in, first out: "
_FIRST: Final = " is first"


NEVER_FITS: Final = "without any other pods the nodes couldn't take the gang either"
"""The message on a gang that can't start even if every removable pod is deleted."""
NOT_EVICTED_FOR: Final = "no pods are evicted for a gang before it is admitted"


def behind_first(*, queue: str, first: str, expected: datetime | None = None) -> str:
    """The message on a gang that the `first` gang of its queue (`namespace/name`) blocks until it has started: by
    `expected`, None where that is unknown."""
    when = f", expected by {format_time(expected)}" if expected is not None else ""
    return f"queue {queue}{_IN_LINE}{first}{_FIRST}{when}"


def first_in_line(message: str) -> str:
    """The PodGroup that blocks the gang, where the scheduler's message names it; else empty."""
    first, found, _ = message.partition(_IN_LINE)[2].partition(_FIRST)
    return first if found else ""


_MAY_GO_FROM: Final = "which may go from "
_GANGS_NAMED: Final = 2


def could_evict(
    *, pods: int, gangs: Sequence[str], limit: DisruptionLimit, allowed: str, until: datetime | None
) -> str:
    """The message on a gang for which this number of `pods` of these `gangs` would be evicted, if a `limit` of the
    scheduler configuration, with the value `allowed`, didn't prevent it. They may be evicted from `until` on;
    None: never."""
    evicting = _evicting(pods, gangs)
    if until is None:
        return f"{evicting}, and the policy lets no more than {allowed} go in a cycle ({limit})"
    return f"{evicting}, {_MAY_GO_FROM}{format_time(until)} on ({limit} {allowed})"


def _evicting(pods: int, gangs: Sequence[str]) -> str:
    named = [*gangs[:_GANGS_NAMED], *([f"{len(gangs) - _GANGS_NAMED} more"] if len(gangs) > _GANGS_NAMED else [])]
    whose = f"{'gang' if len(gangs) == 1 else 'gangs'} {', '.join(named[:-1])}{' and ' if named[1:] else ''}{named[-1]}"
    return f"it could have its place by evicting {pods} {'pod' if pods == 1 else 'pods'} of {whose}"


def keeps_share(*, queue: str, pods: int, gangs: Sequence[str], left: Sequence[tuple[str, str, str, str]]) -> str:
    """The message on a gang for which this number of `pods` of these `gangs` would be reclaimed from a `queue`, if that
    didn't leave it less than its deserved share. `left` has for each resource the rest, the deserved share and the
    difference."""
    amounts = ", ".join(f"{name} {has} of {deserved}, short by {lacks}" for name, has, deserved, lacks in left)
    return f"{_evicting(pods, gangs)}, which would leave queue {queue} less than it deserves: {amounts}"


def protected_until(message: str) -> datetime | None:
    """When others may first be evicted for the gang, where the scheduler's message has it."""
    return _time_after(_MAY_GO_FROM, message)


def _time_after(words: str, message: str) -> datetime | None:
    text = message.rpartition(words)[2].split(";", 1)[0].split(" ", 1)[0] if words in message else ""
    try:
        return parse_time(text.rstrip(".")) if text else None
    except ValueError:
        return None


def gang_counts(*, ready: bool, statuses: Mapping[str, int], min_available: int) -> str:
    """The numbers of a gang's members by status: `pod group is not ready, 2 Pending, 1 Running, 3 minAvailable`."""
    counts = sorted(f"{count} {status}" for status, count in statuses.items() if count)
    return ", ".join([POD_GROUP_READY if ready else POD_GROUP_NOT_READY, *counts, f"{min_available} minAvailable"])


def node_histogram(*, examined: int, reasons: Mapping[str, int], within: str = "") -> str:
    """Why no node fits: `0/5 nodes are unavailable: 2 Insufficient cpu, 3 node(s) were unschedulable.`; with the prefix
    `In hyperNode NAME: ` where only the nodes `within` a network topology domain were examined."""
    counts = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))
    where = f"In hyperNode {within}: " if within else ""
    return shorten(f"{where}0/{examined} nodes are unavailable: {counts}." if counts else ALL_NODES_UNAVAILABLE)


def insufficient(resource: str) -> str:
    """The reason for a node that has too little of a resource."""
    return f"Insufficient {resource}"


def search_ended(why: str, *, steps: int) -> str:
    """Why no node was found for a pod of a gang, after other placements were tried without success."""
    return f"{why}; another placement was neither found nor ruled out in {steps} steps, and is searched for again"


def assigned(*, namespace: str, pod: str, node: str) -> str:
    """The event about a bound pod, in kube-scheduler's words."""
    return f"Successfully assigned {namespace}/{pod} to {node}"


def assigned_more(*, count: int) -> str:
    """The single event on a PodGroup about its pods beyond those that get an event of their own."""
    return f"Successfully assigned {count} more pods; each one's spec.nodeName says where it is"


def waits_for_devices(*, pods: int, lacks: str) -> str:
    """The message on the PodGroup of pods that are bound once devices are ready; `lacks` names the first ones
    missing."""
    who = "1 pod has its node and waits" if pods == 1 else f"{pods} pods have their nodes and wait"
    return shorten(f"{who} for devices: {lacks}")


def possibly_assigned(*, node: str, once: str) -> str:
    """The message on a pod that is placed and waits; `once` says for what."""
    return f"pod can possibly be assigned to {node} once {once}"


ONCE_RELEASED: Final = "resource is released and minAvailable is satisfied"

# Job controller -----------------------------------------------------------------------------------------------------


_EXECUTING: Final = "Start to execute action "


def executing(*, action: str, cause: str = "") -> str:
    """The event before an action, with its cause."""
    return shorten(f"{_EXECUTING}{action}{f': {cause}' if cause else ''}")


WAITS_UNTIL_GONE: Final = "waits until these are gone: "
_AND_WAITS: Final = f"; {WAITS_UNTIL_GONE}"
_LONGEST_CAUSE: Final = 400


def and_waits(cause: str, wait: str) -> str:
    """The cause of a phase, and what the job waits for now (which begins with `WAITS_UNTIL_GONE`)."""
    return shorten(f"{shorten(cause, limit=_LONGEST_CAUSE)}; {wait}" if cause else wait)


def without_wait(message: str) -> str:
    """The cause in a message of `and_waits`; any other message whole."""
    return "" if message.startswith(WAITS_UNTIL_GONE) else message.partition(_AND_WAITS)[0]


def waits_until_gone(message: str) -> bool:
    """Whether a message says that the job waits for objects that are being deleted."""
    return WAITS_UNTIL_GONE in message


def cause_of(message: str) -> str:
    """The cause of an action in a message of `executing`; any other message whole."""
    if not message.startswith(_EXECUTING):
        return message
    began = without_wait(message)
    return f"{began.partition(': ')[2] or began}{message[len(began) :]}"


def delayed(*, action: str, delay: str, cause: str = "") -> str:
    """The event when a policy has a timeout; `delay` is a Go duration."""
    return shorten(f"Execute action {action} after {delay}{f': {cause}' if cause else ''}")


def command_issued(*, action: str) -> str:
    """The event when a Command is executed, in Volcano's words."""
    return shorten(f"Start to execute command {action}, and clean it up to make sure executed not more than once.")


def retries_exhausted(*, cause: str, max_retry: int) -> str:
    """Why a job failed instead of a restart. The first start counts against maxRetry too, as in Volcano."""
    return shorten(f"{cause}; no retries left (maxRetry {max_retry})")


def backing_off(*, losses: int, until: str) -> str:
    """The message on a job that waits for a backoff before its next start."""
    return f"lost to the infrastructure {losses} times; its pods are made again at {until}"


def waits_for_job(*, name: str, phase: str, outcome: str) -> str:
    """The message about a job in this phase for whose end another one waits."""
    return f"waits for job {name} ({phase}) to {_ENDS.get(outcome, outcome)}"


def dependency_not_found(*, name: str) -> str:
    """The message about a job that another one depends on, and that doesn't exist."""
    return f"job {name} doesn't exist, and this job starts after it"


def dependency_missed(*, name: str, outcome: str, ended: str) -> str:
    """The message about a job that ended otherwise than another one requires; `ended` is its last phase."""
    how = "was deleted before its end was seen" if ended == "Deleted" else f"is {ended}"
    return f"job {name} {how}, and this job starts after it {_STARTS_AFTER.get(outcome, outcome)}"


def dependency_cycle(*, name: str, itself: bool) -> str:
    """The message about a job that another one depends on, and that waits for that one."""
    return "the job depends on itself" if itself else f"job {name} waits for this job"


def begins_at(time: str) -> str:
    """The message about the earliest start of a job."""
    return f"starts at {time} at the earliest"


def deadline_passed(*, time: str) -> str:
    """The message on a job that had not finished at its deadline."""
    return f"it had not finished at its deadline, {time}"


_ENDS: Final = {"ok": "complete", "any": "end", "fail": "fail"}
_STARTS_AFTER: Final = {"ok": "completes", "any": "ends", "fail": "fails"}


def ran_out_of_time(*, seconds: int) -> str:
    """The message on a job that has used up its time limit."""
    return f"it ran for {seconds} s, its time limit"


_OBJECT: Final = r"[A-Za-z]+ [^ ,;]+"
_MISSING: Final = re.compile(rf"({_OBJECT}(?:(?:, | and ){_OBJECT})*) (?:doesn't|don't) exist, named by pods of task")

_EACH: Final = re.compile(r"([A-Za-z]+) ([^ ,;]+)(?:, | and |$)")


def objects_missing(objects: Sequence[tuple[str, str]], *, tasks: Sequence[str]) -> str:
    """The message about objects, by kind and name, that pods of these tasks name and that don't exist."""
    verb = "doesn't exist" if len(objects) == 1 else "don't exist"
    named = _and([f"{kind} {name}" for kind, name in objects])
    return f"{named} {verb}, named by pods of task{'s' if len(tasks) > 1 else ''} {_and(tasks)}"


def missing_objects(message: str) -> list[tuple[str, str]]:
    """Kind and name of the missing objects with which a message begins; empty for any other message."""
    found = _MISSING.match(message)
    if found is None:
        return []
    return [(kind, name) for kind, name in _EACH.findall(found[1])]


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def infrastructure_retries_exhausted(*, cause: str, retries: int) -> str:
    """The same for a job that lost pods because of the infrastructure."""
    return shorten(f"{cause}; {retries} restarts for pods that it lost to the infrastructure are the most it gets")
