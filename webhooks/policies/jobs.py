"""Rules of jobs, which also apply to those that CronJobs create."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.api.flags import PLUGIN_FLAGS
from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE, MAX_PARALLEL_PODS, MAX_RUN_SECONDS, Plugin
from vcbatch.api.resources import JOBS
from vcbatch.api.start_conditions import MOST_DEPENDENCIES, TIME_FORM, Outcome
from vcbatch.api.time_limit import LONGEST
from vcbatch.api.validate.job import MOST_PODS, TOPOLOGY_CONFLICT
from vcbatch.api.validate.mutability import FIELDS, FILLED_CLAIM_NAME, Change
from vcbatch.api.validate.pod import BUDGETS
from vcbatch.api.validate.policies import POLICY_ACTIONS, POLICY_EVENTS
from webhooks.policies.expressions import (
    BUDGET,
    DURATION,
    LABEL,
    QUALIFIED,
    SUBDOMAIN,
    TWO_BUDGETS,
    Rule,
    annotation,
    budget,
    listed,
    matches,
    text,
)

_HOSTS = (Plugin.SVC, Plugin.TENSORFLOW, Plugin.MPI, Plugin.PYTORCH, Plugin.RAY)
"""Plugins that create host names, or add the plugin that does."""
_SPEC_DEFAULTS = {
    "tasks": "[]",
    "volumes": "[]",
    "policies": "[]",
    "plugins": "{}",
    "queue": "''",
    "schedulerName": "''",
}
_TASK_DEFAULTS = {"name": "''", "template": "{}", "policies": "[]", "topologyPolicy": "''"}


def variables(spec: str, name: str) -> dict[str, str]:
    """The variables of the rules. `spec` and `name` are expressions for the job's spec and its name."""
    return {
        "spec": spec,
        "name": name,
        "tasks": "variables.spec.?tasks.orValue([])",
        "plugins": "variables.spec.?plugins.orValue({})",
        "volumes": "variables.spec.?volumes.orValue([])",
        "names": "variables.tasks.transformList(i, t, t.?name.orValue('') == '' ? 'default' + string(i) : t.name)",
        "total": "variables.tasks.map(t, int(t.?replicas.orValue(0))).sum()",
    }


def spec_rules() -> Iterator[Rule]:
    """Rules of a job's spec by itself."""
    yield Rule("variables.tasks.size() > 0", "No task specified in job spec")
    yield from size_rules()
    yield Rule("variables.names.all(i, n, variables.names.indexOf(n) == i)", "duplicated task name")
    yield Rule(
        f"variables.names.all(n, {matches('n', LABEL, longest=63)})",
        "spec.tasks: want names of lower case letters, digits and '-', of at most 63 characters",
    )
    yield from pod_name_rules("variables.tasks")
    yield from _policy_rules("variables.spec.?policies.orValue([])", "{}")
    yield from _policy_rules("t.?policies.orValue([])", "variables.tasks.all(t, {})")
    yield Rule(
        f"!has(variables.spec.runningEstimate) || {matches('variables.spec.runningEstimate', DURATION)}",
        "spec.runningEstimate: want a Go duration such as 90s or 1h30m",
    )
    known = f"variables.plugins.all(k, k in {listed(PLUGIN_FLAGS)})"
    yield Rule(known, f"unable to find job plugin; known plugins: {', '.join(PLUGIN_FLAGS)}")
    hosts = f"{listed(_HOSTS)}.exists(k, k in variables.plugins)"
    yield Rule(
        f"!{hosts} || {matches('variables.name', LABEL, longest=63)}",
        "metadata.name: must not contain dots, as the plugin svc makes host names of it",
    )
    yield Rule(
        f"!({text(Plugin.RAY)} in variables.plugins) || variables.name.size() + '-head-svc'.size() <= 63",
        "metadata.name: too long, as the plugin ray makes a Service of it",
    )
    yield from _volume_rules()
    known = "d in variables.names && d != variables.names[i]"
    yield Rule(
        f"variables.tasks.all(i, t, t.?dependsOn.?name.orValue([]).all(d, {known}))",
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)",
    )


def size_rules() -> Iterator[Rule]:
    """Rules of mutable fields: sizes, partitions, topologies."""
    yield Rule(
        "variables.tasks.all(t, !has(t.minAvailable) || t.minAvailable <= t.?replicas.orValue(0))",
        "'minAvailable' is greater than 'replicas' in a task",
    )
    yield Rule(
        "int(variables.spec.?minAvailable.orValue(0)) <= variables.total",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    )
    yield Rule(f"variables.total <= {MOST_PODS}", f"spec.tasks: want at most {MOST_PODS} pods in total")
    yield Rule(_one_tier("variables.spec"), TOPOLOGY_CONFLICT)
    policy = "t.partitionPolicy"
    size = f"{policy}.totalPartitions * {policy}.partitionSize"
    least = f"{policy}.minPartitions * {policy}.partitionSize"
    yield Rule(
        f"variables.tasks.all(t, !has({policy}) || t.?replicas.orValue(0) == {size})",
        "'Replicas' are not equal to TotalPartitions*PartitionSize in a task",
    )
    yield Rule(
        f"variables.tasks.all(t, !has({policy}) || {policy}.?minPartitions.orValue(0) == 0"
        f" || !has(t.minAvailable) || t.minAvailable == {least})",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in a task",
    )
    yield Rule(f"variables.tasks.all(t, !has({policy}) || {_one_tier(policy)})", TOPOLOGY_CONFLICT)


def pod_name_rules(tasks: str) -> Iterator[Rule]:
    """Rules of the first pod name of each task, and of the longest where they become host names."""
    named = "t.?template.?spec.?hostname.orValue('') != ''"
    hosts = f"{listed(_HOSTS)}.exists(k, k in variables.plugins) && !({named})"
    last = f"string({hosts} && t.?replicas.orValue(0) > 0 ? t.replicas - 1 : 0).size()"
    yield Rule(
        f"{tasks}.all(i, t, variables.name.size() + variables.names[i].size() + {last} + 2 <= 63)",
        "the names of pods would be longer than 63 characters; shorten the name of the job or of the task",
    )


def name_rules() -> Iterator[Rule]:
    """Rules of the name of a job."""
    yield Rule(matches("variables.name", QUALIFIED, longest=63), "metadata.name: want at most 63 characters")


def time_limit_rules() -> Iterator[Rule]:
    """Rules of the annotation with the time limit of the job."""
    limit, before = annotation(MAX_RUN_SECONDS), annotation(MAX_RUN_SECONDS, "oldObject")
    seconds = f"int(string({limit}.value()))"
    number = f"({limit}.value().matches('^[0-9]{{1,9}}$') && {seconds} > 0 && {seconds} <= {LONGEST})"
    yield Rule(
        f"!{limit}.hasValue() || (oldObject != null && {limit} == {before}) || {number}",
        f"annotation {MAX_RUN_SECONDS}: want a number of seconds, 1 to {LONGEST}",
    )


def parallel_limit_rules() -> Iterator[Rule]:
    """Rules of the annotation with the maximum of pods alive together."""
    limit, before = annotation(MAX_PARALLEL_PODS), annotation(MAX_PARALLEL_PODS, "oldObject")
    pods, minimum = f"int(string({limit}.value()))", "object.spec.?minAvailable.orValue(0)"
    unchanged = f"{limit} == {before} && {minimum} == oldObject.spec.?minAvailable.orValue(0)"
    number = f"({limit}.value().matches('^[0-9]{{1,9}}$') && {pods} > 0 && {pods} >= {minimum})"
    yield Rule(
        f"!{limit}.hasValue() || (oldObject != null && {unchanged}) || {number}",
        f"annotation {MAX_PARALLEL_PODS}: want a number of pods, minAvailable or more",
    )


_DEPENDENCY: Final = (
    " *[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[0-9A-Za-z-]+)?(:(" + "|".join(Outcome) + "))? *"  # no nested counted repetition
)


def start_rules() -> Iterator[Rule]:
    """Rules of the annotations with the job's dependencies, its begin time and its deadline."""
    after, before = annotation(AFTER), annotation(AFTER, "oldObject")
    listed_jobs = f"({after}.value().matches('^{_DEPENDENCY}(,{_DEPENDENCY})*$')"
    few = f"{after}.value().split(',').size() <= {MOST_DEPENDENCIES})"
    yield Rule(
        f"!{after}.hasValue() || (oldObject != null && {after} == {before}) || {listed_jobs} && {few}",
        f"annotation {AFTER}: want at most {MOST_DEPENDENCIES} of JOB[/UID][:ok|any|fail], separated by commas",
    )
    for name in (BEGIN_TIME, DEADLINE):
        given, former = annotation(name), annotation(name, "oldObject")
        unchanged = f"!{given}.hasValue() || (oldObject != null && {given} == {former})"
        yield Rule(
            f"{unchanged} || {given}.value().matches('{TIME_FORM}')",
            f"annotation {name}: want a time with its offset, such as 2026-11-20T12:00:00Z",
        )


def budget_rules() -> Iterator[Rule]:
    """Rules of the disruption budget that pods get from the job or have in their templates, as for pods themselves."""
    least, most = (annotation(name) for name in BUDGETS)
    same = " && ".join(f"{annotation(name)} == {annotation(name, 'oldObject')}" for name in BUDGETS)
    unchanged = f"(oldObject != null && {same})"
    yield Rule(f"{unchanged} || !{least}.hasValue() || {budget(least)}", BUDGET.format(BUDGETS[0]))
    given = f"({most}.hasValue() && !{least}.hasValue())"
    yield Rule(f"{unchanged} || !{given} || {budget(most)}", BUDGET.format(BUDGETS[1]))
    of_pods = [f"t.?template.?metadata.?annotations[?{text(name)}]" for name in BUDGETS]
    for name, value, by_job in zip(BUDGETS, of_pods, (f"{least}.hasValue()", given), strict=True):
        holds = f"!{value}.hasValue() || {by_job} || {budget(value)}"
        yield Rule(f"{unchanged} || variables.tasks.all(t, {holds})", f"spec.tasks: {BUDGET.format(name)}")
    both = f"({of_pods[0]}.hasValue() || {least}.hasValue()) && ({of_pods[1]}.hasValue() || {given})"
    yield Rule(f"{unchanged} || variables.tasks.all(t, !({both}))", f"spec.tasks: {TWO_BUDGETS}")


def update_rules() -> Iterator[Rule]:
    """Rules of the immutable fields of a stored job, by the table of fields."""
    same = "variables.unchanged || variables.tasks.size() == oldObject.spec.tasks.size()"
    yield Rule(same, "job updates may not add or remove tasks")
    for rule in (*size_rules(), *pod_name_rules(_GROWN)):
        yield Rule(f"variables.unchanged || ({rule.holds})", rule.message)
    sizes = "`minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`"
    frozen = f"job updates may not change fields other than {sizes}"
    for field in FIELDS[JOBS]:
        if field.change is Change.NO and field.path != "tasks":
            yield Rule(f"variables.unchanged || {_same(field.path)}", f"{frozen}; changed: spec.{field.path}")


_GROWN = (
    "variables.tasks.transformList(i, t, i < oldObject.spec.tasks.size()"
    " && t.?replicas.orValue(0) <= oldObject.spec.tasks[i].?replicas.orValue(0) ? {'replicas': 0} : t)"
)
"""Tasks; the pod names of tasks that don't grow aren't checked."""


def _same(path: str) -> str:
    task = path.removeprefix("tasks[*].")
    if task != path:
        mine, theirs = (f"{of}.?{task}" for of in ("t", "oldObject.spec.tasks[i]"))
        equal = _equal(mine, theirs, _TASK_DEFAULTS.get(task))
        return f"variables.tasks.all(i, t, i >= oldObject.spec.tasks.size() || {equal})"
    if path == FILLED_CLAIM_NAME.partition("[")[0]:
        old = "oldObject.spec.?volumes.orValue([])"
        equal = "v.?mountPath == o.?mountPath && v.?volumeClaim == o.?volumeClaim".replace("o.", f"{old}[i].")
        name = f"(has(v.volumeClaim) || v.?volumeClaimName == {old}[i].?volumeClaimName)"
        return f"(variables.volumes.size() == {old}.size() && variables.volumes.all(i, v, {equal} && {name}))"
    return _equal(f"variables.spec.?{path}", f"oldObject.spec.?{path}", _SPEC_DEFAULTS.get(path))


def _equal(mine: str, theirs: str, default: str | None) -> str:
    return f"{mine} == {theirs}" if default is None else f"{mine}.orValue({default}) == {theirs}.orValue({default})"


def _one_tier(of: str) -> str:
    topology = f"{of}.?networkTopology"
    return f"!({topology}.?highestTierAllowed.hasValue() && {topology}.?highestTierName.orValue('') != '')"


def _volume_rules() -> Iterator[Rule]:
    volumes = "variables.volumes"
    yield Rule(
        f"{volumes}.all(i, v, {volumes}.all(j, w, j <= i || w.?mountPath != v.?mountPath))", "duplicated mountPath"
    )
    yield Rule(
        f"{volumes}.all(v, has(v.volumeClaim) || v.?volumeClaimName.orValue('') != '')",
        "either VolumeClaim or VolumeClaimName must be specified",
    )
    yield Rule(
        f"{volumes}.all(v, !has(v.volumeClaim) || v.?volumeClaimName.orValue('') == '')",
        "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
        "If you want to create a new PVC, you do not need to specify VolumeClaimName",
    )
    name = "v.?volumeClaimName.orValue('')"
    yield Rule(f"{volumes}.all(v, {name} == '' || {matches(name, SUBDOMAIN)})", "invalid VolumeClaimName")


def _policy_rules(policies: str, around: str) -> Iterator[Rule]:
    """Rules of one list of policies; `around` is the path of its owner."""

    def events(policy: str) -> str:
        return f"({policy}.?events.orValue([]) + ({policy}.?event.orValue('') == '' ? [] : [{policy}.event]))"

    def made(holds: str, message: str) -> Rule:
        return Rule(around.format(holds), message)

    p, q, action = events("p"), events("q"), "p.?action.orValue('')"
    yield made(
        f"{policies}.all(p, {p}.size() == 0 || !has(p.exitCode))",
        "must not specify event and exitCode simultaneously",
    )
    yield made(f"{policies}.all(p, {p}.size() > 0 || has(p.exitCode))", "either event and exitCode should be specified")
    valid = ", ".join(POLICY_EVENTS)
    yield made(
        f"{policies}.all(p, {p}.all(e, e in {listed(POLICY_EVENTS)}))",
        f"invalid policy event; valid events are {valid}",
    )
    yield made(
        f"{policies}.all(p, {action} in {listed(POLICY_ACTIONS)} || {p}.size() == 0)",
        f"invalid policy action; valid actions are {', '.join(POLICY_ACTIONS)}",
    )
    yield made(
        f"{policies}.all(i, p, {p}.all(e, {policies}.all(j, q, j <= i || !(e in {q}))))",
        "duplicate event across different policy",
    )
    yield made(f"{policies}.all(p, !has(p.exitCode) || p.exitCode != 0)", "0 is not a valid error code")
    yield made(
        f"{policies}.all(i, p, !has(p.exitCode) || {policies}.all(j, q, j <= i || q.?exitCode != p.?exitCode))",
        "duplicate exitCode",
    )
    yield made(
        f"!{policies}.exists(p, '*' in {p}) || {policies}.all(p, {p}.all(e, e == '*'))",
        "if there's * here, no other policy should be here",
    )
    yield made(
        f"{policies}.all(p, !has(p.timeout) || {matches('p.timeout', DURATION)})",
        "timeout: want a Go duration such as 90s or 1h30m",
    )
