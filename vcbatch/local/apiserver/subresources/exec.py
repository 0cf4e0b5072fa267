"""`pods/exec` and `pods/attach`.

Source of the rules and messages: kubernetes `pkg/registry/core/pod`, `ExecLocation` and `AttachLocation`;
`staging/src/k8s.io/kubelet/pkg/cri/streaming`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from vcbatch.api.resources import PODS
from vcbatch.interfaces.processes import Session
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.registry import HandlerRequest, PodStreams, Reply
from vcbatch.local.apiserver.request import first, flag
from vcbatch.local.apiserver.subresources.channels import V4, Channels, WebSocketChannels, converse
from vcbatch.local.apiserver.subresources.logs import choose_container
from vcbatch.local.apiserver.subresources.spdy_channels import SpdyChannels
from vcbatch.local.apiserver.subresources.tunnel import can_take_over, take_over
from vcbatch.local.apiserver.subresources.websocket import WebSocket
from vcbatch.local.apiserver.tables import dig


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The parsed `PodExecOptions` and `PodAttachOptions`. A terminal has one stream for all output."""

    container: str
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool
    command: Sequence[str] = ()

    @property
    def streams(self) -> Sequence[str]:
        """The streams that a client opens with a protocol of one stream per channel."""
        asked = {"stdin": self.stdin, "stdout": self.stdout, "stderr": self.stderr and not self.tty, "resize": self.tty}
        return ["error", *(name for name, wanted in asked.items() if wanted)]


Open = Callable[[PodStreams, str, str, StreamOptions], Awaitable[Session]]


async def exec_in(request: HandlerRequest) -> Reply | None:
    """Runs a command in a running container and connects the client with it."""

    async def start(kubelet: PodStreams, namespace: str, name: str, options: StreamOptions) -> Session:
        return await kubelet.exec(
            namespace, name, options.container, options.command, stdin=options.stdin, tty=options.tty
        )

    return await _serve(request, start, needs_command=True)


async def attach_to(request: HandlerRequest) -> Reply | None:
    """Connects the client with a running container's output, and with its input where that is open."""

    async def join(kubelet: PodStreams, namespace: str, name: str, options: StreamOptions) -> Session:
        return await kubelet.attach(namespace, name, options.container, stdin=options.stdin, tty=options.tty)

    return await _serve(request, join, needs_command=False)


async def _serve(request: HandlerRequest, open_session: Open, *, needs_command: bool) -> Reply | None:
    options = _options(request, needs_command=needs_command)
    kubelet = kubelet_of(request)
    channels = await _accept(request, options)
    if channels is None:
        return None
    try:
        session = await open_session(kubelet, request.ctx.namespace or "", request.name, options)
        await converse(channels, session)
    except StatusError as error:
        # After the upgrade an error can only be sent as the final status.
        await channels.finish(error.body())
    finally:
        await channels.close()
    return None


async def _accept(request: HandlerRequest, options: StreamOptions) -> Channels | None:
    """Upgrade the connection to the protocol that the client requests; None where it disconnects instead."""
    if not can_take_over(request):
        return await WebSocketChannels.accept(WebSocket(request), wanted=options.streams)
    channels = SpdyChannels(take_over(request, (V4,)), wanted=set(options.streams))
    if await channels.ready():
        return channels
    await channels.close()
    return None


def _options(request: HandlerRequest, *, needs_command: bool) -> StreamOptions:
    """Validated in the order of Kubernetes: the pod, its container, its node, then the streams."""
    pod = request.operations.get(PODS, request.ctx.namespace, request.name)
    container = choose_container(pod, first(request.query, "container"))
    require_node(request)
    query = request.query
    stdin, tty = flag(query, "stdin"), flag(query, "tty")
    stdout, stderr = flag(query, "stdout"), flag(query, "stderr")
    if not (stdin or stdout or stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    command = query.get("command") or ()
    if needs_command and not any(command):
        raise bad_request("you must specify at least one command for the container")
    return StreamOptions(container=container, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty, command=command)


def require_node(request: HandlerRequest) -> None:
    """Raises 400 for a pod without a node."""
    pod = request.operations.get(PODS, request.ctx.namespace, request.name)
    if not dig(pod, "spec", "nodeName"):
        raise bad_request(f"pod {request.name} does not have a host assigned")


def kubelet_of(request: HandlerRequest) -> PodStreams:
    if request.kubelet is None:
        raise StatusError(503, "ServiceUnavailable", "no kubelet runs pods for this server")
    return request.kubelet
