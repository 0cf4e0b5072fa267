"""The snapshot on which a Deployment is decided, and the roles of its ReplicaSets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.apps import Deployment, ReplicaSet
from vcbatch.api.model import Json
from vcbatch.api.resources import DEPLOYMENTS
from vcbatch.core.workload.ownership import Owner
from vcbatch.core.workload.templates import same_template

UNLIMITED: Final = 2**31 - 1
"""As `progressDeadlineSeconds` and as `revisionHistoryLimit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """`replica_sets`: those it controls, and those of its namespace without a controller."""

    deployment: Deployment
    status: Json = field(default_factory=dict[str, Any])
    """Its status as stored."""
    replica_sets: Sequence[ReplicaSet] = ()
    pods: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of unfinished pods, terminating ones included, by the ReplicaSet's UID."""
    taken: Callable[[str], bool] = lambda _name: False
    """Whether a ReplicaSet with that name exists in its namespace."""
    refusal: str = ""
    """Why the server rejected a ReplicaSet at the last attempt to create one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A Deployment with its ReplicaSets: `new` has the present template, `olds` are sorted by age."""

    deployment: Deployment
    new: ReplicaSet | None
    olds: Sequence[ReplicaSet]

    @property
    def replicas(self) -> int:
        """The number of wanted pods: 1 where the spec doesn't set it."""
        given = self.deployment.spec.replicas
        return 1 if given is None else given

    @property
    def all(self) -> Sequence[ReplicaSet]:
        """Every ReplicaSet, the oldest first and the newest last."""
        return [*self.olds, *([self.new] if self.new is not None else [])]

    @property
    def active(self) -> Sequence[ReplicaSet]:
        """The ReplicaSets with a size above zero."""
        return [each for each in self.all if each.size > 0]


def deployment_owner(deployment: Deployment) -> Owner:
    return Owner(resource=DEPLOYMENTS, metadata=deployment.metadata, selector=deployment.spec.selector)


def family_of(deployment: Deployment, mine: Sequence[ReplicaSet]) -> Family:
    """Of several ReplicaSets with the present template, the oldest counts."""
    by_age = sorted(mine, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
    new = next((each for each in by_age if same_template(each.spec.template, deployment.spec.template)), None)
    return Family(deployment=deployment, new=new, olds=[each for each in by_age if each is not new])


def revision_of(annotations: Mapping[str, str] | None) -> int:
    """The number of the revision; 0 where there is none."""
    return number_of(annotations, names.REVISION) or 0


def number_of(annotations: Mapping[str, str] | None, key: str) -> int | None:
    """The number in an annotation; None where it is missing or malformed."""
    text = (annotations or {}).get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
