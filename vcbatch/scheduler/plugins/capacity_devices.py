"""Quotas of devices by ResourceClaim: how many devices of a class, and how much of their shared capacity, a queue may
use.

Every queue of the hierarchy from the pod's upwards that names a key limits it. A number of devices is limited if the
limit is above zero; device capacity that no queue of the chain names isn't allocated at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vcbatch.api.dra import ResourceClaim
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Verdict, Vote
from vcbatch.scheduler.index.dra.charges import UNKNOWN, Charge, is_capacity, is_count, known, milli, shown
from vcbatch.scheduler.index.dra.queue_devices import Held
from vcbatch.scheduler.index.dra.served import is_unmade
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import Job, Phase, Task, TaskStatus
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.queues.tree import QueueTree

_MEMORY = "device quotas"
_EMPTY = Held()


class _Excess(NamedTuple):
    """A key whose limit a queue would exceed: `asked` is the requested total, `added` the part that adds to its usage,
    in thousandths; `most` is None if no queue names the key, so that none of it is allocated."""

    queue: str
    key: str
    asked: int
    added: int
    held: int
    most: int | None

    @property
    def never(self) -> bool:
        return self.most is None or self.asked > self.most

    @property
    def shortage(self) -> Shortage:
        most = self.most or 0
        left = max(most - self.held, 0)
        return Shortage(
            self.key,
            _amount(self.added),
            shown(left),
            _amount(self.added if self.added >= UNKNOWN else self.added - left),
        )

    @property
    def sentence(self) -> str:
        if self.most is None:
            return f"{self.key} {_amount(self.added)}, which the capability of queue {self.queue} doesn't name"
        return (
            f"{self.key} {_amount(self.added)} with {shown(self.held)} held of {shown(self.most)} allowed "
            f"(queue {self.queue}): short by {self.shortage.short_by}"
        )


class DeviceQuotas:
    """The device quotas of one cycle, on the devices that the snapshot counts."""

    def __init__(self, session: Handle, tree: QueueTree, *, capacity: bool) -> None:
        state = session.state
        self._session = session
        self._claimed = state.claimed
        self._chains, above, self._limits, self._named = _layout(session, tree)
        self._usage = state.count_devices(capacity=capacity)
        self._usage.settle(above)
        self._held = self._usage.whole if tree.hierarchical else self._usage.own
        self._promised: dict[str, Held] | None = None
        self._claims: dict[str, tuple[str, ...]] = {}

    def concern(self, cls: TaskClass) -> bool:
        """Whether pods of the class get devices that count against queues."""
        return self._claimed.concerns(cls)

    def columns(self, queue: str) -> Iterator[tuple[int, float]]:
        """The queue's usage, by resource column, of the keys that some queue names."""
        dims = self._session.dims
        for key in self._named:
            column = dims.column(key)
            if column is not None:
                yield column, float(known(self._held.get(queue, _EMPTY).amounts.get(key, 0)))

    def amounts(self, task: Task) -> Sequence[float]:
        """The pod's request plus the devices that its queue uses, or would use, for this pod alone."""
        queue = task.job.queue if task.job is not None else None
        if queue is None or not self.concern(task.cls):
            return task.cls.amounts
        dims, out = self._session.dims, list(task.cls.amounts)
        users = self._held.get(queue.name, _EMPTY).users
        alone = 1 if task.node else 0
        for claim in dict.fromkeys(self._usage.claims(task)[0]):
            if users.get(claim, 0) > alone:
                continue
            for key, amount in self._usage.charge(claim).items():
                column = dims.column(key)
                if column is not None:
                    out[column] += known(amount)
        return out

    # One pod ----------------------------------------------------------------------------------------------------------

    def barred(self, task: Task) -> Verdict | None:
        """Why the pod's claims may not be allocated on behalf of its queue now; None if they may."""
        queue = task.job.queue if task.job is not None else None
        if queue is None:
            return None
        claims, unmade = self._usage.claims(task)
        there = self._session.state.facts.of(ResourceClaim)
        missing = next((key for key in claims if key not in there and not is_unmade(key)), None)
        if unmade or missing:
            name = f'"{unmade}" of the pod isn\'t made yet' if unmade else f'"{missing}" not found'
            return Verdict(Vote.REJECT, f"{{pod}} waits: resourceclaim {name}", WaitReason.DEVICES)
        over = self._excess(queue.name, tuple(dict.fromkeys(claims)), admission=False)
        return _verdict(over, "{pod} needs ") if over else None

    # Admission --------------------------------------------------------------------------------------------------------

    def wanted(self, job: Job) -> tuple[str, ...]:
        """The claims of the pods that the gang needs to start, as far as its pods exist."""
        claims = self._claims.get(job.key)
        if claims is None:
            claims = self._claims[job.key] = self._wanted(job, gated=True)
        return claims

    def _wanted(self, job: Job, *, gated: bool) -> tuple[str, ...]:
        pending = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and (gated or not t.gated)]
        if not any(self.concern(task.cls) for task in pending):
            return ()
        needed = max(job.min_member - job.ready_count, 0)
        first = pending if needed >= len(pending) else self._session.ordered(pending)[:needed]
        return tuple(sorted({claim for task in first for claim in self._usage.claims(task)[0]}))

    def refusal(self, job: Job) -> Verdict | None:
        """Why the gang may not be admitted for its claims; None if it may."""
        claims = self.wanted(job)
        if not claims or job.queue is None:
            return None
        over = self._excess(job.queue.name, claims, admission=True)
        return _verdict(over, "queue resource quota insufficient: the gang needs ") if over else None

    def admitted(self, job: Job) -> None:
        """Count the claims of an admitted gang from now on."""
        if self._promised is not None:
            self._promise(job, self._promised)

    def _inqueue(self) -> Mapping[str, Held]:
        """The devices that admitted gangs are still to get, by queue; computed on first use."""
        if self._promised is None:
            self._promised = {}
            for job in self._session.state.waiting.values():
                if job.phase is Phase.INQUEUE:
                    self._promise(job, self._promised)
        return self._promised

    def _promise(self, job: Job, promised: dict[str, Held]) -> None:
        for claim in self._wanted(job, gated=False) if job.queue is not None else ():
            for queue in self._chains.get(job.queue_name, ()):
                if claim not in self._held.get(queue, _EMPTY).users:
                    promised.setdefault(queue, Held()).use(claim, self._usage.charge(claim), 1)

    # Limits -----------------------------------------------------------------------------------------------------------

    def _excess(self, queue: str, claims: Sequence[str], *, admission: bool) -> list[_Excess]:
        """The limits that these claims would exceed: of the nearest queue, from this one upwards, with any."""
        asked = _sum(map(self._usage.charge, claims))
        chain = self._chains.get(queue, (queue,))
        unnamed = [
            _Excess(queue, key, amount, amount, 0, None)
            for key, amount in sorted(asked.items())
            if is_capacity(key) and not any(key in self._limits.get(name, ()) for name in chain)
        ]
        if unnamed:
            return unnamed
        promised: Mapping[str, Held] = self._inqueue() if admission else {}
        for name in chain:
            limits = self._limits.get(name)
            if limits:
                held, also = self._held.get(name, _EMPTY), promised.get(name, _EMPTY)
                new = [claim for claim in claims if claim not in held.users and claim not in also.users]
                over = list(_over(name, limits, asked, _sum(map(self._usage.charge, new)), (held, also)))
                if over:
                    return over
        return []


def _over(
    queue: str, limits: Mapping[str, int], asked: Charge, added: Charge, usage: Sequence[Held]
) -> Iterator[_Excess]:
    for key, amount in sorted(added.items()):
        most = limits.get(key)
        if most is None or amount <= 0 or (is_count(key) and most <= 0):
            continue
        held = sum(book.amounts.get(key, 0) for book in usage)
        if held + amount > most:
            yield _Excess(queue, key, asked[key], amount, held, most)


def _sum(charges: Iterable[Charge]) -> dict[str, int]:
    total: dict[str, int] = {}
    for charge in charges:
        for key, amount in charge.items():
            total[key] = total.get(key, 0) + amount
    return total


def _verdict(over: Sequence[_Excess], lead: str) -> Verdict:
    reason = WaitReason.IMPOSSIBLE if any(excess.never for excess in over) else WaitReason.QUEUE_LIMIT
    text = lead + "; ".join(excess.sentence for excess in over)
    return Verdict(Vote.REJECT, text, reason, [excess.shortage for excess in over])


def _amount(amount: int) -> str:
    return "all devices" if amount >= UNKNOWN else shown(amount)


class _Layout(NamedTuple):
    """By queue, `chains` has it and the ancestors that the scheduler configuration enforces, `above` all of its chain
    in the tree, and `limits` its capability; `named` are the keys that some queue names."""

    chains: Mapping[str, tuple[str, ...]]
    above: Mapping[str, tuple[str, ...]]
    limits: Mapping[str, Mapping[str, int]]
    named: Sequence[str]


def _layout(session: Handle, tree: QueueTree) -> _Layout:
    """The layout; kept while no queue changes."""
    state = session.state
    stamp = (state.queues_stamp, tree.hierarchical)
    kept = state.memory.get(_MEMORY)
    if kept is not None and kept[0] == stamp:
        return kept[1]
    limits: dict[str, Mapping[str, int]] = {}
    named: set[str] = set()
    for name, queue in state.queues.items():
        spec = queue.view.spec
        guarantee = spec.guarantee.resource if spec.guarantee else None
        for amounts in (spec.capability, spec.deserved, guarantee):
            named.update(key for key in amounts or () if is_count(key) or is_capacity(key))
        limits[name] = {key: milli(amount) for key, amount in (spec.capability or {}).items() if key in named}
    whole = tree if tree.hierarchical else QueueTree(state.queues)
    made = _Layout(_chains(tree), _chains(whole), limits, sorted(named))
    state.memory[_MEMORY] = (stamp, made)
    return made


def _chains(tree: QueueTree) -> dict[str, tuple[str, ...]]:
    return {name: tuple(tree.names[i] for i in tree.chains[at]) for at, name in enumerate(tree.names)}
