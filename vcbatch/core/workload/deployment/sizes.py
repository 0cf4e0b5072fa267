"""The next sizes of a Deployment's ReplicaSets (kubernetes `pkg/controller/deployment`).

One step at a time: the decision on the next snapshot may go further. A rollout keeps as many pods available as
`maxUnavailable` requires, and at most as many in total as `maxSurge` allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.api import names
from vcbatch.api.apps import ReplicaSet, StrategyType
from vcbatch.core.workload.allowance import allowance
from vcbatch.core.workload.deployment.view import Family, number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`by_uid` has the ReplicaSets whose size is set now, including those whose size doesn't change. `create`: the size
    of the ReplicaSet for the present template, where it is to be created."""

    by_uid: Mapping[str, int] = field(default_factory=dict[str, int])
    create: int | None = None


def next_sizes(family: Family, pods: Mapping[str, int]) -> Sizes:
    """`pods`: as in `DeploymentView`. A scaled Deployment is first brought to its new size with its present templates,
    and a paused one does nothing more than that."""
    if family.deployment.spec.paused or _was_scaled(family):
        return Sizes(by_uid={each.metadata.uid: each.size for each in family.active} | _rescaled(family))
    if family.deployment.spec.strategy.type == StrategyType.RECREATE:
        return _recreated(family, pods)
    return _rolled(family)


def _was_scaled(family: Family) -> bool:
    known = (number_of(each.metadata.annotations, names.DESIRED_REPLICAS) for each in family.active)
    return any(size is not None and size != family.replicas for size in known)


def _recreated(family: Family, pods: Mapping[str, int]) -> Sizes:
    """The sizes with the strategy Recreate: no pod of the new template before the last one of an old template is
    deleted."""
    if any(each.size for each in family.olds):
        return Sizes(by_uid={each.metadata.uid: 0 for each in family.olds if each.size})
    new_uid = family.new.metadata.uid if family.new is not None else ""
    left = sum(count for uid, count in pods.items() if uid != new_uid)
    if left or any(each.status.replicas for each in family.olds):
        return Sizes()
    if family.new is None:
        return Sizes(create=family.replicas)
    return Sizes(by_uid={new_uid: family.replicas} if family.new.size != family.replicas else {})


def _rolled(family: Family) -> Sizes:
    room = _room(family)
    if family.new is None:
        return Sizes(create=min(room, family.replicas))
    size = family.new.size
    grown = family.replicas if size > family.replicas else size + min(room, family.replicas - size)
    if grown != size:
        return Sizes(by_uid={family.new.metadata.uid: grown})
    return Sizes(by_uid=_shrunk(family, family.new))


def _room(family: Family) -> int:
    """How many pods may be created besides those that are wanted already."""
    surge = allowance(family.deployment.spec.strategy, family.replicas).surge
    return max(family.replicas + surge - sum(each.size for each in family.all), 0)


def _shrunk(family: Family, new: ReplicaSet) -> dict[str, int]:
    """The sizes of old ReplicaSets: unavailable pods are removed first, then as many as may be missing."""
    unavailable = allowance(family.deployment.spec.strategy, family.replicas).unavailable
    least = family.replicas - unavailable
    not_yet = max(new.size - new.status.available_replicas, 0)
    spare = sum(each.size for each in family.all) - least - not_yet
    sizes: dict[str, int] = {}
    if spare <= 0:
        return sizes
    for old in family.olds:
        useless = max(min(spare, old.size - old.status.available_replicas), 0)
        spare -= useless
        sizes[old.metadata.uid] = old.size - useless
    serving = sum(each.status.available_replicas for each in family.all) - least
    for old in family.olds:
        given = max(min(serving, sizes[old.metadata.uid]), 0)
        serving -= given
        sizes[old.metadata.uid] -= given
    return {old.metadata.uid: sizes[old.metadata.uid] for old in family.olds if sizes[old.metadata.uid] != old.size}


def _rescaled(family: Family) -> dict[str, int]:
    """The sizes in the middle of a rollout: each ReplicaSet gets its share of the new size."""
    only = _only_one(family)
    if only is not None:
        return {only.metadata.uid: family.replicas}
    if _is_saturated(family):
        return {each.metadata.uid: 0 for each in family.olds if each.size}
    if family.deployment.spec.strategy.type == StrategyType.RECREATE:
        return {}
    return _in_proportion(family)


def _only_one(family: Family) -> ReplicaSet | None:
    """The only ReplicaSet with a size above zero, or the newest where there is none; None where there are several."""
    if len(family.active) > 1:
        return None
    return next(iter(family.active), family.new or (family.olds[-1] if family.olds else None))


def _is_saturated(family: Family) -> bool:
    new = family.new
    return (
        new is not None
        and new.size == new.status.available_replicas == family.replicas
        and number_of(new.metadata.annotations, names.DESIRED_REPLICAS) == family.replicas
    )


def _in_proportion(family: Family) -> dict[str, int]:
    """The sizes after a change that is distributed in proportion; the rounding difference goes to the largest."""
    most = family.replicas + allowance(family.deployment.spec.strategy, family.replicas).surge
    most = most if family.replicas else 0
    change = most - sum(each.size for each in family.active)
    by_size = _largest_first(family, newest_first=change > 0)
    sizes: dict[str, int] = {}
    shared = 0
    for each in by_size:
        left = change - shared
        wanted = _fraction(each, family, most)
        step = (min if change > 0 else max)(wanted, left) if left else 0
        sizes[each.metadata.uid] = each.size + step
        shared += step
    if by_size:
        first = by_size[0].metadata.uid
        sizes[first] = max(sizes[first] + change - shared, 0)
    return sizes


def _largest_first(family: Family, *, newest_first: bool) -> Sequence[ReplicaSet]:
    by_age = sorted(family.active, key=lambda each: each.metadata.creation_timestamp or "", reverse=newest_first)
    return sorted(by_age, key=lambda each: each.size, reverse=True)


def _fraction(each: ReplicaSet, family: Family, most: int) -> int:
    """The change of a ReplicaSet's size that keeps its share of all pods."""
    if family.replicas == 0:
        return -each.size
    before = number_of(each.metadata.annotations, names.MAX_REPLICAS) or family.deployment.status.replicas
    if not before:
        return 0
    return (2 * each.size * most + before) // (2 * before) - each.size
