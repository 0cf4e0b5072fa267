"""The served resources: one `Served` entry per resource, built in or defined by a CustomResourceDefinition.

This module is the contract between the server's core (store, verbs, watches), the built-in kinds and the custom kinds.

* `kinds.served() -> list[Served]` returns the built-in resources; review kinds only have a `create` handler.
* `crds.CrdRegistry` is a `CustomKinds`: it converts CustomResourceDefinition objects to entries.
* `discovery.documents(...)` and `openapi.documents(...)` are a `Documents`: the paths below /api, /apis and /openapi.
* `protobuf.decode(body) -> Json` decodes `application/vnd.kubernetes.protobuf` request bodies (`k8s\\0` + Unknown).

The core validates metadata (names, labels, annotations, owners, finalizers, immutable fields); a strategy never does.
The core also builds tables from `Served.columns`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from vcbatch.api.quantity import Quantity
from vcbatch.api.resources import Resource
from vcbatch.interfaces.processes import Session
from vcbatch.local.apiserver.apierrors import FieldError

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _nothing_stored(_resource: Resource, _namespace: str | None, _name: str) -> Json | None:
    return None


def _nothing_listed(_resource: Resource, _namespace: str | None) -> Sequence[Json]:
    return ()


def _nothing_used(_namespace: str, _quota: Json) -> Mapping[str, Quantity]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The information of a request for a strategy. `subresource` is "", "status", "scale", …"""

    user: str
    groups: Sequence[str]
    now: datetime
    namespace: str | None
    subresource: str = ""
    dry_run: bool = False
    field_validation: str = "Strict"  # Strict | Warn | Ignore
    field_manager: str = ""
    """The manager of the write, for the managed fields of objects with an earlier apply."""
    lookup: Callable[[Resource, str | None, str], Json | None] = _nothing_stored
    """Returns another stored object, or None (for admission-like defaults: PriorityClass, Namespace, …)."""
    listed: Callable[[Resource, str | None], Sequence[Json]] = _nothing_listed
    """Returns all objects of a resource, in one namespace or (None) in all: for allocations such as service
    addresses."""
    used: Callable[[str, Json], Mapping[str, Quantity]] = _nothing_used
    """Returns the usage of a namespace's pods for a ResourceQuota with this spec, by quota resource name."""
    options: Json = field(default_factory=dict[str, Any])
    """The CreateOptions, UpdateOptions or DeleteOptions of the request, as far as the client set any."""
    user_uid: str = ""
    user_extra: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Extra information about a service account besides its name."""
    unadmitted: bool = False
    """Whether no webhook is called: the server writes this itself, or the webhooks have validated the object that it
    follows from."""
    patient: bool = False
    """Whether the strategy may take long, as it doesn't block the event loop. Otherwise, it raises
    `expressions.TooLong` if it would take long, and is called again with `patient`."""
    warnings: list[str] = field(default_factory=list[str])
    """Texts appended here are sent to the client as `Warning: 299` headers."""


class Strategy(Protocol):
    """The special rules of one kind. Methods change the object in place; they get plain JSON and never do I/O.

    The order for a create is: `fields` (types, unknown and duplicate fields) -> metadata -> `default` -> admission
    (mutate) -> `default` -> `validate` -> admission (validate) -> `admit_create` -> stored. For an update the same with
    the old object. Any of them may raise `StatusError` for an error that isn't a list of field errors.
    """

    def fields(self, obj: Json, ctx: RequestContext) -> list[str]:
        """The errors that strict field validation reports (`unknown field "spec.foo"`); prunes fields that aren't kept.

        Raises `errors.DecodeError` where a value has the wrong type for a built-in kind. Duplicate keys of the body are
        found by the core's decoder."""
        ...

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        """Set server-side defaults; on create drop fields that a client may not set (status where it is a subresource),
        on update keep those that this request may not change (through `ctx.subresource == "status"` all but status and
        metadata, else the status)."""
        ...

    def validate(self, obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
        """All errors at once, in the order in which Kubernetes reports them."""
        ...

    def admit_create(self, obj: Json, ctx: RequestContext) -> None:
        """The last step of a create that webhooks have admitted, such as the quota check; raises `StatusError`."""
        ...

    def changes_generation(self, obj: Json, old: Json | None) -> bool:
        """Whether this write counts as a change of the desired state. With `old` None (a create): whether the kind has
        a generation at all (it then starts at 1)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column: `cell` computes its value from the object; `priority` above zero is shown with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    cell: Callable[[Json, datetime], Any] = field(default=lambda _obj, _now: "")


class Operations(Protocol):
    """The operations of a handler on stored objects, through the same verbs as any client: defaults, validation,
    admission, conflicts and watches included. All raise `StatusError`."""

    def now(self) -> datetime: ...

    def get(self, resource: Resource, namespace: str | None, name: str) -> Json: ...

    def list(self, resource: Resource, namespace: str | None) -> Sequence[Json]: ...

    async def create(self, resource: Resource, namespace: str | None, obj: Json, ctx: RequestContext) -> Json: ...

    async def change(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        change: Callable[[Json], None],
        ctx: RequestContext,
    ) -> Json:
        """Read, let `change` edit the object in place, and write it without strategy or validation (the caller is
        responsible for these: a binding, an eviction's condition). Returns the stored object."""
        ...

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, options: Json, ctx: RequestContext
    ) -> Json: ...


class PodStreams(Protocol):
    """The kubelet interface for subresources of pods (`vcbatch.local.kubelet.Kubelet` implements it)."""

    def logs(self, namespace: str, name: str, container: str, options: Any) -> AsyncIterator[bytes]:
        """The log of a container; `options` is a `vcbatch.local.kubelet.LogOptions`."""
        ...

    async def exec(
        self, namespace: str, name: str, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Session:
        """Start a command in a running container. Raises `StatusError`."""
        ...

    async def attach(self, namespace: str, name: str, container: str, *, stdin: bool, tty: bool) -> Session:
        """Attach to a running container: its output from now on, and its input where it has one open. Raises
        `StatusError`."""
        ...

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of a running pod. Raises `OSError`, or `StatusError` where there is no such pod."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRequest:
    """One request to a subresource or a review kind that a `Handler` answers."""

    served: Served
    method: str
    verb: str
    name: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    """Lower-case names."""
    body: Json | None
    ctx: RequestContext
    operations: Operations
    kubelet: PodStreams | None = None
    """Runs the pods of this machine; None in a server without one."""
    scope: Mapping[str, Any] | None = None
    receive: Callable[[], Awaitable[Any]] | None = None
    send: Callable[[Any], Awaitable[None]] | None = None
    """The ASGI channel, for other protocols (exec, attach, port-forward); None when called in process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A handler's response. `body`: JSON, bytes, or a stream of byte chunks."""

    body: Json | bytes | AsyncIterator[bytes]
    code: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[HandlerRequest], Awaitable[Reply | None]]
"""Answers a request; None means that it has answered on the ASGI channel itself."""


def dns_subdomain_name(name: str, prefix: bool) -> Sequence[str]:
    """The default name rule: errors of `name` as an RFC 1123 subdomain; with `prefix` as a generateName."""
    from vcbatch.api.name_rules import dns_subdomain

    return dns_subdomain(name, prefix=prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One served resource."""

    resource: Resource
    singular: str
    strategy: Strategy
    columns: Sequence[Column]
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    verbs: Sequence[str] = ALL_VERBS
    subresources: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Subresource name to its verbs: {"status": ("get", "patch", "update"), "log": ("get",), "binding": ("create",)}.
    "status" and "scale" are served by the core unless `handlers` has them."""
    handlers: Mapping[str, Handler] = field(default_factory=dict[str, Handler])
    """Subresource name to its handler; "" is the resource itself (review kinds, whose only verb is create)."""
    subresource_kinds: Mapping[str, tuple[str, str, str]] = field(default_factory=dict[str, tuple[str, str, str]])
    """Subresource name to (group, version, kind) for discovery where it isn't the resource's own."""
    list_kind: str = ""
    merge_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Strategic merge: dotted list path (without indexes) to its merge key ("" for a list of scalars that merges);
    empty for custom resources, which refuse strategic merge patches."""
    strategic: bool = False
    selectable_fields: Sequence[str] = ()
    """Field selectors besides metadata.name and metadata.namespace, as dotted paths."""
    field_values: Callable[[Json], Mapping[str, str]] | None = None
    """Returns the values of the selectable fields where they aren't the plain strings at their paths."""
    schema: Json | None = None
    """The OpenAPI v3 schema that discovery publishes, with descriptions."""
    scale: Mapping[str, str] | None = None
    """JSON paths specReplicasPath, statusReplicasPath, labelSelectorPath of a CRD's scale subresource."""
    generated: bool = False
    """Whether it is defined by a CustomResourceDefinition."""
    storage: Resource | None = None
    """The resource under which objects are stored, where that isn't `resource` itself: another version of a custom
    resource, or events.k8s.io over core events. The other entry must be served too or be storage only."""
    to_storage: Callable[[Json], Json] | None = None
    from_storage: Callable[[Json], Json] | None = None
    """Conversions between this entry's version and the stored one; without them only `apiVersion` changes."""
    name_rule: Callable[[str, bool], Sequence[str]] = dns_subdomain_name
    """(name, whether it is a generateName prefix) -> the errors of the name, with Kubernetes' messages."""
    validates_whole_on_update: bool = True
    """Kubernetes reports metadata errors of most updates once more for validating the whole object again."""
    unconditional_update: bool = True
    """Whether a PUT without a resourceVersion overwrites; custom resources answer `must be specified for an update`."""
    create_on_update: bool = False
    """Whether a PUT of a missing object creates it."""
    grace_period: Callable[[Json, int | None], int | None] | None = None
    """(object, requested gracePeriodSeconds) -> the seconds a deletion waits for its kubelet: 0 deletes at once, None
    means no grace period. Without a function deletions are immediate."""
    returns_deleted: bool = False
    """Whether DELETE returns the deleted object instead of a Status (pods, services, …)."""
    row_conditions: Callable[[Json], Sequence[Json]] | None = None
    """Returns the conditions of a table row: a pod's `Completed`."""
    deprecation: str = ""
    """The warning for every request for the resource."""
    default_propagation: str = "Background"
    """The propagation policy of a DELETE without one."""

    @property
    def stored_as(self) -> Resource:
        """The resource under which the store keeps the objects."""
        return self.storage or self.resource


class CustomKinds(Protocol):
    """The registry of entries that CustomResourceDefinitions define. Implemented by `crds.CrdRegistry()`.

    The core calls `reconcile` for every definition at start and after every write to one, and `remove` when one is
    deleted. The definition's own `Served` entry is a built-in kind, with its validation in its strategy.
    """

    def reconcile(self, crd: Json, now: datetime) -> Json | None:
        """Register a definition: names accepted or in conflict, entries created, changed or withdrawn. Returns its new
        `status` where that differs from the stored one (conditions, acceptedNames, storedVersions), else None."""
        ...

    def remove(self, name: str) -> None: ...

    def served(self) -> Sequence[Served]:
        """The entries of all established definitions, one for each served version."""
        ...


class Documents(Protocol):
    """The discovery and OpenAPI documents. Implemented by functions of `discovery` and `openapi`:

    `documents(served: Sequence[Served], path: str, headers: Mapping[str, str], query: Mapping[str, Sequence[str]]) ->
    Reply | None` returns the response to GET of `path` (without its query), or None where that isn't one of its
    paths. `discovery` has /api, /apis, /api/v1, /apis/G, /apis/G/V and /version; `openapi` has /openapi/v3 and the
    paths below. Both must be fast when called again with the same `served` list object (the core passes a new list only
    when it changed).
    """

    def __call__(
        self,
        served: Sequence[Served],
        path: str,
        headers: Mapping[str, str],
        query: Mapping[str, Sequence[str]],
    ) -> Reply | None: ...
