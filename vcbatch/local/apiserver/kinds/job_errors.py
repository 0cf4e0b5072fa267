"""Validation of batch/v1 Jobs and of the templates of CronJobs.

Source: kubernetes `pkg/apis/batch/validation`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Final

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.loose import listed, part
from vcbatch.api.podspec.template import template_errors
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.registry import Json

UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
NAME_LABEL: Final = "batch.kubernetes.io/job-name"

_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_MOST_RULES: Final = 20
_MOST_PATTERNS: Final = 20
_MOST_EXIT_CODES: Final = 255
_MOST_INDEXES: Final = 100_000
_MOST_AT_HIGH_COMPLETIONS: Final = 10_000
_LONGEST_MANAGED_BY: Final = 63
_LONGEST_INDEXES: Final = 64 * 1024
_INDEXED: Final = "requires indexed completion mode"
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_IMMUTABLE: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")


def job_errors(obj: Json) -> list[FieldError]:
    """Errors of a whole Job, in Kubernetes' order."""
    spec, metadata = part(obj, "spec"), part(obj, "metadata")
    return _generated_errors(spec, metadata) + _whole_spec_errors(spec) + _host_name_errors(spec, metadata)


def _whole_spec_errors(spec: Json) -> list[FieldError]:
    found, selector = spec_errors(spec, "spec"), spec.get("selector")
    if selector is None:
        found.append(field_errors.required("spec.selector"))
    else:
        found += selectors.selector_errors(selector, "spec.selector")
    labels = part(part(spec, "template"), "metadata").get("labels") or {}
    if not selectors.matches(selector, labels):
        detail = "`selector` does not match template `labels`"
        found.append(field_errors.invalid("spec.template.metadata.labels", labels or None, detail))
    return found


def spec_errors(spec: Json, path: str) -> list[FieldError]:
    """Errors of a Job's spec, without its selector."""
    found: list[FieldError] = []
    for key in _COUNTS:
        found += field_errors.not_negative(f"{path}.{key}", spec.get(key))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(field_errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        found += _managed_by_errors(spec["managedBy"], f"{path}.managedBy")
    found += _mode_errors(spec, path)
    if spec.get("podFailurePolicy") is not None:
        found += _failure_policy_errors(spec, f"{path}.podFailurePolicy.rules")
    if spec.get("successPolicy") is not None:
        found += _success_policy_errors(spec, f"{path}.successPolicy")
    found += _replacement_errors(spec, f"{path}.podReplacementPolicy")
    template = part(spec, "template")
    return found + template_errors(template, f"{path}.template") + _restart_errors(spec, f"{path}.template")


def change_errors(after: Json, before: Json, old: Json) -> list[FieldError]:
    """Errors of a change of a Job's spec; `old` is the Job before it. Errors of the spec itself are reported here
    again, as Kubernetes does."""
    found = _whole_spec_errors(after)
    if after.get("completionMode") != "Indexed":
        found += field_errors.immutable("spec.completions", after.get("completions"), before.get("completions"))
    elif after.get("completions") not in (None, before.get("completions"), after.get("parallelism")):
        detail = "can only be modified in tandem with spec.parallelism"
        found.append(field_errors.invalid("spec.completions", after["completions"], detail))
    found += field_errors.immutable("spec.selector", after.get("selector"), before.get("selector"))
    found += _template_change(part(after, "template"), part(before, "template"), old)
    for key in _IMMUTABLE:
        found += field_errors.immutable(f"spec.{key}", after.get(key), before.get(key))
    return found


def _template_change(after: Json, before: Json, old: Json) -> list[FieldError]:
    """Errors of a change of the template. While a Job is suspended and has no pods, its scheduling constraints and
    resource requests may change."""
    if not bool(part(old, "spec").get("suspend")):
        return field_errors.immutable("spec.template", after, before)
    conditions = listed(part(old, "status"), "conditions")
    paused = any(each.get("type") == "Suspended" and each.get("status") == "True" for each in conditions)
    if not paused or part(old, "status").get("active"):
        return field_errors.immutable("spec.template", after, before)
    spec, allowed = part(after, "spec"), copy.deepcopy(part(before, "spec"))
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        _take_over(allowed, spec, key)
    allowed["affinity"] = {**part(allowed, "affinity"), "nodeAffinity": part(spec, "affinity").get("nodeAffinity")}
    if allowed["affinity"]["nodeAffinity"] is None:
        del allowed["affinity"]["nodeAffinity"]
    if not allowed["affinity"] and not spec.get("affinity"):
        _take_over(allowed, spec, "affinity")
    for key in ("containers", "initContainers"):
        new, held = listed(spec, key), listed(allowed, key)
        if [each.get("name") for each in new] == [each.get("name") for each in held]:
            for mine, theirs in zip(held, new, strict=True):
                _take_over(mine, theirs, "resources")
    return field_errors.immutable("spec.template.spec", spec, allowed)


def _take_over(target: Json, source: Json, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _generated_errors(spec: Json, metadata: Json) -> list[FieldError]:
    """Errors of a selector and labels that differ from the generated ones, unless `manualSelector` is set."""
    uid, name = metadata.get("uid"), metadata.get("name") or ""
    if spec.get("manualSelector") or not uid or spec.get("selector") is None:
        return []
    path, labels = "spec.template.metadata.labels", part(part(spec, "template"), "metadata").get("labels") or {}
    found: list[FieldError] = []
    for key, wanted in wanted_labels(uid, name).items():
        value = labels.get(key)
        if value is None:
            found.append(field_errors.required(f"{path}[{key}]", f"must be '{wanted}'"))
        elif value != wanted:
            found.append(field_errors.invalid(f"{path}[{key}]", labels, f"must be '{wanted}'"))
    selector = spec.get("selector")
    if selector is not None and not selectors.matches(selector, wanted_labels(uid, name)):
        found.append(field_errors.invalid("spec.selector", selector, "`selector` not auto-generated"))
    return found


def wanted_labels(uid: str, name: str) -> dict[str, str]:
    """The labels that identify a Job's pods."""
    return {"controller-uid": uid, "job-name": name, UID_LABEL: uid, NAME_LABEL: name}


def _host_name_errors(spec: Json, metadata: Json) -> list[FieldError]:
    """Errors of the longest host name, that of the last index."""
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed" or not completions or completions < 0:
        return []
    host, name = f"{metadata.get('name') or ''}-{completions - 1}", metadata.get("name") or ""
    if not name_rules.dns_label(host):
        return []
    return [field_errors.invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {host}")]


def _managed_by_errors(value: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    domain, slash, rest = value.partition("/")
    if not value:
        found.append(field_errors.required(path))
    elif not slash or not domain or not rest:
        found.append(field_errors.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        found += field_errors.invalid_each(path, domain, name_rules.dns_subdomain(domain))
        if not _PATH.fullmatch(rest):
            detail = f"Invalid path (regex used for validation is '{_PATH.pattern}')"
            found.append(field_errors.invalid(path, rest, detail))
    if len(value) > _LONGEST_MANAGED_BY:
        found.append(field_errors.too_long(path, _LONGEST_MANAGED_BY))
    return found


def _mode_errors(spec: Json, path: str) -> list[FieldError]:
    mode, most, completions = spec.get("completionMode"), spec.get("maxFailedIndexes"), spec.get("completions")
    parallelism = spec.get("parallelism")
    found: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        found.append(field_errors.unsupported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"]))
    if mode == "Indexed":
        if completions is None:
            found.append(field_errors.required(f"{path}.completions", "when completion mode is Indexed"))
        if parallelism is not None and parallelism > _MOST_INDEXES:
            detail = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
            found.append(field_errors.invalid(f"{path}.parallelism", parallelism, detail))
        if most is not None and completions is not None and most > completions:
            detail = "must be less than or equal to completions"
            found.append(field_errors.invalid(f"{path}.maxFailedIndexes", most, detail))
        if most is not None and most > _MOST_INDEXES:
            detail = f"must be less than or equal to {_MOST_INDEXES}"
            found.append(field_errors.invalid(f"{path}.maxFailedIndexes", most, detail))
        if completions is not None and completions > _MOST_INDEXES and spec.get("backoffLimitPerIndex") is not None:
            found += _high_completions_errors(spec, path)
    if mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                found.append(field_errors.invalid(f"{path}.{key}", spec[key], _INDEXED))
    return found


def _high_completions_errors(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("maxFailedIndexes") is None:
        detail = f"must be specified when completions is above {_MOST_INDEXES}"
        found.append(field_errors.required(f"{path}.maxFailedIndexes", detail))
    detail = f"must be less than or equal to {_MOST_AT_HIGH_COMPLETIONS} when completions are above {_MOST_INDEXES} "
    detail += "and used with backoff limit per index"
    return found + [
        field_errors.invalid(f"{path}.{key}", spec[key], detail)
        for key in ("parallelism", "maxFailedIndexes")
        if (spec.get(key) or 0) > _MOST_AT_HIGH_COMPLETIONS
    ]


def _replacement_errors(spec: Json, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    return [] if policy in (None, *allowed) else [field_errors.unsupported(path, policy, allowed)]


def _restart_errors(spec: Json, path: str) -> list[FieldError]:
    policy, place = part(part(spec, "template"), "spec").get("restartPolicy"), f"{path}.spec.restartPolicy"
    if policy in (None, "", "Always"):
        return [field_errors.required(place, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [field_errors.unsupported(place, policy, ["OnFailure", "Never"])]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [field_errors.invalid(place, policy, detail)]
    return []


def _failure_policy_errors(spec: Json, path: str) -> list[FieldError]:
    rules, template = listed(spec["podFailurePolicy"], "rules"), part(part(spec, "template"), "spec")
    found: list[FieldError] = []
    if len(rules) > _MOST_RULES:
        found.append(field_errors.too_many(path, len(rules), _MOST_RULES))
    containers = {each.get("name") or "" for key in ("containers", "initContainers") for each in listed(template, key)}
    for place, rule in enumerate(rules):
        found += _failure_rule_errors(rule, f"{path}[{place}]", spec, containers)
    return found


def _failure_rule_errors(rule: Json, path: str, spec: Json, containers: set[str]) -> list[FieldError]:
    action, codes, patterns = rule.get("action") or "", rule.get("onExitCodes"), listed(rule, "onPodConditions")
    found: list[FieldError] = []
    if not action:
        found.append(
            field_errors.required(f"{path}.action", f"valid values: [{' '.join(map(field_errors.go_quote, _ACTIONS))}]")
        )
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            detail = "requires the backoffLimitPerIndex to be set"
            found.append(field_errors.invalid(f"{path}.action", action, detail))
    elif action not in _ACTIONS:
        found.append(field_errors.unsupported(f"{path}.action", action, _ACTIONS))
    if codes is not None:
        found += _exit_code_errors(codes, f"{path}.onExitCodes", containers)
    if patterns:
        found += _pattern_errors(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        found.append(_omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not patterns:
        found.append(_omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return found


def _omitted(path: str, detail: str) -> FieldError:
    """An error of a whole object, which the message doesn't show."""
    return FieldError(reason="FieldValueInvalid", field=path, message=f"Invalid value: {detail}")


def _exit_code_errors(codes: Json, path: str, containers: set[str]) -> list[FieldError]:
    found = _choice_errors(f"{path}.operator", codes.get("operator") or "", ("In", "NotIn"))
    container = codes.get("containerName")
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(field_errors.invalid(f"{path}.containerName", container, detail))
    values: list[int] = listed(codes, "values")
    if not values:
        found.append(field_errors.invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _MOST_EXIT_CODES:
        found.append(field_errors.too_many(f"{path}.values", len(values), _MOST_EXIT_CODES))
    for place, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            found.append(field_errors.invalid(f"{path}.values[{place}]", value, "must not be 0 for the In operator"))
        if value in values[:place]:
            found.append(field_errors.duplicate(f"{path}.values[{place}]", value))
    if values != sorted(values):
        found.append(field_errors.invalid(f"{path}.values", values, "must be ordered"))
    return found


def _pattern_errors(patterns: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if len(patterns) > _MOST_PATTERNS:
        found.append(field_errors.too_many(path, len(patterns), _MOST_PATTERNS))
    for place, pattern in enumerate(patterns):
        kind = pattern.get("type") or ""
        found += field_errors.invalid_each(f"{path}[{place}].type", kind, name_rules.qualified_name(kind))
        found += _choice_errors(f"{path}[{place}].status", pattern.get("status") or "", ("False", "True", "Unknown"))
    return found


def _choice_errors(path: str, value: str, allowed: Iterable[str]) -> list[FieldError]:
    if not value:
        return [field_errors.required(path, f"valid values: [{' '.join(map(field_errors.go_quote, allowed))}]")]
    return [] if value in allowed else [field_errors.unsupported(path, value, allowed)]


def _success_policy_errors(spec: Json, path: str) -> list[FieldError]:
    rules = listed(spec["successPolicy"], "rules")
    if spec.get("completionMode") != "Indexed":
        return [field_errors.invalid(path, spec["successPolicy"], _INDEXED)]
    found: list[FieldError] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        found.append(field_errors.required(f"{path}.rules", detail))
    if len(rules) > _MOST_RULES:
        found.append(field_errors.too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for place, rule in enumerate(rules):
        found += _success_rule_errors(rule, f"{path}.rules[{place}]", spec.get("completions") or 0)
    return found


def _success_rule_errors(rule: Json, path: str, completions: int) -> list[FieldError]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    found: list[FieldError] = []
    if indexes is None and count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        found.append(field_errors.required(path, detail))
    total = 0
    if indexes is not None:
        place = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            found.append(field_errors.too_long(place, _LONGEST_INDEXES))
        total, complaint = count_indexes(indexes, completions)
        if complaint:
            found.append(field_errors.invalid(place, indexes, f"error parsing succeededIndexes: {complaint}"))
    if count is not None:
        place = f"{path}.succeededCount"
        found += field_errors.not_negative(place, count)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            found.append(field_errors.invalid(place, count, detail))
        if indexes is not None and count > total:
            detail = f"must be less than or equal to {total} "
            detail += "(the number of indexes in the specified succeededIndexes field)"
            found.append(field_errors.invalid(place, count, detail))
    return found


def count_indexes(text: str, completions: int) -> tuple[int, str]:
    """The number of indexes in `0,2-4`, and ""; or 0, and the error."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        ends = interval.split("-")
        if len(ends) > 2:
            shown = field_errors.go_quote(interval)
            rule = "an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {shown} violates the requirement that {rule}"
        numbers: list[int] = []
        for end in ends:
            if not re.fullmatch(r"[+-]?[0-9]{1,18}", end):
                return 0, f"cannot convert string to integer for index: {field_errors.go_quote(end)}"
            numbers.append(int(end))
            if numbers[-1] >= completions:
                return 0, f"too large index: {field_errors.go_quote(end)}"
        if len(numbers) == 2 and numbers[0] >= numbers[1]:
            return 0, f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}"
        if total and last >= numbers[0]:
            return 0, f"non-increasing order, previous: {last}, current: {numbers[0]}"
        total, last = total + numbers[-1] - numbers[0] + 1, numbers[-1]
    return total, ""
