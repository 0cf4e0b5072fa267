"""The built-in kinds: what each is called, how it defaults, what it refuses and how it prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.schema.types import kind_struct, merge_keys


def served(token_user: Callable[[str], User | None] = lambda _token: None) -> list[Served]:
    """All built-in resources, review kinds included. `token_user` says whose a bearer token is: a server without
    sockets knows none."""
    from vcbatch.local.apiserver import reviews
    from vcbatch.local.apiserver.kinds import (
        admission,
        autoscaling,
        batch,
        cluster,
        config,
        endpoints,
        events,
        networking,
        pods,
        policy,
        quotas,
        rbac,
        services,
        storage,
        workloads,
    )

    modules = (
        pods,
        services,
        endpoints,
        config,
        cluster,
        quotas,
        events,
        storage,
        workloads,
        batch,
        networking,
        policy,
        rbac,
        autoscaling,
        admission,
    )
    entries = [entry for module in modules for entry in module.served()]
    return [_with_merge_keys(entry) for entry in (*entries, *reviews.served(token_user))]


def _with_merge_keys(entry: Served) -> Served:
    """Strategic merge patches merge by the keys that the type table names."""
    known = kind_struct(api_version=entry.resource.api_version, kind=entry.resource.kind)
    if known is None or "patch" not in entry.verbs:
        return entry
    return dataclasses.replace(entry, strategic=True, merge_keys=merge_keys(known.key))
