"""Nodes, namespaces, service accounts, leases, priority and runtime classes, pod templates, controller revisions."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vcbatch.api import field_errors, name_rules, quantities
from vcbatch.api.resources import LEASES, NAMESPACES, NODES, PRIORITYCLASSES, SERVICEACCOUNTS, Resource
from vcbatch.local.apiserver.apierrors import FieldError, forbidden
from vcbatch.local.apiserver.kinds.define import STATUS, label_name
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, UNKNOWN, at, column, dig

RUNTIME_CLASSES = Resource(
    group="node.k8s.io", version="v1", plural="runtimeclasses", kind="RuntimeClass", namespaced=False
)

SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
HIGHEST_USER_PRIORITY = 1_000_000_000
_POLICIES = ("PreemptLowerPriority", "Never")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT_FIELDS = (("Key", "key"), ("Value", "value"), ("Effect", "effect"), ("TimeAdded", "timeAdded"))
_ROLE_PREFIX = "node-role.kubernetes.io/"


_TAINTS = "metadata.taints"
"""The field in which Kubernetes reports errors of taints."""


def _node_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found = taint_errors(dig(obj, "spec", "taints") or (), _TAINTS)
    for kind in ("capacity", "allocatable"):
        for name, amount in (dig(obj, "status", kind) or {}).items():
            found += _capacity_errors(name, amount, f"status.{kind}.{name}")
    ranges: list[str] = dig(obj, "spec", "podCIDRs") or []
    for index, text in enumerate(ranges):
        found += _range_errors(text, f"spec.podCIDRs[{index}]")
    families = [":" in text for text in ranges]
    if not found and len(set(families)) != len(families):
        detail = "may specify no more than one CIDR for each IP family"
        found.append(field_errors.invalid("spec.podCIDRs", ranges, detail))
    return found


def _capacity_errors(name: str, amount: Any, path: str) -> list[FieldError]:
    found = field_errors.invalid_each(path, name, name_rules.qualified_name(name))
    if quantities.compare(amount, "0") < 0:
        found.append(field_errors.invalid(path, quantities.text(amount), field_errors.NEGATIVE))
    return found


def _range_errors(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [field_errors.invalid(path, text, _NO_RANGE)]
    return [] if "/" in text else [field_errors.invalid(path, text, _NO_RANGE)]


_NO_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _node_ranges(spec: Json) -> None:
    """Keep `podCIDR` and the first of `podCIDRs` equal; `podCIDR` takes precedence."""
    if spec.get("podCIDR"):
        spec["podCIDRs"] = [spec["podCIDR"], *(spec.get("podCIDRs") or [])[1:]]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def taint_errors(taints: Any, path: str) -> list[FieldError]:
    """Errors of a list of taints: keys, values, effects, and duplicates of a key with an effect."""
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        place = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found += field_errors.invalid_each(f"{place}.key", key, name_rules.qualified_name(key))
        wrong = ";".join(name_rules.label_value(value))
        found += [field_errors.invalid(f"{place}.value", value, wrong)] if wrong else []
        if not effect:
            found.append(field_errors.required(f"{place}.effect"))
        elif effect not in _TAINT_EFFECTS:
            found.append(field_errors.unsupported(f"{place}.effect", effect, _TAINT_EFFECTS))
        if effect and (key, effect) in seen:
            shown = {key: taint.get(name, None if name == "timeAdded" else "") for key, name in _TAINT_FIELDS}
            problem = FieldError(
                reason="FieldValueDuplicate", field=place, message=f"Duplicate value: {field_errors.ordered(shown)}"
            )
            detail = "taints must be unique by key and effect pair"
            found.append(FieldError(reason=problem.reason, field=problem.field, message=f"{problem.message}: {detail}"))
        seen.add((key, effect))
    return found


def _node_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before, after = dig(old, "spec") or {}, dig(obj, "spec") or {}
    found = taint_errors(after.get("taints") or (), _TAINTS)
    if before.get("podCIDRs") and before.get("podCIDRs") != after.get("podCIDRs"):
        found.append(
            field_errors.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
        )
    if before.get("providerID") and before.get("providerID") != after.get("providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        found.append(field_errors.forbidden("spec.providerID", detail))
    return found


def _node_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    _node_ranges(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
    info = status.setdefault("nodeInfo", {})
    for key in [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ]:
        info.setdefault(key, "")


class _NodeStrategy(BuiltIn):
    """A node may be created with a status, as a kubelet registers it."""

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        if old is not None:
            BuiltIn.default(self, obj, old, ctx)
        else:
            self.defaults(obj, old, ctx)


def _node_status(obj: Json, _now: datetime) -> str:
    ready = [item for item in dig(obj, "status", "conditions") or () if item.get("type") == "Ready"]
    words = ["Unknown"]
    if ready:
        words = ["Ready" if ready[-1].get("status") == "True" else "NotReady"]
    if dig(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(obj: Json, _now: datetime) -> str:
    labels = dig(obj, "metadata", "labels") or {}
    roles = {key[len(_ROLE_PREFIX) :] for key in labels if key.startswith(_ROLE_PREFIX)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Any:
    def cell(obj: Json, _now: datetime) -> str:
        for address in dig(obj, "status", "addresses") or ():
            if address.get("type") == kind:
                return address.get("address", "")
        return NONE

    return cell


def _info(key: str) -> Any:
    return lambda obj, _now: dig(obj, "status", "nodeInfo", key) or UNKNOWN


_NODE_COLUMNS = (
    NAME,
    column("Status", _node_status),
    column("Roles", _node_roles),
    AGE,
    column("Version", at("status", "nodeInfo", "kubeletVersion")),
    column("Internal-IP", _address("InternalIP"), wide=True),
    column("External-IP", _address("ExternalIP"), wide=True),
    column("OS-Image", _info("osImage"), wide=True),
    column("Kernel-Version", _info("kernelVersion"), wide=True),
    column("Container-Runtime", _info("containerRuntimeVersion"), wide=True),
)


def _namespace_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        labels["kubernetes.io/metadata.name"] = metadata["name"]
        metadata["labels"] = labels


def _namespace_prepare(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    if ctx.subresource == "finalize":
        return
    if old is None:
        finalizers: list[str] = list(spec.get("finalizers") or ())
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        spec["finalizers"] = finalizers
    else:
        obj["spec"] = dict(old.get("spec") or {})


def _namespace_errors(obj: Json, _old: Json | None, ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    for index, finalizer in enumerate(dig(obj, "spec", "finalizers") or ()):
        # Kubernetes reports the index in writes of `finalize` only.
        place = f"spec.finalizers[{index}]" if ctx.subresource == "finalize" else "spec.finalizers"
        found += field_errors.invalid_each(place, finalizer, name_rules.qualified_name(finalizer))
        if "/" not in finalizer and finalizer != "kubernetes":
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(field_errors.invalid(place, finalizer, detail))
    return found


def _namespace_status_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    phase = dig(obj, "status", "phase") or ""
    leaving = bool(dig(obj, "metadata", "deletionTimestamp"))
    if leaving and phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [field_errors.invalid("status.Phase", phase, detail)]
    if not leaving and phase != "Active":
        detail = "may only be 'Active' if `deletionTimestamp` is empty"
        return [field_errors.invalid("status.Phase", phase, detail)]
    return []


def _lease_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        found.append(field_errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        found.append(field_errors.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    strategy = spec.get("strategy")
    if strategy is not None:
        found += field_errors.invalid_each("spec.strategy", strategy, name_rules.qualified_name(strategy))
    if spec.get("preferredHolder") and not strategy:
        detail = "may only be specified if `strategy` is defined"
        found.append(field_errors.forbidden("spec.preferredHolder", detail))
    return found


def _lease_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    obj.setdefault("spec", {})


def _priority_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _priority_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    name, value = dig(obj, "metadata", "name") or "", obj.get("value", 0)
    if name.startswith("system-"):
        if SYSTEM_PRIORITY_CLASSES.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
            )
            found.append(field_errors.forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        found.append(field_errors.forbidden("value", detail))
    policy = obj.get("preemptionPolicy")
    if policy == "":
        found.append(field_errors.required("preemptionPolicy"))
    elif policy is not None and policy not in _POLICIES:
        found.append(field_errors.unsupported("preemptionPolicy", policy, _POLICIES))
    return found


def _priority_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before = old or {}
    found: list[FieldError] = []
    if obj.get("value", 0) != before.get("value", 0):
        found.append(field_errors.forbidden("value", "may not be changed in an update."))
    found += field_errors.immutable("preemptionPolicy", obj.get("preemptionPolicy"), before.get("preemptionPolicy"))
    return found


def _one_default(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    """Admission: at most one class is the global default. Source: plugin/pkg/admission/priority."""
    if not obj.get("globalDefault") or (old or {}).get("globalDefault"):
        return
    name = dig(obj, "metadata", "name") or ""
    for other in ctx.listed(PRIORITYCLASSES, None):
        other_name = dig(other, "metadata", "name")
        if other.get("globalDefault") and other_name != name:
            raise forbidden(
                group="scheduling.k8s.io",
                plural="priorityclasses",
                name=name,
                message=f"PriorityClass {other_name} is already marked as default. Only one default can exist",
            )


def _runtime_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    handler = obj.get("handler", "")
    return field_errors.invalid_each("handler", handler, name_rules.dns_label(handler))


def _runtime_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return field_errors.immutable("handler", obj.get("handler"), (old or {}).get("handler"))


def _accounts() -> Served:
    return Served(
        resource=SERVICEACCOUNTS,
        singular="serviceaccount",
        short_names=("sa",),
        strategy=BuiltIn(type_name="ServiceAccount"),
        columns=(NAME, AGE),
        returns_deleted=True,
    )


def _classes() -> list[Served]:
    return [
        Served(
            resource=PRIORITYCLASSES,
            singular="priorityclass",
            short_names=("pc",),
            strategy=BuiltIn(
                type_name="PriorityClass",
                defaults=_priority_defaults,
                prepare=_one_default,
                check=_priority_errors,
                check_update=_priority_change,
                checks_whole_on_update=False,
                generation_counts=False,
                generation=True,
            ),
            columns=(
                NAME,
                column("Value", at("value", default=0), kind="integer"),
                column("Global-Default", at("globalDefault", default=False), kind="boolean"),
                AGE,
                column("PreemptionPolicy", at("preemptionPolicy")),
            ),
        ),
        Served(
            resource=RUNTIME_CLASSES,
            singular="runtimeclass",
            strategy=BuiltIn(type_name="RuntimeClass", check=_runtime_errors, check_update=_runtime_change),
            columns=(NAME, column("Handler", at("handler")), AGE),
        ),
    ]


def served() -> list[Served]:
    return [
        Served(
            resource=NODES,
            singular="node",
            short_names=("no",),
            strategy=_NodeStrategy(
                type_name="Node",
                defaults=_node_defaults,
                check=_node_errors,
                check_update=_node_change,
                has_status=True,
            ),
            columns=_NODE_COLUMNS,
            subresources=STATUS,
            selectable_fields=("spec.unschedulable",),
            field_values=lambda obj: {"spec.unschedulable": str(bool(dig(obj, "spec", "unschedulable"))).lower()},
        ),
        Served(
            resource=NAMESPACES,
            singular="namespace",
            short_names=("ns",),
            strategy=BuiltIn(
                type_name="Namespace",
                defaults=_namespace_defaults,
                prepare=_namespace_prepare,
                check=_namespace_errors,
                check_status=_namespace_status_errors,
                has_status=True,
                initial_status=lambda: {"phase": "Active"},
            ),
            columns=(NAME, column("Status", at("status", "phase")), AGE),
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            subresources={"finalize": ("update",), **STATUS},
            selectable_fields=("status.phase",),
            name_rule=label_name,
            returns_deleted=True,
        ),
        _accounts(),
        Served(
            resource=LEASES,
            singular="lease",
            strategy=BuiltIn(type_name="Lease", defaults=_lease_defaults, check=_lease_errors),
            columns=(NAME, column("Holder", at("spec", "holderIdentity")), AGE),
            unconditional_update=False,
            create_on_update=True,
        ),
        *_classes(),
    ]
