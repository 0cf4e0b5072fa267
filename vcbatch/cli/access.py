"""How a command reaches the API server: its options, one connection, and errors that say what to do next."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from vcbatch.api.duration import parse_nanoseconds
from vcbatch.cli.output import CliError
from vcbatch.cli.state import StateDir, default_state_dir
from vcbatch.runtime.kubeconfig import CertificateRefusedError, Connection, KubeconfigError, NothingConfigured, load
from vcbatch.runtime.rest import ClientLimits
from vcbatch.seams.api import Api, ApiError

if TYPE_CHECKING:
    from vcbatch.runtime.client import HttpApi

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_NO_LIMIT = timedelta(days=365)


@dataclass(slots=True, kw_only=True)
class Access:
    """Which server a command speaks to, and as whom. `server` replaces the address that the configuration names."""

    kubeconfig: Path | None = None
    context: str | None = None
    chosen_namespace: str | None = None
    request_timeout: timedelta | None = None
    server: str | None = None
    _connection: Connection | None = None

    @property
    def namespace(self) -> str:
        """What `--namespace` says, else the context of the configuration, else `default`."""
        return self.chosen_namespace or self.connection().namespace

    def connection(self) -> Connection:
        """Where the server is: of --kubeconfig, $KUBECONFIG, ~/.kube/config or the pod's service account, else the
        server that `vcbatch up` runs. Raises `CliError`."""
        if self._connection is None:
            with self._complaining():
                self._connection = self._found()
        return self._connection

    def once(self, work: Callable[[Api], Coroutine[Any, Any, T]]) -> T:
        """Run `work` without an event loop: for everything but watches. Raises `CliError`."""
        from vcbatch.runtime.oneshot import OneShotApi, drive

        connection = self.connection()
        with self._complaining(), OneShotApi(connection, limits=self._limits()) as api:
            return drive(work(cast("Api", api)))

    def streaming(self, work: Callable[[HttpApi], Coroutine[Any, Any, T]]) -> T:
        """Run `work` under asyncio: for watches and logs that are followed. Raises `CliError`."""
        import asyncio

        from vcbatch.runtime.client import HttpApi
        from vcbatch.runtime.clock import SystemClock
        from vcbatch.runtime.random import SystemRandom

        connection = self.connection()

        async def run() -> T:
            async with HttpApi(connection, clock=SystemClock(), random=SystemRandom(), limits=self._limits()) as api:
                return await work(api)

        with self._complaining():
            return asyncio.run(run())

    def _limits(self) -> ClientLimits:
        if self.request_timeout is None:
            return ClientLimits(retries=2)
        seconds = (self.request_timeout or _NO_LIMIT).total_seconds()
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
            hint = "Start a server on this machine with `vcbatch up`, or name a cluster's kubeconfig."
            raise CliError(str(error), hint=hint) from error
        except (KubeconfigError, CertificateRefusedError) as error:
            hint = "Look at it with `kubectl config view`, or choose another with --kubeconfig or --context."
            raise CliError(str(error), hint=hint) from error
        except ApiError as error:
            _refuse(error, self._connection.server if self._connection else "the server")


def access_options(function: F) -> F:
    """Give a command `--kubeconfig`, `--context`, `--namespace` and `--request-timeout`, as its argument `access`."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        request_timeout: timedelta | None,
        **options: Any,
    ) -> object:
        access = Access(
            kubeconfig=kubeconfig, context=context, chosen_namespace=namespace, request_timeout=request_timeout
        )
        return function(*arguments, access=access, **options)

    wrapped: Callable[..., object] = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return cast("F", wrapped)


class TimeoutType(click.ParamType):
    """A time limit as kubectl takes it: a Go duration (`90s`, `2m`), or a number of seconds; 0 is no limit."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value)
        try:
            nanoseconds = int(text) * 10**9 if text.isascii() and text.isdigit() else parse_nanoseconds(text)
            if nanoseconds >= 0:
                return min(timedelta(microseconds=nanoseconds // 1000), _NO_LIMIT)
        except (ValueError, OverflowError):
            pass
        raise click.BadParameter(f"{text!r} isn't a time such as 30s, 2m or 0 (no limit)", ctx=ctx, param=param)


_OPTIONS = (
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Which server, and as whom; otherwise $KUBECONFIG, ~/.kube/config, or what `vcbatch up` runs.",
    ),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    click.option("-n", "--namespace", metavar="NAME", help="Namespace; otherwise that of the context."),
    click.option(
        "--request-timeout",
        metavar="TIME",
        type=TimeoutType(),
        help="How long one request may take: 30s, 2m, or 0 for no limit.",
    ),
)


def _url(server: str) -> str:
    """The address that `--master` or `--server` gives, which may leave out the scheme. Raises `KubeconfigError`."""
    url = server if "://" in server else f"http://{server}"
    if not url.startswith(("http://", "https://")):
        raise KubeconfigError(f"{server!r} is no address of a server: http:// and https:// are spoken")
    return url.rstrip("/")


def _refuse(error: ApiError, server: str) -> NoReturn:
    """Raise the `CliError` that says what the refusal is to a person, and what to do next."""
    message, hint = str(error), ""
    if error.code == 0:
        message = f"{server} doesn't answer: {error}"
        hint = "Is it running, and reachable from here? --kubeconfig and --context choose another server."
    elif error.code == 401:
        message = f"{server} doesn't know you: {error}"
        hint = "Log in again, or choose other credentials with --context."
    elif error.code == 403:
        hint = "`kubectl auth can-i --list` shows what you may do; whoever runs the cluster can give you the right."
    elif error.not_found and not error.details.get("name"):
        message = f"{server} doesn't have this kind of object: {error}"
        hint = "If it is a cluster without vcbatch: `vcbatch crds | kubectl apply -f -` installs the definitions."
    elif error.not_found:
        hint = "Is it in another namespace? Choose one with -n."
    elif error.already_exists:
        hint = "Choose another name, or delete the one that is there."
    elif error.conflict:
        hint = "Somebody else changed it at the same time; try again."
    elif error.transient:
        message = f"{server} can't serve this now ({error.code} {error.reason}): {error}"
        hint = "Try again in a minute."
    raise CliError(message, hint=hint) from error
