"""The deletion of an object whose name is to be used again."""

from __future__ import annotations

from typing import Final

from vcbatch.api.resources import Resource
from vcbatch.cli.base.fields import uid_of
from vcbatch.interfaces.api import ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.client.rest import RestApi

PATIENCE_SECONDS: Final = 300.0
"""How long a deletion is waited for: pods may need time to end."""
_CHECK_SECONDS: Final = 0.5


async def delete_and_wait(
    api: RestApi, resource: Resource, name: str, *, namespace: str | None, uid: str, clock: Clock
) -> bool:
    """Delete the object with this UID and its dependents. True once it doesn't exist any more, False where it still
    does after `PATIENCE_SECONDS`. Raises `ApiError`."""
    until = clock.monotonic() + PATIENCE_SECONDS
    try:
        await api.delete(resource, name, namespace=namespace, uid=uid, propagation="Foreground")
    except ApiError as error:
        if not error.not_found:
            raise
    while (stored := await get_or_none(api, resource, name, namespace=namespace)) is not None:
        if uid_of(stored) != uid:
            break
        if clock.monotonic() >= until:
            return False
        await clock.sleep(_CHECK_SECONDS)
    return True
