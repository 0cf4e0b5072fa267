"""Rules of PodGroups, pods, JobFlows, CronJobs and HyperNodes."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api import cron
from vcbatch.api.names import TTL_AFTER_FINISHED
from vcbatch.api.resources import QUEUES
from vcbatch.api.time_limit import LONGEST
from vcbatch.api.validate.cronjob import LONGEST_NAME
from vcbatch.api.validate.job import TOPOLOGY_CONFLICT
from vcbatch.api.validate.pod import BUDGETS
from webhooks.policies.expressions import (
    BUDGET,
    DURATION,
    QUALIFIED,
    SUBDOMAIN,
    TWO_BUDGETS,
    UNCHANGED,
    Rule,
    annotation,
    budget,
    matches,
    text,
)


def podgroup_rules() -> Iterator[Rule]:
    """Rules of a PodGroup by itself."""
    for of in ("object.?spec", "p"):
        topology = f"{of}.?networkTopology"
        holds = f"!({topology}.?highestTierAllowed.hasValue() && {topology}.?highestTierName.orValue('') != '')"
        yield Rule(
            holds if of != "p" else f"object.?spec.?subGroupPolicy.orValue([]).all(p, {holds})", TOPOLOGY_CONFLICT
        )


def pod_rules() -> Iterator[Rule]:
    """Rules of disruption budgets."""
    given = [annotation(name) for name in BUDGETS]
    for name, value in zip(BUDGETS, given, strict=True):
        yield Rule(f"!{value}.hasValue() || {budget(value)}", BUDGET.format(name))
    yield Rule(f"!({given[0]}.hasValue() && {given[1]}.hasValue())", TWO_BUDGETS)


def command_rules() -> Iterator[Rule]:
    """Rules of Commands: one to a queue has the queue's UID, and its author may update the queue."""
    target = "object.?target.?"
    queue = f"{target}apiVersion.orValue('') == '{QUEUES.api_version}' && {target}kind.orValue('') == '{QUEUES.kind}'"
    same = "oldObject != null && object.?target == oldObject.?target && object.?action == oldObject.?action"
    other = f"!({queue}) || ({same})"
    yield Rule(f"{other} || {target}uid.orValue('') != ''", "target.uid: Required value: want the UID of the queue")
    right = f"authorizer.group('{QUEUES.group}').resource('{QUEUES.plural}').name({target}name.orValue(''))"
    yield Rule(
        f"{other} || {right}.check('update').allowed()",
        f"want the right to update {QUEUES.plural}.{QUEUES.group} of this name, to open or close it",
    )


def jobflow_rules() -> Iterator[Rule]:
    """Rules of a flow; cycles of more than one node are left to the service."""
    flows, names = "object.?spec.?flows.orValue([])", "object.?spec.?flows.orValue([]).map(f, f.name)"
    yield _judged(
        f"{flows}.all(f, f.?dependsOn.?targets.orValue([]).all(n, n in {names}))",
        "jobflow Flow is not DAG: vertex is not defined",
    )
    yield _judged(
        f"{flows}.all(f, !(f.name in f.?dependsOn.?targets.orValue([])))", "jobflow Flow is not DAG: circle of one"
    )
    yield _judged(
        f"{flows}.all(f, {matches('f.name', SUBDOMAIN)} && object.metadata.name.size() + f.name.size() < 63)",
        "spec.flows: want names of JobTemplates, with which the names of jobs have at most 63 characters",
    )
    kept, before = annotation(TTL_AFTER_FINISHED), annotation(TTL_AFTER_FINISHED, "oldObject")
    number = f"({kept}.value().matches('^[0-9]{{1,9}}$') && int(string({kept}.value())) <= {LONGEST})"
    yield Rule(
        f"!{kept}.hasValue() || (oldObject != null && {kept} == {before}) || {number}",
        f"annotation {TTL_AFTER_FINISHED}: want a number of seconds, 0 to {LONGEST}",
    )


def cronjob_rules() -> Iterator[Rule]:
    """Rules of the schedule and the name. Whether a range is ascending is left to the service."""
    yield _judged(
        matches("object.metadata.name", QUALIFIED, longest=LONGEST_NAME),
        f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix (max 63 total)",
    )
    yield _judged("object.spec.schedule != ''", "schedule is required, but got empty")
    yield _judged(
        "!object.spec.schedule.contains('TZ')",
        "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
    )
    yield _judged(matches("object.spec.schedule", _schedule()), "schedule is not a valid cron expression")
    zone = "object.spec.timeZone"
    part = f"{matches('p', _ZONE_PART)} && !(p in ['.', '..']) && !p.startsWith('-')"
    known = f"timestamp('2000-01-01T00:00:00Z').getHours({zone}) >= 0"  # an error for an unknown time zone
    local = f"{zone}.lowerAscii() != 'local'"
    yield _judged(
        f"!has({zone}) || ({local} && {zone}.split('/').all(p, {part}) && {known})",
        "invalid timeZone: want an IANA name such as Europe/Berlin",
    )


_ZONE_PART = r"^[A-Za-z.\-_0-9+]{1,14}$"


def _schedule() -> str:
    fields = r"\s+".join(_field(low, high, words) for _, low, high, words in cron.FIELDS)
    macros, every = "|".join(sorted(cron.MACROS)), DURATION.removeprefix("^").removesuffix("$")
    return rf"^(\s*{fields}\s*|{macros}|@every {every})$"


def _field(low: int, high: int, words: list[str]) -> str:
    value = f"(0*({'|'.join(str(number) for number in range(low, high + 1))})" + (
        f"|(?i:{'|'.join(words)}))" if words else ")"
    )
    part = rf"([*?]|{value}(-{value})?)(/0*[1-9][0-9]*)?"
    return f"{part}(,{part})*"


def hypernode_rules() -> Iterator[Rule]:
    """Rules of members; that there are members, each selected in one way, is a rule of the schema."""
    members = "object.?spec.?members.orValue([])"
    pattern = "m.?selector.?regexMatch.?pattern"
    # An invalid pattern causes an error, which rejects the object.
    yield _judged(
        f"{members}.all(m, !{pattern}.hasValue() || [{text('x')}.matches({pattern}.value())].size() == 1)",
        "member regexMatch pattern is invalid",
    )


def _judged(holds: str, message: str) -> Rule:
    return Rule(f"{UNCHANGED} || ({holds})", message)
