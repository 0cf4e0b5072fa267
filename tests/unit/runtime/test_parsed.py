"""Models of stored objects are read once a version, and only so many are kept."""

from __future__ import annotations

import pytest

from vcbatch.api.model import MalformedObject
from vcbatch.api.queue import Queue
from vcbatch.interfaces.api import Json
from vcbatch.runtime.caches.parsed import Parsed


def _queue(name: str, *, weight: object = 1) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": {"weight": weight}}


def test_an_object_is_read_once_until_another_takes_its_place() -> None:
    queues = Parsed(Queue.parse)
    stored, changed = _queue("a"), _queue("a", weight=2)
    first = queues.of(stored)
    assert queues.of(stored) is first
    assert queues.of(changed).spec.weight == 2
    assert queues.of(stored) is not first, "of each object one version is kept"


def test_those_that_were_asked_for_last_are_kept() -> None:
    queues = Parsed(Queue.parse, remembered=2)
    a, b, c = (_queue(name) for name in "abc")
    known, dropped = queues.of(a), queues.of(b)
    assert queues.of(a) is known
    queues.of(c)
    assert queues.of(a) is known
    assert queues.of(b) is not dropped


def test_what_cant_be_read_is_not_kept() -> None:
    queues = Parsed(Queue.parse)
    for _ in range(2):
        with pytest.raises(MalformedObject, match="weight"):
            queues.of(_queue("a", weight="heavy"))
