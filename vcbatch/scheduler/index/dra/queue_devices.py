"""The device claims of each queue's placed pods, and their charges: exact after every placement and every change of the
cluster, without reading other pods.

A claim counts once in a queue, however many of the queue's pods share it, and once in each ancestor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vcbatch.api.dra import ResourceClaim
from vcbatch.scheduler.index.dra.charges import Charge, charge_of, claims_of
from vcbatch.scheduler.index.dra.served import ServedResources, is_unmade, unmade_key
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo, Task

_NOTHING: Charge = {}


@dataclass(slots=True)
class Held:
    """The usage of one queue: by claim how many pods use it, and by quota key the charge."""

    users: dict[str, int] = field(default_factory=dict[str, int])
    amounts: dict[str, int] = field(default_factory=dict[str, int])

    def use(self, claim: str, charge: Charge, step: int) -> None:
        """Count one more pod that uses the claim, or one less (`step` -1)."""
        before = self.users.get(claim, 0)
        self.users[claim] = before + step
        if not self.users[claim]:
            del self.users[claim]
        if before == 0 or before + step == 0:
            self.charge(charge, step)

    def charge(self, charge: Charge, sign: int) -> None:
        for key, amount in charge.items():
            self.amounts[key] = self.amounts.get(key, 0) + sign * amount
            if not self.amounts[key]:
                del self.amounts[key]


class QueueDevices:
    """The claims that queues use. `own` has those of a queue's own pods, `whole` also those of its descendants."""

    def __init__(
        self, facts: Facts, served: ServedResources, node: Callable[[str], NodeInfo | None], *, capacity: bool
    ) -> None:
        """`served` are the extended resources that devices provide, `node` returns nodes by name. `capacity`: whether
        capacity of devices counts besides their number."""
        self.capacity = capacity
        self.served_stamp = served.stamp
        """The stamp of `served` when this was created: it is valid as long as that doesn't change."""
        self.own: dict[str, Held] = {}
        self.whole: dict[str, Held] = {}
        self.stamp = 0
        """Grows whenever some queue's charges may have changed."""
        self._facts = facts
        self._served = served
        self._node = node
        self._seen = 0
        self.chains: Mapping[str, tuple[str, ...]] = {}
        """By queue, the queue and its ancestors."""
        self._using: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._charges: dict[str, tuple[ResourceClaim | None, Charge]] = {}
        self._uses: dict[str, int] = {}
        self._extended: dict[str, Task] = {}
        self._asked: dict[str, Charge] = {}

    def claims(self, task: Task) -> tuple[list[str], str]:
        """The claims of a pod, including that for its extended resources, and the pod's name of one that doesn't exist
        yet, if any."""
        keys, unmade = claims_of(task)
        charge = self._of_extended(task)
        if charge:
            keys.append(unmade_key(task))
            self._asked[keys[-1]] = charge
        return keys, unmade

    def _of_extended(self, task: Task) -> Charge:
        """The charge of a pod that gets devices for extended resources; before it is placed, the largest one on any
        node."""
        if not task.node:
            return self._read(self._served.largest_claim(task))
        made, info = self._served.made(task.uid), self._node(task.node)
        return self._read(self._served.claim(task, info) if made is None and info is not None else made)

    def charge(self, claim: str) -> Charge:
        """The present charge of a claim; empty if it doesn't exist."""
        known = self._charges.get(claim)
        if known is not None:
            return known[1]
        return self._asked.get(claim) or self._read(self._facts.of(ResourceClaim).get(claim))

    def _read(self, claim: ResourceClaim | None) -> Charge:
        return _NOTHING if claim is None else charge_of(claim, capacity=self.capacity)

    def settle(self, chains: Mapping[str, tuple[str, ...]]) -> None:
        """Begin a cycle, with each queue and its ancestors, itself first: apply the changes of claims."""
        self._asked.clear()
        if chains != self.chains:
            self.chains = chains
            self._recount()
        stamp = self._facts.stamp(ResourceClaim)
        if stamp == self._seen:
            return
        self._seen = stamp
        claims = self._facts.of(ResourceClaim)
        for key, (claim, before) in list(self._charges.items()):
            now, user = claims.get(key), self._extended.get(key)
            if now is claim and user is None:
                continue
            after = self._read(now) if user is None else self._of_extended(user)
            self._charges[key] = (now, after)
            if after != before:
                self._recharge(key, before, after)

    def _recount(self) -> None:
        using = list(self._using.items())
        self.own.clear()
        self.whole.clear()
        for _, (queue, claims) in using:
            self._book(queue, claims, 1)
        self.stamp += 1

    def _recharge(self, claim: str, before: Charge, after: Charge) -> None:
        for held in (*self.own.values(), *self.whole.values()):
            if claim in held.users:
                held.charge(before, -1)
                held.charge(after, 1)
        self.stamp += 1

    def hold(self, tasks: Iterable[Task]) -> None:
        """Count these pods as placed."""
        for task in tasks:
            queue = task.job.queue if task.job is not None else None
            if task.uid in self._using or queue is None:
                continue
            claims = tuple(dict.fromkeys(self.claims(task)[0]))
            if not claims:
                continue
            self._using[task.uid] = (queue.name, claims)
            for claim in claims:
                if not self._uses.get(claim):
                    made = self._facts.of(ResourceClaim).get(claim)
                    self._charges[claim] = (made, self._asked.get(claim) or self._read(made))
                    if is_unmade(claim):
                        self._extended[claim] = task
                self._uses[claim] = self._uses.get(claim, 0) + 1
            self._book(queue.name, claims, 1)
            self.stamp += 1

    def release(self, tasks: Iterable[Task]) -> None:
        """Count these pods as not placed any more."""
        for task in tasks:
            queue, claims = self._using.pop(task.uid, ("", ()))
            if not claims:
                continue
            self._book(queue, claims, -1)
            for claim in claims:
                self._uses[claim] -= 1
                if not self._uses[claim]:
                    del self._uses[claim], self._charges[claim]
                    self._extended.pop(claim, None)
            self.stamp += 1

    def _book(self, queue: str, claims: Iterable[str], step: int) -> None:
        chain = self.chains.get(queue, (queue,))
        usage = [self.own.setdefault(queue, Held()), *[self.whole.setdefault(name, Held()) for name in chain]]
        for claim in claims:
            charge = self._charges[claim][1]
            for held in usage:
                held.use(claim, charge, step)
