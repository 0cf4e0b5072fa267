"""Finds the field of an object whose type differs from its kind's schema, after decoding it has failed."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vcbatch.api.resources import CUSTOM_RESOURCES, Resource

Json = Mapping[str, Any]

_GO_FIELD: Final = re.compile(r"into Go struct field [^.\s]+\.(\S+) of type")
_PACKAGES: Final = {"": "core", "rbac.authorization.k8s.io": "rbac"}


def misfit(resource: Resource, obj: Json) -> tuple[str, str] | None:
    """The first field whose value has the wrong type, with the error; None where all types fit or the schema isn't
    known."""
    if resource in CUSTOM_RESOURCES:
        from vcbatch.cli.files.schema import misfits

        return next(iter(misfits(resource.kind, dict(obj), unknown=False)), None)
    return _built_in(resource, obj)


def _built_in(resource: Resource, obj: Json) -> tuple[str, str] | None:
    from vcbatch.local.apiserver.apierrors import DecodeError
    from vcbatch.local.apiserver.schema.builtin import decode
    from vcbatch.local.apiserver.schema.types import structs

    package = _PACKAGES.get(resource.group, resource.group.removesuffix(".k8s.io"))
    name = f"{package}/{resource.api_version.rpartition('/')[2]}.{resource.kind}"
    if name not in structs():
        return None
    try:
        decode(name, copy.deepcopy(dict(obj)))
    except DecodeError as error:
        found = _GO_FIELD.search(str(error))
        return (found[1] if found else "", str(error))
    return None


def first_misfit(objects: Iterable[tuple[str, Resource, Json]]) -> tuple[str, str, str] | None:
    """The label of the first object with a wrong type, the field, and the error."""
    for label, resource, obj in objects:
        found = misfit(resource, obj)
        if found is not None:
            return label, *found
    return None
