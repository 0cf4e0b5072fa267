"""A job in full, line by line in the format of `vcctl job view`: padded names, a tab, then the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcbatch.api.loose import part
from vcbatch.cli.base.fields import dig, number, objects, quantities, text, words
from vcbatch.cli.base.terminal import clean
from vcbatch.cli.vcctl.words import bracketed, compact_json, local_time, since

Json = Mapping[str, Any]

_NONE = "<none>"
_INDENT = "  "

_VENDOR_ANNOTATIONS = {
    "Cri . Cci . Io / Container - Type:          ": "cri.cci.io/container-type",
    "Kubernetes . Io / Availablezone:            ": "kubernetes.io/availablezone",
    "Network . Alpha . Kubernetes . Io / Network:": "network.alpha.kubernetes.io/network",
}
_ALWAYS_SHOWN = ("env", "ssh")
_COUNTERS = {
    "Succeeded:    ": "succeeded",
    "Pending:      ": "pending",
    "Running:      ": "running",
    "Failed:       ": "failed",
    "Terminating:  ": "terminating",
    "Unknown:      ": "unknown",
    "RetryCount:   ": "retryCount",
    "Min Available:": "minAvailable",
    "Version:      ": "version",
}


def job_text(job: Json) -> str:
    """All fields of the job, without its events."""
    return "".join(f"{line}\n" for section in (_head, _metadata, _spec, _status) for line in section(job))


def _line(level: int, name: str, value: object = None) -> str:
    """One line; `value` None makes it a heading."""
    return _INDENT * level + (name if value is None else f"{name}\t{clean(str(value))}")


def _head(job: Json) -> Iterator[str]:
    yield _line(0, "Name:       ", text(job, "metadata", "name"))
    yield _line(0, "Namespace:  ", text(job, "metadata", "namespace"))
    for title, key in (("Labels:     ", "labels"), ("Annotations:", "annotations")):
        found = words(job, "metadata", key)
        yield _line(0, title, compact_json(found) if found else _NONE)
    yield _line(0, "API Version:", text(job, "apiVersion"))
    yield _line(0, "Kind:       ", text(job, "kind"))


def _metadata(job: Json) -> Iterator[str]:
    yield _line(0, "Metadata:")
    yield _line(1, "Creation Timestamp:", local_time(dig(job, "metadata", "creationTimestamp")))
    yield _line(1, "Generate Name:     ", text(job, "metadata", "generateName"))
    yield _line(1, "Generation:        ", number(job, "metadata", "generation"))
    yield _line(1, "Resource Version:  ", text(job, "metadata", "resourceVersion"))
    yield _line(1, "UID:               ", text(job, "metadata", "uid"))


def _spec(job: Json) -> Iterator[str]:
    yield _line(0, "Spec:")
    yield _line(1, "Min Available:     ", number(job, "spec", "minAvailable"))
    yield _line(1, "Plugins:")
    plugins = part(part(job, "spec"), "plugins")
    for plugin in (*_ALWAYS_SHOWN, *sorted(set(plugins) - set(_ALWAYS_SHOWN))):
        arguments = plugins.get(plugin)
        yield _line(2, f"{clean(plugin.title())}:", bracketed(arguments if isinstance(arguments, list) else ()))
    yield _line(1, "Scheduler Name:    ", text(job, "spec", "schedulerName"))
    yield _line(1, "Tasks:")
    for task in objects(job, "spec", "tasks"):
        yield from _task(task)


def _task(task: Json) -> Iterator[str]:
    yield _line(2, "Name:", text(task, "name"))
    yield _line(2, "Replicas:", number(task, "replicas"))
    yield _line(2, "Template:")
    yield _line(3, "Metadata:")
    yield _line(4, "Annotations:")
    annotations = words(task, "template", "metadata", "annotations")
    for title, key in _VENDOR_ANNOTATIONS.items():
        yield _line(5, title, annotations.get(key, ""))
    yield _line(4, "Creation Timestamp:", local_time(dig(task, "template", "metadata", "creationTimestamp")))
    yield _line(3, "Spec:")
    yield _line(4, "Containers:")
    for container in objects(task, "template", "spec", "containers"):
        yield from _container(container)
    yield _line(4, "Image Pull Secrets:")
    for secret in objects(task, "template", "spec", "imagePullSecrets"):
        yield _line(5, "Name:     ", text(secret, "name"))
    yield _line(4, "Restart Policy:   ", text(task, "template", "spec", "restartPolicy"))


def _container(container: Json) -> Iterator[str]:
    yield _line(5, "Command:")
    command = dig(container, "command")
    for word in command if isinstance(command, list) else ():
        yield _INDENT * 6 + clean(str(word))
    yield _line(5, "Image:", text(container, "image"))
    yield _line(5, "Name: ", text(container, "name"))
    yield _line(5, "Ports:")
    for port in objects(container, "ports"):
        yield _line(6, "Container Port:", number(port, "containerPort"))
        yield _line(6, "Name:          ", text(port, "name"))
    yield _line(5, "Resources:")
    for title, key in (("Limits:", "limits"), ("Requests:", "requests")):
        resources = quantities(container, "resources", key)
        yield _line(6, title)
        yield _line(7, "Cpu:   ", resources.get("cpu", 0))
        yield _line(7, "Memory:", resources.get("memory", 0))
    yield _line(6, "Working Dir:", text(container, "workingDir"))


def _status(job: Json) -> Iterator[str]:
    yield _line(0, "Status:")
    for title, key in _COUNTERS.items():
        count = number(job, "status", key)
        if count > 0:
            yield _line(1, title, count)
    yield _line(1, "State:")
    yield _line(2, "Phase:", text(job, "status", "state", "phase"))
    controlled = words(job, "status", "controlledResources")
    if controlled:
        yield _line(1, "Controlled Resources:")
        for key, value in sorted(controlled.items()):
            yield _line(2, f"{clean(key)}: ", value)
    conditions = objects(job, "status", "conditions")
    if conditions:
        yield _line(1, "Conditions:")
        yield _line(2, "Status", "TransitionTime")
        for condition in conditions:
            moment = dig(condition, "lastTransitionTime")
            shown = local_time(moment) if moment else "<nil>"
            yield _line(2, f"{clean(text(condition, 'status'))} ", shown) + " "


def events_text(events: Sequence[Json]) -> str:
    """The events as a table, in chronological order."""
    if not events:
        return f"Events: \t{_NONE}\n"
    in_order = sorted(events, key=lambda event: (_first(event), text(event, "metadata", "name")))
    rows = [("Type", "Reason", "Age", "From", "Message"), ("-------",) * 5, *map(_event, in_order)]
    lines = (f"{kind:<15}\t{reason:<40}\t{age:<30}\t{source:<40}\t{said}" for kind, reason, age, source, said in rows)
    return "Events:\n" + "".join(f"{line}\n" for line in lines)


def _first(event: Json) -> str:
    """The time of its first occurrence. Times of the same format sort as text."""
    return text(event, "firstTimestamp") or text(event, "eventTime") or text(event, "metadata", "creationTimestamp")


def _event(event: Json) -> tuple[str, str, str, str, str]:
    age = since(_first(event))
    count = number(event, "count")
    if count > 1:
        age = f"{since(dig(event, 'lastTimestamp'))} (x{count} over {age})"
    source = [text(event, "source", "component") or text(event, "reportingComponent"), text(event, "source", "host")]
    cells = (text(event, "type"), text(event, "reason"), age, ", ".join(filter(None, source)), text(event, "message"))
    return tuple(clean(cell.strip()) for cell in cells)  # type: ignore[return-value]
