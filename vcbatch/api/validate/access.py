"""The namespaces that may submit to a queue: its annotation `vcbatch.dev/allowed-namespaces`, and its ancestors'.

A comma-separated list of namespaces; `*` stands for any characters, so that `team-*` matches every name with that
prefix. Without the annotation every namespace may submit. Every queue on the path to the root that has the annotation
must allow the namespace, so that the owner of a subtree can restrict access to it, and not extend it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from vcbatch.api.names import ALLOWED_NAMESPACES
from vcbatch.api.queue import Queue
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.lookup import Lookup

MOST_ALLOWED = 1000
_PATTERN = re.compile(r"[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?", re.ASCII)
_FIELD = f"metadata.annotations[{ALLOWED_NAMESPACES}]"


def allowed_namespaces(queue: Queue) -> list[str] | None:
    """The patterns of the queue's annotation; None where it has none."""
    text = queue.metadata.annotations.get(ALLOWED_NAMESPACES)
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def annotation_errors(queue: Queue) -> Iterator[ValidationError]:
    """Errors of the annotation: it has to be a list of names and patterns."""
    patterns = allowed_namespaces(queue) or []
    if len(patterns) > MOST_ALLOWED:
        yield ValidationError(
            _FIELD, f"{_FIELD}: {len(patterns)} namespaces, want at most {MOST_ALLOWED}", Cause.TOO_MANY
        )
    for pattern in patterns[:MOST_ALLOWED]:
        if _PATTERN.fullmatch(pattern) is None:
            want = "want names of namespaces, in which * stands for any characters"
            yield ValidationError(_FIELD, f'{_FIELD}: Invalid value: "{pattern}": {want}')


def namespace_errors(name: str, namespace: str, lookup: Lookup, field: str) -> Iterator[ValidationError]:
    """Errors where `namespace` may not submit to the queue `name`. A queue that doesn't exist is covered by another
    rule."""
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        queue = lookup.queue(name)
        if queue is None:
            return
        patterns = allowed_namespaces(queue)
        if patterns is not None and not any(fnmatch.fnmatchcase(namespace, pattern) for pattern in patterns):
            allowed = ", ".join(patterns[:10]) or "nobody"
            text = f"namespace `{namespace}` may not submit to queue `{queue.name}`"
            yield ValidationError(
                field, f"{text}, whose annotation {ALLOWED_NAMESPACES} allows {allowed}", Cause.FORBIDDEN
            )
            return
        name = queue.spec.parent
