"""Volumes and their classes. Local mode provisions nothing: a claim stays Pending until a client binds it."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api import field_errors, quantities
from vcbatch.api.podspec.claims import access_mode_errors, claim_spec_errors
from vcbatch.api.podspec.internal import internal
from vcbatch.api.resources import CSINODES, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, STORAGECLASSES, Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.pods.specdiff import spec_diff
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, UNSET, Cell, access_modes_text, at, column, count, dig

CSI_DRIVERS = Resource(group="storage.k8s.io", version="v1", plural="csidrivers", kind="CSIDriver", namespaced=False)
ATTACHMENTS = Resource(
    group="storage.k8s.io", version="v1", plural="volumeattachments", kind="VolumeAttachment", namespaced=False
)

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _claim_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("resources", {})
    _same_source(spec)
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _same_source(spec: Json) -> None:
    """Set both `dataSource` and `dataSourceRef` where only one is set, unless it is in another namespace."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)
    elif source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)


def _claim_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return claim_spec_errors(obj.get("spec") or {}, "spec")


_FROZEN_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """Errors of a change of a claim: a bound claim may only grow; an unbound one may also get its volume and its
    class."""
    before, after = dict((old or {}).get("spec") or {}), dict(obj.get("spec") or {})
    size, was = dig(after, "resources", "requests", "storage"), dig(before, "resources", "requests", "storage")
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
    if before.get("storageClassName") is None and after.get("storageClassName"):
        after.pop("storageClassName", None)
    if dig(obj, "status", "phase") == "Bound":
        after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
        if dig(after, "resources", "requests") is not None and was is not None:
            requests = {**after["resources"]["requests"], "storage": was}
            after["resources"] = {**after["resources"], "requests": requests}
    found: list[FieldError] = []
    shown = [internal(spec, "ClaimSpec") for spec in (before, after)]
    if shown[0] != shown[1]:
        difference = spec_diff(before, after, "ClaimSpec")
        found.append(field_errors.forbidden("spec", f"{_FROZEN_CLAIM}\n{difference}"))
    capacity = dig(old, "status", "capacity", "storage") or "0"
    if quantities.compare(size or "0", was or "0") < 0 and quantities.compare(size or "0", capacity) <= 0:
        detail = "field can not be less than status.capacity"
        found.append(field_errors.forbidden("spec.resources.requests.storage", detail))
    return found + field_errors.immutable("volumeMode", after.get("volumeMode"), before.get("volumeMode"))


def _volume_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _volume_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(field_errors.required("spec.accessModes"))
    found += access_mode_errors(modes, "spec.accessModes")
    capacity = spec.get("capacity") or {}
    if not capacity:
        found.append(field_errors.required("spec.capacity"))
    elif "storage" not in capacity or len(capacity) > 1:
        found.append(field_errors.unsupported("spec.capacity", ",".join(sorted(capacity)), ["storage"]))
    for name, size in capacity.items():
        if quantities.compare(size, "0") <= 0:
            found.append(field_errors.invalid(f"spec.capacity[{name}]", str(size), "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in ("Delete", "Recycle", "Retain"):
        found.append(
            field_errors.unsupported("spec.persistentVolumeReclaimPolicy", policy, ["Delete", "Recycle", "Retain"])
        )
    known = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ]
    sources = sorted(key for key in spec if key not in known and spec[key] is not None)
    if not sources:
        found.append(field_errors.required("spec", "must specify a volume type"))
    for key in sources[1:]:
        found.append(field_errors.forbidden(f"spec.{key}", "may not specify more than 1 volume type"))
    return found


def _class_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _class_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    if not obj.get("provisioner"):
        found.append(field_errors.required("provisioner"))
    policy = obj.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        found.append(field_errors.unsupported("reclaimPolicy", policy, ["Delete", "Retain"]))
    mode = obj.get("volumeBindingMode")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        found.append(field_errors.unsupported("volumeBindingMode", mode, ["Immediate", "WaitForFirstConsumer"]))
    return found


def _class_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before = old or {}
    found: list[FieldError] = []
    if (obj.get("parameters") or {}) != (before.get("parameters") or {}):
        found.append(field_errors.forbidden("parameters", "updates to parameters are forbidden."))
    if obj.get("provisioner") != before.get("provisioner"):
        found.append(field_errors.forbidden("provisioner", "updates to provisioner are forbidden."))
    if obj.get("reclaimPolicy") != before.get("reclaimPolicy"):
        found.append(field_errors.forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    found += field_errors.immutable("volumeBindingMode", obj.get("volumeBindingMode"), before.get("volumeBindingMode"))
    return found


def _class_name(obj: Json) -> str:
    annotations = dig(obj, "metadata", "annotations") or {}
    return annotations.get(_CLASS_ANNOTATION) or dig(obj, "spec", "storageClassName") or ""


def _phase(obj: Json, _now: datetime) -> str:
    return "Terminating" if dig(obj, "metadata", "deletionTimestamp") else dig(obj, "status", "phase") or ""


def _claim_ref(obj: Json, _now: datetime) -> str:
    claim = dig(obj, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _when_bound(cell: Cell) -> Cell:
    return lambda obj, now: cell(obj, now) if dig(obj, "spec", "volumeName") else ""


_CLAIM_COLUMNS = (
    NAME,
    column("Status", _phase),
    column("Volume", at("spec", "volumeName")),
    column("Capacity", _when_bound(at("status", "capacity", "storage", default="0"))),
    column("Access Modes", _when_bound(lambda obj, _now: access_modes_text(dig(obj, "status", "accessModes") or ()))),
    column("StorageClass", lambda obj, _now: _class_name(obj)),
    column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
    AGE,
    column("VolumeMode", at("spec", "volumeMode", default=UNSET), wide=True),
)
_VOLUME_COLUMNS = (
    NAME,
    column("Capacity", at("spec", "capacity", "storage")),
    column("Access Modes", lambda obj, _now: access_modes_text(dig(obj, "spec", "accessModes"))),
    column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
    column("Status", _phase),
    column("Claim", _claim_ref),
    column("StorageClass", lambda obj, _now: _class_name(obj)),
    column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
    column("Reason", at("status", "reason")),
    AGE,
    column("VolumeMode", at("spec", "volumeMode", default=UNSET), wide=True),
)


def _class_shown(obj: Json, _now: datetime) -> str:
    annotations = dig(obj, "metadata", "annotations") or {}
    marks = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    default = " (default)" if any(annotations.get(mark) == "true" for mark in marks) else ""
    return f"{dig(obj, 'metadata', 'name')}{default}"


_CLASS_COLUMNS = (
    column("Name", _class_shown, text_format="name"),
    column("Provisioner", at("provisioner")),
    column("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
    column("VolumeBindingMode", at("volumeBindingMode", default=UNSET)),
    column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
    AGE,
)


def _driver_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(key, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _token_requests(obj: Json, _now: datetime) -> str:
    return ",".join(str(one.get("audience", "")) for one in dig(obj, "spec", "tokenRequests") or ()) or UNSET


def served() -> list[Served]:
    return [
        Served(
            resource=PERSISTENTVOLUMECLAIMS,
            singular="persistentvolumeclaim",
            short_names=("pvc",),
            strategy=BuiltIn(
                type_name="PersistentVolumeClaim",
                defaults=_claim_defaults,
                check=_claim_errors,
                check_update=_claim_change,
                has_status=True,
                initial_status=lambda: {"phase": "Pending"},
            ),
            columns=_CLAIM_COLUMNS,
            subresources=STATUS,
            returns_deleted=True,
        ),
        Served(
            resource=PERSISTENTVOLUMES,
            singular="persistentvolume",
            short_names=("pv",),
            strategy=BuiltIn(
                type_name="PersistentVolume",
                defaults=_volume_defaults,
                check=_volume_errors,
                has_status=True,
                initial_status=lambda: {"phase": "Pending"},
            ),
            columns=_VOLUME_COLUMNS,
            subresources=STATUS,
            returns_deleted=True,
        ),
        Served(
            resource=STORAGECLASSES,
            singular="storageclass",
            short_names=("sc",),
            strategy=BuiltIn(
                type_name="StorageClass",
                defaults=_class_defaults,
                check=_class_errors,
                check_update=_class_change,
                update_first=True,
            ),
            columns=_CLASS_COLUMNS,
            returns_deleted=True,
        ),
        Served(
            resource=CSINODES,
            singular="csinode",
            strategy=BuiltIn(type_name="CSINode"),
            columns=(NAME, column("Drivers", count("spec", "drivers")), AGE),
            returns_deleted=True,
        ),
        Served(
            resource=CSI_DRIVERS,
            singular="csidriver",
            strategy=BuiltIn(type_name="CSIDriver", defaults=_driver_defaults),
            columns=(
                NAME,
                column("AttachRequired", at("spec", "attachRequired", default=True)),
                column("PodInfoOnMount", at("spec", "podInfoOnMount", default=False)),
                column("StorageCapacity", at("spec", "storageCapacity", default=False)),
                column("TokenRequests", _token_requests),
                column("RequiresRepublish", at("spec", "requiresRepublish", default=False)),
                column("Modes", lambda obj, _now: ",".join(dig(obj, "spec", "volumeLifecycleModes") or ()) or NONE),
                AGE,
            ),
            returns_deleted=True,
        ),
        Served(
            resource=ATTACHMENTS,
            singular="volumeattachment",
            strategy=BuiltIn(type_name="VolumeAttachment", has_status=True, initial_status=lambda: {"attached": False}),
            columns=(
                NAME,
                column("Attacher", at("spec", "attacher")),
                column("PV", at("spec", "source", "persistentVolumeName")),
                column("Node", at("spec", "nodeName")),
                column("Attached", at("status", "attached", default=False)),
                AGE,
            ),
            subresources=STATUS,
            returns_deleted=True,
        ),
    ]
