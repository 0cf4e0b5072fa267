"""The schema of a model: types from its annotations, everything else from the facets."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from vcbatch.api.crd import schemas
from vcbatch.api.crd.facets import FACETS, Facet
from vcbatch.api.model import Json, Metadata, Model, Object, wire_name

_SCALARS: dict[Any, Json] = {str: schemas.STRING, bool: schemas.BOOLEAN, int: schemas.INT32}
_NO_FACET = Facet()


@cache
def object_schema(model: type[Model]) -> Json:
    """The structural schema of a model, with properties sorted by name."""
    facets = FACETS.get(model, {})
    properties: Json = {}
    required: list[str] = []
    for attribute, field in model.model_fields.items():
        facet = facets.get(attribute, _NO_FACET)
        properties[wire_name(attribute)] = _property(field.annotation, facet)
        if facet.required:
            required.append(wire_name(attribute))
    if issubclass(model, Object):
        properties.update(_of_every_object())
    schema: Json = {"type": "object"}
    if required:
        schema["required"] = sorted(required)
    schema["properties"] = {name: properties[name] for name in sorted(properties)}
    return schema


def _of_every_object() -> Json:
    return {
        "apiVersion": {"type": "string", "description": "Group and version of this object."},
        "kind": {"type": "string", "description": "Kind of this object."},
        "metadata": {"type": "object"},
    }


def _property(annotation: Any, facet: Facet) -> Json:
    schema: Json = {**(facet.schema or _schema(annotation)), **facet.limits}
    if facet.without_defaults:
        schema = _without_defaults(schema)
    if facet.item_limits:
        schema["items"] = {**schema["items"], **facet.item_limits}
    if facet.description:
        schema = {"description": facet.description, **schema}
    return schema


def _without_defaults(schema: Json) -> Json:
    """The schema without defaults for its own properties; those of deeper levels apply only to given values."""
    bare = {
        name: {key: value for key, value in below.items() if key != "default"}
        for name, below in schema["properties"].items()
    }
    return {**schema, "properties": bare}


def _schema(annotation: Any) -> Json:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        some = [argument for argument in arguments if argument is not NoneType]
        return schemas.QUANTITY if len(some) > 1 else _schema(some[0])
    if origin is list:
        return schemas.array(_schema(arguments[0]))
    if origin is dict:
        return schemas.mapping(_schema(arguments[1]))
    if hasattr(annotation, "__metadata__"):
        return _schema(annotation.__origin__)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return schemas.METADATA if annotation is Metadata else object_schema(annotation)
    raise TypeError(f"{annotation!r} has no schema of its own: give the field a facet with one")
