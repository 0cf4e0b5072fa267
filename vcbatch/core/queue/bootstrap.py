"""The queues that must exist before the first job: `root`, and `default` below it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vcbatch.api.queue import DEFAULT, ROOT
from vcbatch.api.resources import QUEUES
from vcbatch.core.machine import Create, Decision, Json

_SPECS: Final[dict[str, Json]] = {
    ROOT: {"weight": 1, "reclaimable": False},
    DEFAULT: {"weight": 1, "reclaimable": True, "parent": ROOT},
}


def bootstrap(existing: Collection[str]) -> Decision:
    """Create those of the two queues that aren't among `existing` (names). An existing one isn't changed: the limits of
    `default` are the administrator's. `decide` then opens them."""
    missing = [name for name in _SPECS if name not in existing]
    return Decision(creates=[Create(resource=QUEUES, body=_queue(name)) for name in missing])


def _queue(name: str) -> Json:
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": dict(_SPECS[name]),
    }
