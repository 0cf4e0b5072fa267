"""The connection of a command to the API server, and its errors with hints."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from vcbatch.api.resources import HYPERNODES, NAMESPACES, NODES, QUEUES
from vcbatch.cli.base.follow_up import with_options
from vcbatch.cli.base.output import CliError, complain
from vcbatch.cli.base.retry_notice import silence
from vcbatch.cli.base.state import StateDir, default_state_dir
from vcbatch.cli.base.suggestions import suggestion
from vcbatch.cli.base.terminal import clean
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.client.kubeconfig import (
    CertificateRefusedError,
    Connection,
    KubeconfigError,
    NothingConfigured,
    load,
)
from vcbatch.runtime.client.rest import NO_CREDENTIALS, ClientLimits

if TYPE_CHECKING:
    from vcbatch.runtime.client.http import HttpApi

T = TypeVar("T")

NO_LIMIT = timedelta(days=365)
"""The longest time that a request may take."""


@dataclass(slots=True, kw_only=True)
class Access:
    """The server and user of a command's requests. `server` overrides the address in the kubeconfig."""

    kubeconfig: Path | None = None
    context: str | None = None
    chosen_namespace: str | None = None
    request_timeout: timedelta | None = None
    server: str | None = None
    _connection: Connection | None = None

    @property
    def namespace(self) -> str:
        """The namespace from `--namespace`, else from the context of the kubeconfig, else `default`."""
        return self.chosen_namespace or self.connection().namespace

    def connection(self) -> Connection:
        """The connection from --kubeconfig, $KUBECONFIG, ~/.kube/config or the pod's service account, else to the
        server that `vcbatch up` runs. Raises `CliError`."""
        if self._connection is None:
            with self._complaining():
                self._connection = self._found()
        return self._connection

    def repeat(self, text: str) -> str:
        """The text, with the options for the server and the namespace added to each command in it."""
        return with_options(text, kubeconfig=self.kubeconfig, context=self.context, namespace=self.chosen_namespace)

    def report(self, error: CliError) -> None:
        """Print the error; suggested commands get the options of the same server."""
        complain(CliError(str(error), hint=self.repeat(error.hint)))

    def now(self) -> datetime:
        """The current time, for ages in the output."""
        return datetime.now(UTC)

    def once(self, work: Callable[[Api], Coroutine[Any, Any, T]]) -> T:
        """Run `work` without an event loop: for everything but watches. Raises `CliError`."""
        from vcbatch.runtime.client.oneshot import OneShotApi, drive

        connection = self.connection()
        with self._complaining(), OneShotApi(connection, limits=self._limits()) as api:
            return drive(work(cast("Api", api)))

    def each(self, names: Iterable[str], work: Callable[[Api, str], Coroutine[Any, Any, object]]) -> int:
        """Run `work` for one name after the other, as `once` does, and return the exit code, 1 where one failed. The
        error of that one is printed, and the work continues with the next. Raises `CliError` for an error that concerns
        all of them."""

        async def one_by_one(api: Api) -> int:
            failed = False
            for name in names:
                try:
                    await work(api, name)
                except CliError as error:
                    failed = True
                    self.report(error)
                except ApiError as error:
                    if error.code in (0, 401) or error.transient:
                        raise
                    failed = True
                    self.report(self.refusal(error))
            return 1 if failed else 0

        return self.once(one_by_one)

    def refusal(self, error: ApiError) -> CliError:
        """The error for the user, with a hint."""
        if self._connection is None:
            return _refusal(error, "the server")
        refused = _refusal(error, self._connection.server)
        if meant := suggestion(error, self._connection, namespace=self.namespace):
            refused.hint = meant
        return refused

    def streaming(
        self, work: Callable[[HttpApi], Coroutine[Any, Any, T]], *, streams: int = ClientLimits().streams
    ) -> T:
        """Run `work` under asyncio, for watches and followed logs, at most `streams` at a time. Raises `CliError`."""
        import asyncio

        from vcbatch.runtime.client.http import HttpApi
        from vcbatch.runtime.clock import SystemClock
        from vcbatch.runtime.random import SystemRandom

        connection = self.connection()

        async def run() -> T:
            limits = replace(self._limits(), streams=streams)
            async with HttpApi(connection, clock=SystemClock(), random=SystemRandom(), limits=limits) as api:
                return await work(api)

        with self._complaining():
            return asyncio.run(run())

    def _limits(self) -> ClientLimits:
        if self.request_timeout is None:
            return ClientLimits(retries=2)
        seconds = (self.request_timeout or NO_LIMIT).total_seconds()
        return ClientLimits(
            retries=2,
            request_timeout=seconds,
            list_timeout=seconds,
            connect_timeout=min(seconds, ClientLimits().connect_timeout),
        )

    def _found(self) -> Connection:
        try:
            connection = load(self.kubeconfig, context=self.context)
        except NothingConfigured:
            local = StateDir(default_state_dir())
            if self.context is not None:
                raise
            if self.server is not None:
                return Connection(server=_url(self.server))
            if local.running() is None:
                raise
            return load(local.kubeconfig)
        return connection if self.server is None else replace(connection, server=_url(self.server))

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except NothingConfigured as error:
            hint = "Start a local server with `vcbatch up`, or pass --kubeconfig."
            raise CliError(str(error), hint=hint) from error
        except (KubeconfigError, CertificateRefusedError) as error:
            hint = "Check it with `kubectl config view`, or pass another --kubeconfig or --context."
            raise CliError(str(error), hint=hint) from error
        except ApiError as error:
            raise self.refusal(error) from error


def _url(server: str) -> str:
    """The URL for `--master` or `--server`, whose scheme is optional. Raises `KubeconfigError`."""
    url = server if "://" in server else f"http://{server}"
    if not url.startswith(("http://", "https://")):
        raise KubeconfigError(f"invalid server address {server!r}: must be http:// or https://")
    return url.rstrip("/")


_ANONYMOUS = "system:anonymous"
_CLUSTER_WIDE = frozenset(one.plural for one in (QUEUES, HYPERNODES, NODES, NAMESPACES))


def _refusal(error: ApiError, server: str) -> CliError:
    message, hint = clean(str(error)), ""
    if error.code == 0:
        message = silence(server, error)
        hint = "Check that the server is running and reachable, or pass another --kubeconfig or --context."
    elif error.code == 401 and error.reason == NO_CREDENTIALS:
        hint = "Check the user of the kubeconfig context, or pass another --context."
    elif error.code == 401:
        message = f"{server} rejected the credentials: {message}"
        hint = "Log in again, or pass another --context."
    elif (missing := error.missing_right) is not None and missing.user == _ANONYMOUS:
        message = f"{server} treats you as anonymous; anonymous users can't {missing.what}"
        hint = "Check the user of the kubeconfig context, or pass another --context."
    elif missing is not None:
        message, hint = str(missing), missing.remedy
        if not missing.namespace and missing.plural not in _CLUSTER_WIDE:
            hint += "\n  To limit the request to one namespace, use -n NAMESPACE."
    elif error.code == 403 and str(error).startswith("forbidden: "):  # a path that belongs to no resource
        hint = "List your permissions with `kubectl auth can-i --list`, or ask your cluster administrator."
    elif error.code == 403:
        hint = "Rejected by an admission rule of the cluster, not by RBAC."
    elif error.code == 400 and "field label not supported" in message:
        hint = "All kinds support metadata.name and metadata.namespace, pods also others. To select by labels, use -l."
    elif error.not_found and not error.details.get("name"):
        message = f"{server} doesn't serve this kind: {message}"
        hint = "If the CRDs aren't installed: `vcbatch crds | kubectl apply --server-side -f -`"
    elif error.not_found and error.details.get("kind") not in _CLUSTER_WIDE:
        hint = "Check the namespace (--namespace)."
    elif error.already_exists:
        hint = "Choose another name, or delete the existing object."
    elif error.conflict:
        hint = "The object was changed by another client; try again."
    elif error.transient:
        message = silence(server, error)
        hint = "Try again in a minute."
    return CliError(message, hint=hint)
