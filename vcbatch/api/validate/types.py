"""Whether an object has the JSON types that its CustomResourceDefinition declares.

An API server checks this before it calls a validating webhook. Callers that use the rules directly (`vcbatch lint`,
`vcbatch simulate`, a client of the webhook service) get the same errors here: no rule may read a value of a wrong type
as if it were absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from vcbatch.api.crd import render
from vcbatch.api.crd.shape import shape_errors
from vcbatch.api.model import Json
from vcbatch.api.resources import CUSTOM_RESOURCES, Resource
from vcbatch.api.validate.errors import Cause, ValidationError

_LONGEST_REPORTED: Final = 60


def type_errors(resource: Resource, given: Mapping[str, Any]) -> list[ValidationError]:
    """Errors of fields of a custom resource, other than its metadata, whose value has another JSON type than the schema
    declares; at most twenty. Empty for kinds without a schema here."""
    if resource not in CUSTOM_RESOURCES:
        return []
    return [
        ValidationError(error.field, str(error), Cause(error.reason))
        for key, schema in _properties(resource.kind).items()
        if key in given
        for error in shape_errors(given[key], schema, key, given=_shortened)
    ]


def _shortened(value: Any) -> Any:
    """The value as a message shows it: scalars unchanged, long texts and collections by their beginning or type."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_REPORTED else f"{value[:_LONGEST_REPORTED]}..."
    return value if isinstance(value, bool | int | float) else "array" if isinstance(value, list) else "object"


@cache
def _properties(kind: str) -> Json:
    schema: Json = render(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties: Json = schema["properties"]
    return {key: below for key, below in properties.items() if key != "metadata"}
