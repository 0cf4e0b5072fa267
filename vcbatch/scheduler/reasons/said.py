"""What was reported last on each gang, and when it may be reported again with other numbers.

Numbers in messages change all the time without news, so a message alone is written again no sooner than `MESSAGE_EVERY`
after the last, and within a rate limit (`message_line`); counts no sooner than `COUNTS_EVERY`. What a reader acts on (a
phase, a condition's status or reason, another obstacle) is written at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from vcbatch.scheduler.model.objects import Job
from vcbatch.scheduler.model.result import Explanation, WaitReason
from vcbatch.scheduler.reasons.message_line import MessageLine

MESSAGE_EVERY = timedelta(seconds=30)
COUNTS_EVERY = timedelta(seconds=1)
PODS_GRACE = timedelta(seconds=5)
"""How long a gang may lack pods, and pods their PodGroup, before that is reported: a controller is creating them."""


class Said:
    """The last reports, by the UIDs of PodGroups.

    Attributes:
        explanations: why gangs are pending.
        waiting: how many gangs of each queue are pending for which reason; the queue is "" where the PodGroup doesn't
            exist.
        line: the rate limit for new numbers in messages.
    """

    def __init__(self, *, pods_grace: timedelta) -> None:
        self.explanations: dict[str, Explanation] = {}
        self.waiting: Counter[tuple[str, WaitReason]] = Counter()
        self.line = MessageLine()
        self._pods_grace = pods_grace
        self._written_at: dict[str, datetime] = {}
        self._lacking_since: dict[str, datetime] = {}
        self._deferred: dict[str, Job] = {}
        self._groupless: set[str] = set()

    def forget(self, uid: str) -> None:
        """Drop the state of a deleted PodGroup."""
        self.explain(uid, None)
        self.line.forget(uid)
        for known in (self._written_at, self._lacking_since):
            known.pop(uid, None)

    def written(self, uid: str, now: datetime) -> None:
        """Note that the status was written."""
        self._written_at[uid] = now
        self.line.forget(uid)

    def may_report(self, uid: str, now: datetime) -> bool:
        """Whether new numbers in a message may be written now; otherwise they are queued."""
        last = self._written_at.get(uid)
        due = now if last is None or now < last else last + MESSAGE_EVERY
        return self.line.take(uid, now, due=due)

    def counts_due(self, uid: str, now: datetime) -> datetime | None:
        """When new counts may be written; None if they may now."""
        last = self._written_at.get(uid)
        return None if last is None or now - last >= COUNTS_EVERY or now < last else last + COUNTS_EVERY

    def defer(self, job: Job) -> None:
        """Check the gang again in the next cycle, even if nothing changes."""
        self._deferred[job.key] = job

    def take_deferred(self) -> Mapping[str, Job]:
        """Remove and return the gangs to be checked again, by their keys."""
        taken, self._deferred = self._deferred, {}
        return taken

    def lacking(self, uid: str, now: datetime) -> datetime | None:
        """When it will be time to report that the gang lacks pods; None if it is now."""
        return self.made_by(self._lacking_since.setdefault(uid, now), now)

    def made_by(self, since: datetime, now: datetime) -> datetime | None:
        """When an object that has been missing `since` then should have been created by its controller; None if that
        time is over."""
        return None if now - since >= self._pods_grace else since + self._pods_grace

    def complete(self, uid: str) -> None:
        """Note that the gang lacks no pods."""
        self._lacking_since.pop(uid, None)

    def groupless(self, key: str, *, reported: bool) -> None:
        """Set whether pods were reported to lack the PodGroup of this `namespace/name`."""
        if reported == (key in self._groupless):
            return
        self.waiting["", WaitReason.POD_GROUP_MISSING] += 1 if reported else -1
        if reported:
            self._groupless.add(key)
        else:
            self._groupless.discard(key)

    def forget_groupless(self, known: Collection[str]) -> None:
        """Drop the missing PodGroups that aren't among `known`, since no pod names them any more."""
        for key in [key for key in self._groupless if key not in known]:
            self.groupless(key, reported=False)

    def explain(self, uid: str, explanation: Explanation | None) -> None:
        """Set why the gang is pending; None if it isn't."""
        before = self.explanations.pop(uid, None)
        if before is not None:
            self.waiting[before.queue, before.reason] -= 1
        if explanation is not None:
            self.explanations[uid] = explanation
            self.waiting[explanation.queue, explanation.reason] += 1
