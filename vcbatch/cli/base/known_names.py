"""The names of the objects of a kind, for completion and suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from vcbatch.api.resources import Resource
from vcbatch.runtime.client.kubeconfig import Connection

_SECONDS: Final = 1.5
"""Timeout of the request: completion and error messages must not make a user wait."""


def known_names(connection: Connection, resource: Resource, *, namespace: str) -> Sequence[str]:
    """The names, sorted; for a namespaced kind those of the namespace. Empty where the server doesn't respond in time
    or returns an error, since no decision depends on the names."""
    from vcbatch.runtime.client.oneshot import OneShotApi, drive
    from vcbatch.runtime.client.rest import ClientLimits

    limits = ClientLimits(retries=0, connect_timeout=_SECONDS, request_timeout=_SECONDS, list_timeout=_SECONDS)
    try:
        with OneShotApi(connection, limits=limits) as api:
            listing = drive(cast("Any", api).list(resource, namespace=namespace if resource.namespaced else None))
        return sorted(item["metadata"]["name"] for item in listing.items)
    except Exception:
        return ()
