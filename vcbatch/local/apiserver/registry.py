"""What the server serves: one `Served` entry per resource, built in or made by a CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.errors import FieldError

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What a strategy may know of the request it serves. `subresource` is "", "status", "scale", …"""

    user: str
    groups: Sequence[str]
    now: datetime
    namespace: str | None
    subresource: str = ""
    dry_run: bool = False
    field_validation: str = "Strict"  # Strict | Warn | Ignore
    lookup: Callable[[Resource, str | None, str], Json | None] = lambda _r, _ns, _n: None
    """Another object as it is stored now, or None (for admission-like defaults: PriorityClass, Namespace, …)."""


class Strategy(Protocol):
    """What is special about one kind. Methods change the object in place; they get plain JSON and never do I/O.

    The order for a create is: `fields` (unknown and duplicate fields) -> metadata -> `default` -> admission (mutate)
    -> `default` -> `validate` -> admission (validate) -> stored. For an update the same with the old object.
    """

    def fields(self, obj: Json, ctx: RequestContext) -> list[str]:
        """The faults that strict field validation reports (`unknown field "spec.foo"`); prunes what isn't kept."""
        ...

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        """Set server-side defaults; on create drop what a client may not set (status where it is a subresource),
        on update keep what this request may not change."""
        ...

    def validate(self, obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
        """All faults at once, in the order in which Kubernetes reports them."""
        ...

    def changes_generation(self, obj: Json, old: Json) -> bool:
        """Whether this update counts as a change of the desired state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column: `cell` reads it off the object; `priority` above zero shows with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    cell: Callable[[Json, datetime], Any] = field(default=lambda _obj, _now: "")


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
    """Subresource name to its verbs: {"status": ("get", "patch", "update"), "log": ("get",), "binding": ("create",)}."""
    list_kind: str = ""
    merge_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Strategic merge: dotted list path (without indexes) to its merge key; empty for custom resources, which refuse
    strategic merge patches."""
    strategic: bool = False
    selectable_fields: Sequence[str] = ()
    """Field selectors beside metadata.name and metadata.namespace, as dotted paths."""
    schema: Json | None = None
    """The OpenAPI v3 schema that discovery publishes, with descriptions."""
    scale: Mapping[str, str] | None = None
    """JSON paths specReplicasPath, statusReplicasPath, labelSelectorPath of a CRD's scale subresource."""
    generated: bool = False
    """Whether it comes from a CustomResourceDefinition."""
