"""What a decision is: the next status and the intents that make the world follow it.

Deciding sends nothing. `vcbatch.runtime.apply` carries a decision out in one fixed order:

    status  ->  marks  ->  ensures  ->  deletes  ->  creates  ->  events

and stops at the first part that fails; the object is then looked at again. Replaying any prefix is harmless, since
every intent names the UID it is about and a create of what exists (with the same owner UID) counts as done.
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
    """One object, and only the one with this UID."""

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
    """Replace the object's `status`. Written only where it differs from what is stored; a conflict means that the
    decision was made on a stale picture and is made again."""

    ref: ObjectRef
    resource_version: str
    status: Json
    applied: tuple[str, ...] = ()
    """Fields that are written by server-side apply, each time all of them, so that `manager` owns them and nothing
    else: a controller of Volcano's that applies them under that name then finds them its own."""
    manager: str = ""
    may_wait: timedelta = timedelta(0)
    """How long it may be left to later looks where it brings nothing that anybody acts on (new counts, while a thousand
    pods start): so that what comes a moment later goes with it, and the writes of a gang don't grow with its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A merge patch that records something on an object before it is acted on."""

    ref: ObjectRef
    patch: Json
    version: str = ""
    """Where given, the resourceVersion that the object must still have, the decision's own status write aside: for a
    patch that repeats what it doesn't change, since a merge patch replaces lists whole."""
    subresource: str = ""
    """`status` where an annotation of a Deployment is to leave its generation as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshKeys:
    """Entries of a Secret's `data` that a new RSA pair fills when the object is created, and that stay from then on.
    A decision draws no random numbers, so it only says where they go."""

    private: str
    """Gets the private key (PKCS#1 PEM)."""
    public: tuple[str, ...]
    """Each gets the public key as a line of OpenSSH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensure:
    """The object must exist with these contents: created where missing, and where it exists with the same controller
    owner, merge-patched with `update` (nothing is sent when `update` is empty or changes nothing)."""

    resource: Resource
    body: Json
    update: Json = field(default_factory=dict[str, Any])
    keys: FreshKeys | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete exactly this object; gone already counts as done."""

    ref: ObjectRef
    grace_seconds: int | None = None
    propagation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a child with a deterministic name. AlreadyExists is done where the owner UID is ours; where it isn't,
    the name is taken by somebody else, which is an error of its own."""

    resource: Resource
    body: Json
    turn: int = 0
    """Those that follow with another turn are begun when all of this one are made: where a quota has room for some
    only, it is for the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """A core/v1 Event about `ref`."""

    ref: ObjectRef
    type: EventType
    reason: str
    message: str
    after: WriteStatus | Create | Delete | None = None
    """What of this decision it tells of: it is sent as soon as just that succeeded, whatever becomes of the rest.
    Without it, after everything else. Of what only the status remembers nothing is told at a later look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from one look at an object. An empty decision means that nothing is to be done."""

    status: WriteStatus | None = None
    marks: Sequence[Mark] = ()
    ensures: Sequence[Ensure] = ()
    deletes: Sequence[Delete] = ()
    creates: Sequence[Create] = ()
    events: Sequence[Emit] = ()
    requeue_at: datetime | None = None
    """When time alone changes the decision (a policy timeout, a TTL): the earliest such moment."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the world is as it should be, for now."""
        return not (self.status or self.marks or self.ensures or self.deletes or self.creates or self.events)


def strip_unchanged(*, stored: Mapping[str, Any], decided: Mapping[str, Any]) -> Json:
    """The merge patch that turns `stored` into what `decided` asks for, only keys that `decided` names."""
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
