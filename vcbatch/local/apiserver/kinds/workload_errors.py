"""Validation of workloads of apps/v1 and ReplicationControllers, on creates and updates.

Source: kubernetes `pkg/apis/apps/validation`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.podspec.claims import claim_spec_errors
from vcbatch.api.podspec.template import template_errors
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.policy import int_or_percent_errors, not_above_hundred_percent
from vcbatch.local.apiserver.registry import Json, RequestContext
from vcbatch.local.apiserver.tables import dig

_STRICT = ("deployment", "replicaset", "daemonset")
_MISMATCH = "`selector` does not match template `labels`"


def _selector_and_template_errors(
    spec: Json, *, kind: str = "deployment", missing: str = "", restart_policies: Sequence[str]
) -> list[FieldError]:
    """Errors of a selector, of the template it must match, and of the template's restart policy."""
    found: list[FieldError] = []
    selector = spec.get("selector")
    if selector is None:
        found.append(field_errors.required("spec.selector", missing))
    else:
        misshapen = selectors.selector_errors(selector, "spec.selector")
        found += misshapen
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(field_errors.invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
        elif misshapen:
            found.append(field_errors.invalid("spec.selector", selector, "invalid label selector"))
    template = spec.get("template") or {}
    labels = dig(template, "metadata", "labels")
    # Without a selector, or with an invalid one, no template matches.
    if (selector is None and kind in _STRICT) or (
        selector and not found and not selectors.matches(selector, labels or {})
    ):
        found.append(field_errors.invalid("spec.template.metadata.labels", labels, _MISMATCH))
    found += template_errors(template, "spec.template")
    policy = dig(template, "spec", "restartPolicy")
    if policy and policy not in restart_policies:
        found.append(field_errors.unsupported("spec.template.spec.restartPolicy", policy, restart_policies))
    if dig(template, "spec", "activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        found.append(field_errors.forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return found


def deployment_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = field_errors.not_negative("spec.replicas", spec.get("replicas"))
    found += _selector_and_template_errors(spec, restart_policies=["Always"])
    found += _rollout_errors(spec.get("strategy") or {})
    found += field_errors.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    found += field_errors.not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None:
        found += field_errors.not_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            found.append(
                field_errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
            )
    return found


def _rollout_errors(strategy: Json) -> list[FieldError]:
    path = "spec.strategy"
    match strategy.get("type"):
        case "Recreate":
            if strategy.get("rollingUpdate") is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                return [field_errors.forbidden(f"{path}.rollingUpdate", detail)]
            return []
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                detail = "this should be defaulted and never be nil"
                return [field_errors.required(f"{path}.rollingUpdate", detail)]
            return _rolling_errors(rolling, f"{path}.rollingUpdate")
        case other:
            return [field_errors.unsupported(path, strategy or other, ["Recreate", "RollingUpdate"])]


def _rolling_errors(rolling: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    found += int_or_percent_errors(unavailable, f"{path}.maxUnavailable")
    found += int_or_percent_errors(surge, f"{path}.maxSurge")
    if unavailable in (0, "0%") and surge in (0, "0%"):
        detail = "may not be 0 when `maxSurge` is 0"
        found.append(field_errors.invalid(f"{path}.maxUnavailable", unavailable, detail))
    return found + not_above_hundred_percent(unavailable, f"{path}.maxUnavailable")


def replica_set_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = field_errors.not_negative("spec.replicas", spec.get("replicas"))
    found += field_errors.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    return found + _selector_and_template_errors(spec, restart_policies=["Always"])


def stateful_set_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    management = spec.get("podManagementPolicy")
    if management not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        found.append(field_errors.invalid("spec.podManagementPolicy", management, detail))
    update = dig(spec, "updateStrategy", "type")
    if update not in ("RollingUpdate", "OnDelete"):
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        found.append(field_errors.invalid("spec.updateStrategy", spec.get("updateStrategy"), detail))
    elif update == "RollingUpdate":
        found += _partitioned_errors(dig(spec, "updateStrategy", "rollingUpdate") or {})
    found += field_errors.not_negative("spec.replicas", spec.get("replicas"))
    for key in ("minReadySeconds", "revisionHistoryLimit"):
        found += field_errors.not_negative(f"spec.{key}", spec.get(key))
    if spec.get("serviceName"):
        found += field_errors.invalid_each(
            "spec.serviceName", spec["serviceName"], name_rules.dns_label(spec["serviceName"])
        )
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        found += _claim_template_errors(claim, f"spec.volumeClaimTemplates[{index}]")
    return found + _selector_and_template_errors(spec, kind="statefulset", restart_policies=["Always"])


def _partitioned_errors(rolling: Json) -> list[FieldError]:
    """Source: kubernetes `pkg/apis/apps/validation`, `validateRollingUpdateStatefulSet`."""
    path = "spec.updateStrategy.rollingUpdate"
    found = field_errors.not_negative(f"{path}.partition", rolling.get("partition"))
    unavailable = rolling.get("maxUnavailable")
    if unavailable is None:
        return found
    found += int_or_percent_errors(unavailable, f"{path}.maxUnavailable")
    if unavailable in (0, "0%"):
        found.append(field_errors.invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0"))
    return found + not_above_hundred_percent(unavailable, f"{path}.maxUnavailable")


def _claim_template_errors(claim: Json, path: str) -> list[FieldError]:
    name = dig(claim, "metadata", "name") or ""
    found = [] if name else [field_errors.required(f"{path}.metadata.name")]
    return found + claim_spec_errors(claim.get("spec") or {}, f"{path}.spec")


def daemon_set_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = _selector_and_template_errors(spec, kind="daemonset", restart_policies=["Always"])
    found += field_errors.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    rolling, path = dig(spec, "updateStrategy", "rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate"
    for key in ("maxUnavailable", "maxSurge"):
        found += int_or_percent_errors(rolling.get(key), f"{path}.{key}")
        found += not_above_hundred_percent(rolling.get(key), f"{path}.{key}")
    return found + field_errors.not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def controller_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = field_errors.not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    selector = spec.get("selector") or {}
    if not selector:
        found.append(field_errors.required("spec.selector"))
    found += field_errors.not_negative("spec.replicas", spec.get("replicas"))
    template = spec.get("template")
    if template is None:
        return [*found, field_errors.required("spec.template")]
    labels = dig(template, "metadata", "labels") or {}
    if not selectors.matches({"matchLabels": selector}, labels):
        found.append(field_errors.invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return found + template_errors(template, "spec.template")


def frozen_selector(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """The selector is immutable, so that a workload keeps the pods that it created."""
    return field_errors.immutable("spec.selector", dig(obj, "spec", "selector"), dig(old, "spec", "selector"))


_STATEFUL_SET_FREE = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
]


def stateful_set_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """Errors of changes of the immutable fields of a StatefulSet."""

    def rest(value: Json | None) -> Json:
        return {key: item for key, item in (dig(value, "spec") or {}).items() if key not in _STATEFUL_SET_FREE}

    if rest(obj) == rest(old):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    return [field_errors.forbidden("spec", detail)]
