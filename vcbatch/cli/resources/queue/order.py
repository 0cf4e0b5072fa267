"""The hierarchy of queues, for operations that start with the leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vcbatch.cli.base.fields import name_of
from vcbatch.cli.resources.queue.usage import parent_of

Json = dict[str, Any]


def all_below(name: str, queues: Iterable[Json]) -> list[str]:
    """The names of the queues below this one, at any depth, sorted."""
    parents = {name_of(queue): parent_of(queue) for queue in queues}
    found = {name}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {name})


def lowest_first(queues: Sequence[Json]) -> list[Json]:
    """The same queues, each after all those below it; otherwise in their order."""
    below = {name_of(queue): len(all_below(name_of(queue), queues)) for queue in queues}
    return sorted(queues, key=lambda queue: below[name_of(queue)])
