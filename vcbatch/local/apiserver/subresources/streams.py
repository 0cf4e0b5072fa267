"""`pods/exec`, `pods/attach` and `pods/portforward`: a client's streams to a running container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vcbatch.local.apiserver.registry import Handler, HandlerRequest, Reply
from vcbatch.local.apiserver.subresources.logs import no_kubelet


class PodStreams(Protocol):
    """What the kubelet offers for interactive use of its pods."""


def stream_handlers(streams: PodStreams | None) -> Mapping[str, Handler]:
    """The handlers of the three subresources."""

    def refusing(what: str) -> Handler:
        async def handle(request: HandlerRequest) -> Reply:
            raise no_kubelet(what)

        return handle

    return {"exec": refusing("exec"), "attach": refusing("attach"), "portforward": refusing("port-forward")}
