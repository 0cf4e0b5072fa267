"""Suggestions for misspelt names of objects, queues and namespaces."""

from __future__ import annotations

import re
from typing import Final

from vcbatch.api.resources import CUSTOM_RESOURCES, NAMESPACES, NODES, PODS, QUEUES, Resource
from vcbatch.api.spelling import did_you_mean, nearest
from vcbatch.cli.base.known_names import known_names
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.kubeconfig import Connection

_NO_QUEUE: Final = re.compile(r'\bqueues?\.scheduling\.volcano\.sh "([^"]*)" not found')
"""How the server and admission report a queue that doesn't exist."""
_RESOURCES: Final = {one.plural: one for one in (*CUSTOM_RESOURCES, NAMESPACES, NODES, PODS)}


def suggestion(error: ApiError, connection: Connection, *, namespace: str) -> str:
    """`Did you mean queue research?` after an error about an object, queue or namespace that doesn't exist, or that the
    namespace itself doesn't exist; empty where nothing is similar."""
    missing = _missing(error)
    if missing is None:
        return ""
    resource, name = missing
    meant = nearest(name, known_names(connection, resource, namespace=namespace))
    if meant:
        return f"Did you mean {resource.kind.lower()} {meant}?"
    unknown = unknown_namespace(connection, namespace) if resource.namespaced else ""
    return f"{unknown[:1].upper()}{unknown[1:]}"


def unknown_namespace(connection: Connection, namespace: str) -> str:
    """The message that the namespace doesn't exist, with a similar one; empty where it exists or the list can't be
    read."""
    known = known_names(connection, NAMESPACES, namespace="")
    if not known or namespace in known:
        return ""
    return f"namespace {namespace!r} not found{did_you_mean(namespace, known)}"


def _missing(error: ApiError) -> tuple[Resource, str] | None:
    queue = _NO_QUEUE.search(str(error))
    if queue is not None:
        return QUEUES, queue[1]
    resource, name = _RESOURCES.get(str(error.details.get("kind", ""))), str(error.details.get("name", ""))
    return (resource, name) if error.not_found and resource is not None and name else None
