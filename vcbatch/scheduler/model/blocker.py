"""What kept a gang from starting, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from vcbatch.api.messages import NEVER_FITS, could_evict, keeps_share
from vcbatch.api.remedies import Remedy
from vcbatch.scheduler.model.result import ClosestDomain, Protected, Shortage, WaitReason

POD: Final = "{pod}"
"""Stands in texts for the pod that they are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What kept a gang from starting (or a started one from growing).

    `text` is a sentence for people, in which `{pod}` stands for the pod it happened to, so that gangs of the same kind
    share it. `task` is that pod, empty where it concerns the gang as a whole; `placed` counts the gang's tasks that had
    found a node by then; `nodes` counts nodes per reason.
    """

    reason: WaitReason
    text: str
    task: str = ""
    placed: int = 0
    shortages: Sequence[Shortage] = ()
    place: str = ""
    """Where `shortages` are, as KIND/NAME."""
    remedies: Sequence[Remedy] = ()
    """What would let the gang start, all of it together."""
    volcano: str = ""
    """Volcano's sentence where the text is another, for events and conditions."""
    nodes_examined: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict[str, int])
    within: str = ""
    """The domain of the network that `nodes` is about; empty for the whole cluster."""
    closest: ClosestDomain | None = None
    expected_start: datetime | None = None
    protected: Protected | None = None

    @property
    def sentence(self) -> str:
        """The text, about the pod by its name."""
        return self.text.replace(POD, self.task)

    def but_for(self, protected: Protected) -> Blocker:
        """The same of a gang for which others would be evicted, if the policy didn't protect them."""
        return replace(self, reason=WaitReason.VICTIMS_PROTECTED, protected=protected)

    def on_empty_nodes(self) -> Blocker:
        """The same of a gang that can't start even on empty nodes."""
        return replace(
            self, reason=WaitReason.IMPOSSIBLE, text=f"{self.text}; {NEVER_FITS}" if self.text else NEVER_FITS
        )

    @property
    def remedy(self) -> str:
        """What would make room and may not be done now; empty where nothing is known to."""
        return "" if self.protected is None else could_evict(**self.protected._asdict())

    def of(self, task: str, *, placed: int) -> Blocker:
        """The same about a like pod of another gang, by its name."""
        return replace(self, task=task, placed=placed)

    @property
    def kind(self) -> tuple[str, ...]:
        """What makes it another story than before: the reason and the resources, not the numbers."""
        return (self.reason, *sorted({s.resource for s in self.shortages}))


class KeptShare(NamedTuple):
    """So many `pods` of these `gangs` (keys) of a queue would be evicted, were the queue not left with less than it
    deserves: `left` has what it deserves of each resource, what it would have of it, and the difference."""

    queue: str
    pods: int
    gangs: Sequence[str]
    left: Sequence[Shortage]

    def explain(self, blocker: Blocker) -> Blocker:
        """Why the gang waits, with that before what it lacks."""
        obstacle = keeps_share(
            queue=self.queue,
            pods=self.pods,
            gangs=self.gangs,
            left=[(s.resource, s.available, s.requested, s.short_by) for s in self.left],
        )
        text = f"{obstacle}; {blocker.text}" if blocker.text else obstacle
        return replace(blocker, reason=WaitReason.RECLAIM_BLOCKED, text=text)
