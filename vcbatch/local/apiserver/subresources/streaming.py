"""`pods/exec`, `pods/attach` and `pods/portforward`, which the process kubelet doesn't offer."""

from __future__ import annotations

from vcbatch.local.apiserver.errors import StatusError
from vcbatch.local.apiserver.registry import HandlerRequest, Reply

_INSTEAD = {
    "exec": "run the command beside it on this machine",
    "attach": "read its output with `kubectl logs -f`",
    "portforward": "connect to its ports on this machine directly",
}


async def refuse_stream(request: HandlerRequest) -> Reply | None:
    """Says what to do instead: a local pod's processes, files and ports are the machine's own."""
    request.operations.get(request.served.resource, request.ctx.namespace, request.name)
    what = request.ctx.subresource
    raise StatusError(
        501,
        "NotImplemented",
        f'{what} is not available in local mode: pod "{request.name}" is a process of this machine; {_INSTEAD[what]}',
    )
