"""Remedies for a waiting gang as data: each is a change of one object. The scheduler writes them on the PodGroup, where
programs read them.

All remedies of a reason together let the gang start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

CLUSTER: Final = "cluster"
"""The object of a remedy for all nodes together."""


class RemedyAction(StrEnum):
    """The action of a remedy."""

    FREE = "Free"
    """Free this quantity of a resource on a node or in the cluster, or add it there."""
    RAISE = "Raise"
    """Raise a limit (the capability of a queue, the limit of a ResourceQuota) by this quantity of a resource."""
    LOWER = "Lower"
    """Lower the guarantee of a queue by this quantity of a resource."""
    WAIT = "Wait"
    """Wait until a gang has started, or a queue has capacity."""
    OPEN = "Open"
    """Open a queue."""
    CREATE = "Create"
    """Create a missing object, or this number of pods of a gang."""
    CHANGE = "Change"
    """Change or remove a field of an object; of a PodGroup also in its pods."""


class Remedy(NamedTuple):
    """One change. `object` is KIND/NAME or KIND/NAMESPACE/NAME in lower case, `amount` a canonical quantity of
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
"""With more remedies than this, none is written on the PodGroup, since a part of them wouldn't suffice."""


def sentence_of(remedy: Remedy) -> str:
    """A sentence for messages: `free cpu 2 on node/n1`."""
    return _SENTENCES[remedy.action].format_map(remedy._asdict())


def remedy_json(remedy: Remedy) -> dict[str, str]:
    """The fields that aren't empty, by name."""
    return {name: str(value) for name, value in remedy._asdict().items() if value}


def written(remedies: Sequence[Remedy]) -> str:
    """The value of the PodGroup's annotation; empty where there are no remedies, or too many."""
    if not remedies or len(remedies) > _MOST_WRITTEN:
        return ""
    return json.dumps([remedy_json(remedy) for remedy in remedies], separators=(",", ":"))


def read_remedies(text: str) -> list[Remedy]:
    """The remedies in such an annotation; empty where the text doesn't have the format of `written`."""
    try:
        entries: Any = json.loads(text) if text else []
        return [_read(one) for one in cast("list[dict[str, Any]]", entries)]
    except (ValueError, TypeError, AttributeError):
        return []


def _read(entry: dict[str, Any]) -> Remedy:
    known = {name: str(value) for name, value in entry.items() if name in Remedy._fields}
    return Remedy(RemedyAction(known.pop("action", "")), **known)
