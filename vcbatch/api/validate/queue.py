"""Validation of Queues on creation, update and deletion (volcano-sh/volcano
`pkg/webhooks/admission/queues/validate`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api import names
from vcbatch.api.quantity import ZERO
from vcbatch.api.queue import DEFAULT, ROOT, Queue, QueueState
from vcbatch.api.validate import amounts
from vcbatch.api.validate.access import annotation_errors
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.lookup import WorkLookup

_SPEC: Final = "requestBody.spec"
_ANNOTATIONS: Final = "requestBody.metadata.annotations"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """`max_depth`: the maximum of levels below the root. `keep_allocated`: the message about a queue that can't be
    deleted has the number of its placed pods."""

    max_depth: int = 5
    protect_root: bool = True
    keep_allocated: bool = False


DEFAULT_RULES: Final = QueueRules()


def queue_errors(
    queue: Queue, lookup: WorkLookup, *, old: Queue | None = None, rules: QueueRules = DEFAULT_RULES
) -> list[ValidationError]:
    """Errors of a new queue, or of a changed one if `old` is given. A queue that was stored under older rules passes if
    the fields that these apply to are unchanged."""
    if old is not None and queue.spec == old.spec and _asked(queue) == _asked(old):
        return list(annotation_errors(queue)) if _access(queue) != _access(old) else []
    errors = [
        *annotation_errors(queue),
        *_amount_errors(queue),
        *_state_errors(queue, old),
        *_hierarchy_errors(queue, lookup.queues()),
    ]
    tree = _Tree(queue, lookup)
    if old is None or old.spec.parent != queue.spec.parent:
        errors += tree.parent_errors(rules.max_depth)
    if old is not None and queue.name == ROOT and rules.protect_root and _limits(queue) != _limits(old):
        text = "queue `root` can not be modified: its capability, deserved and guarantee are the cluster's"
        errors.append(ValidationError("spec", text, Cause.FORBIDDEN))
    moved = old is None or old.spec.parent != queue.spec.parent or _limits(queue) != _limits(old)
    if moved and queue.name != ROOT and not errors:
        errors += tree.limit_errors()
    return errors


def queue_deletion_errors(name: str, lookup: WorkLookup, *, rules: QueueRules = DEFAULT_RULES) -> list[ValidationError]:
    """Why the queue can't be deleted."""
    if name in (DEFAULT, ROOT):
        return [ValidationError("metadata.name", f"`{name}` queue can not be deleted", Cause.FORBIDDEN)]
    queue = lookup.queue(name)
    if queue is None:
        return [ValidationError("metadata.name", _not_found(name), Cause.NOT_FOUND)]
    errors: list[ValidationError] = []
    work = lookup.work(name)
    if work.text:
        text = f"queue {name} can not be deleted because it has {work.text}"
        errors.append(ValidationError("metadata.name", f"{text}; delete or finish their jobs first", Cause.FORBIDDEN))
    if rules.keep_allocated and work.placed and not work.held:
        text = f"queue {name} can not be deleted because it has allocated Pods: {work.placed}"
        errors.append(ValidationError("status.allocated", text))
    children = sorted(other.name for other in lookup.queues() if other.spec.parent == name)
    if children:
        text = f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        errors.append(ValidationError("metadata.name", text, Cause.FORBIDDEN))
    return errors


def _access(queue: Queue) -> str | None:
    return queue.metadata.annotations.get(names.ALLOWED_NAMESPACES)


def _not_found(name: str) -> str:
    return f'queue.scheduling.volcano.sh "{name}" not found'


def _asked(queue: Queue) -> tuple[str, ...]:
    """The user-writable values besides the spec: the state and the hierarchy annotations."""
    annotations = queue.metadata.annotations
    return queue.status.state, annotations.get(names.HIERARCHY, ""), annotations.get(names.HIERARCHY_WEIGHTS, "")


def _limits(queue: Queue) -> tuple[amounts.Amounts, amounts.Amounts, amounts.Amounts]:
    return (
        amounts.read(queue.spec.capability),
        amounts.read(queue.spec.deserved),
        amounts.read(queue.spec.guarantee.resource),
    )


def _amount_errors(queue: Queue) -> Iterator[ValidationError]:
    """Errors where guarantee <= deserved <= capability is violated; a guarantee has to be part of the deserved
    share."""
    spec = queue.spec
    yield from amounts.amount_errors(spec.capability, f"{_SPEC}.capability")
    yield from amounts.amount_errors(spec.deserved, f"{_SPEC}.deserved")
    yield from amounts.amount_errors(spec.guarantee.resource, f"{_SPEC}.guarantee.resource")
    capability, deserved, guarantee = _limits(queue)
    for name, least in guarantee.items():
        field = f"{_SPEC}.deserved.{name}"
        got = deserved.get(name)
        if got is None and least != ZERO:
            yield ValidationError(
                field, f'{field}: Invalid value: "<nil>": deserved[{name}] must be >= guarantee[{name}]={least}'
            )
        elif got is not None and got < least:
            text = f"deserved[{name}]={got} must be >= guarantee[{name}]={least}"
            yield ValidationError(field, f'{field}: Invalid value: "{got}": {text}')
    for name, got in deserved.items():
        if name in capability and got > capability[name]:
            field = f"{_SPEC}.deserved.{name}"
            text = f"deserved[{name}]={got} must be <= capability[{name}]={capability[name]}"
            yield ValidationError(field, f'{field}: Invalid value: "{got}": {text}')


def _state_errors(queue: Queue, old: Queue | None) -> Iterator[ValidationError]:
    """Errors of the state that a user writes. The stored state isn't the user's: a change of the spec of a Closing
    queue is allowed, and contains the stored state."""
    state = queue.status.state
    if old is not None and state == old.status.state and state in set(QueueState):
        return
    if state not in ("", QueueState.OPEN, QueueState.CLOSED):
        field = f"{_SPEC}.state"
        yield ValidationError(field, f'{field}: Invalid value: "{state}": queue state must be in [Open Closed]')


def _hierarchy_errors(queue: Queue, queues: Sequence[Queue]) -> Iterator[ValidationError]:
    """Errors where the hierarchy annotation and its weights differ in length, or where another queue lies below it."""
    path = queue.metadata.annotations.get(names.HIERARCHY, "")
    weights = queue.metadata.annotations.get(names.HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    if len(path.split("/")) != len(weights.split("/")):
        text = f"{names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}"
        yield ValidationError(_ANNOTATIONS, f'{_ANNOTATIONS}: Invalid value: "{path}": {text}')
        return
    for weight in weights.split("/"):
        complaint = _weight_complaint(weight, weights)
        if complaint:
            yield ValidationError(_ANNOTATIONS, f'{_ANNOTATIONS}: Invalid value: "{weights}": {complaint}')
            return
    for other in queues:
        below = other.metadata.annotations.get(names.HIERARCHY, "")
        if other.name != queue.name and below.startswith(f"{path}/"):
            text = f"{path} is not allowed to be in the sub path of {below} of queue {other.name}"
            yield ValidationError(_ANNOTATIONS, f'{_ANNOTATIONS}: Invalid value: "{path}": {text}')
            return


def _weight_complaint(weight: str, weights: str) -> str:
    try:
        number = float(weight)
    except ValueError:
        return f'{weight} in the {weights} is invalid number: strconv.ParseFloat: parsing "{weight}": invalid syntax'
    return "" if number > 0 and not math.isnan(number) else f"{weight} in the {weights} must be larger than 0"


class _Tree:
    """The queues with this one in its new form."""

    def __init__(self, queue: Queue, lookup: WorkLookup) -> None:
        self._queue = queue
        self._lookup = lookup
        self._queues = {other.name: other for other in lookup.queues()} | {queue.name: queue}

    def parent_errors(self, max_depth: int) -> Iterator[ValidationError]:
        """Errors of the parent: it has to exist, not be below this queue or too deep, and have no running job."""
        name, parent = self._queue.name, self._queue.spec.parent
        field = "spec.parent"
        if parent in ("", ROOT):
            return
        if parent == name:
            yield ValidationError(field, f"queue {name} cannot use itself as parent")
            return
        if parent not in self._queues:
            text = f"failed to get parent queue {parent} of queue {name}: {_not_found(parent)}"
            yield ValidationError(field, text, Cause.NOT_FOUND)
            return
        ancestors = self._ancestors()
        if self._queue in ancestors:
            yield ValidationError(field, f"queue {name} cannot have {parent} as parent, which is below it")
            return
        if len(ancestors) + 1 > max_depth:
            yield ValidationError(
                field, f"queue {name} would be {len(ancestors) + 1} levels deep, and the limit is {max_depth}"
            )
        siblings = [other for other in self._children(parent) if other.name != name]
        pods = 0 if siblings else self._lookup.work(parent).placed
        if pods:
            text = f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
            yield ValidationError(field, text)

    def limit_errors(self) -> Iterator[ValidationError]:
        """Errors where limits of a queue and its ancestors and descendants conflict. The root limits no queue."""
        queue = self._queue
        yield from self._above_errors()
        if queue.spec.parent not in ("", ROOT) and queue.spec.parent in self._queues:
            yield from self._sum_errors(self._queues[queue.spec.parent])
        yield from self._below_errors()
        if self._children(queue.name):
            yield from self._sum_errors(queue)

    def _above_errors(self) -> Iterator[ValidationError]:
        queue = self._queue
        for name, amount in amounts.read(queue.spec.capability).items():
            for ancestor in self._ancestors():
                limit = amounts.read(ancestor.spec.capability).get(name, ZERO)
                if limit > ZERO:
                    if amount > limit:
                        text = f"capability[{name}]={amount} exceeds its ancestor's capability={limit}"
                        yield ValidationError(f"spec.capability.{name}", f"queue {queue.name} {text}")
                    break

    def _below_errors(self) -> Iterator[ValidationError]:
        queue = self._queue
        for name, limit in amounts.read(queue.spec.capability).items():
            for below, amount in self._first_capabilities(queue.name, name):
                if amount > limit:
                    text = f"capability[{name}]={limit} is less than capability={amount} of queue {below} below it"
                    yield ValidationError(f"spec.capability.{name}", f"queue {queue.name} {text}")

    def _sum_errors(self, parent: Queue) -> Iterator[ValidationError]:
        children = self._children(parent.name)
        for which in ("guarantee", "deserved"):
            wanted = amounts.total(_which(child, which) for child in children)
            limit = _which(parent, which)
            if any(amount > limit.get(name, ZERO) for name, amount in wanted.items()):
                text = f"sum of children's {which} ({amounts.shown(wanted)})"
                over = f"{text} exceeds parent's {which} limit ({amounts.shown(limit)})"
                unnamed = sorted(name for name, amount in wanted.items() if amount > ZERO and name not in limit)
                if unnamed:
                    over += f"; of what its {which} doesn't name its children have none: {', '.join(unnamed)}"
                yield ValidationError(f"spec.{which}", f"parent queue {parent.name} validation failed: {over}")

    def _ancestors(self) -> list[Queue]:
        """The ancestors from the parent on, without the root; ends where a cycle closes."""
        chain: list[Queue] = []
        above = self._queue.spec.parent
        while above not in ("", ROOT) and above in self._queues and self._queues[above] not in chain:
            chain.append(self._queues[above])
            above = self._queues[above].spec.parent
        return chain

    def _children(self, name: str) -> list[Queue]:
        return [other for other in self._queues.values() if other.spec.parent == name]

    def _first_capabilities(self, name: str, resource: str) -> Iterator[tuple[str, amounts.Quantity]]:
        """The first capability of the resource on each path to descendants, as far as the tree has no cycle."""
        waiting, seen = self._children(name), {name}
        while waiting:
            child = waiting.pop()
            if child.name in seen:
                continue
            seen.add(child.name)
            found = amounts.read(child.spec.capability).get(resource)
            if found is not None:
                yield child.name, found
            else:
                waiting += self._children(child.name)


def _which(queue: Queue, which: str) -> amounts.Amounts:
    return amounts.read(queue.spec.guarantee.resource if which == "guarantee" else queue.spec.deserved)
