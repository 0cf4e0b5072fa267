"""Policies in which a gang of low priority may have pods of one of high priority evicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from vcbatch.scheduler.combining import overrides
from vcbatch.scheduler.policy.switches import Switch

if TYPE_CHECKING:
    from vcbatch.scheduler.policy.policy import Tier

PREEMPT: Final = "preempt"
_PRIORITY: Final = "priority"


def priority_inversions(tiers: Sequence[Tier]) -> Iterator[str]:
    """A warning for each plugin that answers `preempt` in a tier without `priority`, in which all that answer only keep
    some candidates from being evicted (`KEEPS_VICTIMS`). The first tier that names victims decides, so that priority
    isn't asked, or is overruled where it names nobody."""
    answering = [
        [
            (position, option)
            for position, option in enumerate(tier.plugins)
            if option.enabled(Switch.PREEMPTABLE) and overrides(option.cls, "preemptable")
        ]
        for tier in tiers
    ]
    home = next((i for i, tier in enumerate(answering) if any(o.name == _PRIORITY for _, o in tier)), None)
    if home is None:
        return
    for i, tier in enumerate(answering):
        if i == home or not all(option.cls.KEEPS_VICTIMS for _, option in tier):
            continue
        for position, option in tier:
            yield (
                f"policy.tiers[{i}].plugins[{position}].name: {option.name} should be in the tier of {_PRIORITY} "
                f"(policy.tiers[{home}]), or have {Switch.PREEMPTABLE}: false; in this tier it lets {PREEMPT} evict "
                "gangs of higher priority"
            )
