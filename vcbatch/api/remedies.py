"""What would let a gang start that waits, as data: each a change of one object. The scheduler writes them on the
PodGroup, and programs read them there.

All remedies of a reason together let the gang start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

CLUSTER: Final = "cluster"
"""As the object of a remedy: all nodes together."""


class RemedyAction(StrEnum):
    """What is to be done."""

    FREE = "Free"
    """Free so much of a resource on a node or in the cluster, or add it there."""
    RAISE = "Raise"
    """Raise a limit (the capability of a queue, what a ResourceQuota allows) by so much of a resource."""
    LOWER = "Lower"
    """Lower the guarantee of a queue by so much of a resource."""
    WAIT = "Wait"
    """Wait until a gang is through, or a queue has room."""
    OPEN = "Open"
    """Open a queue."""
    CREATE = "Create"
    """Create an object that is missing, or so many pods of a gang."""
    CHANGE = "Change"
    """Change, or leave out, a field of an object; of a PodGroup also in its pods."""


class Remedy(NamedTuple):
    """One change. `object` is KIND/NAME or KIND/NAMESPACE/NAME in small letters, `amount` a canonical quantity of
    `resource`, or a number of pods."""

    action: RemedyAction
    object: str
    resource: str = ""
    amount: str = ""
    field: str = ""


_SENTENCES: Final = {
    RemedyAction.FREE: "free {resource} {amount} on {object}",
    RemedyAction.RAISE: "raise {resource} of {object} by {amount}",
    RemedyAction.LOWER: "lower guaranteed {resource} of {object} by {amount}",
    RemedyAction.WAIT: "wait for {object}",
    RemedyAction.OPEN: "open {object}",
    RemedyAction.CREATE: "create {amount} {object}",
    RemedyAction.CHANGE: "change {field} of {object}",
}
_MOST_WRITTEN: Final = 32
"""Of more remedies than this none is written on the PodGroup, as some of them would not do."""


def sentence_of(remedy: Remedy) -> str:
    """For people: `free cpu 2 on node/n1`."""
    return _SENTENCES[remedy.action].format_map(remedy._asdict())


def remedy_json(remedy: Remedy) -> dict[str, str]:
    """By the names of the fields, those that say something."""
    return {name: str(value) for name, value in remedy._asdict().items() if value}


def written(remedies: Sequence[Remedy]) -> str:
    """As an annotation of the PodGroup; empty where there is nothing to write."""
    if not remedies or len(remedies) > _MOST_WRITTEN:
        return ""
    return json.dumps([remedy_json(remedy) for remedy in remedies], separators=(",", ":"))


def read_remedies(text: str) -> list[Remedy]:
    """The remedies of such an annotation; none where its text isn't in the form of `written`."""
    try:
        entries: Any = json.loads(text) if text else []
        return [_read(one) for one in cast("list[dict[str, Any]]", entries)]
    except (ValueError, TypeError, AttributeError):
        return []


def _read(entry: dict[str, Any]) -> Remedy:
    known = {name: str(value) for name, value in entry.items() if name in Remedy._fields}
    return Remedy(RemedyAction(known.pop("action", "")), **known)
