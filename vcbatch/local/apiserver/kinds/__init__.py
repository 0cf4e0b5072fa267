"""The built-in kinds: their names, defaults, validation and printing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from vcbatch.api.resources import SERVICEACCOUNTS
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.schema.types import kind_struct, merge_keys
from vcbatch.local.apiserver.subresources import account_token
from vcbatch.local.apiserver.tokens import ServiceAccountTokens


def served(
    token_user: Callable[[str], User | None] = lambda _token: None, tokens: ServiceAccountTokens | None = None
) -> list[Served]:
    """All built-in resources, review kinds included. `token_user` returns the user of a bearer token that isn't one of
    `tokens`: a server without sockets knows none."""
    tokens = tokens or ServiceAccountTokens()
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
    entries = [_with_tokens(entry, tokens) for module in modules for entry in module.served()]
    return [_with_merge_keys(entry) for entry in (*entries, *reviews.served(token_user, tokens))]


def _with_tokens(entry: Served, tokens: ServiceAccountTokens) -> Served:
    """Service accounts with the subresource `token`; other entries unchanged."""
    if entry.resource != SERVICEACCOUNTS:
        return entry
    return dataclasses.replace(
        entry,
        subresources={"token": ("create",)},
        subresource_kinds={"token": account_token.KIND},
        handlers={"token": account_token.token_handler(tokens)},
    )


def _with_merge_keys(entry: Served) -> Served:
    """The entry with the merge keys of the type table, for strategic merge patches."""
    known = kind_struct(api_version=entry.resource.api_version, kind=entry.resource.kind)
    if known is None or "patch" not in entry.verbs:
        return entry
    return dataclasses.replace(entry, strategic=True, merge_keys=merge_keys(known.key))
