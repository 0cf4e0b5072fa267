"""Which path judges what: resource and operations, as Volcano's webhook manager serves them."""

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
    """One webhook. `mutates`: it answers with a patch; else it judges."""

    resource: Resource
    operations: frozenset[Operation]
    mutates: bool
    subresources: frozenset[str] = frozenset({""})
    """What of the object is judged: all of it (empty), or what is written to a subresource."""

    @property
    def url(self) -> str:
        """The path, such as `/jobs/mutate`."""
        return f"/{self.resource.plural}/{'mutate' if self.mutates else 'validate'}"

    @property
    def expectation(self) -> str:
        """What the path takes, for who sent something else."""
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
            # Volcano fills jobs in on CREATE only; then a second apply of the same file is a forbidden change.
            _path(JOBS, CREATE, UPDATE, mutates=True),
            _path(JOBS, CREATE, UPDATE),
            _path(QUEUES, CREATE, mutates=True),
            _path(QUEUES, CREATE, UPDATE, DELETE),
            _path(PODGROUPS, CREATE, mutates=True),
            # Volcano judges new ones only; then anybody moves theirs to a queue that wouldn't have taken it.
            _path(PODGROUPS, CREATE, UPDATE),
            _path(PODS, CREATE, mutates=True),
            # Volcano judges new ones only; then the queue of one is changed before its PodGroup is made.
            # It isn't asked about resizes either: then a pod is raised beyond what its queue may use.
            _path(PODS, CREATE, UPDATE, subresources=frozenset({"", RESIZE})),
            _path(JOBFLOWS, CREATE, UPDATE),
            # Volcano asks about none: then whoever may not submit to a queue has a flow do it.
            _path(JOBTEMPLATES, CREATE, UPDATE),
            _path(CRONJOBS, CREATE, UPDATE),
            _path(HYPERNODES, CREATE, UPDATE),
            # Volcano asks about none: then whoever may create Commands opens and closes every queue.
            _path(COMMANDS, CREATE, UPDATE),
        )
    }
)
"""URL path to what is served there."""
