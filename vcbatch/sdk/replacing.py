"""Storing what was read and changed, where a controller counts in its status meanwhile."""

from __future__ import annotations

from typing import Any, Final

from vcbatch.api.loose import part
from vcbatch.api.resources import Resource
from vcbatch.interfaces.api import Api, ApiError

Json = dict[str, Any]

_RACES: Final = 20
"""How often a controller may have been faster."""


async def replaced(api: Api, resource: Resource, body: Json) -> Json:
    """Replace an object that was read before, and return what is stored. Raises the conflict where more than its status
    has changed since."""
    for _ in range(_RACES):
        try:
            return await api.replace(resource, body)
        except ApiError as error:
            if not error.conflict:
                raise
            there = await api.get(resource, str(part(body, "metadata").get("name")))
            if not _only_status_moved(since=body, there=there):
                raise
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": there["metadata"]["resourceVersion"]}}
    return await api.replace(resource, body)


def _only_status_moved(*, since: Json, there: Json) -> bool:
    """A new spec has a new generation. Labels and annotations have none: they have to be as they are to be stored."""
    ours, theirs = part(since, "metadata"), part(there, "metadata")
    return all(ours.get(key) == theirs.get(key) for key in ("uid", "generation")) and all(
        part(ours, key) == part(theirs, key) for key in ("labels", "annotations")
    )
