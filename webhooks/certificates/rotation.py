"""When certificates are made anew: a pure decision from what the Secret holds at one moment.

Two rules keep every request of a rotation alive, whoever crashes in between:

* A leaf by a new authority is only made once API servers have had time to hear of that authority (`SETTLING`, and it is
  in all of our webhook configurations). Until then the old leaf goes on.
* An authority stays in the bundle until it has expired. No leaf by it is valid for longer, so nobody has to know which
  replica shows which leaf.

What doesn't work anyway (nothing there, expired, for other names, a key that doesn't fit) is replaced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

AUTHORITY_LIFE: Final = timedelta(days=365)
LEAF_LIFE: Final = timedelta(days=90)
BACKDATED: Final = timedelta(hours=1)
"""How long before its making a certificate begins to be valid, for clocks that are late."""
SETTLING: Final = timedelta(minutes=10)
"""How long an authority is trusted before it signs."""
MOST_AUTHORITIES: Final = 4
"""Authorities in a bundle. At regular times there are two at most; more come from rotations that were forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How long a certificate is valid: from `begins` on, until before `ends`."""

    begins: datetime
    ends: datetime

    def holds(self, now: datetime) -> bool:
        return self.begins <= now < self.ends

    def due(self, now: datetime) -> bool:
        """Whether two thirds of it are over."""
        return now >= self.begins + (self.ends - self.begins) * 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Whom API servers trust. `fingerprint` tells it from all others."""

    fingerprint: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """What is shown: `issuer` is the fingerprint of the authority that signed it, `names` whom it speaks for."""

    issuer: str
    span: Span
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What there is. `authorities`: the newest first, and `signs` says whether the key of that one is there. `leaf` is
    absent where none of them signed it or its key doesn't fit."""

    authorities: Sequence[Authority] = ()
    signs: bool = False
    leaf: Leaf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be made. `keep`: the fingerprints of the authorities that stay, in their order."""

    keep: Sequence[str]
    authority: bool
    leaf: bool


def decide(held: Held, *, now: datetime, names: frozenset[str], trusted: Callable[[str], bool]) -> Plan:
    """`names`: whom the leaf has to speak for. `trusted`: whether all our configurations carry that authority."""
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
        # A leaf whose authority finds no place in the bundle would be trusted by nobody.
        usable = usable and leaf is not None and leaf.issuer in keep
        return Plan(keep=keep, authority=True, leaf=not usable)
    keep = [authority.fingerprint for authority in alive]
    if not usable or leaf is None:
        return Plan(keep=keep, authority=False, leaf=True)
    signed_by_newest = leaf.issuer == newest.fingerprint
    settled = now >= newest.span.begins + BACKDATED + SETTLING and trusted(newest.fingerprint)
    renew = leaf.span.due(now) if signed_by_newest else settled
    return Plan(keep=keep, authority=False, leaf=renew)
