"""Storing an object that was read and changed, while a controller updates counts in its status."""

from __future__ import annotations

from typing import Any, Final

from vcbatch.api.loose import part
from vcbatch.api.resources import Resource
from vcbatch.interfaces.api import Api, ApiError

Json = dict[str, Any]

_RACES: Final = 20
"""The maximum of retries after a concurrent change of the status."""


async def replaced(api: Api, resource: Resource, body: Json) -> Json:
    """Replace an object that was read before, and return it as stored. Raises the conflict where more than its status
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
    """Whether the spec and the metadata are unchanged. A new spec has a new generation; labels and annotations don't
    change it, so they have to equal those of the object to store."""
    ours, theirs = part(since, "metadata"), part(there, "metadata")
    return all(ours.get(key) == theirs.get(key) for key in ("uid", "generation")) and all(
        part(ours, key) == part(theirs, key) for key in ("labels", "annotations")
    )
