"""The embedded API server on a port: TLS, a token, a kubeconfig, and a clean shutdown."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from vcbatch.api.resources import Resource
from vcbatch.hosting.guards import SESSION_STALL_SECONDS, HttpLimits, SlowReader
from vcbatch.hosting.health import Health
from vcbatch.hosting.http_server import STALL_EXTENSION, Guard, GuardedHttp, GuardedServer
from vcbatch.interfaces import Clock, Random
from vcbatch.local.apiserver.access import User
from vcbatch.local.apiserver.admission import AdmissionRequest
from vcbatch.local.apiserver.admission.webhooks import Services
from vcbatch.local.apiserver.app import App, Scope
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.handler import Lists
from vcbatch.local.apiserver.inprocess import InProcessApi
from vcbatch.local.apiserver.kernel import Kernel
from vcbatch.local.apiserver.losses import Loss
from vcbatch.local.apiserver.offload import Threads
from vcbatch.local.apiserver.pki import Pki, kubeconfig, write_private
from vcbatch.local.apiserver.registry import PodStreams
from vcbatch.local.apiserver.schema import descriptions
from vcbatch.local.apiserver.subresources.tunnel import TAKE_OVER_EXTENSION, UPGRADE, Tunnel
from vcbatch.local.apiserver.subresources.websocket import GONE_EXTENSION
from vcbatch.local.apiserver.tokens import ServiceAccountTokens, TokenRefused
from vcbatch.local.kubelet.kept_logs import KeptLogs

log = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
_CHECKPOINT_SECONDS = 5.0
_LARGEST_MESSAGE = 32 * 1024 * 1024  # of a WebSocket; as a real API server accepts
_LINGER_SECONDS = 0.5
_SHUTDOWN_SECONDS = 2.0


class PortInUse(Exception):
    """Another program listens on the requested port."""


class _Protocol(GuardedHttp):
    """HTTP with limits, and with the client's verified certificate in the scope."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        _note_certificate(self.transport, self.scope)

    def on_headers_complete(self) -> None:
        if self._get_upgrade() == UPGRADE:
            self.scope["extensions"][TAKE_OVER_EXTENSION] = self._take_over  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """No warning: the application answers that the upgrade isn't supported."""

    def _take_over(self, answer: bytes) -> Tunnel:
        self._leave_http()
        tunnel = Tunnel(self.transport, ended=self.connections.discard)  # type: ignore[arg-type]
        self.connections.discard(self)
        self.connections.add(tunnel)  # type: ignore[arg-type]
        self.cycle.disconnected = True  # no HTTP response may follow
        self.transport.set_protocol(tunnel)
        self.transport.write(answer)
        return tunnel


class _WebSocketProtocol(WSProtocol):
    """The same for WebSockets, with a notification of the application when the connection is lost while it isn't
    receiving."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._slow_reader = SlowReader(transport, SESSION_STALL_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._slow_reader.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._slow_reader.resumed()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        _note_certificate(self.transport, self.scope)
        self._gone = asyncio.Event()
        extensions: dict[str, Any] = self.scope.setdefault("extensions", {})  # type: ignore[assignment]
        extensions[GONE_EXTENSION] = self._gone
        extensions[STALL_EXTENSION] = self._slow_reader.allow

    def connection_lost(self, exc: Exception | None) -> None:
        self._slow_reader.resumed()
        super().connection_lost(exc)
        if hasattr(self, "_gone"):
            self._gone.set()


def _note_certificate(transport: Any, scope: Any) -> None:
    ssl_object = transport.get_extra_info("ssl_object") if transport else None
    certificate = ssl_object.getpeercert() if ssl_object else None
    if certificate:
        scope.setdefault("extensions", {})["vcbatch.peer_certificate"] = certificate


def _peer_certificate(scope: Scope) -> Mapping[str, Any] | None:
    return (scope.get("extensions") or {}).get("vcbatch.peer_certificate")


class EmbeddedServer:
    """Serves one state directory. `start` returns when requests are answered; `stop` ends watches and closes.

    `known_version` is a resourceVersion that the database is known to have had, and that it is compared with. Raises
    `PortInUse` and `persistence.StateError` from `start`. `port` 0 selects a free one, which `url` contains.
    """

    def __init__(
        self,
        *,
        state_dir: Path,
        clock: Clock,
        random: Random,
        port: int = 0,
        services: Services | None = None,
        notices: Callable[[AdmissionRequest], Sequence[str]] | None = None,
        kubelet: PodStreams | None = None,
        health: Health | None = None,
        limits: HttpLimits | None = None,
        known_version: int = 0,
    ) -> None:
        self._health = health
        self._limits = limits or HttpLimits()
        self._state_dir = state_dir
        self._known_version = known_version
        self._clock = clock
        self._random = random
        self._port = port
        self._services = services
        self._notices = notices
        self._kubelet = kubelet
        self._kept_logs: KeptLogs | None = None
        self._kernel: Kernel | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._offload = Threads()

    @property
    def url(self) -> str:
        return f"https://{ADDRESS}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def kubeconfig(self) -> Path:
        return self._state_dir / "kubeconfig"

    @property
    def kernel(self) -> Kernel:
        if self._kernel is None:
            raise RuntimeError("the server isn't started")
        return self._kernel

    @property
    def losses(self) -> Sequence[Loss]:
        """The detected losses of the database; see `losses`."""
        persistence = self.kernel.persistence
        return persistence.losses if persistence is not None else ()

    @property
    def api(self) -> InProcessApi:
        """The server without its socket, for parts of the same process."""
        return self.kernel.api

    def api_as(self, user: str) -> InProcessApi:
        """The same for a part that webhooks identify by its name: an administrator of that name."""
        return InProcessApi(self.kernel.handler, user=user)

    def connect_kubelet(self, kubelet: PodStreams | None, *, kept_logs: KeptLogs | None = None) -> None:
        """Serve logs of pods from this kubelet, which needs the started server's `api` itself, and those of deleted
        pods from `kept_logs`."""
        self._kubelet, self._kept_logs = kubelet, kept_logs
        if self._kernel:
            self._kernel.handler.kubelet = kubelet
            self._kernel.handler.kept_logs = kept_logs

    def serve_list(self, resource: Resource, lists: Lists) -> None:
        """Answer lists of a resource of which no objects are stored, for administrators."""
        self.kernel.handler.lists[resource.group, resource.version, resource.plural] = lists

    async def start(self) -> None:
        self._state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        listener = _listen(self._port)
        try:
            self._port = listener.getsockname()[1]
            pki = Pki(self._state_dir / "pki", self._clock.now())
            tokens = ServiceAccountTokens(pki.account_key())
            authenticator = Authenticator(pki.token, account=lambda token: self._account(tokens, token))
            self._kernel = build(
                clock=self._clock,
                random=self._random,
                state_dir=self._state_dir,
                known_version=self._known_version,
                services=self._services,
                notices=self._notices,
                root_ca=pki.ca_certificate,
                token_user=authenticator.token_user,
                health=self._health,
                tokens=tokens,
                offload=self._offload,
            )
            self.connect_kubelet(self._kubelet, kept_logs=self._kept_logs)
            await self._kernel.start()
            await self._serve(pki, authenticator, listener)
        except BaseException:
            listener.close()
            await self.stop()
            raise
        content = kubeconfig(server=self.url, ca_certificate=pki.ca_certificate, token=pki.token)
        write_private(self.kubeconfig, content)
        descriptions.warm()
        log.info("the API server listens on %s", self.url)

    def _account(self, tokens: ServiceAccountTokens, token: str) -> User | None:
        """The service account of a bearer token; None for an invalid one."""
        engine = self.kernel.engine
        try:
            return tokens.verify(token, now=engine.now(), lookup=engine.lookup).user
        except TokenRefused:
            return None

    async def _serve(self, pki: Pki, authenticator: Authenticator, listener: socket.socket) -> None:
        app = App(
            self.kernel.handler,
            authenticator,
            peer_certificate=_peer_certificate,
            body_seconds=self._limits.body_seconds,
        )
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            http=_Protocol,
            ws=_WebSocketProtocol,
            ws_max_size=_LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            # Pings detect a lost client. No time limit for the response: it waits behind input that a command in a pod
            # hasn't read yet.
            ws_ping_interval=10.0,
            ws_ping_timeout=None,
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=300,
            timeout_graceful_shutdown=int(_SHUTDOWN_SECONDS),
        )
        self._server = GuardedServer(config, listener, pki.server_context(), Guard(self._limits))
        # `ended` reports its end to the program that runs the server.
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="API server")
        if self.kernel.persistence is not None:
            self.kernel.background.keep("API server: checkpoints", self._keep_log_short)
        while not self._server.started:
            if self._serving.done():
                await self._serving
                raise RuntimeError("the API server ended before it had started")
            await asyncio.sleep(0.001)

    async def _keep_log_short(self) -> None:
        """Checkpoint the write-ahead log periodically, in a thread, so that no request waits for it."""
        persistence = self.kernel.persistence
        while persistence is not None:
            await self._clock.sleep(_CHECKPOINT_SECONDS)
            persistence.reclaim()
            if persistence.wants_checkpoint():
                await asyncio.to_thread(persistence.checkpoint)

    async def ended(self) -> None:
        """Return, or raise, when the started server ends, whether by `stop` or by itself."""
        if self._serving is not None:
            await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Answer the current requests, end watches, close the state. May be called twice."""
        if self._kernel:
            self._kernel.end_watches()
        if self._server and self._serving:
            self._server.should_exit = True
            await asyncio.wait((self._serving,), timeout=_LINGER_SECONDS)
            # A client with an idle connection needn't answer the closing handshake.
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._server = None
        if self._kernel:
            await self._kernel.stop()
            self._kernel = None
        self._offload.stop()


def _listen(port: int) -> socket.socket:
    # asyncio disables Nagle's algorithm, which costs 40 ms per response, only where the protocol is named.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(2048)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on {ADDRESS} is in use by another program: choose another with --port, or --port 0"
            ) from None
        raise
    return listener
