"""Validation of pod updates. Source: kubernetes `pkg/apis/core/validation`, `ValidatePodUpdate`,
`ValidatePodStatusUpdate`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.api.podspec import internal, restarts, scheduling, values
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.pods.specdiff import spec_diff
from vcbatch.local.apiserver.registry import Json

_LARGEST_INT32 = 2**31 - 1
_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ONLY_ADDED = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def update_errors(pod: Json, old: Json) -> list[FieldError]:
    """Errors of a change of a pod through its main resource."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        now, was = spec.get(kind) or [], before.get(kind) or []
        if len(now) != len(was):
            return [*found, field_errors.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
        for index, container in enumerate(now):
            found += _image_errors(container.get("image", ""), f"spec.{kind}[{index}].image")
    deadline, stop = _deadline_errors(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    found += deadline
    if stop:
        return found
    found += _toleration_errors(spec.get("tolerations") or [], before.get("tolerations") or [])
    found += _gate_errors(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if spec == before:
        return found
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        found += _gated_errors(munged, before)
    if munged != before:
        detail = f"pod updates may not change fields other than {_CHANGEABLE}\n{spec_diff(before, munged)}"
        found.append(field_errors.forbidden("spec", detail))
    return found


def _image_errors(image: str, path: str) -> list[FieldError]:
    if not image:
        return [field_errors.required(path)]
    if image.strip() != image:
        return [field_errors.invalid(path, image, "must not have leading or trailing whitespace")]
    return []


def _deadline_errors(now: int | None, was: int | None) -> tuple[list[FieldError], bool]:
    """The errors, and whether Kubernetes stops the validation here."""
    path = "spec.activeDeadlineSeconds"
    if now is None:
        if was is None:
            return [], False
        return [field_errors.invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= now <= _LARGEST_INT32:
        return [field_errors.invalid(path, now, field_errors.between(0, _LARGEST_INT32))], True
    if was is not None and was < now:
        return [field_errors.invalid(path, now, "must be less than or equal to previous value")], True
    return [], False


def _toleration_errors(now: list[Json], was: list[Json]) -> list[FieldError]:
    def rest(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [rest(toleration) for toleration in now]
    if any(rest(toleration) not in kept for toleration in was):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [field_errors.forbidden("spec.tolerations", detail)]
    return scheduling.tolerations_errors(now, "spec.tolerations")


def _gate_errors(now: list[Json], was: list[Json]) -> list[FieldError]:
    known = {gate.get("name") for gate in was}
    return [
        field_errors.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(now)
        if gate.get("name") not in known
    ]


def _munged(spec: Json, before: Json) -> Json:
    """The new spec with all mutable fields set to their old values."""
    munged = copy.deepcopy(spec)
    for kind in ("containers", "initContainers"):
        for container, was in zip(munged.get(kind) or [], before.get(kind) or [], strict=True):
            _put_back(container, was, "image")
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(munged, before, key)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        _put_back(munged, before, "terminationGracePeriodSeconds")
    return munged


def _put_back(target: Json, source: Json, key: str) -> None:
    if key in source:
        target[key] = copy.deepcopy(source[key])
    else:
        target.pop(key, None)


def _gated_errors(munged: Json, before: Json) -> list[FieldError]:
    """Errors of changed node constraints of a pod with scheduling gates: they may only allow fewer nodes."""
    found: list[FieldError] = []
    now, was = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if now != was:
        if any(now.get(key) != value for key, value in was.items()):
            found.append(field_errors.invalid("spec.nodeSelector", munged.get("nodeSelector"), _ONLY_ADDED))
        _put_back(munged, before, "nodeSelector")
    path = ("affinity", "nodeAffinity")
    new_affinity, old_affinity = _at(munged, *path), _at(before, *path)
    if new_affinity != old_affinity:
        found += _affinity_change_errors(new_affinity, old_affinity)
        if before.get("affinity") is None and set(munged.get("affinity") or {}) <= {"nodeAffinity"}:
            munged.pop("affinity", None)
        else:
            _put_back(munged.setdefault("affinity", {}), before.get("affinity") or {}, "nodeAffinity")
    return found


def _at(obj: Any, *path: str) -> Any:
    for key in path:
        obj = (obj or {}).get(key)
    return obj


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _affinity_change_errors(now: Json | None, was: Json | None) -> list[FieldError]:
    required_before = (was or {}).get(_REQUIRED)
    if required_before is None:
        return []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}"
    required_now = (now or {}).get(_REQUIRED)
    if required_now is None:
        detail = "cannot be removed for gated pods"
        return [field_errors.invalid(path, required_now, detail)]
    terms_before = required_before.get("nodeSelectorTerms") or []
    terms_now = required_now.get("nodeSelectorTerms") or []
    place = f"{path}.nodeSelectorTerms"
    if len(terms_before) != len(terms_now) and terms_before:
        return [
            field_errors.invalid(
                place, terms_now, "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
            )
        ]
    found: list[FieldError] = []
    for index, (term, before) in enumerate(zip(terms_now, terms_before, strict=False)):
        for key in ("matchExpressions", "matchFields"):
            kept, given = before.get(key) or [], term.get(key) or []
            if given[: len(kept)] != kept:
                detail = "only additions are allowed (no mutations or deletions)"
                found.append(internal.invalid(f"{place}[{index}]", term, "NodeTerm", detail))
                break
    return found


def status_errors(pod: Json, old: Json) -> list[FieldError]:
    """Errors of a write of a pod's status."""
    status, before = pod.get("status") or {}, old.get("status") or {}
    found: list[FieldError] = []
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            place = f"metadata.conditions[{index}].Type"
            found += field_errors.invalid_each(place, kind, name_rules.qualified_name(kind))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        found += values.subdomain_errors("status.nominatedNodeName", nominated)
    found += field_errors.immutable("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    spec: Json = old.get("spec") or {}
    for key, kind in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        containers = {container.get("name"): container for container in spec.get(kind) or ()}
        found += _transition_errors(status.get(key) or [], before.get(key) or [], f"status.{key}", spec, containers)
    return found + _address_errors(status)


def _transition_errors(
    now: list[Json], was: list[Json], path: str, spec: Json, containers: Mapping[Any, Json]
) -> list[FieldError]:
    """Errors of containers that have terminated, may not restart, and are reported as not terminated."""
    if spec.get("restartPolicy", "Always") == "Always" or restarts.may_restart_all(spec):
        return []
    running = {item.get("name") for item in now if (item.get("state") or {}).get("terminated") is None}
    found: list[FieldError] = []
    for index, before in enumerate(was):
        ended = (before.get("state") or {}).get("terminated")
        container = containers.get(before.get("name"), {})
        if ended is None or restarts.restarts(spec, container, ended.get("exitCode", 0)):
            continue
        if before.get("name") in running:
            detail = "may not be transitioned to non-terminated state"
            found.append(field_errors.forbidden(f"{path}[{index}].state", detail))
    return found


def _address_errors(status: Json) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("podIPs", "hostIPs"):
        entries = status.get(key) or []
        if key == "hostIPs" and entries and status.get("hostIP", "") != entries[0].get("ip", ""):
            detail = "must be equal to `hostIP`"
            found.append(field_errors.invalid(f"status.{key}[0].ip", entries[0].get("ip", ""), detail))
        for index, entry in enumerate(entries):
            found += values.ip_errors(f"status.{key}[{index}]", entry.get("ip", ""))
        families = [":" in entry.get("ip", "") for entry in entries]
        if len(entries) > 2 or len(set(families)) != len(families):
            detail = "may specify no more than one IP for each IP family"
            found.append(field_errors.invalid(f"status.{key}", entries, detail))
    return found
