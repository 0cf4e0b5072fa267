"""`vcbatch doctor`: diagnoses the installation and suggests fixes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click

from vcbatch.api.names import COMPONENTS_NAMESPACE, CONTROLLERS_LEASE, SCHEDULER_LEASE
from vcbatch.api.resources import PODS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import text
from vcbatch.cli.base.local_scheduler import local_state
from vcbatch.cli.base.lost_state import lost_state_warnings
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of, wrap
from vcbatch.cli.resources.checkup import Finding, Setting, Verdict, examine
from vcbatch.cli.resources.sections import width_of
from vcbatch.interfaces.api import Api, ApiError

if TYPE_CHECKING:
    from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]


@click.command("doctor")
@click.option(
    "--components-namespace", default=COMPONENTS_NAMESPACE, show_default=True, metavar="NAME",
    help="Namespace of the Leases of the scheduler and the controllers.",
)  # fmt: skip
@access_options
def command(access: Access, components_namespace: str) -> int:
    """Diagnose the installation and suggest fixes.

    Checks connection, CRDs, permissions, admission, scheduler, controllers and queues. On a cluster, also checks the
    installation: versions, webhooks, replicas, other schedulers of the same name, and clock skew.

    Exits 1 if a check fails. Suspicious findings are reported as warnings.
    """
    terminal = terminal_of()
    try:
        connection = access.connection()
    except CliError as error:
        finding = Finding(verdict=Verdict.FAILED, about="connection", message=str(error), todo=error.hint)
        say("\n".join(lines_of(finding, terminal)))
        return 1
    failed = False

    async def work(api: Api) -> None:
        nonlocal failed
        rest = cast("RestApi", api)
        setting = Setting(
            namespace=access.namespace,
            components=components_namespace,
            now=access.now(),
            failing=rest.failing_checks,
        )
        asked = examine(api, setting, server=connection.server, version=rest.version)
        reached = True
        async for finding in asked:
            failed = failed or finding.verdict is Verdict.FAILED
            reached = reached and not (failed and finding.about == "connection")
            say("\n".join(lines_of(finding, terminal)))
        if not reached:
            return
        for finding in await installation(api, rest.version, access.now, components_namespace):
            failed = failed or finding.verdict is Verdict.FAILED
            say("\n".join(lines_of(finding, terminal)))
        for finding in await _lost(access, api):
            say("\n".join(lines_of(finding, terminal)))

    access.once(work)
    return 1 if failed else 0


async def installation(
    api: Api, version: Callable[[], Awaitable[Json]], now: Callable[[], datetime], components: str
) -> list[Finding]:
    """Findings about the installation of vcbatch on a cluster; none for a `vcbatch up`, and about Leases only those
    that `examine` doesn't have."""
    from vcbatch.cli.inventory.findings import Level, Purpose, findings
    from vcbatch.cli.inventory.read import PagedApi, Reader

    inventory = await Reader(cast("PagedApi", api), version=version, now=now, components=components).read()
    if inventory.local:
        return []
    verdicts = {Level.BLOCKER: Verdict.FAILED, Level.WARNING: Verdict.WARNING, Level.OK: Verdict.OK}
    examined = {f"lease/{name} in {components}" for name in (CONTROLLERS_LEASE, SCHEDULER_LEASE)}
    return [
        Finding(
            verdict=verdicts[one.level],
            about=one.check,
            message=f"{one.subject}: {one.message}" if one.subject else one.message,
            todo=one.todo,
        )
        for one in findings(inventory, now(), purpose=Purpose.DOCTOR)
        if one.subject not in examined
    ]


async def _lost(access: Access, api: Api) -> list[Finding]:
    """Findings about lost writes of a local server's database, and pods of it that still run."""
    state = local_state(access)
    if state is None:
        return []
    try:
        known = {text(pod, "metadata", "uid") for pod in (await api.list(PODS)).items}
    except ApiError:
        return []  # already reported
    return [
        Finding(verdict=Verdict.WARNING, about="database", message=warning)
        for warning in lost_state_warnings(state, known=known)
    ]


def lines_of(finding: Finding, terminal: Terminal) -> Iterator[str]:
    """The finding, with the suggested action below it."""
    tones = {Verdict.OK: Tone.GOOD, Verdict.WARNING: Tone.WAITING, Verdict.FAILED: Tone.BAD}
    word = terminal.paint(f"{finding.verdict:<7}", tones[finding.verdict])
    first, *rest = wrap(f"{finding.about}: {finding.message}", width_of(terminal) - 9) or [""]
    yield f"{word}  {first}"
    yield from (" " * 9 + line for line in rest)
    yield from wrap(finding.todo, width_of(terminal), indent=" " * 11, hang=" " * 11)
