"""The pods of Kubernetes' own workloads: their creation from a template, and what their states count as."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.pod import TERMINAL_PHASES, Pod
from vcbatch.api.reasons import PodConditionType
from vcbatch.api.resources import PODS
from vcbatch.api.timestamps import parse_time
from vcbatch.core.workload.ownership import Owner

# No vowels and no characters that can be mistaken for another (kubernetes `apimachinery/pkg/util/rand`).
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
LONGEST_STEM: Final = 58
"""A generated suffix has five letters, and a generated name at most 63 (`apiserver/pkg/storage/names`)."""
_HASH_DIGITS: Final = 10


def is_over(pod: Pod) -> bool:
    """Whether all its containers have ended for good."""
    return pod.status.phase in TERMINAL_PHASES


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted and hasn't finished yet."""
    return pod.metadata.deletion_timestamp is not None and not is_over(pod)


def is_active(pod: Pod) -> bool:
    """Whether it counts as a replica."""
    return pod.metadata.deletion_timestamp is None and not is_over(pod)


def ready_since(pod: Pod) -> datetime | None:
    """When it became ready; None where it isn't ready, and the earliest possible time where the time is missing."""
    for condition in pod.status.conditions or ():
        if condition.type == PodConditionType.READY:
            if condition.status != "True":
                return None
            since = condition.last_transition_time
            return parse_time(since) if since else _LONG_AGO
    return None


_LONG_AGO: Final = parse_time("1970-01-01T00:00:00Z")


def is_ready(pod: Pod) -> bool:
    return ready_since(pod) is not None


def available_at(pod: Pod, min_ready_seconds: int) -> datetime | None:
    """When it is, or became, ready for `min_ready_seconds`; None while it isn't ready."""
    since = ready_since(pod)
    return None if since is None else since + timedelta(seconds=min_ready_seconds)


def is_available(pod: Pod, min_ready_seconds: int, *, now: datetime) -> bool:
    """Whether it has been ready for `min_ready_seconds`."""
    moment = available_at(pod, min_ready_seconds)
    return moment is not None and moment <= now


def next_available(pods: Iterable[Pod], min_ready_seconds: int, *, now: datetime) -> datetime | None:
    """When the next of the ready pods counts as available."""
    if not min_ready_seconds:
        return None
    moments = (available_at(pod, min_ready_seconds) for pod in pods)
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def pod_body(
    owner: Owner, template: Json, *, name: str, generate_name: str = "", labels: Mapping[str, str] | None = None
) -> Json:
    """A pod from the template, with `labels` over the template's."""
    given = part(template, "metadata")
    metadata: Json = {
        "name": name,
        "namespace": owner.metadata.namespace,
        "labels": {**part(given, "labels"), **(labels or {})},
        "ownerReferences": [owner.reference],
    }
    if generate_name:
        metadata["generateName"] = generate_name
    for key in ("annotations", "finalizers"):
        if given.get(key):
            metadata[key] = copy.deepcopy(given[key])
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": metadata,
        "spec": copy.deepcopy(part(template, "spec")),
    }


def free_names(stem: str, seed: str, taken: Callable[[str], bool]) -> Iterator[str]:
    """An endless sequence of names with that stem and a suffix of five letters, in an order that `seed` determines,
    without those that are `taken`. A repeated decision on the same snapshot gets the same names, so that no pod is
    created twice."""
    given: set[str] = set()
    number = 0
    while True:
        name = stem[:LONGEST_STEM] + _word(f"{seed}/{number}")
        number += 1
        if name not in given and not taken(name):
            given.add(name)
            yield name


def _word(text: str) -> str:
    value = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    letters: list[str] = []
    for _ in range(5):
        value, letter = divmod(value, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def content_hash(text: str) -> str:
    """A short hash of `text` for names and labels, of the letters and the length that Kubernetes uses."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    return "".join(_LETTERS[int(digit)] for digit in f"{number:0{_HASH_DIGITS}d}")
