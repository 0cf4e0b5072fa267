"""apps/v1, ReplicationControllers and PodTemplates: stored, validated and printed. The controllers of Deployments,
ReplicaSets and StatefulSets are in `vcbatch.runtime.workloads`; the other kinds have none. Source: kubernetes
`pkg/apis/apps`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from vcbatch.api.podspec.template import template_defaults, template_errors
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.kinds.define import (
    SCALE,
    SCALE_KINDS,
    SCALE_PATHS,
    STATUS,
)
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.kinds.workload_errors import (
    controller_errors,
    daemon_set_errors,
    deployment_errors,
    frozen_selector,
    replica_set_errors,
    stateful_set_change,
    stateful_set_errors,
)
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import (
    AGE,
    NAME,
    NONE,
    at,
    column,
    containers_of,
    dig,
    labels_text,
    selector_column,
)


def _apps(plural: str, kind: str) -> Resource:
    return Resource(group="apps", version="v1", plural=plural, kind=kind)


DEPLOYMENTS = _apps("deployments", "Deployment")
REPLICA_SETS = _apps("replicasets", "ReplicaSet")
STATEFUL_SETS = _apps("statefulsets", "StatefulSet")
DAEMON_SETS = _apps("daemonsets", "DaemonSet")
REVISIONS = _apps("controllerrevisions", "ControllerRevision")
REPLICATION_CONTROLLERS = Resource(
    group="", version="v1", plural="replicationcontrollers", kind="ReplicationController"
)
POD_TEMPLATES = Resource(group="", version="v1", plural="podtemplates", kind="PodTemplate")


def _spec(obj: Json) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    return spec  # pyright: ignore[reportUnknownVariableType]


def _deployment_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    template_defaults(spec.setdefault("template", {}))


def _replica_set_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    template_defaults(spec.setdefault("template", {}))
    obj.setdefault("status", {}).setdefault("replicas", 0)


def _controller_defaults(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    spec = _spec(obj)
    labels = dig(spec, "template", "metadata", "labels") or {}
    if labels:
        spec.setdefault("selector", dict(labels))
        metadata = obj.setdefault("metadata", {})
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    _replica_set_defaults(obj, old, ctx)


def _stateful_set_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    update = spec.setdefault("updateStrategy", {})
    if not update.get("type"):
        update["type"] = "RollingUpdate"
    if update["type"] == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")
    template_defaults(spec.setdefault("template", {}))
    status = obj.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def _daemon_set_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = _spec(obj)
    spec.setdefault("revisionHistoryLimit", 10)
    update = spec.setdefault("updateStrategy", {})
    if not update.get("type"):
        update["type"] = "RollingUpdate"
    if update["type"] == "RollingUpdate":
        rolling = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    template_defaults(spec.setdefault("template", {}))
    status = obj.setdefault("status", {})
    for key in ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"):
        status.setdefault(key, 0)


def _ratio(obj: Json, _now: datetime) -> str:
    return f"{dig(obj, 'status', 'readyReplicas') or 0}/{dig(obj, 'spec', 'replicas') or 0}"


def _number(name: str, *path: str) -> Any:
    return column(name, at(*path, default=0))


_TEMPLATE = ("spec", "template", "spec", "containers")
_REPLICAS_COLUMNS = (
    NAME,
    _number("Desired", "spec", "replicas"),
    _number("Current", "status", "replicas"),
    _number("Ready", "status", "readyReplicas"),
    AGE,
    *containers_of(*_TEMPLATE),
)
_DAEMON_SET_COLUMNS = (
    NAME,
    _number("Desired", "status", "desiredNumberScheduled"),
    _number("Current", "status", "currentNumberScheduled"),
    _number("Ready", "status", "numberReady"),
    _number("Up-to-date", "status", "updatedNumberScheduled"),
    _number("Available", "status", "numberAvailable"),
    column("Node Selector", lambda obj, _now: labels_text(dig(obj, "spec", "template", "spec", "nodeSelector"))),
    AGE,
    *containers_of(*_TEMPLATE),
    selector_column("spec", "selector"),
)


def _entry(
    resource: Resource,
    *,
    strategy: BuiltIn,
    columns: Sequence[Any],
    short_names: Sequence[str] = (),
    scales: bool = True,
) -> Served:
    return Served(
        resource=resource,
        singular=resource.kind.lower(),
        short_names=short_names,
        categories=("all",),
        strategy=strategy,
        columns=columns,
        subresources=SCALE if scales else STATUS,
        subresource_kinds=SCALE_KINDS if scales else {},
        scale=SCALE_PATHS if scales else None,
    )


def _controller_owner(obj: Json, _now: datetime) -> str:
    for owner in dig(obj, "metadata", "ownerReferences") or ():
        if owner.get("controller"):
            group, _, _ = str(owner.get("apiVersion", "")).rpartition("/")
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
    return NONE


def _status(**fields: int) -> Callable[[], Json]:
    return lambda: dict(fields)


def _replicated() -> list[Served]:
    return [
        _entry(
            DEPLOYMENTS,
            short_names=("deploy",),
            strategy=BuiltIn(
                type_name="Deployment",
                defaults=_deployment_defaults,
                check=deployment_errors,
                check_update=frozen_selector,
                update_first=False,
                has_status=True,
                generation=True,
                annotations_generate=True,
            ),
            columns=(
                NAME,
                column("Ready", _ratio),
                _number("Up-to-date", "status", "updatedReplicas"),
                _number("Available", "status", "availableReplicas"),
                AGE,
                *containers_of(*_TEMPLATE),
                selector_column("spec", "selector"),
            ),
        ),
        _entry(
            REPLICA_SETS,
            short_names=("rs",),
            strategy=BuiltIn(
                type_name="ReplicaSet",
                defaults=_replica_set_defaults,
                check=replica_set_errors,
                check_update=frozen_selector,
                update_first=False,
                has_status=True,
                initial_status=_status(replicas=0),
                generation=True,
            ),
            columns=(*_REPLICAS_COLUMNS, selector_column("spec", "selector")),
        ),
        _entry(
            STATEFUL_SETS,
            short_names=("sts",),
            strategy=BuiltIn(
                type_name="StatefulSet",
                defaults=_stateful_set_defaults,
                check=stateful_set_errors,
                check_update=stateful_set_change,
                has_status=True,
                initial_status=_status(replicas=0, availableReplicas=0),
                generation=True,
            ),
            columns=(NAME, column("Ready", _ratio), AGE, *containers_of(*_TEMPLATE)),
        ),
        _entry(
            REPLICATION_CONTROLLERS,
            short_names=("rc",),
            strategy=BuiltIn(
                type_name="ReplicationController",
                defaults=_controller_defaults,
                check=controller_errors,
                has_status=True,
                initial_status=_status(replicas=0),
                generation=True,
            ),
            columns=(
                *_REPLICAS_COLUMNS,
                column("Selector", lambda obj, _now: labels_text(dig(obj, "spec", "selector")), wide=True),
            ),
        ),
    ]


def served() -> list[Served]:
    return [
        *_replicated(),
        _entry(
            DAEMON_SETS,
            short_names=("ds",),
            scales=False,
            strategy=BuiltIn(
                type_name="DaemonSet",
                defaults=_daemon_set_defaults,
                check=daemon_set_errors,
                check_update=frozen_selector,
                update_first=False,
                has_status=True,
                generation=True,
            ),
            columns=_DAEMON_SET_COLUMNS,
        ),
        Served(
            resource=REVISIONS,
            singular="controllerrevision",
            strategy=BuiltIn(type_name="ControllerRevision"),
            columns=(
                NAME,
                column("Controller", _controller_owner),
                column("Revision", at("revision", default=0)),
                AGE,
            ),
        ),
        Served(
            resource=POD_TEMPLATES,
            singular="podtemplate",
            strategy=BuiltIn(
                type_name="PodTemplate",
                generation=True,
                defaults=lambda obj, _old, _ctx: template_defaults(obj.setdefault("template", {})),
                check=lambda obj, _old, _ctx: template_errors(obj.get("template") or {}, "template"),
            ),
            columns=(
                NAME,
                column("Containers", containers_of("template", "spec", "containers")[0].cell),
                column("Images", containers_of("template", "spec", "containers")[1].cell),
                column("Pod Labels", lambda obj, _now: labels_text(dig(obj, "template", "metadata", "labels"))),
            ),
            returns_deleted=True,
        ),
    ]
