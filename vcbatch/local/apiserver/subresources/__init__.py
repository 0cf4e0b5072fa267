"""Operations on pods besides reading and writing them: bind, evict, read logs, run commands, connect to ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.local.apiserver.registry import Handler
from vcbatch.local.apiserver.subresources.binding import bind
from vcbatch.local.apiserver.subresources.eviction import evict
from vcbatch.local.apiserver.subresources.exec import attach_to, exec_in
from vcbatch.local.apiserver.subresources.logs import read_log
from vcbatch.local.apiserver.subresources.portforward import forward_ports

__all__ = [
    "POD_HANDLERS",
    "POD_SUBRESOURCES",
    "POD_SUBRESOURCE_KINDS",
    "bind",
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
POD_HANDLERS: Mapping[str, Handler] = {
    "attach": attach_to,
    "binding": bind,
    "eviction": evict,
    "exec": exec_in,
    "log": read_log,
    "portforward": forward_ports,
}
