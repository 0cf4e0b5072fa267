"""The policies and their bindings as YAML documents for an API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vcbatch.api import yaml_writer
from vcbatch.api.names import DEFAULT_SCHEDULER, NAMESPACE_LABEL
from vcbatch.api.resources import COMMANDS, CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, PODS, QUEUES, Resource
from webhooks.policies import jobs, mutating, others, queues
from webhooks.policies.expressions import CONTROLLERS_ACCOUNT, OF_A_JOB, Rule, listed, not_of_a_job

Json = dict[str, Any]

_VALIDATING_VERSION: Final = "admissionregistration.k8s.io/v1"
MUTATING_VERSIONS: Final = ("v1", "v1beta1")
"""Kubernetes serves the first from 1.36 on, the second in 1.34 and 1.35 where it is enabled."""
_EXCLUDED: Final = ("volcano-system", "kube-system")
_HEADER: Final = "# Made by `vcbatch policies`: rules of admission that need no webhook. See docs/admission.md.\n"


def documents(
    schedulers: Sequence[str] = (DEFAULT_SCHEDULER,),
    *,
    mutating_version: str = MUTATING_VERSIONS[0],
    controllers: str = CONTROLLERS_ACCOUNT,
) -> dict[str, str]:
    """The texts by file name. `schedulers`: ours, the first for jobs that name none. `controllers`: the service account
    (`NAMESPACE/NAME`) whose pods and PodGroups of Jobs aren't validated again."""
    made = {
        "mutating.yaml": _mutating(schedulers[0], mutating_version, controllers),
        "validating.yaml": _validating(schedulers, controllers),
    }
    return {name: _HEADER + _text(items) for name, items in made.items()}


def _text(items: Iterable[Json]) -> str:
    """The YAML text. Expressions are written as block scalars, since quoting would double each of their quotes."""
    return "---\n".join(yaml_writer.dump(item, width=120, block_if="'") for item in items)


def _validating(schedulers: Sequence[str], controllers: str) -> list[Json]:
    job = jobs.variables("object.spec", "object.metadata.name")
    annotated = [*jobs.time_limit_rules(), *jobs.parallel_limit_rules(), *jobs.start_rules(), *jobs.budget_rules()]
    made = [*jobs.name_rules(), *jobs.spec_rules(), *annotated]
    changed = [*annotated, *jobs.update_rules()]
    unchanged = {"unchanged": "object.spec == oldObject.spec"}
    # The name is that of a slot's job: a dash and eight digits are appended.
    embedded = jobs.variables("object.spec.?jobTemplate.?spec.orValue({})", "object.metadata.name + '-29000000'")
    same = {"unchanged": "oldObject != null && object.spec == oldObject.spec"}
    cron_rules = [*others.cronjob_rules(), *(_unless_unchanged(rule) for rule in jobs.spec_rules())]
    of_others = _of_others(controllers)
    ours = {"name": "ours", "expression": f"object.spec.?schedulerName.orValue('') in {listed(schedulers)}"}
    return [
        document
        for policy in (
            _policy("vcbatch-jobs-create", JOBS, ("CREATE",), made, variables=job),
            _policy("vcbatch-jobs-update", JOBS, ("UPDATE",), changed, variables={**job, **unchanged}),
            _policy("vcbatch-queues", QUEUES, ("CREATE", "UPDATE"), queues.rules(), variables=queues.variables()),
            _policy("vcbatch-queues-delete", QUEUES, ("DELETE",), queues.deletion_rules()),
            _policy("vcbatch-podgroups", PODGROUPS, ("CREATE",), others.podgroup_rules(), conditions=[of_others]),
            _policy(
                "vcbatch-pods", PODS, ("CREATE",), others.pod_rules(), conditions=[ours, of_others], failure="Ignore"
            ),
            _policy("vcbatch-jobflows", JOBFLOWS, ("CREATE", "UPDATE"), others.jobflow_rules()),
            _policy("vcbatch-cronjobs", CRONJOBS, ("CREATE", "UPDATE"), cron_rules, variables={**embedded, **same}),
            _policy("vcbatch-commands", COMMANDS, ("CREATE", "UPDATE"), others.command_rules()),
            _policy("vcbatch-hypernodes", HYPERNODES, ("CREATE", "UPDATE"), others.hypernode_rules()),
        )
        for document in (policy, _binding(policy))
    ]


def _of_others(controllers: str) -> Json:
    return {"name": OF_A_JOB, "expression": not_of_a_job(controllers)}


def _unless_unchanged(rule: Rule) -> Rule:
    return Rule(f"variables.unchanged || ({rule.holds})", rule.message)


def _policy(
    name: str,
    resource: Resource,
    operations: Sequence[str],
    rules: Iterable[Rule],
    *,
    variables: Mapping[str, str] | None = None,
    conditions: Sequence[Json] = (),
    failure: str = "Fail",
) -> Json:
    spec: Json = {"failurePolicy": failure, "matchConstraints": _constraints(resource, operations)}
    if conditions:
        spec["matchConditions"] = list(conditions)
    if variables:
        spec["variables"] = [{"name": key, "expression": value} for key, value in variables.items()]
    spec["validations"] = [{"expression": rule.holds, "message": rule.message} for rule in rules]
    kind = "ValidatingAdmissionPolicy"
    return {"apiVersion": _VALIDATING_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _mutating(scheduler: str, version: str, controllers: str) -> list[Json]:
    return [
        document
        for policy in (
            _defaults(
                "vcbatch-jobs-defaults", JOBS, ("CREATE", "UPDATE"), mutating.job_patches(scheduler), version,
                variables=mutating.JOB_VARIABLES,
            ),
            _defaults("vcbatch-queues-defaults", QUEUES, ("CREATE",), mutating.queue_patches(), version),
            _defaults(
                "vcbatch-podgroups-defaults", PODGROUPS, ("CREATE",), mutating.podgroup_patches(), version,
                conditions=[_of_others(controllers)],
            ),
        )
        for document in (policy, _binding(policy))
    ]  # fmt: skip


def _defaults(
    name: str,
    resource: Resource,
    operations: Sequence[str],
    patches: Iterable[str],
    version: str,
    *,
    variables: Mapping[str, str] | None = None,
    conditions: Sequence[Json] = (),
) -> Json:
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints(resource, operations),
    }
    if conditions:
        spec["matchConditions"] = list(conditions)
    if variables:
        spec["variables"] = [{"name": key, "expression": value} for key, value in variables.items()]
    spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}} for patch in patches]
    return {
        "apiVersion": f"admissionregistration.k8s.io/{version}",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _constraints(resource: Resource, operations: Sequence[str]) -> Json:
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": list(operations),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
    made: Json = {"matchPolicy": "Equivalent", "resourceRules": [rule]}
    if resource.namespaced and resource != COMMANDS:  # a Command to a queue may be in any namespace
        excluded = {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": list(_EXCLUDED)}
        made["namespaceSelector"] = {"matchExpressions": [excluded]}
    return made


def _binding(policy: Json) -> Json:
    name, validating = policy["metadata"]["name"], policy["kind"].startswith("Validating")
    spec: Json = {"policyName": name}
    if validating:
        spec["validationActions"] = ["Deny"]
    return {
        "apiVersion": policy["apiVersion"],
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": name},
        "spec": spec,
    }
