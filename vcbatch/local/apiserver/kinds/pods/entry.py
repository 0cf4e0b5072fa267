"""The `pods` and `bindings` resources."""

from __future__ import annotations

from typing import Any

from vcbatch.api import field_errors
from vcbatch.api.names import MIRROR_POD, POD_DELETION_COST
from vcbatch.api.podspec.amounts import service_class
from vcbatch.api.podspec.defaults import pod_defaults, spec_defaults
from vcbatch.api.podspec.spec import spec_errors
from vcbatch.api.resources import PODS, Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.pods import admission, limits, quota, update
from vcbatch.local.apiserver.kinds.pods.table import COLUMNS, row_conditions
from vcbatch.local.apiserver.kinds.pods.warnings import pod_warnings
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.subresources import POD_HANDLERS, POD_SUBRESOURCE_KINDS, POD_SUBRESOURCES, bind
from vcbatch.local.apiserver.tables import DEFAULT_COLUMNS, dig

BINDINGS = Resource(group="", version="v1", plural="bindings", kind="Binding")

_SELECTABLE = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)


def _defaults(pod: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = pod.setdefault("spec", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    pod_defaults(spec)
    spec_defaults(spec)


def _prepare(pod: Json, old: Json | None, ctx: RequestContext) -> None:
    spec = pod["spec"]
    if old is not None:
        if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        return
    admission.admit(pod, ctx)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status: Json = {"phase": "Pending", "qosClass": service_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [_gated()]
    pod["status"] = status


def _gated() -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _check(pod: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = pod.get("spec") or {}
    found = _annotation_errors(pod, spec)
    found += spec_errors(spec, "spec", pod_name=dig(pod, "metadata", "name") or "", is_pod=True)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            image = container.get("image", "")
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                found.append(field_errors.invalid(f"spec.{kind}[{index}].image", image, detail))
    if old is None:
        if spec.get("ephemeralContainers"):
            found.append(field_errors.forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            detail = "cannot be set until all schedulingGates have been cleared"
            found.append(field_errors.forbidden("spec.nodeName", detail))
    return found


def _annotation_errors(pod: Json, spec: Json) -> list[FieldError]:
    annotations = dig(pod, "metadata", "annotations") or {}
    found: list[FieldError] = []
    if MIRROR_POD in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.append(field_errors.invalid(f"metadata.annotations[{MIRROR_POD}]", annotations[MIRROR_POD], detail))
    cost = annotations.get(POD_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        found.append(
            field_errors.invalid(f"metadata.annotations[{POD_DELETION_COST}]", cost, "must be a 32bit integer")
        )
    return found


_INT32_DIGITS = 10


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if (
        len(digits) > _INT32_DIGITS
        or not digits.isascii()
        or not digits.isdigit()
        or (len(digits) > 1 and digits[0] == "0")
    ):
        return False
    return -(2**31) <= int(text) < 2**31


def _admit(pod: Json, ctx: RequestContext) -> None:
    limits.refuse_out_of_limits(pod, ctx)
    quota.refuse_over_quota(pod, ctx)


def _change(pod: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return update.update_errors(pod, old or {})


def _status_check(pod: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return update.status_errors(pod, old or {})


class _PodStrategy(BuiltIn):
    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        BuiltIn.default(self, obj, old, ctx)
        if ctx.subresource == "status" and old is not None and not dig(obj, "status", "qosClass"):
            obj["status"]["qosClass"] = dig(old, "status", "qosClass") or ""


def _grace_period(pod: Json, asked: int | None) -> int | None:
    """The grace period of a deletion in seconds: the requested one, else the pod's own; 0 for a pod that never was on a
    node or has ended. Source: kubernetes `pkg/registry/core/pod`, `CheckGracefulDelete`."""
    period = asked
    if period is None:
        period = dig(pod, "spec", "terminationGracePeriodSeconds")
    period = 30 if period is None else max(period, 1) if period < 0 else period
    if not dig(pod, "spec", "nodeName") or dig(pod, "status", "phase") in ("Failed", "Succeeded"):
        return 0
    return period


def _field_values(pod: Json) -> dict[str, str]:
    values: dict[str, Any] = {path: dig(pod, *path.split(".")) or "" for path in _SELECTABLE}
    addresses = dig(pod, "status", "podIPs") or []
    values["status.podIP"] = addresses[0].get("ip", "") if addresses else dig(pod, "status", "podIP") or ""
    values["status.podIPs"] = ",".join(address.get("ip", "") for address in addresses)
    values["spec.hostNetwork"] = str(bool(dig(pod, "spec", "hostNetwork"))).lower()
    return values


def served() -> list[Served]:
    """The entries of this package."""
    pods = Served(
        resource=PODS,
        singular="pod",
        short_names=("po",),
        categories=("all",),
        strategy=_PodStrategy(
            type_name="Pod",
            defaults=_defaults,
            prepare=_prepare,
            check=_check,
            check_update=_change,
            check_status=_status_check,
            admit=_admit,
            warn=pod_warnings,
            update_first=False,
            has_status=True,
            generation=True,
        ),
        columns=COLUMNS,
        subresources=POD_SUBRESOURCES,
        handlers=POD_HANDLERS,
        subresource_kinds=POD_SUBRESOURCE_KINDS,
        selectable_fields=_SELECTABLE,
        field_values=_field_values,
        grace_period=_grace_period,
        returns_deleted=True,
        row_conditions=row_conditions,
    )
    bindings = Served(
        resource=BINDINGS,
        singular="binding",
        strategy=BuiltIn(type_name="Binding"),
        columns=DEFAULT_COLUMNS,
        verbs=("create",),
        handlers={"": bind},
    )
    return [pods, bindings]
