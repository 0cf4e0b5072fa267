"""The type of a decision: the next status, and the intents that bring the cluster to the desired state.

A decision sends nothing. `vcbatch.runtime.apply` executes it in one fixed order:

    status  ->  marks  ->  ensures  ->  deletes  ->  creates  ->  events

and stops at the first part that fails; the object is then requeued. Replaying any prefix is harmless, since
every intent has the UID of its object, and creating an object that exists (with the same owner UID) counts as done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from vcbatch.api.resources import Resource

Json = dict[str, Any]


class EventType(StrEnum):
    """`type` of a core/v1 Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """One object, identified by its UID."""

    resource: Resource
    namespace: str
    name: str
    uid: str


class Named(Protocol):
    """An object, or its metadata."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


def ref_of(resource: Resource, named: Named) -> ObjectRef:
    """The object of that name and UID."""
    return ObjectRef(resource=resource, namespace=named.namespace, name=named.name, uid=named.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatus:
    """Replace the object's `status`. Written only where it differs from the stored one; after a conflict the decision,
    which was made on a stale snapshot, is made again."""

    ref: ObjectRef
    resource_version: str
    status: Json
    applied: tuple[str, ...] = ()
    """Fields that are written by server-side apply, each time all of them, so that `manager` owns exactly these: a
    controller of Volcano's that applies them under that name then finds itself the owner."""
    manager: str = ""
    may_wait: timedelta = timedelta(0)
    """How long the write may be delayed where no client acts on its contents (new counts, while a thousand pods start):
    it is merged with later changes, so that the writes for a gang don't grow with its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A merge patch that records something on an object before it is acted on."""

    ref: ObjectRef
    patch: Json
    version: str = ""
    """Where set, the resourceVersion that the object must still have, not counting the decision's own status write. For
    patches that repeat unchanged entries, since a merge patch replaces lists as a whole."""
    subresource: str = ""
    """`status` where an annotation of a Deployment is patched without a change of its generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshKeys:
    """Entries of a Secret's `data` that get a new RSA key pair when the object is created, and are kept from then on. A
    decision draws no random numbers, so it only names the entries."""

    private: str
    """The entry for the private key (PKCS#1 PEM)."""
    public: tuple[str, ...]
    """The entries for the public key, as a line of OpenSSH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensure:
    """The object must exist with these contents: created where missing, and merge-patched with `update` where it exists
    with the same controller owner (no request is sent when `update` is empty or changes nothing)."""

    resource: Resource
    body: Json
    update: Json = field(default_factory=dict[str, Any])
    keys: FreshKeys | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete exactly this object; a missing object counts as deleted."""

    ref: ObjectRef
    grace_seconds: int | None = None
    propagation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a child with a deterministic name. AlreadyExists counts as success where the owner UID is ours; where it
    isn't, another client's object has the name, which is an error of its own."""

    resource: Resource
    body: Json
    turn: int = 0
    """Creations of the next turn start when all of this turn are done: where a quota allows only some of them, the
    first ones are created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """A core/v1 Event about `ref`."""

    ref: ObjectRef
    type: EventType
    reason: str
    message: str
    after: WriteStatus | Create | Delete | None = None
    """The part of this decision that the event reports: it is emitted as soon as that part succeeded, whether or not
    the rest does. Without it, the event is emitted after everything else. Events that only the status remembers are not
    repeated by a later reconciliation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The result of one reconciliation of an object. An empty decision means that nothing is to be done."""

    status: WriteStatus | None = None
    marks: Sequence[Mark] = ()
    ensures: Sequence[Ensure] = ()
    deletes: Sequence[Delete] = ()
    creates: Sequence[Create] = ()
    events: Sequence[Emit] = ()
    requeue_at: datetime | None = None
    """The earliest moment at which time alone changes the decision (a policy timeout, a TTL)."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the observed state is the desired one, for now."""
        return not (self.status or self.marks or self.ensures or self.deletes or self.creates or self.events)


def strip_unchanged(*, stored: Mapping[str, Any], decided: Mapping[str, Any]) -> Json:
    """The merge patch from `stored` to `decided`, with only the keys that `decided` has."""
    patch: Json = {}
    for key, value in decided.items():
        before = stored.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = strip_unchanged(stored=before, decided=value)  # pyright: ignore[reportUnknownArgumentType]
            if inner:
                patch[key] = inner
        elif before != value:
            patch[key] = value
    return patch
