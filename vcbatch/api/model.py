"""The base of every custom resource's model.

A model has the fields of the Go type that it mirrors: a field that Go leaves at its zero value (`""`, `0`, empty list)
has that default here, a pointer field is None when absent. Names are snake_case in Python and camelCase on the wire.
Given values are kept: unknown fields and explicit nulls survive `parse` and are in the result of `dump`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from vcbatch.api.resources import Resource

Json = dict[str, Any]

ResourceList = dict[str, str | int | float]
"""Resource name to quantity, as on the wire. Parse it with `vcbatch.api.quantity`."""

# Go's JSON names that an automatic camelCase would get wrong.
_WIRE_NAMES = {"transition_id": "transitionID", "unknown_jobs": "unKnowJobs"}


class MalformedObject(ValueError):
    """An object whose fields have other types than its CRD allows, so that no decision on it is possible."""


def wire_name(attribute: str) -> str:
    """The camelCase wire name of a snake_case attribute."""
    known = _WIRE_NAMES.get(attribute)
    if known is not None:
        return known
    head, *rest = attribute.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class Model(BaseModel):
    """A part of a custom resource. Immutable: `model_copy(update={...})` returns a changed copy."""

    model_config = ConfigDict(
        alias_generator=wire_name,
        validate_by_name=True,
        validate_by_alias=True,
        extra="allow",
        strict=True,
        frozen=True,
        protected_namespaces=(),
    )

    @model_validator(mode="wrap")
    @classmethod
    def _keep_what_was_given(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A null means the same as an absent field, but has to be in the result of `dump`."""
        if not isinstance(data, dict):
            return handler(data)
        given = cast(Json, data)
        if None not in given.values():
            model = handler(given)
        else:
            model = handler({key: value for key, value in given.items() if value is not None})
            # Kept where pydantic keeps private attributes, but not as one: each model would be created with an empty
            # one, which takes as long as the rest of its creation.
            nulls = {"nulls": tuple(key for key, value in given.items() if value is None)}
            object.__setattr__(model, "__pydantic_private__", nulls)
        for key in model.__pydantic_extra__ or ():
            # pydantic takes an unknown key that is spelled like an attribute as a value of that attribute.
            if key in cls.model_fields and given.get(wire_name(key)) is None:
                model.model_fields_set.discard(key)
        return model

    @model_serializer(mode="wrap")
    def _give_nulls_back(self, handler: SerializerFunctionWrapHandler) -> Json:
        wire: Json = handler(self)
        if self.__pydantic_private__:
            for key in self.__pydantic_private__["nulls"]:
                wire.setdefault(key, None)
        return wire

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Read JSON. Unknown fields, nulls and missing fields are accepted; raises `MalformedObject` on a wrong
        type."""
        try:
            return cls.model_validate(data, by_alias=True, by_name=False)
        except ValidationError as error:
            raise MalformedObject(_explain(cls.__name__, error)) from error

    def dump(self) -> Json:
        """The JSON of the fields that were given or set, without those that only have their default."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def _explain(kind: str, error: ValidationError) -> str:
    errors = [
        f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}, got {entry['input']!r:.40}"
        for entry in error.errors()
    ]
    return f"{kind}: {'; '.join(errors[:5])}"


class OwnerReference(Model):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(Model):
    """Kubernetes object metadata, as far as a decision reads it; other fields are kept unchanged."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    annotations: dict[str, str] = Field(default_factory=dict[str, str])
    owner_references: list[OwnerReference] = Field(default_factory=list[OwnerReference])
    finalizers: list[str] = Field(default_factory=list[str])

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def controller_owner(self) -> OwnerReference | None:
        """The owner reference with `controller: true`, of which Kubernetes allows at most one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Object(Model):
    """A whole custom resource."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Field(default_factory=Metadata)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return self.metadata.key


def owner_of(obj: Object, resource: Resource) -> Json:
    """The owner reference that makes `obj` the controller of a child; it blocks foreground deletion of `obj`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class NetworkTopology(Model):
    """The maximum network distance between the pods of a gang (`NetworkTopologySpec`)."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""
