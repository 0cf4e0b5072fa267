"""The obstacle to a gang's start, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from vcbatch.api.messages import NEVER_FITS, could_evict, keeps_share
from vcbatch.api.remedies import Remedy
from vcbatch.scheduler.model.result import ClosestDomain, Protected, Shortage, WaitReason

POD: Final = "{pod}"
"""A placeholder in texts for the pod that they refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """Why a gang didn't start (or a started one didn't grow).

    `text` is a sentence for users, in which `{pod}` stands for the pod that failed, so that gangs of the same kind
    share it. `task` is that pod, empty if the blocker is about the gang as a whole; `placed` counts the gang's tasks
    that had found a node by then; `nodes` counts nodes per reason.
    """

    reason: WaitReason
    text: str
    task: str = ""
    placed: int = 0
    shortages: Sequence[Shortage] = ()
    place: str = ""
    """The object that `shortages` refer to, as KIND/NAME."""
    remedies: Sequence[Remedy] = ()
    """The remedies that together let the gang start."""
    volcano: str = ""
    """Volcano's message where the text differs from it, for events and conditions."""
    nodes_examined: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict[str, int])
    within: str = ""
    """The network topology domain that `nodes` refers to; empty for the whole cluster."""
    closest: ClosestDomain | None = None
    expected_start: datetime | None = None
    protected: Protected | None = None

    @property
    def sentence(self) -> str:
        """The text, with the pod's name."""
        return self.text.replace(POD, self.task)

    def but_for(self, protected: Protected) -> Blocker:
        """The blocker of a gang for which pods would be evicted if the scheduler configuration didn't protect them."""
        return replace(self, reason=WaitReason.VICTIMS_PROTECTED, protected=protected)

    def on_empty_nodes(self) -> Blocker:
        """The blocker of a gang that can't start even on empty nodes."""
        return replace(
            self, reason=WaitReason.IMPOSSIBLE, text=f"{self.text}; {NEVER_FITS}" if self.text else NEVER_FITS
        )

    @property
    def remedy(self) -> str:
        """The evictions that would help and aren't allowed now; empty if none are known."""
        return "" if self.protected is None else could_evict(**self.protected._asdict())

    def of(self, task: str, *, placed: int) -> Blocker:
        """The blocker for an equal pod of another gang, by its name."""
        return replace(self, task=task, placed=placed)

    @property
    def kind(self) -> tuple[str, ...]:
        """The properties whose change is reported as news: the reason and the resources, not the numbers."""
        return (self.reason, *sorted({s.resource for s in self.shortages}))


class KeptShare(NamedTuple):
    """The `pods` of these `gangs` (keys) of a queue that would be evicted if that didn't leave the queue less than it
    deserves: `left` has for each resource the deserved quantity, the one that would be left, and the difference."""

    queue: str
    pods: int
    gangs: Sequence[str]
    left: Sequence[Shortage]

    def explain(self, blocker: Blocker) -> Blocker:
        """The blocker with this obstacle before the gang's shortage."""
        obstacle = keeps_share(
            queue=self.queue,
            pods=self.pods,
            gangs=self.gangs,
            left=[(s.resource, s.available, s.requested, s.short_by) for s in self.left],
        )
        text = f"{obstacle}; {blocker.text}" if blocker.text else obstacle
        return replace(blocker, reason=WaitReason.RECLAIM_BLOCKED, text=text)
