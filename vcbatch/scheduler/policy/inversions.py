"""Scheduler configurations whose tiers let pods be evicted that another plugin was to protect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from vcbatch.scheduler.framework.combining import overrides
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import PluginOption, Tier
from vcbatch.scheduler.framework.switches import Switch

PREEMPT: Final = "preempt"
RECLAIM: Final = "reclaim"
_PRIORITY: Final = "priority"
_SHARES: Final = ("capacity", "proportion")

_Answering = Sequence[Sequence[tuple[int, "PluginOption"]]]


def priority_inversions(tiers: Sequence[Tier]) -> Iterator[str]:
    """A warning for each plugin that takes part in `preempt` in a tier without `priority`, in which all plugins only
    protect some candidates (`KEEPS_VICTIMS`). The first tier that returns victims decides, so that priority isn't
    called, or is overruled if it returns none."""
    return _strays(
        _answering(tiers, Switch.PREEMPTABLE, "preemptable"),
        (_PRIORITY,),
        Switch.PREEMPTABLE,
        f"lets {PREEMPT} evict gangs of higher priority",
    )


def share_inversions(tiers: Sequence[Tier]) -> Iterator[str]:
    """A warning for each such plugin in `reclaim`, in a tier without the plugin that knows deserved shares, `capacity`
    or `proportion`."""
    return _strays(
        _answering(tiers, Switch.RECLAIMABLE, "reclaimable"),
        _SHARES,
        Switch.RECLAIMABLE,
        f"lets {RECLAIM} evict pods of queues that use no more than they deserve",
    )


def _answering(tiers: Sequence[Tier], switch: Switch, method: str) -> _Answering:
    """By tier, the plugins that are called, with their positions."""
    return [
        [
            (position, option)
            for position, option in enumerate(tier.plugins)
            if option.enabled(switch) and overrides(_class_of(option), method)
        ]
        for tier in tiers
    ]


def _class_of(option: PluginOption) -> type[Plugin]:
    return option.cls.of_mode(hierarchical=option.enabled(Switch.HIERARCHY))


def _strays(answering: _Answering, deciding: Sequence[str], switch: Switch, effect: str) -> Iterator[str]:
    """A warning for each plugin in a tier without any of the `deciding` ones, in which all plugins only protect
    candidates."""
    home = next(
        ((i, option.name) for i, tier in enumerate(answering) for _, option in tier if option.name in deciding), None
    )
    if home is None:
        return
    at, name = home
    for i, tier in enumerate(answering):
        if i == at or not all(option.cls.KEEPS_VICTIMS for _, option in tier):
            continue
        for position, option in tier:
            yield (
                f"policy.tiers[{i}].plugins[{position}].name: {option.name} should be in the tier of {name} "
                f"(policy.tiers[{at}]), or have {switch}: false; in this tier it {effect}"
            )
