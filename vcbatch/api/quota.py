"""ResourceQuotas as a controller reads them: reduced to the fields that show whether more capacity is left."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from vcbatch.api import quantities
from vcbatch.api.meta import ObjectMeta, Wire

Amounts = Mapping[str, str | int | float]


class QuotaStatus(Wire):
    """The limits of the quota, and the usage, by resource."""

    hard: dict[str, str | int | float] | None = None
    used: dict[str, str | int | float] | None = None


class Quota(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: QuotaStatus = msgspec.field(default_factory=QuotaStatus)


def has_more_room(new: Quota, old: Quota) -> bool:
    """Whether a request that was rejected before may be allowed now."""
    was, now = old.status.hard or {}, new.status.hard or {}
    return any(name not in now or _room(new, name) > _room(old, name) for name in was)


def _room(quota: Quota, name: str) -> quantities.Quantity:
    status = quota.status
    return quantities.read((status.hard or {}).get(name)) - quantities.read((status.used or {}).get(name))
