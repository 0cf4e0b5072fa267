"""Cool-down protection: pods that were just scheduled aren't evicted for the duration that they request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vcbatch.api import names
from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import DisruptionLimit, PodConditionType
from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import GangEviction, Plugin, Protection
from vcbatch.scheduler.model.objects import Queue, Task, TaskStatus

_MEMORY: Final = "cdp"


@dataclass(slots=True)
class _Memory:
    """When the first cool-down ends that protected a pod, and how many such times have passed."""

    ends: datetime | None = None
    passed: int = 0


class CoolDown(Plugin):
    """A running pod with `volcano.sh/cooldown-time` (label, else annotation; a Go duration) isn't evicted until that
    long after its condition PodScheduled became true. An invalid duration protects no pod."""

    VICTIMS_BY_STANDING = True
    KEEPS_VICTIMS = True

    def open(self, session: Handle) -> None:
        self._session = session
        self._memory: _Memory = session.state.memory.setdefault(_MEMORY, _Memory())
        if self._memory.ends is not None and session.now >= self._memory.ends:
            self._memory.ends = None
            self._memory.passed += 1

    def limit_stamp(self, queue: Queue) -> object:
        """Changes when a cool-down ends, so that victims are searched again."""
        return self._memory.passed

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._cool(candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._cool(candidates)

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> list[Task]:
        return self._cool(candidates)

    def movable(self, unwanted: Sequence[Task]) -> list[Task]:
        return self._cool(unwanted)

    def protection(self, victims: Sequence[Task]) -> Protection | None:
        ends = [(end, task) for task in victims if (end := self._end(task)) is not None]
        if not ends:
            return None
        end, last = max(ends, key=lambda entry: entry[0])
        return Protection(DisruptionLimit.COOL_DOWN, _asked(last.pod), end)

    def _cool(self, candidates: Sequence[Task]) -> list[Task]:
        if self._session.lenient:
            return list(candidates)
        found = [task for task in candidates if not self._protects(task)]
        self._session.withheld += len(candidates) - len(found)
        return found

    def _end(self, task: Task) -> datetime | None:
        """Until when the pod is protected; None if it isn't."""
        ends = cooldown_end(task.pod)
        return ends if ends is not None and ends > self._session.now else None

    def _protects(self, task: Task) -> bool:
        ends = self._end(task) if task.status is TaskStatus.RUNNING else None
        if ends is None:
            return False
        if self._memory.ends is None or ends < self._memory.ends:
            self._memory.ends = ends
        self._session.requeue_at(ends)
        return True


def cooldown_end(pod: Pod) -> datetime | None:
    """The end of the pod's cool-down; None if it requests none or isn't scheduled."""
    asked = _asked(pod)
    if not asked:
        return None
    try:
        length = parse_duration(asked)
        for condition in pod.status.conditions or ():
            if condition.type == PodConditionType.POD_SCHEDULED and condition.last_transition_time:
                return parse_time(condition.last_transition_time) + length
    except (MalformedDuration, ValueError, OverflowError):
        return None
    return None


def _asked(pod: Pod) -> str:
    """The cool-down that the pod requests, as written."""
    meta = pod.metadata
    return (meta.labels or {}).get(names.COOLDOWN_TIME) or (meta.annotations or {}).get(names.COOLDOWN_TIME) or ""
