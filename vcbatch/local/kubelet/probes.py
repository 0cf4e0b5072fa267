"""Probes and lifecycle hooks: their handlers, and the thresholds of their results.

Source of the rules: Kubernetes `pkg/kubelet/prober`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.processes import CommandResult
from vcbatch.local.kubelet.environment import ConfigError

Json = dict[str, Any]

_MAX_BODY = 10 * 1024
_MAX_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_KINDS = ("exec", "httpGet", "tcpSocket")
_HOOK_KINDS = ("exec", "httpGet", "tcpSocket", "sleep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one run of a handler."""

    ok: bool
    message: str = ""


Execute = Callable[[list[str], float], Awaitable[CommandResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The container that is probed. `execute` runs a command inside it."""

    address: str
    ports: dict[str, int]
    execute: Execute

    def port(self, given: int | str) -> int:
        """A port by number or by its name in the container's specification."""
        if isinstance(given, int) or given.isdigit():
            return int(given)
        if given not in self.ports:
            raise ConfigError(f"port {given!r} is not one of the container's named ports")
        return self.ports[given]


def check_supported(container: Json) -> None:
    """Raises `ConfigError` for a probe or hook that this kubelet can't run."""
    name = container["name"]
    for field in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container.get(field)
        if probe and not any(kind in probe for kind in _KINDS):
            raise ConfigError(
                f"{field} of container {name!r}: {_given(probe)} probes are not available in local mode;"
                " use exec, httpGet or tcpSocket"
            )
    for field, hook in (container.get("lifecycle") or {}).items():
        if field in ("postStart", "preStop") and hook and not any(kind in hook for kind in _HOOK_KINDS):
            raise ConfigError(
                f"lifecycle.{field} of container {name!r}: {_given(hook)} hooks are not available in local mode;"
                " use exec, httpGet, tcpSocket or sleep"
            )


def _given(handler: Json) -> str:
    settings = ("Seconds", "Threshold")
    return ", ".join(sorted(key for key in handler if not key.endswith(settings))) or "empty"


async def run_handler(handler: Json, target: Target, *, timeout: float, clock: Clock) -> Outcome:
    """Run an exec, httpGet, tcpSocket or sleep handler once; never raises for errors of the container."""
    try:
        if "exec" in handler:
            result = await target.execute(list(handler["exec"].get("command") or ()), timeout)
            return Outcome(ok=result.exit_code == 0, message=result.output.strip())
        if "sleep" in handler:
            await clock.sleep(min(float(handler["sleep"].get("seconds") or 0), timeout))
            return Outcome(ok=True)
        if "tcpSocket" in handler:
            return await asyncio.wait_for(_connect(handler["tcpSocket"], target), timeout)
        return await asyncio.wait_for(_get(handler["httpGet"], target), timeout)
    except TimeoutError:
        return Outcome(ok=False, message=f"no answer within {timeout:g} s")
    except (OSError, ValueError, ConfigError) as error:  # ValueError: an invalid host name
        return Outcome(ok=False, message=str(error))


async def _connect(action: Json, target: Target) -> Outcome:
    _, writer = await asyncio.open_connection(action.get("host") or target.address, target.port(action["port"]))
    writer.close()
    return Outcome(ok=True)


async def _get(action: Json, target: Target) -> Outcome:
    import aiohttp

    scheme = (action.get("scheme") or "HTTP").lower()
    host = action.get("host") or target.address
    path = action.get("path") or "/"
    host = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{host}:{target.port(action['port'])}{path if path.startswith('/') else '/' + path}"
    headers = {header["name"]: header.get("value", "") for header in action.get("httpHeaders") or ()}
    headers = {"User-Agent": "kube-probe/vcbatch", **headers}
    try:
        async with aiohttp.ClientSession(headers=headers) as session:
            for _ in range(_MAX_REDIRECTS):
                async with session.get(url, ssl=False, allow_redirects=False) as answer:
                    await answer.content.read(_MAX_BODY)
                    onward = _onward(url, answer.status, answer.headers.get("Location", ""))
                    if not onward:
                        ok = 200 <= answer.status < 400
                        return Outcome(
                            ok=ok, message="" if ok else f"HTTP probe failed with statuscode: {answer.status}"
                        )
                    url = onward
        return Outcome(ok=False, message=f"stopped after {_MAX_REDIRECTS} redirects")
    except (aiohttp.ClientError, ValueError) as error:  # ValueError: an invalid header or address
        return Outcome(ok=False, message=str(error) or type(error).__name__)


def _onward(url: str, status: int, location: str) -> str:
    """The target of a redirect, or "" where there is none. Redirects to other hosts aren't followed: the response
    counts as a success (Kubernetes `pkg/probe/http`, RedirectChecker)."""
    if status not in _REDIRECTS or not location:
        return ""
    target = urljoin(url, location)
    return target if urlsplit(target).hostname == urlsplit(url).hostname else ""


async def watch_probe(
    probe: Json,
    *,
    run: Callable[[float], Awaitable[Outcome]],
    report: Callable[[bool, str], None],
    clock: Clock,
    initially: bool | None,
    until_success: bool = False,
) -> None:
    """Run a probe repeatedly and report each change of its verdict; a startup probe ends with its success.

    `initially` is the verdict before the first result. A verdict changes after `failureThreshold` or `successThreshold`
    results of the same kind in a row; `report` is called with every change, and with every further failed threshold.
    """
    verdict = initially
    streak, last = 0, None
    await clock.sleep(float(probe.get("initialDelaySeconds") or 0))
    while True:
        outcome = await run(float(probe.get("timeoutSeconds") or 1))
        streak = streak + 1 if outcome.ok == last else 1
        last = outcome.ok
        needed = int(probe.get("successThreshold") or 1) if outcome.ok else int(probe.get("failureThreshold") or 3)
        if streak >= needed and (outcome.ok != verdict or not outcome.ok):
            verdict = outcome.ok
            report(verdict, outcome.message)
            if verdict and until_success:
                return
        await clock.sleep(float(probe.get("periodSeconds") or 10))
