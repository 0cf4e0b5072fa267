"""ResourceQuotas of namespaces, enforced at admission: a gang that the quota would stop halfway isn't admitted."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api import quantities
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.quota import Quota
from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Plugin, Verdict, Vote
from vcbatch.scheduler.model.objects import Job, Phase
from vcbatch.scheduler.model.result import Shortage, WaitReason

_Amounts = dict[str, Quantity]


class ResourceQuotas(Plugin):
    """Admits a gang if its minResources, with the usage and with the gangs admitted before it, stay within every
    ResourceQuota of its namespace, in the resources that both name. Scopes are ignored, as in Volcano. An admitted gang
    counts until its pods do: with the part of its minimum that has no pods yet."""

    def open(self, session: Handle) -> None:
        self._quotas: dict[str, list[Quota]] = {}
        for quota in session.state.facts.of(Quota).values():
            if quota.status.hard:
                self._quotas.setdefault(quota.metadata.namespace, []).append(quota)
        for quotas in self._quotas.values():
            quotas.sort(key=lambda quota: quota.metadata.name)
        self._promised: dict[str, _Amounts] = {}
        if not self._quotas:
            return
        for job in session.state.jobs.values():
            if job.group is None or job.phase is not Phase.INQUEUE or job.group.metadata.namespace not in self._quotas:
                continue
            lacking = max(job.min_member - len(job.tasks), 0)
            if lacking:
                self._promise(job, lacking, job.min_member)

    def _promise(self, job: Job, parts: int, of: int) -> None:
        promised = self._promised.setdefault(_namespace(job), {})
        for name, amount in _minimum(job).items():
            promised[name] = promised.get(name, ZERO) + Quantity(amount.nano * parts // of, amount.notation)

    def enqueueable(self, job: Job) -> Verdict:
        wanted = _minimum(job)
        namespace = _namespace(job)
        promised = self._promised.get(namespace, {})
        for quota in self._quotas.get(namespace, ()):
            short = _short(quota, wanted, promised)
            if short:
                place = f"resourcequota/{namespace}/{quota.metadata.name}"
                more = [Remedy(RemedyAction.RAISE, place, s.resource, s.short_by) for s in short]
                return Verdict(Vote.REJECT, _sentence(quota, short), WaitReason.RESOURCE_QUOTA, short, place, more)
        return Verdict(Vote.PERMIT)

    def enqueued(self, job: Job) -> None:
        if _namespace(job) in self._quotas:
            self._promise(job, 1, 1)

    def admission_key(self, job: Job) -> object:
        """minResources may also name resources that no node has."""
        if job.group is None or _namespace(job) not in self._quotas:
            return None
        return (_namespace(job), tuple(sorted((job.group.spec.min_resources or {}).items())))


def _namespace(job: Job) -> str:
    return job.group.metadata.namespace if job.group is not None else ""


def _minimum(job: Job) -> _Amounts:
    given = (job.group.spec.min_resources if job.group is not None else None) or {}
    return {name: quantities.read(amount) for name, amount in given.items()}


def _short(quota: Quota, wanted: Mapping[str, Quantity], promised: Mapping[str, Quantity]) -> list[Shortage]:
    """The resources in which the quota doesn't suffice."""
    hard, used = quota.status.hard or {}, quota.status.used or {}
    short: list[Shortage] = []
    for name in sorted(hard.keys() & wanted.keys()):
        left = quantities.read(hard[name]) - quantities.read(used.get(name)) - promised.get(name, ZERO)
        if wanted[name] > left:
            left = max(left, ZERO)
            short.append(Shortage(name, wanted[name].format(), left.format(), (wanted[name] - left).format()))
    return short


def _sentence(quota: Quota, short: list[Shortage]) -> str:
    hard = quota.status.hard or {}
    parts = [
        f"{s.resource}: {s.requested} asked, {s.available} left of {quantities.text(hard[s.resource])}" for s in short
    ]
    return f"resource quota insufficient: {'; '.join(parts)} in ResourceQuota {quota.metadata.name}"
