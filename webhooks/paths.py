"""The resource and the operations of each URL path, as Volcano's webhook manager serves them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from vcbatch.api.admission import RESIZE, Operation
from vcbatch.api.resources import (
    COMMANDS,
    CRONJOBS,
    HYPERNODES,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    PODGROUPS,
    PODS,
    QUEUES,
    Resource,
)

CREATE, UPDATE, DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One webhook. `mutates`: it answers with a patch; else it validates."""

    resource: Resource
    operations: frozenset[Operation]
    mutates: bool
    subresources: frozenset[str] = frozenset({""})
    """The subresources that it validates; the empty string is the whole object."""

    @property
    def url(self) -> str:
        """The path, such as `/jobs/mutate`."""
        return f"/{self.resource.plural}/{'mutate' if self.mutates else 'validate'}"

    @property
    def expectation(self) -> str:
        """What the path accepts, for the answer to any other request."""
        resource = self.resource
        operations = ", ".join(sorted(self.operations))
        return f"{self.url} takes {operations} of {resource.plural}.{resource.group}".rstrip(".")


def _path(
    resource: Resource, *operations: Operation, mutates: bool = False, subresources: frozenset[str] = frozenset({""})
) -> Path:
    return Path(resource=resource, operations=frozenset(operations), mutates=mutates, subresources=subresources)


PATHS: Final = MappingProxyType(
    {
        path.url: path
        for path in (
            # Volcano sets defaults of jobs on CREATE only; then applying the same file again is a forbidden change.
            _path(JOBS, CREATE, UPDATE, mutates=True),
            _path(JOBS, CREATE, UPDATE),
            _path(QUEUES, CREATE, mutates=True),
            _path(QUEUES, CREATE, UPDATE, DELETE),
            _path(PODGROUPS, CREATE, mutates=True),
            # Volcano validates new ones only; then users can move theirs to a queue that would have rejected it.
            _path(PODGROUPS, CREATE, UPDATE),
            _path(PODS, CREATE, mutates=True),
            # Volcano validates new ones only; then a pod's queue can be changed before its PodGroup is created. It
            # isn't called for resizes either: then a pod can be resized beyond its queue's limit.
            _path(PODS, CREATE, UPDATE, subresources=frozenset({"", RESIZE})),
            _path(JOBFLOWS, CREATE, UPDATE),
            # Volcano validates none: then a user who may not submit to a queue can do so through a flow.
            _path(JOBTEMPLATES, CREATE, UPDATE),
            _path(CRONJOBS, CREATE, UPDATE),
            _path(HYPERNODES, CREATE, UPDATE),
            # Volcano validates none: then every user who may create Commands can open and close every queue.
            _path(COMMANDS, CREATE, UPDATE),
        )
    }
)
"""The webhooks by URL path."""
