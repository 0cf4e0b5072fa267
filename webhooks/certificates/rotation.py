"""When certificates are renewed: a pure decision from the contents of the Secret at one moment.

Two rules keep every request of a rotation alive, even if replicas crash in between:

* A leaf by a new authority is only issued once API servers have had time to load that authority (after `SETTLING`, and
when it is in all of our webhook configurations). Until then the old leaf is kept.
* An authority stays in the bundle until it has expired. No leaf by it is valid for longer, so it doesn't matter which
replica serves which leaf.

A pair that can't work (missing, expired, for other names, with a key that doesn't match) is replaced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

AUTHORITY_LIFE: Final = timedelta(days=365)
LEAF_LIFE: Final = timedelta(days=90)
BACKDATED: Final = timedelta(hours=1)
"""How long before its issue a certificate becomes valid, for clocks that are behind."""
SETTLING: Final = timedelta(minutes=10)
"""How long an authority is in the bundle before it signs."""
MOST_AUTHORITIES: Final = 4
"""The maximum of authorities in a bundle. Normally there are two at most; more come from forced rotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The validity of a certificate: from `begins` on, until before `ends`."""

    begins: datetime
    ends: datetime

    def holds(self, now: datetime) -> bool:
        return self.begins <= now < self.ends

    def due(self, now: datetime) -> bool:
        """Whether two thirds of it have passed."""
        return now >= self.begins + (self.ends - self.begins) * 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority, identified by its `fingerprint`."""

    fingerprint: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The serving certificate: `issuer` is the fingerprint of the authority that signed it, `names` its host names."""

    issuer: str
    span: Span
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The valid contents of the Secret. `authorities`: the newest first; `signs`: whether the Secret has the key of
    that one. `leaf` is None where none of them signed it or its key doesn't match."""

    authorities: Sequence[Authority] = ()
    signs: bool = False
    leaf: Leaf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to create. `keep`: the fingerprints of the authorities that are kept, in their order."""

    keep: Sequence[str]
    authority: bool
    leaf: bool


def decide(held: Held, *, now: datetime, names: frozenset[str], trusted: Callable[[str], bool]) -> Plan:
    """Decide what is due. `names`: the names that the leaf must have. `trusted`: whether all our configurations have
    that authority."""
    alive = [authority for authority in held.authorities if now < authority.span.ends]
    newest = alive[0] if alive and alive[0] == held.authorities[0] and held.signs else None
    leaf = held.leaf
    usable = (
        leaf is not None
        and leaf.span.holds(now)
        and names <= leaf.names
        and any(leaf.issuer == authority.fingerprint for authority in alive)
    )
    if newest is None or not newest.span.holds(now) or newest.span.due(now):
        keep = [authority.fingerprint for authority in alive[: MOST_AUTHORITIES - 1]]
        # A leaf whose authority isn't kept in the bundle would be trusted by no API server.
        usable = usable and leaf is not None and leaf.issuer in keep
        return Plan(keep=keep, authority=True, leaf=not usable)
    keep = [authority.fingerprint for authority in alive]
    if not usable or leaf is None:
        return Plan(keep=keep, authority=False, leaf=True)
    signed_by_newest = leaf.issuer == newest.fingerprint
    settled = now >= newest.span.begins + BACKDATED + SETTLING and trusted(newest.fingerprint)
    renew = leaf.span.due(now) if signed_by_newest else settled
    return Plan(keep=keep, authority=False, leaf=renew)
