"""The resource usage of the pods of a namespace, counted once per version of a pod and updated as pods are created,
changed and deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import PODS
from vcbatch.local.apiserver.kinds.pods.quota import in_scope, usage
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.store import Store

_MOST_ACCOUNTS = 256
_NOTHING: Mapping[str, Quantity] = {}


@dataclass(slots=True)
class _Account:
    """The usage in one namespace for the quotas of one scope."""

    seen: dict[str, tuple[int, Mapping[str, Quantity]]] = field(
        default_factory=dict[str, tuple[int, Mapping[str, Quantity]]]
    )
    """By UID: the version that was counted, and its usage."""
    total: dict[str, Quantity] = field(default_factory=dict[str, Quantity])

    def book(self, before: Mapping[str, Quantity], after: Mapping[str, Quantity]) -> None:
        for name, amount in before.items():
            self.total[name] = self.total.get(name, ZERO) - amount
        for name, amount in after.items():
            self.total[name] = self.total.get(name, ZERO) + amount


class PodLedger:
    """Includes writes that aren't on disk yet, so that two concurrent creates can't both use the rest of a quota."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: dict[tuple[str, str], _Account] = {}

    def used(self, namespace: str, spec: Json) -> Mapping[str, Quantity]:
        """The usage that counts against a ResourceQuota with this spec, by quota resource name."""
        scope = json.dumps([spec.get("scopes"), spec.get("scopeSelector")], sort_keys=True)
        account = self._accounts.get((namespace, scope))
        if account is None:
            if len(self._accounts) >= _MOST_ACCOUNTS:
                self._accounts.clear()
            account = self._accounts[namespace, scope] = _Account()
        self._refresh(account, self._store.collection(PODS).by_namespace.get(namespace) or {}, spec)
        return account.total

    @staticmethod
    def _refresh(account: _Account, pods: Mapping[str, Record], spec: Json) -> None:
        seen = account.seen
        for record in pods.values():
            known = seen.get(record.uid)
            if known is not None and known[0] == record.version:
                continue
            pod = record.decode()
            counted = usage(pod) if in_scope(pod, spec) else _NOTHING
            account.book(known[1] if known else _NOTHING, counted)
            seen[record.uid] = (record.version, counted)
        if len(seen) > len(pods):
            alive = {record.uid for record in pods.values()}
            for uid in [uid for uid in seen if uid not in alive]:
                account.book(seen.pop(uid)[1], _NOTHING)
