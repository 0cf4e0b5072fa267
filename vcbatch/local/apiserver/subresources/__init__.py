"""What clients do with a pod besides reading and writing it: bind, evict, read logs, and (elsewhere) attach to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.local.apiserver.registry import Handler
from vcbatch.local.apiserver.subresources.binding import bind
from vcbatch.local.apiserver.subresources.eviction import evict
from vcbatch.local.apiserver.subresources.logs import LogOptions, PodLogs, log_handler
from vcbatch.local.apiserver.subresources.streams import PodStreams, stream_handlers

__all__ = [
    "POD_SUBRESOURCES",
    "POD_SUBRESOURCE_KINDS",
    "LogOptions",
    "PodLogs",
    "PodStreams",
    "bind",
    "evict",
    "pod_handlers",
]

POD_SUBRESOURCES: Mapping[str, Sequence[str]] = {
    "attach": ("create", "get"),
    "binding": ("create",),
    "eviction": ("create",),
    "exec": ("create", "get"),
    "log": ("get",),
    "portforward": ("create", "get"),
    "status": ("get", "patch", "update"),
}
POD_SUBRESOURCE_KINDS: Mapping[str, tuple[str, str, str]] = {
    "attach": ("", "v1", "PodAttachOptions"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "exec": ("", "v1", "PodExecOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}


def pod_handlers(*, logs: PodLogs | None, streams: PodStreams | None) -> Mapping[str, Handler]:
    """The handlers of a pod's subresources. Without `logs` or `streams` these answer that no kubelet runs here."""
    return {"binding": bind, "eviction": evict, "log": log_handler(logs), **stream_handlers(streams)}
