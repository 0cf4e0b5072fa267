"""The pages of labels and annotations, reasons and events, from the modules that define them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from docs.tools.page import code, page, paragraphs, table
from docs.tools.source import class_of, module, named, sections
from vcbatch.api.reasons import JobReason, WaitReason
from vcbatch.cli.resources.job.remedies import USUAL_REMEDIES, reported_by_nodes

_NAMES = "vcbatch.api.names"
_REASONS = "vcbatch.api.reasons"
_OWN = "Not one of Volcano's: "
_KEY = re.compile(r"^([a-z0-9.-]+\.[a-z]+/[\w.{}-]*|hccl/\w+|sla-waiting-time|predicate-time)$")
_PLACEHOLDERS = {"job": "JOB", "queue": "QUEUE", "limit": "QUEUE", "namespace": "NAMESPACE", "selector": "SELECTOR"}
_MESSAGES = {
    WaitReason.NODE_UNSCHEDULABLE: "2 node(s) were unschedulable",
    WaitReason.TAINT_TOLERATION: "2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
}
"""Messages of the scheduler for reasons whose remedies follow from the message."""
_EVENTS = {
    "Job": "JobReason",
    "Queue": "QueueReason",
    "JobFlow": "JobFlowReason",
    "CronJob": "CronJobReason",
    "Pod and PodGroup": "SchedulingEvent",
    "NodeShard": "NodeShardReason",
    "Lease or ConfigMap of the scheduler": "PolicyEvent",
    "Lease of the controllers": "ConfigurationEvent",
}
_CONDITIONS = {
    "HyperNode, condition `Consistent`": "HyperNodeReason",
    "PodGroup": "PodGroupReason",
    "Pod": "PodReason",
}


def name_pages() -> dict[str, str]:
    """File name -> text."""
    return {"labels.md": _labels(), "reasons.md": _reasons(), "events.md": _events()}


def _strings() -> Iterator[tuple[str, str, str]]:
    """Section, value and docstring of every string constant of `names`."""
    titles = sections(_NAMES)
    for one in named(module(_NAMES).body):
        value = getattr(one.node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            title = [text for line, text in titles if line < one.node.lineno][-1:]
            yield (title[0] if title else ""), value.value, one.docstring


def _labels() -> str:
    parts = [
        (
            "Labels, annotations and finalizers that vcbatch reads or writes. Names with `volcano.sh` are Volcano's, "
            "names with `vcbatch.dev` are vcbatch's own. A name takes the place of `{}`, and follows a final `/` or "
            "`-`.\n"
        )
    ]
    found: dict[str, list[list[str]]] = {}
    variables: list[list[str]] = []
    for section, value, docstring in _strings():
        if _KEY.match(value):
            found.setdefault(section, []).append([code(value), docstring])
        elif section == "Environment of containers":
            variables.append([code(value), docstring])
    for section, rows in found.items():
        parts += [f"## {section}\n", table(("Name", "Description"), rows)]
    variables += [
        [
            "`VC_<TASK>_HOSTS`",
            "The host names of a task's pods, separated by commas; the task's name is in upper case.",
        ],
        ["`VC_<TASK>_NUM`", "The number of these hosts."],
    ]
    parts += ["## Environment variables of containers\n", table(("Variable", "Description"), variables)]
    return page("Labels and annotations", *(part + "\n" for part in parts))


def _remedies(reason: WaitReason | JobReason) -> str:
    sentences = [*USUAL_REMEDIES.get(reason, ()), *reported_by_nodes(_MESSAGES.get(reason, ""), barred=False)]
    return " ".join(_as_code(one.format_map(_PLACEHOLDERS)) for one in sentences)


def _as_code(sentence: str) -> str:
    """The sentence with its command as code."""
    found = re.search(r": ((?:vcbatch|kubectl) .*)$", sentence)
    text = sentence if found is None else f"{sentence[: found.start()]}: `{found[1]}`"
    return text if text.endswith((".", "`.")) else f"{text}."


def _members(name: str) -> Iterator[tuple[str, str]]:
    """Value and docstring of each member of an enumeration of `reasons`."""
    for one in named(class_of(_REASONS, name).body):
        value = getattr(one.node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value, one.docstring


def _reasons() -> str:
    waits = [[code(value), doc, _remedies(WaitReason(value))] for value, doc in _members("WaitReason")]
    jobs = [
        [code(value), doc.removeprefix(_OWN), remedies]
        for value, doc in _members("JobReason")
        if (remedies := _remedies(JobReason(value)))
    ]
    losses = [[code(value), doc] for value, doc in _members("LossCause")]
    head = ("Reason", "Meaning", "What to do")
    return page(
        "Pending reasons and what to do",
        "A job that doesn't run has one reason. `vcbatch job list` shows it, and `vcbatch job explain NAME` shows it "
        "with its numbers, the jobs ahead, and what to do. The [scheduler](../scheduler.md#pending-reasons) writes it "
        "into the condition `Unschedulable` of the PodGroup.\n",
        "## The gang waits\n\n" + table(head, waits),
        "\n## The job can't start its pods\n\n" + table(head, jobs),
        "\n## Causes of lost pods\n\nA job records them in `status.ledger.losses`.\n\n"
        + table(("Cause", "Meaning"), losses),
    )


def _events() -> str:
    parts = [
        (
            "Reasons of the events and conditions that vcbatch writes. `kubectl describe` and `vcbatch job describe` "
            "show the events of an object. *Own* marks reasons that Volcano doesn't have.\n"
        )
    ]
    for title, enumeration in _EVENTS.items():
        rows = [[code(value), *_own(doc)] for value, doc in _members(enumeration)]
        parts += [f"## {title}\n", table(("Reason", "Meaning", ""), rows)]
    parts += ["## Conditions\n"]
    for title, enumeration in _CONDITIONS.items():
        parts += [f"### {title}\n", table(("Reason", "Meaning"), ([code(v), doc] for v, doc in _members(enumeration)))]
    return page("Events and conditions", *(part + "\n" for part in parts))


def _own(docstring: str) -> tuple[str, str]:
    if docstring.startswith(_OWN):
        text = docstring.removeprefix(_OWN)
        return text[:1].upper() + text[1:], "own"
    return paragraphs(docstring), ""
